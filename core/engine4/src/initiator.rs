//! The initiator's side: starting operations and reporting their end
//! (Portals 4.3, sections `Data movement operations` and `Atomic operations`).

use crate::descriptors::Descriptor;
use crate::{Backlog, Body, Host, Interface, Undeliverable};
use lintel_memory::{Buffer, Pieces, Span};
use lintel_snapshot::OperationState;
use lintel_types::{
    ALWAYS_COPIED, AckRequest, CounterIndex, Datatype, DescriptorIndex, Error, Event, EventKind,
    Handle, InterfaceNumber, Kind, Limits, List, MdOptions, NiFail, Operation, OperationIndex,
    PortalIndex, ProcessId, QueueIndex, Result,
};
use lintel_wire::{OPERAND_BYTES, Request, Response, Verb};

/// Everything that a data movement call is given.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Transfer {
    /// The data movement call that it is.
    pub verb: Verb,
    /// Descriptor that bytes are sent from; unused by a get.
    pub source: Handle,
    /// Bytes from the start of the source descriptor's memory.
    pub source_offset: u64,
    /// Descriptor that an answer's bytes go to; unused by a put and an atomic.
    pub sink: Handle,
    /// Bytes from the start of the sink descriptor's memory.
    pub sink_offset: u64,
    /// Bytes to move; the target may truncate them.
    pub length: u64,
    /// The acknowledgement asked for; `None` for anything but a put or an atomic.
    pub ack: AckRequest,
    /// The target: a process, or a rank on a logical interface.
    pub target: ProcessId,
    /// Portal table index at the target, as the caller gave it; what no header can carry
    /// is refused with the other arguments.
    pub portal: u32,
    /// Match bits of the message; unused on a non-matching interface.
    pub match_bits: u64,
    /// Bytes from the start of the entry's memory, unless the entry manages its offset.
    pub remote_offset: u64,
    /// The caller's value, returned in the initiator's events.
    pub user_ptr: u64,
    /// Out-of-band data, returned in the target's events.
    pub hdr_data: u64,
    /// `ptl_op_t` of an atomic, the default otherwise.
    pub operation: Operation,
    /// `ptl_datatype_t` of an atomic, the default otherwise.
    pub datatype: Datatype,
    /// Operand of a conditional or masked swap.
    pub operand: [u8; OPERAND_BYTES],
}

impl Transfer {
    /// The descriptor that it is made with, or the first of two.
    #[inline(always)]
    pub fn md(&self) -> Handle {
        if self.source == Handle::INVALID {
            self.sink
        } else {
            self.source
        }
    }

    /// The request that asks a target for it, or reports it there: unanswered, from a process of
    /// that rank.
    #[inline(always)]
    pub fn request(&self, interface: InterfaceNumber, rank: u32) -> Request {
        Request {
            verb: self.verb,
            interface,
            ack: AckRequest::None,
            referenced: false,
            // `check_alone` has refused what would be cut off.
            portal: PortalIndex(self.portal as u16),
            token: 0,
            rank,
            length: self.length,
            operation: self.operation,
            datatype: self.datatype,
            match_bits: self.match_bits,
            remote_offset: self.remote_offset,
            hdr_data: self.hdr_data,
        }
    }

    /// Checks what needs neither the descriptors nor the target.
    ///
    /// # Errors
    /// `ArgInvalid` for an index that can't be, too many bytes, an operation that its
    /// datatype doesn't have.
    #[inline(always)]
    pub fn check_alone(&self, limits: &Limits) -> Result<()> {
        PortalIndex::try_from(self.portal)?;
        if self.length > limits.max_msg_size {
            return Err(Error::ArgInvalid);
        }
        match self.verb {
            Verb::Put | Verb::Get => Ok(()),
            _ => self.check_atomic(limits),
        }
    }

    /// Portals 4.3, section `Atomic operations`: whole elements, no more than the limit, one
    /// element for a conditional or masked swap.
    #[inline(always)]
    fn check_atomic(&self, limits: &Limits) -> Result<()> {
        let size = self.datatype.size() as u64;
        let limit = match self.verb {
            Verb::Atomic => limits.max_atomic_size,
            Verb::Swap if self.operation.uses_compare() => size.min(limits.max_fetch_atomic_size),
            _ => limits.max_fetch_atomic_size,
        };
        let fits = (self.verb == Verb::Swap) == self.operation.is_swap();
        if !fits || self.length > limit || self.length % size != 0 {
            return Err(Error::ArgInvalid);
        }
        Ok(())
    }

    /// Whether the acknowledgement that it asks for has a queue or counter to go to
    /// (Portals 4.3, section `Data movement operations`, `ptl_ack_req_t`), by what its source
    /// was bound with.
    #[inline(always)]
    pub fn ack_deliverable(&self, options: MdOptions, queue: bool, counter: bool) -> bool {
        // Compared one by one, the common one first, where a match would become a table.
        if self.ack == AckRequest::None {
            true
        } else if self.ack == AckRequest::Full {
            queue && !options.contains(MdOptions::UNRELIABLE)
        } else {
            counter || self.ack == AckRequest::OperationCompleted
        }
    }
}

/// An operation in flight.
pub(crate) struct InFlight {
    pub(crate) ack: AckRequest,
    pub(crate) source: Option<DescriptorIndex>,
    pub(crate) sink: Option<DescriptorIndex>,
    /// Bytes from the start of its sink, or from the start of its source if that is lent.
    pub(crate) offset: u64,
    pub(crate) length: u64,
    pub(crate) user_ptr: u64,
    pub(crate) target: ProcessId,
    /// The source is still being read.
    pub(crate) sending: bool,
    /// Its memory is lent to the host until the response (rendezvous).
    pub(crate) referenced: bool,
    /// Its reply has arrived, and is being moved: there is no second one.
    pub(crate) filling: bool,
}

impl InFlight {
    /// Whether it is a put or an atomic whose bytes were copied, and that wants an
    /// acknowledgement.
    #[inline(always)]
    pub(crate) fn is_copied_put(&self) -> bool {
        self.sink.is_none() && !self.referenced && self.ack != AckRequest::None
    }

    /// Whether its reply ends it, and goes straight to its memory.
    #[inline(always)]
    pub(crate) fn is_copied_fetch(&self) -> bool {
        self.sink.is_some() && !self.referenced && !self.sending && !self.filling
    }

    /// What tools see of it.
    pub(crate) fn state(&self) -> OperationState {
        OperationState {
            target: self.target,
            length: self.length,
            fetches: self.sink.is_some(),
        }
    }
}

/// The generation that the first tokens of an interface carry.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tokens(u16);

impl Tokens {
    /// Those of the first interface.
    pub const FIRST: Tokens = Tokens(0);
}

/// The result of a check: the descriptors, and the target's physical identifier.
#[derive(Clone, Copy)]
pub(crate) struct Plan<S> {
    pub(crate) source: Option<End>,
    pub(crate) sink: Option<End>,
    /// The memory to be sent from or, by a get, to be filled, if it is one span.
    pub(crate) span: Option<S>,
    /// The memory to be filled, if it is one span.
    pub(crate) sink_span: Option<S>,
    pub(crate) target: ProcessId,
}

/// A descriptor, and the queue and counter that it reports to.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) index: DescriptorIndex,
    options: MdOptions,
    queue: Option<QueueIndex>,
    counter: Option<CounterIndex>,
}

impl End {
    /// Whether it has a queue for full events.
    #[inline(always)]
    pub(crate) fn posts(&self) -> bool {
        self.queue.is_some()
    }

    /// The queue of the events that a body was sent.
    pub(crate) fn queue_of_sends(&self) -> Option<QueueIndex> {
        self.queue
            .filter(|_| !self.options.intersects(NO_SEND_EVENT))
    }

    /// The counter of successful operations, if it counts them by that option, and whether it
    /// counts their bytes.
    #[inline(always)]
    pub(crate) fn count(&self, option: MdOptions, ack: AckRequest) -> Option<(CounterIndex, bool)> {
        let counter = self.counter.filter(|_| self.options.contains(option))?;
        let counts_bytes = self.options.contains(MdOptions::EVENT_CT_BYTES);
        Some((
            counter,
            counts_bytes && ack != AckRequest::OperationCompleted,
        ))
    }
}

/// Options of descriptors without an event that a body was sent, if nothing has failed.
const NO_SEND_EVENT: MdOptions =
    MdOptions::EVENT_SEND_DISABLE.union(MdOptions::EVENT_SUCCESS_DISABLE);

/// PTL_EVENT_SEND of so many bytes.
#[inline(always)]
pub(crate) fn send_event(user_ptr: u64, length: u64, fail: NiFail) -> Event {
    let mut event = Event::new(EventKind::Send);
    event.user_ptr = user_ptr;
    event.rlength = length;
    event.mlength = length;
    event.ni_fail = fail;
    event
}

/// How the end of an operation is reported.
struct Report {
    end: End,
    kind: EventKind,
    /// Whether a full event is due, besides a count.
    full: bool,
    /// The option that asks for a count.
    count: MdOptions,
}

/// What is reported of an operation that has ended.
#[derive(Clone, Copy)]
pub(crate) struct Ended {
    pub(crate) ack: AckRequest,
    pub(crate) user_ptr: u64,
    pub(crate) rlength: u64,
    pub(crate) mlength: u64,
    pub(crate) offset: u64,
    pub(crate) list: List,
    pub(crate) fail: NiFail,
}

impl Ended {
    #[inline(always)]
    pub(crate) fn new(operation: &InFlight, response: &Response) -> Ended {
        Ended {
            ack: operation.ack,
            user_ptr: operation.user_ptr,
            rlength: operation.length,
            // The target reports how many bytes it moved; never believe more than requested.
            mlength: response.mlength.min(operation.length),
            offset: response.offset,
            list: response.list,
            fail: response.fail,
        }
    }
}

impl<S> Descriptor<S> {
    #[inline(always)]
    pub(crate) fn end(&self, index: DescriptorIndex) -> End {
        let (options, queue, counter) = (self.options, self.queue, self.counter);
        End {
            index,
            options,
            queue,
            counter,
        }
    }
}

impl<S: Span> Interface<S> {
    /// PtlPut, PtlGet, PtlAtomic, PtlFetchAtomic, PtlSwap.
    ///
    /// # Errors
    /// `ArgInvalid` for a descriptor that isn't live, bytes outside it, a target
    /// or index that can't be, an acknowledgement that has nowhere to go, an
    /// operation that its datatype doesn't have; `NoSpace` while 65,535
    /// operations are under way, or the host's backlog to the target is full.
    #[inline]
    pub fn start<H: Host<S>>(&mut self, transfer: &Transfer, host: &mut H) -> Result<()> {
        match host.may_carry_out() {
            true => self.start_directly(transfer, host),
            false => self.start_by_message(transfer, host),
        }
    }

    /// As [`start`](Self::start), for an operation that the host [may carry
    /// out](Host::may_carry_out).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[inline(never)]
    pub fn start_directly<H: Host<S>>(&mut self, transfer: &Transfer, host: &mut H) -> Result<()> {
        let plan = self.check(transfer)?;
        if self.carry_out(transfer, plan, host) {
            self.settle(host);
            return Ok(());
        }
        self.start_checked(transfer, plan, host)
    }

    /// As [`start`](Self::start), for an operation that the host can't [carry
    /// out](Host::may_carry_out).
    ///
    /// # Errors
    /// As [`start`](Self::start).
    #[inline(always)]
    pub fn start_by_message<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        host: &mut H,
    ) -> Result<()> {
        let plan = self.check(transfer)?;
        self.start_checked(transfer, plan, host)
    }

    #[inline(always)]
    fn start_checked<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan<S>,
        host: &mut H,
    ) -> Result<()> {
        let is_short = transfer.length <= ALWAYS_COPIED && transfer.length <= self.config.eager;
        match (host.backlog(plan.target), plan.span) {
            (Backlog::Low, Some(span)) if is_short => {
                self.launch(transfer, plan, Pieces::One(span), false, host)?;
            }
            // A copy, so that the common path has none in memory.
            (backlog, _) => self.start_other(transfer, &{ plan }, backlog, host)?,
        }
        self.settle(host);
        Ok(())
    }

    /// As [`start`](Self::start), for a longer body or several spans, or a target with a backlog.
    #[inline(never)]
    fn start_other<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: &Plan<S>,
        backlog: Backlog,
        host: &mut H,
    ) -> Result<()> {
        if backlog == Backlog::Full {
            return Err(Error::NoSpace);
        }
        let plan = *plan;
        let stays = Self::may_stay(transfer, plan)
            && (backlog != Backlog::Low || self.lends(transfer, plan, host));
        self.launch_any(transfer, plan, stays, host)
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
        self.operations
            .iter()
            .map(|(_, operation)| operation.target)
    }

    #[inline(always)]
    pub(crate) fn check(&self, transfer: &Transfer) -> Result<Plan<S>> {
        transfer.check_alone(&self.config.limits)?;
        let reads = transfer.verb != Verb::Get;
        let writes = !matches!(transfer.verb, Verb::Put | Verb::Atomic);
        let mut plan = Plan {
            source: None,
            sink: None,
            span: None,
            sink_span: None,
            target: self.route(transfer.target)?,
        };
        if writes {
            let (end, span) = self.within(transfer.sink, transfer.sink_offset, transfer.length)?;
            (plan.sink, plan.span, plan.sink_span) = (Some(end), span, span);
        }
        if reads {
            let (end, span) =
                self.within(transfer.source, transfer.source_offset, transfer.length)?;
            (plan.source, plan.span) = (Some(end), span);
        }
        if !writes {
            Self::check_ack(plan.source, transfer)?;
        }
        Ok(plan)
    }

    /// The target's physical identifier; on a logical interface the map gives it.
    ///
    /// # Errors
    /// `ArgInvalid` for a rank that isn't in the map, and for no one process.
    #[inline(always)]
    pub fn route(&self, target: ProcessId) -> Result<ProcessId> {
        if self.logical() {
            return self
                .map
                .get(target.rank() as usize)
                .copied()
                .ok_or(Error::ArgInvalid);
        }
        if target.nid == ProcessId::NID_ANY || target.pid == ProcessId::PID_ANY {
            return Err(Error::ArgInvalid);
        }
        Ok(target)
    }

    /// Portals 4.3, section `Data movement operations`: offset and length lie within the
    /// descriptor. Returns the span as well, if its memory is one.
    #[inline(always)]
    pub(crate) fn within(
        &self,
        handle: Handle,
        offset: u64,
        length: u64,
    ) -> Result<(End, Option<S>)> {
        let index = DescriptorIndex(handle.index());
        let mine = handle.is(Kind::MemoryDescriptor) && handle.interface() == self.number;
        match self.descriptors.get(index, handle.generation()) {
            Some(descriptor) if mine => {
                let span = match &descriptor.buffer {
                    Buffer::Contiguous(all) => {
                        Some(all.part(offset, length).ok_or(Error::ArgInvalid)?)
                    }
                    Buffer::Vector(_, all) => match offset.checked_add(length) {
                        Some(end) if end <= *all => None,
                        _ => return Err(Error::ArgInvalid),
                    },
                };
                Ok((descriptor.end(index), span))
            }
            _ => Err(Error::ArgInvalid),
        }
    }

    #[inline(always)]
    pub(crate) fn check_ack(source: Option<End>, transfer: &Transfer) -> Result<()> {
        let undeliverable = source.is_some_and(|end| {
            !transfer.ack_deliverable(end.options, end.queue.is_some(), end.counter.is_some())
        });
        if undeliverable {
            Err(Error::ArgInvalid)
        } else {
            Ok(())
        }
    }

    /// As [`launch`](Self::launch), for an operation that no caller can retry.
    pub(crate) fn launch_triggered<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan<S>,
        host: &mut H,
    ) -> Result<()> {
        if self.try_carry_out(transfer, plan, host) {
            return Ok(());
        }
        let is_behind = host.backlog(plan.target) != Backlog::Low;
        let stays = is_behind || self.lends(transfer, plan, host);
        self.launch_any(
            transfer,
            plan,
            stays && Self::may_stay(transfer, plan),
            host,
        )
    }

    /// Whether the host lends a body that needn't be copied.
    fn lends<H: Host<S>>(&self, transfer: &Transfer, plan: Plan<S>, host: &mut H) -> bool {
        transfer.length > ALWAYS_COPIED && host.lends(plan.target, transfer.length)
    }

    /// As [`launch`](Self::launch), for any body; it stays in place (rendezvous) if it is long or
    /// `stays`.
    fn launch_any<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan<S>,
        stays: bool,
        host: &mut H,
    ) -> Result<()> {
        let pieces = match plan.span {
            Some(span) => Pieces::One(span),
            None => self.gather(transfer, plan),
        };
        let referenced = transfer.length > self.config.eager || stays;
        self.launch(transfer, plan, pieces, referenced, host)
    }

    /// Sends a checked operation, whose body stays in place if it is `referenced`. On `NoSpace`
    /// nothing has changed.
    #[inline(always)]
    fn launch<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan<S>,
        pieces: Pieces<S>,
        referenced: bool,
        host: &mut H,
    ) -> Result<()> {
        let replies = !matches!(transfer.verb, Verb::Put | Verb::Atomic);
        let ack = match transfer.ack {
            AckRequest::None => AckRequest::None,
            ack => Self::wanted_ack(plan.source, ack),
        };
        let answered = replies || referenced || ack != AckRequest::None;
        let token = match answered {
            true => self.begin(InFlight {
                ack,
                source: plan.source.map(|end| end.index),
                sink: plan.sink.map(|end| end.index),
                offset: match replies {
                    true => transfer.sink_offset,
                    false => transfer.source_offset,
                },
                length: transfer.length,
                user_ptr: transfer.user_ptr,
                target: plan.target,
                sending: referenced && plan.source.is_some(),
                referenced,
                filling: false,
            })?,
            false => 0,
        };
        let request = Request {
            ack,
            referenced,
            token,
            ..transfer.request(self.number, self.rank)
        };
        let operand = (transfer.verb == Verb::Swap).then_some(&transfer.operand);
        let sent = host.send(plan.target, &request, Body { operand, pieces });
        let (user_ptr, length) = (transfer.user_ptr, transfer.length);
        match (sent, plan.source) {
            (Ok(()), Some(source)) if !referenced => {
                self.post_send(source, user_ptr, length, NiFail::Ok, host);
            }
            (Ok(()), _) => {}
            (Err(Undeliverable), _) if answered => self.end_unsent(token, host),
            (Err(Undeliverable), Some(source)) => {
                self.post_send_apart(source, user_ptr, length, NiFail::Undeliverable, host);
            }
            (Err(Undeliverable), None) => {}
        }
        Ok(())
    }

    /// The memory to be sent from or to be filled, which is several spans.
    fn gather(&self, transfer: &Transfer, plan: Plan<S>) -> Pieces<S> {
        let (end, offset) = match plan.source {
            Some(source) => (Some(source), transfer.source_offset),
            None => (plan.sink, transfer.sink_offset),
        };
        match end.and_then(|end| self.descriptors.at(end.index)) {
            Some(descriptor) => descriptor.buffer.pieces(offset, transfer.length),
            None => Pieces::none(),
        }
    }

    /// Whether a short body may stay in place until the response: not if the caller may
    /// reuse its memory at once (Portals 4.3, `PtlMDBind`, PTL_MD_VOLATILE).
    fn may_stay(transfer: &Transfer, plan: Plan<S>) -> bool {
        let is_volatile = |end: End| end.options.contains(MdOptions::VOLATILE);
        let plain = matches!(transfer.verb, Verb::Put | Verb::Get);
        plain && transfer.length > 0 && !plan.source.is_some_and(is_volatile)
    }

    /// An acknowledgement that could only be counted isn't requested if the descriptor
    /// doesn't count acknowledgements: it would have no effect, and the descriptor
    /// would be in use until it came.
    #[inline(always)]
    pub(crate) fn wanted_ack(source: Option<End>, ack: AckRequest) -> AckRequest {
        let counted = source.is_some_and(|end| end.options.contains(MdOptions::EVENT_CT_ACK));
        match ack {
            AckRequest::None | AckRequest::Full => ack,
            ack if counted => ack,
            _ => AckRequest::None,
        }
    }

    /// Records an operation that awaits a response; its token is never 0.
    #[inline(always)]
    pub(crate) fn begin(&mut self, operation: InFlight) -> Result<u32> {
        let (source, sink) = (operation.source, operation.sink);
        let referenced = operation.referenced;
        let inserted = self.operations.insert(operation);
        let (index, generation) = inserted.map_err(|_| Error::NoSpace)?;
        self.loans += usize::from(referenced);
        self.hold(source, 1);
        self.hold(sink, 1);
        Ok(u32::from(index.0) | (generation as u32 + 1) << 16)
    }

    #[inline(always)]
    pub(crate) fn hold(&mut self, descriptor: Option<DescriptorIndex>, by: i32) {
        if let Some(descriptor) = descriptor.and_then(|index| self.descriptors.at_mut(index)) {
            descriptor.pending = descriptor.pending.wrapping_add_signed(by);
        }
    }

    fn end_of(&self, descriptor: Option<DescriptorIndex>) -> Option<End> {
        descriptor.and_then(|index| Some(self.descriptors.at(index)?.end(index)))
    }

    #[inline]
    pub(crate) fn operation(&self, token: u32) -> Option<OperationIndex> {
        self.under_way(token).map(|(index, _)| index)
    }

    /// The operation that a token names, and its place.
    #[inline(always)]
    pub(crate) fn under_way(&self, token: u32) -> Option<(OperationIndex, &InFlight)> {
        let (index, generation) = (
            OperationIndex(token as u16),
            (token >> 16).checked_sub(1)? as u16,
        );
        let operation = self.operations.get(index, generation)?;
        Some((index, operation))
    }

    /// The request of an operation was never sent, so no send event was posted yet.
    #[cold]
    fn end_unsent<H: Host<S>>(&mut self, token: u32, host: &mut H) {
        let Some(index) = self.operation(token) else {
            return;
        };
        if let Some(operation) = self.operations.at_mut(index) {
            operation.sending = true;
        }
        self.end_undelivered(index, host);
    }

    /// Doesn't settle: a triggered operation may end here too, at any depth of a chain.
    pub(crate) fn end_undelivered<H: Host<S>>(&mut self, index: OperationIndex, host: &mut H) {
        let Some(operation) = self.operations.at(index) else {
            return;
        };
        let response = Response {
            reply: operation.sink.is_some(),
            interface: self.number,
            placed: true,
            silent: false,
            token: 0,
            mlength: 0,
            offset: 0,
            list: List::Priority,
            fail: NiFail::Undeliverable,
        };
        self.end(index, &response, host);
    }

    pub(crate) fn finish<H: Host<S>>(
        &mut self,
        index: OperationIndex,
        response: &Response,
        host: &mut H,
    ) {
        self.end(index, response, host);
        self.settle(host);
    }

    fn end<H: Host<S>>(&mut self, index: OperationIndex, response: &Response, host: &mut H) {
        let Some(operation) = self.operations.remove(index) else {
            return;
        };
        self.loans -= usize::from(operation.referenced);
        self.hold(operation.source, -1);
        self.hold(operation.sink, -1);
        let (source, sink) = (self.end_of(operation.source), self.end_of(operation.sink));
        if let (true, Some(source)) = (operation.sending, source) {
            let fail = match response.fail {
                NiFail::Undeliverable => NiFail::Undeliverable,
                _ => NiFail::Ok,
            };
            self.post_send_apart(source, operation.user_ptr, operation.length, fail, host);
        }
        match (sink, source) {
            (Some(sink), _) => self.post_reply(sink, Ended::new(&operation, response), host),
            (None, Some(source)) if !response.silent => {
                self.post_ack(source, Ended::new(&operation, response), host);
            }
            _ => {}
        }
    }

    /// The source may be reused: PTL_EVENT_SEND and its count (Portals 4.3, section `Events
    /// and event queues`).
    #[inline(always)]
    pub(crate) fn post_send<H: Host<S>>(
        &mut self,
        source: End,
        user_ptr: u64,
        length: u64,
        fail: NiFail,
        host: &mut H,
    ) {
        let End {
            options,
            queue,
            counter,
            ..
        } = source;
        if let Some(queue) = queue {
            if fail != NiFail::Ok || !options.intersects(NO_SEND_EVENT) {
                self.post(host, queue, &send_event(user_ptr, length, fail));
            }
        }
        if let (Some(counter), true) = (counter, options.contains(MdOptions::EVENT_CT_SEND)) {
            let bytes = (options.contains(MdOptions::EVENT_CT_BYTES)).then_some(length);
            self.count(counter, fail, bytes, host);
        }
    }

    /// As [`post_send`](Self::post_send), for a body that stayed in place, or wasn't sent.
    #[inline(never)]
    fn post_send_apart<H: Host<S>>(
        &mut self,
        source: End,
        user_ptr: u64,
        length: u64,
        fail: NiFail,
        host: &mut H,
    ) {
        self.post_send(source, user_ptr, length, fail, host);
    }

    /// Counts the end of a successful operation, if it is counted by that option.
    #[inline(always)]
    pub(crate) fn count_done<H: Host<S>>(
        &mut self,
        end: End,
        option: MdOptions,
        ack: AckRequest,
        length: u64,
        host: &mut H,
    ) {
        if let Some((counter, by_bytes)) = end.count(option, ack) {
            self.count(counter, NiFail::Ok, by_bytes.then_some(length), host);
        }
    }

    pub(crate) fn post_reply<H: Host<S>>(&mut self, sink: End, ended: Ended, host: &mut H) {
        let report = Report {
            end: sink,
            kind: EventKind::Reply,
            full: true,
            count: MdOptions::EVENT_CT_REPLY,
        };
        self.post_end(report, ended, host);
    }

    #[inline(always)]
    pub(crate) fn post_ack<H: Host<S>>(&mut self, source: End, mut ended: Ended, host: &mut H) {
        if ended.ack == AckRequest::None {
            return;
        }
        let completed = ended.ack == AckRequest::OperationCompleted;
        if completed && ended.fail != NiFail::Undeliverable {
            // It reports that the operation has ended, not how (PTL_OC_ACK_REQ).
            ended.fail = NiFail::Ok;
        }
        let report = Report {
            end: source,
            kind: EventKind::Ack,
            full: ended.ack == AckRequest::Full,
            count: MdOptions::EVENT_CT_ACK,
        };
        self.post_end(report, ended, host);
    }

    /// The event and the count at the end of an operation (Portals 4.3, section `Memory
    /// descriptors`, event and counting options).
    #[inline(always)]
    fn post_end<H: Host<S>>(&mut self, report: Report, ended: Ended, host: &mut H) {
        let End {
            options,
            queue,
            counter,
            ..
        } = report.end;
        let fail = ended.fail;
        let quiet = fail == NiFail::Ok && options.contains(MdOptions::EVENT_SUCCESS_DISABLE);
        if let (Some(queue), true, false) = (queue, report.full, quiet) {
            let event = Event {
                user_ptr: ended.user_ptr,
                rlength: ended.rlength,
                mlength: ended.mlength,
                remote_offset: ended.offset,
                list: ended.list,
                ni_fail: fail,
                ..Event::new(report.kind)
            };
            self.post(host, queue, &event);
        }
        if let (Some(counter), true) = (counter, options.contains(report.count)) {
            let by_bytes = options.contains(MdOptions::EVENT_CT_BYTES)
                && ended.ack != AckRequest::OperationCompleted;
            self.count(counter, fail, by_bytes.then_some(ended.mlength), host);
        }
    }
}
