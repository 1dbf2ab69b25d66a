//! [`Region`]: zeroed, page-aligned memory of our own that may be claimed.

use std::fmt;
use std::io;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::claim::Claim;

/// Owned memory, zeroed and page-aligned, whose claim may be handed to anybody.
///
/// A [`Claim`] is plain data and can outlive everything, so a region's pages are never
/// given back to the system's address space: when the last clone goes, their contents
/// are dropped and the addresses wait for the next region of the same class. A claim
/// kept too long is therefore a mistake (it sees zeros, or another region's bytes) but
/// never touches memory that is not a region's. Keep a clone for as long as the bytes
/// are claimed.
#[derive(Clone)]
pub struct Region {
    span: Arc<Span>,
    /// Bytes asked for; the span may have more.
    length: u64,
}

impl Region {
    /// A zeroed region of `length` bytes (0 is allowed).
    ///
    /// # Panics
    ///
    /// When the system has no memory left, as every allocation of Rust does.
    pub fn new(length: u64) -> Region {
        match Region::try_new(length) {
            Ok(region) => region,
            Err(error) => panic!("no memory for a region of {length} bytes: {error}"),
        }
    }

    /// As [`Region::new`], but a refusal of the system is a value.
    ///
    /// # Errors
    ///
    /// What `mmap` said.
    pub fn try_new(length: u64) -> io::Result<Region> {
        Ok(Region {
            span: Arc::new(Span::take(length)?),
            length,
        })
    }

    /// The claim of all bytes. Holding it doesn't keep the region: hold a clone.
    #[inline]
    pub fn claim(&self) -> Claim {
        // SAFETY: the span's pages stay mapped, readable and writable until the
        // process ends (see Span), and no reference to them is ever made.
        unsafe { Claim::new(self.span.start, self.length) }
    }

    /// Length in bytes, as asked for.
    #[inline]
    pub fn len(&self) -> u64 {
        self.length
    }

    /// Whether the region has no byte.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Copies bytes out from `offset` on; returns how many there were.
    pub fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        self.claim().slice(offset, u64::MAX).read(into)
    }

    /// Copies bytes in from `offset` on; returns how many had a place.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> usize {
        self.claim().slice(offset, u64::MAX).write(bytes)
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region({:p} + {})", self.span.start, self.length)
    }
}

/// Pages mapped once and never unmapped.
struct Span {
    start: *mut u8,
    /// The page size times a power of two.
    bytes: usize,
}

// SAFETY: a span is a range of addresses; its bytes are touched through claims only.
unsafe impl Send for Span {}
// SAFETY: as for Send.
unsafe impl Sync for Span {}

/// Spans without a region, zeroed, per power of two.
static IDLE: Mutex<[Vec<Span>; 64]> = Mutex::new([const { Vec::new() }; 64]);

const PAGE: u64 = 4096;

impl Span {
    fn take(length: u64) -> io::Result<Span> {
        let bytes = length
            .max(PAGE)
            .checked_next_power_of_two()
            .filter(|bytes| *bytes <= isize::MAX as u64)
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?
            as usize;
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner)[class(bytes)].pop();
        match idle {
            Some(span) => Ok(span),
            None => Span::map(bytes),
        }
    }

    fn map(bytes: usize) -> io::Result<Span> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice.
        let start = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Span {
            start: start.cast(),
            bytes,
        })
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // SAFETY: our own private anonymous pages; afterwards they read as zero.
        let done = unsafe { libc::madvise(self.start.cast(), self.bytes, libc::MADV_DONTNEED) };
        if done != 0 {
            return; // Locked pages keep their contents: leave these addresses unused.
        }
        let span = Span { ..*self };
        IDLE.lock().unwrap_or_else(PoisonError::into_inner)[class(self.bytes)].push(span);
    }
}

/// The index in [`IDLE`] of a power of two.
fn class(bytes: usize) -> usize {
    bytes.trailing_zeros() as usize
}
