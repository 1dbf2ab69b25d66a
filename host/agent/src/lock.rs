//! One agent for a job's node: a locked file says that it lives.

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

/// Held for as long as the agent lives; the system lets it go, however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock beside the door; nothing where another agent has it.
    pub(crate) fn take(door: &std::path::Path) -> io::Result<Option<Lock>> {
        let path = door.with_extension("agent-lock");
        loop {
            let file = OpenOptions::new()
                .create(true)
                .truncate(false)
                .write(true)
                .mode(0o600)
                .open(&path)?;
            if !lock(&file)? {
                return Ok(None);
            }
            // An agent that just ended may have removed the file that is locked now.
            let named = std::fs::metadata(&path).map(|named| named.ino()).ok();
            if named == Some(file.metadata()?.ino()) {
                return Ok(Some(Lock { file, path }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Before the lock goes, so that nobody takes one that is about to vanish
        // without noticing.
        let _ = std::fs::remove_file(&self.path);
        let _ = &self.file;
    }
}

/// A lock of the open file: it isn't lost by opening and closing the file once more.
fn lock(file: &File) -> io::Result<bool> {
    let whole = libc::flock {
        l_type: libc::F_WRLCK as i16,
        l_whence: libc::SEEK_SET as i16,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    match fcntl(file, FcntlArg::F_OFD_SETLK(&whole)) {
        Ok(_) => Ok(true),
        Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EACCES) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
