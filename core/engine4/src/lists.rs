//! List entries and match list entries: linking, unlinking, searching
//! (Portals 4.3, sections 3.11 and 3.12).

use crate::{Host, Interface};
use lintel_memory::{Buffer, Span};
use lintel_types::{
    CounterIndex, EntryIndex, Error, Event, EventKind, Handle, HeaderIndex, Kind, List, NiFail,
    PortalIndex, ProcessId, Result, options,
};
use lintel_wire::{Request, Verb};

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
    /// `PTL_ME_*`
    pub options: u32,
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

/// `ptl_search_op_t`
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SearchOp {
    /// `PTL_SEARCH_ONLY`: unexpected headers stay.
    Only,
    /// `PTL_SEARCH_DELETE`: unexpected headers are taken off their list.
    Delete,
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

/// The header of a message that landed in the overflow list, until an entry of the
/// priority list or a search takes it.
pub(crate) struct Unexpected {
    pub(crate) entry: EntryIndex,
    pub(crate) request: Request,
    pub(crate) from: ProcessId,
    pub(crate) uid: u32,
    pub(crate) start: u64,
    pub(crate) mlength: u64,
    pub(crate) fail: NiFail,
    pub(crate) landed: bool,
    /// Takes it once it has landed.
    pub(crate) receiver: Option<OverflowReceiver>,
}

/// The entry or search that receives an unexpected message, as its events need it.
#[derive(Clone, Copy)]
pub(crate) struct OverflowReceiver {
    user_ptr: u64,
    options: u32,
    counter: Option<CounterIndex>,
}

impl<S: Span> Entry<S> {
    /// Whether a message from there and of that size is for this entry, the
    /// match bits apart.
    #[inline]
    pub(crate) fn accepts(&self, logical: bool, from: ProcessId, request: &Request) -> bool {
        from_source(self.spec.source, logical, from, request.rank)
            && (self.spec.options & options::ME_NO_TRUNCATE == 0
                || self
                    .offset(request.remote_offset)
                    .saturating_add(request.length)
                    <= self.spec.buffer.length())
    }

    #[inline]
    pub(crate) fn offset(&self, remote: u64) -> u64 {
        if self.locally_managed() {
            self.local_offset
        } else {
            remote
        }
    }

    #[inline]
    pub(crate) fn locally_managed(&self) -> bool {
        self.spec.options & options::ME_MANAGE_LOCAL != 0
    }

    /// Whether less than `min_free` bytes are left, so that it unlinks.
    #[inline]
    pub(crate) fn exhausted(&self) -> bool {
        self.locally_managed()
            && self.spec.min_free > 0
            && self.spec.buffer.length().saturating_sub(self.local_offset) < self.spec.min_free
    }

    /// Events that a message to this entry may cause: its own, and that of an
    /// entry that unlinks.
    #[inline]
    pub(crate) fn most_events(&self) -> u32 {
        let once = self.spec.options & options::ME_USE_ONCE != 0;
        let unlinks = once || (self.locally_managed() && self.spec.min_free > 0);
        let reported = self.spec.options & options::ME_EVENT_UNLINK_DISABLE == 0;
        1 + u32::from(unlinks && reported)
    }

    fn receiver(&self) -> OverflowReceiver {
        OverflowReceiver {
            user_ptr: self.spec.user_ptr,
            options: self.spec.options,
            counter: self.counter,
        }
    }
}

#[inline]
fn from_source(source: ProcessId, logical: bool, from: ProcessId, rank: u32) -> bool {
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
    pub fn append<H: Host<S>>(
        &mut self,
        spec: EntrySpec<S>,
        list: List,
        host: &mut H,
    ) -> Result<Handle> {
        let handle = self.reserve_entry(&spec, list)?;
        self.link_reserved(EntryIndex(handle.index()), &spec, list, host);
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
        if entry.landing > 0 || entry.unexpected > 0 {
            return Err(Error::InUse);
        }
        self.take_off_list(index);
        self.entries.remove(index);
        Ok(())
    }

    /// PtlLESearch, PtlMESearch.
    ///
    /// # Errors
    /// As [`append`](Self::append).
    pub fn search<H: Host<S>>(
        &mut self,
        mut spec: EntrySpec<S>,
        op: SearchOp,
        host: &mut H,
    ) -> Result<()> {
        self.check_entry(&spec)?;
        self.open_to_all(&mut spec);
        let receiver = OverflowReceiver {
            user_ptr: spec.user_ptr,
            options: spec.options,
            counter: self.entry_counter(&spec)?,
        };
        let found = match op {
            SearchOp::Only => self.search_only(&spec, receiver, host),
            SearchOp::Delete => self.search_delete(&spec, receiver, host),
        };
        let once = spec.options & options::ME_USE_ONCE != 0;
        if !found {
            self.post_no_match(&spec, host);
        }
        if (!found || !once) && spec.options & options::ME_EVENT_CT_OVERFLOW != 0 {
            if let Some(counter) = receiver.counter {
                self.count(counter, NiFail::NoMatch, None, host);
            }
        }
        self.settle(host);
        Ok(())
    }

    pub(crate) fn entry(&self, handle: Handle) -> Result<EntryIndex> {
        self.live(&self.entries, handle, self.entry_kind())
    }

    fn entry_kind(&self) -> Kind {
        if self.matching() {
            Kind::MatchEntry
        } else {
            Kind::ListEntry
        }
    }

    fn check_entry(&self, spec: &EntrySpec<S>) -> Result<()> {
        let known = if self.matching() {
            options::ME_ALL
        } else {
            options::LE_ALL
        };
        if spec.options & !known != 0 {
            return Err(Error::ArgInvalid);
        }
        self.portal(spec.portal)?;
        self.check_buffer(&spec.buffer)
    }

    /// A list entry takes messages from everywhere.
    fn open_to_all(&self, spec: &mut EntrySpec<S>) {
        if !self.matching() {
            spec.source = match self.logical() {
                true => ProcessId::from_rank(ProcessId::RANK_ANY),
                false => ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
            };
        }
    }

    /// The counter, read only if an option asks for counts: programs leave the field
    /// unset otherwise.
    fn entry_counter(&self, spec: &EntrySpec<S>) -> Result<Option<CounterIndex>> {
        let counts = options::ME_EVENT_CT_COMM | options::ME_EVENT_CT_OVERFLOW;
        if spec.options & counts == 0 {
            return Ok(None);
        }
        self.optional_counter(spec.counter)
    }

    /// A slot for an entry that isn't linked yet.
    pub(crate) fn reserve_entry(&mut self, spec: &EntrySpec<S>, list: List) -> Result<Handle> {
        self.check_entry(spec)?;
        let counter = self.entry_counter(spec)?;
        let limits = &self.config.limits;
        if self.entries.len() >= limits.max_entries as usize {
            return Err(Error::NoSpace);
        }
        let portal = self.portal(spec.portal)?;
        let length = match list {
            List::Priority => portal.priority.len(),
            List::Overflow => portal.overflow.len(),
        };
        if length >= limits.max_list_size as usize {
            return Err(Error::ListTooLong);
        }
        let mut spec = spec.clone();
        self.open_to_all(&mut spec);
        let entry = Entry {
            spec,
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

    /// Gives a reserved entry the messages that came before it, and links it if
    /// that leaves it any use.
    pub(crate) fn link_reserved<H: Host<S>>(
        &mut self,
        index: EntryIndex,
        spec: &EntrySpec<S>,
        list: List,
        host: &mut H,
    ) {
        if list == List::Priority && self.take_unexpected(index, spec, host) {
            self.post_entry_event(
                index,
                EventKind::AutoUnlink,
                options::ME_EVENT_UNLINK_DISABLE,
                host,
            );
            self.entries.remove(index);
            return;
        }
        let (bits, ignore) = if self.matching() {
            (spec.match_bits, spec.ignore_bits)
        } else {
            (0, u64::MAX)
        };
        let Ok(portal) = self.portal_mut(spec.portal) else {
            self.entries.remove(index);
            return;
        };
        match list {
            List::Priority => portal.priority.push(index.0, bits, ignore),
            List::Overflow => portal.overflow.push(index.0, bits, ignore),
        }
        if let Some(entry) = self.entries.at_mut(index) {
            entry.linked = true;
        }
        self.post_entry_event(index, EventKind::Link, options::ME_EVENT_LINK_DISABLE, host);
    }

    /// Hands matching unexpected messages to a new entry; true once that has used it up.
    fn take_unexpected<H: Host<S>>(
        &mut self,
        index: EntryIndex,
        spec: &EntrySpec<S>,
        host: &mut H,
    ) -> bool {
        let once = spec.options & options::ME_USE_ONCE != 0;
        let advances = spec.options & options::ME_LOCAL_INC_UH_RLENGTH != 0;
        while let Some(slot) = self.find_unexpected(spec, index) {
            let Some(entry) = self.entries.at_mut(index) else {
                return true;
            };
            if advances && entry.locally_managed() {
                let rlength = self
                    .unexpected
                    .at(slot)
                    .map_or(0, |header| header.request.length);
                entry.local_offset = entry.local_offset.saturating_add(rlength);
            }
            let (receiver, exhausted) = (entry.receiver(), advances && entry.exhausted());
            self.assign_unexpected(slot, receiver, host);
            if once || exhausted {
                return true;
            }
        }
        false
    }

    fn find_unexpected(&mut self, spec: &EntrySpec<S>, index: EntryIndex) -> Option<HeaderIndex> {
        let portal = self.portals.get(spec.portal.position())?.as_ref()?;
        if portal.unexpected.is_empty() {
            return None;
        }
        let (entry, logical) = (self.entries.at(index)?, self.logical());
        let (bits, ignore) = if self.matching() {
            (spec.match_bits, spec.ignore_bits)
        } else {
            (0, u64::MAX)
        };
        let (found, walked) = portal.unexpected.find(bits, ignore, |slot| {
            self.unexpected
                .at(slot.into())
                .is_some_and(|header| entry.accepts(logical, header.from, &header.request))
        });
        self.work.walked += u64::from(walked);
        found.map(HeaderIndex)
    }

    /// Takes an unexpected header off its list and reports it to the receiver, now or
    /// once its bytes have landed.
    fn assign_unexpected<H: Host<S>>(
        &mut self,
        slot: HeaderIndex,
        receiver: OverflowReceiver,
        host: &mut H,
    ) {
        let Some(header) = self.unexpected.at_mut(slot) else {
            return;
        };
        let portal = header.request.portal;
        header.receiver = Some(receiver);
        let landed = header.landed;
        if let Ok(portal) = self.portal_mut(portal) {
            portal.unexpected.remove(slot.0);
        }
        if landed {
            self.deliver_unexpected(slot, host);
        }
    }

    /// The overflow event and count of a header that has a receiver and has landed.
    pub(crate) fn deliver_unexpected<H: Host<S>>(&mut self, slot: HeaderIndex, host: &mut H) {
        let Some(header) = self.unexpected.remove(slot) else {
            return;
        };
        if let Some(receiver) = header.receiver {
            let queue = self
                .portal(header.request.portal)
                .ok()
                .and_then(|p| p.queue);
            if receiver.options & options::ME_EVENT_OVER_DISABLE == 0 {
                if let Some(queue) = queue {
                    let kind = overflow_kind(header.request.verb);
                    let event = self.unexpected_event(&header, kind, receiver.user_ptr);
                    self.post(host, queue, &event);
                }
            }
            self.count_overflow(&header, receiver, host);
        }
        self.release_overflow(header.entry, host);
    }

    fn count_overflow<H: Host<S>>(
        &mut self,
        header: &Unexpected,
        to: OverflowReceiver,
        host: &mut H,
    ) {
        if to.options & options::ME_EVENT_CT_OVERFLOW != 0 {
            if let Some(counter) = to.counter {
                let bytes =
                    (to.options & options::ME_EVENT_CT_BYTES != 0).then_some(header.mlength);
                self.count(counter, header.fail, bytes, host);
            }
        }
    }

    fn unexpected_event(&self, header: &Unexpected, kind: EventKind, user_ptr: u64) -> Event {
        let request = &header.request;
        Event {
            start: header.start,
            user_ptr,
            hdr_data: request.hdr_data,
            match_bits: request.match_bits,
            rlength: request.length,
            mlength: header.mlength,
            remote_offset: request.remote_offset,
            initiator: self.initiator(header.from, request.rank),
            uid: header.uid,
            pt_index: request.portal.into(),
            kind,
            list: List::Overflow,
            ni_fail: header.fail,
            operation: request.operation,
            datatype: request.datatype,
        }
    }

    /// How an initiator is named in events: by rank on a logical interface.
    #[inline]
    pub(crate) fn initiator(&self, from: ProcessId, rank: u32) -> ProcessId {
        if self.logical() {
            ProcessId::from_rank(rank)
        } else {
            from
        }
    }

    /// One unexpected header fewer points into an entry; frees it if it was the
    /// last and the entry is off its list.
    pub(crate) fn release_overflow<H: Host<S>>(&mut self, index: EntryIndex, host: &mut H) {
        if let Some(entry) = self.entries.at_mut(index) {
            entry.unexpected -= 1;
        }
        self.free_if_spent(index, host);
    }

    /// Frees an entry that is off its list and that nothing points to any more.
    pub(crate) fn free_if_spent<H: Host<S>>(&mut self, index: EntryIndex, host: &mut H) {
        let Some(entry) = self.entries.at(index) else {
            return;
        };
        if entry.linked || entry.landing > 0 || entry.unexpected > 0 {
            return;
        }
        if entry.list == List::Overflow {
            self.post_entry_event(
                index,
                EventKind::AutoFree,
                options::ME_EVENT_UNLINK_DISABLE,
                host,
            );
        }
        self.entries.remove(index);
    }

    /// Drops an unexpected header that can't be matched any more.
    pub(crate) fn forget_unexpected(&mut self, slot: HeaderIndex) {
        let Some(header) = self.unexpected.remove(slot) else {
            return;
        };
        if let Ok(portal) = self.portal_mut(header.request.portal) {
            portal.unexpected.remove(slot.0);
        }
        if let Some(entry) = self.entries.at_mut(header.entry) {
            entry.unexpected -= 1;
            if !entry.linked && entry.unexpected == 0 {
                self.entries.remove(header.entry);
            }
        }
    }

    pub(crate) fn take_off_list(&mut self, index: EntryIndex) {
        let Some(entry) = self.entries.at_mut(index) else {
            return;
        };
        if !core::mem::replace(&mut entry.linked, false) {
            return;
        }
        let (portal, list) = (entry.spec.portal, entry.list);
        if let Ok(portal) = self.portal_mut(portal) {
            match list {
                List::Priority => portal.priority.remove(index.0),
                List::Overflow => portal.overflow.remove(index.0),
            }
        }
    }

    /// An event about an entry itself, unless `disabled_by` forbids it.
    pub(crate) fn post_entry_event<H: Host<S>>(
        &mut self,
        index: EntryIndex,
        kind: EventKind,
        disabled_by: u32,
        host: &mut H,
    ) {
        let Some(entry) = self.entries.at(index) else {
            return;
        };
        if entry.spec.options & disabled_by != 0 {
            return;
        }
        let mut event = Event::new(kind);
        event.user_ptr = entry.spec.user_ptr;
        event.pt_index = entry.spec.portal.into();
        event.list = entry.list;
        if let Ok(Some(queue)) = self.portal(entry.spec.portal).map(|portal| portal.queue) {
            self.post(host, queue, &event);
        }
    }

    fn search_only<H: Host<S>>(
        &mut self,
        spec: &EntrySpec<S>,
        receiver: OverflowReceiver,
        host: &mut H,
    ) -> bool {
        let queue = self
            .portal(spec.portal)
            .ok()
            .and_then(|portal| portal.queue);
        let once = spec.options & options::ME_USE_ONCE != 0;
        let mut seen = alloc::vec::Vec::new();
        self.search_from(spec, |slot| {
            seen.push(slot);
            once
        });
        let found = !seen.is_empty();
        for slot in seen {
            let Some(header) = self.unexpected.at(slot) else {
                break;
            };
            let mut event = self.unexpected_event(header, EventKind::Search, spec.user_ptr);
            event.ni_fail = NiFail::Ok;
            let bytes = (spec.options & options::ME_EVENT_CT_BYTES != 0).then_some(header.mlength);
            if let (Some(queue), 0) = (queue, spec.options & options::ME_EVENT_COMM_DISABLE) {
                self.post(host, queue, &event);
            }
            if spec.options & options::ME_EVENT_CT_OVERFLOW != 0 {
                if let Some(counter) = receiver.counter {
                    self.count(counter, NiFail::Ok, bytes, host);
                }
            }
        }
        found
    }

    fn search_delete<H: Host<S>>(
        &mut self,
        spec: &EntrySpec<S>,
        receiver: OverflowReceiver,
        host: &mut H,
    ) -> bool {
        let mut found = false;
        while let Some(slot) = self.search_from(spec, |_| true) {
            found = true;
            self.assign_unexpected(slot, receiver, host);
            if spec.options & options::ME_USE_ONCE != 0 {
                break;
            }
        }
        found
    }

    /// The first header that fits and that `ends` the search, which is shown each
    /// header that fits.
    fn search_from(
        &mut self,
        spec: &EntrySpec<S>,
        mut ends: impl FnMut(HeaderIndex) -> bool,
    ) -> Option<HeaderIndex> {
        let logical = self.logical();
        let (bits, ignore) = if self.matching() {
            (spec.match_bits, spec.ignore_bits)
        } else {
            (0, u64::MAX)
        };
        let portal = self.portals.get(spec.portal.position())?.as_ref()?;
        let fits = |request: &Request| {
            let offset = if spec.options & options::ME_MANAGE_LOCAL != 0 {
                0
            } else {
                request.remote_offset
            };
            spec.options & options::ME_NO_TRUNCATE == 0
                || offset.saturating_add(request.length) <= spec.buffer.length()
        };
        let (found, walked) = portal.unexpected.find(bits, ignore, |slot| {
            let fitting = self.unexpected.at(slot.into()).is_some_and(|header| {
                let rank = header.request.rank;
                from_source(spec.source, logical, header.from, rank) && fits(&header.request)
            });
            fitting && ends(slot.into())
        });
        self.work.walked += u64::from(walked);
        found.map(HeaderIndex)
    }

    fn post_no_match<H: Host<S>>(&mut self, spec: &EntrySpec<S>, host: &mut H) {
        if spec.options & options::ME_EVENT_COMM_DISABLE != 0 {
            return;
        }
        if let Some(queue) = self
            .portal(spec.portal)
            .ok()
            .and_then(|portal| portal.queue)
        {
            let mut event = Event::new(EventKind::Search);
            event.user_ptr = spec.user_ptr;
            event.pt_index = spec.portal.into();
            event.ni_fail = NiFail::NoMatch;
            self.post(host, queue, &event);
        }
    }
}

fn overflow_kind(verb: Verb) -> EventKind {
    match verb {
        Verb::Put => EventKind::PutOverflow,
        Verb::Get => EventKind::GetOverflow,
        Verb::Atomic => EventKind::AtomicOverflow,
        Verb::FetchAtomic | Verb::Swap => EventKind::FetchAtomicOverflow,
    }
}
