//! Event queues of a process that is its own engine's owner: on its heap.

use lintel_bridge::{QueueEnds, Slots, Taken};
use lintel_types::Event;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// Events in a chunk; chunks are made when they are first needed.
const CHUNK: usize = 256;
/// Chunks at the beginning, which most queues never leave: an empty queue goes back there.
const NEAR: usize = 512;
/// Chunks of long queues: programs ask for a million events.
const FAR: usize = 8192 - NEAR;
pub(crate) const SLOTS: u64 = (CHUNK * (NEAR + FAR)) as u64;
/// The most events that a queue can be asked to hold.
pub(crate) const MAX_EVENTS: u64 = SLOTS / 2;

type Chunk<const WORDS: usize> = OnceLock<Box<[[AtomicU64; WORDS]; CHUNK]>>;

/// A queue of events of so many words.
pub(crate) struct EventQueue<const WORDS: usize = { Event::WORDS }> {
    pub(crate) ends: QueueEnds,
    pub(crate) chunks: Chunks<WORDS>,
}

/// The slots of a queue.
pub(crate) struct Chunks<const WORDS: usize> {
    /// The first of them, which a queue that keeps running empty never leaves.
    first: Chunk<WORDS>,
    near: OnceLock<Box<[Chunk<WORDS>]>>,
    far: OnceLock<Box<[Chunk<WORDS>]>>,
}

impl<const WORDS: usize> Default for EventQueue<WORDS> {
    fn default() -> Self {
        EventQueue {
            ends: QueueEnds::default(),
            chunks: Chunks {
                first: OnceLock::new(),
                near: OnceLock::new(),
                far: OnceLock::new(),
            },
        }
    }
}

impl EventQueue {
    #[inline(always)]
    pub(crate) fn push(&self, event: &Event) {
        self.ends.push(&self.chunks, event.to_words());
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<Taken> {
        self.ends.pop(&self.chunks)
    }
}

impl<const WORDS: usize> Slots for Chunks<WORDS> {
    #[inline(always)]
    fn count(&self) -> u64 {
        SLOTS
    }

    #[inline(always)]
    fn slot(&self, position: u64) -> &[AtomicU64] {
        let index = (position % SLOTS) as usize;
        let chunk = match index / CHUNK {
            0 => &self.first,
            further => self.further(further),
        };
        &chunk.get_or_init(new_chunk)[index % CHUNK]
    }
}

impl<const WORDS: usize> Chunks<WORDS> {
    #[inline(never)]
    fn further(&self, chunk: usize) -> &Chunk<WORDS> {
        match chunk.checked_sub(NEAR) {
            None => &self.near.get_or_init(|| new_chunks(NEAR))[chunk],
            Some(chunk) => &self.far.get_or_init(|| new_chunks(FAR))[chunk],
        }
    }
}

fn new_chunks<const WORDS: usize>(count: usize) -> Box<[Chunk<WORDS>]> {
    (0..count).map(|_| OnceLock::new()).collect()
}

fn new_chunk<const WORDS: usize>() -> Box<[[AtomicU64; WORDS]; CHUNK]> {
    let slot = |_| std::array::from_fn(|_| AtomicU64::new(0));
    let slots: Vec<[AtomicU64; WORDS]> = (0..CHUNK).map(slot).collect();
    slots
        .into_boxed_slice()
        .try_into()
        .expect("it has CHUNK slots")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Qthreads asks for 1,048,576 events.
    #[test]
    fn a_queue_of_a_million_events_keeps_more_than_its_near_chunks_hold() {
        const { assert!(MAX_EVENTS >= 1 << 20) };
        let queue: EventQueue = EventQueue::default();
        queue.ends.begin(7, 1 << 20);
        let pushed = (CHUNK * NEAR) as u64 + 1000;
        for number in 0..pushed {
            queue.ends.push(&queue.chunks, [number; Event::WORDS]);
        }
        for number in 0..pushed {
            let taken = queue.pop().expect("as many events as were pushed");
            assert!(!taken.dropped);
            assert_eq!(*taken.words(), [number; Event::WORDS]);
        }
        assert!(queue.pop().is_none());
    }
}
