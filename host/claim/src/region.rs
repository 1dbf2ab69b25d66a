//! [`Region`]: zeroed, page-aligned memory of our own that may be claimed.

use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, PoisonError};

use crate::claim::Claim;
use crate::mapping::Mapping;
use rustix::mm::{Advice, madvise};

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
    /// `mmap`'s: usually that memory or address space is exhausted.
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
        unsafe { Claim::new(self.span.0.start(), self.length) }
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

    /// Where an address is in this region, bytes from its beginning: that of an event's `start`
    /// for instance. None if it is elsewhere.
    ///
    /// ```
    /// let region = lintel_claim::Region::new(10);
    /// let start = region.claim().address();
    /// assert_eq!(region.offset_of(start + 9), Some(9));
    /// assert_eq!(region.offset_of(start + 10), None);
    /// assert_eq!(region.offset_of(start - 1), None);
    /// ```
    pub fn offset_of(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.claim().address())?;
        (offset < self.length).then_some(offset)
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
        write!(f, "Region({:p} + {})", self.span.0.start(), self.length)
    }
}

/// Pages mapped once and never unmapped: the page size times a power of two.
struct Span(ManuallyDrop<Mapping>);

/// Spans without a region, zeroed, per power of two.
static IDLE: Mutex<[Vec<Span>; 64]> = Mutex::new([const { Vec::new() }; 64]);

pub(crate) const PAGE: u64 = 4096;

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
            None => Ok(Span(ManuallyDrop::new(Mapping::anonymous(bytes)?))),
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let (start, bytes) = (self.0.start(), self.0.bytes());
        // SAFETY: our own private anonymous pages; afterwards they read as zero.
        if unsafe { madvise(start.cast(), bytes, Advice::LinuxDontNeed) }.is_err() {
            return; // Locked pages keep their contents: leave these addresses unused.
        }
        // SAFETY: this value is dropped, so its mapping isn't used again but by the new one.
        let span = Span(ManuallyDrop::new(unsafe {
            ManuallyDrop::take(&mut self.0)
        }));
        IDLE.lock().unwrap_or_else(PoisonError::into_inner)[class(bytes)].push(span);
    }
}

/// The index in [`IDLE`] of a power of two.
fn class(bytes: usize) -> usize {
    bytes.trailing_zeros() as usize
}
