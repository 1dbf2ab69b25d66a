//! A ring between one sender and one receiver, which may be two processes.
//!
//! ```text
//!   slots   | commit word | words 1 … 5 | up to 16 bytes of payload |   SLOTS lines
//!           | commit word | words 1 … 5 |                           |
//!   data    | a longer payload, in whole lines, one after the other |   NEAR_LINES or WIDE_LINES
//! ```
//!
//! A record is one slot, and the lines of data that a payload of more than [`INLINE`] bytes
//! needs. The commit word is written last and holds all that the receiver must know, so a
//! message of up to 16 bytes moves between two cores as one cache line. The word carries the
//! number of the lap: a slot holds nothing but slots, so what an earlier lap left is
//! recognised by its number, and nothing has to be cleared ahead of a record. A payload lies
//! behind the one before it, or at the beginning of the data (the word says so: it wraps);
//! both sides count.
//!
//! The sender wraps as soon as the receiver keeps up: the same few lines stay in both caches, and
//! they are all the memory that the ring takes. It goes on to the end of a wide ring while the
//! receiver is behind, since the two then don't wait for each other's lines.
//!
//! The receiver publishes how many slots and lines it has read in a cache line of its own
//! ([`Control`]), once for each batch. Neither side ever waits for the other.
//!
//! Commit word: bits 0–15 the lap, which is never 0, bits 16–30 payload bytes, bit 31 whether the
//! payload wraps, bits 32–63 the caller's. A sender that writes anything else costs itself the
//! ring: the receiver sees [`Corrupt`].
//!
//! Left to others: which two they are, where the memory comes from, what the words
//! mean, and waking a receiver that sleeps.

mod lookout;
mod prefetch;
mod receiver;
mod sender;

pub use lookout::Lookout;
pub use receiver::{Corrupt, Receiver, Record};
pub use sender::{Full, Sender};

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in a line.
pub const LINE: usize = 64;
/// Slots in a ring: records that the receiver can be behind.
pub const SLOTS: usize = 128;
/// Bytes of the slots, which are at the ring's beginning.
pub const SLOT_BYTES: usize = SLOTS * LINE;
/// Lines of data that each ring has: 28 KiB with the slots, so that a ring each way and their
/// control stay below 64 KiB for each pair of processes.
pub const NEAR_LINES: usize = 320;
/// Lines of data of a wide ring, 264 KiB with the slots.
pub const WIDE_LINES: usize = 4096;
/// In a commit word: the payload begins where the data does.
const WRAPS: u64 = 1 << 31;
/// Words in a header, the commit word included.
pub const WORDS: usize = 6;
/// Payload bytes in the slot itself.
pub const INLINE: usize = LINE - WORDS * 8;
/// The largest payload: less than half of the data, so that sender and receiver overlap.
pub const MAX_PAYLOAD: usize = 9 * 1024;

/// What the receiver publishes to the sender, in a cache line of its own.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct Control {
    /// What the receiver has done with since the beginning: slots in the low half, lines of
    /// data in the high half, both modulo 2^32.
    head: AtomicU64,
}

impl Control {
    /// Sets the head of a new ring, 0 slots and 0 lines.
    pub fn reset(&self) {
        self.head.store(0, Ordering::Relaxed);
    }
}

/// Bytes of memory of a ring with so many lines of data.
pub const fn ring_bytes(lines: usize) -> usize {
    SLOT_BYTES + lines * LINE
}

/// Payload bytes of the record that a word commits.
#[inline(always)]
const fn payload_bytes(commit: u64) -> usize {
    ((commit >> 16) as u16 & 0x7fff) as usize
}

/// Lines of data of a payload of that many bytes.
#[inline(always)]
const fn data_lines(payload: usize) -> usize {
    if payload <= INLINE {
        0
    } else {
        payload.div_ceil(LINE)
    }
}

/// Where in a ring the next slot is, and where the next payload; the sender and the receiver
/// advance in the same way.
#[derive(Clone, Copy, Debug)]
struct Position {
    slot: usize,
    /// Number of the slots' lap, never 0, and that of the lap before.
    lap: u16,
    former_lap: u16,
    /// Line of data.
    data: usize,
    /// Slots and lines of data so far, modulo 2^32.
    slots: u32,
    lines: u32,
}

impl Position {
    const START: Position = Position {
        slot: 0,
        lap: 1,
        // The slots begin as zeros.
        former_lap: 0,
        data: 0,
        slots: 0,
        lines: 0,
    };

    /// The line of data where a payload begins.
    #[inline(always)]
    fn begin(&self, wraps: bool) -> usize {
        match wraps {
            true => 0,
            false => self.data,
        }
    }

    /// Advances behind a record without data.
    #[inline(always)]
    fn advance(&mut self) {
        self.slots = self.slots.wrapping_add(1);
        self.slot += 1;
        if self.slot == SLOTS {
            self.slot = 0;
            self.former_lap = self.lap;
            self.lap = match self.lap.wrapping_add(1) {
                0 => 1,
                next => next,
            };
        }
    }

    /// Advances behind so many lines of data, in a ring of `all` lines.
    #[inline(always)]
    fn advance_data(&mut self, lines: usize, wraps: bool, all: usize) {
        let unused = self.unused(wraps, all);
        self.data = self.begin(wraps) + lines;
        self.lines = self.lines.wrapping_add((unused + lines) as u32);
    }

    /// Lines at the end that a payload leaves unused, in a ring of `all` lines.
    #[inline(always)]
    fn unused(&self, wraps: bool, all: usize) -> usize {
        match wraps {
            true => all - self.data,
            false => 0,
        }
    }
}

/// What [`Control`] holds: so many slots and lines of data.
#[inline(always)]
const fn head(slots: u32, lines: u32) -> u64 {
    (lines as u64) << 32 | slots as u64
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

/// Where a slot begins.
///
/// # Safety
/// `ring` names a ring's memory, and `slot < SLOTS`.
#[inline(always)]
unsafe fn slot_at(ring: *mut u8, slot: usize) -> *mut u8 {
    debug_assert!(slot < SLOTS);
    // SAFETY: by the caller, the slot lies inside the ring.
    unsafe { ring.add(slot * LINE) }
}

/// Where a line of data begins.
///
/// # Safety
/// `ring` names the memory of a ring that has so many lines of data at least.
#[inline(always)]
unsafe fn data_at(ring: *mut u8, line: usize) -> *mut u8 {
    // SAFETY: by the caller, the line lies inside the ring or at its end.
    unsafe { ring.add(SLOT_BYTES + line * LINE) }
}
