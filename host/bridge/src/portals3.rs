//! Event queues of Portals 3.3 in a shared region. An event is longer than one of Portals 4,
//! and takes two of the region's slots. A full queue loses the newest event, not the oldest;
//! the next one that fits shows that.

use crate::queue::{QueueEnds, Slot, Slots, Taken};
use crate::region::SharedRegion;
use crate::tables::SharedTables;
use lintel_types::portals3::{Error, Event, Result};
use lintel_types::{Handle, QueueIndex};
use std::sync::atomic::AtomicU64;

/// Slots of an event.
const SLOTS: usize = 2;
const WORDS: usize = Event::WORDS;
/// In the last word of an event, above its number: events before it were lost.
const LOST: u64 = 1 << 32;

/// The slots of one queue, two to an event.
struct Pairs<'a>(&'a [Slot]);

impl Slots for Pairs<'_> {
    fn count(&self) -> u64 {
        (self.0.len() / SLOTS) as u64
    }

    #[inline]
    fn slot(&self, position: u64) -> &[AtomicU64] {
        let first = (position & (self.count() - 1)) as usize * SLOTS;
        self.0[first..first + SLOTS].as_flattened()
    }
}

/// An event of Portals 3.3 that was taken, still as words.
pub type Taken3 = Taken<WORDS>;

impl Taken3 {
    /// The event as a structure.
    #[inline]
    pub fn event(&self) -> Event {
        Event::from_words(self.words())
    }

    /// An event as the queue holds it, with the mark of lost events.
    #[inline(always)]
    fn new(mut words: [u64; WORDS]) -> Taken3 {
        let dropped = words[WORDS - 1] & LOST != 0;
        words[WORDS - 1] &= !LOST;
        Taken { words, dropped }
    }
}

impl QueueEnds {
    /// Appends an event of Portals 3.3, or what becomes one; false if the queue is full. `lost` if
    /// others before it were lost. One thread at a time may do so.
    #[inline(always)]
    pub fn push3<E>(&self, slots: &impl Slots, event: E, lost: bool) -> bool
    where
        Event: From<E>,
    {
        let Some(tail) = self.room(slots) else {
            return false;
        };
        let slot = slots.slot(tail);
        let mut words = Event::from(event).to_words();
        words[WORDS - 1] |= if lost { LOST } else { 0 };
        self.publish(tail, slot, words);
        true
    }

    /// Takes the oldest event of Portals 3.3. Any number of threads may do so.
    #[inline(always)]
    pub fn pop3(&self, slots: &impl Slots) -> Option<Taken3> {
        self.take(slots).map(Taken3::new)
    }

    /// The oldest event of Portals 3.3, which stays.
    pub fn peek3(&self, slots: &impl Slots) -> Option<Taken3> {
        let taken: Taken3 = self.peek(slots)?;
        Some(Taken3::new(taken.words))
    }
}

impl SharedTables {
    /// Opens a queue for `count` events of Portals 3.3, a power of two.
    ///
    /// # Errors
    /// `NoSpace` if so many slots aren't free.
    pub fn begin_queue3(&self, queue: Handle, count: u64) -> Result<()> {
        let slots = count.saturating_mul(SLOTS as u64);
        self.begin_in(queue, count, slots)
            .map_err(|_| Error::NoSpace)
    }

    /// Appends an event, or what becomes one; false if the queue is full. `lost` if others before
    /// it were lost.
    pub fn post3<E>(&self, queue: QueueIndex, event: E, lost: bool) -> bool
    where
        Event: From<E>,
    {
        let Some((ends, range)) = self.open_queue(queue) else {
            return false;
        };
        ends.push3(&Pairs(range.slots(self.region(), SLOTS)), event, lost)
    }

    /// Whether every event of a queue has been taken.
    pub fn is_empty3(&self, queue: QueueIndex) -> bool {
        let open = self.open_queue(queue);
        open.is_none_or(|(ends, _)| ends.is_empty())
    }
}

impl SharedRegion {
    /// Takes the next event of an open queue of Portals 3.3, if there is one.
    ///
    /// # Errors
    /// `EqInvalid` for a handle that isn't an open queue.
    pub fn take_event3(&self, queue: Handle) -> Result<Option<Taken3>> {
        let (ends, range) = self.queue(queue).ok_or(Error::EqInvalid)?;
        Ok(ends.pop3(&Pairs(range.slots(self, SLOTS))))
    }

    /// The next event, which stays.
    ///
    /// # Errors
    /// `EqInvalid` for a handle that isn't an open queue.
    pub fn peek_event3(&self, queue: Handle) -> Result<Option<Taken3>> {
        let (ends, range) = self.queue(queue).ok_or(Error::EqInvalid)?;
        Ok(ends.peek3(&Pairs(range.slots(self, SLOTS))))
    }

    /// Whether a handle is an open queue.
    ///
    /// # Errors
    /// `EqInvalid` if it isn't.
    pub fn check_queue3(&self, queue: Handle) -> Result<()> {
        self.queue(queue).map(drop).ok_or(Error::EqInvalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Tables;
    use lintel_types::portals3::{EventKind, MemoryDescriptor};
    use lintel_types::{InterfaceNumber, Kind};
    use std::sync::Arc;

    fn event(number: u32) -> Event {
        let md = MemoryDescriptor::default();
        Event {
            sequence: number,
            ..Event::new(EventKind::PutEnd, Handle::INVALID, md)
        }
    }

    /// An event, and whether others before it were lost.
    fn shown(taken: Result<Option<Taken3>>) -> Option<(Event, bool)> {
        let taken = taken.expect("it is open")?;
        Some((taken.event(), taken.dropped))
    }

    #[test]
    fn a_full_queue_loses_the_newest_and_the_next_one_reports_it() {
        let region = Arc::new(SharedRegion::create().expect("the system has memory"));
        let [tables, ..] = SharedTables::all(&region);
        let [number, ..] = InterfaceNumber::ALL;
        let queue = Handle::new(Kind::EventQueue, number, 1, 3);
        let index = QueueIndex(3);
        assert_eq!(region.take_event3(queue).err(), Some(Error::EqInvalid));
        tables.begin_queue3(queue, 2).expect("there is room");
        let posted: Vec<bool> = (0..3)
            .map(|number| tables.post3(index, event(number), false))
            .collect();
        assert_eq!(posted, [true, true, false]);
        assert!(!tables.is_empty3(index));
        let take = || shown(region.take_event3(queue));
        assert_eq!(take(), Some((event(0), false)));
        assert_eq!(take(), Some((event(1), false)));
        assert_eq!(take(), None);
        assert!(tables.post3(index, event(3), true));
        assert_eq!(shown(region.peek_event3(queue)), Some((event(3), true)));
        assert_eq!(take(), Some((event(3), true)));
        assert!(tables.is_empty3(index));
        tables.end_queue(queue);
        assert_eq!(region.peek_event3(queue).err(), Some(Error::EqInvalid));
        assert!(!tables.post3(index, event(4), false));
    }

    #[test]
    fn whatever_a_client_writes_into_its_queue_the_agent_goes_on() {
        let region = Arc::new(SharedRegion::create().expect("the system has memory"));
        let [tables, ..] = SharedTables::all(&region);
        let [number, ..] = InterfaceNumber::ALL;
        let queue = Handle::new(Kind::EventQueue, number, 1, 0);
        tables.begin_queue3(queue, 4).expect("there is room");
        for range in [0, u64::MAX, 5, 1 << 60] {
            let (ends, _) = region.queue(queue).expect("it is open");
            ends.range
                .store(range, std::sync::atomic::Ordering::Relaxed);
            for number in 0..100 {
                tables.post3(QueueIndex(0), event(number), false);
            }
            while region.take_event3(queue).expect("it is open").is_some() {}
        }
    }
}
