//! Events in the order of their times, equal times in the order of their coming.
//!
//! A wheel for each digit of the time. An event stands on the wheel of the
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

/// Bits a digit. Events are foreseen by slots of wheel 1: in a network of 32,768
/// nodes, where a picosecond has several events, longer slots fall out of the
/// nearest caches before their time comes. Fewer bits mean more moves. A wheel's
/// slots have a bit each in [`Wheel::occupied`].
const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const WHEELS: usize = u64::BITS.div_ceil(BITS) as usize;

/// Events by time. Time only goes on: nothing may be pushed for a time before
/// that of the last one popped, nor before the last limit.
pub struct EventQueue<E> {
    wheels: [Wheel; WHEELS],
    chunks: Chunks<(u64, E)>,
    base: u64,
    len: usize,
}

struct Wheel {
    slots: [List; SLOTS],
    /// A bit for each slot that holds events.
    occupied: u64,
}

impl<E: Copy> EventQueue<E> {
    /// An empty one.
    pub const fn new() -> Self {
        EventQueue {
            wheels: [const { Wheel::new() }; WHEELS],
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

    /// As [`EventQueue::pop_due`]. Most events are shown to `foresee` some time
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
        let differs = (when ^ self.base) >> BITS;
        let wheel = ((u64::BITS + BITS - 1 - differs.leading_zeros()) / BITS) as usize;
        let slot = digit(when, wheel);
        let wheel = &mut self.wheels[wheel];
        self.chunks.push(&mut wheel.slots[slot], (when, event));
        wheel.occupied |= 1 << slot;
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
        let shift = wheel as u32 * BITS;
        let above = self.base.checked_shr(shift + BITS).unwrap_or(0);
        above.checked_shl(shift + BITS).unwrap_or(0) | (slot as u64) << shift
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
            from.occupied &= !(1 << slot);
        }
        self.base = when;
        self.len -= 1;
        Some((SimTime::from_ps(when), event))
    }

    /// Goes to a slot, and moves its events to lower wheels.
    fn spread(&mut self, wheel: usize, slot: usize, start: u64, foresee: &mut impl FnMut(&E)) {
        self.base = start;
        let from = &mut self.wheels[wheel];
        from.occupied &= !(1 << slot);
        let mut list = std::mem::replace(&mut from.slots[slot], List::EMPTY);
        if wheel == 1 {
            self.chunks.for_each(&list, |(_, event)| foresee(event));
        }
        while let Some((when, event)) = self.chunks.pop(&mut list) {
            self.place(when, event);
        }
    }
}

impl<E: Copy> Default for EventQueue<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl Wheel {
    const fn new() -> Self {
        Wheel {
            slots: [List::EMPTY; SLOTS],
            occupied: 0,
        }
    }

    #[inline]
    fn first(&self) -> Option<usize> {
        (self.occupied != 0).then(|| self.occupied.trailing_zeros() as usize)
    }
}

#[inline]
fn digit(when: u64, wheel: usize) -> usize {
    (when >> (wheel as u32 * BITS)) as usize & (SLOTS - 1)
}
