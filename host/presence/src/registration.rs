//! How a process announces itself: a small file `/dev/shm/lintel-<job>-<nid>-<pid>`.
//!
//! The file names the process's shared memory, and its owner holds a lock on it
//! for as long as it lives. It gets its name only when it is ready and locked, so a named
//! file without a lock belonged to a process that has died, and may be removed. It is read
//! and written, never mapped: whatever happens to it, no process gets a signal.
//!
//! Only regular files of the effective user with mode 0600 count, for root as for
//! everyone: what else has such a name is neither used nor written to.

use crate::attached::Attached;
use crate::header::{MAGIC, SEGMENT_BYTES};
use crate::shared_memory::Mode;
use lintel_claim::{Key, RemoteMemory};
use lintel_private_file::{self as private_file, Refusal};
use lintel_types::ProcessId;
use rustix::fs::{AtFlags, CWD, FlockOperation, fcntl_lock, linkat};
use rustix::io::Errno;
use rustix::process::{FlockType, fcntl_getlk};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

pub(crate) const DIRECTORY: &str = "/dev/shm";
/// Files that a starting process checks, to remove those of dead ones.
const MAX_STALE_CHECKED: usize = 64;
/// Words of a registration.
const WORDS: usize = 8;

/// The content of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Registration {
    /// The number of its shared memory.
    pub(crate) segment: i32,
    /// A number that stands in that memory too.
    pub(crate) nonce: u64,
    /// The owner's number to the system, as the owner sees it.
    pub(crate) os_process: i32,
    pub(crate) process: ProcessId,
    /// Names a page in the owner: who reaches it can copy the owner's memory.
    pub(crate) key: Key,
}

impl Registration {
    /// Writes it; nothing of it is missing afterwards.
    ///
    /// # Errors
    /// What the system said: `ENOSPC` if /dev/shm is full.
    pub(crate) fn write(&self, file: &File) -> io::Result<()> {
        let words: [u64; WORDS] = [
            MAGIC,
            self.segment as u32 as u64,
            self.nonce,
            self.os_process as u32 as u64,
            self.process.nid.into(),
            self.process.pid.into(),
            self.key.address,
            self.key.nonce,
        ];
        let bytes: Vec<u8> = words.into_iter().flat_map(u64::to_ne_bytes).collect();
        private_file::allow_size(bytes.len() as u64)?;
        file.write_all_at(&bytes, 0)
    }

    /// Nothing if the file is no registration of this version.
    pub(crate) fn read(file: &File) -> Option<Registration> {
        let mut bytes = [0; WORDS * 8];
        let has_length = file.metadata().ok()?.len() == bytes.len() as u64;
        file.read_exact_at(&mut bytes, 0).ok()?;
        let mut words = [0; WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("a chunk has eight bytes"));
        }
        let [magic, segment, nonce, os_process, nid, pid, address, number] = words;
        let narrow = |word| u32::try_from(word).ok();
        (has_length && magic == MAGIC).then_some(Registration {
            segment: narrow(segment)? as i32,
            nonce,
            os_process: narrow(os_process)? as i32,
            process: ProcessId::new(narrow(nid)?, narrow(pid)?),
            key: Key {
                address,
                nonce: number,
            },
        })
    }

    /// Attaches the memory that it names.
    pub(crate) fn attach(&self, mode: Mode) -> io::Result<Attached> {
        let attached = Attached::new(self.segment, SEGMENT_BYTES, mode)?;
        let header = attached.header();
        let same = header.magic.load(Ordering::Acquire) == MAGIC
            && header.nonce.load(Ordering::Relaxed) == self.nonce;
        match same {
            true => Ok(attached),
            false => Err(Errno::INVAL.into()),
        }
    }
}

/// A peer's registration held open: shows whether that process is alive, and whether its
/// memory can be reached.
pub struct Watch {
    file: Arc<File>,
    inode: u64,
}

impl Watch {
    /// `None` if the registration with that inode isn't there any more.
    pub fn open(job: &str, process: ProcessId, inode: u64) -> Option<Watch> {
        let file = open_named(&path(job, process)).ok()?;
        let same = file.metadata().ok()?.ino() == inode;
        let watch = Watch { file, inode };
        (same && watch.is_alive()).then_some(watch)
    }

    /// Whether the owner still holds the lock.
    pub fn is_alive(&self) -> bool {
        is_locked(&self.file) || is_own(self.inode)
    }

    /// The owner's number to this system, by the kernel's word.
    pub fn owner(&self) -> Option<i32> {
        if is_own(self.inode) {
            return i32::try_from(std::process::id()).ok();
        }
        holder(&self.file).filter(|process| *process > 0)
    }

    /// Whether this process can copy memory of the owner directly.
    pub fn can_reach(&self) -> bool {
        let (Some(process), Some(registration)) = (self.owner(), Registration::read(&self.file))
        else {
            return false;
        };
        let key = registration.key;
        RemoteMemory { process, key }.probe().is_ok()
    }
}

/// The files of the segments that this process owns, by inode: it doesn't see its own
/// locks, and to close such a file once more would let go of the lock.
pub(crate) fn own<R>(f: impl FnOnce(&mut Vec<(u64, Arc<File>)>) -> R) -> R {
    static FILES: Mutex<Vec<(u64, Arc<File>)>> = Mutex::new(Vec::new());
    f(&mut FILES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// While no other thread of this process gives a registration its name: what is found
/// under one stays what it is.
pub(crate) fn with_names<R>(f: impl FnOnce() -> R) -> R {
    static NAMES: Mutex<()> = Mutex::new(());
    let _alone = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    f()
}

/// The number of the shared memory of a process, by its registration.
pub fn shared_memory_of(job: &str, process: ProcessId) -> Option<i32> {
    let file = open_named(&path(job, process)).ok()?;
    Registration::read(&file).map(|registration| registration.segment)
}

/// Opens a named registration; one of this process's own is shared, not opened again.
pub(crate) fn open_named(path: &Path) -> Result<Arc<File>, Refusal> {
    with_names(|| {
        let metadata = std::fs::symlink_metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Refusal::Missing,
            _ => Refusal::System(error),
        })?;
        let of_own = |files: &mut Vec<(u64, Arc<File>)>| {
            let found = files.iter().find(|(own, _)| *own == metadata.ino());
            found.map(|(_, file)| file.clone())
        };
        match own(of_own) {
            Some(file) => Ok(file),
            None => private_file::open(path).map(Arc::new),
        }
    })
}

pub(crate) fn is_own(inode: u64) -> bool {
    own(|files| files.iter().any(|(own, _)| *own == inode))
}

pub(crate) fn path(job: &str, process: ProcessId) -> PathBuf {
    Path::new(DIRECTORY).join(format!("lintel-{job}-{:x}-{}", process.nid, process.pid))
}

/// Whose registration a file is by its name; nothing if it is something else.
pub(crate) fn process_of(path: &Path) -> Option<(String, ProcessId)> {
    let name = path.file_name()?.to_str()?.strip_prefix("lintel-")?;
    let mut parts = name.rsplitn(3, '-');
    let pid = parts.next()?.parse().ok()?;
    let nid = u32::from_str_radix(parts.next()?, 16).ok()?;
    Some((parts.next()?.to_owned(), ProcessId::new(nid, pid)))
}

/// Gives a file without a name its name.
pub(crate) fn link(file: &File, path: &Path) -> io::Result<()> {
    let from = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
}

/// Takes the lock that says "the owner lives"; false if another has it. The
/// system lets it go when this process ends, however it ends, and a forked child
/// doesn't have it.
pub(crate) fn lock(file: &File) -> io::Result<bool> {
    match fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Releases the lock that [`lock`] took; closing the file does, too.
pub(crate) fn unlock(file: &File) {
    // The system refuses that for no file that was locked.
    let _ = fcntl_lock(file, FlockOperation::NonBlockingUnlock);
}

/// The process that holds the file's lock; 0 if this one can't name it.
fn holder(file: &File) -> Option<i32> {
    let lock = fcntl_getlk(file, &FlockType::WriteLock.into()).ok()??;
    Some(lock.pid.map_or(0, |process| process.as_raw_nonzero().get()))
}

pub(crate) fn is_locked(file: &File) -> bool {
    holder(file).is_some()
}

/// What was found under a name that is taken.
pub(crate) enum Stale {
    Removed,
    Lives,
    /// Another process is just removing it.
    BeingRemoved,
    /// It is no registration of this user.
    Foreign(Refusal),
}

/// Removes what a dead process left. The process that gets the dead file's lock is the
/// only one to remove its name.
pub(crate) fn remove_if_stale(path: &Path) -> Stale {
    with_names(|| check_and_remove(path))
}

fn check_and_remove(path: &Path) -> Stale {
    // Before it is opened: closing it would let go of the lock.
    if std::fs::symlink_metadata(path).is_ok_and(|file| is_own(file.ino())) {
        return Stale::Lives;
    }
    let file = match private_file::open(path) {
        Ok(file) => file,
        Err(Refusal::Missing) => return Stale::Removed,
        Err(refusal) => return Stale::Foreign(refusal),
    };
    let registration = Registration::read(&file);
    if !matches!(lock(&file), Ok(true)) {
        return match (holder(&file), registration) {
            (Some(holder), Some(owner)) if holder == owner.os_process => Stale::Lives,
            (Some(0), _) => Stale::Lives,
            _ => Stale::BeingRemoved,
        };
    }
    let same = |a: std::fs::Metadata, b: std::fs::Metadata| a.ino() == b.ino();
    if let (Ok(named), Ok(opened)) = (std::fs::symlink_metadata(path), file.metadata()) {
        if same(named, opened) {
            let _ = std::fs::remove_file(path);
        }
    }
    // Senders that still have the memory see that its owner has ended.
    if let Some(Ok(attached)) = registration.map(|found| found.attach(Mode::ReadWrite)) {
        attached.header().end();
    }
    Stale::Removed
}

/// Removes what killed processes of this user have left, of all jobs. Returns how many there
/// were.
///
/// # Errors
/// The directory of shared memory can't be read.
pub fn remove_all_stale() -> io::Result<usize> {
    remove_stale_of_jobs(|_| true)
}

fn remove_stale_of_jobs(is_meant: impl Fn(&str) -> bool) -> io::Result<usize> {
    let files = std::fs::read_dir(DIRECTORY)?.flatten();
    let paths = files.map(|file| file.path());
    let is_removed = |path: &PathBuf| {
        process_of(path).is_some_and(|(job, _)| is_meant(&job))
            && matches!(remove_if_stale(path), Stale::Removed)
    };
    Ok(paths.filter(is_removed).count())
}

/// Removes what killed processes of the job have left, as far as a quick look
/// finds it.
pub(crate) fn remove_stale_of(job: &str) {
    let Ok(files) = std::fs::read_dir(DIRECTORY) else {
        return;
    };
    let paths = files.flatten().map(|file| file.path());
    let of_job = |path: &PathBuf| process_of(path).is_some_and(|(found, _)| found == job);
    for path in paths.filter(of_job).take(MAX_STALE_CHECKED) {
        remove_if_stale(&path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn registration() -> Registration {
        Registration {
            segment: -5,
            nonce: 9,
            os_process: 77,
            process: ProcessId::new(0x7f00_0001, 78),
            key: Key {
                address: 0x1000,
                nonce: 3,
            },
        }
    }

    #[test]
    fn a_registration_is_read_as_it_was_written_and_nothing_else_is_one() {
        let file = private_file::create_unnamed(Path::new(DIRECTORY)).expect("there is room");
        assert_eq!(Registration::read(&file), None);
        registration().write(&file).expect("there is room");
        assert_eq!(Registration::read(&file), Some(registration()));
        file.set_len(4096).expect("there is room");
        assert_eq!(Registration::read(&file), None, "another length");
    }

    #[test]
    fn what_killed_processes_of_any_job_left_is_removed_and_counted() {
        let job = format!("killed{}", std::process::id());
        let left = path(&job, ProcessId::new(1, 77));
        private_file::open_or_create(&left).expect("it can be made");
        let removed = remove_stale_of_jobs(|other| other == job);
        let removed = removed.expect("the folder can be read");
        assert_eq!((removed, left.exists()), (1, false));
    }

    #[test]
    fn a_link_of_that_name_is_left_and_what_it_names_unchanged() {
        let name = format!("link{}", std::process::id());
        let link = path(&name, ProcessId::new(1, 77));
        let victim = std::env::temp_dir().join(&name);
        std::fs::write(&victim, [7; 4096]).expect("it can be written");
        symlink(&victim, &link).expect("it can be made");
        remove_stale_of(&name);
        assert!(matches!(
            remove_if_stale(&link),
            Stale::Foreign(Refusal::Link)
        ));
        assert_eq!(std::fs::read(&victim).expect("it is there"), [7; 4096]);
        std::fs::remove_file(&link).expect("it is left");
        std::fs::remove_file(&victim).expect("it is left");
    }

    #[test]
    fn other_files_of_a_job_are_no_registrations() {
        let of = |name| process_of(&Path::new(DIRECTORY).join(name));
        let process = ProcessId::new(0x7f00_0001, 77);
        assert_eq!(of("lintel-a-b-7f000001-77"), Some(("a-b".into(), process)));
        assert_eq!(of("lintel-a-7f000001-paths"), None);
        assert_eq!(of("lintel-a-7f000001.agent"), None);
    }
}
