//! What the engine causes: events and messages.

use crate::mover::Mover;
use crate::portals3::names::to_network;
use crate::portals3::owner::Owner3;
use crate::portals3::queues::EventQueues;
use crate::send_copy::{CopiedMessage, SendError, lent, send_copy};
use crate::staged_sends::StagedSends;
use crate::transports::Transports;
use lintel_claim::Lease;
use lintel_engine3::{Backlog, Body, Host, Posting, Undeliverable};
use lintel_memory::{Pieces, Span};
use lintel_nal::{Nal, Outgoing};
use lintel_types::{ProcessId, QueueIndex};
use lintel_wire::Words;
use lintel_wire::portals3::{Message, Request, Verb};
use std::collections::HashSet;

/// The engine's [`Host`] for the length of a call.
pub struct Effects<'a, O: Owner3> {
    pub(crate) transports: &'a mut Transports,
    pub(crate) owner: &'a O,
    pub(crate) queues: &'a mut O::Queues,
    pub(crate) staged: &'a mut StagedSends<O::Span>,
    /// The lease under which the interface lends its memory.
    pub(crate) lease: &'a Lease,
    /// The processes that something has come from.
    pub(crate) known: &'a HashSet<ProcessId>,
}

impl<O: Owner3> Host<O::Span> for Effects<'_, O> {
    #[inline(always)]
    fn post(&mut self, queue: QueueIndex, event: Posting<'_>) {
        self.queues.post(queue, event);
        self.transports.activity = true;
    }

    fn is_empty(&mut self, queue: QueueIndex) -> bool {
        self.queues.is_empty(queue)
    }

    #[inline(always)]
    fn backlog(&mut self, to: ProcessId) -> Backlog {
        if !self.transports.congested {
            return Backlog::Low;
        }
        network_name(to).map_or(Backlog::Low, |to| self.transports.backlog(to))
    }

    #[inline]
    fn lends(&mut self, to: ProcessId, length: u64) -> bool {
        let to = network_name(to).filter(|to| *to != self.transports.me);
        to.is_some_and(|to| self.transports.nal.lends(to, length))
    }

    #[inline(always)]
    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<O::Span>,
    ) -> Result<(), Undeliverable> {
        let to = network_name(to).ok_or(Undeliverable)?;
        let pieces = match &body.pieces {
            Pieces::One(one) if one.length() == 0 => &[],
            pieces => pieces.as_slice(),
        };
        let Some(pieces) = O::Mover::as_claims(pieces) else {
            return self.send_copy(to, *request, pieces);
        };
        let (is_get, words) = (request.verb == Verb::Get, request.to_words());
        let outgoing = match request.referenced {
            true => lent(is_get, self.lease.lend(pieces)),
            false => Outgoing::Copied {
                operand: None,
                pieces: if is_get { &[] } else { pieces },
            },
        };
        match self.transports.send(to, &words, outgoing) {
            Ok(()) => Ok(()),
            Err(_) => self.end_unreachable(to, &words),
        }
    }
}

impl<O: Owner3> Effects<'_, O> {
    /// Sends memory that can't be touched.
    fn send_copy(
        &mut self,
        to: ProcessId,
        request: Request,
        pieces: &[O::Span],
    ) -> Result<(), Undeliverable> {
        let message = CopiedMessage {
            to,
            words: request.to_words(),
            interface: request.interface,
            token: request.token,
            is_get: request.verb == Verb::Get,
            referenced: request.referenced,
            operand: None,
        };
        match send_copy(self.owner, self.transports, self.staged, &message, pieces) {
            Err(SendError::Unreachable) => self.end_unreachable(to, &message.words),
            sent => sent.map_err(|_| Undeliverable),
        }
    }

    /// A request to a process that isn't there is dropped, as at a target without an
    /// interface (section 4.2): programs send until the other side has begun. What ends the
    /// operation comes by the loopback, since the engine is in the middle of a call.
    ///
    /// # Errors
    /// `Undeliverable` if the process was there: who waits for it would wait for ever.
    #[cold]
    #[inline(never)]
    fn end_unreachable(&mut self, to: ProcessId, words: &Words) -> Result<(), Undeliverable> {
        if self.known.contains(&to) {
            return Err(Undeliverable);
        }
        let me = self.transports.me;
        let Ok(Message::Request(request)) = Message::parse(words) else {
            return Ok(());
        };
        if let Some(response) = request.refusal() {
            let nothing = Outgoing::Copied {
                operand: None,
                pieces: &[],
            };
            // It reaches this process whatever the networks do.
            let _ = self.transports.send(me, &response.to_words(), nothing);
        }
        Ok(())
    }
}

#[inline(always)]
fn network_name(process: ProcessId) -> Option<ProcessId> {
    Some(ProcessId::new(process.nid, to_network(process.pid)?))
}
