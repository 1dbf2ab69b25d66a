//! Events (section 3.11): their numbers, and which of them a descriptor posts.

use crate::descriptors::Descriptor;
use crate::{Dialect, Host, Interface, Queue};
use lintel_memory::Span;
use lintel_types::portals3::{Event, EventKind, MdOptions, MemoryDescriptor, NI_FAIL, NI_OK};
use lintel_types::{DescriptorIndex, Handle, NiFail, ProcessId};

/// What the events of an operation at one descriptor say of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Details {
    /// The process that started it; in acknowledgements and replies its target.
    pub(crate) initiator: ProcessId,
    pub(crate) uid: u32,
    pub(crate) jid: u32,
    pub(crate) pt_index: u32,
    pub(crate) match_bits: u64,
    pub(crate) hdr_data: u64,
    /// Bytes requested, bytes moved, and bytes from the start of the descriptor's memory.
    pub(crate) rlength: u64,
    pub(crate) mlength: u64,
    pub(crate) offset: u64,
}

/// An operation that has begun at a descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) descriptor: DescriptorIndex,
    pub(crate) pair: Pair,
    pub(crate) details: Details,
    /// Number of its START event, if one was posted.
    pub(crate) start: Option<u32>,
}

/// The pair of events of an operation (section 3.11.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pair {
    Get,
    Put,
    GetPut,
    Reply,
    Send,
}

impl Pair {
    #[inline(always)]
    const fn start(self) -> EventKind {
        match self {
            Pair::Get => EventKind::GetStart,
            Pair::Put => EventKind::PutStart,
            Pair::GetPut => EventKind::GetPutStart,
            Pair::Reply => EventKind::ReplyStart,
            Pair::Send => EventKind::SendStart,
        }
    }

    #[inline(always)]
    const fn end(self) -> EventKind {
        match self {
            Pair::Get => EventKind::GetEnd,
            Pair::Put => EventKind::PutEnd,
            Pair::GetPut => EventKind::GetPutEnd,
            Pair::Reply => EventKind::ReplyEnd,
            Pair::Send => EventKind::SendEnd,
        }
    }
}

/// How an event is numbered and joined to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// Number in its queue.
    pub(crate) sequence: u32,
    /// Number of the event that it is joined to; without one it is joined to itself.
    pub(crate) link: Option<u32>,
}

/// An event that is posted, before it is an [`Event`]: what it says lies in the engine's tables.
/// A host turns it into one where it writes it, so that its words are in no other memory between.
#[derive(Clone, Copy, Debug)]
pub struct Posting<'a> {
    kind: EventKind,
    handle: Handle,
    md: &'a MemoryDescriptor,
    details: Details,
    numbers: Numbers,
    fail: NiFail,
}

impl From<Posting<'_>> for Event {
    #[inline(always)]
    fn from(posting: Posting<'_>) -> Event {
        let Posting {
            details,
            numbers: Numbers { sequence, link },
            ..
        } = posting;
        Event {
            initiator: details.initiator,
            uid: details.uid,
            jid: details.jid,
            pt_index: details.pt_index,
            match_bits: details.match_bits,
            rlength: details.rlength,
            mlength: details.mlength,
            offset: details.offset,
            hdr_data: details.hdr_data,
            link: link.unwrap_or(sequence),
            ni_fail: match posting.fail {
                NiFail::Ok => NI_OK,
                _ => NI_FAIL,
            },
            sequence,
            ..Event::new(posting.kind, posting.handle, *posting.md)
        }
    }
}

impl<S> Descriptor<S> {
    /// An event about the descriptor as it is now.
    #[inline(always)]
    pub(crate) fn event(
        &self,
        kind: EventKind,
        details: &Details,
        numbers: Numbers,
        fail: NiFail,
    ) -> Posting<'_> {
        Posting {
            kind,
            handle: self.handle,
            md: &self.md,
            details: *details,
            numbers,
            fail,
        }
    }
}

impl<S: Span> Interface<S> {
    /// An operation begins at a descriptor, which is pending until [`end`](Self::end): it
    /// counts, and posts its START event.
    #[inline(always)]
    pub(crate) fn begin<H: Host<S>>(
        &mut self,
        index: DescriptorIndex,
        pair: Pair,
        details: Details,
        host: &mut H,
    ) -> Begun {
        let mut begun = Begun {
            descriptor: index,
            pair,
            details,
            start: None,
        };
        let Some(descriptor) = self.descriptors.at_mut(index) else {
            return begun;
        };
        descriptor.count();
        descriptor.pending += 1;
        let Some(place) = descriptor.queue else {
            return begun;
        };
        let Some(queue) = self.queues.at_mut(place) else {
            return begun;
        };
        queue.begun += 1;
        let disabled = MdOptions::EVENT_START_DISABLE;
        if !descriptor.md.options.contains(disabled) {
            let numbers = queue.number(None);
            begun.start = Some(numbers.sequence);
            self.work.events += 1;
            let event = descriptor.event(pair.start(), &begun.details, numbers, NiFail::Ok);
            host.post(place, event);
        }
        begun
    }

    /// An operation ends at a descriptor: its END event, and the descriptor's unlinking if
    /// it was the last.
    #[inline(always)]
    pub(crate) fn end<H: Host<S>>(&mut self, begun: Begun, fail: NiFail, host: &mut H) {
        let (index, pair) = (begun.descriptor, begun.pair);
        let Some(descriptor) = self.descriptors.at_mut(index) else {
            return;
        };
        descriptor.pending -= 1;
        let (mut details, mut cause) = (begun.details, begun.start);
        if fail != NiFail::Ok {
            details.mlength = 0;
        }
        let place = descriptor.queue;
        if let Some(queue) = place.and_then(|place| self.queues.at_mut(place)) {
            queue.begun -= 1;
            let disabled = MdOptions::EVENT_END_DISABLE;
            if let (Some(place), false) = (place, descriptor.md.options.contains(disabled)) {
                let numbers = queue.number(begun.start);
                cause = Some(numbers.sequence);
                self.work.events += 1;
                let event = descriptor.event(pair.end(), &details, numbers, fail);
                host.post(place, event);
            }
        }
        if descriptor.is_spent() {
            self.unlink_spent(index, details, cause, host);
        }
    }

    /// An acknowledgement: one event, which no option disables (section 3.11.1).
    pub(crate) fn acknowledge<H: Host<S>>(
        &mut self,
        index: DescriptorIndex,
        details: &Details,
        fail: NiFail,
        host: &mut H,
    ) {
        if let Some(descriptor) = self.descriptors.at_mut(index) {
            descriptor.count();
        }
        let event = self.report(index, EventKind::Ack, details, (fail, None), host);
        self.unlink_if_spent(index, details, event, host);
    }

    /// Unlinks a descriptor that is to go now.
    pub(crate) fn unlink_if_spent<H: Host<S>>(
        &mut self,
        index: DescriptorIndex,
        details: &Details,
        cause: Option<u32>,
        host: &mut H,
    ) {
        let descriptor = self.descriptors.at(index);
        if descriptor.is_some_and(|descriptor| descriptor.is_spent()) {
            self.unlink_spent(index, *details, cause, host);
        }
    }

    /// Section 3.10: a descriptor with PTL_UNLINK goes once it is inactive and nothing is
    /// pending; the event is the last of it.
    ///
    /// Takes the details by value: then they are in memory for this call alone.
    #[inline(never)]
    pub(crate) fn unlink_spent<H: Host<S>>(
        &mut self,
        index: DescriptorIndex,
        details: Details,
        cause: Option<u32>,
        host: &mut H,
    ) {
        let asked = MdOptions::EVENT_AUTO_UNLINK_ENABLE;
        let asks = self.descriptors.at(index);
        let asks = asks.is_some_and(|descriptor| descriptor.md.options.contains(asked));
        if asks || self.config.dialect == Dialect::Specification {
            let unlinked = (NiFail::Ok, cause);
            self.report(index, EventKind::Unlink, &details, unlinked, host);
        }
        self.remove_descriptor(index);
    }

    /// Posts an event that has no pair, if the descriptor has a queue; `outcome` is how the
    /// operation ended, and the event that it is joined to. Returns its number.
    pub(crate) fn report<H: Host<S>>(
        &mut self,
        index: DescriptorIndex,
        kind: EventKind,
        details: &Details,
        (fail, link): (NiFail, Option<u32>),
        host: &mut H,
    ) -> Option<u32> {
        let descriptor = self.descriptors.at(index)?;
        let place = descriptor.queue?;
        let numbers = self.queues.at_mut(place)?.number(link);
        self.work.events += 1;
        let event = descriptor.event(kind, details, numbers, fail);
        host.post(place, event);
        Some(numbers.sequence)
    }
}

impl Queue {
    /// The numbers of its next event.
    #[inline(always)]
    pub(crate) fn number(&mut self, link: Option<u32>) -> Numbers {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        Numbers { sequence, link }
    }
}
