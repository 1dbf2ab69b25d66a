//! A segment's memory with its header.

use crate::header::{Header, SNAPSHOT_BYTES, SNAPSHOT_OFFSET};
use crate::shared_memory::{Mode, SharedMemory};
use std::io;
use std::sync::atomic::AtomicU64;

/// Attached memory, seen as what the layout says it is.
pub(crate) struct Attached(SharedMemory);

impl From<SharedMemory> for Attached {
    fn from(memory: SharedMemory) -> Attached {
        Attached(memory)
    }
}

impl Attached {
    pub(crate) fn new(id: i32, bytes: usize, mode: Mode) -> io::Result<Attached> {
        SharedMemory::attach(id, bytes, mode).map(Attached)
    }

    #[inline]
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: the memory is page-aligned, longer than a Header, all of whose fields are
        // atomics that any bytes are valid for, and attached as long as self.
        unsafe { &*self.0.start().cast::<Header>() }
    }

    /// Where the owner's snapshot stands.
    pub(crate) fn snapshot(&self) -> &[AtomicU64; SNAPSHOT_BYTES / 8] {
        // SAFETY: a segment is page-aligned and ends with the snapshot (SEGMENT_BYTES), atomics
        // are valid for any bytes, and it is attached as long as self.
        unsafe { &*self.0.start().add(SNAPSHOT_OFFSET).cast() }
    }

    #[inline]
    pub(crate) fn start(&self) -> *mut u8 {
        self.0.start()
    }

    pub(crate) fn id(&self) -> i32 {
        self.0.id()
    }
}
