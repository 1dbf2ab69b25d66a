//! Where an engine's effects go.

use crate::tables::Tables;
use crate::ways::Way;
use lintel_claim::Claim;
use lintel_engine4::{Body, Host, Undeliverable};
use lintel_memory::Pieces;
use lintel_nal::{Loopback, Nal, Outgoing};
use lintel_types::{CountingEvent, Event, ProcessId};
use lintel_wire::{Request, Response, Verb, Words};

/// The ways out of a process: to others, and to itself.
pub(crate) struct Ways {
    pub(crate) me: ProcessId,
    pub(crate) nal: Way,
    pub(crate) loopback: Loopback,
    /// Something was posted or counted since this was last cleared.
    pub(crate) noise: bool,
}

impl Ways {
    #[inline]
    pub(crate) fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Undeliverable> {
        let sent = if to == self.me {
            self.loopback.send(to, words, body)
        } else {
            self.nal.send(to, words, body)
        };
        sent.map_err(|_| Undeliverable)
    }

    /// Whether something waits for room in the network.
    pub(crate) fn nal_waits(&mut self) -> bool {
        self.nal.flush()
    }

    /// Sends a response without bytes; one that can't be delivered is awaited by nobody.
    #[inline]
    pub(crate) fn respond(&mut self, to: ProcessId, response: &Response) {
        let nothing = Outgoing::Copied {
            operand: None,
            pieces: &[],
        };
        let _ = self.send(to, &response.to_words(), nothing);
    }
}

/// An engine's [`Host`] for the length of a call.
pub struct Effects<'a> {
    pub(crate) ways: &'a mut Ways,
    pub(crate) tables: &'a Tables,
}

impl Host<Claim> for Effects<'_> {
    #[inline]
    fn post(&mut self, queue: u16, event: &Event) {
        self.tables.queue_at(queue).push(event);
        self.ways.noise = true;
    }

    #[inline]
    fn room(&mut self, queue: u16) -> usize {
        self.tables.queue_at(queue).room()
    }

    #[inline]
    fn publish(&mut self, counter: u16, value: CountingEvent) {
        self.tables.counter_at(counter).set(value);
        self.ways.noise = true;
    }

    #[inline]
    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<'_, Claim>,
    ) -> Result<(), Undeliverable> {
        let words = request.to_words();
        let pieces = match &body.pieces {
            Pieces::One(one) if one.is_empty() => &[],
            pieces => pieces.as_slice(),
        };
        let outgoing = match (request.verb, request.referenced) {
            (Verb::Get, false) => Outgoing::Copied {
                operand: None,
                pieces: &[],
            },
            (Verb::Get, true) => Outgoing::LentToFill(pieces),
            (_, false) => Outgoing::Copied {
                operand: body.operand,
                pieces,
            },
            (_, true) => Outgoing::LentToRead(pieces),
        };
        self.ways.send(to, &words, outgoing)
    }
}
