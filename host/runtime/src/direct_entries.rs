//! Direct entries of this process: which are published, and which may never be.

use lintel_claim::{Claim, Key};
use lintel_engine4::DirectSpec;
use lintel_nal_shm::{self as shm, CopyKey, Counts, DirectMemory, MemoryName, ShmNal, Wanted};
use lintel_presence::shareable;
use lintel_types::{CounterIndex, Handle, InterfaceNumber, PortalIndex};

/// What peers may access by themselves.
#[derive(Default)]
pub(crate) struct DirectEntries {
    published: Vec<DirectEntry>,
    /// Whether one of these or of those below has a counter.
    has_counters: bool,
    /// Peers may count at an entry that was published since this was last asked.
    has_news: bool,
    /// Withdrawn, but peers may still access their memory, and count or announce that.
    leaving: Vec<DirectEntry>,
    /// Entries that the engine itself may unlink.
    barred: Vec<Handle>,
}

/// An entry that peers access by themselves.
pub(crate) struct DirectEntry {
    handle: Handle,
    /// As peers see it.
    entry: shm::DirectEntry,
    /// Its memory.
    span: Claim,
    /// Its slot in the table that peers read.
    slot: usize,
    /// The counter of its messages, and what peers have counted at its slot as far as that was
    /// added to the counter.
    counter: Option<CounterIndex>,
    counted: u64,
}

impl DirectEntry {
    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }

    pub(crate) fn interface(&self) -> InterfaceNumber {
        self.handle.interface()
    }

    /// Whether it counts at that counter.
    pub(crate) fn counts_at(&self, counter: Handle) -> bool {
        let (number, index) = (counter.interface(), CounterIndex(counter.index()));
        self.interface() == number && self.counter == Some(index)
    }

    /// Whether it lies in that mapping of this process.
    pub(crate) fn is_in(&self, id: i32) -> bool {
        matches!(self.entry.memory, DirectMemory::Shared(name) if name.id == id)
    }

    pub(crate) fn is_on(&self, interface: InterfaceNumber, portal: PortalIndex) -> bool {
        self.interface() == interface && self.entry.portal == portal
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

    /// An entry that was [barred](Self::bar) may be published again.
    pub(crate) fn unbar(&mut self, handle: Handle) {
        self.barred.retain(|barred| *barred != handle);
    }

    /// Publishes an entry that posts nothing and whose memory peers can map or, with a key for
    /// copies by the system, another one; nothing for others, or if the table is full.
    pub(crate) fn publish(
        &mut self,
        near: &mut ShmNal,
        handle: Handle,
        spec: &DirectSpec<Claim>,
        key: Option<Key>,
    ) -> Option<()> {
        if !self.leaving.is_empty() {
            // Their slots must not be taken before what was counted there is known.
            return None;
        }
        let shared = shared(spec.span).filter(|_| !spec.posts);
        let (memory, offset) = match (shared, key) {
            (Some(shared), None) => shared,
            (None, Some(key)) => private(spec.span, key),
            _ => return None,
        };
        let entry = shm::DirectEntry {
            interface: handle.interface(),
            portal: spec.portal,
            takes_puts: spec.takes_puts,
            takes_gets: spec.takes_gets,
            match_bits: spec.match_bits,
            ignore_bits: spec.ignore_bits,
            memory,
            offset,
            length: spec.span.len(),
            counts: match spec.counter {
                None => Counts::Nothing,
                Some((_, false)) => Counts::Operations,
                Some((_, true)) => Counts::Bytes,
            },
            is_announced: spec.posts,
        };
        let slot = near.publish(&entry)?;
        self.has_counters |= spec.counter.is_some();
        self.has_news |= spec.counter.is_some();
        self.published.push(DirectEntry {
            handle,
            entry,
            span: spec.span,
            slot,
            counter: spec.counter.map(|(counter, _)| counter),
            counted: near.direct_count(slot),
        });
        Some(())
    }

    /// Withdraws entries. Whether peers may still access one of them, perhaps since it was withdrawn
    /// before.
    pub(crate) fn withdraw(
        &mut self,
        near: &mut ShmNal,
        which: impl Fn(&DirectEntry) -> bool,
    ) -> bool {
        let all = std::mem::take(&mut self.published);
        let (leaving, published): (Vec<_>, Vec<_>) = all.into_iter().partition(&which);
        self.published = published;
        leaving.iter().for_each(|entry| near.withdraw(entry.slot));
        self.leaving.extend(leaving);
        self.leaving.iter().any(which)
    }

    /// Whether peers have announced what they did with entries that were withdrawn.
    pub(crate) fn are_leaving_announced(&self) -> bool {
        self.leaving.iter().any(|e| e.entry.is_announced)
    }

    /// Forgets the entries that were withdrawn: no peer accesses them any more.
    pub(crate) fn forget_withdrawn(&mut self) {
        self.leaving.clear();
        self.has_counters = self.published.iter().any(|e| e.counter.is_some());
    }

    /// The memory of an own entry that a message wants, if it gets all of it; and the counter
    /// that counts it, with how much.
    #[inline]
    pub(crate) fn find(&self, wanted: &Wanted) -> Option<(Claim, Option<(CounterIndex, u64)>)> {
        let takes = |direct: &&DirectEntry| {
            let entry = &direct.entry;
            entry.takes(wanted.interface, wanted.portal, wanted.match_bits)
        };
        let direct = self.published.iter().find(takes)?;
        if let DirectMemory::Private(_) = direct.entry.memory {
            // The engine knows whether all of it can be touched.
            return None;
        }
        let by = direct.entry.counts.of(wanted.length);
        let place = direct.span.slice(wanted.offset, wanted.length);
        let is_taken = direct.entry.grants(wanted.puts, wanted.gets)
            && direct.entry.contains(wanted.offset, wanted.length);
        is_taken.then_some((place, direct.counter.zip(by)))
    }

    /// Whether none is published, and peers have left all that were.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.published.is_empty() && self.leaving.is_empty()
    }

    /// Whether peers may count something.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        self.has_counters
    }

    /// Whether an entry that counts was published since this was last asked.
    #[inline(always)]
    pub(crate) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.has_news)
    }

    /// The slots of published entries that count, each with what was taken of its count.
    pub(crate) fn taken_counts(&self) -> impl Iterator<Item = (usize, u64)> {
        let counting = self.published.iter().filter(|e| e.counter.is_some());
        counting.map(|entry| (entry.slot, entry.counted))
    }

    /// What peers have counted at an entry since the last call, if they have.
    pub(crate) fn take_count(&mut self, near: &ShmNal) -> Option<(Handle, u64)> {
        let entries = self.published.iter_mut().chain(&mut self.leaving);
        for entry in entries.filter(|entry| entry.counter.is_some()) {
            let count = near.direct_count(entry.slot);
            let by = count.wrapping_sub(entry.counted);
            if by > 0 {
                entry.counted = count;
                return Some((entry.handle, by));
            }
        }
        None
    }
}

/// Memory that peers can map, and where a span begins in it.
fn shared(span: Claim) -> Option<(DirectMemory, u64)> {
    let place = shareable().find(span.address(), span.len())?;
    let name = MemoryName {
        id: place.id,
        is_made: place.is_made,
        nonce: place.nonce,
        bytes: place.bytes,
    };
    Some((DirectMemory::Shared(name), place.offset))
}

/// Memory that the system copies for peers that know a key, and where a span begins.
fn private(span: Claim, key: Key) -> (DirectMemory, u64) {
    let Key { address, nonce } = key;
    let memory = DirectMemory::Private(CopyKey { address, nonce });
    (memory, span.address())
}
