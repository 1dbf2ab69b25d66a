//! Requests that land in one step, and acknowledgements that end them in one: most messages are
//! short and for an ordinary entry, and need nothing kept between their decision and their
//! completion.

use crate::entries::Entry;
use crate::initiator::Ended;
use crate::portal::Portal;
use crate::target::{answer, event_of, is_silent, needed_by, reports, whole_elements};
use crate::{Host, Interface};
use lintel_memory::{Buffer, Span};
use lintel_types::{CounterIndex, EntryIndex, Event, List, MeOptions, NiFail, ProcessId};
use lintel_wire::{Acknowledgements, Request, Response, Verb};

/// What a request that lands in one step moves, or operates on.
#[derive(Clone, Copy, Debug)]
pub struct Step<S> {
    /// As many bytes of the entry's memory as the request names.
    pub span: S,
    /// Whether the entry's owner vouches that all of the entry can be touched; always, unless the
    /// request is a put.
    pub is_accessible: bool,
    /// What goes to the initiator if this succeeds, and if it awaits a response.
    pub response: Response,
}

/// A request that has landed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// What goes to the initiator, if it awaits a response.
    pub response: Option<Response>,
    /// It has nothing to say but its token: see [`Acknowledgements`].
    pub is_by_token: bool,
}

/// Where a request lands in one step, and what it causes there.
pub(crate) struct Place<S> {
    pub(crate) entry: EntryIndex,
    span: S,
    pub(crate) is_accessible: bool,
    pub(crate) options: MeOptions,
    pub(crate) counter: Option<CounterIndex>,
    pub(crate) user_ptr: u64,
    /// Entries that were looked at, this one included.
    pub(crate) walked: u32,
}

impl<S> Place<S> {
    /// Events that a message there may cause, at most: as [`Entry::most_events`], of an entry that
    /// doesn't manage its offset.
    #[inline(always)]
    fn most_events(&self) -> u32 {
        1 + u32::from(self.reports_unlink())
    }

    /// Whether a message uses the entry up, and that is reported.
    #[inline(always)]
    fn reports_unlink(&self) -> bool {
        let once = self.options.contains(MeOptions::USE_ONCE);
        once && !self.options.contains(MeOptions::EVENT_UNLINK_DISABLE)
    }
}

impl<S: Span> Interface<S> {
    /// Lands a request all of whose bytes came with it, as [`accept`](Self::accept),
    /// [`begin_landing`](Self::begin_landing) and [`on_landed`](Self::on_landed) do together,
    /// but with one look at each table. `act` moves the bytes of a put, sends the reply that its
    /// [step](Step::response) names to a get, or carries out an atomic.
    ///
    /// Returns nothing, and has done nothing, if the request takes those three steps: flow control
    /// sets in, the entry manages its offset or is on the overflow list, its memory is an I/O
    /// vector or doesn't have room for all bytes, or the request is refused.
    #[inline(always)]
    pub fn deliver<H: Host<S>>(
        &mut self,
        from: ProcessId,
        uid: u32,
        request: &Request,
        act: impl FnOnce(&mut H, Step<S>) -> NiFail,
        host: &mut H,
    ) -> Option<Delivered> {
        let portal = self.portals.get(request.portal.position())?.as_ref()?;
        let (queue, flow_controlled) = (portal.queue, portal.flow_controlled());
        let place = self.place(portal, from, uid, request)?;
        if flow_controlled && !self.queue_has_slots(queue, place.most_events(), host) {
            return None;
        }
        self.work.walked += u64::from(place.walked);
        let options = place.options;
        let silent = is_silent(request, options);
        let moved = |fail| match fail {
            NiFail::Ok => request.length,
            _ => 0,
        };
        let response = |fail| Response {
            mlength: moved(fail),
            silent,
            ..answer(request, fail)
        };
        let step = Step {
            span: place.span,
            is_accessible: place.is_accessible,
            response: response(NiFail::Ok),
        };
        let fail = act(host, step);
        self.work.requests += 1;
        if let Some(queue) = queue.filter(|_| reports(options, fail)) {
            let initiator = self.initiator(from, request.rank);
            let event = Event {
                start: place.span.address(),
                user_ptr: place.user_ptr,
                hdr_data: request.hdr_data,
                match_bits: request.match_bits,
                rlength: request.length,
                mlength: moved(fail),
                remote_offset: request.remote_offset,
                initiator,
                uid,
                pt_index: request.portal.into(),
                kind: event_of(request.verb),
                list: List::Priority,
                ni_fail: fail,
                operation: request.operation.into(),
                datatype: request.datatype.into(),
            };
            self.post(host, queue, &event);
        }
        if let (Some(counter), true) = (place.counter, options.contains(MeOptions::EVENT_CT_COMM)) {
            let bytes = (options.contains(MeOptions::EVENT_CT_BYTES)).then_some(request.length);
            self.count(counter, fail, bytes, host);
        }
        if options.contains(MeOptions::USE_ONCE) {
            let entry = (request.portal, place.user_ptr);
            self.retire(place.entry, entry, place.reports_unlink(), host);
        }
        self.settle(host);
        let is_answered = request.token != 0;
        let is_whole = is_answered && !silent && fail == NiFail::Ok && request.verb == Verb::Put;
        Some(Delivered {
            response: is_answered.then(|| response(fail)),
            is_by_token: is_whole && Acknowledgements::can_acknowledge(request),
        })
    }

    /// Ends a put or an atomic that was acknowledged, as [`on_response`](Self::on_response)
    /// does, but with one look at each table. Returns false, and has done nothing, if it has
    /// failed, lent its memory, or wants no acknowledgement, or is another process's to acknowledge.
    #[inline(always)]
    pub fn deliver_acknowledgement<H: Host<S>>(
        &mut self,
        from: ProcessId,
        response: &Response,
        host: &mut H,
    ) -> bool {
        let is_plain = !response.reply && !response.silent && response.fail == NiFail::Ok;
        is_plain && self.acknowledge(from, response.token, |_| *response, host)
    }

    /// As [`deliver_acknowledgement`](Self::deliver_acknowledgement), of an operation that was
    /// acknowledged by its token alone.
    #[inline(always)]
    pub fn deliver_token<H: Host<S>>(&mut self, from: ProcessId, token: u32, host: &mut H) -> bool {
        let number = self.number;
        let response = |length| Acknowledgements::response(number, token, length);
        self.acknowledge(from, token, response, host)
    }

    /// Ends an operation to that process, by the response that its length gives.
    #[inline(always)]
    fn acknowledge<H: Host<S>>(
        &mut self,
        from: ProcessId,
        token: u32,
        response: impl FnOnce(u64) -> Response,
        host: &mut H,
    ) -> bool {
        let Some((index, operation)) = self.under_way(token) else {
            return false;
        };
        let is_its = operation.target == from && operation.is_copied_put();
        let (Some(source), true) = (operation.source, is_its) else {
            return false;
        };
        let ended = Ended::new(operation, &response(operation.length));
        let Some(descriptor) = self.descriptors.at_mut(source) else {
            return false;
        };
        descriptor.pending -= 1;
        let end = descriptor.end(source);
        self.work.responses += 1;
        self.operations.discard(index);
        self.post_ack(end, ended, host);
        self.settle(host);
        true
    }

    /// Ends a get or a fetching atomic whose reply came with its bytes, as
    /// [`on_response`](Self::on_response) and [`on_filled`](Self::on_filled) do together, but with
    /// one look at each table. `fill` moves the bytes to a span. Returns false, and has done
    /// nothing, if the operation has failed, has lent its memory, or that is an I/O vector, or if it is
    /// another process's to answer.
    #[inline(always)]
    pub fn deliver_reply<H: Host<S>>(
        &mut self,
        from: ProcessId,
        response: &Response,
        fill: impl FnOnce(&mut H, S) -> NiFail,
        host: &mut H,
    ) -> bool {
        let is_plain = response.reply && !response.placed && response.fail == NiFail::Ok;
        let Some((index, operation)) = self.under_way(response.token).filter(|_| is_plain) else {
            return false;
        };
        let is_its = operation.target == from && operation.is_copied_fetch();
        let (Some(sink), true) = (operation.sink, is_its) else {
            return false;
        };
        let ended = Ended::new(operation, response);
        let (source, offset) = (operation.source, operation.offset);
        let Some(descriptor) = self.descriptors.at_mut(sink) else {
            return false;
        };
        let Buffer::Contiguous(memory) = descriptor.buffer else {
            return false;
        };
        descriptor.pending -= 1;
        let end = descriptor.end(sink);
        let fail = fill(host, memory.narrow(offset, ended.mlength));
        self.work.responses += 1;
        self.hold(source, -1);
        self.operations.discard(index);
        self.post_reply(end, Ended { fail, ..ended }, host);
        self.settle(host);
        true
    }

    /// The response to an operation under way that was acknowledged by its token alone; none if
    /// there is no such operation.
    #[inline(always)]
    pub fn response_by_token(&self, token: u32) -> Option<Response> {
        let (_, operation) = self.under_way(token)?;
        let length = operation.length;
        Some(Acknowledgements::response(self.number, token, length))
    }

    /// Whether no entry of the priority list takes a put so far, though the portal table entry
    /// would.
    pub fn is_unexpected(&self, from: ProcessId, put: &Request) -> bool {
        self.portal(put.portal).is_ok_and(|portal| {
            portal.enabled && self.find_in(portal, List::Priority, from, put).0.is_none()
        })
    }

    /// Where a request lands in one step; nothing if it takes three. Whether flow control sets in is
    /// left to the caller.
    #[inline(always)]
    pub(crate) fn place(
        &self,
        portal: &Portal,
        from: ProcessId,
        uid: u32,
        request: &Request,
    ) -> Option<Place<S>> {
        if !portal.enabled || portal.announce {
            return None;
        }
        let (found, walked) = self.find_in(portal, List::Priority, from, request);
        let (index, entry) = found?;
        let span = entry.span_of(request)?;
        let is_whole = request.length <= self.length_limit(request)
            && whole_elements(request, request.length) == request.length;
        let is_accessible = entry.is_accessible();
        let may_touch = is_accessible || request.verb == Verb::Put;
        (is_whole && may_touch && entry.allows_user(uid)).then_some(Place {
            entry: index,
            span,
            is_accessible,
            options: entry.spec.options,
            counter: entry.counter,
            user_ptr: entry.spec.user_ptr,
            walked,
        })
    }
}

impl<S: Span> Entry<S> {
    /// The one span that a request's bytes take here, if they do and may.
    #[inline(always)]
    fn span_of(&self, request: &Request) -> Option<S> {
        let needed = needed_by(request.verb);
        let decisive = needed.union(MeOptions::MANAGE_LOCAL);
        let Buffer::Contiguous(all) = self.spec.buffer else {
            return None;
        };
        let end = request.remote_offset.checked_add(request.length)?;
        let fits = end <= all.length() && self.spec.options.intersection(decisive) == needed;
        fits.then(|| all.narrow(request.remote_offset, request.length))
    }
}
