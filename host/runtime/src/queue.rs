//! Event queues: written under the core's lock, read without it.

use lintel_types::Event;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Events in a chunk; chunks are made when they are first needed.
const CHUNK: usize = 256;
const CHUNKS: usize = 512;
const SLOTS: u64 = (CHUNK * CHUNKS) as u64;
/// The most events that a queue can hold.
pub(crate) const MOST_EVENTS: u64 = SLOTS;
/// Slots that a queue that runs empty again and again keeps to.
const WARM: u64 = 64;

type Slot = [AtomicU64; Event::WORDS];
type Chunk = OnceLock<Box<[Slot; CHUNK]>>;

/// A queue of events. When it is full the oldest makes way (Portals 4.3,
/// PtlEQAlloc), and the next reader is told.
#[derive(Default)]
pub(crate) struct EventQueue {
    /// The handle that it has now, or [`FREE`].
    handle: AtomicU32,
    /// Events asked for.
    count: AtomicU32,
    /// Further events, reserved for flow control.
    reserve: AtomicU32,
    head: AtomicU64,
    tail: AtomicU64,
    dropped: AtomicBool,
    chunks: OnceLock<Box<[Chunk]>>,
}

/// An event as words, and whether others before it were lost.
pub struct Taken {
    words: [u64; Event::WORDS],
    /// Events before it were lost.
    pub dropped: bool,
}

impl Taken {
    /// The event.
    #[inline]
    pub fn event(&self) -> Event {
        Event::from_words(&self.words)
    }

    /// The event as words, in the order of its fields in memory.
    #[inline]
    pub fn words(&self) -> &[u64; Event::WORDS] {
        &self.words
    }
}

const FREE: u32 = u32::MAX;

impl EventQueue {
    /// Begins a new life under a handle. Called under the core's lock.
    pub(crate) fn begin(&self, handle: u32, count: u64) {
        self.count
            .store(count.clamp(1, MOST_EVENTS / 2) as u32, Ordering::Relaxed);
        self.reserve.store(0, Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed);
        self.head.store(tail, Ordering::Relaxed);
        self.dropped.store(false, Ordering::Relaxed);
        self.handle.store(handle, Ordering::Release);
    }

    pub(crate) fn end(&self) {
        self.handle.store(FREE, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is(&self, handle: u32) -> bool {
        self.handle.load(Ordering::Acquire) == handle && handle != FREE
    }

    /// Events that flow control may post beyond the count.
    pub(crate) fn set_reserve(&self, reserve: usize) {
        self.reserve.store(reserve as u32, Ordering::Relaxed);
    }

    /// How many events fit without touching the reserve.
    pub(crate) fn room(&self) -> usize {
        let used = self.tail.load(Ordering::Relaxed) - self.head.load(Ordering::Acquire);
        u64::from(self.count.load(Ordering::Relaxed)).saturating_sub(used) as usize
    }

    /// Appends an event. Called under the core's lock: there is one writer.
    #[inline(always)]
    pub(crate) fn push(&self, event: &Event) {
        let mut tail = self.tail.load(Ordering::Relaxed);
        let limit = u64::from(self.count.load(Ordering::Relaxed))
            + u64::from(self.reserve.load(Ordering::Relaxed));
        let used = tail - self.head.load(Ordering::Acquire);
        if used == 0 && tail % SLOTS >= WARM {
            tail = self.rewind(tail);
        } else if used >= limit {
            self.drop_oldest(tail - limit);
        }
        for (word, value) in self.slot(tail).iter().zip(event.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
        // Pairs with the Acquire load in pop ("event published").
        self.tail.store(tail + 1, Ordering::Release);
    }

    /// Begins anew at the first slots, which are still in the cache. A reader that
    /// sees the new head before the new tail finds the queue empty, as it is.
    #[cold]
    fn rewind(&self, tail: u64) -> u64 {
        let first = (tail / SLOTS + 1) * SLOTS;
        self.head.store(first, Ordering::Release);
        first
    }

    #[cold]
    fn drop_oldest(&self, oldest: u64) {
        // A reader that takes the event at this moment has made room as well.
        let next = oldest + 1;
        let taken = self
            .head
            .compare_exchange(oldest, next, Ordering::AcqRel, Ordering::Relaxed)
            .is_err();
        if !taken {
            self.dropped.store(true, Ordering::Release);
        }
    }

    /// Whether there is nothing to take.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed) >= self.tail.load(Ordering::Acquire)
    }

    /// Takes the oldest event. Any number of threads may do so.
    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Taken> {
        loop {
            let head = self.head.load(Ordering::Acquire);
            if self.tail.load(Ordering::Acquire) <= head {
                return None;
            }
            let mut words = [0; Event::WORDS];
            for (value, word) in words.iter_mut().zip(self.slot(head)) {
                *value = word.load(Ordering::Relaxed);
            }
            // Fails where another reader, or the writer of a full queue, was here:
            // then the words may be of two events, and are not looked at. Release:
            // the writer may overwrite the slot only after it was read.
            if self
                .head
                .compare_exchange(head, head + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                let dropped = self.dropped.load(Ordering::Relaxed)
                    && self.dropped.swap(false, Ordering::Acquire);
                return Some(Taken { words, dropped });
            }
        }
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> &Slot {
        let index = (position % SLOTS) as usize;
        let chunks = self
            .chunks
            .get_or_init(|| (0..CHUNKS).map(|_| OnceLock::new()).collect());
        let chunk = chunks[index / CHUNK].get_or_init(new_chunk);
        &chunk[index % CHUNK]
    }
}

fn new_chunk() -> Box<[Slot; CHUNK]> {
    let slots: Vec<Slot> = (0..CHUNK)
        .map(|_| std::array::from_fn(|_| AtomicU64::new(0)))
        .collect();
    slots
        .into_boxed_slice()
        .try_into()
        .expect("it has CHUNK slots")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::EventKind;

    fn event(number: u64) -> Event {
        Event {
            user_ptr: number,
            ..Event::new(EventKind::Put)
        }
    }

    fn queue(count: u64) -> EventQueue {
        let queue = EventQueue::default();
        queue.begin(1, count);
        queue
    }

    #[test]
    fn events_leave_in_order() {
        let queue = queue(4);
        (0..4).for_each(|number| queue.push(&event(number)));
        for number in 0..4 {
            let taken = queue.pop().expect("an event is there");
            assert_eq!((taken.event().user_ptr, taken.dropped), (number, false));
        }
        assert!(queue.pop().is_none());
    }

    #[test]
    fn a_full_queue_drops_the_oldest_and_says_so_once() {
        let queue = queue(2);
        (0..5).for_each(|number| queue.push(&event(number)));
        let first = queue.pop().expect("an event is there");
        assert_eq!((first.event().user_ptr, first.dropped), (3, true));
        let second = queue.pop().expect("an event is there");
        assert_eq!((second.event().user_ptr, second.dropped), (4, false));
    }

    #[test]
    fn a_queue_that_runs_empty_keeps_to_its_first_slots() {
        let queue = queue(1000);
        for number in 0..10_000 {
            queue.push(&event(number));
            let taken = queue.pop().expect("an event is there");
            assert_eq!((taken.event().user_ptr, taken.dropped), (number, false));
            assert!(queue.tail.load(Ordering::Relaxed) % SLOTS <= WARM);
        }
    }

    #[test]
    fn every_event_is_taken_by_exactly_one_reader() {
        const COUNT: u64 = 20_000;
        let queue = queue(MOST_EVENTS / 2);
        let sum = AtomicU64::new(0);
        let left = AtomicU64::new(COUNT);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while left.load(Ordering::Relaxed) > 0 {
                        match queue.pop() {
                            Some(taken) => {
                                sum.fetch_add(taken.event().user_ptr, Ordering::Relaxed);
                                left.fetch_sub(1, Ordering::Relaxed);
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
            (0..COUNT).for_each(|number| queue.push(&event(number)));
        });
        assert_eq!(sum.load(Ordering::Relaxed), COUNT * (COUNT - 1) / 2);
    }
}
