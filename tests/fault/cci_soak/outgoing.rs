//! A connection that a member has asked for: it sends, writes and reads.

use crate::incoming::SLOT;
use crate::message::{HEADER, Message, check, pattern};
use lintel_cci_endpoint::{
    Access, Attribute, ConnectionId, Direction, Endpoint, MessageFlags, Region as Part, RmaRequest,
    Status,
};
use lintel_claim::Region;
use lintel_fault::random::Random;
use std::collections::VecDeque;

/// Operations under way on a connection.
const WINDOW: usize = 64;
/// The longest message, bytes.
const LONGEST: u64 = 3000;

/// What is done with the peer's memory: written, checked by the peer, read back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cycle {
    /// The peer hasn't named its memory yet.
    Unknown,
    Idle,
    Written(Written),
    Reading(Written, u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Written {
    seed: u64,
    offset: u64,
    length: u64,
}

pub struct Outgoing {
    pub rank: usize,
    id: ConnectionId,
    attribute: Attribute,
    random: Random,
    sequence: u64,
    /// The next operation's context, and those of operations under way.
    context: u64,
    under_way: VecDeque<u64>,
    /// An operation has ended with a failure.
    has_failed: bool,
    /// None is taken any more; events of earlier ones may still come.
    is_lost: bool,
    remote_key: u64,
    cycle: Cycle,
    /// This side's memory, for RO.
    memory: Option<(u64, Region)>,
    pub ended: u64,
}

impl Outgoing {
    pub fn new(
        endpoint: &Endpoint,
        id: ConnectionId,
        rank: usize,
        attribute: Attribute,
        seed: u64,
    ) -> Self {
        let memory = (attribute == Attribute::Ro).then(|| {
            let region = Region::new(SLOT);
            let none = Access {
                read: false,
                write: false,
            };
            (endpoint.register(region.claim(), none), region)
        });
        Outgoing {
            rank,
            id,
            attribute,
            random: Random::new(seed),
            sequence: 0,
            context: 0,
            under_way: VecDeque::new(),
            has_failed: false,
            is_lost: false,
            remote_key: 0,
            cycle: Cycle::Unknown,
            memory,
            ended: 0,
        }
    }

    /// Whether nothing is under way.
    pub fn is_quiet(&self) -> bool {
        let is_between = matches!(self.cycle, Cycle::Idle | Cycle::Unknown);
        self.has_failed || self.is_lost || self.under_way.is_empty() && is_between
    }

    /// Whether sends end before they have arrived, so that nothing bounds their number.
    pub fn is_unreliable(&self) -> bool {
        self.attribute == Attribute::Uu
    }

    /// Starts what there is room for, at most so many.
    pub fn start(&mut self, endpoint: &Endpoint, most: usize) -> Result<(), String> {
        let until = self.under_way.len().saturating_add(most);
        while !self.has_failed && !self.is_lost && self.under_way.len() < WINDOW.min(until) {
            let started = match self.cycle {
                Cycle::Idle if self.random.below(8) == 0 => self.write(endpoint),
                _ => self.send(endpoint),
            };
            match started {
                Ok(()) => {
                    self.under_way.push_back(self.context);
                    self.context += 1;
                }
                Err(Status::NoBuffers) => return Ok(()),
                Err(Status::Disconnected) => self.is_lost = true,
                Err(status) => return Err(format!("an operation isn't started: {status:?}")),
            }
        }
        Ok(())
    }

    fn send(&mut self, endpoint: &Endpoint) -> Result<(), Status> {
        let seed = self.random.number();
        let length = match self.random.below(4) {
            0 => self.random.below(LONGEST),
            _ => self.random.below(40),
        };
        let message = Message::Data {
            sequence: self.sequence,
            seed,
        };
        let mut bytes = message.to_bytes();
        debug_assert_eq!(bytes.len(), HEADER);
        bytes.extend(pattern(seed, length as usize));
        let flags = MessageFlags::default();
        endpoint.send_bytes(self.id, &bytes, self.context, flags)?;
        self.sequence += 1;
        Ok(())
    }

    fn write(&mut self, endpoint: &Endpoint) -> Result<(), Status> {
        let Some((_, memory)) = &self.memory else {
            return self.send(endpoint);
        };
        let (seed, offset) = (self.random.number(), self.random.below(SLOT));
        let length = 1 + self.random.below(SLOT - offset);
        memory.write(offset, &pattern(seed, length as usize));
        let written = Written {
            seed,
            offset,
            length,
        };
        let message = Message::Wrote {
            sequence: self.sequence,
            seed,
            offset,
            length,
        };
        let bytes = message.to_bytes();
        self.access(endpoint, Direction::Write, written, Some(&bytes))?;
        self.sequence += 1;
        self.cycle = Cycle::Written(written);
        Ok(())
    }

    fn access(
        &mut self,
        endpoint: &Endpoint,
        direction: Direction,
        what: Written,
        message: Option<&[u8]>,
    ) -> Result<(), Status> {
        let (local, _) = self.memory.as_ref().ok_or(Status::Invalid)?;
        let request = RmaRequest {
            direction,
            local: Part {
                key: *local,
                offset: what.offset,
                length: what.length,
            },
            remote_key: self.remote_key,
            remote_offset: what.offset,
            fence: self.random.below(2) == 0,
        };
        let copy = message.map(|bytes| {
            let copy = Region::new(bytes.len() as u64);
            copy.write(0, bytes);
            copy
        });
        let message = copy.as_ref().map(Region::claim);
        let flags = MessageFlags::default();
        endpoint.rma(self.id, request, message, self.context, flags)
    }

    /// The peer has named its memory, or has found what was written to it.
    pub fn on_received(&mut self, endpoint: &Endpoint, bytes: &[u8]) -> Result<(), String> {
        match (Message::parse(bytes)?, self.cycle) {
            (Message::Handle { key }, Cycle::Unknown) => {
                (self.remote_key, self.cycle) = (key, Cycle::Idle);
                Ok(())
            }
            (Message::Verified { seed }, Cycle::Written(written)) if written.seed == seed => {
                self.read(endpoint, written)
            }
            (other, cycle) => Err(format!("{other:?} comes during {cycle:?}")),
        }
    }

    /// Reads back what was written, over zeros.
    fn read(&mut self, endpoint: &Endpoint, written: Written) -> Result<(), String> {
        if let Some((_, memory)) = &self.memory {
            memory.write(written.offset, &vec![0; written.length as usize]);
        }
        match self.access(endpoint, Direction::Read, written, None) {
            Ok(()) => {
                self.cycle = Cycle::Reading(written, self.context);
                self.under_way.push_back(self.context);
                self.context += 1;
            }
            Err(Status::Disconnected) => self.is_lost = true,
            Err(status) => return Err(format!("a read isn't started: {status:?}")),
        }
        Ok(())
    }

    /// An operation has ended; `may_fail` since the peer was killed.
    pub fn on_sent(&mut self, context: u64, status: Status, may_fail: bool) -> Result<(), String> {
        let place = match self.attribute {
            Attribute::Ro => (self.under_way.front() == Some(&context)).then_some(0),
            _ => self.under_way.iter().position(|it| *it == context),
        };
        let place = place.ok_or(format!("operation {context} ends out of turn, or twice"))?;
        self.under_way.remove(place);
        if status != Status::Success {
            self.has_failed = true;
            return match may_fail {
                true => Ok(()),
                false => Err(format!("operation {context} ends with {status:?}")),
            };
        }
        if self.has_failed && self.attribute == Attribute::Ro {
            return Err(format!(
                "operation {context} succeeds behind one that failed"
            ));
        }
        self.ended += 1;
        match self.cycle {
            Cycle::Reading(written, reading) if reading == context => self.on_read(written),
            _ => Ok(()),
        }
    }

    fn on_read(&mut self, written: Written) -> Result<(), String> {
        let (_, memory) = self.memory.as_ref().ok_or("there is no memory")?;
        let mut found = vec![0; written.length as usize];
        memory.read(written.offset, &mut found);
        self.cycle = Cycle::Idle;
        check(&found, written.seed).map_err(|why| format!("of what was read, {why}"))
    }

    /// Drops the connection and its memory.
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
