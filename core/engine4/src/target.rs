//! The target's side: what a request matches, and the events it causes
//! (Portals 4.3, sections `Portal table entries`, `Matching list entries and matching
//! lists` and `Events and event queues`).

use crate::entries::{Arriving, Entry};
use crate::portal::Portal;
use crate::unexpected::Unexpected;
use crate::{Host, Interface};
use lintel_memory::{MOST_MEMORY, Pieces, Span};
use lintel_types::{
    AckRequest, EntryIndex, Event, EventKind, HeaderIndex, List, MeOptions, NiFail, PortalIndex,
    ProcessId, QueueIndex,
};
use lintel_wire::{Request, Response, Verb};

/// What becomes of a request; its header alone decides.
#[derive(Debug)]
pub enum Landing<S> {
    /// It is refused, with the response if one is awaited.
    Refused(Option<Response>),
    /// Its bytes go to, or come from, these pieces.
    Accepted(Pieces<S>, Landed),
}

/// What counts the messages that land in an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counting {
    /// The entry has no counter.
    Nothing,
    /// A counter that only calls look at.
    Counter,
    /// A counter that triggered operations wait for.
    Triggers,
}

/// A request that has matched an entry.
#[must_use = "an accepted request begins to land at once"]
#[derive(Debug)]
pub struct Accepted(EntryIndex);

/// A request between its decision and its completion.
#[must_use = "a delivery finishes through Interface::on_landed"]
#[derive(Debug)]
pub struct Landed {
    request: Request,
    from: ProcessId,
    uid: u32,
    entry: EntryIndex,
    unexpected: Option<HeaderIndex>,
    extent: Extent,
    fate: Fate,
    /// Events that it may still cause; their slots in the queue are reserved.
    promised: u32,
}

/// Which part of an entry's memory a message takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Address of the first byte.
    pub(crate) start: u64,
    /// Bytes from the start of the entry.
    offset: u64,
    /// Bytes to be moved, after truncation.
    pub(crate) mlength: u64,
}

/// What a message causes at its entry.
#[derive(Clone, Copy, Debug)]
struct Fate {
    list: List,
    /// The entry leaves its list.
    unlinked: bool,
    /// The header is kept for an entry that is appended later, or a search.
    remembered: bool,
    /// The initiator or the entry wants no acknowledgement.
    silent: bool,
    /// All of the entry can be touched.
    accessible: bool,
}

impl Landed {
    /// The request as it arrived.
    #[inline]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// Manipulated length: bytes that are moved.
    #[inline]
    pub fn mlength(&self) -> u64 {
        self.extent.mlength
    }

    /// Whether it is unexpected: its header is kept for an entry that is appended later.
    #[inline]
    pub fn is_unexpected(&self) -> bool {
        self.unexpected.is_some()
    }

    /// Whether the entry's owner vouches that all of it can be touched; otherwise the
    /// message may name an unmapped address.
    #[inline]
    pub fn is_accessible(&self) -> bool {
        self.fate.accessible
    }

    /// The response to the initiator, if one is awaited.
    #[inline(always)]
    pub fn response(&self, fail: NiFail) -> Option<Response> {
        if self.request.token == 0 {
            return None;
        }
        Some(Response {
            mlength: if fail == NiFail::Ok {
                self.extent.mlength
            } else {
                0
            },
            offset: self.extent.offset,
            list: self.fate.list,
            silent: self.fate.silent,
            ..answer(&self.request, fail)
        })
    }
}

/// The response to a request, as if nothing had been moved.
#[inline(always)]
pub(crate) fn answer(request: &Request, fail: NiFail) -> Response {
    Response {
        reply: matches!(request.verb, Verb::Get | Verb::FetchAtomic | Verb::Swap),
        interface: request.interface,
        placed: false,
        silent: false,
        token: request.token,
        mlength: 0,
        offset: request.remote_offset,
        list: List::Priority,
        fail,
    }
}

/// The event that reports such a request at its target.
#[inline(always)]
pub(crate) fn event_of(verb: Verb) -> EventKind {
    match verb {
        Verb::Put => EventKind::Put,
        Verb::Get => EventKind::Get,
        Verb::Atomic => EventKind::Atomic,
        Verb::FetchAtomic | Verb::Swap => EventKind::FetchAtomic,
    }
}

/// Whether neither the initiator nor the entry wants an acknowledgement.
#[inline(always)]
pub(crate) fn is_silent(request: &Request, options: MeOptions) -> bool {
    request.ack == AckRequest::None && request.verb == Verb::Put
        || options.contains(MeOptions::ACK_DISABLE)
}

/// The options that an entry has if it takes such operations.
#[inline(always)]
pub(crate) fn needed_by(verb: Verb) -> MeOptions {
    match verb {
        Verb::Put | Verb::Atomic => MeOptions::OP_PUT,
        Verb::Get => MeOptions::OP_GET,
        Verb::FetchAtomic | Verb::Swap => MeOptions::OP_PUT | MeOptions::OP_GET,
    }
}

/// Whether an entry with these options reports a message that ended like this by a full event
/// (Portals 4.3, section `Events and event queues`).
#[inline(always)]
pub(crate) fn reports(options: MeOptions, fail: NiFail) -> bool {
    !options.contains(MeOptions::EVENT_COMM_DISABLE)
        && (fail != NiFail::Ok || !options.contains(MeOptions::EVENT_SUCCESS_DISABLE))
}

impl<S: Span> Entry<S> {
    /// Whether its owner vouches that all of it can be touched.
    #[inline(always)]
    pub(crate) fn is_accessible(&self) -> bool {
        self.spec.options.contains(MeOptions::IS_ACCESSIBLE)
            || self.spec.buffer.length() < MOST_MEMORY
    }

    /// Whether it takes messages of that user.
    #[inline(always)]
    pub(crate) fn allows_user(&self, uid: u32) -> bool {
        self.spec.uid == lintel_types::UID_ANY || self.spec.uid == uid
    }

    /// Where the request's bytes go: truncated to the entry, to whole elements and to the
    /// interface's limit (Portals 4.3, section `Matching list entries and matching lists`,
    /// PTL_ME_MANAGE_LOCAL and truncation).
    #[inline(always)]
    fn extent(&self, request: &Request, limit: u64) -> (Pieces<S>, Extent) {
        let offset = self.offset(request.remote_offset);
        let available = self.spec.buffer.length().saturating_sub(offset);
        let mlength = whole_elements(request, request.length.min(available).min(limit));
        let pieces = self.spec.buffer.pieces(offset, mlength);
        let start = match pieces.start() {
            // A message without bytes still reports the address they would have gone to.
            0 => self.spec.buffer.pieces(offset, 1).start(),
            start => start,
        };
        let extent = Extent {
            start,
            offset,
            mlength,
        };
        (pieces, extent)
    }

    /// Counts a message that lands; a locally managed offset moves behind it.
    #[inline(always)]
    fn consume(&mut self, mlength: u64) {
        if self.locally_managed() {
            self.local_offset += mlength;
        }
        self.landing += 1;
    }

    /// What a message that has just been [counted](Self::consume) causes.
    #[inline(always)]
    fn fate(&self, request: &Request) -> Fate {
        let spec = &self.spec;
        Fate {
            list: self.list,
            unlinked: spec.options.contains(MeOptions::USE_ONCE) || self.exhausted(),
            remembered: self.list == List::Overflow
                && !spec.options.contains(MeOptions::UNEXPECTED_HDR_DISABLE),
            silent: is_silent(request, spec.options),
            accessible: self.is_accessible(),
        }
    }
}

impl<S: Span> Interface<S> {
    /// A request has arrived: [`accept`](Self::accept) and
    /// [`begin_landing`](Self::begin_landing) in one.
    pub fn on_request<H: Host<S>>(
        &mut self,
        from: ProcessId,
        uid: u32,
        request: &Request,
        host: &mut H,
    ) -> Landing<S> {
        match self.accept(from, uid, request, host) {
            Ok(accepted) => {
                let (pieces, landed) = self.begin_landing(accepted, from, uid, request);
                Landing::Accepted(pieces, landed)
            }
            Err(response) => Landing::Refused(response),
        }
    }

    /// Decides what becomes of a request that has arrived.
    ///
    /// # Errors
    /// It is refused, with the response if one is awaited.
    #[inline(always)]
    pub fn accept<H: Host<S>>(
        &mut self,
        from: ProcessId,
        uid: u32,
        request: &Request,
        host: &mut H,
    ) -> Result<Accepted, Option<Response>> {
        self.work.requests += 1;
        match self.admit(from, uid, request, host) {
            Ok(entry) => Ok(Accepted(entry)),
            // A copy, so that the common path has none in memory.
            Err(fail) => Err(self.refuse(&{ *request }, fail)),
        }
    }

    /// As [`accept`](Self::accept), while `before` is still landing, the message that came before
    /// this one. Returns nothing, and has done nothing, if what that one still causes may change
    /// where this one lands, or if this one doesn't simply match an entry of the priority list.
    pub fn accept_behind(
        &mut self,
        before: &Landed,
        from: ProcessId,
        uid: u32,
        request: &Request,
    ) -> Option<Accepted> {
        let portal = self.portal(request.portal).ok()?;
        // Landing messages reserve more slots of a queue than most of them use.
        let is_plain = portal.enabled && !portal.announce && !portal.flow_controlled();
        let counter = self.entries.at(before.entry)?.counter;
        if !is_plain || counter.is_some_and(|counter| self.triggers(counter)) {
            return None;
        }
        let (found, walked) = self.find_in(portal, List::Priority, from, request);
        let (index, entry) = found?;
        if !entry.allows_user(uid) || !entry.spec.options.contains(needed_by(request.verb)) {
            return None;
        }
        self.work.requests += 1;
        self.work.walked += u64::from(walked);
        Some(Accepted(index))
    }

    /// What counts a message that lands.
    pub fn counting(&self, landed: &Landed) -> Counting {
        let entry = self.entries.at(landed.entry);
        match entry.and_then(|entry| entry.counter) {
            None => Counting::Nothing,
            Some(counter) if self.triggers(counter) => Counting::Triggers,
            Some(_) => Counting::Counter,
        }
    }

    /// A request's bytes have been moved, or couldn't be.
    #[inline(always)]
    pub fn on_landed<H: Host<S>>(&mut self, landed: Landed, fail: NiFail, host: &mut H) {
        let Some(entry) = self.entries.at_mut(landed.entry) else {
            return;
        };
        entry.landing -= 1;
        let (options, user_ptr, counter) = (entry.spec.options, entry.spec.user_ptr, entry.counter);
        let linked = entry.linked;
        // Portals 4.3, section `Events and event queues`: the full event, unless the entry's
        // options suppress it; section `Counting events`: then the count.
        let (queue, announces) = match self.portal_mut(landed.request.portal) {
            Ok(portal) => {
                portal.landing -= 1;
                portal.promised -= landed.promised;
                let reported = (portal.queue, portal.announce);
                self.promised -= landed.promised as usize;
                reported
            }
            Err(_) => (None, false),
        };
        if let Some(queue) = queue {
            if reports(options, fail) {
                let event = self.landed_event(&landed, fail, user_ptr);
                self.post(host, queue, &event);
            }
        }
        if let (Some(counter), true) = (counter, options.contains(MeOptions::EVENT_CT_COMM)) {
            let bytes =
                (options.contains(MeOptions::EVENT_CT_BYTES)).then_some(landed.extent.mlength);
            self.count(counter, fail, bytes, host);
        }
        // Also if a later message has unlinked the entry and landed earlier.
        if !linked || landed.unexpected.is_some() {
            let (entry, unlinked) = (landed.entry, landed.fate.unlinked);
            self.finish_landing(entry, unlinked, landed.unexpected, fail, host);
        }
        if announces {
            self.announce_disabled(landed.request.portal, host);
        }
        self.settle(host);
    }

    /// Finds the entry and checks permissions; the order of the checks is the
    /// specification's.
    #[inline(always)]
    fn admit<H: Host<S>>(
        &mut self,
        from: ProcessId,
        uid: u32,
        request: &Request,
        host: &mut H,
    ) -> Result<EntryIndex, NiFail> {
        let Ok(portal) = self.portal(request.portal) else {
            return Err(NiFail::Dropped);
        };
        if !portal.enabled {
            return Err(NiFail::PtDisabled);
        }
        let (queue, flow_controlled) = (portal.queue, portal.flow_controlled());
        let Some((index, list)) = self.find_entry(from, request) else {
            return Err(self.run_out(request.portal, flow_controlled, None, host));
        };
        self.permit(index, uid, request)?;
        if list == List::Overflow && !self.may_keep_header(index) {
            return Err(self.run_out(request.portal, flow_controlled, Some(index), host));
        }
        let events = self.entries.at(index).map_or(0, Entry::most_events);
        if flow_controlled && !self.queue_has_slots(queue, events, host) {
            return Err(self.run_out(request.portal, flow_controlled, Some(index), host));
        }
        Ok(index)
    }

    /// The priority list first, then the overflow list, each in the order of appending
    /// (Portals 4.3, section `Matching list entries and matching lists`).
    #[inline(always)]
    fn find_entry(&mut self, from: ProcessId, request: &Request) -> Option<(EntryIndex, List)> {
        let portal = self.portals.get(request.portal.position())?.as_ref()?;
        let (found, walked) = self.find_in(portal, List::Priority, from, request);
        let (found, list, walked) = match found {
            Some((index, _)) => (Some(index), List::Priority, walked),
            None => {
                let (found, more) = self.find_in(portal, List::Overflow, from, request);
                let found = found.map(|(index, _)| index);
                (found, List::Overflow, walked + more)
            }
        };
        self.work.walked += u64::from(walked);
        found.map(|index| (index, list))
    }

    /// The first entry of a list that takes the request, and how many were looked at.
    #[inline(always)]
    pub(crate) fn find_in(
        &self,
        portal: &Portal,
        list: List,
        from: ProcessId,
        request: &Request,
    ) -> (Option<(EntryIndex, &Entry<S>)>, u32) {
        let logical = self.logical();
        let bits = if self.matching() {
            request.match_bits
        } else {
            0
        };
        let arriving = Arriving::new(from, request);
        // Of several that accept, the last one that was asked is the first of the list.
        let mut taken = None;
        let (found, walked) = portal.list(list).find(
            bits,
            #[inline(always)]
            |slot| {
                let Some(entry) = self.entries.at(slot.into()) else {
                    return false;
                };
                let accepts = entry.accepts(logical, arriving);
                if accepts {
                    taken = Some(entry);
                }
                accepts
            },
        );
        (found.map(EntryIndex).zip(taken), walked)
    }

    /// First the user, then the operation (Portals 4.3, section `Matching list entries and
    /// matching lists`, uid and options; failures of either are counted in status registers,
    /// section `Network interfaces`).
    #[inline(always)]
    fn permit(&mut self, index: EntryIndex, uid: u32, request: &Request) -> Result<(), NiFail> {
        let Some(entry) = self.entries.at(index) else {
            return Err(NiFail::Dropped);
        };
        if !entry.allows_user(uid) {
            self.registers.permission_violations += 1;
            return Err(NiFail::PermViolation);
        }
        if !entry.spec.options.contains(needed_by(request.verb)) {
            self.registers.operation_violations += 1;
            return Err(NiFail::OpViolation);
        }
        Ok(())
    }

    /// Portals 4.3, section `Network interfaces`, max_unexpected_headers.
    fn may_keep_header(&self, index: EntryIndex) -> bool {
        self.entries.at(index).is_some_and(|entry| {
            entry
                .spec
                .options
                .contains(MeOptions::UNEXPECTED_HDR_DISABLE)
                || self.unexpected.len() < self.config.limits.max_unexpected_headers as usize
        })
    }

    /// Whether so many events, those that a message may cause, fit in the queue of its portal table
    /// entry, if that has one, beside those of messages that are landing, with one to spare for
    /// each portal table entry that may have to report its disabling.
    #[inline(always)]
    pub(crate) fn queue_has_slots<H: Host<S>>(
        &self,
        queue: Option<QueueIndex>,
        events: u32,
        host: &mut H,
    ) -> bool {
        let Some(queue) = queue else {
            return true;
        };
        let (free, own) = (host.free_slots(queue), events as usize);
        // Those that report elsewhere included: most queues have room for all.
        free >= self.flow_controlled + self.promised + own
            || free >= self.events_reserved_in(queue) + own
    }

    /// Slots of a queue that portal table entries and landing messages have a claim to.
    #[cold]
    fn events_reserved_in(&self, queue: QueueIndex) -> usize {
        let portals = self.portals_reporting_to(queue);
        portals.map(|portal| 1 + portal.promised as usize).sum()
    }

    /// `entry` is the one that the message would have reached; its options may
    /// suppress the event.
    fn run_out<H: Host<S>>(
        &mut self,
        portal: PortalIndex,
        flow: bool,
        entry: Option<EntryIndex>,
        host: &mut H,
    ) -> NiFail {
        if flow {
            let silent = entry
                .and_then(|index| self.entries.at(index))
                .is_some_and(|entry| {
                    entry
                        .spec
                        .options
                        .contains(MeOptions::EVENT_FLOWCTRL_DISABLE)
                });
            self.exhaust(portal, !silent, host);
            return NiFail::PtDisabled;
        }
        NiFail::Dropped
    }

    /// Counts a dropped message in PTL_SR_DROP_COUNT (Portals 4.3, section `Network
    /// interfaces`) and responds if the initiator awaits it.
    #[cold]
    fn refuse(&mut self, request: &Request, fail: NiFail) -> Option<Response> {
        if matches!(fail, NiFail::Dropped | NiFail::PtDisabled) {
            self.registers.drops += 1;
        }
        (request.token != 0).then(|| answer(request, fail))
    }

    /// Takes the place of an accepted request's bytes.
    ///
    /// # Panics
    /// If anything was done to the interface since [`accept`](Self::accept).
    #[inline(always)]
    pub fn begin_landing(
        &mut self,
        Accepted(index): Accepted,
        from: ProcessId,
        uid: u32,
        request: &Request,
    ) -> (Pieces<S>, Landed) {
        let limit = self.length_limit(request);
        let entry = self
            .entries
            .at_mut(index)
            .expect("accept has just found the entry");
        let (pieces, extent) = entry.extent(request, limit);
        entry.consume(extent.mlength);
        let (fate, promised) = (entry.fate(request), entry.most_events());
        if fate.unlinked {
            self.take_off_list(index);
        }
        let unexpected = match fate.remembered {
            true => self.remember(Unexpected::new(index, from, uid, request, extent)),
            false => None,
        };
        if let Ok(portal) = self.portal_mut(request.portal) {
            portal.landing += 1;
            portal.promised += promised;
            self.promised += promised as usize;
        }
        let landed = Landed {
            request: *request,
            from,
            uid,
            entry: index,
            unexpected,
            extent,
            fate,
            promised,
        };
        (pieces, landed)
    }

    /// Portals 4.3, section `Network interfaces`, `ptl_ni_limits_t`.
    #[inline(always)]
    pub(crate) fn length_limit(&self, request: &Request) -> u64 {
        match request.verb {
            Verb::Put | Verb::Get => self.config.limits.max_msg_size,
            Verb::Atomic => self.config.limits.max_atomic_size,
            Verb::FetchAtomic | Verb::Swap => self.config.limits.max_fetch_atomic_size,
        }
    }

    /// The entry's own events after the message's: PTL_EVENT_AUTO_UNLINK, the overflow event
    /// of a header that was assigned meanwhile, PTL_EVENT_AUTO_FREE (Portals 4.3, section
    /// `Events and event queues`). Of the priority list the first one is also the last word on the
    /// entry's memory, so it comes behind all messages that land there.
    #[inline(never)]
    pub(crate) fn finish_landing<H: Host<S>>(
        &mut self,
        entry: EntryIndex,
        unlinked: bool,
        unexpected: Option<HeaderIndex>,
        fail: NiFail,
        host: &mut H,
    ) {
        let is_due = self
            .entries
            .at(entry)
            .is_some_and(|entry| match entry.list {
                List::Priority => !entry.linked && entry.landing == 0,
                List::Overflow => unlinked,
            });
        if is_due {
            let disabled_by = MeOptions::EVENT_UNLINK_DISABLE;
            self.post_entry_event(entry, EventKind::AutoUnlink, disabled_by, host);
        }
        if let Some(slot) = unexpected {
            if let Some(header) = self.unexpected.at_mut(slot) {
                header.landed = true;
                header.fail = fail;
                if header.receiver.is_some() {
                    self.deliver_unexpected(slot, host);
                    return;
                }
            }
        }
        self.free_if_spent(entry, host);
    }

    #[inline(always)]
    fn landed_event(&self, landed: &Landed, fail: NiFail, user_ptr: u64) -> Event {
        let request = &landed.request;
        Event {
            start: landed.extent.start,
            user_ptr,
            hdr_data: request.hdr_data,
            match_bits: request.match_bits,
            rlength: request.length,
            mlength: if fail == NiFail::Ok {
                landed.extent.mlength
            } else {
                0
            },
            remote_offset: request.remote_offset,
            initiator: self.initiator(landed.from, request.rank),
            uid: landed.uid,
            pt_index: request.portal.into(),
            kind: event_of(request.verb),
            list: landed.fate.list,
            ni_fail: fail,
            operation: request.operation.into(),
            datatype: request.datatype.into(),
        }
    }
}

/// An atomic touches whole elements only, and a conditional or masked swap just one
/// (Portals 4.3, section `Atomic operations`).
#[inline(always)]
pub(crate) fn whole_elements(request: &Request, length: u64) -> u64 {
    if matches!(request.verb, Verb::Put | Verb::Get) {
        return length;
    }
    let size = request.datatype.size() as u64;
    if request.verb == Verb::Swap && request.operation.uses_compare() {
        return if length < size { 0 } else { size };
    }
    length - length % size
}
