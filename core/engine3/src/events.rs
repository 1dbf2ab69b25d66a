//! Events (section 3.11): their numbers, and which of them a descriptor posts.

use crate::{Dialect, Host, Interface};
use lintel_memory::Span;
use lintel_types::portals3::{Event, EventKind, MdOptions, NI_FAIL, NI_OK};
use lintel_types::{DescriptorIndex, Kind, NiFail, ProcessId};

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
    pub(crate) details: Details,
    /// Number of its START event, if one was posted.
    start: Option<u32>,
}

/// An event to be posted.
pub(crate) struct Report<'a> {
    pub(crate) kind: EventKind,
    pub(crate) details: &'a Details,
    pub(crate) fail: NiFail,
    /// Number of the event that it is joined to; without one it is joined to itself.
    pub(crate) link: Option<u32>,
}

impl<'a> Report<'a> {
    /// Reports a success that is joined to no event.
    pub(crate) fn new(kind: EventKind, details: &'a Details) -> Self {
        Report {
            kind,
            details,
            fail: NiFail::Ok,
            link: None,
        }
    }
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
    const fn start(self) -> EventKind {
        match self {
            Pair::Get => EventKind::GetStart,
            Pair::Put => EventKind::PutStart,
            Pair::GetPut => EventKind::GetPutStart,
            Pair::Reply => EventKind::ReplyStart,
            Pair::Send => EventKind::SendStart,
        }
    }

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

impl<S: Span> Interface<S> {
    /// An operation begins at a descriptor, which is pending until [`end`](Self::end): it
    /// counts, and posts its START event.
    pub(crate) fn begin<H: Host<S>>(
        &mut self,
        index: DescriptorIndex,
        pair: Pair,
        details: Details,
        host: &mut H,
    ) -> Begun {
        let mut start = None;
        if let Some(descriptor) = self.descriptors.at_mut(index) {
            descriptor.count();
            descriptor.pending += 1;
            let options = descriptor.md.options;
            if let Some(queue) = descriptor.queue.and_then(|queue| self.queues.at_mut(queue)) {
                queue.begun += 1;
            }
            if !options.contains(MdOptions::EVENT_START_DISABLE) {
                start = self.report(index, Report::new(pair.start(), &details), host);
            }
        }
        Begun { details, start }
    }

    /// An operation ends at a descriptor: its END event, and the descriptor's unlinking if
    /// it was the last.
    pub(crate) fn end<H: Host<S>>(
        &mut self,
        index: DescriptorIndex,
        pair: Pair,
        begun: Begun,
        fail: NiFail,
        host: &mut H,
    ) {
        let Some(descriptor) = self.descriptors.at_mut(index) else {
            return;
        };
        descriptor.pending -= 1;
        let options = descriptor.md.options;
        if let Some(queue) = descriptor.queue.and_then(|queue| self.queues.at_mut(queue)) {
            queue.begun -= 1;
        }
        let mut details = begun.details;
        if fail != NiFail::Ok {
            details.mlength = 0;
        }
        let mut cause = begun.start;
        if !options.contains(MdOptions::EVENT_END_DISABLE) {
            let report = Report {
                fail,
                link: begun.start,
                ..Report::new(pair.end(), &details)
            };
            cause = self.report(index, report, host).or(cause);
        }
        self.unlink_if_spent(index, &details, cause, host);
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
            let report = Report {
                fail,
                ..Report::new(EventKind::Ack, details)
            };
            let event = self.report(index, report, host);
            self.unlink_if_spent(index, details, event, host);
        }
    }

    /// Section 3.10: a descriptor with PTL_UNLINK goes once it is inactive and nothing is
    /// pending; the event is the last of it.
    pub(crate) fn unlink_if_spent<H: Host<S>>(
        &mut self,
        index: DescriptorIndex,
        details: &Details,
        cause: Option<u32>,
        host: &mut H,
    ) {
        let Some(descriptor) = self.descriptors.at(index) else {
            return;
        };
        if !descriptor.is_spent() {
            return;
        }
        let asked = MdOptions::EVENT_AUTO_UNLINK_ENABLE;
        let reported = match self.config.dialect {
            Dialect::Specification => true,
            Dialect::Cray => descriptor.md.options.contains(asked),
        };
        if reported {
            let report = Report {
                link: cause,
                ..Report::new(EventKind::Unlink, details)
            };
            self.report(index, report, host);
        }
        self.remove_descriptor(index);
    }

    /// Posts an event about a descriptor, if it has a queue, and returns its number.
    pub(crate) fn report<H: Host<S>>(
        &mut self,
        index: DescriptorIndex,
        report: Report<'_>,
        host: &mut H,
    ) -> Option<u32> {
        let descriptor = self.descriptors.at(index)?;
        let place = descriptor.queue?;
        let generation = self.descriptors.generation(index)?;
        let handle = self.handle(Kind::MemoryDescriptor, generation, index.into());
        let md = descriptor.md;
        let queue = self.queues.at_mut(place)?;
        let sequence = queue.sequence;
        queue.sequence = sequence.wrapping_add(1);
        let details = report.details;
        let event = Event {
            initiator: details.initiator,
            uid: details.uid,
            jid: details.jid,
            pt_index: details.pt_index,
            match_bits: details.match_bits,
            rlength: details.rlength,
            mlength: details.mlength,
            offset: details.offset,
            hdr_data: details.hdr_data,
            link: report.link.unwrap_or(sequence),
            ni_fail: match report.fail {
                NiFail::Ok => NI_OK,
                _ => NI_FAIL,
            },
            sequence,
            ..Event::new(report.kind, handle, md)
        };
        self.work.events += 1;
        host.post(place, &event);
        Some(sequence)
    }
}
