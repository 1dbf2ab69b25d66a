//! What a group needs of a Portals library.

use lintel_claim::{Datatype, Operation};
use lintel_types::{CountingEvent, NiFail, ProcessId, Result};
use std::time::Duration;

/// How a message's bytes are combined with what is there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Combine {
    /// `Min` to `Bxor`: the operations that PtlAtomic takes.
    pub operation: Operation,
    /// What the elements are.
    pub datatype: Datatype,
}

/// A put, or an atomic, of bytes of the group's region.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Where the bytes are in the region.
    pub from: u64,
    /// How many they are.
    pub bytes: u64,
    /// The process whose entry receives them.
    pub target: ProcessId,
    /// Match bits of that entry.
    pub match_bits: u64,
    /// Where in that entry.
    pub at: u64,
    /// Combined, or else put in place of what is there.
    pub combine: Option<Combine>,
}

/// A matching interface with one portal table entry, and a region of memory from which
/// messages are sent and which they reach.
///
/// No method blocks but [`Portals::wait`] and [`Portals::poll_probe`]. Dropping a counter or
/// an entry gives it back. Errors are those of the Portals calls named.
pub trait Portals {
    /// A counting event, which is freed when it is dropped.
    type Counter;
    /// A match entry; messages find it as long as it lives.
    type Entry;

    /// This process's name on the interface (PtlGetId).
    fn id(&self) -> Result<ProcessId>;

    /// `max_atomic_size` of the interface.
    fn largest_atomic(&self) -> u64;

    /// A counter of zero (PtlCTAlloc).
    fn counter(&self) -> Result<Self::Counter>;

    /// An entry for puts from all processes, which spans some of the region (from where, how many
    /// bytes); each put counts (PtlMEAppend).
    fn entry(
        &self,
        match_bits: u64,
        place: (u64, u64),
        counter: Option<&Self::Counter>,
    ) -> Result<Self::Entry>;

    /// Sends now (PtlPut, PtlAtomic).
    fn send(&self, message: &Message) -> Result<()>;

    /// Sends when a counter has counted so much (PtlTriggeredPut, PtlTriggeredAtomic).
    fn send_at(&self, trigger: (&Self::Counter, u64), message: &Message) -> Result<()>;

    /// Counts one now (PtlCTInc).
    fn count(&self, counter: &Self::Counter) -> Result<()>;

    /// Counts one when another counter has counted so much (PtlTriggeredCTInc).
    fn count_at(&self, trigger: (&Self::Counter, u64), counter: &Self::Counter) -> Result<()>;

    /// What has been counted (PtlCTGet).
    fn value(&self, counter: &Self::Counter) -> Result<CountingEvent>;

    /// Waits until one of these, [`MAX_AWAITED`](crate::MAX_AWAITED) at most, has counted so
    /// much, or a failure, which is true, or the time is over (PtlCTPoll). Which one, the
    /// caller finds out by [`Portals::value`].
    fn wait(&self, counters: &[(&Self::Counter, u64)], time: Duration) -> Result<bool>;

    /// Sends nothing, and wants to know what became of it (PtlPut with PTL_ACK_REQ).
    fn probe(&self, target: ProcessId, match_bits: u64, id: u64) -> Result<()>;

    /// A question that is answered, and how it went; waits at most so long for one
    /// (PtlEQPoll).
    fn poll_probe(&self, time: Duration) -> Result<Option<(u64, NiFail)>>;
}
