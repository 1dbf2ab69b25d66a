//! Buffers that frames are sent from and received into, in one region.

use crate::fabric::{Descriptor, Fabric, Registered, Use};
use crate::frame::{ENTRY, HEADER, MAX_BATCH, PREFIX};
use lintel_claim::{Claim, Region};
use lintel_session::Coalescing;

/// Bytes of a message that go with its header, at most: about what a provider moves
/// at once, without asking its peer. By a part of the provider's name, the first that
/// is found in it; measured with `examples/fabric_pingpong.rs`.
const EAGER: [(&str, u64); 3] = [
    // It cuts messages of more than 16 KiB, the header included.
    ("ofi_rxm", 16384 - PREFIX as u64),
    // Of libfabric 1.18 and later: straight into the posted buffer, however long.
    ("tcp", 65536),
    ("", 16384),
];
/// Messages in flight behind which short ones wait for more.
const COALESCE_IN_FLIGHT: u32 = 4;
/// Bytes of a batch with its header, and of a message in it, at most: what provider shm injects, where a
/// message of 1 KiB gains nothing between near processors, and what `ofi_rxm` doesn't cut.
const BATCH: [(&str, (u64, u64)); 2] = [("shm", (4096, 512)), ("", (16384, 4096))];
/// Buffers begin at multiples of this.
const LINE: u64 = 128;

/// The buffers of a process. The first ones receive.
pub(crate) struct FrameBuffers {
    /// If the provider wants its users' buffers registered.
    registered: Option<Registered>,
    memory: Region,
    /// Bytes of each buffer.
    size: u64,
    eager: u64,
    coalescing: Coalescing,
    receives: u32,
    /// Messages in each buffer that receives.
    messages: Vec<u32>,
    free: Vec<u32>,
    sends: u32,
}

/// The first entry whose part is found in a provider's name.
fn named<T: Copy>(table: &[(&str, T)], provider: &str) -> T {
    let (_, value) = table
        .iter()
        .find(|(part, _)| provider.contains(part))
        .expect("the last is part of any");
    *value
}

impl FrameBuffers {
    pub(crate) fn new<T>(
        fabric: &mut Fabric<T>,
        receives: u32,
        sends: u32,
    ) -> Result<FrameBuffers, i32> {
        let eager = named(&EAGER, fabric.name());
        let (batch, message) = named(&BATCH, fabric.name());
        let coalescing = Coalescing {
            in_flight: COALESCE_IN_FLIGHT,
            message_bytes: ENTRY as u64 + message,
            messages: MAX_BATCH as u32,
            bytes: batch - HEADER as u64,
        };
        let size = (PREFIX as u64 + eager).next_multiple_of(LINE);
        let memory = Region::new(u64::from(receives + sends) * size);
        fabric.keep(&memory);
        let registered = match fabric.traits().registration.local {
            true => Some(fabric.register(memory.claim(), Use::Frames)?),
            false => None,
        };
        Ok(FrameBuffers {
            registered,
            memory,
            size,
            eager,
            coalescing,
            receives,
            messages: vec![0; receives as usize],
            free: (receives..receives + sends).rev().collect(),
            sends,
        })
    }

    /// The buffers that frames are received into.
    pub(crate) fn receives(&self) -> std::ops::Range<u32> {
        0..self.receives
    }

    /// So many messages have arrived in a buffer.
    #[inline]
    pub(crate) fn fill(&mut self, buffer: u32, messages: usize) {
        self.messages[buffer as usize] = messages as u32;
    }

    /// One of them has been dealt with; whether it was the last.
    #[inline]
    pub(crate) fn empty(&mut self, buffer: u32) -> bool {
        let messages = &mut self.messages[buffer as usize];
        *messages -= 1;
        *messages == 0
    }

    #[inline]
    pub(crate) fn claim(&self, buffer: u32) -> Claim {
        let place = u64::from(buffer) * self.size;
        self.memory.claim().slice(place, self.size)
    }

    /// Bytes of a message that go with its header.
    #[inline]
    pub(crate) fn eager(&self) -> u64 {
        self.eager
    }

    /// When messages wait to share a frame.
    #[inline]
    pub(crate) fn coalescing(&self) -> Coalescing {
        self.coalescing
    }

    pub(crate) fn descriptor(&self) -> Descriptor {
        self.registered
            .as_ref()
            .map_or_else(Descriptor::default, Registered::descriptor)
    }

    /// A buffer to send from; `None` if all are in flight.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    #[inline]
    pub(crate) fn give_back(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Frames in flight: their buffers aren't returned yet.
    pub(crate) fn in_flight(&self) -> usize {
        self.sends as usize - self.free.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.memory.len()
    }
}
