//! What an application lends to a Portals library.

use crate::error::{Result, check};
use lintel_claim::Region;
use portals4_sys as sys;
use std::ffi::c_void;
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;

/// Memory that a descriptor or an entry spans, and that the library and its peers read and
/// write at any moment while it is bound.
///
/// # Safety
/// From [`address`](Self::address) on, [`size`](Self::size) bytes stay mapped, readable and
/// writable, and both answers stay the same, until the value is dropped; moving the value
/// doesn't move them. The process itself touches them as atomics or through raw
/// pointers only, never through a Rust slice.
pub unsafe trait UserMemory {
    /// The address of the first byte, valid as long as the value lives.
    fn address(&self) -> *mut c_void;
    /// Bytes from that address on.
    fn size(&self) -> usize;
}

/// Memory that peers can map (`PtlMemAlloc`), freed when this is dropped.
#[derive(Debug)]
pub struct ShareableMemory {
    start: *mut c_void,
    bytes: usize,
}

impl ShareableMemory {
    /// Zeroed memory of so many bytes, aligned to a page.
    ///
    /// # Errors
    /// The code of `PtlMemAlloc`.
    pub fn new(bytes: usize) -> Result<Self> {
        let mut start = ptr::null_mut();
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlMemAlloc(bytes as u64, &mut start) };
        check("PtlMemAlloc", code).map(|()| ShareableMemory { start, bytes })
    }
}

impl Drop for ShareableMemory {
    fn drop(&mut self) {
        // SAFETY: it is this value's own, and nothing uses it any more (`UserMemory`).
        unsafe { sys::PtlMemFree(self.start) };
    }
}

// SAFETY: the memory stays mapped at one address until the value is dropped, and no reference
// to it is made here.
unsafe impl UserMemory for ShareableMemory {
    fn address(&self) -> *mut c_void {
        self.start
    }

    fn size(&self) -> usize {
        self.bytes
    }
}

// SAFETY: the pages of a region stay mapped until the process ends, and no reference to
// them is ever made (see `Region`).
unsafe impl UserMemory for Region {
    fn address(&self) -> *mut c_void {
        ptr::with_exposed_provenance_mut(self.claim().address() as usize)
    }

    fn size(&self) -> usize {
        self.len() as usize
    }
}

// SAFETY: the memory is the shared value's, which lives at least as long as this owner.
unsafe impl<M: UserMemory> UserMemory for Rc<M> {
    fn address(&self) -> *mut c_void {
        M::address(self)
    }

    fn size(&self) -> usize {
        M::size(self)
    }
}

// SAFETY: as for `Rc`.
unsafe impl<M: UserMemory> UserMemory for Arc<M> {
    fn address(&self) -> *mut c_void {
        M::address(self)
    }

    fn size(&self) -> usize {
        M::size(self)
    }
}
