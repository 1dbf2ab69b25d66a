//! Queues and counters of one interface in shared pages: the agent's side, which
//! gives them their places, and the client's, which looks.

use crate::counter::CounterCell;
use crate::queue::{QueueEnds, Slot, Slots, Taken};
use crate::region::{COUNTERS, QUEUES, SLOTS, SharedRegion};
use lintel_types::{CounterIndex, CountingEvent, Error, Event, Handle, Kind, QueueIndex, Result};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Slots beyond what a queue was asked for, for flow control.
const RESERVE: u64 = 1024;

/// What shows events and counts of one interface. There is one writer at a time.
pub trait Tables: Send + Sync {
    /// Puts an event into a queue.
    fn post(&self, queue: QueueIndex, event: &Event);
    /// How many events a queue can take without losing one.
    fn free_slots(&self, queue: QueueIndex) -> usize;
    /// Shows a counter's value.
    fn publish(&self, counter: CounterIndex, value: CountingEvent);
    /// Begins a queue.
    ///
    /// # Errors
    /// `NoSpace` where there is none for so many events.
    fn begin_queue(&self, queue: Handle, count: u64) -> Result<()>;
    /// Ends a queue.
    fn end_queue(&self, queue: Handle);
    /// Events that flow control may post beyond a queue's count.
    fn set_reserve(&self, queue: QueueIndex, reserve: usize);
    /// Begins a counter.
    fn begin_counter(&self, counter: Handle);
    /// Ends a counter.
    fn end_counter(&self, counter: Handle);
    /// Nothing lives here any more.
    fn end_all(&self);
}

/// A run of slots, a power of two long: the first in the upper half of the word, the
/// length's logarithm in the lower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SlotRange(u64);

impl SlotRange {
    fn new(first: usize, class: u32) -> SlotRange {
        SlotRange((first as u64) << 32 | u64::from(class))
    }

    fn first(self) -> usize {
        (self.0 >> 32) as usize
    }

    fn class(self) -> u32 {
        self.0 as u32 & 31
    }

    /// The slots themselves; one that exists, where the word is nonsense.
    fn of(self, region: &SharedRegion) -> SlotSlice<'_> {
        let end = self.first().saturating_add(1 << self.class());
        let slots = region.slots();
        SlotSlice(slots.get(self.first()..end).unwrap_or(&slots[..1]))
    }
}

/// The slots of one queue.
struct SlotSlice<'a>(&'a [Slot]);

impl Slots for SlotSlice<'_> {
    #[inline]
    fn count(&self) -> u64 {
        self.0.len() as u64
    }

    #[inline]
    fn slot(&self, position: u64) -> &Slot {
        &self.0[(position & (self.count() - 1)) as usize]
    }
}

/// Which slots are free.
#[derive(Debug)]
struct SlotPool {
    fresh: usize,
    /// Given back, by class.
    back: [Vec<usize>; 32],
}

impl SlotPool {
    fn take(&mut self, class: u32) -> Option<SlotRange> {
        if let Some(first) = self.back[class as usize].pop() {
            return Some(SlotRange::new(first, class));
        }
        let first = self.fresh;
        let end = first.checked_add(1 << class).filter(|end| *end <= SLOTS)?;
        self.fresh = end;
        Some(SlotRange::new(first, class))
    }

    fn release(&mut self, place: SlotRange) {
        self.back[place.class() as usize].push(place.first());
    }
}

/// What the agent writes to, for one interface of a client.
#[derive(Debug)]
pub struct SharedTables {
    region: Arc<SharedRegion>,
    interface: usize,
    /// The agent's own word where queues lie; 0 for those that don't live.
    places: Box<[AtomicU64]>,
    /// Counters below this have been used.
    counters: AtomicUsize,
    pool: Arc<Mutex<SlotPool>>,
}

impl SharedTables {
    /// The boards of a client's four interfaces.
    pub fn all(region: &Arc<SharedRegion>) -> [SharedTables; 4] {
        let pool = Arc::new(Mutex::new(SlotPool {
            fresh: 0,
            back: Default::default(),
        }));
        std::array::from_fn(|interface| SharedTables {
            region: region.clone(),
            interface,
            places: (0..QUEUES).map(|_| AtomicU64::new(0)).collect(),
            counters: 0.into(),
            pool: pool.clone(),
        })
    }

    fn end_at(&self, index: usize) {
        if let (Some(ends), Some(own)) = (self.ends(index), self.places.get(index)) {
            ends.end();
            match own.swap(0, Ordering::Relaxed) {
                0 => {}
                place => self.pool(|pool| pool.release(SlotRange(place))),
            }
        }
    }

    fn queue(&self, index: QueueIndex) -> Option<(&QueueEnds, SlotSlice<'_>)> {
        let place = self.places.get(index.position())?.load(Ordering::Relaxed);
        let ends = self.ends(index.position())?;
        (place != 0).then(|| (ends, SlotRange(place).of(&self.region)))
    }

    fn ends(&self, index: usize) -> Option<&QueueEnds> {
        self.region.layout().interfaces[self.interface]
            .queues
            .get(index)
    }

    fn counter(&self, index: CounterIndex) -> Option<&CounterCell> {
        let interface = &self.region.layout().interfaces[self.interface];
        interface.counters.get(index.position())
    }

    fn pool<R>(&self, f: impl FnOnce(&mut SlotPool) -> R) -> R {
        f(&mut self.pool.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tables for SharedTables {
    fn begin_queue(&self, handle: Handle, count: u64) -> Result<()> {
        let index = handle.index() as usize;
        let (Some(ends), Some(own)) = (self.ends(index), self.places.get(index)) else {
            return Err(Error::NoSpace);
        };
        let slots = count.saturating_add(RESERVE).min(1 << 31);
        let class = slots.next_power_of_two().trailing_zeros();
        let place = self.pool(|pool| pool.take(class)).ok_or(Error::NoSpace)?;
        own.store(place.0, Ordering::Relaxed);
        ends.place.store(place.0, Ordering::Relaxed);
        ends.begin(handle.0, count);
        Ok(())
    }

    fn end_queue(&self, handle: Handle) {
        self.end_at(handle.index() as usize);
    }

    fn set_reserve(&self, queue: QueueIndex, reserve: usize) {
        if let Some(ends) = self.ends(queue.position()) {
            ends.set_reserve(reserve.min(RESERVE as usize));
        }
    }

    fn post(&self, queue: QueueIndex, event: &Event) {
        let Some((ends, slots)) = self.queue(queue) else {
            return;
        };
        ends.push(&slots, event);
    }

    fn free_slots(&self, queue: QueueIndex) -> usize {
        self.ends(queue.position()).map_or(0, QueueEnds::free_slots)
    }

    fn begin_counter(&self, handle: Handle) {
        if let Some(cell) = self.counter(CounterIndex(handle.index())) {
            cell.begin(handle);
            let used = handle.index() as usize + 1;
            self.counters.fetch_max(used, Ordering::Relaxed);
        }
    }

    fn end_counter(&self, handle: Handle) {
        if let Some(cell) = self.counter(CounterIndex(handle.index())) {
            cell.end();
        }
    }

    fn publish(&self, counter: CounterIndex, value: CountingEvent) {
        if let Some(cell) = self.counter(counter) {
            cell.set(value);
        }
    }

    fn end_all(&self) {
        (0..QUEUES).for_each(|index| self.end_at(index));
        let interface = &self.region.layout().interfaces[self.interface];
        // Not those that were never touched: they would get memory by it.
        let used = self.counters.load(Ordering::Relaxed);
        interface
            .counters
            .iter()
            .take(used)
            .for_each(CounterCell::end);
    }
}

impl SharedRegion {
    /// Takes the next event of a live queue; `Ok(None)` where there is none.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live queue.
    #[inline]
    pub fn take_event(&self, handle: Handle) -> Result<Option<Taken>> {
        let interface = &self.layout().interfaces[handle.interface().position()];
        match interface.queues.get(handle.index() as usize) {
            Some(ends) if handle.is(Kind::EventQueue) && ends.is(handle.0) => {
                let place = SlotRange(ends.place.load(Ordering::Relaxed));
                Ok(ends.pop(&place.of(self)))
            }
            _ => Err(Error::ArgInvalid),
        }
    }

    /// The value of a live counter.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live counter.
    #[inline]
    pub fn counter_value(&self, handle: Handle) -> Result<CountingEvent> {
        let interface = &self.layout().interfaces[handle.interface().position()];
        match interface.counters.get(handle.index() as usize) {
            Some(cell) if handle.is(Kind::Counter) && cell.is(handle) => Ok(cell.value()),
            _ => Err(Error::ArgInvalid),
        }
    }
}

const _: () = assert!(COUNTERS <= 65536 && QUEUES <= 65536);
