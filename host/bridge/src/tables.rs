//! Queues and counters in a shared region: the agent's side, which gives each queue its
//! slots, and the client's side, which reads.

use crate::counter::CounterCell;
use crate::queue::{QueueEnds, Slot, Slots, Taken};
use crate::region::{COUNTERS, QUEUES, SLOTS, SharedRegion};
use lintel_types::{CounterIndex, CountingEvent, Error, Event, Handle, Kind, QueueIndex, Result};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Slots that each queue gets beyond its count, for the events of flow control.
const RESERVE: u64 = 1024;

/// Where one interface publishes its events and counts. One thread at a time writes.
pub trait Tables: Send + Sync {
    /// Appends an event to a queue.
    fn post(&self, queue: QueueIndex, event: &Event);
    /// Events that a queue can take without losing one.
    fn free_slots(&self, queue: QueueIndex) -> usize;
    /// Events that a queue holds.
    fn queued(&self, queue: QueueIndex) -> usize;
    /// Publishes a counter's value.
    fn publish(&self, counter: CounterIndex, value: CountingEvent);
    /// Opens a queue for `count` events.
    ///
    /// # Errors
    /// `NoSpace` if so many slots aren't free.
    fn begin_queue(&self, queue: Handle, count: u64) -> Result<()>;
    /// Closes a queue; its handle is stale from now on.
    fn end_queue(&self, queue: Handle);
    /// Sets how many events flow control may post beyond a queue's count.
    fn set_reserve(&self, queue: QueueIndex, reserve: usize);
    /// Opens a counter at zero.
    fn begin_counter(&self, counter: Handle);
    /// Closes a counter; its handle is stale from now on.
    fn end_counter(&self, counter: Handle);
    /// Closes all queues and counters.
    fn end_all(&self);
}

/// A run of slots, a power of two long: the first in the upper half of the word, the
/// length's logarithm in the lower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SlotRange(pub(crate) u64);

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

    /// The slots themselves; if the word is invalid, one slot that exists.
    fn of(self, region: &SharedRegion) -> SlotSlice<'_> {
        SlotSlice(self.slots(region, 1))
    }

    /// As [`of`](Self::of); if the word is invalid, as many slots as `least`.
    pub(crate) fn slots(self, region: &SharedRegion, least: usize) -> &[Slot] {
        let end = self.first().saturating_add(1 << self.class());
        let slots = region.slots();
        let own = slots.get(self.first()..end);
        own.filter(|own| own.len() >= least)
            .unwrap_or(&slots[..least])
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
    fn slot(&self, position: u64) -> &[AtomicU64] {
        &self.0[(position & (self.count() - 1)) as usize]
    }
}

/// The free slots of a region. A run that was released is reused for its length only.
#[derive(Debug)]
struct SlotPool {
    /// Slots from here on were never used.
    fresh: usize,
    /// First slots of released runs, by the logarithm of their length.
    released: [Vec<usize>; 32],
}

impl SlotPool {
    fn take(&mut self, class: u32) -> Option<SlotRange> {
        if let Some(first) = self.released[class as usize].pop() {
            return Some(SlotRange::new(first, class));
        }
        let first = self.fresh;
        let end = first.checked_add(1 << class).filter(|end| *end <= SLOTS)?;
        self.fresh = end;
        Some(SlotRange::new(first, class))
    }

    fn release(&mut self, range: SlotRange) {
        self.released[range.class() as usize].push(range.first());
    }
}

/// The agent's side of one interface of a client.
#[derive(Debug)]
pub struct SharedTables {
    region: Arc<SharedRegion>,
    interface: usize,
    /// Slots of the open queues, 0 for the others: the agent's own copy, since the client
    /// can overwrite the region's.
    ranges: Box<[AtomicU64]>,
    /// Counters below this one have been used.
    counters: AtomicUsize,
    pool: Arc<Mutex<SlotPool>>,
}

impl SharedTables {
    /// The tables of a client's four interfaces.
    pub fn all(region: &Arc<SharedRegion>) -> [SharedTables; 4] {
        let pool = Arc::new(Mutex::new(SlotPool {
            fresh: 0,
            released: Default::default(),
        }));
        std::array::from_fn(|interface| SharedTables {
            region: region.clone(),
            interface,
            ranges: (0..QUEUES).map(|_| AtomicU64::new(0)).collect(),
            counters: 0.into(),
            pool: pool.clone(),
        })
    }

    fn end_at(&self, index: usize) {
        if let (Some(ends), Some(own)) = (self.ends(index), self.ranges.get(index)) {
            ends.end();
            match own.swap(0, Ordering::Relaxed) {
                0 => {}
                range => self.pool(|pool| pool.release(SlotRange(range))),
            }
        }
    }

    fn queue(&self, index: QueueIndex) -> Option<(&QueueEnds, SlotSlice<'_>)> {
        let (ends, range) = self.open_queue(index)?;
        Some((ends, range.of(&self.region)))
    }

    /// An open queue, and which slots are its own.
    pub(crate) fn open_queue(&self, index: QueueIndex) -> Option<(&QueueEnds, SlotRange)> {
        let range = self.ranges.get(index.position())?.load(Ordering::Relaxed);
        let ends = self.ends(index.position())?;
        (range != 0).then_some((ends, SlotRange(range)))
    }

    pub(crate) fn region(&self) -> &SharedRegion {
        &self.region
    }

    /// Opens a queue for `count` events with so many slots, rounded up to a power of two.
    pub(crate) fn begin_in(&self, handle: Handle, count: u64, slots: u64) -> Result<()> {
        let index = handle.index() as usize;
        let (Some(ends), Some(own)) = (self.ends(index), self.ranges.get(index)) else {
            return Err(Error::NoSpace);
        };
        let class = slots.min(1 << 31).next_power_of_two().trailing_zeros();
        let range = self.pool(|pool| pool.take(class)).ok_or(Error::NoSpace)?;
        own.store(range.0, Ordering::Relaxed);
        ends.range.store(range.0, Ordering::Relaxed);
        ends.begin(handle.0, count);
        Ok(())
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
        self.begin_in(handle, count, count.saturating_add(RESERVE))
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
        ends.push(&slots, event.to_words());
    }

    fn free_slots(&self, queue: QueueIndex) -> usize {
        self.ends(queue.position()).map_or(0, QueueEnds::free_slots)
    }

    fn queued(&self, queue: QueueIndex) -> usize {
        self.ends(queue.position()).map_or(0, QueueEnds::len)
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
        // Counters that were never used have no memory yet, and closing would give them some.
        let used = self.counters.load(Ordering::Relaxed);
        interface
            .counters
            .iter()
            .take(used)
            .for_each(CounterCell::end);
    }
}

impl SharedRegion {
    /// Takes the next event of an open queue, if there is one.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't an open queue.
    #[inline]
    pub fn take_event(&self, handle: Handle) -> Result<Option<Taken>> {
        let (ends, range) = self.queue(handle).ok_or(Error::ArgInvalid)?;
        Ok(ends.pop(&range.of(self)))
    }

    /// An open queue, and which slots are its own.
    #[inline]
    pub(crate) fn queue(&self, handle: Handle) -> Option<(&QueueEnds, SlotRange)> {
        let interface = &self.layout().interfaces[handle.interface().position()];
        let ends = interface.queues.get(handle.index() as usize)?;
        let is_open = handle.is(Kind::EventQueue) && ends.is(handle.0);
        is_open.then(|| (ends, SlotRange(ends.range.load(Ordering::Relaxed))))
    }

    /// The value of an open counter.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't an open counter.
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
