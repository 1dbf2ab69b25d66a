//! Memory descriptors.

use crate::convert::{code, descriptor, give, give_if_wanted, not_null};
use lintel_runtime::process3;
use lintel_types::Handle;
use lintel_types::portals3::{Error, MemoryDescriptor};
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
        process3().with3(Error::MeInvalid, |interface, _| {
            interface.descriptor_attach(me, md)
        })
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
        process3().on_interface(ni, |interface, _| interface.descriptor_bind(md))
    };
    code(bind().map(|made| give(handle, made)))
}

/// `PtlMDUnlink`
#[unsafe(no_mangle)]
pub extern "C" fn PtlMDUnlink(md: Handle) -> c_int {
    code(
        process3().end_with3(Error::MdInvalid, |interface, effects| {
            interface.descriptor_unlink(md, effects)
        }),
    )
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
        process3().with3(Error::MdInvalid, |interface, effects| {
            let old = interface.descriptor_state(md)?;
            if let Some(new) = new {
                interface.descriptor_update(md, new, testq, effects)?;
            }
            Ok(old)
        })
    };
    code(update().map(|old| give_if_wanted(old_md, old)))
}
