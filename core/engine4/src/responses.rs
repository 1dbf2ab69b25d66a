//! What answers an operation that is under way, and what ends it without an answer.

use crate::initiator::InFlight;
use crate::{Host, Interface};
use alloc::vec::Vec;
use lintel_memory::{Pieces, Span};
use lintel_types::{NiFail, OperationIndex, ProcessId};
use lintel_wire::Response;

/// A reply that has arrived and whose bytes are being moved.
#[must_use = "a reply finishes through Interface::on_filled"]
#[derive(Debug)]
pub struct PendingReply {
    response: Response,
}

impl<S: Span> Interface<S> {
    /// A response has arrived. For a reply whose bytes still have to be moved, returns
    /// their place; [`on_filled`](Self::on_filled) finishes it.
    #[inline]
    pub fn on_response<H: Host<S>>(
        &mut self,
        response: &Response,
        host: &mut H,
    ) -> Option<(Pieces<S>, PendingReply)> {
        self.work.responses += 1;
        let (index, operation) = self.awaiting(response)?;
        if response.reply && response.fail == NiFail::Ok && !response.placed {
            let length = response.mlength.min(operation.length);
            let pieces = match operation.sink.and_then(|sink| self.descriptors.at(sink)) {
                Some(descriptor) => descriptor.buffer.pieces(operation.offset, length),
                None => Pieces::none(),
            };
            if let Some(operation) = self.operations.at_mut(index) {
                operation.filling = true;
            }
            return Some((
                pieces,
                PendingReply {
                    response: *response,
                },
            ));
        }
        self.finish(index, response, host);
        None
    }

    /// Whether a process's response answers an operation that is under way to it, is of its kind, and is
    /// the first one: another one is no news, or forged.
    pub fn awaits(&self, from: ProcessId, response: &Response) -> bool {
        let awaiting = self.awaiting(response);
        awaiting.is_some_and(|(_, operation)| operation.target == from)
    }

    /// The operation that a response answers: one of its kind, which it is the first to answer.
    fn awaiting(&self, response: &Response) -> Option<(OperationIndex, &InFlight)> {
        let (index, operation) = self.under_way(response.token)?;
        let fits = operation.sink.is_some() == response.reply && !operation.filling;
        fits.then_some((index, operation))
    }

    /// The memory of an operation whose body stays in place, as many bytes as the response says: if
    /// it came from the operation's target, which has granted that the initiator moves them. Moved
    /// or not, the operation is under way until [`on_response`](Self::on_response).
    pub fn granted(&self, from: ProcessId, response: &Response) -> Option<Pieces<S>> {
        let (_, operation) = self.awaiting(response)?;
        let is_its = operation.referenced
            && operation.target == from
            && response.mlength <= operation.length;
        let descriptor = self.descriptors.at(operation.sink.or(operation.source)?)?;
        let pieces = || descriptor.buffer.pieces(operation.offset, response.mlength);
        is_its.then(pieces)
    }

    /// A reply's bytes have been moved, or couldn't be.
    #[inline]
    pub fn on_filled<H: Host<S>>(&mut self, pending: PendingReply, fail: NiFail, host: &mut H) {
        let mut response = pending.response;
        if fail != NiFail::Ok {
            response.fail = fail;
        }
        if let Some(index) = self.operation(response.token) {
            self.finish(index, &response, host);
        }
    }

    /// An operation's target can't be reached any more.
    pub fn on_undeliverable<H: Host<S>>(&mut self, token: u32, host: &mut H) {
        if let Some(index) = self.operation(token) {
            self.end_undelivered(index, host);
            self.settle(host);
        }
    }

    /// Everything under way to `target` has failed; returns how many operations those were.
    pub fn on_target_lost<H: Host<S>>(&mut self, target: ProcessId, host: &mut H) -> usize {
        let lost: Vec<OperationIndex> = self
            .operations
            .iter()
            .filter_map(|(index, operation)| (operation.target == target).then_some(index))
            .collect();
        let count = lost.len();
        for index in lost {
            self.end_undelivered(index, host);
        }
        self.settle(host);
        count
    }
}
