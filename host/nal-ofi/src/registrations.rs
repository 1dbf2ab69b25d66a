//! Memory that peers may read, or that is read into: known to the provider while it
//! is needed, and if that is harmless a little longer.
//!
//! A provider that holds pages in place would go on naming the old pages of memory
//! that is mapped anew at the same address. For such a one nothing is kept beyond
//! its use; they keep caches of their own, and watch the process's mappings. For
//! others a registration only names addresses, and is kept for the next time.

use crate::fabric::{Descriptor, Fabric, Registered, Use};
use crate::frame::Piece;
use lintel_claim::{Claim, Region};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Unused registrations that are kept for the next use.
const MAX_IDLE: usize = 64;
/// Bytes of copies that are kept for the next ones.
const MAX_IDLE_BYTES: u64 = 16 << 20;

/// Names a registration: address, length, use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RegistrationId {
    address: u64,
    length: u64,
    purpose: Use,
}

struct Entry {
    registered: Registered,
    users: u32,
}

/// What is registered now.
pub(crate) struct Registrations {
    entries: FxHashMap<RegistrationId, Entry>,
    /// Those without users, the one used last behind.
    idle: VecDeque<RegistrationId>,
    max_idle: usize,
    copies: Vec<BounceBuffer>,
    /// Copies that the provider may still fill.
    abandoned: Vec<BounceBuffer>,
}

/// Memory of ours, which peers may read.
pub(crate) struct BounceBuffer {
    // Before the memory goes.
    registered: Registered,
    memory: Region,
}

impl Registrations {
    pub(crate) fn new<T>(fabric: &Fabric<T>) -> Registrations {
        let max_idle = if fabric.traits().registration.pinned {
            0
        } else {
            MAX_IDLE
        };
        Registrations {
            entries: FxHashMap::default(),
            idle: VecDeque::new(),
            max_idle,
            copies: Vec::new(),
            abandoned: Vec::new(),
        }
    }

    /// Makes memory known until [`release`](Self::release).
    ///
    /// # Errors
    /// libfabric's number.
    pub(crate) fn hold<T>(
        &mut self,
        fabric: &mut Fabric<T>,
        memory: Claim,
        purpose: Use,
    ) -> Result<RegistrationId, i32> {
        let hold = RegistrationId {
            address: memory.address(),
            length: memory.len(),
            purpose,
        };
        if let Some(entry) = self.entries.get_mut(&hold) {
            entry.users += 1;
            if entry.users == 1 {
                self.idle.retain(|idle| *idle != hold);
            }
            return Ok(hold);
        }
        let registered = match fabric.register(memory, purpose) {
            // There may be a limit: unused ones give way.
            Err(_) if !self.idle.is_empty() => {
                self.evict(0);
                fabric.register(memory, purpose)?
            }
            registered => registered?,
        };
        self.entries.insert(
            hold,
            Entry {
                registered,
                users: 1,
            },
        );
        Ok(hold)
    }

    pub(crate) fn release(&mut self, hold: RegistrationId) {
        let Some(entry) = self.entries.get_mut(&hold) else {
            return;
        };
        entry.users -= 1;
        if entry.users == 0 {
            self.idle.push_back(hold);
            self.evict(self.max_idle);
        }
    }

    /// Forgets unused registrations: peers that still know their keys can't read any more.
    pub(crate) fn forget_idle(&mut self) {
        self.evict(0);
    }

    fn evict(&mut self, most: usize) {
        while self.idle.len() > most {
            if let Some(oldest) = self.idle.pop_front() {
                self.entries.remove(&oldest);
            }
        }
    }

    pub(crate) fn descriptor(&self, hold: RegistrationId) -> Descriptor {
        let entry = self.entries.get(&hold);
        entry.map_or_else(Descriptor::default, |entry| entry.registered.descriptor())
    }

    /// How a peer names that memory.
    pub(crate) fn piece(&self, hold: RegistrationId, memory: Claim) -> Option<Piece> {
        self.entries
            .get(&hold)
            .map(|entry| piece(&entry.registered, memory))
    }

    /// Memory of ours for so many bytes, which peers may read.
    pub(crate) fn bounce_buffer<T>(
        &mut self,
        fabric: &mut Fabric<T>,
        length: u64,
    ) -> Result<BounceBuffer, i32> {
        let fits = |copied: &BounceBuffer| {
            (length..=length.saturating_mul(4)).contains(&copied.memory.len())
        };
        if let Some(index) = self.copies.iter().position(fits) {
            return Ok(self.copies.swap_remove(index));
        }
        let memory = Region::try_new(length.next_power_of_two()).map_err(|_| libc::ENOMEM)?;
        let registered = fabric.register(memory.claim(), Use::Lent)?;
        Ok(BounceBuffer { registered, memory })
    }

    /// Keeps it for the next one, if there isn't enough already.
    pub(crate) fn give_back(&mut self, copied: BounceBuffer) {
        let idle: u64 = self.copies.iter().map(|copied| copied.memory.len()).sum();
        if idle + copied.memory.len() <= MAX_IDLE_BYTES {
            self.copies.push(copied);
        }
    }

    /// Keeps memory of ours that must not be used again: the provider may still fill it.
    pub(crate) fn abandon(&mut self, copied: BounceBuffer) {
        self.abandoned.push(copied);
    }
}

impl BounceBuffer {
    pub(crate) fn claim(&self) -> Claim {
        self.memory.claim()
    }

    /// How a peer names its first bytes.
    pub(crate) fn piece(&self, length: u64) -> Piece {
        piece(&self.registered, self.claim().slice(0, length))
    }
}

fn piece(registered: &Registered, memory: Claim) -> Piece {
    Piece {
        name: registered.name(memory),
        length: memory.len(),
        key: registered.key(),
    }
}
