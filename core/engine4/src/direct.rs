//! Operations on direct entries: the initiator's host accesses the target's memory by itself, and
//! the target takes no part. Which entries qualify, and how such an operation is reported.

use crate::initiator::{End, InFlight, Plan};
use crate::{Host, Interface, Transfer};
use lintel_memory::{Buffer, Pieces, Span};
use lintel_types::{
    AckRequest, CounterIndex, CountingEvent, EntryIndex, Error, Handle, List, MeOptions, NiFail,
    PortalIndex, ProcessId, Result, UID_ANY,
};
use lintel_wire::{OPERAND_BYTES, Response};

/// The initiator's side of an operation that its host carries out.
pub struct Exchange<'a, S> {
    /// Operand of a conditional or masked swap.
    pub operand: &'a [u8; OPERAND_BYTES],
    /// What is put, or combined with the target; nothing for a get.
    pub source: Pieces<S>,
    /// Where the target's bytes go; nothing for a put or an atomic.
    pub sink: Pieces<S>,
}

/// An entry that peers may access without this process: whatever message matches it leaves no
/// trace but its bytes and a count.
#[derive(Clone, Copy, Debug)]
pub struct DirectSpec<S> {
    /// The portal table index that it is linked to.
    pub portal: PortalIndex,
    /// Its memory.
    pub span: S,
    /// Whether puts and atomics are allowed.
    pub takes_puts: bool,
    /// Whether gets are allowed.
    pub takes_gets: bool,
    /// Match bits that a message must carry.
    pub match_bits: u64,
    /// Bits that don't matter.
    pub ignore_bits: u64,
    /// Counts messages, or their bytes.
    pub counter: Option<(CounterIndex, bool)>,
}

impl<S> DirectSpec<S> {
    /// The same entry over memory that is named otherwise.
    pub fn over<T>(&self, span: T) -> DirectSpec<T> {
        DirectSpec {
            portal: self.portal,
            span,
            takes_puts: self.takes_puts,
            takes_gets: self.takes_gets,
            match_bits: self.match_bits,
            ignore_bits: self.ignore_bits,
            counter: self.counter,
        }
    }
}

impl<S: Span> Interface<S> {
    /// The entry under that handle, if peers of this user may access it by themselves now: it
    /// is linked to an enabled portal table entry without flow control, is the first to match
    /// what it matches, stays, manages no offset, and posts nothing. If it counts, no triggered
    /// operation waits for that.
    pub fn direct_entry(&self, handle: Handle) -> Option<DirectSpec<S>> {
        let index = self.entry(handle).ok()?;
        let entry = self.entries.at(index)?;
        let (spec, options) = (&entry.spec, entry.spec.options);
        let portal = self.portal(spec.portal).ok()?;
        let forbidden = MeOptions::USE_ONCE
            | MeOptions::MANAGE_LOCAL
            | MeOptions::ACK_DISABLE
            | MeOptions::MAY_ALIGN;
        let silent = MeOptions::EVENT_COMM_DISABLE | MeOptions::EVENT_SUCCESS_DISABLE;
        let posts = portal.queue.is_some() && !options.intersects(silent);
        let by_bytes = options.contains(MeOptions::EVENT_CT_BYTES);
        let counts = options.contains(MeOptions::EVENT_CT_COMM);
        let counter = entry.counter.filter(|_| counts);
        let triggers = counter.is_some_and(|counter| self.triggers(counter));
        let is_plain = entry.linked
            && entry.list == List::Priority
            && portal.enabled
            && !portal.flow_controlled()
            && !options.intersects(forbidden)
            && !posts
            && !triggers
            && (spec.uid == UID_ANY || spec.uid == self.config.uid)
            && self.takes_from_all(spec.source)
            && self.is_first(index, spec.portal);
        let Buffer::Contiguous(span) = spec.buffer else {
            return None;
        };
        let (match_bits, ignore_bits) = self.pattern(spec);
        is_plain.then_some(DirectSpec {
            portal: spec.portal,
            span,
            takes_puts: options.contains(MeOptions::OP_PUT),
            takes_gets: options.contains(MeOptions::OP_GET),
            match_bits,
            ignore_bits,
            counter: counter.map(|counter| (counter, by_bytes)),
        })
    }

    /// Whether triggered operations wait for a counter.
    fn triggers(&self, counter: CounterIndex) -> bool {
        let counter = self.counters.at(counter);
        counter.is_some_and(|counter| !counter.waiting.is_empty())
    }

    /// Counts what peers have done with a direct entry. Whether it still had a counter.
    pub fn count_direct<H: Host<S>>(&mut self, entry: Handle, by: u64, host: &mut H) -> bool {
        let index = self.entry(entry).ok();
        let entry = index.and_then(|index| self.entries.at(index));
        let counter = entry.and_then(|entry| entry.counter);
        if let Some(counter) = counter {
            let (success, failure) = (by, 0);
            self.increment(counter, CountingEvent { success, failure }, host);
            self.settle(host);
        }
        counter.is_some()
    }

    /// The entries that are linked to a portal table entry.
    pub fn entries_of(&self, portal: PortalIndex) -> impl Iterator<Item = Handle> {
        let linked = self.entries.iter();
        let of_portal = linked.filter(move |(_, e)| e.linked && e.spec.portal == portal);
        of_portal.filter_map(|(index, _)| {
            let generation = self.entries.generation(index)?;
            Some(self.handle(self.entry_kind(), generation, index.into()))
        })
    }

    /// The portal table index that a live entry is linked to.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live entry.
    pub fn portal_of(&self, entry: Handle) -> Result<PortalIndex> {
        let index = self.entry(entry)?;
        let entry = self.entries.at(index);
        entry
            .map(|entry| entry.spec.portal)
            .ok_or(Error::ArgInvalid)
    }

    fn takes_from_all(&self, source: ProcessId) -> bool {
        match self.logical() {
            true => source.rank() == ProcessId::RANK_ANY,
            false => source.nid == ProcessId::NID_ANY && source.pid == ProcessId::PID_ANY,
        }
    }

    /// Whether no entry ahead matches anything that this one does. One that ignores bits must
    /// be alone, unless it ignores all, as a list entry.
    fn is_first(&self, index: EntryIndex, portal: PortalIndex) -> bool {
        let (Ok(portal), Some(entry)) = (self.portal(portal), self.entries.at(index)) else {
            return false;
        };
        let (bits, ignore) = self.pattern(&entry.spec);
        let (first, _) = portal.priority.find(bits, |_| true);
        let is_exact = ignore == 0 || !self.matching();
        first == Some(index.0) && (is_exact || portal.priority.len() == 1)
    }

    /// Whether an operation [starts](Self::start) with an attempt of the host to carry it out.
    #[inline(always)]
    pub fn looks_at_direct<H: Host<S>>(
        &self,
        target: ProcessId,
        portal: u32,
        host: &mut H,
    ) -> bool {
        // An index that no header can carry is refused either way.
        let portal = PortalIndex(portal as u16);
        self.route(target)
            .is_ok_and(|to| host.has_direct(to, self.number, portal))
    }

    /// Whether the host may be able to carry out an operation that has been checked.
    pub(crate) fn may_carry_out<H: Host<S>>(
        &self,
        transfer: &Transfer,
        plan: Plan<S>,
        host: &mut H,
    ) -> bool {
        // `check_alone` has refused what would be cut off.
        let portal = PortalIndex(transfer.portal as u16);
        host.has_direct(plan.target, self.number, portal)
    }

    /// Has the host carry out an operation that has been checked, and reports it; false, with
    /// nothing done, if it has to be sent.
    pub(crate) fn carry_out<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan<S>,
        host: &mut H,
    ) -> bool {
        let done = self.carry_out_one(transfer, plan, host);
        if done {
            self.settle(host);
        }
        done
    }

    /// As [`carry_out`](Self::carry_out), but leaves what counters release to the caller.
    pub(crate) fn carry_out_one<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan<S>,
        host: &mut H,
    ) -> bool {
        let request = self.request(transfer);
        let data = self.exchange(transfer, plan);
        if !host.carry_out(plan.target, &request, data) {
            return false;
        }
        self.report_done(transfer, plan, host);
        true
    }

    #[inline(always)]
    fn exchange<'a>(&self, transfer: &'a Transfer, plan: Plan<S>) -> Exchange<'a, S> {
        let pieces = |end: Option<End>, offset| {
            let descriptor = end.and_then(|end| self.descriptors.at(end.index));
            descriptor.map_or(Pieces::none(), |descriptor| {
                descriptor.buffer.pieces(offset, transfer.length)
            })
        };
        Exchange {
            operand: &transfer.operand,
            source: pieces(plan.source, transfer.source_offset),
            sink: pieces(plan.sink, transfer.sink_offset),
        }
    }

    /// Posts and counts what the initiator of a successful operation asks for.
    #[inline(always)]
    fn report_done<H: Host<S>>(&mut self, transfer: &Transfer, plan: Plan<S>, host: &mut H) {
        let operation = InFlight {
            ack: Self::wanted_ack(plan.source, transfer.ack),
            source: None,
            sink: None,
            sink_offset: transfer.sink_offset,
            length: transfer.length,
            user_ptr: transfer.user_ptr,
            target: plan.target,
            sending: false,
            referenced: false,
        };
        let response = Response {
            reply: plan.sink.is_some(),
            interface: self.number(),
            placed: true,
            silent: false,
            token: 0,
            mlength: transfer.length,
            offset: transfer.remote_offset,
            list: List::Priority,
            fail: NiFail::Ok,
        };
        if let Some(source) = plan.source {
            let (user_ptr, length) = (transfer.user_ptr, transfer.length);
            self.post_send(source, user_ptr, length, NiFail::Ok, host);
        }
        match (plan.sink, plan.source) {
            (Some(sink), _) => self.post_reply(sink, &operation, &response, host),
            (None, Some(source)) if operation.ack != AckRequest::None => {
                self.post_ack(source, &operation, &response, host);
            }
            _ => {}
        }
    }
}
