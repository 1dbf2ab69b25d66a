//! What the engine causes: events and messages.

use crate::portals3::names::to_network;
use crate::portals3::queues::Queues;
use crate::transports::Transports;
use lintel_claim::{Claim, Lease};
use lintel_engine3::{Backlog, Body, Host, Undeliverable};
use lintel_memory::{Pieces, Span};
use lintel_nal::Outgoing;
use lintel_types::portals3::Event;
use lintel_types::{ProcessId, QueueIndex};
use lintel_wire::portals3::{Request, Verb};

/// The engine's [`Host`] for the length of a call.
pub struct Effects<'a> {
    pub(crate) transports: &'a mut Transports,
    pub(crate) queues: &'a mut Queues,
    /// The lease under which the interface lends its memory.
    pub(crate) lease: &'a Lease,
}

impl Host<Claim> for Effects<'_> {
    #[inline]
    fn post(&mut self, queue: QueueIndex, event: &Event) {
        self.queues.post(queue, event);
        self.transports.activity = true;
    }

    fn is_empty(&mut self, queue: QueueIndex) -> bool {
        self.queues.is_empty(queue)
    }

    #[inline]
    fn backlog(&mut self, to: ProcessId) -> Backlog {
        match network_name(to) {
            Some(to) if self.transports.congested => self.transports.backlog(to),
            _ => Backlog::Low,
        }
    }

    #[inline]
    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<Claim>,
    ) -> Result<(), Undeliverable> {
        let to = network_name(to).ok_or(Undeliverable)?;
        let pieces = match &body.pieces {
            Pieces::One(one) if one.length() == 0 => &[],
            pieces => pieces.as_slice(),
        };
        let (is_get, words) = (request.verb == Verb::Get, request.to_words());
        let outgoing = match (request.referenced, is_get) {
            (true, true) => Outgoing::LentToFill(self.lease.lend(pieces)),
            (true, false) => Outgoing::LentToRead(self.lease.lend(pieces)),
            (false, _) => Outgoing::Copied {
                operand: None,
                pieces: if is_get { &[] } else { pieces },
            },
        };
        if self.transports.send(to, &words, outgoing).is_err() {
            self.drop_request(request);
        }
        Ok(())
    }
}

impl Effects<'_> {
    /// A request to a process that isn't there is dropped, as at a target without an
    /// interface (section 4.2): programs send until the other side has begun. What ends the
    /// operation comes by the loopback, since the engine is in the middle of a call.
    #[cold]
    fn drop_request(&mut self, request: &Request) {
        let me = self.transports.me;
        if let Some(response) = request.refusal() {
            let nothing = Outgoing::Copied {
                operand: None,
                pieces: &[],
            };
            // It reaches this process whatever the networks do.
            let _ = self.transports.send(me, &response.to_words(), nothing);
        }
    }
}

fn network_name(process: ProcessId) -> Option<ProcessId> {
    Some(ProcessId::new(process.nid, to_network(process.pid)?))
}
