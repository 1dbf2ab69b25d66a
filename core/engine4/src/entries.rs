//! List entries and match list entries: appending, linking, unlinking (Portals 4.3,
//! sections `List entries and lists` and `Matching list entries and matching lists`).

use crate::portal::Portal;
use crate::unexpected::OverflowReceiver;
use crate::{Host, Interface};
use alloc::vec::Vec;
use lintel_memory::{Buffer, Span};
use lintel_types::{
    CounterIndex, EntryIndex, Error, Event, EventKind, Handle, Kind, List, MeOptions, PortalIndex,
    ProcessId, Result,
};
use lintel_wire::Request;

/// What `PtlMEAppend` or `PtlLEAppend` is given; a list entry matches everything.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "S: Span + serde::Serialize",
        deserialize = "S: Span + serde::Deserialize<'de>"
    ))
)]
pub struct EntrySpec<S> {
    /// Portal table index that it is linked to.
    pub portal: PortalIndex,
    /// The memory that messages are put to and got from.
    pub buffer: Buffer<S>,
    /// The counting event, read only if an option asks for counts.
    pub counter: Handle,
    /// The user whose messages it takes, or `PTL_UID_ANY`.
    pub uid: u32,
    /// Which operations are allowed, and what is reported.
    pub options: MeOptions,
    /// The process or rank whose messages it takes, or a wildcard.
    pub source: ProcessId,
    /// Match bits that a message must carry.
    pub match_bits: u64,
    /// Bits that don't matter.
    pub ignore_bits: u64,
    /// Bytes below which a locally managed entry unlinks.
    pub min_free: u64,
    /// The caller's value, returned in the entry's events.
    pub user_ptr: u64,
}

pub(crate) struct Entry<S> {
    pub(crate) spec: EntrySpec<S>,
    pub(crate) counter: Option<CounterIndex>,
    pub(crate) list: List,
    pub(crate) linked: bool,
    pub(crate) local_offset: u64,
    /// Messages that are landing in it.
    pub(crate) landing: u32,
    /// Unexpected headers whose bytes lie in it.
    pub(crate) unexpected: u32,
}

/// What an entry looks at in a message, the match bits apart: a copy, so that a search
/// doesn't need the request in memory.
#[derive(Clone, Copy)]
pub(crate) struct Arriving {
    from: ProcessId,
    rank: u32,
    offset: u64,
    length: u64,
}

impl Arriving {
    #[inline(always)]
    pub(crate) fn new(from: ProcessId, request: &Request) -> Self {
        Arriving {
            from,
            rank: request.rank,
            offset: request.remote_offset,
            length: request.length,
        }
    }
}

/// Events that a message may cause at its target, at most.
pub const MOST_EVENTS: u32 = 4;

impl<S: Span> Entry<S> {
    /// Whether a message from there and of that size is for this entry, the
    /// match bits apart.
    #[inline(always)]
    pub(crate) fn accepts(&self, logical: bool, arriving: Arriving) -> bool {
        from_source(self.spec.source, logical, arriving.from, arriving.rank)
            && (!self.spec.options.contains(MeOptions::NO_TRUNCATE)
                || self.offset(arriving.offset).saturating_add(arriving.length)
                    <= self.spec.buffer.length())
    }

    #[inline(always)]
    pub(crate) fn offset(&self, remote: u64) -> u64 {
        if self.locally_managed() {
            self.local_offset
        } else {
            remote
        }
    }

    #[inline]
    pub(crate) fn locally_managed(&self) -> bool {
        self.spec.options.contains(MeOptions::MANAGE_LOCAL)
    }

    /// Whether less than `min_free` bytes are left, so that it unlinks (Portals 4.3, section
    /// `Matching list entries and matching lists`, PTL_ME_MANAGE_LOCAL).
    #[inline]
    pub(crate) fn exhausted(&self) -> bool {
        self.locally_managed()
            && self.spec.min_free > 0
            && self.spec.buffer.length().saturating_sub(self.local_offset) < self.spec.min_free
    }

    /// Events that a message to this entry may cause, [`MOST_EVENTS`] at most: its own, and that of an entry that unlinks. On
    /// the overflow list also that the memory is free then, and the overflow event if the header is
    /// received before the message has landed.
    #[inline]
    pub(crate) fn most_events(&self) -> u32 {
        let options = self.spec.options;
        let once = options.contains(MeOptions::USE_ONCE);
        let unlinks = once || (self.locally_managed() && self.spec.min_free > 0);
        let reported = unlinks && !options.contains(MeOptions::EVENT_UNLINK_DISABLE);
        match self.list {
            List::Priority => 1 + u32::from(reported),
            List::Overflow => {
                let remembered = !options.contains(MeOptions::UNEXPECTED_HDR_DISABLE);
                1 + 2 * u32::from(reported) + u32::from(remembered)
            }
        }
    }

    /// Whether messages land in it, or unexpected headers point into it.
    #[inline(always)]
    pub(crate) fn is_in_use(&self) -> bool {
        self.landing > 0 || self.unexpected > 0
    }

    pub(crate) fn receiver(&self) -> OverflowReceiver {
        OverflowReceiver {
            user_ptr: self.spec.user_ptr,
            options: self.spec.options,
            counter: self.counter,
        }
    }
}

/// Whether an entry for `source` takes messages from that process or rank; the wildcards
/// take all (Portals 4.3, section `Matching list entries and matching lists`, match_id).
#[inline(always)]
pub(crate) fn from_source(source: ProcessId, logical: bool, from: ProcessId, rank: u32) -> bool {
    if logical {
        return source.rank() == ProcessId::RANK_ANY || source.rank() == rank;
    }
    (source.nid == ProcessId::NID_ANY || source.nid == from.nid)
        && (source.pid == ProcessId::PID_ANY || source.pid == from.pid)
}

impl<S: Span> Interface<S> {
    /// PtlLEAppend, PtlMEAppend.
    ///
    /// # Errors
    /// `ArgInvalid` for an index that isn't allocated, unknown options, a counter
    /// that isn't live but asked for, too long a vector; `NoSpace` beyond
    /// `max_entries`; `ListTooLong` beyond `max_list_size`.
    #[inline(always)]
    pub fn append<H: Host<S>>(
        &mut self,
        spec: &EntrySpec<S>,
        list: List,
        host: &mut H,
    ) -> Result<Handle> {
        let handle = self.reserve_entry(spec, list)?;
        self.link_reserved(EntryIndex(handle.index()), spec, list, host);
        self.settle(host);
        Ok(handle)
    }

    /// PtlLEUnlink, PtlMEUnlink.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live entry, `InUse` while messages
    /// land in it or unexpected headers point into it.
    pub fn unlink(&mut self, handle: Handle) -> Result<()> {
        let index = self.entry(handle)?;
        let Some(entry) = self.entries.at(index) else {
            return Err(Error::ArgInvalid);
        };
        if entry.is_in_use() {
            return Err(Error::InUse);
        }
        self.take_off_list(index);
        self.entries.discard(index);
        Ok(())
    }

    pub(crate) fn entry(&self, handle: Handle) -> Result<EntryIndex> {
        self.live(&self.entries, handle, self.entry_kind())
    }

    pub(crate) fn entry_kind(&self) -> Kind {
        if self.matching() {
            Kind::MatchEntry
        } else {
            Kind::ListEntry
        }
    }

    #[inline(always)]
    pub(crate) fn check_entry(&self, spec: &EntrySpec<S>) -> Result<()> {
        let known = if self.matching() {
            MeOptions::all()
        } else {
            MeOptions::OF_LIST_ENTRY
        };
        if !known.contains(spec.options) {
            return Err(Error::ArgInvalid);
        }
        self.portal(spec.portal)?;
        self.check_buffer(&spec.buffer)
    }

    /// Where an entry takes messages from: a list entry from everywhere (Portals 4.3, section
    /// `List entries and lists`).
    #[inline(always)]
    pub(crate) fn source_of(&self, spec: &EntrySpec<S>) -> ProcessId {
        match (self.matching(), self.logical()) {
            (true, _) => spec.source,
            (false, true) => ProcessId::from_rank(ProcessId::RANK_ANY),
            (false, false) => ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
        }
    }

    /// The counter, read only if an option asks for counts: programs leave the field
    /// unset otherwise.
    #[inline(always)]
    pub(crate) fn entry_counter(&self, spec: &EntrySpec<S>) -> Result<Option<CounterIndex>> {
        let counts = MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_OVERFLOW;
        if !spec.options.intersects(counts) {
            return Ok(None);
        }
        self.optional_counter(spec.counter)
    }

    /// The match and ignore bits of an entry or search; a list entry ignores all bits.
    #[inline]
    pub(crate) fn pattern(&self, spec: &EntrySpec<S>) -> (u64, u64) {
        if self.matching() {
            (spec.match_bits, spec.ignore_bits)
        } else {
            (0, u64::MAX)
        }
    }

    /// A slot for an entry that isn't linked yet.
    #[inline(always)]
    pub(crate) fn reserve_entry(&mut self, spec: &EntrySpec<S>, list: List) -> Result<Handle> {
        self.check_entry(spec)?;
        let counter = self.entry_counter(spec)?;
        let limits = &self.config.limits;
        if self.entries.len() >= limits.max_entries as usize {
            return Err(Error::NoSpace);
        }
        if self.portal(spec.portal)?.list(list).len() >= limits.max_list_size as usize {
            return Err(Error::ListTooLong);
        }
        let entry = Entry {
            spec: EntrySpec {
                buffer: spec.buffer.clone(),
                source: self.source_of(spec),
                ..*spec
            },
            counter,
            list,
            linked: false,
            local_offset: 0,
            landing: 0,
            unexpected: 0,
        };
        let (index, generation) = self.entries.insert(entry).map_err(|_| Error::NoSpace)?;
        Ok(self.handle(self.entry_kind(), generation, index.into()))
    }

    /// Gives a reserved entry the messages that came before it, and links it unless they
    /// have used it up (Portals 4.3, section `Matching list entries and matching lists`,
    /// PtlMEAppend).
    #[inline(always)]
    pub(crate) fn link_reserved<H: Host<S>>(
        &mut self,
        index: EntryIndex,
        spec: &EntrySpec<S>,
        list: List,
        host: &mut H,
    ) {
        let waits = |portal: &Portal| list == List::Priority && !portal.unexpected.is_empty();
        match self.portal(spec.portal).map(waits) {
            Ok(false) => self.link(index, spec, list, host),
            Ok(true) => self.link_unless_used_up(index, spec, list, host),
            Err(_) => {
                self.entries.discard(index);
            }
        }
    }

    /// As [`link_reserved`](Self::link_reserved), where messages have come before it.
    #[inline(never)]
    fn link_unless_used_up<H: Host<S>>(
        &mut self,
        index: EntryIndex,
        spec: &EntrySpec<S>,
        list: List,
        host: &mut H,
    ) {
        if !self.take_unexpected(index, spec, host) {
            return self.link(index, spec, list, host);
        }
        let disabled_by = MeOptions::EVENT_UNLINK_DISABLE;
        self.post_entry_event(index, EventKind::AutoUnlink, disabled_by, host);
        self.entries.discard(index);
    }

    #[inline(always)]
    fn link<H: Host<S>>(
        &mut self,
        index: EntryIndex,
        spec: &EntrySpec<S>,
        list: List,
        host: &mut H,
    ) {
        let (bits, ignore) = self.pattern(spec);
        let Ok(portal) = self.portal_mut(spec.portal) else {
            return;
        };
        portal.list_mut(list).push(index.0, bits, ignore);
        let queue = portal.queue;
        if let Some(entry) = self.entries.at_mut(index) {
            entry.linked = true;
        }
        if let (Some(queue), false) = (queue, spec.options.contains(MeOptions::EVENT_LINK_DISABLE))
        {
            let event = entry_event(EventKind::Link, spec.user_ptr, spec.portal, list);
            self.post(host, queue, &event);
        }
    }

    /// Frees an entry that is off its list and that nothing points to any more; one of the
    /// overflow list reports PTL_EVENT_AUTO_FREE (Portals 4.3, section `Events and event
    /// queues`).
    pub(crate) fn free_if_spent<H: Host<S>>(&mut self, index: EntryIndex, host: &mut H) {
        let Some(entry) = self.entries.at(index) else {
            return;
        };
        if entry.linked || entry.is_in_use() {
            return;
        }
        if entry.list == List::Overflow {
            self.post_entry_event(
                index,
                EventKind::AutoFree,
                MeOptions::EVENT_UNLINK_DISABLE,
                host,
            );
        }
        self.entries.discard(index);
    }

    /// Discards all entries that name a portal table entry.
    pub(crate) fn discard_entries_of(&mut self, portal: PortalIndex) {
        let named = |(index, entry): (EntryIndex, &Entry<S>)| {
            (entry.spec.portal == portal).then_some(index)
        };
        let named: Vec<EntryIndex> = self.entries.iter().filter_map(named).collect();
        for index in named {
            self.entries.discard(index);
        }
    }

    #[inline(always)]
    pub(crate) fn take_off_list(&mut self, index: EntryIndex) {
        let Some(entry) = self.entries.at_mut(index) else {
            return;
        };
        if !core::mem::replace(&mut entry.linked, false) {
            return;
        }
        let (portal, list) = (entry.spec.portal, entry.list);
        if let Ok(portal) = self.change_portal(portal) {
            portal.list_mut(list).remove(index.0);
        }
    }

    /// An event about an entry itself, unless `disabled_by` forbids it.
    pub(crate) fn post_entry_event<H: Host<S>>(
        &mut self,
        index: EntryIndex,
        kind: EventKind,
        disabled_by: MeOptions,
        host: &mut H,
    ) {
        let Some(entry) = self.entries.at(index) else {
            return;
        };
        if entry.spec.options.contains(disabled_by) {
            return;
        }
        let (portal, user_ptr) = (entry.spec.portal, entry.spec.user_ptr);
        let event = entry_event(kind, user_ptr, portal, entry.list);
        if let Some(queue) = self.queue_of(portal) {
            self.post(host, queue, &event);
        }
    }

    /// A message has used up an entry of the priority list, which leaves it: the entry reports
    /// PTL_EVENT_AUTO_UNLINK, and is freed unless others still land in it. As
    /// [`take_off_list`](Self::take_off_list) and [`free_if_spent`](Self::free_if_spent), for
    /// who knows what the entry says.
    #[inline(always)]
    pub(crate) fn retire<H: Host<S>>(
        &mut self,
        index: EntryIndex,
        (portal, user_ptr): (PortalIndex, u64),
        reports: bool,
        host: &mut H,
    ) {
        let mut queue = None;
        if let Ok(portal) = self.portal_mut(portal) {
            portal.priority.remove(index.0);
            queue = portal.queue.filter(|_| reports);
        }
        if let Some(queue) = queue {
            let event = entry_event(EventKind::AutoUnlink, user_ptr, portal, List::Priority);
            self.post(host, queue, &event);
        }
        match self.entries.at_mut(index) {
            Some(entry) if entry.is_in_use() => entry.linked = false,
            _ => {
                self.entries.discard(index);
            }
        }
    }
}

/// An event about an entry itself.
#[inline(always)]
fn entry_event(kind: EventKind, user_ptr: u64, portal: PortalIndex, list: List) -> Event {
    Event {
        user_ptr,
        pt_index: portal.into(),
        list,
        ..Event::new(kind)
    }
}
