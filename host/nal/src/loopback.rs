//! A process joined to itself.

use crate::{Arrival, Caps, MoveError, Nal, Origin, Outgoing, Payload, Unreachable};
use lintel_claim::{Claim, Region, RemoteSpan, copy_vectored};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::collections::VecDeque;

/// Carries messages of one process to itself, in order.
pub struct Loopback {
    me: Origin,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    words: Words,
    copied: Option<Region>,
    lent: Vec<Claim>,
}

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
        }
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn lent(&self) -> &[Claim] {
        self.waiting.front().map_or(&[], |waiting| &waiting.lent)
    }
}

impl Nal for Loopback {
    fn caps(&self) -> Caps {
        Caps {
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
        let (copied, lent) = match body {
            Outgoing::Copied { operand, pieces } => (Some(copied(operand, pieces)), Vec::new()),
            Outgoing::LentToRead(pieces) | Outgoing::LentToFill(pieces) => (None, pieces.to_vec()),
        };
        self.waiting.push_back(Waiting {
            words: *words,
            copied,
            lent,
        });
        Ok(())
    }

    fn next(&mut self) -> Option<Arrival> {
        let waiting = self.waiting.front()?;
        let payload = match &waiting.copied {
            Some(region) => Payload::Enclosed(region.claim()),
            None => Payload::Lent(Vec::new()),
        };
        Some(Arrival::Message(self.me, waiting.words, payload))
    }

    fn done(&mut self, _origin: Origin) {
        self.waiting.pop_front();
    }

    fn receive_into(&mut self, _origin: Origin, _pieces: Vec<Claim>) {}

    fn fetch(
        &mut self,
        _from: Origin,
        _remote: &[RemoteSpan],
        to: &[Claim],
    ) -> Result<u64, MoveError> {
        Ok(copy_vectored(self.lent(), to))
    }

    fn place(
        &mut self,
        _to: Origin,
        from: &[Claim],
        _remote: &[RemoteSpan],
    ) -> Result<u64, MoveError> {
        Ok(copy_vectored(from, self.lent()))
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn check_peers(&mut self) {}

    fn nudge(&mut self) {}
}

fn copied(operand: Option<&[u8; 32]>, pieces: &[Claim]) -> Region {
    let ahead = operand.map_or(0, |operand| operand.len() as u64);
    let length = pieces.iter().map(|piece| piece.len()).sum::<u64>();
    let region = Region::new(ahead + length);
    if let Some(operand) = operand {
        region.write(0, operand);
    }
    copy_vectored(pieces, &[region.claim().slice(ahead, length)]);
    region
}
