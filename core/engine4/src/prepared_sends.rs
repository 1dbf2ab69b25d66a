//! Puts and gets that are like earlier ones: of the same descriptor and the same target. What the
//! first one was checked for holds for them too, as long as no descriptor has changed.

use crate::direct::PreparedCounts;
use crate::initiator::{InFlight, send_event};
use crate::{Interface, Transfer};
use lintel_memory::{Buffer, Span};
use lintel_types::{
    AckRequest, DescriptorIndex, Event, MdOptions, NiFail, PortalIndex, ProcessId, QueueIndex,
};
use lintel_wire::{Request, Verb};

/// What was found out for a put or a get that is sent, and holds for others of the same verb,
/// descriptor, target and acknowledgement: see [`Interface::prepare_send`].
#[derive(Clone, Copy)]
pub struct PreparedSend<S> {
    /// The target's physical identifier.
    target: ProcessId,
    descriptor: DescriptorIndex,
    /// The descriptor's memory.
    memory: S,
    /// The acknowledgement that the target is asked for.
    ack: AckRequest,
    /// The queue of the events that the body was sent.
    queue: Option<QueueIndex>,
    /// What counts that.
    counts: PreparedCounts,
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
        let offset = match transfer.verb {
            Verb::Get => transfer.sink_offset,
            _ => transfer.source_offset,
        };
        self.memory.part(offset, transfer.length)
    }
}

impl<S: Span> Interface<S> {
    /// What holds for a put or a get, and for all others of the same verb, descriptor, target and
    /// acknowledgement that have at most `longest` bytes, if the descriptor is one span; nothing
    /// for other operations, and for those that are wrong.
    pub fn prepare_send(&self, transfer: &Transfer, longest: u64) -> Option<PreparedSend<S>> {
        let plan = self.check(transfer).ok()?;
        let limit = self.config.eager.min(self.config.limits.max_msg_size);
        let end = match transfer.verb {
            Verb::Put => plan.source?,
            Verb::Get => plan.sink?,
            _ => return None,
        };
        let Buffer::Contiguous(memory) = self.descriptors.at(end.index)?.buffer else {
            return None;
        };
        let sent = plan
            .source
            .and_then(|end| end.count(MdOptions::EVENT_CT_SEND, AckRequest::None));
        (longest <= limit).then(|| PreparedSend {
            target: plan.target,
            descriptor: end.index,
            memory,
            ack: Self::wanted_ack(plan.source, transfer.ack),
            queue: plan.source.and_then(|end| end.queue_of_sends()),
            counts: PreparedCounts::new([sent, None], self.descriptors_changed),
        })
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
        let body = prepared.body(transfer)?;
        let is_answered = transfer.verb == Verb::Get || prepared.ack != AckRequest::None;
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
        let is_get = transfer.verb == Verb::Get;
        let begun = self.begin(InFlight {
            ack: prepared.ack,
            source: (!is_get).then_some(prepared.descriptor),
            sink: is_get.then_some(prepared.descriptor),
            offset: transfer.sink_offset,
            length: transfer.length,
            user_ptr: transfer.user_ptr,
            target: prepared.target,
            sending: false,
            referenced: false,
            filling: false,
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
