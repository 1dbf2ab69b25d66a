//! Puts that land in one step, and acknowledgements that end them in one: most messages are
//! short puts to an ordinary entry, and need nothing kept between their decision and their
//! completion.

use crate::entries::Entry;
use crate::initiator::Ended;
use crate::portal::Portal;
use crate::target::{answer, is_silent, reports};
use crate::{Host, Interface};
use lintel_memory::{Buffer, Span};
use lintel_types::{
    CounterIndex, EntryIndex, Event, EventKind, List, MeOptions, NiFail, ProcessId,
};
use lintel_wire::{Acknowledgements, Request, Response};

/// A put that has landed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Delivered {
    /// What goes to the initiator, if it awaits a response.
    pub response: Option<Response>,
    /// It has nothing to say but its token: see [`Acknowledgements`].
    pub is_by_token: bool,
}

/// Where a put lands in one step, and what it causes there.
pub(crate) struct Place<S> {
    pub(crate) entry: EntryIndex,
    span: S,
    pub(crate) is_accessible: bool,
    pub(crate) options: MeOptions,
    pub(crate) counter: Option<CounterIndex>,
    pub(crate) user_ptr: u64,
    /// Events that it may cause, at most.
    most_events: u32,
    /// Entries that were looked at, this one included.
    pub(crate) walked: u32,
}

impl<S: Span> Interface<S> {
    /// Lands a put whose bytes came with it, as [`accept`](Self::accept),
    /// [`begin_landing`](Self::begin_landing) and [`on_landed`](Self::on_landed) do together,
    /// but with one look at each table. `copy` moves the bytes to a span; its second argument
    /// is whether the entry's owner vouches that all of it can be touched.
    ///
    /// Returns nothing, and has done nothing, if the put takes those three steps: flow control sets
    /// in, the entry manages its offset or is on the overflow list, its memory is an I/O
    /// vector or doesn't have room for all bytes, or the put is refused.
    #[inline(always)]
    pub fn deliver<H: Host<S>>(
        &mut self,
        from: ProcessId,
        uid: u32,
        put: &Request,
        copy: impl FnOnce(S, bool) -> NiFail,
        host: &mut H,
    ) -> Option<Delivered> {
        let portal = self.portals.get(put.portal.position())?.as_ref()?;
        let (queue, flow_controlled) = (portal.queue, portal.flow_controlled());
        let place = self.place(portal, from, uid, put)?;
        if flow_controlled && !self.queue_has_slots(queue, place.most_events, host) {
            return None;
        }
        self.work.requests += 1;
        self.work.walked += u64::from(place.walked);
        let fail = copy(place.span, place.is_accessible);
        let options = place.options;
        let mlength = if fail == NiFail::Ok { put.length } else { 0 };
        if let Some(queue) = queue.filter(|_| reports(options, fail)) {
            let initiator = self.initiator(from, put.rank);
            let event = Event {
                start: place.span.address(),
                user_ptr: place.user_ptr,
                hdr_data: put.hdr_data,
                match_bits: put.match_bits,
                rlength: put.length,
                mlength,
                remote_offset: put.remote_offset,
                initiator,
                uid,
                pt_index: put.portal.into(),
                kind: EventKind::Put,
                list: List::Priority,
                ni_fail: fail,
                operation: put.operation.into(),
                datatype: put.datatype.into(),
            };
            self.post(host, queue, &event);
        }
        if let (Some(counter), true) = (place.counter, options.contains(MeOptions::EVENT_CT_COMM)) {
            let bytes = (options.contains(MeOptions::EVENT_CT_BYTES)).then_some(put.length);
            self.count(counter, fail, bytes, host);
        }
        if options.contains(MeOptions::USE_ONCE) {
            let reports = !options.contains(MeOptions::EVENT_UNLINK_DISABLE);
            let entry = (put.portal, place.user_ptr);
            self.retire(place.entry, entry, reports, host);
        }
        self.settle(host);
        let (is_answered, silent) = (put.token != 0, is_silent(put, options));
        let response = is_answered.then(|| Response {
            mlength,
            silent,
            ..answer(put, fail)
        });
        let is_whole = is_answered && !silent && fail == NiFail::Ok;
        Some(Delivered {
            response,
            is_by_token: is_whole && Acknowledgements::can_acknowledge(put),
        })
    }

    /// Ends a put or an atomic that was acknowledged, as [`on_response`](Self::on_response)
    /// does, but with one look at each table. Returns false, and has done nothing, if it has
    /// failed, lent its memory, or wants no acknowledgement.
    #[inline(always)]
    pub fn deliver_acknowledgement<H: Host<S>>(
        &mut self,
        response: &Response,
        host: &mut H,
    ) -> bool {
        let is_plain = !response.reply && !response.silent && response.fail == NiFail::Ok;
        let Some((index, operation)) = self.under_way(response.token).filter(|_| is_plain) else {
            return false;
        };
        let (Some(source), true) = (operation.source, operation.is_copied_put()) else {
            return false;
        };
        let ended = Ended::new(operation, response);
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

    /// Where a put lands in one step; nothing if it takes three. Whether flow control sets in is
    /// left to the caller.
    #[inline(always)]
    pub(crate) fn place(
        &self,
        portal: &Portal,
        from: ProcessId,
        uid: u32,
        put: &Request,
    ) -> Option<Place<S>> {
        if !portal.enabled || portal.announce {
            return None;
        }
        let (found, walked) = self.find_in(portal, List::Priority, from, put);
        let (index, entry) = found?;
        let span = entry.span_of(put)?;
        let is_short = put.length <= self.config.limits.max_msg_size;
        (is_short && entry.allows_user(uid)).then(|| Place {
            entry: index,
            span,
            is_accessible: entry.is_accessible(),
            options: entry.spec.options,
            counter: entry.counter,
            user_ptr: entry.spec.user_ptr,
            most_events: entry.most_events(),
            walked,
        })
    }
}

impl<S: Span> Entry<S> {
    /// The one span that a put's bytes take here, if they do and may.
    #[inline(always)]
    fn span_of(&self, put: &Request) -> Option<S> {
        let needed = MeOptions::OP_PUT;
        let decisive = needed.union(MeOptions::MANAGE_LOCAL);
        let Buffer::Contiguous(all) = self.spec.buffer else {
            return None;
        };
        let end = put.remote_offset.checked_add(put.length)?;
        let fits = end <= all.length() && self.spec.options.intersection(decisive) == needed;
        fits.then(|| all.narrow(put.remote_offset, put.length))
    }
}
