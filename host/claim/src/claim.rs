//! [`Claim`]: an address and a length, checked by the code that made it.

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use crate::copy::move_bytes;

/// Bytes that the application or a peer may touch at any moment.
///
/// A claim is two words, owns nothing and can only shrink. The caller of [`Claim::new`]
/// guarantees its memory; everything after that is safe.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C)] // datagram.rs hands lists of claims to the kernel
pub struct Claim {
    start: *mut u8,
    length: u64,
}

/// Bytes shown at once: a part stays in the nearest cache.
const PART: usize = 8192;

/// Where a claim has its two words.
pub(crate) const START: usize = std::mem::offset_of!(Claim, start);
pub(crate) const SIZE: usize = std::mem::offset_of!(Claim, length);

// SAFETY: a claim is a name for bytes, not access to a Rust value. Every access goes
// through raw copies and atomics that expect other threads on the same bytes.
unsafe impl Send for Claim {}
// SAFETY: as for Send; a claim has no interior state.
unsafe impl Sync for Claim {}

impl Claim {
    /// Claims `length` bytes from `start` on.
    ///
    /// # Safety
    ///
    /// One of these must hold for as long as this claim, or any slice of it, is used:
    ///
    /// - every byte stays readable and writable, and no Rust reference covers it while
    ///   it is used (references to atomics excepted);
    /// - as above but only readable, and the claim is used only as a source (the
    ///   `from` of a copy, [`Claim::read`], [`Claim::load_u64`]);
    /// - the bytes may be anything, mapped or not, but then the claim goes only to
    ///   [`copy_checked`](crate::copy_checked) and
    ///   [`RemoteMemory`](crate::RemoteMemory), where the kernel looks before it touches, and no
    ///   Rust-owned value lies in the bytes written.
    #[inline]
    pub const unsafe fn new(start: *mut u8, length: u64) -> Claim {
        Claim { start, length }
    }

    /// The claim of nothing.
    #[inline]
    pub const fn empty() -> Claim {
        Claim {
            start: ptr::null_mut(),
            length: 0,
        }
    }

    /// The address of the first byte. (A pointer has no number while constants are
    /// evaluated, so this alone is not `const`.)
    #[inline]
    pub fn address(self) -> u64 {
        self.start.expose_provenance() as u64
    }

    /// Bytes of memory; may be 0.
    #[inline]
    pub const fn len(self) -> u64 {
        self.length
    }

    /// Whether there is no byte to touch.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.length == 0
    }

    /// The part that starts `offset` bytes in and is at most `length` bytes long,
    /// clamped to this claim: a slice never grows.
    ///
    /// ```
    /// let region = lintel_claim::Region::new(10);
    /// let claim = region.claim();
    /// assert_eq!(claim.slice(8, u64::MAX).len(), 2);
    /// assert!(claim.slice(11, 1).is_empty());
    /// ```
    #[inline(always)]
    pub fn slice(self, offset: u64, length: u64) -> Claim {
        let offset = offset.min(self.length);
        Claim {
            start: self.start.wrapping_add(offset as usize),
            length: length.min(self.length - offset),
        }
    }

    /// As [`slice`](Self::slice), but nothing if not all of it lies in this claim.
    ///
    /// ```
    /// let region = lintel_claim::Region::new(10);
    /// let claim = region.claim();
    /// assert_eq!(claim.part(2, 8).map(|part| part.len()), Some(8));
    /// assert!(claim.part(3, 8).is_none() && claim.part(u64::MAX, 2).is_none());
    /// ```
    #[inline(always)]
    pub fn part(self, offset: u64, length: u64) -> Option<Claim> {
        let end = offset.checked_add(length)?;
        (end <= self.length).then(|| Claim {
            start: self.start.wrapping_add(offset as usize),
            length,
        })
    }

    /// Copies the first bytes into memory of our own; returns how many, the smaller of
    /// both lengths. The bytes are read once: what is parsed from `into` afterwards
    /// can't change under the parser.
    #[inline(always)]
    pub fn read(self, into: &mut [u8]) -> usize {
        let count = self.length.min(into.len() as u64);
        // SAFETY: `count` bytes are readable at `start` (Claim::new) and writable in
        // `into`, whose borrow is exclusive.
        unsafe { move_bytes(self.start, into.as_mut_ptr(), count) };
        // Keeps the compiler from looking at the claimed bytes again instead of `into`.
        compiler_fence(Ordering::SeqCst);
        count as usize
    }

    /// Shows a copy of all bytes to `look`, in parts of a few KiB. Each byte is read
    /// once.
    #[inline]
    pub fn each_part(self, mut look: impl FnMut(&[u8])) {
        let mut part = [const { MaybeUninit::<u8>::uninit() }; PART];
        let start = part.as_mut_ptr().cast::<u8>();
        let mut at = 0;
        while at < self.length {
            let piece = self.slice(at, PART as u64);
            // SAFETY: a piece is readable (Claim::new) and no longer than `part`.
            unsafe { move_bytes(piece.start, start, piece.length) };
            // Keeps the compiler from looking at the claimed bytes again.
            compiler_fence(Ordering::SeqCst);
            // SAFETY: that many bytes of `part` have just been written, and it is this
            // function's own.
            look(unsafe { slice::from_raw_parts(start, piece.length as usize) });
            at += piece.length;
        }
    }

    /// Copies our bytes to the front of the claim; returns how many, the smaller of
    /// both lengths.
    #[inline(always)]
    pub fn write(self, from: &[u8]) -> usize {
        let count = self.length.min(from.len() as u64);
        // SAFETY: `count` bytes are readable in `from` and writable at `start`
        // (Claim::new).
        unsafe { move_bytes(from.as_ptr(), self.start, count) };
        count as usize
    }

    /// The eight bytes at `offset` as a number of this machine, loaded with acquire
    /// order and in one piece when their address is a multiple of eight. `None` when
    /// they don't all lie in the claim.
    #[inline(always)]
    pub fn load_u64(self, offset: u64) -> Option<u64> {
        let word = self.slice(offset, 8);
        if let Some(atomic) = word.as_atomic_u64() {
            return Some(atomic.load(Ordering::Acquire));
        }
        let mut bytes = [0; 8];
        (word.read(&mut bytes) == 8).then(|| u64::from_ne_bytes(bytes))
    }

    /// Stores `value` at `offset`, with release order and in one piece when that
    /// address is a multiple of eight. `false`, with nothing stored, when the eight
    /// bytes don't all lie in the claim.
    #[inline]
    pub fn store_u64(self, offset: u64, value: u64) -> bool {
        let word = self.slice(offset, 8);
        if let Some(atomic) = word.as_atomic_u64() {
            atomic.store(value, Ordering::Release);
            return true;
        }
        word.length == 8 && word.write(&value.to_ne_bytes()) == 8
    }

    /// Stores `new` at `offset` if `old` is there, with acquire and release order; true if it did. `false`,
    /// with nothing stored, when the eight bytes don't all lie in the claim, or their address is no multiple
    /// of eight.
    pub fn replace_u64(self, offset: u64, old: u64, new: u64) -> bool {
        let word = self.slice(offset, 8);
        word.as_atomic_u64().is_some_and(|atomic| {
            let replaced = atomic.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire);
            replaced.is_ok()
        })
    }

    /// Has the processor fetch the line of the byte at `offset` in order to write it, so that a
    /// store there doesn't wait until other processors have given it up. A hint: the memory need
    /// not be there any more.
    #[inline(always)]
    pub fn prefetch_to_write(self, offset: u64) {
        prefetch_to_write(self.slice(offset, 1).start);
    }

    /// The first byte, for the kernel and for the raw copy.
    #[inline]
    pub(crate) const fn start(self) -> *mut u8 {
        self.start
    }

    /// Whether `size` bytes fit and start at a multiple of `size` (a power of two).
    #[inline(always)]
    pub(crate) fn is_word(self, size: u64) -> bool {
        self.length >= size && self.start.addr() as u64 & (size - 1) == 0
    }

    #[inline(always)]
    pub(crate) fn as_atomic_u64<'a>(self) -> Option<&'a AtomicU64> {
        if !self.is_word(8) {
            return None;
        }
        // SAFETY: eight aligned bytes, valid while the claim is used (Claim::new); the
        // callers, all in this crate, let the reference go before they return.
        Some(unsafe { AtomicU64::from_ptr(self.start.cast()) })
    }
}

/// A claim in which eight bytes are found by one comparison.
#[derive(Clone, Copy, Debug)]
pub struct WordClaim {
    /// The bytes with which eight begin.
    begins: Claim,
}

impl WordClaim {
    /// The same bytes, or none if there are less than eight.
    ///
    /// ```
    /// let region = lintel_claim::Region::new(10);
    /// let words = lintel_claim::WordClaim::new(region.claim());
    /// assert_eq!(words.word(2).map(|word| word.len()), Some(8));
    /// assert!(words.word(3).is_none());
    /// assert_eq!(words.part(0, 10), Some(region.claim()));
    /// assert!(words.part(0, 11).is_none());
    /// ```
    pub const fn new(claim: Claim) -> WordClaim {
        let begins = Claim {
            start: claim.start,
            length: claim.length.saturating_sub(7),
        };
        WordClaim { begins }
    }

    /// The eight bytes from that offset, if they are there.
    #[inline(always)]
    pub fn word(self, offset: u64) -> Option<Claim> {
        (offset < self.begins.length).then(|| Claim {
            start: self.begins.start.wrapping_add(offset as usize),
            length: 8,
        })
    }

    /// As [`Claim::part`], of those bytes.
    #[inline(always)]
    pub fn part(self, offset: u64, length: u64) -> Option<Claim> {
        let Claim {
            start,
            length: begins,
        } = self.begins;
        let length_of_all = if begins == 0 { 0 } else { begins + 7 };
        let all = Claim {
            start,
            length: length_of_all,
        };
        all.part(offset, length)
    }

    /// Whether there is no byte.
    pub const fn is_empty(self) -> bool {
        self.begins.length == 0
    }
}

/// Has the processor fetch the line of a byte in order to write it: then no other processor keeps
/// it. A hint: nothing need be there.
#[inline(always)]
pub fn prefetch_to_write(byte: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes no memory, and faults nowhere; a processor without this
    // instruction takes it for none.
    unsafe {
        std::arch::asm!("prefetchw [{}]", in(reg) byte,
            options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}

impl Default for Claim {
    fn default() -> Claim {
        Claim::empty()
    }
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({:p} + {})", self.start, self.length)
    }
}

/// A claim travels as its address and length. It can't be read back as a
/// claim: to its receiver the bytes are those of another process, a [`RemoteSpan`](crate::RemoteSpan).
#[cfg(feature = "serde")]
impl serde::Serialize for Claim {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        crate::RemoteSpan::from(*self).serialize(serializer)
    }
}

impl lintel_memory::Span for Claim {
    #[inline]
    fn empty() -> Self {
        Claim::empty()
    }
    #[inline]
    fn address(self) -> u64 {
        Claim::address(self)
    }
    #[inline]
    fn length(self) -> u64 {
        self.len()
    }
    #[inline]
    fn narrow(self, offset: u64, length: u64) -> Self {
        self.slice(offset, length)
    }
    #[inline(always)]
    fn part(self, offset: u64, length: u64) -> Option<Claim> {
        Claim::part(self, offset, length)
    }
}
