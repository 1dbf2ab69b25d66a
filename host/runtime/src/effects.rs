//! What the engine causes: events, counts, messages.

use crate::carry_out::CarryOut;
use crate::exchange::ExchangeBuffers;
use crate::mover::Mover;
use crate::owner::Owner;
use crate::resources::Placement;
use crate::send_copy::{CopiedMessage, lent, send_copy};
use crate::staged_sends::StagedSends;
use crate::transports::Transports;
use lintel_bridge::Tables;
use lintel_claim::{Claim, Lease};
use lintel_engine4::{Backlog, Body, Carried, Exchange, Host, Undeliverable};
use lintel_memory::{Pieces, Span};
use lintel_nal::{Nal, Outgoing};
use lintel_nal_shm::ShmNal;
use lintel_types::{CounterIndex, CountingEvent, Event, ProcessId, QueueIndex};
use lintel_wire::{OPERAND_BYTES, Request, Verb, Words};

/// An engine's [`Host`] for the length of a call.
pub struct Effects<'a, O: Owner> {
    pub(crate) transports: &'a mut Transports,
    pub(crate) tables: &'a O::Tables,
    pub(crate) owner: &'a O,
    pub(crate) staged: &'a mut StagedSends<O::Span>,
    pub(crate) exchange: &'a mut ExchangeBuffers,
    /// The lease under which the interface lends its memory.
    pub(crate) lease: &'a Lease,
}

impl<O: Owner> Host<O::Span> for Effects<'_, O> {
    #[inline(always)]
    fn post(&mut self, queue: QueueIndex, event: &Event) {
        self.tables.post(queue, event);
        self.transports.activity = true;
        if let Some(recorder) = self.transports.nal.recorder() {
            recorder.on_event(event.kind);
        }
    }

    #[inline]
    fn free_slots(&mut self, queue: QueueIndex) -> usize {
        self.tables.free_slots(queue)
    }

    fn queued(&mut self, queue: QueueIndex) -> usize {
        self.tables.queued(queue)
    }

    #[inline(always)]
    fn publish(&mut self, counter: CounterIndex, value: CountingEvent) {
        self.tables.publish(counter, value);
        self.transports.activity = true;
    }

    #[inline(always)]
    fn backlog(&mut self, to: ProcessId) -> Backlog {
        match self.transports.congested {
            true => self.transports.backlog(to),
            false => Backlog::Low,
        }
    }

    #[inline]
    fn lends(&mut self, to: ProcessId, length: u64) -> bool {
        to != self.transports.me && self.transports.nal.lends(to, length)
    }

    #[inline(always)]
    fn may_carry_out(&mut self) -> bool {
        let near = self.transports.nal.near();
        let may = |near: &ShmNal| near.looks_at_direct() || near.knows_private();
        O::PLACEMENT == Placement::Accelerated && near.is_some_and(may)
    }

    #[inline(always)]
    fn carry_out(&mut self, to: ProcessId, exchange: Exchange<'_, O::Span>) -> Carried {
        let claims = O::Mover::as_claims;
        match (claims(exchange.source), claims(exchange.sink)) {
            (Some(source), Some(sink)) => CarryOut {
                transports: self.transports,
                to,
                interface: exchange.interface,
                rank: exchange.rank,
                transfer: exchange.transfer,
                source,
                sink,
            }
            .run(),
            _ => Carried::No,
        }
    }

    #[inline(always)]
    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<'_, O::Span>,
    ) -> Result<(), Undeliverable> {
        let pieces = match &body.pieces {
            Pieces::One(one) if one.length() == 0 => &[],
            pieces => pieces.as_slice(),
        };
        let Some(pieces) = O::Mover::as_claims(pieces) else {
            return self.send_copy(to, request, body.operand, pieces);
        };
        let (is_get, words) = (request.verb == Verb::Get, request.to_words());
        if request.referenced {
            return lend(self.transports, self.lease, to, &words, is_get, pieces);
        }
        let outgoing = Outgoing::Copied {
            operand: body.operand,
            pieces: if is_get { &[] } else { pieces },
        };
        self.transports.send(to, &words, outgoing)
    }
}

impl<O: Owner> Effects<'_, O> {
    /// Sends memory that can't be touched.
    fn send_copy(
        &mut self,
        to: ProcessId,
        request: &Request,
        operand: Option<&[u8; OPERAND_BYTES]>,
        pieces: &[O::Span],
    ) -> Result<(), Undeliverable> {
        let message = CopiedMessage {
            to,
            words: request.to_words(),
            interface: request.interface,
            token: request.token,
            is_get: request.verb == Verb::Get,
            referenced: request.referenced,
            operand,
        };
        let (transports, staged) = (&mut *self.transports, &mut *self.staged);
        send_copy(self.owner, transports, staged, &message, pieces).map_err(|_| Undeliverable)
    }
}

/// Sends a header with lent memory: to be read, or to be filled by a get.
#[inline(never)]
fn lend(
    transports: &mut Transports,
    lease: &Lease,
    to: ProcessId,
    words: &Words,
    is_get: bool,
    pieces: &[Claim],
) -> Result<(), Undeliverable> {
    let outgoing = lent(is_get, lease.lend(pieces));
    transports.send(to, words, outgoing)
}
