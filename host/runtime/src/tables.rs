//! What callers read without the core's lock: queues and counters.

use crate::queue::EventQueue;
use lintel_bridge::{CounterCell, Tables};
use lintel_types::{
    CounterIndex, CountingEvent, Error, Event, Handle, Kind, Limits, QueueIndex, Result,
};
use once_cell::race::OnceBox;
use std::iter::repeat_with;

const QUEUES: usize = 64;
const COUNTERS: usize = 256;

/// The tables of one interface on the heap. They outlive it, since a caller may still
/// look; a handle of the past finds nothing.
pub struct LocalTables {
    queues: ChunkedTable<EventQueue, QUEUES, { 65536 / QUEUES }>,
    counters: ChunkedTable<CounterCell, COUNTERS, { 65536 / COUNTERS }>,
}

/// Up to 65,536 things under stable numbers, made in `CHUNKS` chunks of `N`.
pub(crate) struct ChunkedTable<T, const N: usize, const CHUNKS: usize> {
    chunks: [OnceBox<[T; N]>; CHUNKS],
}

impl<T: Default, const N: usize, const CHUNKS: usize> ChunkedTable<T, N, CHUNKS> {
    pub(crate) const fn new() -> Self {
        ChunkedTable {
            chunks: [const { OnceBox::new() }; CHUNKS],
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn get_or_make(&self, index: u16) -> &T {
        let chunk = self.chunks[index as usize / N].get_or_init(|| boxed(T::default));
        &chunk[index as usize % N]
    }

    #[inline(always)]
    pub(crate) fn get(&self, index: u16) -> Option<&T> {
        let chunk = self.chunks[index as usize / N].get()?;
        Some(&chunk[index as usize % N])
    }

    pub(crate) fn each(&self, f: impl Fn(&T)) {
        let chunks = self.chunks.iter().filter_map(OnceBox::get);
        chunks.flat_map(|chunk| chunk.iter()).for_each(f);
    }
}

/// An array on the heap that was never on the stack.
fn boxed<T, const N: usize>(new: impl FnMut() -> T) -> Box<[T; N]> {
    let all: Vec<T> = repeat_with(new).take(N).collect();
    let Ok(all) = all.into_boxed_slice().try_into() else {
        unreachable!("it has N elements")
    };
    all
}

impl LocalTables {
    pub(crate) const fn new() -> LocalTables {
        LocalTables {
            queues: ChunkedTable::new(),
            counters: ChunkedTable::new(),
        }
    }

    #[inline]
    pub(crate) fn queue(&self, handle: Handle) -> Result<&EventQueue> {
        match self.queues.get(handle.index()) {
            // The handle that it is open under is a queue's.
            Some(queue) if queue.ends.is(handle.0) => Ok(queue),
            _ => Err(Error::ArgInvalid),
        }
    }

    #[inline]
    pub(crate) fn counter(&self, handle: Handle) -> Result<&CounterCell> {
        match self.counters.get(handle.index()) {
            Some(cell) if handle.is(Kind::Counter) && cell.is(handle) => Ok(cell),
            _ => Err(Error::ArgInvalid),
        }
    }

    #[inline(always)]
    pub(crate) fn queue_at(&self, index: QueueIndex) -> &EventQueue {
        match self.queues.get(index.0) {
            Some(queue) => queue,
            None => self.queues.get_or_make(index.0),
        }
    }

    #[inline(always)]
    pub(crate) fn counter_at(&self, index: CounterIndex) -> &CounterCell {
        match self.counters.get(index.0) {
            Some(cell) => cell,
            None => self.counters.get_or_make(index.0),
        }
    }
}

impl Tables for LocalTables {
    #[inline(always)]
    fn post(&self, queue: QueueIndex, event: &Event) {
        self.queue_at(queue).push(event);
    }

    #[inline]
    fn free_slots(&self, queue: QueueIndex) -> usize {
        self.queue_at(queue).ends.free_slots()
    }

    fn queued(&self, queue: QueueIndex) -> usize {
        self.queue_at(queue).ends.len()
    }

    #[inline(always)]
    fn publish(&self, counter: CounterIndex, value: CountingEvent) {
        self.counter_at(counter).set(value);
    }

    fn begin_queue(&self, queue: Handle, count: u64) -> Result<()> {
        self.queue_at(QueueIndex(queue.index()))
            .ends
            .begin(queue.0, count);
        Ok(())
    }

    fn end_queue(&self, queue: Handle) {
        self.queue_at(QueueIndex(queue.index())).ends.end();
    }

    fn set_reserve(&self, queue: QueueIndex, reserve: usize) {
        self.queue_at(queue).ends.set_reserve(reserve);
    }

    fn begin_counter(&self, counter: Handle) {
        self.counter_at(CounterIndex(counter.index()))
            .begin(counter);
    }

    fn end_counter(&self, counter: Handle) {
        self.counter_at(CounterIndex(counter.index())).end();
    }

    fn end_all(&self) {
        self.queues.each(|queue| queue.ends.end());
        self.counters.each(CounterCell::end);
    }
}

// Every index that an engine gives out has its place.
const _: () = assert!(Limits::HIGHEST.max_cts <= 65536 && Limits::HIGHEST.max_eqs <= 65536);

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::{CounterIndex, EventKind, InterfaceNumber, QueueIndex};

    fn handle(kind: Kind, generation: u16, index: u16) -> Handle {
        let [number, ..] = InterfaceNumber::ALL;
        Handle::new(kind, number, generation, index)
    }

    fn event(number: u64) -> Event {
        Event {
            user_ptr: number,
            ..Event::new(EventKind::Put)
        }
    }

    #[test]
    fn a_queue_is_found_by_its_own_handle_alone_and_only_while_it_is_open() {
        let tables = LocalTables::new();
        let queue = handle(Kind::EventQueue, 1, 300);
        assert!(tables.queue(queue).is_err(), "nothing was opened");
        tables.begin_queue(queue, 4).expect("there is memory");
        assert!(tables.queue(queue).is_ok());
        for stale in [
            handle(Kind::EventQueue, 2, 300),
            handle(Kind::EventQueue, 1, 301),
            handle(Kind::Counter, 1, 300),
        ] {
            assert!(tables.queue(stale).is_err());
        }
        tables.end_queue(queue);
        assert!(tables.queue(queue).is_err());
    }

    #[test]
    fn a_queue_keeps_as_many_events_as_it_was_asked_for() {
        let tables = LocalTables::new();
        let queue = handle(Kind::EventQueue, 1, 0);
        let index = QueueIndex::from(0u16);
        // More than one chunk.
        tables.begin_queue(queue, 1000).expect("there is memory");
        (0..1000).for_each(|number| tables.post(index, &event(number)));
        assert_eq!(tables.free_slots(index), 0);
        let found = tables.queue(queue).expect("it is open");
        for number in 0..1000 {
            let taken = found.pop().expect("it was posted");
            assert_eq!((taken.event().user_ptr, taken.dropped), (number, false));
        }
        assert!(found.pop().is_none());
    }

    #[test]
    fn a_counter_shows_what_was_published_and_begins_at_zero() {
        let tables = LocalTables::new();
        let index = CounterIndex::from(5u16);
        let value = CountingEvent {
            success: 7,
            failure: 1,
        };
        for generation in [1, 2] {
            let counter = handle(Kind::Counter, generation, 5);
            tables.begin_counter(counter);
            let shown = || tables.counter(counter).map(CounterCell::value);
            assert_eq!(shown(), Ok(CountingEvent::default()));
            tables.publish(index, value);
            assert_eq!(shown(), Ok(value));
        }
        assert!(tables.counter(handle(Kind::Counter, 1, 5)).is_err());
    }

    #[test]
    fn the_end_of_an_interface_closes_all_that_it_had() {
        let tables = LocalTables::new();
        let (queue, counter) = (
            handle(Kind::EventQueue, 1, 1),
            handle(Kind::Counter, 1, 999),
        );
        tables.begin_queue(queue, 4).expect("there is memory");
        tables.begin_counter(counter);
        tables.end_all();
        assert!(tables.queue(queue).is_err() && tables.counter(counter).is_err());
    }
}
