//! A process joined to itself.

use crate::{
    Arrival, Capabilities, MoveError, Nal, Origin, Outgoing, Payload, RemoteLoan, Unreachable, Wake,
};
use lintel_claim::{Claim, Lease, Loan, Region, copy_vectored};
use lintel_types::ProcessId;
use lintel_wire::{OPERAND_BYTES, Words};
use std::collections::VecDeque;

/// Carries messages of one process to itself, in order.
pub struct Loopback {
    me: Origin,
    waiting: VecDeque<Waiting>,
    /// Small regions to use again.
    spare: Vec<Region>,
}

struct Waiting {
    words: Words,
    body: Body,
}

enum Body {
    /// A copy at the front of a region.
    Copied(Region, u64),
    Lent(Loan),
}

/// Bytes of a region that is kept for further messages, and how many are.
const SPARE_BYTES: u64 = 4096;
const SPARES: usize = 64;

impl Loopback {
    /// The loopback of a process.
    pub fn new(process: ProcessId, uid: u32) -> Self {
        Loopback {
            me: Origin {
                process,
                uid,
                lane: 0,
            },
            waiting: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Whether no message is queued.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What the next message has lent; it needs no moving to be used.
    pub fn lent(&self) -> &[Claim] {
        match self.waiting.front() {
            Some(Waiting {
                body: Body::Lent(loan),
                ..
            }) => loan.pieces(),
            _ => &[],
        }
    }

    fn copy(&mut self, operand: Option<&[u8; OPERAND_BYTES]>, pieces: &[Claim]) -> Body {
        let ahead = operand.map_or(0, |operand| operand.len() as u64);
        let length = ahead + lintel_memory::length(pieces);
        let region = match self.spare.pop() {
            Some(region) if length <= SPARE_BYTES => region,
            _ => Region::new(length.max(SPARE_BYTES)),
        };
        if let Some(operand) = operand {
            region.write(0, operand);
        }
        copy_vectored(pieces, &[region.claim().slice(ahead, length - ahead)]);
        Body::Copied(region, length)
    }
}

impl Nal for Loopback {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            name: "self",
            eager: u64::MAX,
        }
    }

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        if to != self.me.process {
            return Err(Unreachable);
        }
        let body = match body {
            Outgoing::Copied { operand, pieces } => self.copy(operand, pieces),
            Outgoing::LentToRead(lent) | Outgoing::LentToFill(lent) => Body::Lent(lent.keep()),
        };
        self.waiting.push_back(Waiting {
            words: *words,
            body,
        });
        Ok(())
    }

    fn next(&mut self) -> Option<Arrival> {
        let waiting = self.waiting.front()?;
        let payload = match &waiting.body {
            Body::Copied(region, length) => Payload::Inline(region.claim().slice(0, *length)),
            Body::Lent(_) => Payload::Lent(RemoteLoan::default()),
        };
        Some(Arrival::Message(self.me, waiting.words, payload))
    }

    fn done(&mut self, _origin: Origin) {
        if let Some(Waiting {
            body: Body::Copied(region, _),
            ..
        }) = self.waiting.pop_front()
        {
            if region.len() == SPARE_BYTES && self.spare.len() < SPARES {
                self.spare.push(region);
            }
        }
    }

    fn receive_into(&mut self, _origin: Origin, _place: Loan) {}

    fn fetch(
        &mut self,
        _from: Origin,
        _remote: &RemoteLoan,
        to: &[Claim],
    ) -> Result<u64, MoveError> {
        Ok(copy_vectored(self.lent(), to))
    }

    fn fill(
        &mut self,
        _to: Origin,
        from: &[Claim],
        _remote: &RemoteLoan,
    ) -> Result<u64, MoveError> {
        Ok(copy_vectored(from, self.lent()))
    }

    fn recall(&mut self, lease: &Lease) -> bool {
        let is_of = |body: &Body| matches!(body, Body::Lent(loan) if loan.is_of(lease));
        self.waiting.retain(|waiting| !is_of(&waiting.body));
        true
    }
}

impl Wake for Loopback {
    fn flush(&mut self) -> bool {
        false
    }

    fn has_queued(&self, _process: ProcessId) -> bool {
        false
    }

    fn check_peers(&mut self) {}

    fn wake_peers(&mut self) {}
}
