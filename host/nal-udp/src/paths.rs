//! Congestion state of paths, shared by the processes of a node in a file in shared memory:
//! `/dev/shm/lintel-<job>-<nid>-paths`.
//!
//! ```text
//!   slot 0          slot 1                                    512 slots, one a remote node
//!   ┌──────┬────────┬──────┬─ ─
//!   │ path │ users  │ path │      path: node, window, threshold, round-trip time and
//!   └──────┴────────┴──────┴─ ─   variation, when heard   users: when each was here, 64
//! ```
//!
//! The file is read and written, not mapped: a few thousand accesses a second need no
//! speed, and no `unsafe`. A torn or overwritten slot is a guess as good as the one before,
//! and endpoints keep guesses within limits. Each process holds a shared lock; the last one
//! removes the file. A file of another user isn't used, and one that another process keeps
//! locked isn't waited for.

use lintel_private_file::{allow_size, open_or_create};
use lintel_reliable::{Nanos, Path, Paths, Time};
use nix::fcntl::{Flock, FlockArg};
use rustc_hash::FxHashMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::time::Duration;

const DIRECTORY: &str = "/dev/shm";
/// Remote nodes that have a slot; the state of paths to others isn't shared.
const SLOTS: u64 = 512;
/// Words of a slot's path: the node, then the numbers that `load` reads.
const PATH_WORDS: usize = 8;
/// Processes of a node that are counted apart as users.
const USERS: usize = 64;
const SLOT_WORDS: usize = PATH_WORDS + USERS;
const SLOT_BYTES: u64 = SLOT_WORDS as u64 * 8;
/// A process that hasn't loaded a path for this long doesn't count as its user.
const USED: Nanos = Nanos::from_millis(100);
/// Tries to open the file, which may vanish before it is locked or be locked by a process
/// that is closing, and the pause between two.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// The file of a job's processes on a node.
pub(crate) struct PathFile {
    file: Option<Flock<File>>,
    path: PathBuf,
    /// The index of this process among the users.
    user: usize,
    /// Slots by node; `None` if there was none left.
    slots: FxHashMap<u32, Option<u64>>,
}

impl PathFile {
    /// Opens the file, or makes it; takes a tenth of a second at most.
    ///
    /// # Errors
    /// What is wrong with the file of that name, which the error names.
    pub(crate) fn open(job: &str, nid: u32, pid: u32) -> io::Result<PathFile> {
        let path = PathBuf::from(DIRECTORY).join(format!("lintel-{job}-{nid:x}-paths"));
        let file = allow_size(SLOTS * SLOT_BYTES).and_then(|()| lock_named(&path));
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        Ok(PathFile {
            file: Some(file.map_err(named)?),
            path,
            user: pid as usize % USERS,
            slots: FxHashMap::default(),
        })
    }

    fn read(&self, slot: u64) -> Option<[u64; SLOT_WORDS]> {
        let mut bytes = [0; SLOT_BYTES as usize];
        let file = self.file.as_ref()?;
        let count = file.read_at(&mut bytes, slot * SLOT_BYTES).ok()?;
        // Behind the end of the file everything is zero.
        bytes[count..].fill(0);
        let mut words = [0; SLOT_WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(bytes.try_into().expect("a chunk has eight bytes"));
        }
        Some(words)
    }

    /// Writes words of a slot; if that fails, they aren't shared.
    fn write(&self, slot: u64, first: usize, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        if let Some(file) = &self.file {
            let _ = file.write_all_at(&bytes, slot * SLOT_BYTES + first as u64 * 8);
        }
    }

    /// The slot of a node; the first free one if it has none.
    fn slot(&mut self, node: u32) -> Option<u64> {
        if let Some(slot) = self.slots.get(&node) {
            return *slot;
        }
        let slot = self.find(node);
        self.slots.insert(node, slot);
        slot
    }

    fn find(&self, node: u32) -> Option<u64> {
        let wanted = u64::from(node);
        for step in 0..SLOTS {
            let slot = (wanted + step) % SLOTS;
            if self.read(slot)?[0] == 0 {
                self.write(slot, 0, &[wanted]);
            }
            // Another process may have been quicker.
            if self.read(slot)?[0] == wanted {
                return Some(slot);
            }
        }
        None
    }
}

impl Paths for PathFile {
    fn load(&mut self, node: u32, now: Time) -> Option<Path> {
        let slot = self.slot(node)?;
        self.write(slot, PATH_WORDS + self.user, &[now.0]);
        let words = self.read(slot)?;
        let (path, users) = words.split_at(PATH_WORDS);
        let here = |seen: &&u64| **seen != 0 && now.since(Time(**seen)) < USED;
        Some(Path {
            window: path[1],
            ssthresh: path[2],
            srtt: Nanos(path[3]),
            rttvar: Nanos(path[4]),
            last_heard: Time(path[5]),
            users: users.iter().filter(here).count() as u32,
        })
    }

    fn store(&mut self, node: u32, path: &Path) {
        if let Some(slot) = self.slot(node) {
            let words = [
                path.window,
                path.ssthresh,
                path.srtt.0,
                path.rttvar.0,
                path.last_heard.0,
            ];
            self.write(slot, 1, &words);
        }
    }
}

/// Opens or makes the file of that name, and shares its lock.
fn lock_named(path: &std::path::Path) -> io::Result<Flock<File>> {
    for _ in 0..TRIES {
        match Flock::lock(open_or_create(path)?, FlockArg::LockSharedNonblock) {
            Ok(file) => {
                let opened = file.metadata()?.ino();
                // The last process may have removed it meanwhile.
                if std::fs::symlink_metadata(path).is_ok_and(|named| named.ino() == opened) {
                    return Ok(file);
                }
            }
            Err((_, nix::errno::Errno::EWOULDBLOCK)) => std::thread::sleep(PAUSE),
            Err((_, error)) => return Err(error.into()),
        }
    }
    Err(io::Error::new(
        io::ErrorKind::WouldBlock,
        "another process keeps it locked: end that process, or remove the file",
    ))
}

impl Drop for PathFile {
    /// Removes the file if the lock can be had exclusively: this process is the last.
    fn drop(&mut self) {
        let Some(shared) = self.file.take() else {
            return;
        };
        if shared.relock(FlockArg::LockExclusiveNonblock).is_ok() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_stores_another_loads_and_the_last_removes_the_file() {
        let job = format!("paths-{}", std::process::id());
        let open = |pid| PathFile::open(&job, 7, pid).expect("/dev/shm can be written to");
        let (mut one, mut other) = (open(1), open(2));
        let now = Time(1_000_000_000);
        let first = one.load(9, now).expect("there is a slot");
        assert_eq!((first.window, first.users), (0, 1));
        let path = Path {
            window: 5,
            ssthresh: 6,
            srtt: Nanos(7),
            rttvar: Nanos(8),
            last_heard: now,
            users: 0,
        };
        one.store(9, &path);
        let seen = other.load(9, now).expect("there is a slot");
        assert_eq!(seen, Path { users: 2, ..path });
        let later = now.after(USED);
        assert_eq!(other.load(9, later).map(|path| path.users), Some(1));
        assert_eq!(
            other.load(9 + SLOTS as u32, now).map(|path| path.window),
            Some(0)
        );
        let file = one.path.clone();
        drop(one);
        assert!(file.exists(), "another one still uses it");
        drop(other);
        assert!(!file.exists());
    }

    /// A name that no job has, and the file of it.
    fn job(what: &str) -> (String, PathBuf) {
        let job = format!("paths-{what}-{}", std::process::id());
        let path = PathBuf::from(DIRECTORY).join(format!("lintel-{job}-7-paths"));
        (job, path)
    }

    fn refusal(job: &str) -> String {
        let refused = PathFile::open(job, 7, 1).map(|_| ());
        refused.expect_err("it can't be used").to_string()
    }

    #[test]
    fn a_fifo_of_its_name_is_refused_at_once() {
        let (job, path) = job("fifo");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRUSR).expect("a FIFO can be made");
        let words = refusal(&job);
        std::fs::remove_file(&path).expect("it can be removed");
        assert!(words.contains("regular"), "{words}");
        assert!(words.contains(&*path.to_string_lossy()), "{words}");
    }

    #[test]
    fn a_file_that_another_process_keeps_locked_is_not_waited_for() {
        let (job, path) = job("locked");
        let file = open_or_create(&path).expect("/dev/shm can be written to");
        let lock = Flock::lock(file, FlockArg::LockExclusive).expect("no other process has it");
        let words = refusal(&job);
        assert!(words.contains("locked"), "{words}");
        drop(lock);
        drop(PathFile::open(&job, 7, 1).expect("it is free now"));
        assert!(!path.exists(), "the last one has removed it");
    }

    #[test]
    fn a_file_of_another_user_is_refused_by_root_too() {
        let (job, path) = job("foreign");
        drop(open_or_create(&path).expect("/dev/shm can be written to"));
        let given = std::os::unix::fs::chown(&path, Some(65534), None);
        let refused = given.is_ok().then(|| refusal(&job));
        std::fs::remove_file(&path).expect("it can be removed");
        match refused {
            Some(words) => assert!(words.contains("65534"), "{words}"),
            None => eprintln!("SKIPPED, nothing was tested: only root gives files away"),
        }
    }

    #[test]
    fn a_file_that_others_can_write_is_refused() {
        let (job, path) = job("exposed");
        std::fs::write(&path, []).expect("/dev/shm can be written to");
        let exposed = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(&path, exposed).expect("it is ours");
        let words = refusal(&job);
        std::fs::remove_file(&path).expect("it can be removed");
        assert!(words.contains("0600"), "{words}");
    }
}
