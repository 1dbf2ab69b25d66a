//! What callers read without the core's lock: queues and counters.

use crate::queue::EventQueue;
use lintel_bridge::{CounterCell, Tables};
use lintel_types::{
    CounterIndex, CountingEvent, Error, Event, Handle, Kind, Limits, QueueIndex, Result,
};
use std::sync::OnceLock;

const QUEUES: usize = 64;
const COUNTERS: usize = 256;

/// The tables of one interface on the heap. They outlive it, since a caller may still
/// look; a handle of the past finds nothing.
#[derive(Default)]
pub struct LocalTables {
    queues: ChunkedTable<EventQueue, QUEUES>,
    counters: ChunkedTable<CounterCell, COUNTERS>,
}

/// Up to 65,536 things under stable numbers, made in chunks of `N`.
struct ChunkedTable<T, const N: usize> {
    chunks: OnceLock<Box<[Chunk<T>]>>,
}

type Chunk<T> = OnceLock<Box<[T]>>;

impl<T, const N: usize> Default for ChunkedTable<T, N> {
    fn default() -> Self {
        ChunkedTable {
            chunks: OnceLock::new(),
        }
    }
}

impl<T: Default, const N: usize> ChunkedTable<T, N> {
    fn get_or_make(&self, index: u16) -> &T {
        let chunks = self
            .chunks
            .get_or_init(|| (0..65536 / N).map(|_| OnceLock::new()).collect());
        let chunk =
            chunks[index as usize / N].get_or_init(|| (0..N).map(|_| T::default()).collect());
        &chunk[index as usize % N]
    }

    #[inline]
    fn get(&self, index: u16) -> Option<&T> {
        self.chunks.get()?[index as usize / N]
            .get()
            .map(|chunk| &chunk[index as usize % N])
    }

    fn each(&self, f: impl Fn(&T)) {
        let chunks = self.chunks.get().into_iter().flatten();
        chunks.filter_map(OnceLock::get).flatten().for_each(f);
    }
}

impl LocalTables {
    #[inline]
    pub(crate) fn queue(&self, handle: Handle) -> Result<&EventQueue> {
        match self.queues.get(handle.index()) {
            Some(queue) if handle.is(Kind::EventQueue) && queue.ends.is(handle.0) => Ok(queue),
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

    #[inline]
    pub(crate) fn queue_at(&self, index: QueueIndex) -> &EventQueue {
        match self.queues.get(index.0) {
            Some(queue) => queue,
            None => self.queues.get_or_make(index.0),
        }
    }

    #[inline]
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
