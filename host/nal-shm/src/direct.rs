//! Direct entries: those of this process, which peers access by themselves, and those of peers.

use crate::layout::{FREE, LANES, Lanes};
use crate::outbound::Peer;
use crate::private_entries::PrivateEntries;
use crate::{Lookout, ShmNal};
use lintel_claim::{Claim, WordClaim};
use lintel_direct::{Counts, Entry, Fence, Memory, MemoryName};
use lintel_presence::{PeerMemory, barrier};
use lintel_types::{InterfaceNumber, PortalIndex, ProcessId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest message that is carried out without the target, bytes: so long does who withdraws
/// an entry wait for a copy, some 400 µs.
pub const MAX_DIRECT: u64 = 4 << 20;
/// Accesses to a peer after which it is checked whether the peer lives.
const CHECK_EVERY: i32 = 4096;
/// Numbers of views so far, of all peers of this process.
static VIEWS: AtomicU64 = AtomicU64::new(0);

/// What a message wants of its target's memory.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The interface that it is sent to.
    pub interface: InterfaceNumber,
    /// The portal table index.
    pub portal: PortalIndex,
    /// Its match bits.
    pub match_bits: u64,
    /// Whether it changes the entry's memory.
    pub puts: bool,
    /// Whether it returns what is there.
    pub gets: bool,
    /// Bytes from the start of the entry.
    pub offset: u64,
    /// Bytes of memory.
    pub length: u64,
}

/// The direct entries of a peer, as they were at some version of its table.
#[derive(Default)]
pub(crate) struct View {
    /// No other view has that number, nor has one of another peer; 0 as long as there is none.
    number: u64,
    version: u32,
    entries: Vec<Mapped>,
    /// Those whose memory can't be mapped.
    pub(crate) private: PrivateEntries,
}

/// Whether memory of a peer may be accessed without a further look at the peer.
#[derive(Default)]
pub(crate) struct Quick {
    /// The version of the peer's table if all that was sent to it has been read and no access needs
    /// a fence of its own; else 0, which no table has that names entries.
    version: u32,
    /// Accesses that may follow until it is checked whether the peer lives.
    left: i32,
}

impl Quick {
    /// Something is sent, or the peer has ended: it has to be looked at before the next access.
    #[inline(always)]
    pub(crate) fn end(&mut self) {
        self.version = 0;
    }
}

/// A direct entry of a peer as it was found, for operations that want the same of it as the one
/// that it was found for.
#[derive(Clone, Copy, Debug)]
pub struct DirectPlace {
    /// Where the peer is kept, if its view is that one still.
    peer: u32,
    /// The number of the peer's view; `claim` is mapped as long as that is kept.
    view: u64,
    slot: usize,
    counts: Counts,
    /// The memory of the entry.
    claim: Claim,
}

/// A [`DirectPlace`] that is accessed in few instructions.
#[derive(Clone, Copy, Debug)]
pub struct QuickPlace {
    peer: u32,
    /// As that of the place, or one that no view has.
    view: u64,
    claim: WordClaim,
}

impl DirectPlace {
    /// A place where nothing can be accessed.
    pub const NONE: DirectPlace = DirectPlace {
        peer: u32::MAX,
        view: u64::MAX,
        slot: 0,
        counts: Counts::Nothing,
        claim: Claim::empty(),
    };

    /// The place for quick accesses, if it has a word and doesn't count.
    pub fn quick(&self) -> Option<QuickPlace> {
        let claim = WordClaim::new(self.claim);
        let is_quick = !claim.is_empty() && self.counts == Counts::Nothing;
        is_quick.then_some(QuickPlace {
            peer: self.peer,
            view: self.view,
            claim,
        })
    }

    /// Has the processor fetch what lies at that offset, to be changed: it takes about as long to
    /// find out whether it may be as the memory does to come.
    #[inline(always)]
    pub fn prefetch_to_write(&self, offset: u64) {
        self.claim.prefetch_to_write(offset);
    }
}

impl QuickPlace {
    /// A place where nothing can be accessed.
    pub const NONE: QuickPlace = QuickPlace {
        peer: u32::MAX,
        view: u64::MAX,
        claim: WordClaim::new(Claim::empty()),
    };

    /// The word at an offset, if it lies in the entry. It may be accessed by
    /// [`access_quickly`](ShmNal::access_quickly) alone.
    #[inline(always)]
    pub fn word(&self, offset: u64) -> Option<Claim> {
        self.claim.word(offset)
    }

    /// As [`word`](Self::word), so many bytes.
    #[inline(always)]
    pub fn part(&self, offset: u64, length: u64) -> Option<Claim> {
        self.claim.part(offset, length)
    }
}

struct Mapped {
    slot: usize,
    entry: Entry,
    name: MemoryName,
    /// The entry's memory, as long as `memory` is kept.
    claim: Claim,
    memory: Arc<PeerMemory>,
}

impl View {
    /// Maps what the table has named since; what it no longer names is unmapped.
    #[cold]
    fn refresh(&mut self, (version, named): (u32, Vec<(usize, Entry)>)) {
        let known = std::mem::take(&mut self.entries);
        self.version = version;
        self.private.clear();
        self.number = VIEWS.fetch_add(1, Ordering::Relaxed) + 1;
        for (slot, entry) in named {
            match entry.memory {
                Memory::Shared(name) => self.map(slot, entry, name, &known),
                Memory::Private(key) => self.private.add(slot, entry, key),
            }
        }
    }

    fn map(&mut self, slot: usize, entry: Entry, name: MemoryName, known: &[Mapped]) {
        let memory = find(known, &name)
            .or_else(|| find(&self.entries, &name))
            .or_else(|| attach(&name));
        // What can't be mapped here is reached by messages.
        let Some(memory) = memory else { return };
        // SAFETY: the mapping has `name.bytes` bytes, which the entry doesn't exceed
        // (`Table::read`); they stay mapped beside the claim, and no reference to them is ever
        // made.
        let all = unsafe { Claim::new(memory.start(), name.bytes) };
        self.entries.push(Mapped {
            slot,
            entry,
            name,
            claim: all.slice(entry.offset, entry.length),
            memory,
        });
    }

    /// The version of the table that it shows.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// The first entry that takes a message, if it allows what the message does.
    #[inline]
    fn find(&self, wanted: &Wanted) -> Option<&Mapped> {
        let takes = |mapped: &&Mapped| {
            let entry = &mapped.entry;
            entry.takes(wanted.interface, wanted.portal, wanted.match_bits)
        };
        let mapped = self.entries.iter().find(takes)?;
        let is_granted = mapped.entry.grants(wanted.puts, wanted.gets);
        is_granted.then_some(mapped)
    }
}

fn find(known: &[Mapped], memory: &MemoryName) -> Option<Arc<PeerMemory>> {
    let found = known.iter().find(|known| known.name == *memory)?;
    Some(found.memory.clone())
}

fn attach(name: &MemoryName) -> Option<Arc<PeerMemory>> {
    let memory = match name.is_made {
        true => PeerMemory::attach(name.id, name.nonce, name.bytes),
        false => PeerMemory::attach_program(name.id, name.nonce, name.bytes),
    };
    memory.ok().map(Arc::new)
}

impl Peer {
    /// Whether its table has changed since it was last looked at.
    #[inline(always)]
    pub(crate) fn has_new_direct(&self) -> bool {
        self.segment.direct().version() != self.view.version
    }

    /// Accesses so many bytes from that offset of an entry, while its owner doesn't withdraw it;
    /// nothing if the message has to be sent, or `access` gives nothing. Nothing that was sent
    /// before is overtaken.
    #[inline(always)]
    fn access<R>(
        &mut self,
        place: &DirectPlace,
        (offset, length): (u64, u64),
        access: impl FnOnce(Claim) -> Option<R>,
    ) -> Option<R> {
        let claim = place.claim.part(offset, length)?;
        if self.view.number != place.view || !self.may_access() {
            return None;
        }
        let table = self.segment.direct();
        let word = &self.segment.lane(self.lane).accessing;
        if !word.begin(table, self.view.version, fence_by(self.needs_fence)) {
            return None;
        }
        let result = access(claim);
        let count = place.counts.of(length);
        if let (Some(by), Some(_)) = (count, &result) {
            table.add(place.slot, by);
        }
        word.end();
        if count.is_some() {
            self.ring_waiting_caller();
        }
        result
    }

    /// Whether the peer lives, as far as it is known, and has read all that was sent to it. Then it
    /// may be accessed quickly, until something is sent.
    #[inline(always)]
    fn may_access(&mut self) -> bool {
        if self.waits() || self.closed || !self.has_read_all() {
            return false;
        }
        self.quick.left -= 1;
        if self.quick.left <= 0 {
            self.quick.left = CHECK_EVERY;
            self.look_whether_to_fence();
            if !self.segment.is_owner_alive() {
                self.on_ended();
                return false;
            }
        }
        if !self.needs_fence {
            self.quick.version = self.view.version;
        }
        true
    }

    /// As [`access`](Self::access), as long as the peer need not be looked at for that.
    #[inline(always)]
    fn access_quickly<R>(
        &mut self,
        place: &QuickPlace,
        access: impl FnOnce() -> Option<R>,
    ) -> Option<R> {
        if self.view.number != place.view {
            return None;
        }
        self.quick.left -= 1;
        if self.quick.left < 0 {
            return None;
        }
        let word = &self.segment.lane(self.lane).accessing;
        if !word.begin(self.segment.direct(), self.quick.version, Fence::OfOwner) {
            return None;
        }
        let result = access();
        word.end();
        result
    }
}

/// Who orders an access against its withdrawal.
#[inline(always)]
pub(crate) fn fence_by(needs_fence: bool) -> Fence {
    match needs_fence {
        true => Fence::Own,
        false => Fence::OfOwner,
    }
}

/// Accesses of peers that had begun when an entry was withdrawn: lane, and value of its word.
#[derive(Default)]
pub(crate) struct Accesses(Vec<(usize, u32)>);

impl ShmNal {
    /// Lets peers access an entry of this process by themselves. Returns its slot in the table;
    /// nothing if that is full.
    pub fn publish(&mut self, entry: &Entry) -> Option<usize> {
        let slot = self.segment.direct().publish(entry)?;
        // This process has its private memory before it anyway.
        if let Memory::Shared(_) = entry.memory {
            self.shared_slots.push(slot);
            self.looks_at_direct = true;
        }
        Some(slot)
    }

    /// No access to the entry in that slot begins any more; those that have begun are over
    /// once [`is_quiet`](Self::is_quiet).
    pub fn withdraw(&mut self, slot: usize) {
        self.segment.direct().withdraw(slot);
        self.shared_slots.retain(|shared| *shared != slot);
        self.look_for_direct();
        barrier();
        for lane in 0..LANES {
            if let Some(access) = self.segment.lane(lane).accessing.under_way() {
                self.accesses.0.push((lane, access));
            }
        }
    }

    /// Whether no living peer accesses memory of an entry that was withdrawn.
    pub fn is_quiet(&mut self) -> bool {
        if self.accesses.0.is_empty() {
            return true;
        }
        let segment = &self.segment;
        let is_over = |lane: usize, access| segment.lane(lane).accessing.is_over(access);
        self.accesses
            .0
            .retain(|(lane, access)| !is_over(*lane, *access));
        if self.accesses.0.is_empty() {
            return true;
        }
        // Lanes that were opened lately.
        self.scan_lanes(self.segment.changes());
        let mut accesses = std::mem::take(&mut self.accesses.0);
        accesses.retain(|(lane, _)| self.is_sender_alive(*lane));
        self.accesses.0 = accesses;
        self.accesses.0.is_empty()
    }

    fn is_sender_alive(&mut self, lane: usize) -> bool {
        let mut known = self.inbound.iter_mut().chain(&mut self.quarantined);
        match known.find(|known| known.lane() == lane) {
            Some(known) => {
                known.check_sender();
                known.is_sender_alive()
            }
            // One that isn't admitted yet may live.
            None => self.segment.lane(lane).state.load(Ordering::Acquire) != FREE,
        }
    }

    /// Whether some process, perhaps this one, may have direct entries. Those of a peer are
    /// noticed when something is sent to it.
    #[inline(always)]
    pub fn looks_at_direct(&self) -> bool {
        self.looks_at_direct
    }

    /// Maps what a peer has named since, and finds out whether any has direct entries.
    #[cold]
    #[inline(never)]
    pub(crate) fn renew_view(&mut self, index: usize) {
        let (peer, can_copy) = (&mut self.peers[index], self.direct);
        if let Some(table) = peer.segment.direct().read() {
            peer.view.refresh(table);
            match can_copy && !peer.view.private.is_empty() {
                true => peer.look_into_private(self.segment.job()),
                false => peer.view.private.clear(),
            }
        }
        self.look_for_direct();
    }

    fn look_for_direct(&mut self) {
        let may_have = |peer: &Peer| !peer.view.entries.is_empty() || peer.has_new_direct();
        self.looks_at_direct = !self.shared_slots.is_empty() || self.peers.iter().any(may_have);
        self.look_for_private();
    }

    /// Finds out from which length on to ask whether a peer is away.
    pub(crate) fn look_for_private(&mut self) {
        let all = self.peers.iter().map(Peer::away_from);
        self.away_from = all.min().unwrap_or(u64::MAX);
    }

    /// What peers have counted at the entry of this process in that slot, modulo 2^64.
    pub fn direct_count(&self, slot: usize) -> u64 {
        self.segment.direct().count(slot)
    }

    /// Has threads look for what peers have counted at slots of the table of direct entries, each with
    /// what was taken of its count.
    pub fn watch_counts(&self, lookout: &Lookout, counts: impl Iterator<Item = (usize, u64)>) {
        let table = self.segment.direct();
        let counts = counts.map(|(slot, taken)| (table.count_word(slot), taken));
        // SAFETY: the table lies in this process's own segment, whose addresses stay readable as long
        // as the process lives (`Segment::create`).
        unsafe { lookout.watch_counts(counts) };
    }

    /// Where a peer that something was sent to is kept; it is probably the last one.
    #[inline(always)]
    pub(crate) fn index_of(&mut self, process: ProcessId) -> Option<usize> {
        let index = match self.last {
            Some((last, index)) if last == process => return Some(index),
            _ => *self.by_process.get(&process)?,
        };
        self.last = Some((process, index));
        Some(index)
    }

    /// The direct entry of that process that takes a message; nothing if there is none, or the
    /// message has to be sent.
    #[inline]
    pub fn find(&mut self, process: ProcessId, wanted: &Wanted) -> Option<DirectPlace> {
        let peer = self.index_of(process)?;
        if self.peers[peer].has_new_direct() {
            self.renew_view(peer);
        }
        let view = &self.peers[peer].view;
        let found = view.find(wanted)?;
        Some(DirectPlace {
            peer: peer as u32,
            view: view.number,
            slot: found.slot,
            counts: found.entry.counts,
            claim: found.claim,
        })
    }

    /// Accesses so many bytes from that offset of a direct entry that was found before; nothing if
    /// it is no longer the same, the message has to be sent, or `access` gives nothing.
    #[inline(always)]
    pub fn access_at<R>(
        &mut self,
        place: &DirectPlace,
        range: (u64, u64),
        access: impl FnOnce(Claim) -> Option<R>,
    ) -> Option<R> {
        self.peers
            .get_mut(place.peer as usize)?
            .access(place, range, access)
    }

    /// Has `access` access a [`word`](QuickPlace::word) or [`part`](QuickPlace::part) of a place, in
    /// few instructions; nothing if the place is no longer the same, the peer has to be looked at
    /// before, or `access` gives nothing.
    #[inline(always)]
    pub fn access_quickly<R>(
        &mut self,
        place: &QuickPlace,
        access: impl FnOnce() -> Option<R>,
    ) -> Option<R> {
        let peer = self.peers.get_mut(place.peer as usize)?;
        peer.access_quickly(place, access)
    }

    /// Accesses memory of a direct entry of that process; nothing if the message has to be sent,
    /// or `access` gives nothing.
    #[inline]
    pub fn access<R>(
        &mut self,
        process: ProcessId,
        wanted: &Wanted,
        access: impl FnOnce(Claim) -> Option<R>,
    ) -> Option<R> {
        let place = self.find(process, wanted)?;
        self.access_at(&place, (wanted.offset, wanted.length), access)
    }
}
