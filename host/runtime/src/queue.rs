//! Event queues of a process that is its own engine's owner: on its heap.

use lintel_bridge::{QueueEnds, Slots, Taken};
use lintel_types::Event;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// Events in a chunk; chunks are made when they are first needed.
const CHUNK: usize = 256;
const CHUNKS: usize = 512;
pub(crate) const SLOTS: u64 = (CHUNK * CHUNKS) as u64;
/// The most events that a queue can be asked to hold.
pub(crate) const MAX_EVENTS: u64 = SLOTS / 2;

type Chunk<const WORDS: usize> = OnceLock<Box<[[AtomicU64; WORDS]; CHUNK]>>;

/// A queue of events of so many words.
pub(crate) struct EventQueue<const WORDS: usize = { Event::WORDS }> {
    pub(crate) ends: QueueEnds,
    pub(crate) chunks: Chunks<WORDS>,
}

/// The slots of a queue.
pub(crate) struct Chunks<const WORDS: usize>(OnceLock<Box<[Chunk<WORDS>]>>);

impl<const WORDS: usize> Default for EventQueue<WORDS> {
    fn default() -> Self {
        EventQueue {
            ends: QueueEnds::default(),
            chunks: Chunks(OnceLock::new()),
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
        let chunks = self
            .0
            .get_or_init(|| (0..CHUNKS).map(|_| OnceLock::new()).collect());
        let chunk = chunks[index / CHUNK].get_or_init(new_chunk);
        &chunk[index % CHUNK]
    }
}

fn new_chunk<const WORDS: usize>() -> Box<[[AtomicU64; WORDS]; CHUNK]> {
    let slot = |_| std::array::from_fn(|_| AtomicU64::new(0));
    let slots: Vec<[AtomicU64; WORDS]> = (0..CHUNK).map(slot).collect();
    slots
        .into_boxed_slice()
        .try_into()
        .expect("it has CHUNK slots")
}
