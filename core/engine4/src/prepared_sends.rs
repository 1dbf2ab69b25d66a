//! Messages that are like earlier ones: between the same descriptors and the same target. What the
//! first one was checked for holds for them too, as long as no descriptor has changed.

use crate::direct::PreparedCounts;
use crate::initiator::{End, InFlight, send_event};
use crate::{Interface, Transfer};
use lintel_memory::{Buffer, Span};
use lintel_types::{
    AckRequest, DescriptorIndex, Event, MdOptions, NiFail, PortalIndex, ProcessId, QueueIndex,
};
use lintel_wire::{Request, Verb};

/// What was found out for an operation that is sent, and holds for others of the same verb,
/// descriptors, target and acknowledgement: see [`Interface::prepare_send`].
#[derive(Clone, Copy)]
pub struct PreparedSend<S> {
    /// The target's physical identifier.
    target: ProcessId,
    /// Where bytes are sent from, if they are.
    source: Side<S>,
    /// Where an answer's bytes go to, if it has any.
    sink: Side<S>,
    /// The acknowledgement that the target is asked for.
    ack: AckRequest,
    /// The queue of the events that the body was sent.
    queue: Option<QueueIndex>,
    /// What counts that.
    counts: PreparedCounts,
}

/// A descriptor and its memory.
#[derive(Clone, Copy)]
struct Side<S> {
    index: DescriptorIndex,
    memory: S,
}

impl<S: Span> PreparedSend<S> {
    /// The target's physical identifier.
    pub fn target(&self) -> ProcessId {
        self.target
    }

    /// What counts that the body was sent.
    #[inline(always)]
    pub fn counts(&self) -> &PreparedCounts {
        &self.counts
    }

    /// Whether, if they are puts, nothing but a counter reports them.
    pub fn is_silent(&self) -> bool {
        self.ack == AckRequest::None && self.queue.is_none()
    }

    /// The memory that one like the first sends or, a get, fills, if its arguments are right.
    #[inline(always)]
    pub fn body(&self, transfer: &Transfer) -> Option<S> {
        PortalIndex::try_from(transfer.portal).ok()?;
        let (length, (source, sink)) = (transfer.length, (self.source.memory, self.sink.memory));
        match transfer.verb {
            Verb::Put | Verb::Atomic => source.part(transfer.source_offset, length),
            Verb::Get => sink.part(transfer.sink_offset, length),
            _ => {
                sink.part(transfer.sink_offset, length)?;
                source.part(transfer.source_offset, length)
            }
        }
    }
}

/// Whether an answer has bytes.
#[inline(always)]
fn is_fetching(verb: Verb) -> bool {
    !matches!(verb, Verb::Put | Verb::Atomic)
}

impl<S: Span> Interface<S> {
    /// What holds for an operation, and for all others of the same verb, descriptors, target and
    /// acknowledgement that have at most `longest` bytes, if each descriptor is one span; nothing
    /// for others, for swaps, and for those that are wrong.
    pub fn prepare_send(&self, transfer: &Transfer, longest: u64) -> Option<PreparedSend<S>> {
        let plan = self.check(transfer).ok()?;
        let limit = self.config.eager.min(self.config.limits.max_msg_size);
        if longest > limit || transfer.verb == Verb::Swap {
            return None;
        }
        let sent = plan
            .source
            .and_then(|end| end.count(MdOptions::EVENT_CT_SEND, AckRequest::None));
        Some(PreparedSend {
            target: plan.target,
            source: self.side(plan.source)?,
            sink: self.side(plan.sink)?,
            ack: Self::wanted_ack(plan.source, transfer.ack),
            queue: plan.source.and_then(|end| end.queue_of_sends()),
            counts: PreparedCounts::new([sent, None], self.descriptors_changed),
        })
    }

    /// An end of an operation, if it is one span; one without bytes where there is none.
    fn side(&self, end: Option<End>) -> Option<Side<S>> {
        let Some(End { index, .. }) = end else {
            let (index, memory) = (DescriptorIndex(0), S::empty());
            return Some(Side { index, memory });
        };
        match self.descriptors.at(index)?.buffer {
            Buffer::Contiguous(memory) => Some(Side { index, memory }),
            Buffer::Vector(..) => None,
        }
    }

    /// The request that asks the target for an operation without an answer.
    #[inline(always)]
    pub fn request(&self, transfer: &Transfer) -> Request {
        transfer.request(self.number, self.rank)
    }

    /// Starts an operation that is like the one that `prepared` was found out for, as
    /// [`start`](Self::start) does: the caller has made sure that it is, that its length is
    /// one that was asked for, and that [nothing has changed](Self::is_prepared). It counts that
    /// the body was sent.
    ///
    /// `send` may refuse, with nothing done. Returns whether an event was posted; nothing, with
    /// nothing done, if the operation has to be started otherwise.
    #[inline(always)]
    pub fn repeat_send(
        &mut self,
        prepared: &PreparedSend<S>,
        transfer: &Transfer,
        send: impl FnOnce(&Request, S) -> Option<()>,
        post: impl FnOnce(QueueIndex, &Event),
    ) -> Option<bool> {
        let is_moved = matches!(transfer.verb, Verb::Put | Verb::Get);
        if !is_moved && transfer.check_alone(&self.config.limits).is_err() {
            return None;
        }
        let body = prepared.body(transfer)?;
        let is_answered = is_fetching(transfer.verb) || prepared.ack != AckRequest::None;
        let token = match is_answered {
            true => self.begin_like(prepared, transfer)?,
            false => 0,
        };
        let request = Request {
            ack: prepared.ack,
            token,
            ..self.request(transfer)
        };
        if send(&request, body).is_none() {
            self.take_back(token);
            return None;
        }
        if let Some(queue) = prepared.queue {
            self.work.events += 1;
            let event = send_event(transfer.user_ptr, transfer.length, NiFail::Ok);
            post(queue, &event);
        }
        Some(prepared.queue.is_some())
    }

    /// Records an operation that awaits a response.
    #[inline(always)]
    fn begin_like(&mut self, prepared: &PreparedSend<S>, transfer: &Transfer) -> Option<u32> {
        let (is_get, fetches) = (transfer.verb == Verb::Get, is_fetching(transfer.verb));
        let begun = self.begin(InFlight {
            ack: prepared.ack,
            source: (!is_get).then_some(prepared.source.index),
            sink: fetches.then_some(prepared.sink.index),
            sink_offset: transfer.sink_offset,
            length: transfer.length,
            user_ptr: transfer.user_ptr,
            target: prepared.target,
            sending: false,
            referenced: false,
        });
        begun.ok()
    }

    /// An operation wasn't sent.
    #[cold]
    #[inline(never)]
    fn take_back(&mut self, token: u32) {
        if let Some((index, operation)) = self.under_way(token) {
            let ends = [operation.source, operation.sink];
            self.operations.remove(index);
            ends.into_iter().for_each(|end| self.hold(end, -1));
        }
    }
}
