//! The initiator's side: starting operations and reporting their end (sections 3.13 and
//! 4.1).

use crate::events::{Begun, Details, Pair};
use crate::{Backlog, Body, Dialect, Host, Interface, Undeliverable};
use alloc::vec::Vec;
use lintel_memory::{Pieces, Span};
use lintel_types::portals3::{Error, EventKind, NID_ANY, PID_ANY, Result};
use lintel_types::{
    ALWAYS_COPIED, DescriptorIndex, Handle, NiFail, OperationIndex, PortalIndex, ProcessId,
};
use lintel_wire::MAX_LENGTH;
use lintel_wire::portals3::{Request, Response, Verb};

/// Everything that a data movement call is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Transfer {
    /// The data movement call that it is.
    pub verb: Verb,
    /// Descriptor that bytes are sent from; unused by a get.
    pub source: Handle,
    /// Bytes from the start of the source's memory.
    pub source_offset: u64,
    /// Descriptor that a reply's bytes go to; unused by a put.
    pub sink: Handle,
    /// Bytes from the start of the sink's memory.
    pub sink_offset: u64,
    /// Bytes requested (the calls with a region), or none for each descriptor's memory from
    /// the offset to its end.
    pub length: Option<u64>,
    /// A put asks for an acknowledgement.
    pub ack: bool,
    /// The process that is addressed; no wildcard.
    pub target: ProcessId,
    /// Portal table index at the target.
    pub portal: u32,
    /// Index of the target's access control table.
    pub access: u32,
    /// Match bits of the message.
    pub match_bits: u64,
    /// Bytes from the start of the target's memory, if it lets the initiator choose.
    pub remote_offset: u64,
    /// Out-of-band data, returned in the target's events; unused by a get.
    pub hdr_data: u64,
}

/// An operation in flight.
pub(crate) struct InFlight {
    /// The source of a put or an exchange, with its generation: an acknowledgement comes to
    /// the descriptor that was named, or to none.
    source: Option<(DescriptorIndex, u16)>,
    /// The sink of a get or an exchange; pending until the reply.
    sink: Option<Part>,
    /// What an acknowledgement says, if one is due.
    ack: bool,
    details: Details,
    stage: Stage,
    /// Its memory is lent to the host until the response (rendezvous).
    referenced: bool,
}

/// How far an operation in flight has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It awaits its response, and no event of it has begun.
    Awaiting,
    /// The source is still being read; with the number of the SEND_START event, if there was
    /// one.
    Sending(Option<u32>),
    /// So many bytes of the reply are being moved; with the number of the REPLY_START event,
    /// if there was one.
    Filling(u64, Option<u32>),
}

impl InFlight {
    /// Who is to answer.
    pub(crate) fn target(&self) -> ProcessId {
        self.details.initiator
    }

    /// Bytes to be moved.
    pub(crate) fn length(&self) -> u64 {
        self.details.rlength
    }

    /// Whether the answer brings bytes.
    pub(crate) fn fetches(&self) -> bool {
        self.sink.is_some()
    }

    /// A put that awaits its acknowledgement and nothing else.
    fn is_plain_put(&self) -> bool {
        self.ack && self.sink.is_none() && self.stage == Stage::Awaiting
    }

    /// Whether its reply is being moved.
    fn is_filling(&self) -> bool {
        matches!(self.stage, Stage::Filling(..))
    }

    /// The operation as it began at its source, if that is still being read. SEND events name
    /// the process itself.
    fn sending(&self, me: ProcessId) -> Option<Begun> {
        let (Stage::Sending(start), Some((descriptor, _))) = (self.stage, self.source) else {
            return None;
        };
        Some(Begun {
            descriptor,
            pair: Pair::Send,
            details: Details {
                initiator: me,
                ..self.details
            },
            start,
        })
    }

    /// The reply as it began at its sink, if it has.
    fn filling(&self) -> Option<Begun> {
        let (Stage::Filling(length, start), Some(sink)) = (self.stage, self.sink) else {
            return None;
        };
        Some(Begun {
            descriptor: sink.index,
            pair: Pair::Reply,
            details: self.reply(sink, length),
            start,
        })
    }

    /// What the events of a reply of `length` bytes say.
    fn reply(&self, sink: Part, length: u64) -> Details {
        Details {
            mlength: length,
            offset: sink.offset,
            ..self.details
        }
    }
}

/// A part of a descriptor's memory.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub(crate) index: DescriptorIndex,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// The result of a check: the parts of descriptors that an operation touches.
#[derive(Clone, Copy)]
struct Plan {
    source: Option<Part>,
    sink: Option<Part>,
    place: Place,
}

impl Plan {
    /// What the request names: of an exchange the bytes that it sends.
    fn named(&self) -> Option<Part> {
        self.source.or(self.sink)
    }

    fn length(&self) -> u64 {
        self.named().map_or(0, |part| part.length)
    }
}

/// What a request addresses at its target.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    portal: PortalIndex,
    access: u16,
}

/// A request on its way out.
#[derive(Clone, Copy)]
pub(crate) struct Sending {
    /// Names its operation; 0 if no response is awaited.
    token: u32,
    /// Its memory is lent to the host until the response.
    referenced: bool,
}

impl Sending {
    /// Its bytes are copied as it is sent.
    pub(crate) const fn copied(token: u32) -> Sending {
        Sending {
            token,
            referenced: false,
        }
    }
}

/// The generation that the first tokens of an interface carry.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tokens(u16);

/// A reply that has arrived and whose bytes are being moved.
#[must_use = "a reply finishes through Interface::on_filled"]
#[derive(Debug)]
pub struct PendingReply {
    token: u32,
}

impl<S: Span> Interface<S> {
    /// PtlPut, PtlPutRegion, PtlGet, PtlGetRegion, PtlGetPut, PtlGetPutRegion. Success means
    /// that the operation has started.
    ///
    /// # Errors
    /// `MdInvalid` for a descriptor that isn't live, or is inactive; `ProcessInvalid` for a
    /// wildcard; `MdIllegal` for bytes outside the descriptor, too many for a message, or
    /// for an exchange more than `max_getput_md`; `PtIndexInvalid`, `AcIndexInvalid` for an
    /// index that no message can carry; `NoSpace` while 65,535 operations are under way, or
    /// the host's backlog to the target is full.
    #[inline(always)]
    pub fn start<H: Host<S>>(&mut self, transfer: &Transfer, host: &mut H) -> Result<()> {
        match transfer.verb {
            Verb::Put => self.start_put(transfer, host),
            Verb::Get | Verb::GetPut => self.start_in_steps(transfer, false, host),
        }
    }

    /// As [`start`](Self::start); a put begins and ends at its source one after the other. The body of
    /// one that `stays` is left in place, however short.
    #[inline(never)]
    pub(crate) fn start_in_steps<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        stays: bool,
        host: &mut H,
    ) -> Result<()> {
        let plan = self.check(transfer)?;
        let length = plan.length();
        let stays = match host.backlog(transfer.target) {
            Backlog::Low if transfer.verb == Verb::Get => lends(transfer.target, length, host),
            Backlog::Low => stays,
            Backlog::High => length > 0,
            Backlog::Full => return Err(Error::NoSpace),
        };
        let long = stays || length > self.config.eager;
        let referenced = long && transfer.verb != Verb::GetPut;
        let sending = Sending {
            token: self.begin_operation(transfer, plan, referenced)?,
            referenced,
        };
        match transfer.verb {
            Verb::Put | Verb::GetPut => self.send_from_source(transfer, plan, sending, host),
            Verb::Get => self.send_get(transfer, plan, sending, host),
        }
        Ok(())
    }

    /// Operations that still await a response.
    pub fn operations_under_way(&self) -> usize {
        self.operations.len()
    }

    /// The first tokens for an interface that takes this one's place, so that a late
    /// response isn't taken for one to an operation of the new interface.
    pub fn next_tokens(&self) -> Tokens {
        Tokens(self.operations.unused_generation())
    }

    /// Starts counting at those tokens; for an interface that hasn't started an operation.
    pub fn begin_with(&mut self, tokens: Tokens) {
        self.operations.begin_with(tokens.0);
    }

    /// Operations whose memory is lent to the host until the response.
    pub fn loans(&self) -> usize {
        self.loans
    }

    /// Targets of operations that still await a response.
    pub fn awaited_targets(&self) -> impl Iterator<Item = ProcessId> {
        let operations = self.operations.iter();
        operations.map(|(_, operation)| operation.details.initiator)
    }

    fn check(&self, transfer: &Transfer) -> Result<Plan> {
        let verb = transfer.verb;
        let mut plan = Plan {
            source: None,
            sink: None,
            place: check_place(transfer)?,
        };
        if verb != Verb::Put {
            plan.sink = Some(self.part(transfer.sink, transfer.sink_offset, transfer.length)?);
        }
        if verb != Verb::Get {
            plan.source = Some(self.source(transfer)?);
        }
        let exchanged = plan.length().max(plan.sink.map_or(0, |sink| sink.length));
        let limit = self.config.limits.max_getput_md as u64;
        if verb == Verb::GetPut && exchanged > limit || plan.length() > MAX_LENGTH {
            return Err(Error::MdIllegal);
        }
        Ok(plan)
    }

    /// What a put or an exchange sends.
    #[inline(always)]
    pub(crate) fn source(&self, transfer: &Transfer) -> Result<Part> {
        self.part(transfer.source, transfer.source_offset, transfer.length)
    }

    /// Offset and length lie within an active descriptor (sections 3.13.3, 3.13.5).
    #[inline(always)]
    fn part(&self, handle: Handle, offset: u64, length: Option<u64>) -> Result<Part> {
        let index = self.descriptor(handle)?;
        let active = self.descriptors.at(index).filter(|md| md.is_active());
        let whole = active.ok_or(Error::MdInvalid)?.buffer.length();
        let left = whole.checked_sub(offset).ok_or(Error::MdIllegal)?;
        let length = length.unwrap_or(left);
        if length > left {
            return Err(Error::MdIllegal);
        }
        Ok(Part {
            index,
            offset,
            length,
        })
    }

    /// Records an operation if it awaits a response.
    fn begin_operation(
        &mut self,
        transfer: &Transfer,
        plan: Plan,
        referenced: bool,
    ) -> Result<u32> {
        let ack = transfer.verb == Verb::Put && transfer.ack;
        let Some(named) = plan.named() else {
            return Ok(0);
        };
        if plan.sink.is_none() && !ack && !referenced {
            return Ok(0);
        }
        let token = self.record_operation(transfer, named, (plan.source, plan.sink), referenced)?;
        self.loans += usize::from(referenced);
        if let Some(sink) = plan
            .sink
            .and_then(|sink| self.descriptors.at_mut(sink.index))
        {
            sink.pending += 1;
        }
        Ok(token)
    }

    /// Records an operation that awaits a response. Its token is never 0, which stands for
    /// none.
    #[inline(always)]
    pub(crate) fn record_operation(
        &mut self,
        transfer: &Transfer,
        named: Part,
        (source, sink): (Option<Part>, Option<Part>),
        referenced: bool,
    ) -> Result<u32> {
        let operation = InFlight {
            // The handle is live, so its generation is the descriptor's.
            source: source.map(|source| (source.index, transfer.source.generation())),
            sink,
            ack: transfer.verb == Verb::Put && transfer.ack,
            details: Details {
                initiator: transfer.target,
                ..self.details(transfer, named)
            },
            stage: Stage::Awaiting,
            referenced,
        };
        let inserted = self.operations.insert(operation);
        let (index, generation) = inserted.map_err(|_| Error::NoSpace)?;
        self.status.messages.add();
        Ok(u32::from(index.0) | (u32::from(generation) + 1) << 16)
    }

    /// What the SEND events of an operation say that names these bytes.
    #[inline(always)]
    pub(crate) fn details(&self, transfer: &Transfer, named: Part) -> Details {
        Details {
            initiator: self.config.process,
            uid: self.config.uid,
            jid: self.config.jid,
            pt_index: transfer.portal,
            match_bits: transfer.match_bits,
            hdr_data: transfer.hdr_data,
            rlength: named.length,
            mlength: named.length,
            offset: named.offset,
        }
    }

    /// A put or an exchange: SEND events at the source, the second once it may be reused.
    fn send_from_source<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan,
        sending: Sending,
        host: &mut H,
    ) {
        let Some(source) = plan.source else { return };
        let details = self.details(transfer, source);
        let begun = self.begin(source.index, Pair::Send, details, host);
        let fail = self.send(transfer, plan.place, source, sending, host);
        if sending.referenced && fail == NiFail::Ok {
            self.note_sending(sending.token, begun);
        } else {
            self.end(begun, fail, host);
            self.end_if_unsent(sending.token, fail, host);
        }
    }

    /// A put's SEND_END comes with its response.
    #[inline(never)]
    fn note_sending(&mut self, token: u32, begun: Begun) {
        let index = self.operation(token);
        if let Some(operation) = index.and_then(|index| self.operations.at_mut(index)) {
            operation.stage = Stage::Sending(begun.start);
        }
    }

    /// A get. In Cray's dialect its sending counts, and posts SEND events.
    #[inline]
    fn send_get<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan,
        sending: Sending,
        host: &mut H,
    ) {
        let Some(sink) = plan.sink else { return };
        let details = self.details(transfer, sink);
        let fail = match self.config.dialect {
            Dialect::Specification => self.send(transfer, plan.place, sink, sending, host),
            Dialect::Cray => {
                let begun = self.begin(sink.index, Pair::Send, details, host);
                let fail = self.send(transfer, plan.place, sink, sending, host);
                self.end(begun, fail, host);
                fail
            }
        };
        self.end_if_unsent(sending.token, fail, host);
    }

    #[inline(always)]
    fn send<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        place: Place,
        part: Part,
        sending: Sending,
        host: &mut H,
    ) -> NiFail {
        let request = self.request(transfer, place, part.length, sending);
        let pieces = match self.descriptors.at(part.index) {
            Some(descriptor) => descriptor.buffer.pieces(part.offset, part.length),
            None => Pieces::none(),
        };
        self.status.sent.add(part.length);
        failure(host.send(transfer.target, &request, Body { pieces }))
    }

    #[inline(always)]
    pub(crate) fn request(
        &self,
        transfer: &Transfer,
        place: Place,
        length: u64,
        Sending { token, referenced }: Sending,
    ) -> Request {
        Request {
            verb: transfer.verb,
            interface: self.config.number,
            ack: transfer.verb == Verb::Put && transfer.ack,
            referenced,
            portal: place.portal,
            access: place.access,
            token,
            jid: self.config.jid,
            length,
            match_bits: transfer.match_bits,
            remote_offset: transfer.remote_offset,
            hdr_data: transfer.hdr_data,
        }
    }

    #[inline(always)]
    fn operation(&self, token: u32) -> Option<OperationIndex> {
        let index = OperationIndex(token as u16);
        let generation = (token >> 16).checked_sub(1)? as u16;
        self.operations.get(index, generation).map(|_| index)
    }

    /// A response has arrived. For a reply whose bytes still have to be moved, returns their
    /// place, and posts the START event; [`on_filled`](Self::on_filled) finishes it.
    pub fn on_response<H: Host<S>>(
        &mut self,
        response: &Response,
        host: &mut H,
    ) -> Option<(Pieces<S>, PendingReply)> {
        self.work.responses += 1;
        let Some(index) = self.awaiting(response) else {
            self.drop_response(response);
            return None;
        };
        if !response.reply {
            self.end_put(index, response, host);
            return None;
        }
        let sink = self.operations.at(index)?.sink?;
        let length = response.mlength.min(sink.length);
        if response.fail != NiFail::Ok {
            self.fail_reply(index, response.fail, host);
            return None;
        }
        if !self.begin_reply(index, length, host) {
            return None;
        }
        if response.placed {
            self.end_reply(index, NiFail::Ok, host);
            return None;
        }
        let descriptor = self.descriptors.at(sink.index)?;
        let pieces = descriptor.buffer.pieces(sink.offset, length);
        let token = response.token;
        Some((pieces, PendingReply { token }))
    }

    /// Whether a process's response answers an operation that is under way to it, is of its kind, and is
    /// the first one: another one is no news, or forged.
    pub fn awaits(&self, from: ProcessId, response: &Response) -> bool {
        let operation = self
            .awaiting(response)
            .and_then(|index| self.operations.at(index));
        operation.is_some_and(|operation| operation.target() == from)
    }

    /// Counts a response that isn't [awaited](Self::awaits) (PTL_SR_DROP_COUNT).
    pub fn drop_response(&mut self, response: &Response) {
        self.status.dropped.add(response.mlength);
    }

    /// The operation that a response answers: one of its kind, which it is the first to
    /// answer.
    fn awaiting(&self, response: &Response) -> Option<OperationIndex> {
        let index = self.operation(response.token)?;
        let operation = self.operations.at(index)?;
        let fits = response.reply == operation.sink.is_some() && !operation.is_filling();
        fits.then_some(index)
    }

    /// A reply's bytes have been moved, or couldn't be.
    pub fn on_filled<H: Host<S>>(&mut self, pending: PendingReply, fail: NiFail, host: &mut H) {
        if let Some(index) = self.operation(pending.token) {
            self.end_reply(index, fail, host);
        }
    }

    /// Ends a put whose acknowledgement has arrived, as [`on_response`](Self::on_response) does,
    /// but with one look at each table.
    ///
    /// Returns false, and has done nothing, unless a put to that process without lent memory awaits it,
    /// which has succeeded and whose descriptor is active.
    #[inline(always)]
    pub fn deliver_acknowledgement<H: Host<S>>(
        &mut self,
        from: ProcessId,
        response: &Response,
        host: &mut H,
    ) -> bool {
        let is_plain = !response.reply && !response.silent && response.fail == NiFail::Ok;
        let index = self.operation(response.token).filter(|_| is_plain);
        let Some(operation) = index.and_then(|index| self.operations.at(index)) else {
            return false;
        };
        let is_its = operation.target() == from && operation.is_plain_put();
        let (Some((source, generation)), true) = (operation.source, is_its) else {
            return false;
        };
        let descriptor = self.descriptors.get_mut(source, generation);
        let Some(descriptor) = descriptor.filter(|descriptor| descriptor.is_active()) else {
            return false;
        };
        self.work.responses += 1;
        // The target reports how many bytes it moved; never believe more than requested.
        let mlength = response.mlength.min(operation.details.rlength);
        let details = Details {
            rlength: mlength,
            mlength,
            offset: response.offset,
            ..operation.details
        };
        descriptor.count();
        let place = descriptor.queue;
        let queue = place.and_then(|place| Some((place, self.queues.at_mut(place)?)));
        let cause = queue.map(|(place, queue)| {
            let numbers = queue.number(None);
            self.work.events += 1;
            let event = descriptor.event(EventKind::Ack, &details, numbers, NiFail::Ok);
            host.post(place, event);
            numbers.sequence
        });
        let is_spent = descriptor.is_spent();
        if let Some(index) = index {
            self.operations.discard(index);
            self.status.messages.remove();
        }
        if is_spent {
            self.unlink_spent(source, details, cause, host);
        }
        true
    }

    /// An operation's target can't be reached any more.
    pub fn on_undeliverable<H: Host<S>>(&mut self, token: u32, host: &mut H) {
        if let Some(index) = self.operation(token) {
            self.end_unanswered(index, NiFail::Undeliverable, host);
        }
    }

    /// Everything under way to `target` has failed.
    pub fn on_target_lost<H: Host<S>>(&mut self, target: ProcessId, host: &mut H) {
        self.end_all(target, NiFail::Undeliverable, host);
    }

    /// Everything under way to `target` was dropped: there never was such a process (section
    /// 4.2).
    pub fn on_target_absent<H: Host<S>>(&mut self, target: ProcessId, host: &mut H) {
        self.end_all(target, NiFail::Dropped, host);
    }

    fn end_all<H: Host<S>>(&mut self, target: ProcessId, fail: NiFail, host: &mut H) {
        let operations = self.operations.iter();
        let to_target = operations.filter(|(_, operation)| operation.details.initiator == target);
        let lost: Vec<OperationIndex> = to_target.map(|(index, _)| index).collect();
        for index in lost {
            self.end_unanswered(index, fail, host);
        }
    }

    /// Ends an operation that won't be answered.
    fn end_unanswered<H: Host<S>>(&mut self, index: OperationIndex, fail: NiFail, host: &mut H) {
        let Some(operation) = self.operations.at(index) else {
            return;
        };
        if operation.sink.is_some() {
            return self.fail_reply(index, fail, host);
        }
        let response = Response {
            reply: false,
            interface: self.config.number,
            placed: false,
            silent: false,
            token: 0,
            mlength: 0,
            offset: 0,
            fail,
        };
        self.end_put(index, &response, host);
    }

    /// If the request of an operation was never sent, its reply will not come, and no
    /// acknowledgement is due.
    #[inline(always)]
    pub(crate) fn end_if_unsent<H: Host<S>>(&mut self, token: u32, fail: NiFail, host: &mut H) {
        if fail != NiFail::Ok {
            self.end_unsent(token, fail, host);
        }
    }

    #[cold]
    fn end_unsent<H: Host<S>>(&mut self, token: u32, fail: NiFail, host: &mut H) {
        let Some(index) = self.operation(token) else {
            return;
        };
        match self.operations.at(index) {
            Some(operation) if operation.sink.is_some() => self.fail_reply(index, fail, host),
            _ => drop(self.remove_operation(index)),
        }
    }

    #[inline(always)]
    fn remove_operation(&mut self, index: OperationIndex) -> Option<InFlight> {
        let operation = self.operations.remove(index)?;
        self.loans -= usize::from(operation.referenced);
        self.status.messages.remove();
        Some(operation)
    }

    /// The end of a put: SEND_END if the source was lent, then the acknowledgement. A put
    /// that was dropped is as good as sent, and isn't acknowledged (section 4.2).
    fn end_put<H: Host<S>>(&mut self, index: OperationIndex, response: &Response, host: &mut H) {
        let Some(operation) = self.remove_operation(index) else {
            return;
        };
        let Some((source, generation)) = operation.source else {
            return;
        };
        let fail = match response.fail {
            NiFail::Dropped => NiFail::Ok,
            fail => fail,
        };
        if let Some(begun) = operation.sending(self.config.process) {
            self.end(begun, fail, host);
        }
        if !operation.ack || response.silent || response.fail == NiFail::Dropped {
            return;
        }
        // The target reports how many bytes it moved; never believe more than requested.
        let mlength = response.mlength.min(operation.details.rlength);
        let details = Details {
            rlength: mlength,
            mlength,
            offset: response.offset,
            ..operation.details
        };
        let named = self.descriptors.get(source, generation);
        if named.is_some_and(|descriptor| descriptor.is_active()) {
            self.acknowledge(source, &details, fail, host);
        } else {
            self.status.dropped.add(mlength);
        }
    }

    /// A reply begins, unless its descriptor is inactive: then it is dropped (section 4.2).
    fn begin_reply<H: Host<S>>(
        &mut self,
        index: OperationIndex,
        length: u64,
        host: &mut H,
    ) -> bool {
        let Some(operation) = self.operations.at(index) else {
            return false;
        };
        let Some(sink) = operation.sink else {
            return false;
        };
        let details = operation.reply(sink, length);
        let active = self.descriptors.at(sink.index);
        if !active.is_some_and(|descriptor| descriptor.is_active()) {
            self.status.dropped.add(length);
            self.drop_reply(index, host);
            return false;
        }
        let begun = self.begin(sink.index, Pair::Reply, details, host);
        if let Some(operation) = self.operations.at_mut(index) {
            operation.stage = Stage::Filling(length, begun.start);
        }
        true
    }

    fn end_reply<H: Host<S>>(&mut self, index: OperationIndex, fail: NiFail, host: &mut H) {
        let Some(operation) = self.remove_operation(index) else {
            return;
        };
        if let Some(begun) = operation.filling() {
            self.release(begun.descriptor);
            self.end(begun, fail, host);
        }
    }

    /// A reply that will not come: nothing if the target dropped the request (section 4.2),
    /// else REPLY events that say so.
    fn fail_reply<H: Host<S>>(&mut self, index: OperationIndex, fail: NiFail, host: &mut H) {
        let begun = self.operations.at(index).is_some_and(InFlight::is_filling);
        if fail == NiFail::Dropped && !begun {
            return self.drop_reply(index, host);
        }
        if begun || self.begin_reply(index, 0, host) {
            self.end_reply(index, fail, host);
        }
    }

    /// Ends an operation without an event; its descriptor isn't pending any more.
    fn drop_reply<H: Host<S>>(&mut self, index: OperationIndex, host: &mut H) {
        let Some(operation) = self.remove_operation(index) else {
            return;
        };
        if let Some(sink) = operation.sink {
            self.release(sink.index);
            self.unlink_if_spent(sink.index, &operation.details, None, host);
        }
    }

    /// A get's descriptor is held from its start to its reply.
    fn release(&mut self, sink: DescriptorIndex) {
        if let Some(descriptor) = self.descriptors.at_mut(sink) {
            descriptor.pending -= 1;
        }
    }
}

/// Whether the host lends a body that needn't be copied.
#[inline(always)]
pub(crate) fn lends<S, H: Host<S>>(to: ProcessId, length: u64, host: &mut H) -> bool {
    length > ALWAYS_COPIED && host.lends(to, length)
}

/// How a request that the host was given has begun.
#[inline(always)]
pub(crate) const fn failure(sent: core::result::Result<(), Undeliverable>) -> NiFail {
    match sent {
        Ok(()) => NiFail::Ok,
        Err(Undeliverable) => NiFail::Undeliverable,
    }
}

/// No wildcard is addressed, and its indices fit into a message.
#[inline(always)]
pub(crate) fn check_place(transfer: &Transfer) -> Result<Place> {
    let target = transfer.target;
    if target.nid == NID_ANY || target.pid == PID_ANY {
        return Err(Error::ProcessInvalid);
    }
    Ok(Place {
        portal: PortalIndex::try_from(transfer.portal).map_err(|_| Error::PtIndexInvalid)?,
        access: u16::try_from(transfer.access).map_err(|_| Error::AcIndexInvalid)?,
    })
}
