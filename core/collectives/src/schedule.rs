//! What one rank does in a collective operation.

use alloc::vec::Vec;
use core::ops::Range;

/// The number of an operation of one collective: 0, 1, 2 and so on, the same on
/// all ranks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Epoch(pub u64);

/// A counter of a rank, the same place on both sides.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CounterId(pub u32);

/// What one counter counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counter {
    /// By how much one operation raises it.
    pub each: u64,
}

/// A rank's two memories, from which spans are taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Memory {
    /// What the rank gives: its caller's, only read.
    Input,
    /// The collective's own, one set for each side.
    Slots,
}

/// Some bytes of a rank's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The memory that it is a part of.
    pub memory: Memory,
    /// From where on; in slots from the beginning of a side.
    pub at: u64,
    /// Length in bytes; may be 0.
    pub bytes: u64,
}

/// Where a message counts, and where its bytes go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Perhaps the sender itself.
    pub rank: u32,
    /// That rank's, on the side of the sender's epoch.
    pub counter: CounterId,
    /// In that rank's slots of that side.
    pub at: u64,
}

/// What becomes of bytes that arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Movement {
    /// They replace what is there.
    Put,
    /// They are combined with what is there, by the operation that the caller
    /// reduces with: `PtlAtomic`.
    Combine,
}

/// A message: bytes of the sender, and where they go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// What becomes of its bytes.
    pub movement: Movement,
    /// The sender's bytes; none if the message only counts.
    pub from: Span,
    /// Where it goes, and counts by one when its bytes are there.
    pub to: Target,
}

/// What a step does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// Sends a message, perhaps to the rank itself.
    Send(Transfer),
    /// Counts by one at a counter of the rank itself.
    Count(CounterId),
}

/// A counter has counted so much in the present operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct When {
    /// One of the rank's own counters.
    pub counter: CounterId,
    /// So much. With 0, only what earlier operations count is waited for.
    pub count: u64,
}

/// A step: acts as soon as its counter says so, or at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// What it waits for.
    pub when: Option<When>,
    /// What it does once its counter is reached.
    pub act: Act,
}

/// Bytes that a rank copies to its caller's result when it is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Store {
    /// The bytes, in the rank's input or slots.
    pub from: Span,
    /// To so many bytes into the result.
    pub to: u64,
}

/// What one rank does in an operation.
///
/// Steps that are posted as triggered operations may act in any order that their
/// counters allow; a host goes through them in the order of the list, and never
/// waits in vain.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Schedule {
    /// The rank's own counters, on each side.
    pub counters: Vec<Counter>,
    /// Bytes of slots on one side.
    pub slot_bytes: u64,
    /// Steps, in an order in which a host can perform them.
    pub steps: Vec<Step>,
    /// All of these reached: nothing of this operation will arrive any more.
    pub done: Vec<When>,
    /// What is then copied to the result.
    pub stores: Vec<Store>,
    /// Bytes of the slots in which others combine: to be filled with the
    /// operation's identity before the first operation on a side and after each.
    pub resets: Vec<Range<u64>>,
    /// Counters that are notified last that this side's slots are free again.
    pub releases: Vec<Target>,
}

/// What a counter on one side is to reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Threshold {
    /// One of the rank's own counters.
    pub counter: CounterId,
    /// The side, 0 or 1.
    pub side: usize,
    /// So much, counted from when the counter was made.
    pub value: u64,
}

impl Epoch {
    /// Which of two sets of slots and counters it uses: 0 or 1.
    pub const fn side(self) -> usize {
        (self.0 % 2) as usize
    }

    /// How many operations have used that side before.
    pub const fn earlier(self) -> u64 {
        self.0 / 2
    }

    /// The one after it.
    #[must_use]
    pub const fn next(self) -> Epoch {
        Epoch(self.0 + 1)
    }
}

impl Memory {
    /// Some of its bytes.
    pub const fn span(self, at: u64, bytes: u64) -> Span {
        Span {
            memory: self,
            at,
            bytes,
        }
    }
}

impl Schedule {
    /// What a counter is to reach in an operation.
    ///
    /// # Panics
    ///
    /// If the counter is none of this schedule's.
    pub fn threshold(&self, when: When, epoch: Epoch) -> Threshold {
        let each = self.counters[when.counter.0 as usize].each;
        Threshold {
            counter: when.counter,
            side: epoch.side(),
            value: each * epoch.earlier() + when.count,
        }
    }

    /// How many messages it sends in an operation, releases included.
    pub fn messages(&self) -> usize {
        let sends = |step: &&Step| matches!(step.act, Act::Send(_));
        self.steps.iter().filter(sends).count() + self.releases.len()
    }
}
