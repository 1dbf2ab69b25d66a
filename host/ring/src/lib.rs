//! A ring between one sender and one receiver, which may be two processes.
//!
//! ```text
//!   slots   | commit word | words 1 … 5 | up to 16 bytes of payload |   SLOTS lines
//!           | commit word | words 1 … 5 |                           |
//!   data    | a longer payload, in whole lines, one after the other |   DATA_LINES lines
//! ```
//!
//! A record is one slot, and the lines of data that a payload of more than [`INLINE`] bytes
//! needs. The commit word is written last and holds all that the receiver must know, so a
//! message of up to 16 bytes moves between two cores as one cache line. The word carries the
//! number of the lap: a slot holds nothing but slots, so what an earlier lap left is
//! recognised by its number, and nothing has to be cleared ahead of a record. Where a
//! payload lies follows from the lengths before it; both sides count.
//!
//! The receiver publishes how many slots and lines it has read in a cache line of its own
//! ([`Control`]), once for each batch. Neither side ever waits for the other.
//!
//! Commit word: bits 0–15 the lap, which is never 0, bits 16–31 payload bytes, bits 32–63
//! the caller's. A sender that writes anything else costs itself the ring: the receiver
//! sees [`Corrupt`].
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
/// Lines of data behind the slots: 28 KiB in all, so that a ring each way and their
/// control stay below 64 KiB for each pair of processes.
pub const DATA_LINES: usize = 320;
/// Bytes of memory that a ring takes.
pub const RING_BYTES: usize = SLOT_BYTES + DATA_LINES * LINE;
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

    /// The line of data where a payload of so many lines begins, and how many lines at the
    /// end it leaves unused: a payload isn't split there.
    #[inline(always)]
    fn payload(&self, lines: usize) -> (usize, usize) {
        if self.data + lines > DATA_LINES {
            (0, DATA_LINES - self.data)
        } else {
            (self.data, 0)
        }
    }

    /// Advances behind a record with so many lines of data.
    #[inline(always)]
    fn advance(&mut self, lines: usize) {
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
        if lines > 0 {
            let (begin, unused) = self.payload(lines);
            self.data = begin + lines;
            self.lines = self.lines.wrapping_add((unused + lines) as u32);
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
/// `ring` names [`RING_BYTES`] of memory, and `slot < SLOTS`.
#[inline(always)]
unsafe fn slot_at(ring: *mut u8, slot: usize) -> *mut u8 {
    debug_assert!(slot < SLOTS);
    // SAFETY: by the caller, the slot lies inside the ring.
    unsafe { ring.add(slot * LINE) }
}

/// Where a line of data begins.
///
/// # Safety
/// `ring` names [`RING_BYTES`] of memory, and `line <= DATA_LINES`.
#[inline(always)]
unsafe fn data_at(ring: *mut u8, line: usize) -> *mut u8 {
    debug_assert!(line <= DATA_LINES);
    // SAFETY: by the caller, the line lies inside the ring or at its end.
    unsafe { ring.add(SLOT_BYTES + line * LINE) }
}
