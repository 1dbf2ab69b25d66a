//! A ring of 64-byte lines between one sender and one receiver, which may be two
//! processes.
//!
//! ```text
//!   line      | commit word | words 1 … 5           | first 16 bytes of payload |
//!   line + 1  | 64 bytes of payload …                                           |
//!   ring      | record | record | 0 …               ▲ the receiver polls the next commit word
//! ```
//!
//! A record is one header line and the lines that its payload needs. The commit
//! word is written last and holds all that the receiver must know, so a message of
//! up to 16 bytes moves between two cores as one cache line. Before a record is
//! committed the sender clears the commit word behind it: payload of an earlier
//! lap can never be taken for a header.
//!
//! The receiver publishes how far it has read in a cache line of its own ([`Control`]),
//! once for each batch. Neither side ever waits for the other.
//!
//! Commit word: bits 0–15 a sequence number that is never 0, bits 16–31 payload
//! bytes, bits 32–63 the caller's. A sender that writes anything else costs
//! itself the ring: the receiver sees [`Corrupt`].
//!
//! Left to others: which two they are, where the memory comes from, what the words
//! mean, and waking a receiver that sleeps.

mod receiver;
mod sender;

pub use receiver::{Corrupt, Receiver, Record};
pub use sender::{Full, Sender};

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in a line.
pub const LINE: usize = 64;
/// Lines in a ring: 28 KiB, so that a ring each way and their control stay below
/// 64 KiB for each pair of processes.
pub const LINES: usize = 448;
/// Bytes of memory that a ring takes.
pub const RING_BYTES: usize = LINES * LINE;
/// Words in a header, the commit word included.
pub const WORDS: usize = 6;
/// Payload bytes in the header's own line.
pub const INLINE: usize = LINE - WORDS * 8;
/// The largest payload: a third of the ring, so that sender and receiver overlap.
pub const MAX_PAYLOAD: usize = 9 * 1024;

/// Says that the rest of the lap is unused.
const SKIP: u64 = 0xff << 32;

/// What the receiver publishes to the sender, in a cache line of its own.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Control {
    /// Lines that the receiver has done with, since the beginning.
    head: AtomicU64,
}

impl Control {
    /// Sets the head of a new ring, 0 lines.
    pub fn reset(&self) {
        self.head.store(0, Ordering::Relaxed);
    }
}

/// Lines of a record with that much payload.
#[inline]
const fn lines(payload: usize) -> usize {
    1 + payload.saturating_sub(INLINE).div_ceil(LINE)
}

/// The sequence number after this one.
#[inline]
const fn after(sequence: u16) -> u16 {
    match sequence.wrapping_add(1) {
        0 => 1,
        next => next,
    }
}

/// The word at an 8-byte aligned place of a ring.
///
/// # Safety
/// `place` is aligned, inside the ring's memory, and stays mapped for `'a`.
#[inline]
unsafe fn word<'a>(place: *mut u8) -> &'a AtomicU64 {
    // SAFETY: by the caller; both sides access ring words as atomics.
    unsafe { AtomicU64::from_ptr(place.cast()) }
}
