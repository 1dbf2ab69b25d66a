//! What a segment's bytes mean.

use crate::registration::{Registration, open_named, path};
use lintel_ring::{Control, RING_BYTES};
use lintel_types::ProcessId;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// "lintel" and the version of this layout.
pub(crate) const MAGIC: u64 = 0x6c69_6e74_656c_0003;
/// Numbers on a process's card.
pub const STATS_WORDS: usize = 16;
/// Lanes in a segment: how many processes can send to one. Only those in use
/// have memory behind them.
pub const LANES: usize = 1024;

/// What its owner and everybody else need.
#[repr(C, align(128))]
pub(crate) struct Header {
    pub(crate) magic: AtomicU64,
    /// The number in the owner's registration: tells that it means this segment.
    pub(crate) nonce: AtomicU64,
    /// Senders must order their commit and their look at the bell themselves.
    pub(crate) needs_fence: AtomicU32,
    pub(crate) bell: BellWords,
    pub(crate) changes: Changes,
    /// See [`crate::ProcessStats`].
    pub(crate) stats: [AtomicU64; STATS_WORDS],
}

/// Counts lanes opened and closed.
#[repr(C, align(128))]
pub(crate) struct Changes(pub(crate) AtomicU32);

/// See [`crate::Bell`].
#[repr(C, align(128))]
pub(crate) struct BellWords {
    /// Who sleeps: 0 nobody, 1 the helper, 2 a caller; or [`OWNER_ENDED`].
    pub(crate) asleep: AtomicU32,
    pub(crate) helper: AtomicU32,
    pub(crate) caller: AtomicU32,
}

/// In place of a sleeper: the owner has ended, nobody will ever read.
pub(crate) const OWNER_ENDED: u32 = 3;

/// A lane's state.
pub(crate) const FREE: u32 = 0;
/// Taken, but not ready.
pub(crate) const TAKEN: u32 = 1;
/// In use.
pub(crate) const OPEN: u32 = 2;
/// The sender has sent its last record.
pub(crate) const CLOSED: u32 = 3;

/// Values of a lane's `reach`.
pub(crate) const REACH_UNKNOWN: u32 = 0;
pub(crate) const REACH_YES: u32 = 1;
pub(crate) const REACH_NO: u32 = 2;

/// One sender's way in.
#[repr(C, align(128))]
pub(crate) struct Lane {
    pub(crate) state: AtomicU32,
    pub(crate) os_process: AtomicI32,
    pub(crate) nid: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// The sender's own segment, by its inode: tells it from one that had its
    /// name before, or has it afterwards.
    pub(crate) inode: AtomicU64,
    /// Whether the receiver can move bytes of the sender directly; it says so
    /// when it first sees the lane.
    pub(crate) reach: AtomicU32,
    /// Whether the receiver is copying to or from memory of the sender.
    pub(crate) copying: AtomicU32,
    pub(crate) control: Control,
}

/// Everything before the rings.
#[repr(C, align(4096))]
pub(crate) struct Front {
    pub(crate) header: Header,
    pub(crate) lanes: [Lane; LANES],
}

/// Bytes of a segment; the system provides memory for those that were touched.
pub(crate) const SEGMENT_BYTES: usize = size_of::<Front>() + LANES * RING_BYTES;

/// Bytes of what a lane says of itself.
pub const LANE_BYTES: usize = size_of::<Lane>();

/// Where a lane says who sends on it: its state, the sender's number to the
/// system, its node and process identifiers.
pub const fn lane_offset(lane: usize) -> usize {
    std::mem::offset_of!(Front, lanes) + lane * LANE_BYTES
}

/// The number of the shared memory of a process, by its registration.
pub fn segment_of(job: &str, process: ProcessId) -> Option<i32> {
    let file = open_named(&path(job, process)).ok()?;
    Registration::read(&file).map(|registration| registration.segment)
}

/// Where a lane's ring begins.
pub const fn ring_offset(lane: usize) -> usize {
    size_of::<Front>() + lane * RING_BYTES
}
