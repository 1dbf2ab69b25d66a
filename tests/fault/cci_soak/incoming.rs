//! A connection that a member has accepted: it checks what comes, and offers memory.

use crate::message::{Message, check};
use lintel_cci_endpoint::{Access, Attribute, ConnectionId, Endpoint, MessageFlags, Status};
use lintel_claim::Region;
use std::collections::{BTreeSet, VecDeque};

/// Bytes that a peer writes and reads on a connection.
pub const SLOT: u64 = 64 * 1024;
const SILENT: MessageFlags = MessageFlags {
    blocking: false,
    no_copy: false,
    silent: true,
};

pub struct Incoming {
    pub rank: usize,
    pub incarnation: u32,
    id: ConnectionId,
    attribute: Attribute,
    /// On RO the next number; below it all have come on RU.
    next: u64,
    /// Numbers beyond it that have come on RU.
    ahead: BTreeSet<u64>,
    memory: Option<(u64, Region)>,
    answers: VecDeque<Message>,
}

impl Incoming {
    /// Offers memory if the connection takes accesses.
    pub fn new(
        endpoint: &Endpoint,
        id: ConnectionId,
        from: (usize, u32),
        attribute: Attribute,
    ) -> Self {
        let mut answers = VecDeque::new();
        let memory = (attribute == Attribute::Ro).then(|| {
            let region = Region::new(SLOT);
            let access = Access {
                read: true,
                write: true,
            };
            let key = endpoint.register(region.claim(), access);
            answers.push_back(Message::Handle { key });
            (key, region)
        });
        Incoming {
            rank: from.0,
            incarnation: from.1,
            id,
            attribute,
            next: 0,
            ahead: BTreeSet::new(),
            memory,
            answers,
        }
    }

    /// A message has come.
    pub fn on_received(&mut self, bytes: &[u8]) -> Result<(), String> {
        match Message::parse(bytes)? {
            Message::Data { sequence, .. } => self.on_number(sequence),
            Message::Wrote {
                sequence,
                seed,
                offset,
                length,
            } => {
                self.on_number(sequence)?;
                let (_, region) = self.memory.as_ref().ok_or("there is no memory to write")?;
                let mut found = vec![0; length as usize];
                region.read(offset, &mut found);
                check(&found, seed).map_err(|why| format!("of what was written, {why}"))?;
                self.answers.push_back(Message::Verified { seed });
                Ok(())
            }
            other => Err(format!("{other:?} isn't for the accepting side")),
        }
    }

    fn on_number(&mut self, number: u64) -> Result<(), String> {
        match self.attribute {
            Attribute::Ro if number != self.next => {
                return Err(format!("number {number} comes on RO, not {}", self.next));
            }
            Attribute::Ro => self.next += 1,
            Attribute::Ru => {
                if number < self.next || !self.ahead.insert(number) {
                    return Err(format!("number {number} comes twice on RU"));
                }
                while self.ahead.remove(&self.next) {
                    self.next += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Sends the answers that there is room for. A peer that has ended gets none.
    pub fn answer(&mut self, endpoint: &Endpoint) -> Result<(), String> {
        while let Some(answer) = self.answers.front() {
            match endpoint.send_bytes(self.id, &answer.to_bytes(), 0, SILENT) {
                Err(Status::NoBuffers) => break,
                Ok(()) | Err(Status::Disconnected) => {
                    self.answers.pop_front();
                }
                Err(status) => return Err(format!("an answer isn't sent: {status:?}")),
            }
        }
        Ok(())
    }

    /// Drops the connection and what it offers.
    pub fn close(self, endpoint: &Endpoint) -> Result<(), String> {
        let failed = |status| format!("a connection isn't dropped: {status:?}");
        endpoint.disconnect(self.id).map_err(failed)?;
        if let Some((key, _)) = self.memory {
            endpoint
                .deregister(key)
                .map_err(|status| format!("memory isn't deregistered: {status:?}"))?;
        }
        Ok(())
    }
}
