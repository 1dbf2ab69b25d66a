//! An operation that a rank has begun, and how it must end.

use lintel_types::{Event, EventKind, NiFail};
use std::time::{Duration, Instant};

/// What it is, and what its end is held against.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// Begins to talk.
    Hello,
    /// A put into a slot there, by its number.
    Put { slot: usize, sequence: u32 },
    /// A get into the sink at an index here; bytes and checksum.
    Get { sink: usize, length: u64, sum: u32 },
    /// An atomic that brings nothing back; its operand is in a cell here.
    Add { cell: usize },
    /// A put that a counter tells of.
    Counted,
    /// An atomic that brings a word into a cell here.
    Fetch { cell: usize, expects: Expects },
}

/// What a fetched word must be.
#[derive(Clone, Copy, Debug)]
pub enum Expects {
    /// This.
    Exactly(u64),
    /// This or more, of the word that all ranks add to.
    Shared(u64),
}

/// An operation under way.
#[derive(Debug)]
pub struct Operation {
    pub what: What,
    /// The call.
    pub call: &'static str,
    pub peer: u32,
    /// The life of the peer that it is for; 0 where that isn't known.
    pub life: u32,
    pub fail: NiFail,
    since: Instant,
    /// Kinds of events that it will still cause.
    awaits: Vec<EventKind>,
}

impl Operation {
    pub fn new(call: &'static str, what: What, peer: u32, life: u32) -> Operation {
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
            life,
            fail: NiFail::Ok,
            since: Instant::now(),
            awaits,
        }
    }

    /// Takes an event of it; whether that was the last.
    pub fn on_event(&mut self, event: &Event) -> Result<bool, String> {
        let at = self.awaits.iter().position(|kind| *kind == event.kind);
        let Some(at) = at else {
            return Err(format!("{self} caused {event:?}"));
        };
        self.awaits.swap_remove(at);
        match event.ni_fail {
            NiFail::Ok => {}
            // Dropped: it reached another life than the one that it was meant for.
            NiFail::Undeliverable | NiFail::Dropped => self.fail = event.ni_fail,
            fail => return Err(format!("{self} failed: {fail:?}")),
        }
        Ok(self.awaits.is_empty())
    }

    /// Whether it has taken longer.
    pub fn is_older(&self, than: Duration) -> bool {
        self.since.elapsed() > than
    }
}

impl std::fmt::Display for Operation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Operation {
            call,
            peer,
            life,
            what,
            awaits,
            ..
        } = self;
        let age = self.since.elapsed().as_millis();
        write!(
            f,
            "{call} to rank {peer} in its life {life}, {age} ms old ({what:?}, awaits {awaits:?})"
        )
    }
}
