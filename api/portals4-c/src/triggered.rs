//! Triggered operations.

use crate::convert::{code, give, list, match_entry, not_null};
use crate::entries::{named, of_its_kind};
use crate::events::one_sided;
use crate::moves::{Target, atomic, fetch_atomic, get, put, swap};
use lintel_engine4::{Deferred, Transfer};
use lintel_runtime::process;
use lintel_types::{AckRequest, CountingEvent, Error, Handle, Kind, ProcessId, Result};
use portals4_sys::Me;
use std::ffi::{c_int, c_void};

/// A transfer that waits for a counter of the same interface.
fn defer(transfer: Result<Transfer>, trig_ct_handle: Handle, threshold: u64) -> c_int {
    code(transfer.and_then(|transfer| {
        let deferred = Deferred::Transfer(Box::new(transfer));
        process().trigger(deferred, trig_ct_handle, threshold)
    }))
}

/// `PtlTriggeredPut`
#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredPut(
    md_handle: Handle,
    local_offset: u64,
    length: u64,
    ack_req: u8,
    target_id: ProcessId,
    pt_index: u32,
    match_bits: u64,
    remote_offset: u64,
    user_ptr: *mut c_void,
    hdr_data: u64,
    trig_ct_handle: Handle,
    threshold: u64,
) -> c_int {
    let process = target_id;
    let to = Target {
        process,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
    };
    let ack = AckRequest::try_from(ack_req);
    let transfer = ack.map(|ack| put((md_handle, local_offset), length, ack, to));
    defer(transfer, trig_ct_handle, threshold)
}

/// `PtlTriggeredGet`
#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredGet(
    md_handle: Handle,
    local_offset: u64,
    length: u64,
    target_id: ProcessId,
    pt_index: u32,
    match_bits: u64,
    remote_offset: u64,
    user_ptr: *mut c_void,
    trig_ct_handle: Handle,
    threshold: u64,
) -> c_int {
    let process = target_id;
    let to = Target {
        process,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data: 0,
    };
    defer(
        Ok(get((md_handle, local_offset), length, to)),
        trig_ct_handle,
        threshold,
    )
}

/// `PtlTriggeredAtomic`
#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredAtomic(
    md_handle: Handle,
    local_offset: u64,
    length: u64,
    ack_req: u8,
    target_id: ProcessId,
    pt_index: u32,
    match_bits: u64,
    remote_offset: u64,
    user_ptr: *mut c_void,
    hdr_data: u64,
    operation: u8,
    datatype: u8,
    trig_ct_handle: Handle,
    threshold: u64,
) -> c_int {
    let process = target_id;
    let to = Target {
        process,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
    };
    let transfer = atomic(
        (md_handle, local_offset),
        length,
        ack_req,
        to,
        (operation, datatype),
    );
    defer(transfer, trig_ct_handle, threshold)
}

/// `PtlTriggeredFetchAtomic`
#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredFetchAtomic(
    get_md_handle: Handle,
    local_get_offset: u64,
    put_md_handle: Handle,
    local_put_offset: u64,
    length: u64,
    target_id: ProcessId,
    pt_index: u32,
    match_bits: u64,
    remote_offset: u64,
    user_ptr: *mut c_void,
    hdr_data: u64,
    operation: u8,
    datatype: u8,
    trig_ct_handle: Handle,
    threshold: u64,
) -> c_int {
    let process = target_id;
    let to = Target {
        process,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
    };
    let (sink, source) = (
        (get_md_handle, local_get_offset),
        (put_md_handle, local_put_offset),
    );
    let transfer = fetch_atomic(sink, source, length, to, (operation, datatype));
    defer(transfer, trig_ct_handle, threshold)
}

/// `PtlTriggeredSwap`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlTriggeredSwap(
    get_md_handle: Handle,
    local_get_offset: u64,
    put_md_handle: Handle,
    local_put_offset: u64,
    length: u64,
    target_id: ProcessId,
    pt_index: u32,
    match_bits: u64,
    remote_offset: u64,
    user_ptr: *mut c_void,
    hdr_data: u64,
    operand: *const c_void,
    operation: u8,
    datatype: u8,
    trig_ct_handle: Handle,
    threshold: u64,
) -> c_int {
    let process = target_id;
    let to = Target {
        process,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
    };
    let (sink, source) = (
        (get_md_handle, local_get_offset),
        (put_md_handle, local_put_offset),
    );
    let transfer = swap(sink, source, length, to, operand, (operation, datatype));
    defer(transfer, trig_ct_handle, threshold)
}

/// `PtlTriggeredCTInc`
#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredCTInc(
    ct_handle: Handle,
    increment: CountingEvent,
    trig_ct_handle: Handle,
    threshold: u64,
) -> c_int {
    code(one_sided(increment).and_then(|()| {
        let deferred = Deferred::Increment(ct_handle, increment);
        process().trigger(deferred, trig_ct_handle, threshold)
    }))
}

/// `PtlTriggeredCTSet`
#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredCTSet(
    ct_handle: Handle,
    new_ct: CountingEvent,
    trig_ct_handle: Handle,
    threshold: u64,
) -> c_int {
    let deferred = Deferred::Set(ct_handle, new_ct);
    code(process().trigger(deferred, trig_ct_handle, threshold))
}

/// `PtlTriggeredMEAppend`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlTriggeredMEAppend(
    ni_handle: Handle,
    pt_index: u32,
    me: *const Me,
    ptl_list: u8,
    user_ptr: *mut c_void,
    me_handle: *mut Handle,
    trig_ct_handle: Handle,
    threshold: u64,
) -> c_int {
    let append = || {
        process().check_alive()?;
        not_null(me_handle)?;
        let spec = match_entry(me, pt_index, user_ptr as u64)?;
        let list = list(ptl_list)?;
        named(ni_handle)?;
        of_its_kind(ni_handle, true)?;
        process().trigger_append(ni_handle, spec, list, trig_ct_handle, threshold)
    };
    code(append().map(|handle| give(me_handle, handle)))
}

/// `PtlTriggeredMEUnlink`
#[unsafe(no_mangle)]
pub extern "C" fn PtlTriggeredMEUnlink(
    me_handle: Handle,
    trig_ct_handle: Handle,
    threshold: u64,
) -> c_int {
    let unlink = || {
        process().check_alive()?;
        if !me_handle.is(Kind::MatchEntry) {
            return Err(Error::ArgInvalid);
        }
        process().trigger(Deferred::Unlink(me_handle), trig_ct_handle, threshold)
    };
    code(unlink())
}
