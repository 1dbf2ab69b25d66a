//! What a segment's bytes mean behind its header: a lane for each sender, the owner's direct
//! entries, and a ring for each lane.

use crate::parts::BodyParts;
use lintel_direct::{AccessWord, Table};
use lintel_presence::{Header, SEGMENT_BYTES, SNAPSHOT_BYTES, Segment};
use lintel_ring::{Control, NEAR_LINES, SLOT_BYTES, WIDE_LINES, ring_bytes};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};

/// Lanes in a segment: how many processes can send to one. Only those in use
/// have memory behind them.
pub const LANES: usize = 1024;
/// The first ones have wide rings: what a receiver holds in memory for senders that it is behind
/// stays below 16 MiB beside 28 KiB for each.
const WIDE_LANES: usize = 64;

/// Values of a lane's `state`: no sender has it.
pub(crate) const FREE: u32 = 0;
/// Taken, but not ready.
pub(crate) const TAKEN: u32 = 1;
/// Its sender writes records.
pub(crate) const OPEN: u32 = 2;
/// The sender has sent its last record.
pub(crate) const CLOSED: u32 = 3;

/// Values of a lane's `reach`.
pub(crate) const REACH_UNKNOWN: u32 = 0;
pub(crate) const REACH_YES: u32 = 1;
pub(crate) const REACH_NO: u32 = 2;

/// What one sender and the receiver share beside the ring.
#[repr(C, align(128))]
pub(crate) struct Lane {
    pub(crate) state: AtomicU32,
    pub(crate) os_process: AtomicI32,
    pub(crate) nid: AtomicU32,
    pub(crate) pid: AtomicU32,
    /// The sender's own segment, by its inode, which differs from those of earlier
    /// and later processes of its name.
    pub(crate) inode: AtomicU64,
    /// Whether the receiver can move bytes of the sender directly; it stores this
    /// when it first sees the lane.
    pub(crate) reach: AtomicU32,
    /// Whether the receiver is copying to or from memory of the sender.
    pub(crate) copying: AtomicU32,
    /// Whether messages wait at the sender for room in the ring.
    pub(crate) waits: AtomicU32,
    /// The processor on which the sender has rung the receiver, plus one; 0 if it hasn't since the
    /// receiver looked.
    pub(crate) rung_on: AtomicU32,
    /// What bodies of the sender cost the receiver: see `Received::published`.
    pub(crate) received: AtomicU64,
    /// The parts of the body that was granted last.
    pub(crate) parts: BodyParts,
    /// The bodies that the receiver has granted the sender to move, and that are dealt with: twice
    /// their number, and one more if the last was moved.
    pub(crate) moved: AtomicU32,
    /// Whether the sender accesses memory of the receiver's direct entries.
    pub(crate) accessing: AccessWord,
    pub(crate) control: Control,
}

/// Everything before the rings.
#[repr(C, align(4096))]
pub(crate) struct Front {
    pub(crate) _header: Header,
    pub(crate) lanes: [Lane; LANES],
    /// What peers access without messages.
    pub(crate) direct: Table,
}

// The lanes' sender writes the first line, its receiver the second one.
const _: () = assert!(size_of::<Lane>() == 128);

// One number in two crates: the segment's owner makes it, this layout fills it.
#[cfg(not(loom))]
const _: () = assert!(SEGMENT_BYTES == ring_offset(LANES) + SNAPSHOT_BYTES);

/// Bytes of a lane's entry in the table, without its ring.
#[cfg(feature = "test-doors")]
pub const LANE_BYTES: usize = size_of::<Lane>();

/// Offset of a lane's entry: its state, the sender's process number in the
/// system, its node and process identifiers.
#[cfg(feature = "test-doors")]
pub const fn lane_offset(lane: usize) -> usize {
    std::mem::offset_of!(Front, lanes) + lane * LANE_BYTES
}

/// Offset in a lane's entry of what the sender says of bodies that it was granted to move.
#[cfg(feature = "test-doors")]
pub const MOVED_OFFSET: usize = std::mem::offset_of!(Lane, moved);

/// Where a lane's ring begins.
pub const fn ring_offset(lane: usize) -> usize {
    let wide = if lane < WIDE_LANES { lane } else { WIDE_LANES };
    let narrow = lane - wide;
    size_of::<Front>() + wide * ring_bytes(WIDE_LINES) + narrow * ring_bytes(NEAR_LINES)
}

/// Lines of data of a lane's ring.
pub const fn ring_lines(lane: usize) -> usize {
    if lane < WIDE_LANES {
        WIDE_LINES
    } else {
        NEAR_LINES
    }
}

/// The lanes of a segment.
pub(crate) trait Lanes {
    fn lane(&self, lane: usize) -> &Lane;

    /// The direct entries of the segment's owner.
    fn direct(&self) -> &Table;

    /// Where a lane's ring begins; aligned to a line.
    fn ring_of(&self, lane: usize) -> *mut u8;

    /// Empties a lane's ring, which no other sender writes to and the receiver
    /// doesn't read yet.
    fn clear_lane(&self, lane: usize);
}

impl Lanes for Segment {
    #[inline(always)]
    fn lane(&self, lane: usize) -> &Lane {
        debug_assert!(lane < LANES);
        // Can't panic: a function that calls none has no frame.
        &front(self).lanes[lane % LANES]
    }

    #[inline(always)]
    fn direct(&self) -> &Table {
        &front(self).direct
    }

    fn ring_of(&self, lane: usize) -> *mut u8 {
        debug_assert!(lane < LANES);
        // SAFETY: the offset of an existing lane lies inside the segment.
        unsafe { self.start().add(ring_offset(lane)) }
    }

    fn clear_lane(&self, lane: usize) {
        // Only slots are read before they are written.
        // SAFETY: the lane's ring is attached, and this sender's alone.
        unsafe { self.ring_of(lane).write_bytes(0, SLOT_BYTES) };
        self.lane(lane).control.reset();
    }
}

#[inline(always)]
fn front(segment: &Segment) -> &Front {
    // SAFETY: the memory is page-aligned, longer than a Front (asserted above), all of whose
    // fields are atomics that any bytes are valid for, and attached as long as the segment.
    unsafe { &*segment.start().cast::<Front>() }
}
