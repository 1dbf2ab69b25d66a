//! Event queues: written by one, read by any number of threads without a lock.
//!
//! This file has the rules, and the owner of a queue has the storage: a process keeps its
//! events on its heap, an agent in the region that it shares with its client. The client
//! may write anything there, so nothing that is read from a queue is trusted: numbers wrap,
//! and slots are found by [`Slots`], which knows its own bounds.

use crate::sync::{AtomicU32, AtomicU64, Ordering};
use lintel_types::Event;

/// Words of an event that a slot holds: all of them, fewer in loom's models.
const SLOT_WORDS: usize = if cfg!(loom) { 2 } else { Event::WORDS };

/// An event of Portals 4 as a queue holds it.
pub type Slot = [AtomicU64; SLOT_WORDS];

/// Slots that a queue uses over and over while it keeps running empty: those stay in the
/// cache.
const WARM: u64 = if cfg!(loom) { 1 } else { 64 };
/// In place of the handle of a queue that isn't open.
const FREE: u32 = u32::MAX;

/// The storage of a queue.
pub trait Slots {
    /// Number of slots, a power of two.
    fn count(&self) -> u64;
    /// The words of a position's slot; any number is a position.
    fn slot(&self, position: u64) -> &[AtomicU64];
}

/// The two ends of a queue. If it is full, the oldest event is overwritten (Portals
/// 4.3, PtlEQAlloc), and the next event that is taken shows that.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct QueueEnds {
    /// The handle under which it is open, or [`FREE`].
    handle: AtomicU32,
    /// Events that the caller of PtlEQAlloc asked for.
    count: AtomicU32,
    /// Further events, reserved for flow control.
    reserve: AtomicU32,
    /// Not 0 if events were lost since the last event was taken.
    dropped: AtomicU32,
    head: AtomicU64,
    tail: AtomicU64,
    /// Which slots are the queue's, in a shared region; 0 on a process's own heap.
    pub(crate) range: AtomicU64,
}

impl Default for QueueEnds {
    fn default() -> Self {
        QueueEnds {
            handle: AtomicU32::new(FREE),
            count: AtomicU32::new(0),
            reserve: AtomicU32::new(0),
            dropped: AtomicU32::new(0),
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            range: AtomicU64::new(0),
        }
    }
}

/// An event that was taken, still as words; by default those of Portals 4.
pub struct Taken<const WORDS: usize = { Event::WORDS }> {
    pub(crate) words: [u64; WORDS],
    /// Events before this one were lost.
    pub dropped: bool,
}

impl From<&Event> for Taken {
    #[inline(always)]
    fn from(event: &Event) -> Taken {
        Taken {
            words: event.to_words(),
            dropped: false,
        }
    }
}

impl Taken {
    /// The event as a structure.
    #[inline]
    pub fn event(&self) -> Event {
        Event::from_words(&self.words)
    }
}

impl<const WORDS: usize> Taken<WORDS> {
    /// The event as words, in the order of its fields in memory.
    #[inline]
    pub fn words(&self) -> &[u64; WORDS] {
        &self.words
    }
}

impl QueueEnds {
    /// Opens the queue under a handle, for `count` events.
    pub fn begin(&self, handle: u32, count: u64) {
        let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        self.count.store(count, Ordering::Relaxed);
        self.reserve.store(0, Ordering::Relaxed);
        let tail = self.tail.load(Ordering::Relaxed);
        self.head.store(tail, Ordering::Relaxed);
        self.dropped.store(0, Ordering::Relaxed);
        self.handle.store(handle, Ordering::Release);
    }

    /// Closes the queue: a caller with its handle finds nothing.
    pub fn end(&self) {
        self.handle.store(FREE, Ordering::Release);
    }

    /// Whether it is open under that handle.
    #[inline]
    pub fn is(&self, handle: u32) -> bool {
        self.handle.load(Ordering::Acquire) == handle && handle != FREE
    }

    /// Sets how many events flow control may post beyond the count.
    pub fn set_reserve(&self, reserve: usize) {
        let reserve = u32::try_from(reserve).unwrap_or(u32::MAX);
        self.reserve.store(reserve, Ordering::Relaxed);
    }

    /// Events that fit, in the reserve too.
    #[inline(always)]
    pub fn free_slots(&self) -> usize {
        self.limit().saturating_sub(self.used()) as usize
    }

    /// Events that it holds.
    pub fn len(&self) -> usize {
        self.used().min(self.limit()) as usize
    }

    #[inline(always)]
    fn used(&self) -> u64 {
        let head = self.head.load(Ordering::Acquire);
        self.tail.load(Ordering::Relaxed).wrapping_sub(head)
    }

    /// Events beyond which the oldest one is dropped.
    #[inline(always)]
    fn limit(&self) -> u64 {
        let [count, reserve] =
            [&self.count, &self.reserve].map(|events| u64::from(events.load(Ordering::Relaxed)));
        count + reserve
    }

    /// Appends an event, as words. One thread at a time may do so.
    #[inline(always)]
    pub fn push<const WORDS: usize>(&self, slots: &impl Slots, event: [u64; WORDS]) {
        let mut tail = self.tail.load(Ordering::Relaxed);
        let limit = self.limit();
        let used = tail.wrapping_sub(self.head.load(Ordering::Acquire));
        if used == 0 && tail % slots.count() >= WARM {
            tail = self.rewind(tail, slots.count());
        } else if used >= limit {
            self.drop_oldest(tail.wrapping_sub(limit));
        }
        self.publish(tail, slots.slot(tail), event);
    }

    /// Where the next event goes, if one fits; what is reserved for flow control isn't touched.
    /// [`publish`](Self::publish) follows.
    #[inline(always)]
    pub(crate) fn room(&self, slots: &impl Slots) -> Option<u64> {
        let tail = self.tail.load(Ordering::Relaxed);
        let used = tail.wrapping_sub(self.head.load(Ordering::Acquire));
        if used >= u64::from(self.count.load(Ordering::Relaxed)) {
            return None;
        }
        match used == 0 && tail % slots.count() >= WARM {
            true => Some(self.rewind(tail, slots.count())),
            false => Some(tail),
        }
    }

    /// Writes an event into the slot behind the last one, and shows it to readers.
    #[inline(always)]
    pub(crate) fn publish<const WORDS: usize>(
        &self,
        tail: u64,
        slot: &[AtomicU64],
        event: [u64; WORDS],
    ) {
        for (word, value) in slot.iter().zip(event) {
            word.store(value, Ordering::Relaxed);
        }
        // Pairs with the Acquire load in pop ("event published").
        self.tail.store(tail.wrapping_add(1), Ordering::Release);
    }

    /// Goes on at the first slots, which are still in the cache. A reader that sees the
    /// new head before the new tail finds the queue empty, as it is.
    #[cold]
    fn rewind(&self, tail: u64, slots: u64) -> u64 {
        let first = (tail / slots).wrapping_add(1).wrapping_mul(slots);
        self.head.store(first, Ordering::Release);
        first
    }

    #[cold]
    fn drop_oldest(&self, oldest: u64) {
        // If it fails, a reader has taken the event at this moment, which frees a slot, too.
        let next = oldest.wrapping_add(1);
        let taken = self
            .head
            .compare_exchange(oldest, next, Ordering::AcqRel, Ordering::Relaxed)
            .is_err();
        if !taken {
            self.dropped.store(1, Ordering::Release);
        }
    }

    /// Whether no event is there to be taken.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed) >= self.tail.load(Ordering::Acquire)
    }

    /// Whether the next event to be posted is the next one to be taken, and none before it was lost.
    #[inline(always)]
    pub fn is_clear(&self) -> bool {
        self.is_empty() && self.dropped.load(Ordering::Relaxed) == 0
    }

    /// Takes the oldest event. Any number of threads may do so.
    #[inline(always)]
    pub fn pop<const WORDS: usize>(&self, slots: &impl Slots) -> Option<Taken<WORDS>> {
        let words = self.take(slots)?;
        let dropped = self.dropped.load(Ordering::Relaxed) != 0
            && self.dropped.swap(0, Ordering::Acquire) != 0;
        Some(Taken { words, dropped })
    }

    /// The words of the oldest event, which leaves.
    #[inline(always)]
    pub(crate) fn take<const WORDS: usize>(&self, slots: &impl Slots) -> Option<[u64; WORDS]> {
        loop {
            let (head, words) = self.first(slots)?;
            // Fails if another reader, or the writer of a full queue, took this event:
            // then the words may be of two events, and are not looked at. Release:
            // the writer may overwrite the slot only after it was read.
            if self
                .head
                .compare_exchange(
                    head,
                    head.wrapping_add(1),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                )
                .is_ok()
            {
                return Some(words);
            }
        }
    }

    /// The oldest event, which stays.
    pub fn peek<const WORDS: usize>(&self, slots: &impl Slots) -> Option<Taken<WORDS>> {
        loop {
            let (head, words) = self.first(slots)?;
            // As in pop: if it was taken meanwhile, the words may be of two events. An exchange
            // for the same value, since a load could come before those of the words.
            let same = self
                .head
                .compare_exchange(head, head, Ordering::AcqRel, Ordering::Relaxed);
            if same.is_ok() {
                let dropped = self.dropped.load(Ordering::Relaxed) != 0;
                return Some(Taken { words, dropped });
            }
        }
    }

    /// The position of the oldest event, and its words, which another reader or the writer
    /// may be changing.
    #[inline(always)]
    fn first<const WORDS: usize>(&self, slots: &impl Slots) -> Option<(u64, [u64; WORDS])> {
        let head = self.head.load(Ordering::Acquire);
        if self.tail.load(Ordering::Acquire) <= head {
            return None;
        }
        let mut words = [0; WORDS];
        for (value, word) in words.iter_mut().zip(slots.slot(head)) {
            *value = word.load(Ordering::Relaxed);
        }
        Some((head, words))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use lintel_types::EventKind;

    struct Fixed(Box<[Slot]>);

    impl Slots for Fixed {
        fn count(&self) -> u64 {
            self.0.len() as u64
        }
        fn slot(&self, position: u64) -> &[AtomicU64] {
            &self.0[(position % self.count()) as usize]
        }
    }

    fn event(number: u64) -> [u64; Event::WORDS] {
        let event = Event {
            user_ptr: number,
            ..Event::new(EventKind::Put)
        };
        event.to_words()
    }

    fn pop(ends: &QueueEnds, slots: &Fixed) -> Option<Taken> {
        ends.pop(slots)
    }

    fn queue(count: u64) -> (QueueEnds, Fixed) {
        let ends = QueueEnds::default();
        ends.begin(1, count);
        let slots = (0..count.next_power_of_two().max(128)).map(|_| Slot::default());
        (ends, Fixed(slots.collect()))
    }

    #[test]
    fn events_leave_in_order() {
        let (ends, slots) = queue(4);
        (0..4).for_each(|number| ends.push(&slots, event(number)));
        for number in 0..4 {
            let taken = pop(&ends, &slots).expect("an event is there");
            assert_eq!((taken.event().user_ptr, taken.dropped), (number, false));
        }
        assert!(pop(&ends, &slots).is_none());
    }

    #[test]
    fn an_event_that_is_looked_at_stays() {
        let (ends, slots) = queue(4);
        assert!(ends.peek::<{ Event::WORDS }>(&slots).is_none());
        ends.push(&slots, event(7));
        for _ in 0..2 {
            let seen: Taken = ends.peek(&slots).expect("an event is there");
            assert_eq!((seen.event().user_ptr, seen.dropped), (7, false));
        }
        let taken = pop(&ends, &slots).expect("an event is there");
        assert_eq!(taken.event().user_ptr, 7);
        assert!(ends.is_empty());
    }

    #[test]
    fn a_full_queue_drops_the_oldest_and_says_so_once() {
        let (ends, slots) = queue(2);
        (0..5).for_each(|number| ends.push(&slots, event(number)));
        let first = pop(&ends, &slots).expect("an event is there");
        assert_eq!((first.event().user_ptr, first.dropped), (3, true));
        let second = pop(&ends, &slots).expect("an event is there");
        assert_eq!((second.event().user_ptr, second.dropped), (4, false));
    }

    #[test]
    fn a_queue_that_runs_empty_keeps_to_its_first_slots() {
        let (ends, slots) = queue(1000);
        for number in 0..10_000 {
            ends.push(&slots, event(number));
            let taken = pop(&ends, &slots).expect("an event is there");
            assert_eq!((taken.event().user_ptr, taken.dropped), (number, false));
            assert!(ends.tail.load(Ordering::Relaxed) % slots.count() <= WARM);
        }
    }

    #[test]
    fn every_event_is_taken_by_exactly_one_reader() {
        const COUNT: u64 = 20_000;
        let (ends, slots) = queue(1 << 15);
        let (sum, left) = (AtomicU64::new(0), AtomicU64::new(COUNT));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while left.load(Ordering::Relaxed) > 0 {
                        match pop(&ends, &slots) {
                            Some(taken) => {
                                sum.fetch_add(taken.event().user_ptr, Ordering::Relaxed);
                                left.fetch_sub(1, Ordering::Relaxed);
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                });
            }
            (0..COUNT).for_each(|number| ends.push(&slots, event(number)));
        });
        assert_eq!(sum.load(Ordering::Relaxed), COUNT * (COUNT - 1) / 2);
    }

    #[test]
    fn whatever_a_reader_writes_into_the_ends_a_push_comes_back() {
        let numbers = [0, 1, 63, 64, u64::MAX / 2, u64::MAX - 1, u64::MAX];
        for head in numbers {
            for tail in numbers {
                let (ends, slots) = queue(16);
                ends.head.store(head, Ordering::Relaxed);
                ends.tail.store(tail, Ordering::Relaxed);
                ends.count.store(head as u32, Ordering::Relaxed);
                ends.reserve.store(u32::MAX, Ordering::Relaxed);
                (0..200).for_each(|number| ends.push(&slots, event(number)));
                ends.free_slots();
            }
        }
    }
}
