//! Cross-memory attach: bytes straight from or to another process of this node
//! (`process_vm_readv`, `process_vm_writev`), looked at by the kernel, so that memory
//! which isn't there is an error and not a crash.

use std::fmt;
use std::io;

use libc::{iovec, pid_t};

use crate::claim::Claim;
use crate::walk::{Piece, Walk};

/// Bytes in another process, by its own addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RemoteSpan {
    /// The address in that process.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

impl lintel_memory::Span for RemoteSpan {
    fn empty() -> Self {
        RemoteSpan::default()
    }
    fn address(self) -> u64 {
        self.address
    }
    fn length(self) -> u64 {
        self.length
    }
    fn narrow(self, offset: u64, length: u64) -> Self {
        let rest = self.skip(offset);
        RemoteSpan {
            length: length.min(rest.length),
            ..rest
        }
    }
}

impl From<Claim> for RemoteSpan {
    /// As others name the bytes of this process.
    fn from(claim: Claim) -> Self {
        RemoteSpan {
            address: claim.address(),
            length: claim.len(),
        }
    }
}

/// Why bytes did not cross.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrossMemoryError {
    /// The system forbids it (other user, container, non-dumpable process): copy
    /// through shared memory instead.
    Denied,
    /// There is no such process, or not any more.
    NoProcess,
    /// Memory of one side isn't there, or not for this access.
    Fault {
        /// The bytes moved before it, in order.
        copied: u64,
    },
    /// Any other `errno`.
    System(i32),
}

impl fmt::Display for CrossMemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CrossMemoryError::Denied => f.write_str("the system denies cross-memory attach"),
            CrossMemoryError::NoProcess => f.write_str("no such process"),
            CrossMemoryError::Fault { copied } => write!(f, "bad memory after {copied} bytes"),
            CrossMemoryError::System(code) => io::Error::from_raw_os_error(*code).fmt(f),
        }
    }
}

impl std::error::Error for CrossMemoryError {}

/// Copies from another process into our claims, until either list ends; returns the
/// bytes copied. Blocks for the copy and for page faults on both sides.
///
/// # Errors
///
/// See [`CrossMemoryError`]; bytes before the failing place are already copied.
pub fn pull(process: i32, from: &[RemoteSpan], to: &[Claim]) -> Result<u64, CrossMemoryError> {
    transfer(Direction::Pull, process, to, from)
}

/// Copies from our claims into another process, until either list ends; returns the
/// bytes copied. Blocks for the copy and for page faults on both sides.
///
/// # Errors
///
/// See [`CrossMemoryError`]; bytes before the failing place are already copied.
pub fn push(process: i32, from: &[Claim], to: &[RemoteSpan]) -> Result<u64, CrossMemoryError> {
    transfer(Direction::Push, process, from, to)
}

/// Copies between claims of this process that may name memory which isn't there (an
/// MD over the whole address space, Portals 4.3, PtlMDBind): such memory gives
/// [`CrossMemoryError::Fault`]. Costs a system call. Overlapping ranges give bytes in
/// no defined order.
///
/// # Errors
///
/// See [`CrossMemoryError`].
pub fn copy_checked(from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
    // SAFETY: getpid has no preconditions.
    let own = unsafe { libc::getpid() };
    transfer(Direction::Pull, own, to, from)
}

impl Piece for RemoteSpan {
    const EMPTY: RemoteSpan = RemoteSpan {
        address: 0,
        length: 0,
    };

    fn len(self) -> u64 {
        self.length
    }

    fn skip(self, count: u64) -> RemoteSpan {
        let count = count.min(self.length);
        RemoteSpan {
            address: self.address.wrapping_add(count),
            length: self.length - count,
        }
    }
}

/// What the kernel takes as one entry of a list.
trait Entry: Piece {
    fn start(self) -> *mut libc::c_void;
}

impl Entry for Claim {
    fn start(self) -> *mut libc::c_void {
        Claim::start(self).cast()
    }
}

impl Entry for RemoteSpan {
    fn start(self) -> *mut libc::c_void {
        // An address of another process: a number to us, no pointer of ours.
        std::ptr::without_provenance_mut(self.address as usize)
    }
}

#[derive(Clone, Copy)]
enum Direction {
    Pull,
    Push,
}

/// Entries handed to the kernel at once; it takes up to IOV_MAX = 1024, but an array
/// this small stays on the stack and costs nothing beside the call.
const BATCH: usize = 64;

/// Bytes named at once. Linux moves at most 2 GiB less one page a call (MAX_RW_COUNT)
/// and refuses entries beyond isize::MAX.
const BATCH_BYTES: u64 = 1 << 30;

/// Moves bytes between `local` claims and the `remote` pieces of `process` until one
/// list ends. A call may stop early for any reason; asked again from there, the kernel
/// names the reason.
fn transfer<R: Entry>(
    direction: Direction,
    process: i32,
    local: &[Claim],
    remote: &[R],
) -> Result<u64, CrossMemoryError> {
    let (mut local, mut remote) = (Walk::new(local), Walk::new(remote));
    let mut copied = 0;
    while !local.is_done() && !remote.is_done() {
        let (here, there) = (Batch::of(&local), Batch::of(&remote));
        let moved = match call(direction, process, &here, &there) {
            Ok(0) => return Err(CrossMemoryError::Fault { copied }),
            Ok(moved) => moved,
            Err(code) => return Err(error(code, copied)),
        };
        copied += moved;
        local.advance(moved);
        remote.advance(moved);
    }
    Ok(copied)
}

struct Batch {
    entries: [iovec; BATCH],
    count: usize,
}

impl Batch {
    /// The next pieces of a walk, cut at [`BATCH`] entries and [`BATCH_BYTES`]. The
    /// two sides of a call need not be equal: the kernel stops at the shorter one.
    fn of<P: Entry>(walk: &Walk<'_, P>) -> Batch {
        let nothing = iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        let mut batch = Batch {
            entries: [nothing; BATCH],
            count: 0,
        };
        let mut room = BATCH_BYTES;
        for (entry, piece) in batch.entries.iter_mut().zip(walk.pieces()) {
            let length = piece.len().min(room);
            *entry = iovec {
                iov_base: piece.start(),
                iov_len: length as usize,
            };
            batch.count += 1;
            room -= length;
            if room == 0 {
                break;
            }
        }
        batch
    }
}

/// One system call; `errno` if it moved nothing.
fn call(direction: Direction, process: pid_t, here: &Batch, there: &Batch) -> Result<u64, i32> {
    let system = match direction {
        Direction::Pull => libc::process_vm_readv,
        Direction::Push => libc::process_vm_writev,
    };
    let (local, local_count) = (here.entries.as_ptr(), here.count as libc::c_ulong);
    let (remote, remote_count) = (there.entries.as_ptr(), there.count as libc::c_ulong);
    // SAFETY: both lists live through the call and have as many entries as said. What
    // they name here is claimed for this use (Claim::new); the kernel checks every
    // page on both sides before it touches it.
    let moved = unsafe { system(process, local, local_count, remote, remote_count, 0) };
    u64::try_from(moved).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

fn error(code: i32, copied: u64) -> CrossMemoryError {
    match code {
        libc::EPERM | libc::EACCES => CrossMemoryError::Denied,
        libc::ESRCH => CrossMemoryError::NoProcess,
        libc::EFAULT => CrossMemoryError::Fault { copied },
        _ => CrossMemoryError::System(code),
    }
}
