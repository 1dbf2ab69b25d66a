//! Memory descriptors, list entries, match list entries.

use crate::convert::{code, descriptor, give, list, list_entry, match_entry, not_null, search};
use lintel_claim::Claim;
use lintel_engine4::EntrySpec;
use lintel_runtime::process;
use lintel_types::{Error, Handle, Kind, List, Result};
use portals4_sys::{Le, Md, Me};
use std::ffi::{c_int, c_void};

/// `PtlMDBind`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMDBind(
    ni_handle: Handle,
    md: *const Md,
    md_handle: *mut Handle,
) -> c_int {
    let bind = || {
        process().check_alive()?;
        not_null(md_handle)?;
        let spec = descriptor(md)?;
        named(ni_handle)?;
        process().descriptor_bind(ni_handle, spec)
    };
    code(bind().map(|handle| give(md_handle, handle)))
}

/// `PtlMDRelease`
#[unsafe(no_mangle)]
pub extern "C" fn PtlMDRelease(md_handle: Handle) -> c_int {
    code(process().descriptor_release(md_handle))
}

/// `PtlLEAppend`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlLEAppend(
    ni_handle: Handle,
    pt_index: u32,
    le: *const Le,
    ptl_list: u8,
    user_ptr: *mut c_void,
    le_handle: *mut Handle,
) -> c_int {
    let append = || {
        let list = list_to_append_to(ni_handle, false, ptl_list, le_handle)?;
        let spec = list_entry(le, pt_index, user_ptr as u64)?;
        process().append(ni_handle, spec, list)
    };
    code(append().map(|entry| give(le_handle, entry)))
}

/// `PtlMEAppend`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMEAppend(
    ni_handle: Handle,
    pt_index: u32,
    me: *const Me,
    ptl_list: u8,
    user_ptr: *mut c_void,
    me_handle: *mut Handle,
) -> c_int {
    let append = || {
        let list = list_to_append_to(ni_handle, true, ptl_list, me_handle)?;
        let spec = match_entry(me, pt_index, user_ptr as u64)?;
        process().append(ni_handle, spec, list)
    };
    code(append().map(|entry| give(me_handle, entry)))
}

/// `PtlLEUnlink`
#[unsafe(no_mangle)]
pub extern "C" fn PtlLEUnlink(le_handle: Handle) -> c_int {
    unlink(le_handle, Kind::ListEntry)
}

/// `PtlMEUnlink`
#[unsafe(no_mangle)]
pub extern "C" fn PtlMEUnlink(me_handle: Handle) -> c_int {
    unlink(me_handle, Kind::MatchEntry)
}

/// `PtlLESearch`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlLESearch(
    ni_handle: Handle,
    pt_index: u32,
    le: *const Le,
    ptl_search_op: u8,
    user_ptr: *mut c_void,
) -> c_int {
    let spec = || list_entry(le, pt_index, user_ptr as u64);
    search_for(ni_handle, spec, false, ptl_search_op)
}

/// `PtlMESearch`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMESearch(
    ni_handle: Handle,
    pt_index: u32,
    me: *const Me,
    ptl_search_op: u8,
    user_ptr: *mut c_void,
) -> c_int {
    let spec = || match_entry(me, pt_index, user_ptr as u64);
    search_for(ni_handle, spec, true, ptl_search_op)
}

/// Checks what an append is given besides the entry.
#[inline(always)]
fn list_to_append_to(
    ni_handle: Handle,
    matching: bool,
    ptl_list: u8,
    handle: *mut Handle,
) -> Result<List> {
    process().check_alive()?;
    not_null(handle)?;
    named(ni_handle)?;
    of_its_kind(ni_handle, matching)?;
    list(ptl_list)
}

fn unlink(handle: Handle, kind: Kind) -> c_int {
    let unlink = || {
        process().check_alive()?;
        if !handle.is(kind) {
            return Err(Error::ArgInvalid);
        }
        process().unlink(handle)
    };
    code(unlink())
}

fn search_for(
    ni_handle: Handle,
    spec: impl FnOnce() -> Result<EntrySpec<Claim>>,
    matching: bool,
    op: u8,
) -> c_int {
    let search_for = || {
        process().check_alive()?;
        let (spec, op) = (spec()?, search(op)?);
        named(ni_handle)?;
        of_its_kind(ni_handle, matching)?;
        process().search(ni_handle, spec, op)
    };
    code(search_for())
}

/// Match list entries are for matching interfaces, list entries for the others.
pub(crate) fn of_its_kind(ni_handle: Handle, matching: bool) -> Result<()> {
    if ni_handle.is_matching() == matching {
        Ok(())
    } else {
        Err(Error::ArgInvalid)
    }
}

/// The handle must be an interface's, not that of an object on one.
pub(crate) fn named(ni_handle: Handle) -> Result<()> {
    if ni_handle.is(Kind::Interface) {
        Ok(())
    } else {
        Err(Error::ArgInvalid)
    }
}
