//! Memory descriptors.

use crate::convert::{code, descriptor, give, give_if_wanted, not_null};
use lintel_runtime::process3;
use lintel_types::Handle;
use lintel_types::portals3::MemoryDescriptor;
use std::ffi::c_int;

/// `PtlMDAttach`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMDAttach(
    me: Handle,
    md: MemoryDescriptor,
    unlink: c_int,
    handle: *mut Handle,
) -> c_int {
    let attach = || {
        not_null(handle)?;
        let md = descriptor(md, unlink)?;
        process3().descriptor_attach3(me, md)
    };
    code(attach().map(|made| give(handle, made)))
}

/// `PtlMDBind`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMDBind(
    ni: Handle,
    md: MemoryDescriptor,
    unlink: c_int,
    handle: *mut Handle,
) -> c_int {
    let bind = || {
        not_null(handle)?;
        let md = descriptor(md, unlink)?;
        process3().descriptor_bind3(ni, md)
    };
    code(bind().map(|made| give(handle, made)))
}

/// `PtlMDUnlink`
#[unsafe(no_mangle)]
pub extern "C" fn PtlMDUnlink(md: Handle) -> c_int {
    code(process3().descriptor_unlink3(md))
}

/// `PtlMDUpdate`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMDUpdate(
    md: Handle,
    old_md: *mut MemoryDescriptor,
    new_md: *mut MemoryDescriptor,
    testq: Handle,
) -> c_int {
    let update = || {
        // SAFETY: null, or a structure of the caller's (the header).
        let new = unsafe { new_md.as_ref() }.copied();
        // The descriptor keeps the unlink operation that it was made with.
        let new = new.map(|new| descriptor(new, 0)).transpose()?;
        process3().descriptor_update3(md, new, testq)
    };
    code(update().map(|old| give_if_wanted(old_md, old)))
}
