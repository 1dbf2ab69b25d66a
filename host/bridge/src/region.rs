//! The pages that an agent shares with one client.
//!
//! ```text
//!   layout: bells │ posts │ 4 × (ends of queues, counters) │ one message │ slots for events
//! ```
//!
//! The agent makes them, seals their size, and hands them over. Only what is
//! touched has memory behind it. The client can write anything anywhere: the agent
//! reads each word once, and finds places by numbers that it keeps itself.

#![allow(unsafe_code)]

use crate::counter::CounterCell;
use crate::posts::Posts;
use crate::queue::{QueueEnds, Slot};
use lintel_claim::Claim;
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::AtomicU32;

/// Event queues of an interface.
pub const QUEUES: usize = 256;
/// Counters of an interface.
pub const COUNTERS: usize = 4096;
/// Bytes of the longest command or answer.
pub const MESSAGE_BYTES: usize = 2 << 20;
/// Events in all queues of a client.
pub(crate) const SLOTS: usize = (256 << 20) / size_of::<Slot>();

/// Two words that one side rings and the other sleeps on; and what it may ring for.
#[repr(C, align(128))]
pub(crate) struct Doorbell {
    /// Changes when those who sleep are to look.
    pub(crate) rings: AtomicU32,
    /// How many sleep, or are about to.
    pub(crate) asleep: AtomicU32,
    /// Messages so far.
    pub(crate) messages: AtomicU32,
    /// Bytes of the last one.
    pub(crate) length: AtomicU32,
}

#[repr(C, align(128))]
pub(crate) struct Interface {
    pub(crate) queues: [QueueEnds; QUEUES],
    pub(crate) counters: [CounterCell; COUNTERS],
}

#[repr(C, align(4096))]
pub(crate) struct Layout {
    /// A command is there.
    pub(crate) requests: Doorbell,
    /// Its answer is there.
    pub(crate) replies: Doorbell,
    /// Something was posted or counted.
    pub(crate) activity: Doorbell,
    /// Commands that need no answer.
    pub(crate) posts: Posts,
    pub(crate) interfaces: [Interface; 4],
}

const MESSAGE: usize = size_of::<Layout>();
const EVENTS: usize = MESSAGE + MESSAGE_BYTES;
const BYTES: usize = EVENTS + SLOTS * size_of::<Slot>();

/// The pages, mapped.
pub struct SharedRegion {
    memory: *mut u8,
    file: OwnedFd,
}

// SAFETY: the memory stays mapped as long as the SharedRegion lives, and is accessed through
// atomics and claims only.
unsafe impl Send for SharedRegion {}
// SAFETY: as for Send.
unsafe impl Sync for SharedRegion {}

impl SharedRegion {
    /// Makes pages for a client.
    ///
    /// # Errors
    /// What the system said.
    pub fn create() -> io::Result<SharedRegion> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("lintel-client", flags)?;
        rustix::fs::ftruncate(&file, BYTES as u64)?;
        // Whoever shrank it would make the other's next look a fatal signal.
        rustix::fs::fcntl_add_seals(&file, sealed())?;
        SharedRegion::map(file)
    }

    /// Maps pages that an agent has made.
    ///
    /// # Errors
    /// `InvalidData` where they are of another version; what the system said.
    pub fn open(file: OwnedFd) -> io::Result<SharedRegion> {
        let size = rustix::fs::fstat(&file)?.st_size;
        let seals = rustix::fs::fcntl_get_seals(&file)?;
        if size != BYTES as i64 || !seals.contains(sealed()) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        SharedRegion::map(file)
    }

    fn map(file: OwnedFd) -> io::Result<SharedRegion> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let kind = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the system's choice.
        let memory =
            unsafe { rustix::mm::mmap(std::ptr::null_mut(), BYTES, access, kind, &file, 0) }?;
        Ok(SharedRegion {
            memory: memory.cast(),
            file,
        })
    }

    /// The file, to be handed to the client.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn layout(&self) -> &Layout {
        // SAFETY: the mapping is page-aligned, longer than a Layout, all of whose fields
        // are atomics that any bytes are valid for, and lives as long as self.
        unsafe { &*self.memory.cast::<Layout>() }
    }

    /// All slots for events.
    pub(crate) fn slots(&self) -> &[Slot] {
        // SAFETY: EVENTS lies inside the mapping.
        let first = unsafe { self.memory.add(EVENTS) };
        // SAFETY: SLOTS slots follow there, aligned (EVENTS is a multiple of a page),
        // of atomics that any bytes are valid for, mapped as long as self lives.
        unsafe { std::slice::from_raw_parts(first.cast::<Slot>(), SLOTS) }
    }

    /// Where a command or its answer is written.
    pub(crate) fn message(&self) -> Claim {
        // SAFETY: MESSAGE lies inside the mapping.
        let first = unsafe { self.memory.add(MESSAGE) };
        // SAFETY: MESSAGE_BYTES follow there, readable and writable as long as self
        // lives, no reference is ever made to them, and callers use the claim while
        // they borrow self.
        unsafe { Claim::new(first, MESSAGE_BYTES as u64) }
    }
}

impl Drop for SharedRegion {
    fn drop(&mut self) {
        // SAFETY: mapped by map() with this length; what borrowed self is gone.
        let _ = unsafe { rustix::mm::munmap(self.memory.cast(), BYTES) };
    }
}

impl fmt::Debug for SharedRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedRegion({:p})", self.memory)
    }
}

fn sealed() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

const _: () = assert!(MESSAGE % 4096 == 0 && EVENTS % 4096 == 0);
