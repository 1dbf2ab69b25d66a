//! A hierarchical timing wheel: events in the order of their times, equal times in order of
//! insertion.
//!
//! There is a wheel for each digit of the time. An event is on the wheel of the
//! highest digit in which its time differs from `base`, in the slot of that
//! digit. When the lowest wheel is empty, `base` goes to the next occupied slot,
//! whose events move to lower wheels, in order:
//!
//! ```text
//!   base  12 | 07 | 40       wheel 0: times 12 07 xx, a slot a picosecond
//!   event 12 | 07 | 93       wheel 1: times 12 xx --, xx > 07
//!   event 12 | 31 | 02       wheel 2: times xx -- --, xx > 12
//! ```
//!
//! All events of one time share a slot at any moment, so that order needs no
//! numbering. An event moves once per wheel at most, whatever else waits; a heap
//! compares it with the logarithm of all that waits. `examples/queues.rs` measures
//! both.

use crate::chunks::{Chunks, List};
use crate::time::SimTime;

const WHEELS: usize = 8;

/// Bits of each wheel's digit. Most events of a network lie some hundred thousand
/// picoseconds ahead: on wheel 1 at once, so that they move once. Its slots are as short
/// as wheel 0: in a network of 32,768 nodes a picosecond has several events, and what is
/// foreseen by longer slots falls out of the nearest caches before its time comes.
const BITS: [u32; WHEELS] = [6, 12, 8, 8, 8, 8, 8, 6];

/// The bits below each wheel's digit.
const SHIFTS: [u32; WHEELS] = {
    let mut shifts = [0; WHEELS];
    let mut wheel = 1;
    while wheel < WHEELS {
        shifts[wheel] = shifts[wheel - 1] + BITS[wheel - 1];
        wheel += 1;
    }
    shifts
};

/// Bits of a word.
const WORD: usize = 64;

/// The wheel of events whose time differs from `base` in so many of the lowest bits.
const WHEEL_OF: [u8; 65] = {
    let mut wheels = [0; 65];
    let mut bits = 1;
    while bits <= 64 {
        let wheel = wheels[bits - 1];
        let end = SHIFTS[wheel as usize] + BITS[wheel as usize];
        wheels[bits] = if bits as u32 > end { wheel + 1 } else { wheel };
        bits += 1;
    }
    wheels
};

/// Events by time. Time only advances: nothing may be pushed for a time before
/// that of the last one popped, nor before the last limit.
pub struct TimingWheel<E> {
    wheels: [Wheel; WHEELS],
    chunks: Chunks<(u64, E)>,
    base: u64,
    len: usize,
}

struct Wheel {
    slots: Vec<List>,
    /// A bit for each slot that holds events.
    occupied: Vec<u64>,
    /// A bit for each word of `occupied` that isn't zero.
    words: u64,
}

impl<E: Copy> TimingWheel<E> {
    /// A wheel without events, at time 0.
    pub fn new() -> Self {
        TimingWheel {
            wheels: BITS.map(|bits| Wheel::new(1 << bits)),
            chunks: Chunks::new(),
            base: 0,
            len: 0,
        }
    }

    /// How many events it holds.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts `event` behind all that stand at `when`.
    #[inline]
    pub fn push(&mut self, when: SimTime, event: E) {
        self.place(when.as_ps(), event);
        self.len += 1;
    }

    /// Takes the first event, if it is due by `limit`.
    #[inline]
    pub fn pop_due(&mut self, limit: SimTime) -> Option<(SimTime, E)> {
        self.pop_due_foreseeing(limit, |_| {})
    }

    /// As [`TimingWheel::pop_due`]. Most events are shown to `foresee` some time
    /// before they leave, many of them in a row.
    #[inline]
    pub fn pop_due_foreseeing(
        &mut self,
        limit: SimTime,
        mut foresee: impl FnMut(&E),
    ) -> Option<(SimTime, E)> {
        loop {
            let (wheel, slot) = self.next_slot()?;
            let start = self.slot_start(wheel, slot);
            if start > limit.as_ps() {
                return None;
            }
            let only = self.wheels[wheel].slots[slot].is_single();
            if wheel == 0 || only {
                return self.take(wheel, slot, limit.as_ps());
            }
            self.spread(wheel, slot, start, &mut foresee);
        }
    }

    #[inline]
    fn place(&mut self, when: u64, event: E) {
        let differs = u64::BITS - (when ^ self.base).leading_zeros();
        let wheel = usize::from(WHEEL_OF[differs as usize]);
        let slot = digit(when, wheel);
        let wheel = &mut self.wheels[wheel];
        self.chunks.push(&mut wheel.slots[slot], (when, event));
        wheel.occupy(slot);
    }

    /// The slot with the earliest events: the first of the lowest wheel that has
    /// any.
    #[inline]
    fn next_slot(&self) -> Option<(usize, usize)> {
        let first_of = |(i, wheel): (usize, &Wheel)| Some((i, wheel.first()?));
        self.wheels.iter().enumerate().find_map(first_of)
    }

    /// The first time that belongs to a slot.
    #[inline]
    fn slot_start(&self, wheel: usize, slot: usize) -> u64 {
        let (shift, end) = (SHIFTS[wheel], SHIFTS[wheel] + BITS[wheel]);
        let above = self.base.checked_shr(end).unwrap_or(0);
        above.checked_shl(end).unwrap_or(0) | (slot as u64) << shift
    }

    /// Takes the first event of a slot whose events all have one time.
    #[inline]
    fn take(&mut self, wheel: usize, slot: usize, limit: u64) -> Option<(SimTime, E)> {
        let from = &mut self.wheels[wheel];
        let list = &mut from.slots[slot];
        let (when, event) = self.chunks.peek(list)?;
        if when > limit {
            return None;
        }
        self.chunks.pop(list);
        if list.is_empty() {
            from.vacate(slot);
        }
        self.base = when;
        self.len -= 1;
        Some((SimTime::from_ps(when), event))
    }

    /// Goes to a slot, and moves its events to lower wheels.
    fn spread(&mut self, wheel: usize, slot: usize, start: u64, foresee: &mut impl FnMut(&E)) {
        self.base = start;
        let from = &mut self.wheels[wheel];
        from.vacate(slot);
        let mut list = std::mem::replace(&mut from.slots[slot], List::EMPTY);
        if wheel == 1 {
            self.chunks.for_each(&list, |(_, event)| foresee(event));
        }
        while let Some((when, event)) = self.chunks.pop(&mut list) {
            self.place(when, event);
        }
    }
}

impl<E: Copy> Default for TimingWheel<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl Wheel {
    fn new(slots: usize) -> Self {
        Wheel {
            slots: vec![List::EMPTY; slots],
            occupied: vec![0; slots / WORD],
            words: 0,
        }
    }

    #[inline]
    fn first(&self) -> Option<usize> {
        // Where all are zero, this is 64, one more than any wheel has words.
        let word = self.words.trailing_zeros() as usize;
        let occupied = self.occupied.get(word)?;
        Some(word * WORD + occupied.trailing_zeros() as usize)
    }

    #[inline]
    fn occupy(&mut self, slot: usize) {
        self.occupied[slot / WORD] |= 1 << (slot % WORD);
        self.words |= 1 << (slot / WORD);
    }

    #[inline]
    fn vacate(&mut self, slot: usize) {
        let word = &mut self.occupied[slot / WORD];
        *word &= !(1 << (slot % WORD));
        if *word == 0 {
            self.words &= !(1 << (slot / WORD));
        }
    }
}

#[inline]
fn digit(when: u64, wheel: usize) -> usize {
    (when >> SHIFTS[wheel]) as usize & ((1 << BITS[wheel]) - 1)
}
