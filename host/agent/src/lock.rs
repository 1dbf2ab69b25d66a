//! One agent for a job's node: a locked file shows that it is alive.

use lintel_private_file::{Refusal, check, open_or_create};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Held as long as the agent lives; the system releases it, however the agent ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// The path of the lock file of the agent that listens on this socket.
    pub(crate) fn path(socket: &Path) -> PathBuf {
        socket.with_extension("agent-lock")
    }

    /// Takes the lock; `None` if another agent holds it. Never blocks.
    ///
    /// # Errors
    /// The file isn't private to this user, or a system call failed.
    pub(crate) fn take(path: PathBuf) -> Result<Option<Lock>, Refusal> {
        loop {
            let file = open_or_create(&path)?;
            if !lock(&file).map_err(Refusal::System)? {
                return Ok(None);
            }
            // An agent that just ended may have removed the file that is locked now.
            let named = std::fs::symlink_metadata(&path).map(|named| named.ino());
            if named.ok() == Some(check(&file)?.st_ino) {
                return Ok(Some(Lock { file, path }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Before the lock is released, so that no other agent locks a file that is about to
        // be removed.
        let _ = std::fs::remove_file(&self.path);
        let _ = &self.file;
    }
}

/// Locks the open file: opening and closing the file once more doesn't lose the lock.
fn lock(file: &File) -> io::Result<bool> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// A folder of the test's own, and a lock in it.
    fn place(name: &str) -> (PathBuf, PathBuf) {
        let folder = format!("lintel-lock-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let lock = Lock::path(&folder.join("socket"));
        (folder, lock)
    }

    #[test]
    fn one_holds_the_lock_and_leaves_nothing() {
        let (folder, path) = place("one");
        let held = Lock::take(path.clone()).expect("it can be made");
        assert!(held.is_some());
        assert!(matches!(Lock::take(path.clone()), Ok(None)));
        drop(held);
        // An empty folder can be removed.
        std::fs::remove_dir(folder).expect("nothing is left");
    }

    #[test]
    fn a_planted_link_is_refused_and_nothing_is_made_behind_it() {
        let (folder, path) = place("link");
        let victim = folder.join("victim");
        symlink(&victim, &path).expect("a link can be made");
        assert!(matches!(Lock::take(path.clone()), Err(Refusal::Link)));
        assert!(!victim.exists());
        std::fs::remove_dir_all(folder).expect("it is there");
    }
}
