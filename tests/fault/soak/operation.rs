//! An operation in flight, and what it must result in.

use lintel_types::{Event, EventKind, NiFail};
use std::time::{Duration, Instant};

/// The kind of an operation, and what its result is checked against.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// Opens a session with a rank.
    Hello,
    /// A put into a slot of the target, with its sequence number.
    Put { slot: usize, sequence: u32 },
    /// A get into a local sink, with its length in bytes and CRC-32C.
    Get { sink: usize, length: u64, sum: u32 },
    /// An atomic that fetches nothing; its operand is in a local cell.
    Add { cell: usize },
    /// A put that only a counter reports.
    Counted,
    /// An atomic that fetches a word into a local cell.
    Fetch { cell: usize, expects: Expects },
}

/// The value that a fetched word must have.
#[derive(Clone, Copy, Debug)]
pub enum Expects {
    /// Nothing but this value is right.
    Exactly(u64),
    /// This value or more, of the word that all ranks add to.
    Shared(u64),
}

/// An operation in flight.
#[derive(Debug)]
pub struct Operation {
    /// The kind, and what the result is checked against.
    pub what: What,
    /// The operation in words, for reports.
    pub call: &'static str,
    /// The rank at the other end.
    pub peer: u32,
    /// The incarnation of the peer that the operation is for; 0 if unknown.
    pub incarnation: u32,
    /// How the operation failed, if an event has reported a failure.
    pub fail: NiFail,
    since: Instant,
    /// Kinds of events that the operation still awaits.
    awaits: Vec<EventKind>,
}

impl Operation {
    /// An operation that starts now, and awaits the events of its kind.
    pub fn new(call: &'static str, what: What, peer: u32, incarnation: u32) -> Operation {
        use EventKind::{Ack, Reply, Send};
        let awaits = match what {
            What::Hello | What::Put { .. } | What::Add { .. } => vec![Send, Ack],
            What::Counted => vec![],
            What::Get { .. } => vec![Reply],
            What::Fetch { .. } => vec![Send, Reply],
        };
        Operation {
            what,
            call,
            peer,
            incarnation,
            fail: NiFail::Ok,
            since: Instant::now(),
            awaits,
        }
    }

    /// Takes an event of the operation; returns whether it was the last one.
    pub fn on_event(&mut self, event: &Event) -> Result<bool, String> {
        let at = self.awaits.iter().position(|kind| *kind == event.kind);
        let Some(at) = at else {
            return Err(format!("{self} caused {event:?}"));
        };
        self.awaits.swap_remove(at);
        match event.ni_fail {
            NiFail::Ok => {}
            // Dropped: the message reached another incarnation of its target.
            NiFail::Undeliverable | NiFail::Dropped => self.fail = event.ni_fail,
            fail => return Err(format!("{self} failed: {fail:?}")),
        }
        Ok(self.awaits.is_empty())
    }

    /// Whether the operation has taken longer than this.
    pub fn is_older(&self, than: Duration) -> bool {
        self.since.elapsed() > than
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Operation {
            call,
            peer,
            incarnation,
            what,
            awaits,
            ..
        } = self;
        let age = self.since.elapsed().as_millis();
        write!(
            f,
            "{call} to rank {peer} in its incarnation {incarnation}, {age} ms old ({what:?}, awaits {awaits:?})"
        )
    }
}
