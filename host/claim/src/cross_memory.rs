//! Cross-memory attach: bytes straight from or to another process of this node
//! (`process_vm_readv`, `process_vm_writev`), looked at by the kernel, so that memory
//! which isn't there is an error and not a crash.

use std::cell::Cell;
use std::fmt;
use std::io;

use libc::{iovec, pid_t};

use crate::bounce::{is_slow_here, length_before, may_be_slow, with_buffer};
use crate::claim::Claim;
use lintel_memory::{Span, Walk};

/// Bytes in another process, by its own addresses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RemoteSpan {
    /// The address in that process.
    pub address: u64,
    /// Bytes of the other process.
    pub length: u64,
}

impl Span for RemoteSpan {
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
        let offset = offset.min(self.length);
        RemoteSpan {
            address: self.address.wrapping_add(offset),
            length: length.min(self.length - offset),
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
    /// The process doesn't exist or has ended, isn't the one that is meant, or has
    /// recalled what it lent.
    NoProcess,
    /// Memory of one side isn't there, or not for this access.
    Fault {
        /// The bytes moved before it, in order.
        copied: u64,
    },
    /// Any other error of the system: its `errno`.
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

/// What a lender gives to a peer that may copy what it lent: where a page of its
/// [lease](crate::Lease) is, and the number that stands there. A process that knows it can
/// copy as the system allows; it is no secret among processes of one user.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Key {
    /// The page's address in the lender.
    pub address: u64,
    /// The random number that the page holds.
    pub nonce: u64,
}

/// Another process's memory, by that process's number to the system and a key that only
/// the process that is meant can have: a number that the system has given to another
/// process since, or one that has called exec, names no memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteMemory {
    /// The process's number to the system.
    pub process: i32,
    /// What its lender has given.
    pub key: Key,
}

impl RemoteMemory {
    /// Copies from that process into our claims, until either list ends; returns the
    /// bytes copied. Blocks for the copy and for page faults on both sides.
    ///
    /// # Errors
    ///
    /// See [`CrossMemoryError`]; bytes before the failing place are already copied.
    pub fn pull(&self, from: &[RemoteSpan], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        let call = Call::to(Direction::Pull, self);
        call.transfer(to, from, is_slow_here)
    }

    /// As [`pull`](Self::pull), into bytes of our own.
    ///
    /// # Errors
    ///
    /// See [`CrossMemoryError`].
    pub fn pull_into(&self, from: RemoteSpan, to: &mut [u8]) -> Result<u64, CrossMemoryError> {
        // SAFETY: the borrow is exclusive and outlives this call, in which only the kernel writes
        // there.
        let to = unsafe { Claim::new(to.as_mut_ptr(), to.len() as u64) };
        self.pull(&[from], &[to])
    }

    /// Copies from our claims into that process, until either list ends; returns the
    /// bytes copied. Blocks for the copy and for page faults on both sides.
    ///
    /// # Errors
    ///
    /// See [`CrossMemoryError`]; bytes before the failing place are already copied.
    pub fn push(&self, from: &[Claim], to: &[RemoteSpan]) -> Result<u64, CrossMemoryError> {
        let call = Call::to(Direction::Push, self);
        call.transfer(from, to, is_slow_here)
    }

    /// As [`push`](Self::push), of bytes of our own.
    ///
    /// # Errors
    ///
    /// See [`CrossMemoryError`].
    pub fn push_from(&self, from: &[u8], to: RemoteSpan) -> Result<u64, CrossMemoryError> {
        // SAFETY: the borrow outlives this call, in which the kernel only reads there.
        let from = unsafe { Claim::new(from.as_ptr().cast_mut(), from.len() as u64) };
        self.push(&[from], &[to])
    }

    /// Whether the system lets this process copy from that one, and the key is right.
    ///
    /// # Errors
    ///
    /// See [`CrossMemoryError`].
    pub fn probe(&self) -> Result<(), CrossMemoryError> {
        let (nothing, no_span) = (Walk::<Claim>::new(&[]), Walk::<RemoteSpan>::new(&[]));
        let call = Call::to(Direction::Pull, self);
        call.run(&nothing, &no_span, 0).map(|_| ())
    }
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
    Call::in_own_memory().transfer(to, from, is_slow_here)
}

/// As [`copy_checked`], however slow that is.
pub(crate) fn copy_without_bounce(from: &[Claim], to: &[Claim]) -> Result<u64, CrossMemoryError> {
    Call::in_own_memory().transfer(to, from, || false)
}

/// What the kernel takes as one entry of a list.
trait Entry: Span {
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
pub(crate) const BATCH: usize = 16;

/// Bytes named at once. Linux moves at most 2 GiB less one page a call (MAX_RW_COUNT)
/// and refuses entries beyond isize::MAX.
const BATCH_BYTES: u64 = 1 << 30;

/// What calls that move bytes have in common.
#[derive(Clone, Copy)]
struct Call {
    direction: Direction,
    process: pid_t,
    key: Option<Key>,
}

impl Call {
    fn to(direction: Direction, memory: &RemoteMemory) -> Call {
        Call {
            direction,
            process: memory.process,
            key: Some(memory.key),
        }
    }

    fn in_own_memory() -> Call {
        Call {
            direction: Direction::Pull,
            process: std::process::id() as pid_t,
            key: None,
        }
    }

    /// Moves bytes between `local` claims and `remote` pieces until one list ends. A call may
    /// stop early for any reason; asked again from there, the kernel names the reason. What
    /// aliases goes through a bounce buffer if that `is_slow`.
    #[inline]
    fn transfer<R: Entry>(
        self,
        local: &[Claim],
        remote: &[R],
        is_slow: impl Fn() -> bool,
    ) -> Result<u64, CrossMemoryError> {
        match (local, remote) {
            (&[local], &[remote]) if self.moves_at_once(local, remote) => {
                self.transfer_one(local, remote, is_slow)
            }
            _ => self.transfer_lists(local, remote, is_slow),
        }
    }

    /// Whether one call moves all that both pieces have, however slow copies are that alias.
    fn moves_at_once<R: Entry>(self, local: Claim, remote: R) -> bool {
        let length = local.len().min(remote.length());
        let (from, to) = match self.direction {
            Direction::Pull => (remote.address(), local.address()),
            Direction::Push => (local.address(), remote.address()),
        };
        (1..=BATCH_BYTES).contains(&length) && !may_be_slow(length, to.wrapping_sub(from))
    }

    /// As [`transfer`](Self::transfer), one piece on each side, in one call unless that stops early.
    fn transfer_one<R: Entry>(
        self,
        local: Claim,
        remote: R,
        is_slow: impl Fn() -> bool,
    ) -> Result<u64, CrossMemoryError> {
        let length = local.len().min(remote.length());
        let mut here = [NOTHING, entry(local, length)];
        let mut there = [NOTHING, entry(remote, length)];
        match self.call(&mut here, &mut there) {
            Ok(moved) if moved == length => Ok(length),
            _ => self.transfer_lists(&[local], &[remote], is_slow),
        }
    }

    #[inline(never)]
    fn transfer_lists<R: Entry>(
        self,
        local: &[Claim],
        remote: &[R],
        is_slow: impl Fn() -> bool,
    ) -> Result<u64, CrossMemoryError> {
        let (mut local, mut remote) = (Walk::new(local), Walk::new(remote));
        let mut copied = 0;
        while !local.is_done() && !remote.is_done() {
            let before = match self.direction {
                Direction::Pull => length_before(&remote, &local, &is_slow),
                Direction::Push => length_before(&local, &remote, &is_slow),
            };
            let moved = match before {
                0 => self.bounce(local.front(), remote.front()),
                most => self.run(&local, &remote, most),
            };
            match moved {
                Ok(0) | Err(CrossMemoryError::Fault { .. }) => {
                    return Err(CrossMemoryError::Fault { copied });
                }
                Ok(moved) => {
                    copied += moved;
                    local.advance(moved);
                    remote.advance(moved);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(copied)
    }

    /// Moves the first bytes of a claim and a piece through a buffer; returns how many.
    fn bounce<R: Entry>(self, local: Claim, remote: R) -> Result<u64, CrossMemoryError> {
        let length = local.len().min(remote.length());
        // One that ends early has moved what came before.
        let arrived = |copied| match copied {
            Err(CrossMemoryError::Fault { copied }) => Ok(copied),
            copied => copied,
        };
        match self.direction {
            Direction::Pull => with_buffer(remote.address(), length, |buffer| {
                let remote = [remote];
                let moved = self.run(&Walk::new(&[buffer]), &Walk::new(&remote), buffer.len())?;
                arrived(copy_without_bounce(&[buffer.slice(0, moved)], &[local]))
            }),
            Direction::Push => with_buffer(local.address(), length, |buffer| {
                let moved = arrived(copy_without_bounce(&[local], &[buffer]))?;
                self.run(&Walk::new(&[buffer]), &Walk::new(&[remote]), moved)
            }),
        }
    }

    /// One system call, for at most so many bytes; those that it has moved. Neither side names more,
    /// since the kernel looks up all pages that the other process' list names.
    fn run<R: Entry>(
        self,
        local: &Walk<'_, Claim>,
        remote: &Walk<'_, R>,
        most: u64,
    ) -> Result<u64, CrossMemoryError> {
        let most = most.min(BATCH_BYTES);
        let (mut here, mut there) = (Batch::of(local, most), Batch::of(remote, most));
        self.call(here.entries_mut(), there.entries_mut())
    }

    /// One system call for two lists, whose first entries are free for the guard's number; the bytes
    /// of all others that it has moved. Where there is a key, the kernel moves its number first, before
    /// it looks at anything else: in a process without that page it touches nothing.
    fn call(self, here: &mut [iovec], there: &mut [iovec]) -> Result<u64, CrossMemoryError> {
        let Some(key) = self.key else {
            return self.system_call(&here[1..], &there[1..]).map_err(error);
        };
        // Over a number that is right, the same number is written.
        let number = match self.direction {
            Direction::Pull => Cell::new(!key.nonce),
            Direction::Push => Cell::new(key.nonce),
        };
        let page = std::ptr::without_provenance_mut(key.address as usize);
        (here[0], there[0]) = (bytes(number.as_ptr().cast(), GUARD), bytes(page, GUARD));
        match self.system_call(here, there) {
            Ok(moved) if moved >= GUARD && number.get() == key.nonce => Ok(moved - GUARD),
            // The page isn't there, or it isn't the one.
            Ok(_) | Err(libc::EFAULT) => Err(CrossMemoryError::NoProcess),
            Err(code) => Err(error(code)),
        }
    }

    /// The bytes moved; `errno` if it moved nothing.
    fn system_call(self, here: &[iovec], there: &[iovec]) -> Result<u64, i32> {
        let system = match self.direction {
            Direction::Pull => libc::process_vm_readv,
            Direction::Push => libc::process_vm_writev,
        };
        let (local, local_count) = (here.as_ptr(), here.len() as libc::c_ulong);
        let (remote, remote_count) = (there.as_ptr(), there.len() as libc::c_ulong);
        // SAFETY: both lists live through the call and have as many entries as said. What
        // they name here is claimed for this use (Claim::new) or a number of the caller's
        // that lives through the call; the kernel checks every page on both sides before it
        // touches it.
        let moved = unsafe { system(self.process, local, local_count, remote, remote_count, 0) };
        u64::try_from(moved).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(0))
    }
}

/// Bytes of a key's number.
const GUARD: u64 = 8;

/// An entry that names nothing.
const NOTHING: iovec = iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

fn bytes(start: *mut libc::c_void, length: u64) -> iovec {
    iovec {
        iov_base: start,
        iov_len: length as usize,
    }
}

/// The first bytes of a piece.
fn entry<P: Entry>(piece: P, length: u64) -> iovec {
    bytes(piece.start(), length)
}

/// Entries of a call, the first of which is the guard's.
struct Batch {
    entries: [iovec; BATCH],
    count: usize,
}

impl Batch {
    /// The next pieces of a walk, cut at [`BATCH`] entries and so many bytes.
    fn of<P: Entry>(walk: &Walk<'_, P>, most: u64) -> Batch {
        let mut batch = Batch {
            entries: [NOTHING; BATCH],
            count: 1,
        };
        let mut room = most;
        for piece in walk.pieces() {
            let length = piece.length().min(room);
            batch.entries[batch.count] = entry(piece, length);
            batch.count += 1;
            room -= length;
            if room == 0 || batch.count == BATCH {
                break;
            }
        }
        batch
    }

    fn entries_mut(&mut self) -> &mut [iovec] {
        &mut self.entries[..self.count]
    }
}

fn error(code: i32) -> CrossMemoryError {
    match code {
        libc::EPERM | libc::EACCES => CrossMemoryError::Denied,
        libc::ESRCH => CrossMemoryError::NoProcess,
        libc::EFAULT => CrossMemoryError::Fault { copied: 0 },
        _ => CrossMemoryError::System(code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lease, Region};
    use std::sync::mpsc::{Sender, channel};

    const LENGTH: usize = 200_000;

    /// Bytes in memory of their own, from that offset of a page on.
    fn lying_at(offset: u64, bytes: &[u8]) -> (Region, Claim) {
        let region = Region::new(offset + bytes.len() as u64);
        region.write(offset, bytes);
        let claim = region.claim().slice(offset, bytes.len() as u64);
        (region, claim)
    }

    /// Three pieces of a claim.
    fn pieces(claim: Claim) -> Vec<Claim> {
        let (first, second) = (50_000, 90_000);
        let rest = claim.len() - first - second;
        vec![
            claim.slice(0, first),
            claim.slice(first, second),
            claim.slice(first + second, rest),
        ]
    }

    #[test]
    fn what_goes_through_a_buffer_arrives_as_it_would_without() {
        let bytes: Vec<u8> = (0..LENGTH).map(|at| (at * 13 + at / 255) as u8).collect();
        let lease = Lease::new();
        let key = lease.key().expect("the system has a page");
        let memory = RemoteMemory {
            process: std::process::id() as i32,
            key,
        };
        for (direction, (from, to)) in [Direction::Pull, Direction::Push]
            .into_iter()
            .flat_map(|direction| [(0, 8), (8, 0), (4090, 3)].map(|ends| (direction, ends)))
        {
            let (_kept, source) = lying_at(from, &bytes);
            let (sink, target) = lying_at(to, &vec![0; LENGTH]);
            let spans: Vec<RemoteSpan> = match direction {
                Direction::Pull => vec![source.into()],
                Direction::Push => pieces(target).into_iter().map(RemoteSpan::from).collect(),
            };
            let call = Call::to(direction, &memory);
            let copied = match direction {
                Direction::Pull => call.transfer(&pieces(target), &spans, || true),
                Direction::Push => call.transfer(&[source], &spans, || true),
            };
            assert_eq!(copied, Ok(LENGTH as u64));
            let mut arrived = vec![0; LENGTH];
            sink.read(to, &mut arrived);
            assert!(arrived == bytes, "from {from} to {to}");
        }
    }

    #[test]
    fn pieces_take_one_call_up_to_one_that_aliases() {
        let (_kept, source) = lying_at(0, &[1; LENGTH]);
        let (_sink, apart) = lying_at(0, &[0; 50_000]);
        let (_other, aliased) = lying_at(8 + 50_000 % 4096, &[0; 90_000]);
        let to = [apart, aliased];
        let before =
            |is_slow| length_before(&Walk::new(&[source]), &Walk::new(&to), move || is_slow);
        assert_eq!(before(true), 50_000);
        assert_eq!(before(false), 140_000);
    }

    #[test]
    fn a_fault_behind_a_buffer_says_how_much_was_moved() {
        let (_kept, source) = lying_at(0, &[7; LENGTH]);
        let sink = Region::new(LENGTH as u64);
        let close = sink.claim().address() + 128 * 1024;
        let close = std::ptr::with_exposed_provenance_mut(close as usize);
        // SAFETY: pages of the region, of which only checked copies are made.
        assert_eq!(0, unsafe { libc::mprotect(close, 4096, libc::PROT_NONE) });
        let to = sink.claim().slice(8, u64::MAX);
        let copied = Call::in_own_memory().transfer(&[to], &[source], || true);
        let Err(CrossMemoryError::Fault { copied }) = copied else {
            panic!("a page that is closed isn't written to: {copied:?}");
        };
        assert!(copied > 120_000 && copied <= 128 * 1024 - 8, "{copied}");
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: as above.
        assert_eq!(0, unsafe { libc::mprotect(close, 4096, access) });
        let mut first = [0];
        sink.read(8, &mut first);
        assert_eq!(first, [7]);
    }

    /// Copies what aliases when it is dropped.
    struct CopiesLate(Cell<Option<Sender<Result<u64, CrossMemoryError>>>>);

    impl Drop for CopiesLate {
        fn drop(&mut self) {
            let (_kept, source) = lying_at(0, &[1; LENGTH]);
            let (_sink, target) = lying_at(8, &[0; LENGTH]);
            let copied = Call::in_own_memory().transfer(&[target], &[source], || true);
            if let Some(to) = self.0.take() {
                let _ = to.send(copied);
            }
        }
    }

    #[test]
    fn a_thread_that_ends_can_still_copy_through_a_buffer() {
        thread_local! {
            static LATE: CopiesLate = const { CopiesLate(Cell::new(None)) };
        }
        let (to, copied) = channel();
        let ends = std::thread::spawn(move || {
            // First, so that it is dropped behind the thread's buffer.
            LATE.with(|late| late.0.set(Some(to)));
            crate::bounce::with_buffer(0, 1, |_| ());
        });
        assert!(ends.join().is_ok());
        assert_eq!(copied.recv(), Ok(Ok(LENGTH as u64)));
    }
}
