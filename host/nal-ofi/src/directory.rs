//! How a process finds another's address.
//!
//! If a provider's addresses are sockets, a process's name is its address. If they
//! aren't, each process leaves its own in a file of the node, which it keeps locked
//! until it ends (host/private-file says which files are trusted):
//!
//! ```text
//!   /dev/shm/lintel-<job>-<nid>-<pid>.ofi     magic | length | address
//! ```

use crate::error::OpenError;
use lintel_private_file::{self as private_file, Refusal};
use lintel_types::ProcessId;
use rustix::fs::{AtFlags, CWD, FlockOperation};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

const FOLDER: &str = "/dev/shm";
/// The form of these files, and its version.
const MAGIC: &[u8; 8] = b"lintofi1";
/// The longest address that any provider has is far shorter.
const MAX_BYTES: usize = 512;
/// Files of a job that a starting process scans, to remove those of dead processes.
const MAX_SCANNED: usize = 64;
/// Process identifiers that are given out if any will do.
const ANY: std::ops::RangeInclusive<u32> = 1024..=0xfffe;

/// How addresses are found.
pub(crate) enum Directory {
    /// The processes' names are their addresses.
    Sockets,
    /// In files of this machine.
    Files {
        /// The job, which names the files.
        job: String,
        /// The node, of which every process has one.
        nid: u32,
        /// This process's own, until it closes.
        own: Option<Entry>,
    },
}

/// A process's own file; removed when this is dropped.
pub(crate) struct Entry {
    path: PathBuf,
    /// Open as long as the lock is held.
    _file: File,
}

impl Directory {
    /// Leaves an address for others, under the name of a process of node `nid`, any
    /// that is free if none is asked for. Returns the pid.
    pub(crate) fn enter(
        job: &str,
        nid: u32,
        pid: Option<u32>,
        address: &[u8],
    ) -> Result<(Directory, u32), OpenError> {
        let file = write(address)?;
        let pids = pid.map_or(ANY, |pid| pid..=pid);
        for pid in pids {
            let path = path(job, ProcessId::new(nid, pid));
            if take_name(&file, &path)? {
                let own = Some(Entry { path, _file: file });
                let job = job.to_owned();
                remove_stale_files(&job);
                return Ok((Directory::Files { job, nid, own }, pid));
            }
        }
        Err(pid.map_or(OpenError::NoneFree, OpenError::InUse))
    }

    /// The address of a process; `None` if no process has left one under that name.
    pub(crate) fn find(&self, process: ProcessId) -> Option<Vec<u8>> {
        match self {
            Directory::Sockets => socket_address(process),
            Directory::Files { job, .. } => {
                let file = private_file::open(&path(job, process)).ok()?;
                if !is_locked(&file) {
                    return None;
                }
                let mut bytes = Vec::new();
                (&file)
                    .take(MAX_BYTES as u64 + 16)
                    .read_to_end(&mut bytes)
                    .ok()?;
                let length = bytes.strip_prefix(MAGIC)?.first_chunk()?;
                let address = &bytes[MAGIC.len() + 8..];
                (address.len() as u64 == u64::from_le_bytes(*length)).then(|| address.to_vec())
            }
        }
    }

    /// Whether that process has certainly ended. Removes what a killed one has left.
    pub(crate) fn has_ended(&self, process: ProcessId) -> bool {
        let Directory::Files { job, nid, .. } = self else {
            return false;
        };
        let path = path(job, process);
        match private_file::open(&path) {
            Ok(file) if is_locked(&file) => false,
            Ok(_) => {
                let _ = std::fs::remove_file(path);
                true
            }
            Err(refusal) => process.nid == *nid && matches!(refusal, Refusal::Missing),
        }
    }

    /// Withdraws this process's address.
    pub(crate) fn leave(&mut self) {
        if let Directory::Files { own, .. } = self {
            *own = None;
        }
    }

    /// Why a process that isn't found may nevertheless be there.
    pub(crate) fn limits(&self) -> &'static str {
        match self {
            Directory::Sockets => "it is no address",
            Directory::Files { .. } => {
                "no process of this machine has left an address under that name; processes of \
                 other nodes can be asked for theirs where nids are addresses of this machine's \
                 interfaces (PTL_IFACE)"
            }
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A file without a name, so that nothing stays behind if this process ends now.
fn write(address: &[u8]) -> Result<File, OpenError> {
    let mut file = private_file::create_unnamed(Path::new(FOLDER)).map_err(io::Error::from)?;
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    private_file::allow_size((MAGIC.len() + 8 + address.len()) as u64)?;
    file.write_all(MAGIC)?;
    file.write_all(&(address.len() as u64).to_le_bytes())?;
    file.write_all(address)?;
    Ok(file)
}

/// Gives a file its name; false if another live process has it.
fn take_name(file: &File, path: &Path) -> Result<bool, OpenError> {
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    // Once more after a dead process's file was removed.
    for _ in 0..2 {
        match rustix::fs::linkat(CWD, unnamed.as_str(), CWD, path, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        match private_file::open(path) {
            Ok(other) if is_locked(&other) => return Ok(false),
            // Its owner has been killed.
            Ok(_) => drop(std::fs::remove_file(path)),
            Err(_) => {}
        }
    }
    Ok(false)
}

/// Removes what killed processes of a job have left, as far as it is soon found.
fn remove_stale_files(job: &str) {
    let Ok(folder) = std::fs::read_dir(FOLDER) else {
        return;
    };
    let prefix = format!("lintel-{job}-");
    let of_job = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(&prefix) && name.ends_with(".ofi"))
    };
    let entries = folder.flatten().map(|entry| entry.path()).filter(of_job);
    for path in entries.take(MAX_SCANNED) {
        if private_file::open(&path).is_ok_and(|file| !is_locked(&file)) {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Whether another process keeps the lock.
fn is_locked(file: &File) -> bool {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

fn path(job: &str, process: ProcessId) -> PathBuf {
    let name = format!("lintel-{job}-{:08x}-{}.ofi", process.nid, process.pid);
    Path::new(FOLDER).join(name)
}

/// `struct sockaddr_in`: family in this machine's order, port and address in the
/// network's.
fn socket_address(process: ProcessId) -> Option<Vec<u8>> {
    const FAMILY: u16 = 2;
    let port = u16::try_from(process.pid).ok().filter(|port| *port != 0)?;
    let mut bytes = Vec::with_capacity(16);
    bytes.extend(FAMILY.to_ne_bytes());
    bytes.extend(port.to_be_bytes());
    bytes.extend(Ipv4Addr::from(process.nid).octets());
    bytes.resize(16, 0);
    Some(bytes)
}

/// The port in an address of that form.
pub(crate) fn port_of(address: &[u8]) -> Option<u16> {
    let port = address.get(2..4)?.first_chunk()?;
    Some(u16::from_be_bytes(*port))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NID: u32 = 0x7f00_0001;

    fn job(name: &str) -> String {
        format!("directory-{name}-{}", std::process::id())
    }

    #[test]
    fn an_address_is_found_until_its_owner_ends() {
        let job = job("found");
        let (mine, _) = Directory::enter(&job, NID, None, b"mine").expect("a name is free");
        let (theirs, pid) = Directory::enter(&job, NID, None, b"theirs").expect("another too");
        let process = ProcessId::new(NID, pid);
        assert_eq!(mine.find(process).as_deref(), Some(&b"theirs"[..]));
        assert!(!mine.has_ended(process));
        drop(theirs);
        assert_eq!(mine.find(process), None);
        assert!(mine.has_ended(process));
    }

    #[test]
    fn a_name_is_given_once_and_again_when_its_owner_was_killed() {
        let job = job("names");
        let enter = || Directory::enter(&job, NID, Some(5), b"address");
        let (first, pid) = enter().expect("it is free");
        assert_eq!(pid, 5);
        assert!(matches!(enter(), Err(OpenError::InUse(5))));
        // A killed process leaves a file that isn't locked.
        let path = path(&job, ProcessId::new(NID, 5));
        drop(first);
        let mut left = private_file::open_or_create(&path).expect("the name is free");
        left.write_all(MAGIC).expect("there is room");
        drop(left);
        let second = enter();
        assert!(second.is_ok());
    }

    #[test]
    fn a_link_is_no_address_and_keeps_its_name() {
        let job = job("links");
        let (directory, _) = Directory::enter(&job, NID, None, b"mine").expect("a name is free");
        let process = ProcessId::new(NID, 5);
        let link = path(&job, process);
        std::os::unix::fs::symlink("/nowhere", &link).expect("it can be made");
        assert_eq!(directory.find(process), None);
        assert!(!directory.has_ended(process));
        let entered = Directory::enter(&job, NID, Some(5), b"address");
        assert!(matches!(entered, Err(OpenError::InUse(5))));
        std::fs::remove_file(&link).expect("it is left");
    }

    #[test]
    fn a_socket_is_a_name() {
        let directory = Directory::Sockets;
        let address = directory
            .find(ProcessId::new(NID, 0x1234))
            .expect("it is a port");
        assert_eq!(address[2..8], [0x12, 0x34, 127, 0, 0, 1]);
        assert_eq!(port_of(&address), Some(0x1234));
        assert_eq!(directory.find(ProcessId::new(NID, 0x1_0000)), None);
    }
}
