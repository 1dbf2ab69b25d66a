//! Match entries, and entries with their descriptors in one step.

use crate::convert::{code, descriptor, entry, give, not_null, position};
use lintel_runtime::{EntryWith, process3};
use lintel_types::portals3::{MemoryDescriptor, Result};
use lintel_types::{Handle, ProcessId};
use std::ffi::c_int;

/// `PtlMEAttach`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMEAttach(
    ni: Handle,
    pt: u32,
    match_id: ProcessId,
    match_bits: u64,
    ignore_bits: u64,
    unlink: c_int,
    pos: c_int,
    me: *mut Handle,
) -> c_int {
    let attach = || {
        not_null(me)?;
        let entry = entry(match_id, match_bits, ignore_bits, unlink)?;
        let position = position(pos)?;
        process3().entry_attach3(ni, pt, entry, position)
    };
    code(attach().map(|handle| give(me, handle)))
}

/// `PtlMEAttachAny`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMEAttachAny(
    ni: Handle,
    pt: *mut u32,
    match_id: ProcessId,
    match_bits: u64,
    ignore_bits: u64,
    unlink: c_int,
    me: *mut Handle,
) -> c_int {
    let attach = || {
        not_null(pt)?;
        not_null(me)?;
        let entry = entry(match_id, match_bits, ignore_bits, unlink)?;
        process3().entry_attach_any3(ni, entry)
    };
    code(attach().map(|(portal, handle)| {
        give(pt, portal.into());
        give(me, handle);
    }))
}

/// `PtlMEInsert`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMEInsert(
    base: Handle,
    match_id: ProcessId,
    match_bits: u64,
    ignore_bits: u64,
    unlink: c_int,
    pos: c_int,
    me: *mut Handle,
) -> c_int {
    let insert = || {
        not_null(me)?;
        let entry = entry(match_id, match_bits, ignore_bits, unlink)?;
        let position = position(pos)?;
        process3().entry_insert3(base, entry, position)
    };
    code(insert().map(|handle| give(me, handle)))
}

/// `PtlMEUnlink`
#[unsafe(no_mangle)]
pub extern "C" fn PtlMEUnlink(me: Handle) -> c_int {
    code(process3().entry_unlink3(me))
}

/// `PtlMEMDPost`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMEMDPost(
    ni: Handle,
    base: Handle,
    match_id: ProcessId,
    match_bits: u64,
    ignore_bits: u64,
    me_unlink: c_int,
    pos: c_int,
    md: MemoryDescriptor,
    md_unlink: c_int,
    me: *mut Handle,
    handle: *mut Handle,
    testq: Handle,
) -> c_int {
    let post = || {
        not_null(me)?;
        not_null(handle)?;
        let entry = entry(match_id, match_bits, ignore_bits, me_unlink)?;
        let (position, md) = (position(pos)?, descriptor(md, md_unlink)?);
        let with = EntryWith {
            entry,
            position,
            md,
        };
        process3().entry_post3(ni, base, with, testq)
    };
    both(post(), me, handle)
}

/// `PtlMEMDAttach`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMEMDAttach(
    ni: Handle,
    pt: u32,
    match_id: ProcessId,
    match_bits: u64,
    ignore_bits: u64,
    me_unlink: c_int,
    pos: c_int,
    md: MemoryDescriptor,
    md_unlink: c_int,
    me: *mut Handle,
    handle: *mut Handle,
) -> c_int {
    let attach = || {
        not_null(me)?;
        not_null(handle)?;
        let entry = entry(match_id, match_bits, ignore_bits, me_unlink)?;
        let (position, md) = (position(pos)?, descriptor(md, md_unlink)?);
        let with = EntryWith {
            entry,
            position,
            md,
        };
        process3().entry_attach_with3(ni, pt, with)
    };
    both(attach(), me, handle)
}

/// `PtlMEMDInsert`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlMEMDInsert(
    base: Handle,
    match_id: ProcessId,
    match_bits: u64,
    ignore_bits: u64,
    me_unlink: c_int,
    pos: c_int,
    md: MemoryDescriptor,
    md_unlink: c_int,
    me: *mut Handle,
    handle: *mut Handle,
) -> c_int {
    let insert = || {
        not_null(me)?;
        not_null(handle)?;
        let entry = entry(match_id, match_bits, ignore_bits, me_unlink)?;
        let (position, md) = (position(pos)?, descriptor(md, md_unlink)?);
        let with = EntryWith {
            entry,
            position,
            md,
        };
        process3().entry_insert_with3(base, with)
    };
    both(insert(), me, handle)
}

fn both(made: Result<(Handle, Handle)>, me: *mut Handle, md: *mut Handle) -> c_int {
    code(made.map(|(entry, descriptor)| {
        give(me, entry);
        give(md, descriptor);
    }))
}
