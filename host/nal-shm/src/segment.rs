//! A process's segment of shared memory: a file under /dev/shm.
//!
//! A segment gets its name only when it is ready and locked, so a named segment
//! without a lock belonged to a process that has died, and may be removed.

use crate::bell::register_for_barriers;
use crate::layout::{
    BellWords, Front, GONE, Header, LANES, Lane, MAGIC, SEGMENT_BYTES, ring_offset,
};
use lintel_claim::{Region, RemoteSpan, pull};
use lintel_ring::RING_BYTES;
use lintel_types::ProcessId;
use std::ffi::CString;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

pub(crate) const DIRECTORY: &str = "/dev/shm";
/// Segments that a starting process looks at, to remove those of dead ones.
const MOST_LOOKED_AT: usize = 64;
/// Process identifiers that are given out to those who don't care.
const ANY_FIRST: u32 = 1024;
const ANY_LAST: u32 = 0xfffe;
/// How often, and how soon again, a name is tried that somebody clears away.
const TRIES: u32 = 50;
const TRY_AGAIN: Duration = Duration::from_millis(1);

/// Why a segment can't be had.
#[derive(Debug)]
pub enum OpenError {
    /// Another live process has the name.
    InUse,
    /// No process identifier is free.
    NoneFree,
    /// Nobody has the name.
    Nobody,
    /// The owner has no lane left.
    NoLane,
    /// The file is something else, or of another version.
    Foreign,
    /// The system refused.
    System(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::InUse => f.write_str("another process has that process identifier"),
            OpenError::NoneFree => f.write_str("every process identifier is taken"),
            OpenError::Nobody => f.write_str("no live process has that identifier"),
            OpenError::NoLane => write!(f, "{LANES} processes send to it already"),
            OpenError::Foreign => f.write_str("its segment is of another version of Lintel"),
            OpenError::System(error) => write!(f, "the system refused shared memory: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        OpenError::System(error)
    }
}

/// A mapped segment, one's own or a peer's.
pub struct Segment {
    memory: *mut u8,
    file: Arc<File>,
    path: PathBuf,
    job: String,
    process: ProcessId,
    owned: bool,
    /// What the header's `probe` points to; empty in a peer's segment.
    nonce: Box<AtomicU64>,
}

// SAFETY: the memory stays mapped as long as the Segment lives and is accessed
// through atomics, rings and claims only.
unsafe impl Send for Segment {}
// SAFETY: as for Send.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes the segment of this process; `pid` may be [`ProcessId::PID_ANY`].
    ///
    /// # Errors
    /// `InUse`, `NoneFree` or `System`.
    pub fn create(job: &str, nid: u32, pid: u32) -> Result<Segment, OpenError> {
        // Without a name, so that nothing stays behind if this process ends now.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_TMPFILE)
            .mode(0o600)
            .open(DIRECTORY)?;
        let mut segment = Self::set_up(file, job, nid)?;
        segment.take_name(nid, pid)?;
        remove_leftovers(job);
        Ok(segment)
    }

    /// Maps a live peer's segment.
    ///
    /// # Errors
    /// `Nobody`, `Foreign` or `System`.
    pub(crate) fn open(job: &str, process: ProcessId) -> Result<Segment, OpenError> {
        let path = path(job, process);
        let file = match open_named(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(OpenError::Nobody),
            Err(error) => return Err(error.into()),
        };
        if file.metadata()?.len() != SEGMENT_BYTES as u64 {
            return Err(OpenError::Foreign);
        }
        let segment = Segment {
            memory: map(&file)?,
            file,
            path,
            job: job.to_owned(),
            process,
            owned: false,
            nonce: Box::default(),
        };
        if segment.header().magic.load(Ordering::Acquire) != MAGIC {
            return Err(OpenError::Foreign);
        }
        if !segment.owner_lives() {
            return Err(OpenError::Nobody);
        }
        Ok(segment)
    }

    /// Whose it is.
    pub fn process(&self) -> ProcessId {
        self.process
    }

    pub(crate) fn job(&self) -> &str {
        &self.job
    }

    /// Whether the owner still lives and hasn't given the segment up.
    pub(crate) fn owner_lives(&self) -> bool {
        self.header().bell.asleep.load(Ordering::Relaxed) != GONE
            && (is_locked(&self.file) || is_own(self.inode()))
    }

    /// Tells this segment from every other.
    pub(crate) fn inode(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.ino())
    }

    /// Removes what the dead owner left, unless that has been done.
    pub(crate) fn clear_away(&self) {
        remove_if_stale(&self.path);
    }

    /// Empties a lane's ring, which no other sender writes to and the receiver
    /// doesn't read yet.
    pub(crate) fn clear_lane(&self, lane: usize) {
        // SAFETY: the lane's ring is mapped, and this sender's alone.
        unsafe { self.ring(lane).write_bytes(0, RING_BYTES) };
        self.lane(lane).control.reset();
    }

    #[inline]
    pub(crate) fn changes(&self) -> u32 {
        self.header().changes.0.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        &self.front().header
    }

    #[inline]
    pub(crate) fn lane(&self, lane: usize) -> &Lane {
        &self.front().lanes[lane]
    }

    /// Where a lane's ring begins; aligned to a line.
    pub(crate) fn ring(&self, lane: usize) -> *mut u8 {
        debug_assert!(lane < LANES);
        // SAFETY: the offset of an existing lane lies inside the mapping.
        unsafe { self.memory.add(ring_offset(lane)) }
    }

    /// Puts memory behind a ring, so that a full /dev/shm is an error now and no
    /// signal later.
    pub(crate) fn reserve_ring(&self, lane: usize) -> Result<(), OpenError> {
        let (offset, length) = (ring_offset(lane) as i64, RING_BYTES as i64);
        // SAFETY: posix_fallocate takes any numbers.
        match unsafe { libc::posix_fallocate(self.file.as_raw_fd(), offset, length) } {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error).into()),
        }
    }

    #[inline]
    fn front(&self) -> &Front {
        // SAFETY: the mapping is page-aligned, longer than a Front, all of whose
        // fields are atomics that any bytes are valid for, and lives as long as self.
        unsafe { &*self.memory.cast::<Front>() }
    }

    fn set_up(file: File, job: &str, nid: u32) -> Result<Segment, OpenError> {
        file.set_len(SEGMENT_BYTES as u64)?;
        // SAFETY: posix_fallocate takes any numbers.
        let reserved =
            unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size_of::<Header>() as i64) };
        if reserved != 0 {
            return Err(io::Error::from_raw_os_error(reserved).into());
        }
        if !lock(&file)? {
            return Err(OpenError::InUse);
        }
        let segment = Segment {
            memory: map(&file)?,
            file: Arc::new(file),
            path: PathBuf::new(),
            job: job.to_owned(),
            process: ProcessId::new(nid, 0),
            owned: true,
            nonce: Box::new(AtomicU64::new(random())),
        };
        segment.fill_header();
        let owned = (segment.file.metadata()?.ino(), segment.file.clone());
        own(|files| files.push(owned));
        Ok(segment)
    }

    fn fill_header(&self) {
        let header = self.header();
        header
            .os_process
            .store(std::process::id() as i32, Ordering::Relaxed);
        header
            .nonce
            .store(self.nonce.load(Ordering::Relaxed), Ordering::Relaxed);
        header
            .probe
            .store(&raw const *self.nonce as u64, Ordering::Relaxed);
        let fence = u32::from(!register_for_barriers());
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
                Err(OpenError::InUse) => continue,
                taken => return taken,
            }
        }
        Err(OpenError::NoneFree)
    }

    fn take_one(&mut self, process: ProcessId) -> Result<(), OpenError> {
        self.header().nid.store(process.nid, Ordering::Relaxed);
        self.header().pid.store(process.pid, Ordering::Relaxed);
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
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(OpenError::InUse)
    }
}

/// A peer's segment held open without being mapped: tells whether that process
/// lives, and whether its memory can be reached.
pub(crate) struct Watch {
    file: Arc<File>,
    inode: u64,
}

impl Watch {
    /// Nothing where the segment with that inode isn't any more.
    pub(crate) fn open(job: &str, process: ProcessId, inode: u64) -> Option<Watch> {
        let file = open_named(&path(job, process)).ok()?;
        let same = file.metadata().ok()?.ino() == inode;
        let watch = Watch { file, inode };
        (same && watch.lives()).then_some(watch)
    }

    pub(crate) fn lives(&self) -> bool {
        is_locked(&self.file) || is_own(self.inode)
    }

    /// The owner's number to this system, by the kernel's word.
    pub(crate) fn owner(&self) -> Option<i32> {
        if is_own(self.inode) {
            return i32::try_from(std::process::id()).ok();
        }
        holder(&self.file).filter(|process| *process > 0)
    }

    /// Whether this process can move bytes of the owner directly: it must find
    /// the owner's nonce where the owner says it is.
    pub(crate) fn can_reach(&self) -> bool {
        let word = |offset| {
            let mut bytes = [0; 8];
            let read = self.file.read_exact_at(&mut bytes, offset as u64);
            read.ok().map(|()| u64::from_ne_bytes(bytes))
        };
        let (Some(address), Some(nonce), Some(owner)) = (
            word(offset_of!(Header, probe)),
            word(offset_of!(Header, nonce)),
            self.owner(),
        ) else {
            return false;
        };
        let seen = Region::new(8);
        let probe = RemoteSpan { address, length: 8 };
        pull(owner, &[probe], &[seen.claim()]) == Ok(8) && seen.claim().load_u64(0) == Some(nonce)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if let (true, Ok(file)) = (self.owned, self.file.metadata()) {
            own(|files| files.retain(|(inode, _)| *inode != file.ino()));
        }
        if self.owned && !self.path.as_os_str().is_empty() {
            let _ = std::fs::remove_file(&self.path);
            let asleep = &self.header().bell.asleep;
            asleep.store(GONE, Ordering::SeqCst);
            // Others in this process may have the file open for longer.
            unlock(&self.file);
        }
        // SAFETY: mapped by map() with this length, and nobody else unmaps it.
        unsafe { libc::munmap(self.memory.cast(), SEGMENT_BYTES) };
    }
}

/// The files of the segments that this process owns, by inode: it doesn't see its own
/// locks, and to close such a file once more would let go of the lock.
fn own<R>(f: impl FnOnce(&mut Vec<(u64, Arc<File>)>) -> R) -> R {
    static FILES: Mutex<Vec<(u64, Arc<File>)>> = Mutex::new(Vec::new());
    f(&mut FILES.lock().unwrap_or_else(PoisonError::into_inner))
}

/// While no other thread of this process gives a segment its name: what is found
/// under one stays what it is.
fn with_names<R>(f: impl FnOnce() -> R) -> R {
    static NAMES: Mutex<()> = Mutex::new(());
    let _alone = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    f()
}

/// Opens a named segment; one of this process's own is shared, not opened again.
fn open_named(path: &Path) -> io::Result<Arc<File>> {
    with_names(|| {
        let inode = std::fs::metadata(path)?.ino();
        let of_own = |files: &mut Vec<(u64, Arc<File>)>| {
            let found = files.iter().find(|(own, _)| *own == inode);
            found.map(|(_, file)| file.clone())
        };
        match own(of_own) {
            Some(file) => Ok(file),
            None => Ok(Arc::new(
                OpenOptions::new().read(true).write(true).open(path)?,
            )),
        }
    })
}

pub(crate) fn is_own(inode: u64) -> bool {
    own(|files| files.iter().any(|(own, _)| *own == inode))
}

fn path(job: &str, process: ProcessId) -> PathBuf {
    Path::new(DIRECTORY).join(format!("lintel-{job}-{:x}-{}", process.nid, process.pid))
}

/// Whose segment a file is by its name; nothing where it is something else.
pub(crate) fn process_of(path: &Path) -> Option<(String, ProcessId)> {
    let name = path.file_name()?.to_str()?.strip_prefix("lintel-")?;
    let mut parts = name.rsplitn(3, '-');
    let pid = parts.next()?.parse().ok()?;
    let nid = u32::from_str_radix(parts.next()?, 16).ok()?;
    Some((parts.next()?.to_owned(), ProcessId::new(nid, pid)))
}

/// Gives a file without a name its name.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let c_string = |bytes: &[u8]| CString::new(bytes).map_err(io::Error::from);
    let from = c_string(format!("/proc/self/fd/{}", file.as_raw_fd()).as_bytes())?;
    let to = c_string(path.as_os_str().as_bytes())?;
    let (here, follow) = (libc::AT_FDCWD, libc::AT_SYMLINK_FOLLOW);
    // SAFETY: two C strings that live through the call.
    match unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), follow) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Unlikely to be found by chance in another process's memory.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
        | 1
}

fn map(file: &File) -> Result<*mut u8, OpenError> {
    // SAFETY: a new shared mapping of a file; nothing is placed over it.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            SEGMENT_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_NORESERVE,
            file.as_raw_fd(),
            0,
        )
    };
    if memory == libc::MAP_FAILED {
        return Err(io::Error::last_os_error().into());
    }
    Ok(memory.cast())
}

fn whole_file(kind: i32) -> libc::flock {
    // SAFETY: a flock of zeros is valid; the fields that matter are set below.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as i16;
    lock.l_whence = libc::SEEK_SET as i16;
    lock
}

/// Takes the lock that says "the owner lives"; false where another has it. The
/// system lets it go when this process ends, however it ends, and a forked child
/// doesn't have it.
fn lock(file: &File) -> io::Result<bool> {
    let lock = whole_file(libc::F_WRLCK);
    // SAFETY: the file is open and the flock lives through the call.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &lock) } {
        0 => Ok(true),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            error => Err(error),
        },
    }
}

/// Lets go of it.
fn unlock(file: &File) {
    let lock = whole_file(libc::F_UNLCK);
    // SAFETY: the file is open and the flock lives through the call.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &lock) };
}

/// The process that holds the file's lock; 0 where this one can't name it.
fn holder(file: &File) -> Option<i32> {
    let mut lock = whole_file(libc::F_WRLCK);
    // SAFETY: the file is open and the flock lives through the call.
    let asked = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &mut lock) };
    (asked == 0 && lock.l_type != libc::F_UNLCK as i16).then_some(lock.l_pid)
}

pub(crate) fn is_locked(file: &File) -> bool {
    holder(file).is_some()
}

/// What was found under a name that is taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stale {
    Removed,
    Lives,
    /// Somebody else is just removing it.
    BeingRemoved,
}

/// Removes what a dead process left. Whoever holds the dead file's lock is the
/// only one to remove its name.
fn remove_if_stale(path: &Path) -> Stale {
    with_names(|| look_and_remove(path))
}

fn look_and_remove(path: &Path) -> Stale {
    // Before it is opened: closing it would let go of the lock.
    if std::fs::metadata(path).is_ok_and(|file| is_own(file.ino())) {
        return Stale::Lives;
    }
    let Ok(file) = OpenOptions::new().read(true).write(true).open(path) else {
        return if path.exists() {
            Stale::Lives
        } else {
            Stale::Removed
        };
    };
    if !matches!(lock(&file), Ok(true)) {
        return match (holder(&file), recorded_owner(&file)) {
            (Some(holder), Some(owner)) if holder == owner => Stale::Lives,
            (Some(0), _) => Stale::Lives,
            _ => Stale::BeingRemoved,
        };
    }
    let same = |a: std::fs::Metadata, b: std::fs::Metadata| a.ino() == b.ino();
    if let (Ok(named), Ok(opened)) = (std::fs::metadata(path), file.metadata()) {
        if same(named, opened) {
            let _ = std::fs::remove_file(path);
        }
    }
    // Senders that don't know yet are told.
    let gone = offset_of!(Header, bell) + offset_of!(BellWords, asleep);
    let _ = file.write_all_at(&GONE.to_ne_bytes(), gone as u64);
    Stale::Removed
}

/// Removes what killed processes of the job have left, as far as a quick look
/// finds it.
fn remove_leftovers(job: &str) {
    let Ok(files) = std::fs::read_dir(DIRECTORY) else {
        return;
    };
    let paths = files.flatten().map(|file| file.path());
    let of_job = |path: &PathBuf| process_of(path).is_some_and(|(found, _)| found == job);
    for path in paths.filter(of_job).take(MOST_LOOKED_AT) {
        remove_if_stale(&path);
    }
}

fn recorded_owner(file: &File) -> Option<i32> {
    let mut bytes = [0; 4];
    let at = offset_of!(Header, os_process) as u64;
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_locked_for_others(segment: &Segment) -> bool {
        let locks = std::fs::read_to_string("/proc/locks").expect("Linux tells of locks");
        let inode = format!(":{} ", segment.inode());
        locks.lines().any(|lock| lock.contains(&inode))
    }

    #[test]
    fn two_segments_of_one_process_look_at_each_other_and_keep_their_locks() {
        let job = format!("locks{}", std::process::id());
        let first = Segment::create(&job, 0x7f00_0001, 1).expect("the name is free");
        let second = Segment::create(&job, 0x7f00_0001, 2).expect("the name is free");
        let seen = Segment::open(&job, first.process()).expect("it lives");
        let watch = Watch::open(&job, second.process(), second.inode()).expect("it lives");
        assert!(seen.owner_lives() && watch.lives());
        drop((seen, watch));
        assert!(is_locked_for_others(&first) && is_locked_for_others(&second));
        let seen = Segment::open(&job, first.process()).expect("it lives");
        drop(first);
        assert!(!seen.owner_lives() && !is_locked_for_others(&seen));
    }

    #[test]
    fn a_starting_process_removes_what_a_killed_one_of_its_job_left() {
        let job = format!("leftover{}", std::process::id());
        let left = path(&job, ProcessId::new(0x7f00_0001, 77));
        std::fs::write(&left, vec![0; 4096]).expect("/dev/shm can be written to");
        let live = Segment::create(&job, 0x7f00_0001, 78).expect("the name is free");
        let next = Segment::create(&job, 0x7f00_0001, 79).expect("the name is free");
        assert!(!left.exists(), "nobody holds its lock");
        assert!(path(&job, live.process()).exists(), "its owner lives");
        drop((live, next));
    }

    #[test]
    fn other_files_of_a_job_are_no_segments() {
        let of = |name| process_of(&Path::new(DIRECTORY).join(name));
        let process = ProcessId::new(0x7f00_0001, 77);
        assert_eq!(of("lintel-a-b-7f000001-77"), Some(("a-b".into(), process)));
        assert_eq!(of("lintel-a-7f000001-paths"), None);
        assert_eq!(of("lintel-a-7f000001.agent"), None);
    }
}
