//! Event queues of a process that is its own engine's owner: on its heap.

use lintel_bridge::{QueueEnds, Slot, Slots, Taken};
use lintel_types::Event;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;

/// Events in a chunk; chunks are made when they are first needed.
const CHUNK: usize = 256;
const CHUNKS: usize = 512;
const SLOTS: u64 = (CHUNK * CHUNKS) as u64;
/// The most events that a queue can be asked to hold.
pub(crate) const MAX_EVENTS: u64 = SLOTS / 2;

type Chunk = OnceLock<Box<[Slot; CHUNK]>>;

/// A queue of events.
#[derive(Default)]
pub(crate) struct EventQueue {
    pub(crate) ends: QueueEnds,
    chunks: Chunks,
}

#[derive(Default)]
struct Chunks(OnceLock<Box<[Chunk]>>);

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

impl Slots for Chunks {
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

fn new_chunk() -> Box<[Slot; CHUNK]> {
    let slots: Vec<Slot> = (0..CHUNK).map(|_| Slot::default()).collect();
    slots
        .into_boxed_slice()
        .try_into()
        .expect("it has CHUNK slots")
}
