//! Buffers that frames are sent from and come into, in one piece of memory.

use crate::fabric::{Descriptor, Fabric, Registered, Use};
use lintel_claim::{Claim, Region};

/// Bytes of a frame, at most. Providers move messages up to this size in one go.
pub(crate) const FRAME: u64 = 16384;

/// The buffers of a process. The first ones are for frames that come.
pub(crate) struct Frames {
    /// Where the provider wants its users' buffers registered.
    registered: Option<Registered>,
    memory: Region,
    receives: u32,
    free: Vec<u32>,
    sends: u32,
}

impl Frames {
    pub(crate) fn new<T>(fabric: &mut Fabric<T>, receives: u32, sends: u32) -> Result<Frames, i32> {
        let memory = Region::new(u64::from(receives + sends) * FRAME);
        fabric.keep(&memory);
        let registered = match fabric.traits().registration.local {
            true => Some(fabric.register(memory.claim(), Use::Frames)?),
            false => None,
        };
        Ok(Frames {
            registered,
            memory,
            receives,
            free: (receives..receives + sends).rev().collect(),
            sends,
        })
    }

    /// The buffers that frames come into.
    pub(crate) fn receives(&self) -> std::ops::Range<u32> {
        0..self.receives
    }

    #[inline]
    pub(crate) fn claim(&self, buffer: u32) -> Claim {
        self.memory.claim().slice(u64::from(buffer) * FRAME, FRAME)
    }

    pub(crate) fn descriptor(&self) -> Descriptor {
        self.registered
            .as_ref()
            .map_or_else(Descriptor::default, Registered::descriptor)
    }

    /// A buffer to send from; nothing where all are under way.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    #[inline]
    pub(crate) fn give_back(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Frames under way.
    pub(crate) fn under_way(&self) -> usize {
        self.sends as usize - self.free.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.memory.len()
    }
}
