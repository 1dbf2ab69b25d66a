//! What a process's Portals interfaces hold at one moment, as data for tools.
//!
//! ```text
//!   engine ── interfaces ──▶ ┌──────────┐
//!   NAL    ── peers      ──▶ │ Snapshot │ ── to_bytes ─ ─ shared memory ─ ─▶ from_bytes
//!   runtime ─ waits      ──▶ └──────────┘
//! ```
//!
//! Lists are cut at the lengths given here; the counts beside them are complete. A snapshot
//! always fits into [`MOST_BYTES`].
//!
//! Left to others: how it gets from one process to another (presence), what it means for a
//! person (inspect).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod timeline;

use alloc::vec::Vec;
use lintel_types::ProcessId;
use serde::{Deserialize, Serialize};

/// The longest snapshot as bytes.
pub const MOST_BYTES: usize = 64 * 1024 - 64;
/// Portal table entries, event queues and counters that an interface's state lists.
pub const MOST_LISTED: usize = 32;
/// Match entries and unexpected headers that a portal table entry's state lists, and
/// operations that an interface's state lists.
pub const MOST_EXAMPLES: usize = 4;
/// Peers and waiting threads that a snapshot lists.
pub const MOST_PEERS: usize = 64;

/// What a process's interfaces hold, and what its threads wait for.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Milliseconds since a message from another process arrived; nothing before the first.
    pub idle_ms: Option<u64>,
    /// Whether the engine lives in an agent, which doesn't know for what its client waits.
    pub generic: bool,
    /// Threads that sleep in a call.
    pub waits: Vec<Wait>,
    /// A thread that waits for the launcher, as all ranks do in a barrier of their job.
    pub awaits_launcher: Option<i32>,
    /// Open interfaces.
    pub interfaces: Vec<InterfaceState>,
    /// What an endpoint of CCI holds, if the process is one.
    pub endpoint: Option<EndpointState>,
    /// Messages exchanged with other processes.
    pub peers: Vec<Traffic>,
    /// Peers that aren't listed.
    pub more_peers: u32,
    /// Long messages that are arriving in parts.
    pub streams: u32,
    /// Long messages whose bodies their senders are about to move.
    pub granted: u32,
}

/// What an endpoint of CCI holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct EndpointState {
    /// Connections.
    pub connections: u64,
    /// Sends and accesses that haven't ended.
    pub pending: u64,
    /// Messages that the application hasn't returned.
    pub held: u64,
}

/// A thread that sleeps in a call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wait {
    /// Its number to the system.
    pub thread: i32,
    /// Milliseconds since it first slept.
    pub since_ms: u64,
    /// What it waits for.
    pub awaits: Awaited,
}

/// What a thread waits for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Awaited {
    /// An event in one of these event queues, by handle.
    Events(Vec<u32>),
    /// One of these counters to reach its test, or to count a failure.
    Counters(Vec<CounterTest>),
    /// Something else: room for an operation, or a landing message.
    Other,
}

/// A counter that a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CounterTest {
    /// Its handle.
    pub handle: u32,
    /// The successes that the thread waits for.
    pub test: u64,
    /// Successes so far.
    pub success: u64,
    /// Failures so far.
    pub failure: u64,
}

/// What an interface holds.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct InterfaceState {
    /// It is one of Portals 3.3: its lists are the priority lists here, and what Portals 4 alone
    /// has is 0.
    pub portals3: bool,
    /// `PTL_NI_MATCHING`.
    pub matching: bool,
    /// `PTL_NI_LOGICAL`.
    pub logical: bool,
    /// The process's rank, where one is set.
    pub rank: Option<u32>,
    /// Messages that no entry took (`PTL_SR_DROP_COUNT`).
    pub drops: u32,
    /// Messages refused for their user (`PTL_SR_PERMISSION_VIOLATIONS`).
    pub permission_violations: u32,
    /// Messages refused for their operation (`PTL_SR_OPERATION_VIOLATIONS`).
    pub operation_violations: u32,
    /// Requests that have arrived.
    pub requests: u64,
    /// Acknowledgements and replies that have arrived.
    pub responses: u64,
    /// Full events that were posted.
    pub events: u64,
    /// Operations that await an answer.
    pub pending: u32,
    /// Some of them.
    pub operations: Vec<OperationState>,
    /// Triggered operations that haven't fired.
    pub triggered: u32,
    /// Allocated portal table entries.
    pub portals: Vec<PortalState>,
    /// Allocated portal table entries that aren't listed.
    pub more_portals: u32,
    /// Event queues.
    pub queues: Vec<QueueState>,
    /// Event queues that aren't listed.
    pub more_queues: u32,
    /// Counters, those first that triggered operations wait for.
    pub counters: Vec<CounterState>,
    /// Counters that aren't listed.
    pub more_counters: u32,
}

/// An operation that awaits its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OperationState {
    /// Who is to answer.
    pub target: ProcessId,
    /// Bytes to be moved.
    pub length: u64,
    /// Whether the answer brings bytes.
    pub fetches: bool,
}

/// A portal table entry.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PortalState {
    /// Its index.
    pub index: u16,
    /// Whether it accepts messages.
    pub enabled: bool,
    /// `PTL_PT_FLOWCTRL`.
    pub flow_control: bool,
    /// Handle of its event queue.
    pub queue: Option<u32>,
    /// Messages that are landing.
    pub landing: u32,
    /// Entries of the priority list.
    pub priority: u32,
    /// Entries of the overflow list.
    pub overflow: u32,
    /// Unexpected headers.
    pub unexpected: u32,
    /// Some entries of the priority list.
    pub entries: Vec<EntryState>,
    /// Some unexpected headers.
    pub headers: Vec<HeaderState>,
}

/// An entry of a priority list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EntryState {
    /// Match bits that a message must carry.
    pub match_bits: u64,
    /// Bits that don't matter.
    pub ignore_bits: u64,
    /// Whose messages it takes, or a wildcard.
    pub source: ProcessId,
}

/// An unexpected header.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeaderState {
    /// Match bits of the message.
    pub match_bits: u64,
    /// Who sent it.
    pub from: ProcessId,
    /// Bytes that were sent.
    pub length: u64,
}

/// An event queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct QueueState {
    /// Its handle.
    pub handle: u32,
    /// Events that it was allocated for.
    pub size: u64,
    /// Events that the program hasn't taken.
    pub fill: u64,
}

/// A counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct CounterState {
    /// Its handle.
    pub handle: u32,
    /// Successes.
    pub success: u64,
    /// Failures.
    pub failure: u64,
    /// Triggered operations that wait for it.
    pub triggered: u32,
    /// The lowest of their thresholds.
    pub threshold: Option<u64>,
}

/// How messages get from one process to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Path {
    /// Shared memory.
    Shm,
    /// UDP.
    Udp,
    /// libfabric.
    Ofi,
}

/// Messages exchanged with a process by one path. Counts begin with the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Traffic {
    /// The other process.
    pub process: ProcessId,
    /// How they get there.
    pub path: Path,
    /// What was sent to it.
    pub sent: Count,
    /// What has come from it.
    pub received: Count,
    /// Bytes of memory of what waits here to be sent to it.
    pub backlog: u64,
}

/// Messages and bytes, acknowledgements and other answers among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Count {
    /// Messages; by UDP, packets.
    pub messages: u64,
    /// Bytes that went through the ring of shared memory, in lines of 64 bytes, or through
    /// the network.
    pub bytes: u64,
    /// Bytes that the receiver copied from the sender's memory or to it.
    pub copied: u64,
}

impl Count {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Count) -> Count {
        Count {
            messages: self.messages.wrapping_add(other.messages),
            bytes: self.bytes.wrapping_add(other.bytes),
            copied: self.copied.wrapping_add(other.copied),
        }
    }
}

impl Snapshot {
    /// As bytes for another process of the same version.
    pub fn to_bytes(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("plain data on the heap")
    }

    /// Reads what [`to_bytes`](Self::to_bytes) has written; nothing if it is anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Snapshot> {
        postcard::from_bytes(bytes).ok()
    }

    /// All messages sent, and all received.
    pub fn totals(&self) -> (Count, Count) {
        let sum = |counts: &dyn Fn(&Traffic) -> Count| {
            let each = self.peers.iter().map(counts);
            each.fold(Count::default(), Count::and)
        };
        (sum(&|peer| peer.sent), sum(&|peer| peer.received))
    }
}

/// The first so many of `all`, and how many more there are.
pub fn first_of<T>(mut all: Vec<T>, most: usize) -> (Vec<T>, u32) {
    let more = all.len().saturating_sub(most);
    all.truncate(most);
    (all, u32::try_from(more).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const FAR: ProcessId = ProcessId::new(u32::MAX, u32::MAX);

    fn portal() -> PortalState {
        let entry = EntryState {
            match_bits: u64::MAX,
            ignore_bits: u64::MAX,
            source: FAR,
        };
        let header = HeaderState {
            match_bits: u64::MAX,
            from: FAR,
            length: u64::MAX,
        };
        PortalState {
            index: u16::MAX,
            queue: Some(u32::MAX),
            landing: u32::MAX,
            priority: u32::MAX,
            overflow: u32::MAX,
            unexpected: u32::MAX,
            entries: vec![entry; MOST_EXAMPLES],
            headers: vec![header; MOST_EXAMPLES],
            ..PortalState::default()
        }
    }

    fn interface() -> InterfaceState {
        let queue = QueueState {
            handle: u32::MAX,
            size: u64::MAX,
            fill: u64::MAX,
        };
        let counter = CounterState {
            handle: u32::MAX,
            success: u64::MAX,
            failure: u64::MAX,
            triggered: u32::MAX,
            threshold: Some(u64::MAX),
        };
        InterfaceState {
            portals: vec![portal(); MOST_LISTED],
            queues: vec![queue; MOST_LISTED],
            counters: vec![counter; MOST_LISTED],
            ..InterfaceState::default()
        }
    }

    /// A snapshot with the longest lists of the largest numbers.
    fn largest() -> Snapshot {
        let count = Count {
            messages: u64::MAX,
            bytes: u64::MAX,
            copied: u64::MAX,
        };
        let peer = Traffic {
            process: FAR,
            path: Path::Ofi,
            sent: count,
            received: count,
            backlog: u64::MAX,
        };
        let test = CounterTest {
            handle: u32::MAX,
            test: u64::MAX,
            success: u64::MAX,
            failure: u64::MAX,
        };
        let wait = Wait {
            thread: i32::MIN,
            since_ms: u64::MAX,
            awaits: Awaited::Counters(vec![test; MOST_EXAMPLES]),
        };
        Snapshot {
            waits: vec![wait; MOST_PEERS],
            awaits_launcher: Some(i32::MIN),
            interfaces: vec![interface(); 4],
            peers: vec![peer; MOST_PEERS],
            ..Snapshot::default()
        }
    }

    #[test]
    fn the_largest_snapshot_fits_and_is_read_as_it_was_written() {
        let bytes = largest().to_bytes();
        assert!(bytes.len() <= MOST_BYTES, "{}", bytes.len());
        assert_eq!(Snapshot::from_bytes(&bytes), Some(largest()));
    }

    #[test]
    fn bytes_that_are_no_snapshot_are_refused() {
        let bytes = largest().to_bytes();
        assert_eq!(Snapshot::from_bytes(&bytes[..bytes.len() / 2]), None);
        assert_eq!(Snapshot::from_bytes(&[0xff; 40]), None);
    }

    #[test]
    fn a_list_is_cut_and_the_rest_counted() {
        assert_eq!(first_of(vec![1, 2, 3], 2), (vec![1, 2], 1));
        assert_eq!(first_of(vec![1], 2), (vec![1], 0));
    }
}
