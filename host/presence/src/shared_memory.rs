//! Memory that processes share: a System V shared memory segment.
//!
//! Its size is fixed when it is made, so no process dies of SIGBUS because another one has
//! shortened a file, and it doesn't come out of `/dev/shm`, whose size is often small in
//! containers. It is marked for removal as soon as its maker has it: Linux lets others
//! attach it by its number as long as anyone is attached, and frees it with the last one,
//! however that one ends.

use std::io;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the keys of our segments begin with, for the moment in which one has a key.
const KEY: u32 = 0x4c4e_0000;
/// Keys that are tried before giving up.
const TRIES: u32 = 64;
/// A segment that no process has attached for so long, in seconds, was left by a process that
/// was killed while it made it.
const ABANDONED: u64 = 10;

/// A System V segment that this process has attached; detached on drop. The addresses of one
/// that it has made stay readable.
pub(crate) struct SharedMemory {
    start: *mut u8,
    id: i32,
    detach: Detach,
}

/// How a segment is detached.
#[derive(Clone, Copy)]
enum Detach {
    /// All of it, from where it was attached.
    Whole,
    /// All of it, so many bytes, with zeros mapped in its place.
    Vacate { bytes: usize },
    /// What lies behind its front, which was moved away: another mapping may be in the front's place,
    /// which shmdt(2) would take for this one.
    Rest { offset: usize, bytes: usize },
}

/// Addresses and lengths of segments that this process has made and detached. Zeros are
/// mapped there until the next segment is: a thread may still be about to read.
static VACANT: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());

// SAFETY: the memory stays attached as long as this value lives; its users access it
// through atomics and raw copies.
unsafe impl Send for SharedMemory {}
// SAFETY: as for Send.
unsafe impl Sync for SharedMemory {}

/// What this process may do with a segment that it attaches.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    ReadWrite,
    ReadOnly,
}

impl SharedMemory {
    /// Makes a segment of zeros for processes of this user.
    ///
    /// # Errors
    /// `ENOMEM`, `ENOSPC`: the system's limits on shared memory are reached.
    pub(crate) fn create(bytes: usize, seed: u32) -> io::Result<SharedMemory> {
        let id = SharedMemory::make(bytes, seed)?;
        let attached = SharedMemory::attach_made(id, bytes);
        remove(id);
        attached
    }

    /// As [`create`](Self::create), but its addresses end with it.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub(crate) fn create_detachable(bytes: usize, seed: u32) -> io::Result<SharedMemory> {
        let id = SharedMemory::make(bytes, seed)?;
        let attached = SharedMemory::attach_raw(id, Mode::ReadWrite);
        remove(id);
        attached
    }

    /// Makes a segment that isn't attached yet.
    fn make(bytes: usize, seed: u32) -> io::Result<i32> {
        for step in 0..TRIES {
            let key = KEY | (seed.wrapping_add(step.wrapping_mul(0x9e37)) & 0xffff);
            let flags = libc::IPC_CREAT | libc::IPC_EXCL | 0o600;
            // SAFETY: shmget takes any numbers.
            let id = unsafe { libc::shmget(key as libc::key_t, bytes, flags) };
            if id >= 0 {
                return Ok(id);
            }
            match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EEXIST) => {}
                error => return Err(error),
            }
        }
        Err(io::Error::from_raw_os_error(libc::EEXIST))
    }

    /// Attaches a segment of this user that has exactly so many bytes and that no other
    /// user may attach. Its number may have come to mean another one: compare what is in it.
    ///
    /// # Errors
    /// `EINVAL`: there is none such, or it is another user's.
    pub(crate) fn attach(id: i32, bytes: usize, mode: Mode) -> io::Result<SharedMemory> {
        let memory = SharedMemory::attach_raw(id, mode)?;
        // After it is attached, so that it is this one that is looked at.
        match status(id) {
            Some(status) if status.is_private(own_uid(), bytes) => Ok(memory),
            _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    /// Attaches a segment that a program of this user has made, if it has that length and
    /// [`Identity`].
    ///
    /// # Errors
    /// `EINVAL`: there is none such.
    pub(crate) fn attach_program(
        id: i32,
        bytes: usize,
        identity: Identity,
    ) -> io::Result<SharedMemory> {
        let memory = SharedMemory::attach_raw(id, Mode::ReadWrite)?;
        // After it is attached: as long as it is, the number means no other one.
        match SharedMemory::of_program(id) {
            Some(found) if found == (bytes, identity) => Ok(memory),
            _ => Err(io::Error::from_raw_os_error(libc::EINVAL)),
        }
    }

    /// The length of a segment that a program of this user has made, and which one it is;
    /// nothing if the number is none's.
    pub(crate) fn of_program(id: i32) -> Option<(usize, Identity)> {
        let status = status(id)?;
        let uid = own_uid();
        let is_own = status.owner == uid && status.maker == uid;
        is_own.then_some((status.bytes, status.identity))
    }

    /// The number by which others attach it.
    pub(crate) fn id(&self) -> i32 {
        self.id
    }

    /// The first byte; aligned to a page.
    #[inline]
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// Moves the mapping of its first bytes to an address, in place of what is there. The `rest`
    /// behind them stays where it is; from here on this value stands for that alone.
    ///
    /// # Errors
    /// The system's, with nothing changed.
    ///
    /// # Safety
    /// `bytes` and `rest` are whole pages, all of this segment. As many at `to` as `bytes` are mapped, may
    /// be written to at any time, and hold the same.
    pub(crate) unsafe fn move_front(
        &mut self,
        (bytes, rest): (usize, usize),
        to: *mut u8,
    ) -> io::Result<()> {
        let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
        // SAFETY: as the caller promises; other addresses aren't touched.
        let moved = unsafe { libc::mremap(self.start.cast(), bytes, bytes, flags, to) };
        if moved == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.detach = Detach::Rest {
            offset: bytes,
            bytes: rest,
        };
        Ok(())
    }

    fn attach_raw(id: i32, mode: Mode) -> io::Result<SharedMemory> {
        let flags = match mode {
            Mode::ReadWrite => 0,
            Mode::ReadOnly => libc::SHM_RDONLY,
        };
        // SAFETY: attached where the system likes; nothing is replaced.
        let start = unsafe { libc::shmat(id, ptr::null(), flags) };
        SharedMemory::attached(start, id)
    }

    /// Attaches a segment that this process has just made, if it can where an earlier one was.
    fn attach_made(id: i32, bytes: usize) -> io::Result<SharedMemory> {
        let mut attached = match take_vacant(bytes) {
            Some(start) => {
                // SAFETY: replaces what `vacate` has mapped there, which nobody writes to.
                let attached = unsafe { libc::shmat(id, start, libc::SHM_REMAP) };
                let attached = SharedMemory::attached(attached, id);
                if attached.is_err() {
                    vacant().push((start.expose_provenance(), bytes));
                }
                attached
            }
            None => SharedMemory::attach_raw(id, Mode::ReadWrite),
        };
        if let Ok(memory) = &mut attached {
            memory.detach = Detach::Vacate { bytes };
        }
        attached
    }

    fn attached(start: *mut libc::c_void, id: i32) -> io::Result<SharedMemory> {
        if start.addr() == usize::MAX {
            return Err(io::Error::last_os_error());
        }
        Ok(SharedMemory {
            start: start.cast(),
            id,
            detach: Detach::Whole,
        })
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        match self.detach {
            // SAFETY: attached by attach_raw, and nobody else detaches it.
            Detach::Whole => drop(unsafe { libc::shmdt(self.start.cast()) }),
            Detach::Vacate { bytes } => vacate(self.start, bytes),
            Detach::Rest { offset, bytes } => {
                let rest = self.start.wrapping_add(offset);
                // SAFETY: it has stayed where it was attached, and nobody else unmaps it.
                unsafe { libc::munmap(rest.cast(), bytes) };
            }
        }
    }
}

/// Detaches a segment that this process has made by mapping zeros in its place. If the system
/// has no memory for that, the segment stays attached.
fn vacate(start: *mut u8, bytes: usize) {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: replaces memory that was attached here and that nobody else detaches.
    let mapped = unsafe { libc::mmap(start.cast(), bytes, libc::PROT_READ, flags, -1, 0) };
    if mapped != libc::MAP_FAILED {
        vacant().push((start.expose_provenance(), bytes));
    }
}

/// Addresses of a segment of that length that is detached.
fn take_vacant(bytes: usize) -> Option<*mut libc::c_void> {
    let mut vacant = vacant();
    let index = vacant.iter().position(|(_, length)| *length == bytes)?;
    let (start, _) = vacant.swap_remove(index);
    Some(ptr::with_exposed_provenance_mut(start))
}

fn vacant() -> MutexGuard<'static, Vec<(usize, usize)>> {
    VACANT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When a segment was made or its rights were last changed, in seconds, and which process made it:
/// distinguishes it from earlier and later ones of its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity(pub(crate) u64);

/// What the system says of a segment.
struct Status {
    owner: u32,
    maker: u32,
    mode: u32,
    bytes: usize,
    identity: Identity,
}

impl Status {
    fn is_private(&self, uid: u32, bytes: usize) -> bool {
        let of_user = self.owner == uid && self.maker == uid;
        of_user && self.mode & 0o777 == 0o600 && self.bytes == bytes
    }
}

fn status(id: i32) -> Option<Status> {
    // SAFETY: zeros are a valid shmid_ds.
    let mut status: libc::shmid_ds = unsafe { std::mem::zeroed() };
    // SAFETY: the system fills a shmid_ds, and there is one.
    let result = unsafe { libc::shmctl(id, libc::IPC_STAT, &raw mut status) };
    (result == 0).then_some(Status {
        owner: status.shm_perm.uid,
        maker: status.shm_perm.cuid,
        mode: status.shm_perm.mode.into(),
        bytes: status.shm_segsz,
        identity: Identity((status.shm_ctime as u64) << 32 | u64::from(status.shm_cpid as u32)),
    })
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Marks a segment for removal: it goes with the last process that has it.
fn remove(id: i32) {
    // SAFETY: nothing is filled for this command.
    unsafe { libc::shmctl(id, libc::IPC_RMID, ptr::null_mut()) };
}

/// Removes segments that processes of this user were killed in the middle of making.
pub(crate) fn remove_abandoned(bytes: usize) {
    let Ok(table) = std::fs::read_to_string("/proc/sysvipc/shm") else {
        return;
    };
    let uid = own_uid();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    for line in table.lines().skip(1) {
        if let Some(id) = abandoned(line, uid, bytes, now) {
            remove(id);
        }
    }
}

/// The number in a line of `/proc/sysvipc/shm`, if it is an abandoned segment of ours:
/// key, number, mode, size, maker, last user, attached, uid, gid, maker's uid and gid, and
/// the times of attaching, detaching and change.
fn abandoned(line: &str, uid: u32, bytes: usize, now: u64) -> Option<i32> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    let key: i64 = fields.first()?.parse().ok()?;
    let ours = key as u32 & 0xffff_0000 == KEY
        && fields.get(2) == Some(&"600")
        && number(3)? == bytes as u64
        && number(7)? == u64::from(uid);
    let unused = number(6)? == 0 && number(13)?.saturating_add(ABANDONED) < now;
    (ours && unused).then(|| fields.get(1)?.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_attached_by_its_number_and_goes_with_its_last_user() {
        let made = SharedMemory::create(8192, 7).expect("the system has memory");
        let seen = SharedMemory::attach(made.id(), 8192, Mode::ReadOnly).expect("it is there");
        assert!(SharedMemory::attach(made.id(), 4096, Mode::ReadOnly).is_err());
        let id = made.id();
        drop((made, seen));
        assert!(SharedMemory::attach(id, 8192, Mode::ReadWrite).is_err());
    }

    #[test]
    fn a_detached_segment_leaves_readable_zeros_and_its_addresses_to_the_next_one() {
        const BYTES: usize = 12288;
        let made = SharedMemory::create(BYTES, 8).expect("the system has memory");
        let (start, id) = (made.start(), made.id());
        // SAFETY: the memory is attached, and this test's alone.
        unsafe { start.write(7) };
        drop(made);
        // SAFETY: zeros are mapped there now.
        assert_eq!(unsafe { start.read_volatile() }, 0);
        assert!(SharedMemory::attach(id, BYTES, Mode::ReadOnly).is_err());
        let next = SharedMemory::create(BYTES, 8).expect("the system has memory");
        assert_eq!(next.start(), start);
    }

    #[test]
    fn a_segment_whose_front_was_moved_leaves_alone_what_is_in_its_place() {
        const FRONT: usize = 1 << 20;
        const REST: usize = 4096;
        // SAFETY: mapped where the system likes.
        let target = unsafe {
            let (rights, flags) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            );
            libc::mmap(ptr::null_mut(), FRONT, rights, flags, -1, 0)
        };
        let moved_and_another = || {
            let mut moved = SharedMemory::create_detachable(FRONT + REST, 9).ok()?;
            // SAFETY: the test's own, of zeros as the segment is.
            unsafe { moved.move_front((FRONT, REST), target.cast()) }.ok()?;
            let id = SharedMemory::make(FRONT, 10).ok()?;
            // SAFETY: refused if another thread has something there already.
            let there = unsafe { libc::shmat(id, moved.start().cast(), 0) };
            remove(id);
            Some((moved, SharedMemory::attached(there, id).ok()?))
        };
        let (moved, another) = (0..100)
            .find_map(|_| moved_and_another())
            .expect("the place is free");
        assert_eq!(another.start(), moved.start());
        let id = moved.id();
        drop(moved);
        assert!(status(another.id()).is_some(), "it is still attached");
        // SAFETY: mapped above; nobody uses it.
        unsafe { libc::munmap(target, FRONT) };
        assert!(status(id).is_none(), "its last part is gone");
    }

    #[test]
    fn only_what_a_killed_process_left_unattached_is_abandoned() {
        let line = |key: u32, attached, uid, time| {
            format!("{key} 5 600 8192 10 10 {attached} {uid} 0 {uid} 0 0 0 {time} 0 0")
        };
        let found = |line: &str| abandoned(line, 1000, 8192, 100);
        assert_eq!(found(&line(KEY | 9, 0, 1000, 50)), Some(5));
        assert_eq!(found(&line(KEY | 9, 1, 1000, 50)), None, "attached");
        assert_eq!(found(&line(KEY | 9, 0, 1001, 50)), None, "another user's");
        assert_eq!(found(&line(KEY | 9, 0, 1000, 95)), None, "just made");
        assert_eq!(found(&line(9, 0, 1000, 50)), None, "another program's");
        assert_eq!(found("nonsense"), None);
    }
}
