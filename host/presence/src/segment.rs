//! A process's segment: the shared memory that others send to it in, with the registration
//! that names it.

use crate::attached::Attached;
use crate::barrier::has_barriers;
use crate::header::{Header, MAGIC, OWNER_ENDED, SEGMENT_BYTES};
use crate::registration::{
    DIRECTORY, Registration, Stale, is_locked, is_own, link, lock, open_named, own, path,
    remove_if_stale, remove_stale_of, unlock, with_names,
};
use crate::shared_memory::{Mode, SharedMemory, remove_abandoned};
use lintel_claim::Lease;
use lintel_private_file::{self as private_file, Refusal};
use lintel_types::ProcessId;
use rustix::io::Errno;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Process identifiers that are given out for `PID_ANY`, first and last.
const ANY_FIRST: u32 = 1024;
const ANY_LAST: u32 = 0xfffe;
/// How often, and how soon again, a name is tried that another process is removing.
const TRIES: u32 = 50;
const TRY_AGAIN: Duration = Duration::from_millis(1);

/// Why a segment can't be had.
#[derive(Debug)]
pub enum OpenError {
    /// Another live process has the name.
    InUse,
    /// A file that isn't ours has the name.
    Occupied(PathBuf, Refusal),
    /// No process identifier is free.
    NoneFree,
    /// No live process has the name.
    Nobody,
    /// The registration is something else, or of another version.
    Foreign,
    /// A limit of the system is reached: which one, and how to raise it.
    Exhausted(&'static str, io::Error),
    /// The system refused shared memory.
    Memory(io::Error),
    /// The system refused the file of the registration.
    System(io::Error),
    /// No file can be made in the folder of registrations.
    Unwritable(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse => f.write_str("another process has that process identifier"),
            OpenError::Occupied(path, refusal) => {
                write!(f, "the name {} can't be used: {refusal}", path.display())
            }
            OpenError::NoneFree => f.write_str("every process identifier is taken"),
            OpenError::Nobody => f.write_str("no live process has that identifier"),
            OpenError::Foreign => f.write_str("its segment is of another version of Lintel"),
            OpenError::Exhausted(hint, error) => write!(f, "{error}: {hint}"),
            OpenError::Memory(error) => {
                write!(f, "the system refused System V shared memory: {error}")
            }
            OpenError::System(error) => {
                write!(f, "the system refused a file in {DIRECTORY}: {error}")
            }
            OpenError::Unwritable(error) => {
                write!(
                    f,
                    "no file can be made in {DIRECTORY}: {error}; it should be a tmpfs with mode \
                     1777: as root `chmod 1777 {DIRECTORY}`, or `mount -t tmpfs -o mode=1777 \
                     tmpfs {DIRECTORY}`"
                )
            }
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(Errno::MFILE) => OpenError::Exhausted(FILES, error),
            Some(Errno::NFILE) => OpenError::Exhausted(SYSTEM_FILES, error),
            Some(Errno::NOSPC) => OpenError::Exhausted(FOLDER, error),
            Some(Errno::FBIG) => OpenError::Exhausted(FILE_SIZE, error),
            _ => OpenError::System(error),
        }
    }
}

impl From<Refusal> for OpenError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Missing => OpenError::Nobody,
            Refusal::System(error) => error.into(),
            refusal => OpenError::System(refusal.into()),
        }
    }
}

/// Why no file could be made, whatever name it was to get.
fn unmade(refusal: Refusal) -> OpenError {
    match refusal.into() {
        OpenError::Nobody => OpenError::Unwritable(Refusal::Missing.into()),
        OpenError::System(error) => OpenError::Unwritable(error),
        exhausted => exhausted,
    }
}

const FILES: &str = "this process may open no more files; raise `ulimit -n`";
const SYSTEM_FILES: &str = "this machine may open no more files; raise fs.file-max";
const FOLDER: &str = "a process needs 4096 bytes and one file in /dev/shm: remove files there, \
                      or as root `mount -o remount,size=64m /dev/shm`; in a container \
                      `--shm-size=64m`";
const FILE_SIZE: &str = "a process needs a file of 4096 bytes; raise `ulimit -f`";
const MEMORY: &str = "a process needs 43 MiB of System V shared memory, most of it never \
                      touched: see `ipcs -lm`, kernel.shmall, kernel.shmmax and `ulimit -v`";
const SEGMENTS: &str = "this machine has no System V shared memory segment left; see `ipcs -m` \
                        and raise kernel.shmmni";

/// A process's segment, one's own or a peer's.
pub struct Segment {
    memory: Attached,
    file: Arc<File>,
    path: PathBuf,
    job: String,
    process: ProcessId,
    owned: bool,
    /// Its page is what peers look for, to learn whether they can copy this process's
    /// memory; unused in a peer's segment.
    reach: Lease,
}

impl Segment {
    /// Makes the segment of this process; `pid` may be [`ProcessId::PID_ANY`].
    ///
    /// # Errors
    /// `InUse`, `Occupied`, `NoneFree`, `Exhausted`, `Unwritable` or `System`.
    pub fn create(job: &str, nid: u32, pid: u32) -> Result<Segment, OpenError> {
        remove_stale_of(job);
        remove_abandoned(SEGMENT_BYTES);
        // Without a name, so that nothing stays behind if this process ends now.
        let file = private_file::create_unnamed(Path::new(DIRECTORY)).map_err(unmade)?;
        let mut segment = Self::set_up(file, job, nid)?;
        segment.take_name(nid, pid)?;
        Ok(segment)
    }

    /// Attaches a live peer's segment.
    ///
    /// # Errors
    /// `Nobody`, `Foreign`, `Occupied`, `Exhausted` or `System`.
    pub fn open(job: &str, process: ProcessId) -> Result<Segment, OpenError> {
        let path = path(job, process);
        let file = match open_named(&path) {
            Ok(file) => file,
            Err(refusal @ (Refusal::Missing | Refusal::System(_))) => return Err(refusal.into()),
            Err(refusal) => return Err(OpenError::Occupied(path, refusal)),
        };
        let registration = Registration::read(&file).ok_or(OpenError::Foreign)?;
        let memory = match registration.attach(Mode::ReadWrite) {
            Ok(memory) => memory,
            // Its owner has just ended, or it is another system's.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INVAL) => {
                return Err(OpenError::Nobody);
            }
            Err(error) => return Err(refused_memory(error)),
        };
        let segment = Segment {
            memory,
            file,
            path,
            job: job.to_owned(),
            process,
            owned: false,
            reach: Lease::new(),
        };
        if !segment.is_owner_alive() {
            return Err(OpenError::Nobody);
        }
        Ok(segment)
    }

    /// The process that it registers.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    /// The job that it takes part in.
    pub fn job(&self) -> &str {
        &self.job
    }

    /// Whether the owner still lives and hasn't given the segment up.
    pub fn is_owner_alive(&self) -> bool {
        self.header().asleep() != OWNER_ENDED && (is_locked(&self.file) || is_own(self.inode()))
    }

    /// Distinguishes this segment from every other: its registration's.
    pub fn inode(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.ino())
    }

    /// Removes what the dead owner left, unless that has been done.
    pub fn clear_away(&self) {
        remove_if_stale(&self.path);
    }

    /// Counts lanes that senders have opened or closed.
    #[inline]
    pub fn changes(&self) -> u32 {
        self.header().changes.0.load(Ordering::Acquire)
    }

    /// Lets the owner see that a lane was opened or closed.
    pub fn note_change(&self) {
        self.header().changes.0.fetch_add(1, Ordering::Release);
    }

    /// Whether the owner can't order barriers: senders must order their commit and their look at
    /// the bell themselves.
    pub fn needs_fence(&self) -> bool {
        self.header().needs_fence.load(Ordering::Relaxed) != 0
    }

    /// The first byte of the segment, aligned to a page; [`SEGMENT_BYTES`] are attached as
    /// long as this value lives.
    #[inline]
    pub fn start(&self) -> *mut u8 {
        self.memory.start()
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        self.memory.header()
    }

    pub(crate) fn memory(&self) -> &Attached {
        &self.memory
    }

    fn set_up(file: File, job: &str, nid: u32) -> Result<Segment, OpenError> {
        if !lock(&file)? {
            return Err(OpenError::InUse);
        }
        let memory = SharedMemory::create(SEGMENT_BYTES, random() as u32);
        let segment = Segment {
            memory: Attached::from(memory.map_err(refused_memory)?),
            file: Arc::new(file),
            path: PathBuf::new(),
            job: job.to_owned(),
            process: ProcessId::new(nid, 0),
            owned: true,
            reach: Lease::new(),
        };
        segment.fill_header();
        let owned = (segment.file.metadata()?.ino(), segment.file.clone());
        own(|files| files.push(owned));
        Ok(segment)
    }

    fn fill_header(&self) {
        let header = self.header();
        header.nonce.store(random(), Ordering::Relaxed);
        let fence = u32::from(!has_barriers());
        header.needs_fence.store(fence, Ordering::Relaxed);
        header.magic.store(MAGIC, Ordering::Release);
    }

    fn take_name(&mut self, nid: u32, pid: u32) -> Result<(), OpenError> {
        if pid != ProcessId::PID_ANY {
            return self.take_one(ProcessId::new(nid, pid));
        }
        let numbers = ANY_LAST - ANY_FIRST + 1;
        let first = std::process::id() % numbers;
        for step in 0..numbers {
            let pid = ANY_FIRST + (first + step) % numbers;
            match self.take_one(ProcessId::new(nid, pid)) {
                Err(OpenError::InUse | OpenError::Occupied(..)) => continue,
                taken => return taken,
            }
        }
        Err(OpenError::NoneFree)
    }

    fn take_one(&mut self, process: ProcessId) -> Result<(), OpenError> {
        let registration = Registration {
            segment: self.memory.id(),
            nonce: self.header().nonce.load(Ordering::Relaxed),
            os_process: std::process::id() as i32,
            process,
            key: self.reach.key().unwrap_or_default(),
        };
        registration.write(&self.file)?;
        let path = path(&self.job, process);
        for _ in 0..TRIES {
            let linked = with_names(|| link(&self.file, &path));
            match linked {
                Ok(()) => {
                    self.process = process;
                    self.path = path;
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    match remove_if_stale(&path) {
                        Stale::Removed => {}
                        Stale::Lives => return Err(OpenError::InUse),
                        Stale::BeingRemoved => std::thread::sleep(TRY_AGAIN),
                        Stale::Foreign(refusal) => return Err(OpenError::Occupied(path, refusal)),
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(OpenError::InUse)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if let (true, Ok(file)) = (self.owned, self.file.metadata()) {
            own(|files| files.retain(|(inode, _)| *inode != file.ino()));
        }
        if self.owned && !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.path);
            self.header().end();
            // Others in this process may have the file open for longer.
            unlock(&self.file);
        }
    }
}

fn refused_memory(error: io::Error) -> OpenError {
    match Errno::from_io_error(&error) {
        Some(Errno::NOMEM) => OpenError::Exhausted(MEMORY, error),
        Some(Errno::NOSPC) => OpenError::Exhausted(SEGMENTS, error),
        _ => OpenError::Memory(error),
    }
}

/// Unlikely to be found by chance elsewhere.
pub(crate) fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
        | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registration::Watch;

    fn is_locked_for_others(segment: &Segment) -> bool {
        let locks = std::fs::read_to_string("/proc/locks").expect("Linux lists locks");
        let inode = format!(":{} ", segment.inode());
        locks.lines().any(|lock| lock.contains(&inode))
    }

    #[test]
    fn a_folder_that_takes_no_file_is_reported_with_what_to_do() {
        for refusal in [Refusal::Missing, Errno::ACCESS.into(), Errno::ROFS.into()] {
            let error = unmade(refusal).to_string();
            let start = "no file can be made in /dev/shm: ";
            assert!(
                error.starts_with(start) && error.contains("chmod 1777"),
                "{error}"
            );
        }
        let full = unmade(Errno::NOSPC.into());
        assert!(matches!(full, OpenError::Exhausted(..)), "{full:?}");
    }

    #[test]
    fn two_segments_of_one_process_look_at_each_other_and_keep_their_locks() {
        let job = format!("locks{}", std::process::id());
        let first = Segment::create(&job, 0x7f00_0001, 1).expect("the name is free");
        let second = Segment::create(&job, 0x7f00_0001, 2).expect("the name is free");
        let seen = Segment::open(&job, first.process()).expect("it lives");
        let watch = Watch::open(&job, second.process(), second.inode()).expect("it lives");
        assert!(seen.is_owner_alive() && watch.is_alive());
        drop((seen, watch));
        assert!(is_locked_for_others(&first) && is_locked_for_others(&second));
        let seen = Segment::open(&job, first.process()).expect("it lives");
        drop(first);
        assert!(!seen.is_owner_alive() && !is_locked_for_others(&seen));
    }

    #[test]
    fn a_starting_process_removes_what_a_killed_one_of_its_job_left() {
        let job = format!("leftover{}", std::process::id());
        let left = path(&job, ProcessId::new(0x7f00_0001, 77));
        private_file::open_or_create(&left).expect("/dev/shm can be written to");
        let live = Segment::create(&job, 0x7f00_0001, 78).expect("the name is free");
        let next = Segment::create(&job, 0x7f00_0001, 79).expect("the name is free");
        assert!(!left.exists(), "nobody holds its lock");
        assert!(path(&job, live.process()).exists(), "its owner lives");
        drop((live, next));
    }

    #[test]
    fn a_name_that_a_file_of_another_kind_has_is_occupied_and_any_other_is_found() {
        let job = format!("occupied{}", std::process::id());
        let taken = path(&job, ProcessId::new(1, 77));
        std::os::unix::fs::symlink("/nowhere", &taken).expect("it can be made");
        let refused = Segment::create(&job, 1, 77);
        assert!(matches!(refused, Err(OpenError::Occupied(..))));
        let any = Segment::create(&job, 1, ProcessId::PID_ANY).expect("others are free");
        std::fs::remove_file(&taken).expect("it is left");
        drop(any);
    }

    #[test]
    fn a_refusal_names_what_was_refused() {
        let read_only = || io::Error::from(Errno::ROFS);
        let file = OpenError::from(read_only()).to_string();
        assert!(file.contains("/dev/shm"), "{file}");
        let memory = refused_memory(read_only()).to_string();
        assert!(memory.contains("System V"), "{memory}");
        let full = OpenError::from(io::Error::from(Errno::NOSPC)).to_string();
        assert!(full.contains("needs 4096 bytes"), "{full}");
    }

    #[test]
    fn a_registration_that_is_shortened_harms_nobody() {
        let job = format!("short{}", std::process::id());
        let segment = Segment::create(&job, 1, 77).expect("the name is free");
        let seen = Segment::open(&job, segment.process()).expect("it lives");
        segment.file.set_len(0).expect("its owner may");
        assert_eq!(seen.header().magic.load(Ordering::Relaxed), MAGIC);
        assert!(matches!(
            Segment::open(&job, segment.process()),
            Err(OpenError::Foreign)
        ));
    }
}
