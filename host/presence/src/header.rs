//! What the first bytes of a segment mean.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// "lintel" and the version of a segment's layout: lanes, rings and the messages in them included.
pub(crate) const MAGIC: u64 = 0x6c69_6e74_656c_000a;
/// Numbers in a process's statistics.
pub(crate) const STATS_WORDS: usize = 16;
/// Bytes of a segment: 33 pages of header and lanes, 64 rings of 264 KiB, 960 of 28 KiB, and the
/// snapshot; the system provides memory for those that were touched. The shared-memory NAL,
/// which lays out lanes and rings, asserts that its layout has this length.
pub const SEGMENT_BYTES: usize = SNAPSHOT_OFFSET + SNAPSHOT_BYTES;
/// Where the snapshot begins.
pub(crate) const SNAPSHOT_OFFSET: usize = 33 * 4096 + (1024 * 28 + 64 * 236) * 1024;
/// Bytes of a segment that hold a snapshot of its owner, for tools.
pub const SNAPSHOT_BYTES: usize = 16 * 4096;

/// What the owner and every other process need.
#[repr(C, align(128))]
pub struct Header {
    pub(crate) magic: AtomicU64,
    /// The number in the owner's registration: shows that it means this segment.
    pub(crate) nonce: AtomicU64,
    /// Not 0 if senders must order their commit and their look at the bell themselves.
    pub(crate) needs_fence: AtomicU32,
    pub(crate) bell: BellWords,
    pub(crate) changes: Changes,
    /// The words of [`crate::ProcessStats`], in its order.
    pub(crate) stats: [AtomicU64; STATS_WORDS],
    pub(crate) snapshot: SnapshotWords,
}

impl Header {
    /// Who sleeps on the bell, or what stands there instead.
    #[inline]
    pub(crate) fn asleep(&self) -> u32 {
        self.bell.asleep.load(Ordering::Relaxed) & SLEEPER_BITS
    }

    /// Senders see from now on that the owner reads no message any more.
    pub(crate) fn end(&self) {
        self.bell.asleep.store(OWNER_ENDED, Ordering::SeqCst);
    }
}

/// Who has asked for a snapshot, and what was answered. Numbers of requests wrap.
#[repr(C, align(128))]
pub(crate) struct SnapshotWords {
    /// Requests so far.
    pub(crate) asked: AtomicU32,
    /// The request whose answer is being written, or was.
    pub(crate) begun: AtomicU32,
    /// The request whose answer stands there.
    pub(crate) answered: AtomicU32,
    /// Bytes of the answer.
    pub(crate) length: AtomicU32,
}

/// Counts lanes opened and closed.
#[repr(C, align(128))]
pub(crate) struct Changes(pub(crate) AtomicU32);

/// The words of a [`crate::Bell`], on cache lines of their own.
#[repr(C, align(128))]
pub(crate) struct BellWords {
    /// Who sleeps: 0 no thread, 1 the helper, 2 a caller, or one of the following; above these bits,
    /// a number of the bell's arming, so that who clears them after a wake clears no later arming.
    pub(crate) asleep: AtomicU32,
    pub(crate) helper: AtomicU32,
    pub(crate) caller: AtomicU32,
    pub(crate) waits: CallerWaits,
}

/// Not 0 while a caller polls in vain. Senders of short messages don't read it, so that it is no
/// second line for them to fetch.
#[repr(C, align(64))]
pub(crate) struct CallerWaits(pub(crate) AtomicU32);

/// The bits of [`BellWords::asleep`] that say who sleeps.
pub(crate) const SLEEPER_BITS: u32 = 7;

/// In place of a sleeper: the owner has ended, no message is read any more.
pub(crate) const OWNER_ENDED: u32 = 3;

/// In place of a sleeper: the helper sleeps, and needn't be rung for acknowledgements.
pub(crate) const HELPER_BUT_FOR_ACKNOWLEDGEMENTS: u32 = 4;
