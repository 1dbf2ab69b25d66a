//! Queues and counters of one interface in shared pages: the agent's side, which
//! gives them their places, and the client's, which looks.

use crate::counter::Cell;
use crate::page::{COUNTERS, Page, QUEUES, SLOTS};
use crate::queue::{Ends, Slot, Slots, Taken};
use lintel_types::{CountingEvent, Error, Event, Handle, Kind, Result};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Slots beyond what a queue was asked for, for flow control.
const RESERVE: u64 = 1024;

/// What shows events and counts of one interface. There is one writer at a time.
pub trait Tables: Send + Sync {
    /// Puts an event into a queue.
    fn post(&self, queue: u16, event: &Event);
    /// How many events a queue can take without losing one.
    fn room(&self, queue: u16) -> usize;
    /// Shows a counter's value.
    fn publish(&self, counter: u16, value: CountingEvent);
    /// Begins a queue.
    ///
    /// # Errors
    /// `NoSpace` where there is none for so many events.
    fn begin_queue(&self, queue: Handle, count: u64) -> Result<()>;
    /// Ends a queue.
    fn end_queue(&self, queue: Handle);
    /// Events that flow control may post beyond a queue's count.
    fn set_reserve(&self, queue: u16, reserve: usize);
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
struct Place(u64);

impl Place {
    fn new(first: usize, class: u32) -> Place {
        Place((first as u64) << 32 | u64::from(class))
    }

    fn first(self) -> usize {
        (self.0 >> 32) as usize
    }

    fn class(self) -> u32 {
        self.0 as u32 & 31
    }

    /// The slots themselves; one that exists, where the word is nonsense.
    fn of(self, page: &Page) -> Stretch<'_> {
        let end = self.first().saturating_add(1 << self.class());
        let slots = page.slots();
        Stretch(slots.get(self.first()..end).unwrap_or(&slots[..1]))
    }
}

/// The slots of one queue.
struct Stretch<'a>(&'a [Slot]);

impl Slots for Stretch<'_> {
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
struct Pool {
    fresh: usize,
    /// Given back, by class.
    back: [Vec<usize>; 32],
}

impl Pool {
    fn take(&mut self, class: u32) -> Option<Place> {
        if let Some(first) = self.back[class as usize].pop() {
            return Some(Place::new(first, class));
        }
        let first = self.fresh;
        let end = first.checked_add(1 << class).filter(|end| *end <= SLOTS)?;
        self.fresh = end;
        Some(Place::new(first, class))
    }

    fn give_back(&mut self, place: Place) {
        self.back[place.class() as usize].push(place.first());
    }
}

/// What the agent writes to, for one interface of a client.
#[derive(Debug)]
pub struct Board {
    page: Arc<Page>,
    interface: usize,
    /// The agent's own word where queues lie; 0 for those that don't live.
    places: Box<[AtomicU64]>,
    /// Counters below this have been used.
    counters: AtomicUsize,
    pool: Arc<Mutex<Pool>>,
}

impl Board {
    /// The boards of a client's four interfaces.
    pub fn all(page: &Arc<Page>) -> [Board; 4] {
        let pool = Arc::new(Mutex::new(Pool {
            fresh: 0,
            back: Default::default(),
        }));
        std::array::from_fn(|interface| Board {
            page: page.clone(),
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
                place => self.pool(|pool| pool.give_back(Place(place))),
            }
        }
    }

    fn queue(&self, index: u16) -> Option<(&Ends, Stretch<'_>)> {
        let place = self.places.get(index as usize)?.load(Ordering::Relaxed);
        let ends = self.ends(index as usize)?;
        (place != 0).then(|| (ends, Place(place).of(&self.page)))
    }

    fn ends(&self, index: usize) -> Option<&Ends> {
        self.page.front().interfaces[self.interface]
            .queues
            .get(index)
    }

    fn counter(&self, index: u16) -> Option<&Cell> {
        let interface = &self.page.front().interfaces[self.interface];
        interface.counters.get(index as usize)
    }

    fn pool<R>(&self, f: impl FnOnce(&mut Pool) -> R) -> R {
        f(&mut self.pool.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tables for Board {
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

    fn set_reserve(&self, queue: u16, reserve: usize) {
        if let Some(ends) = self.ends(queue as usize) {
            ends.set_reserve(reserve.min(RESERVE as usize));
        }
    }

    fn post(&self, queue: u16, event: &Event) {
        let Some((ends, slots)) = self.queue(queue) else {
            return;
        };
        ends.push(&slots, event);
    }

    fn room(&self, queue: u16) -> usize {
        self.ends(queue as usize).map_or(0, Ends::room)
    }

    fn begin_counter(&self, handle: Handle) {
        if let Some(cell) = self.counter(handle.index()) {
            cell.begin(handle);
            let used = handle.index() as usize + 1;
            self.counters.fetch_max(used, Ordering::Relaxed);
        }
    }

    fn end_counter(&self, handle: Handle) {
        if let Some(cell) = self.counter(handle.index()) {
            cell.end();
        }
    }

    fn publish(&self, counter: u16, value: CountingEvent) {
        if let Some(cell) = self.counter(counter) {
            cell.set(value);
        }
    }

    fn end_all(&self) {
        (0..QUEUES).for_each(|index| self.end_at(index));
        let interface = &self.page.front().interfaces[self.interface];
        // Not those that were never touched: they would get memory by it.
        let used = self.counters.load(Ordering::Relaxed);
        interface.counters.iter().take(used).for_each(Cell::end);
    }
}

impl Page {
    /// Takes the next event of a live queue; `Ok(None)` where there is none.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live queue.
    #[inline]
    pub fn take_event(&self, handle: Handle) -> Result<Option<Taken>> {
        let interface = &self.front().interfaces[handle.interface() as usize & 3];
        match interface.queues.get(handle.index() as usize) {
            Some(ends) if handle.is(Kind::EventQueue) && ends.is(handle.0) => {
                let place = Place(ends.place.load(Ordering::Relaxed));
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
        let interface = &self.front().interfaces[handle.interface() as usize & 3];
        match interface.counters.get(handle.index() as usize) {
            Some(cell) if handle.is(Kind::Counter) && cell.is(handle) => Ok(cell.value()),
            _ => Err(Error::ArgInvalid),
        }
    }
}

const _: () = assert!(COUNTERS <= 65536 && QUEUES <= 65536);
