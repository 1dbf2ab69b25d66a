//! What an application lends to a Portals library.

use lintel_claim::Region;
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
