//! Direct entries of this process: which are published, and which may never be.

use lintel_claim::Claim;
use lintel_engine4::DirectSpec;
use lintel_nal_shm::{self as shm, MemoryName, ShmNal};
use lintel_presence::shareable;
use lintel_types::{Handle, InterfaceNumber, PortalIndex};

/// What peers may access by themselves.
#[derive(Default)]
pub(crate) struct DirectEntries {
    published: Vec<DirectEntry>,
    /// Entries that the engine itself may unlink.
    barred: Vec<Handle>,
}

/// An entry that peers access by themselves.
pub(crate) struct DirectEntry {
    handle: Handle,
    portal: PortalIndex,
    /// The number of the mapping that it lies in.
    memory: i32,
    /// Its slot in the table that peers read.
    slot: usize,
}

impl DirectEntry {
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn interface(&self) -> InterfaceNumber {
        self.handle.interface()
    }

    pub(crate) fn memory(&self) -> i32 {
        self.memory
    }

    pub(crate) fn is_on(&self, interface: InterfaceNumber, portal: PortalIndex) -> bool {
        self.interface() == interface && self.portal == portal
    }
}

impl DirectEntries {
    /// Whether an entry may be published, and isn't.
    pub(crate) fn may_publish(&self, handle: Handle) -> bool {
        !self.barred.contains(&handle) && self.published.iter().all(|e| e.handle != handle)
    }

    /// An entry is never published from now on; of those barred before, the live ones stay so.
    pub(crate) fn bar(&mut self, handle: Handle, is_live: impl Fn(Handle) -> bool) {
        self.barred.retain(|barred| is_live(*barred));
        self.barred.push(handle);
    }

    /// Publishes an entry; nothing if its memory can't be mapped by peers, or the table is full.
    pub(crate) fn publish(
        &mut self,
        near: &ShmNal,
        handle: Handle,
        spec: &DirectSpec<Claim>,
    ) -> Option<()> {
        let (address, length) = (spec.span.address(), spec.span.len());
        let place = shareable().find(address, length)?;
        let memory = MemoryName {
            id: place.id,
            nonce: place.nonce,
            bytes: place.bytes,
        };
        let slot = near.publish(&shm::DirectEntry {
            interface: handle.interface(),
            portal: spec.portal,
            takes_puts: spec.takes_puts,
            takes_gets: spec.takes_gets,
            match_bits: spec.match_bits,
            ignore_bits: spec.ignore_bits,
            memory,
            offset: place.offset,
            length,
        })?;
        self.published.push(DirectEntry {
            handle,
            portal: spec.portal,
            memory: place.id,
            slot,
        });
        Some(())
    }

    /// Withdraws entries. Whether there was one.
    pub(crate) fn withdraw(
        &mut self,
        near: &mut ShmNal,
        which: impl Fn(&DirectEntry) -> bool,
    ) -> bool {
        let before = self.published.len();
        self.published.retain(|entry| {
            let goes = which(entry);
            if goes {
                near.withdraw(entry.slot);
            }
            !goes
        });
        self.published.len() < before
    }
}
