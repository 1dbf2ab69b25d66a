//! Operations on direct entries: the initiator's host accesses the target's memory by itself, and
//! the target takes no part. Which entries qualify, and how such an operation is reported.

use crate::initiator::{End, Ended, InFlight, Plan};
use crate::{Host, Interface, Transfer};
use lintel_memory::{Buffer, Pieces, Span};
use lintel_types::{
    AckRequest, CounterIndex, CountingEvent, EntryIndex, Error, Handle, InterfaceNumber, List,
    MdOptions, MeOptions, NiFail, PortalIndex, ProcessId, Result, UID_ANY,
};
use lintel_wire::{Request, Response, Verb};

/// The initiator's side of an operation that its host carries out.
pub struct Exchange<'a, S> {
    /// What its caller has asked for.
    pub transfer: &'a Transfer,
    /// The interface that it is on, here and at the target.
    pub interface: InterfaceNumber,
    /// The rank of its process on that interface.
    pub rank: u32,
    /// What is put, or combined with the target; no bytes for a get.
    pub source: &'a [S],
    /// Where the target's bytes go; no bytes for a put or an atomic.
    pub sink: &'a [S],
}

/// Whether a host has carried an operation out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carried {
    /// Nothing is done: it has to be sent.
    No,
    /// All is done, at the target too.
    Yes,
    /// As `Yes`, on an entry of this very interface, whose counter counts so much.
    Counting(CounterIndex, u64),
}

/// An entry that peers may access without this process: whatever message matches it leaves no
/// trace but its bytes and a count, or its bytes and an event.
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
    /// Each message posts an event: this process has to hear of it.
    pub posts: bool,
}

/// What was found out for one operation that its host may carry out, and holds for others too: see
/// [`Interface::prepare`].
#[derive(Clone, Copy, Debug)]
pub struct Prepared<S> {
    /// The target's physical identifier.
    pub target: ProcessId,
    /// The memory of the descriptor that bytes are sent from, if there is one.
    pub source: S,
    /// The memory of the descriptor that an answer's bytes go to, if there is one.
    pub sink: S,
    /// What counts them.
    pub counts: PreparedCounts,
}

/// What counts operations that were [prepared](Interface::prepare).
#[derive(Clone, Copy, Debug)]
pub struct PreparedCounts {
    /// What is added to one counter, for both ends perhaps, and to another one if there are two.
    additions: [Addition; 2],
    descriptors_changed: u64,
}

/// What an operation adds to a counter; nothing if it isn't counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Addition {
    counter: CounterIndex,
    for_itself: u8,
    for_each_byte: u8,
}

impl Addition {
    const NONE: Addition = Addition {
        counter: CounterIndex(0),
        for_itself: 0,
        for_each_byte: 0,
    };

    /// For one end of an operation: its counter, and whether that counts bytes.
    fn of(end: Option<(CounterIndex, bool)>) -> Addition {
        end.map_or(Addition::NONE, |(counter, by_bytes)| Addition {
            counter,
            for_itself: u8::from(!by_bytes),
            for_each_byte: u8::from(by_bytes),
        })
    }

    fn is_any(self) -> bool {
        self.for_itself > 0 || self.for_each_byte > 0
    }

    /// How much an operation of so many bytes adds.
    #[inline(always)]
    fn by(self, length: u64) -> u64 {
        u64::from(self.for_itself) + u64::from(self.for_each_byte) * length
    }
}

impl PreparedCounts {
    /// Nothing is counted.
    pub const NONE: PreparedCounts = PreparedCounts {
        additions: [Addition::NONE; 2],
        descriptors_changed: 0,
    };

    pub(crate) fn new(
        ends: [Option<(CounterIndex, bool)>; 2],
        descriptors_changed: u64,
    ) -> PreparedCounts {
        let additions = match ends.map(Addition::of) {
            [sent, done] if !sent.is_any() => [done, sent],
            [sent, done] if sent.counter == done.counter => {
                let both = Addition {
                    counter: sent.counter,
                    for_itself: sent.for_itself + done.for_itself,
                    for_each_byte: sent.for_each_byte + done.for_each_byte,
                };
                [both, Addition::NONE]
            }
            both => both,
        };
        PreparedCounts {
            additions,
            descriptors_changed,
        }
    }

    /// The counters that count them, the first one first.
    pub fn counters(&self) -> [Option<CounterIndex>; 2] {
        self.additions
            .map(|addition| addition.is_any().then_some(addition.counter))
    }

    /// Whether anything is counted.
    #[inline(always)]
    pub fn is_any(&self) -> bool {
        self.additions[0].is_any()
    }

    /// How much the first counter counts for an operation of so many bytes.
    #[inline(always)]
    pub fn first_by(&self, length: u64) -> u64 {
        self.additions[0].by(length)
    }
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
            posts: self.posts,
        }
    }
}

impl<S: Span> Interface<S> {
    /// The entry under that handle, if peers of this user may access it by themselves now: it
    /// is linked to an enabled portal table entry without flow control, is the first to match
    /// what it matches, stays, manages no offset, and posts or counts, if not neither. If it
    /// counts, no triggered operation waits for that.
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
            && !(posts && counter.is_some())
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
            posts,
        })
    }

    /// The entry that takes a put or a get at first, on the priority list.
    pub fn entry_taking(&self, from: ProcessId, request: &Request) -> Option<Handle> {
        let portal = self.portal(request.portal).ok()?;
        let (found, _) = self.find_in(portal, List::Priority, from, request);
        let (index, _) = found?;
        let generation = self.entries.generation(index)?;
        Some(self.handle(self.entry_kind(), generation, index.into()))
    }

    /// Whether triggered operations wait for a counter.
    pub(crate) fn triggers(&self, counter: CounterIndex) -> bool {
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

    /// What holds for an operation and for all that differ from it only in offsets and length, and
    /// of atomics in operation and datatype, if they are on one span of each descriptor and at
    /// most counted; nothing for others, and for those that are wrong.
    pub fn prepare(&self, transfer: &Transfer) -> Option<Prepared<S>> {
        let plan = self.check(transfer).ok()?;
        let posts = |end: Option<End>| end.is_some_and(|end| end.posts());
        if transfer.verb == Verb::Swap || posts(plan.source) || posts(plan.sink) {
            return None;
        }
        let span = |end: Option<End>| match end {
            Some(end) => match self.descriptors.at(end.index)?.buffer {
                Buffer::Contiguous(span) => Some(span),
                Buffer::Vector(..) => None,
            },
            None => Some(S::empty()),
        };
        let (sent, reply, acknowledged) = (
            MdOptions::EVENT_CT_SEND,
            MdOptions::EVENT_CT_REPLY,
            MdOptions::EVENT_CT_ACK,
        );
        let ack = Self::wanted_ack(plan.source, transfer.ack);
        let done = match plan.sink {
            Some(sink) => sink.count(reply, AckRequest::None),
            None if ack == AckRequest::None => None,
            None => plan.source.and_then(|end| end.count(acknowledged, ack)),
        };
        let sent = plan
            .source
            .and_then(|end| end.count(sent, AckRequest::None));
        Some(Prepared {
            target: plan.target,
            source: span(plan.source)?,
            sink: span(plan.sink)?,
            counts: PreparedCounts::new([sent, done], self.descriptors_changed),
        })
    }

    /// Whether what an operation was [prepared](Self::prepare) with still holds.
    #[inline(always)]
    pub fn is_prepared(&self, counts: &PreparedCounts) -> bool {
        counts.descriptors_changed == self.descriptors_changed
    }

    /// What the first counter of prepared operations has counted of successes, if nothing waits for
    /// more of them: then the host may add to it by itself, and publishes the sum.
    #[inline(always)]
    pub fn first_successes(&mut self, counts: &PreparedCounts) -> Option<&mut u64> {
        let [Addition { counter, .. }, _] = counts.additions;
        let counter = self.counters.at_mut(counter)?;
        (counter.waiting.is_empty()).then_some(&mut counter.value.success)
    }

    /// Counts a prepared operation of so many bytes that its host has carried out.
    #[inline(always)]
    pub fn count_prepared<H: Host<S>>(
        &mut self,
        counts: &PreparedCounts,
        length: u64,
        host: &mut H,
    ) {
        for addition in counts.additions {
            if addition.is_any() {
                let (success, failure) = (addition.by(length), 0);
                let by = CountingEvent { success, failure };
                self.increment(addition.counter, by, host);
            }
        }
        self.settle(host);
    }

    /// Has the host carry out an operation that has been checked, and reports it, but leaves what
    /// counters release to the caller; false, with nothing done, if it has to be sent.
    #[inline(always)]
    pub(crate) fn carry_out<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan<S>,
        host: &mut H,
    ) -> bool {
        if self.overtakes(transfer, plan) {
            return false;
        }
        let one = |end: Option<End>, span: Option<S>| match end {
            Some(_) => span,
            None => Some(S::empty()),
        };
        let carried = match (one(plan.source, plan.span), one(plan.sink, plan.sink_span)) {
            (Some(source), Some(sink)) => {
                let (source, sink) = (&[source], &[sink]);
                host.carry_out(plan.target, self.exchange(transfer, source, sink))
            }
            _ => self.carry_out_pieces(transfer, plan, host),
        };
        match carried {
            Carried::No => return false,
            Carried::Yes => {}
            Carried::Counting(counter, by) => {
                let (success, failure) = (by, 0);
                self.increment(counter, CountingEvent { success, failure }, host);
            }
        }
        self.report_done(transfer, plan, host);
        true
    }

    /// Whether the reply or acknowledgement of an operation that is carried out would be posted
    /// ahead of those of operations that were sent before. Nothing else of it can be seen to be
    /// ahead: the host carries out none before the target has handled what was sent to it.
    #[inline(always)]
    fn overtakes(&self, transfer: &Transfer, plan: Plan<S>) -> bool {
        let posts = |end: Option<End>| end.is_some_and(|end| end.posts());
        self.operations_under_way() > 0
            && (posts(plan.sink) || transfer.ack == AckRequest::Full && posts(plan.source))
    }

    /// As [`carry_out`](Self::carry_out), where the host may have nothing to look at, out of the
    /// common path.
    #[inline(never)]
    pub(crate) fn try_carry_out<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan<S>,
        host: &mut H,
    ) -> bool {
        host.may_carry_out() && self.carry_out(transfer, plan, host)
    }

    /// The memory of a descriptor is several spans.
    #[inline(never)]
    fn carry_out_pieces<H: Host<S>>(
        &mut self,
        transfer: &Transfer,
        plan: Plan<S>,
        host: &mut H,
    ) -> Carried {
        let pieces = |end: Option<End>, offset| {
            let descriptor = end.and_then(|end| self.descriptors.at(end.index));
            descriptor.map_or(Pieces::none(), |descriptor| {
                descriptor.buffer.pieces(offset, transfer.length)
            })
        };
        let source = pieces(plan.source, transfer.source_offset);
        let sink = pieces(plan.sink, transfer.sink_offset);
        let exchange = self.exchange(transfer, source.as_slice(), sink.as_slice());
        host.carry_out(plan.target, exchange)
    }

    #[inline(always)]
    fn exchange<'a>(
        &self,
        transfer: &'a Transfer,
        source: &'a [S],
        sink: &'a [S],
    ) -> Exchange<'a, S> {
        Exchange {
            transfer,
            interface: self.number,
            rank: self.rank,
            source,
            sink,
        }
    }

    /// Posts and counts what the initiator of a successful operation asks for.
    #[inline(always)]
    fn report_done<H: Host<S>>(&mut self, transfer: &Transfer, plan: Plan<S>, host: &mut H) {
        let ack = Self::wanted_ack(plan.source, transfer.ack);
        if let Some(source) = plan.source {
            let (user_ptr, length) = (transfer.user_ptr, transfer.length);
            self.post_send(source, user_ptr, length, NiFail::Ok, host);
        }
        match (plan.sink, plan.source) {
            (Some(sink), _) if sink.posts() => self.post_done(transfer, plan, host),
            (Some(sink), _) => {
                self.count_done(sink, MdOptions::EVENT_CT_REPLY, ack, transfer.length, host);
            }
            (None, Some(_)) if ack == AckRequest::None => {}
            (None, Some(source)) if source.posts() => self.post_done(transfer, plan, host),
            (None, Some(source)) => {
                self.count_done(source, MdOptions::EVENT_CT_ACK, ack, transfer.length, host);
            }
            (None, None) => {}
        }
    }

    /// The reply or acknowledgement of an operation that is done, by an event perhaps.
    #[inline(never)]
    fn post_done<H: Host<S>>(&mut self, transfer: &Transfer, plan: Plan<S>, host: &mut H) {
        let operation = InFlight {
            ack: Self::wanted_ack(plan.source, transfer.ack),
            source: None,
            sink: None,
            offset: transfer.sink_offset,
            length: transfer.length,
            user_ptr: transfer.user_ptr,
            target: plan.target,
            sending: false,
            referenced: false,
            filling: false,
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
        match (plan.sink, plan.source) {
            (Some(sink), _) => self.post_reply(sink, Ended::new(&operation, &response), host),
            (None, Some(source)) => {
                self.post_ack(source, Ended::new(&operation, &response), host);
            }
            (None, None) => {}
        }
    }
}
