//! The memory that an agent shares with one client.
//!
//! ```text
//!   doorbells │ posts │ 4 × (ends of queues, counters) │ one message │ slots for events
//!   └──────────────── Layout ──────────────────────────┘
//! ```
//!
//! The agent creates the region, seals its size, and hands it over. Only pages that are
//! touched have memory behind them. The client can write anything anywhere: the agent reads
//! each word once, and finds places by numbers that it keeps itself.

#![allow(unsafe_code)]

use crate::counter::CounterCell;
use crate::doorbell::Doorbell;
use crate::post_queue::PostQueue;
use crate::queue::{QueueEnds, Slot};
use lintel_claim::{Claim, Mapping};
use rustix::fs::{MemfdFlags, SealFlags};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Event queues that an interface can have.
pub const QUEUES: usize = 256;
/// Counters that an interface can have.
pub const COUNTERS: usize = 4096;
/// Bytes of the longest command or answer.
pub const MESSAGE_BYTES: usize = 2 << 20;
/// Events in all queues of a client.
pub(crate) const SLOTS: usize = (256 << 20) / size_of::<Slot>();

#[repr(C, align(128))]
pub(crate) struct Interface {
    pub(crate) queues: [QueueEnds; QUEUES],
    pub(crate) counters: [CounterCell; COUNTERS],
}

#[repr(C, align(4096))]
pub(crate) struct Layout {
    /// The client rings it for a request or a post.
    pub(crate) requests: Doorbell,
    /// The agent rings it for an answer, and for a free slot for posts.
    pub(crate) replies: Doorbell,
    /// The agent rings it when something is posted to a queue or counted.
    pub(crate) activity: Doorbell,
    pub(crate) posts: PostQueue,
    pub(crate) interfaces: [Interface; 4],
}

const MESSAGE: usize = size_of::<Layout>();
const EVENTS: usize = MESSAGE + MESSAGE_BYTES;
const BYTES: usize = EVENTS + SLOTS * size_of::<Slot>();

/// Memory that a client and its agent share, as one of them has mapped it.
pub struct SharedRegion {
    memory: Mapping,
    file: OwnedFd,
}

impl SharedRegion {
    /// Creates the region of one client.
    ///
    /// # Errors
    /// A system call failed.
    pub fn create() -> io::Result<SharedRegion> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("lintel-client", flags)?;
        rustix::fs::ftruncate(&file, BYTES as u64)?;
        // If one side could shrink it, the other's next access would be a fatal signal.
        rustix::fs::fcntl_add_seals(&file, sealed())?;
        SharedRegion::map(file)
    }

    /// Maps a region that an agent has created.
    ///
    /// # Errors
    /// `InvalidData` if its size or its seals are those of another version; a system call
    /// failed.
    pub fn open(file: OwnedFd) -> io::Result<SharedRegion> {
        let size = rustix::fs::fstat(&file)?.st_size;
        let seals = rustix::fs::fcntl_get_seals(&file)?;
        if size != BYTES as i64 || !seals.contains(sealed()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        SharedRegion::map(file)
    }

    fn map(file: OwnedFd) -> io::Result<SharedRegion> {
        let memory = Mapping::shared(&file, BYTES)?;
        Ok(SharedRegion { memory, file })
    }

    /// The region's file, for the client to map.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn layout(&self) -> &Layout {
        // SAFETY: the mapping is page-aligned, longer than a Layout, all of whose fields
        // are atomics that any bytes are valid for, and lives as long as self.
        unsafe { &*self.memory.start().cast::<Layout>() }
    }

    /// The slots for the events of all queues.
    pub(crate) fn slots(&self) -> &[Slot] {
        // SAFETY: EVENTS lies inside the mapping.
        let first = unsafe { self.memory.start().add(EVENTS) };
        // SAFETY: SLOTS slots follow there, aligned (EVENTS is a multiple of a page),
        // of atomics that any bytes are valid for, mapped as long as self lives.
        unsafe { std::slice::from_raw_parts(first.cast::<Slot>(), SLOTS) }
    }

    /// The bytes of the request under way, then of its answer.
    pub(crate) fn message(&self) -> Claim {
        // SAFETY: MESSAGE lies inside the mapping.
        let first = unsafe { self.memory.start().add(MESSAGE) };
        // SAFETY: MESSAGE_BYTES follow there, readable and writable as long as self
        // lives, no reference is ever made to them, and callers use the claim while
        // they borrow self.
        unsafe { Claim::new(first, MESSAGE_BYTES as u64) }
    }
}

impl fmt::Debug for SharedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedRegion({:p})", self.memory.start())
    }
}

fn sealed() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

const _: () = assert!(MESSAGE % 4096 == 0 && EVENTS % 4096 == 0);
