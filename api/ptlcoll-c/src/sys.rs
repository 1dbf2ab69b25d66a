//! The part of `portals4.h` that a group calls.

use lintel_types::{CountingEvent, Event, Handle, ProcessId};
use std::ffi::{c_int, c_uint, c_void};

/// `PTL_CT_NONE_REACHED`
pub(crate) const CT_NONE_REACHED: c_int = 2;
/// `PTL_EQ_DROPPED`
pub(crate) const EQ_DROPPED: c_int = 3;
/// `PTL_EQ_EMPTY`
pub(crate) const EQ_EMPTY: c_int = 4;
/// `PTL_IN_USE`
pub(crate) const IN_USE: c_int = 7;
/// `PTL_PT_IN_USE`
pub(crate) const PT_IN_USE: c_int = 14;

/// `ptl_md_t`
#[repr(C)]
pub(crate) struct Md {
    pub(crate) start: *mut c_void,
    pub(crate) length: u64,
    pub(crate) options: c_uint,
    pub(crate) eq_handle: Handle,
    pub(crate) ct_handle: Handle,
}

/// `ptl_me_t`
#[repr(C)]
pub(crate) struct Me {
    pub(crate) start: *mut c_void,
    pub(crate) length: u64,
    pub(crate) ct_handle: Handle,
    pub(crate) uid: u32,
    pub(crate) options: c_uint,
    pub(crate) match_id: ProcessId,
    pub(crate) match_bits: u64,
    pub(crate) ignore_bits: u64,
    pub(crate) min_free: u64,
}

const _: () = assert!(size_of::<Md>() == 32 && size_of::<Me>() == 64);

/// `ptl_event_t`, whatever is in it.
pub(crate) type EventWords = [u64; Event::WORDS];

#[allow(non_snake_case)]
unsafe extern "C" {
    pub(crate) fn PtlGetId(ni: Handle, id: *mut ProcessId) -> c_int;
    pub(crate) fn PtlGetMap(ni: Handle, size: u64, map: *mut ProcessId, actual: *mut u64) -> c_int;
    pub(crate) fn PtlPTAlloc(
        ni: Handle,
        options: c_uint,
        eq: Handle,
        request: u32,
        index: *mut u32,
    ) -> c_int;
    pub(crate) fn PtlPTFree(ni: Handle, index: u32) -> c_int;
    pub(crate) fn PtlMDBind(ni: Handle, md: *const Md, handle: *mut Handle) -> c_int;
    pub(crate) fn PtlMDRelease(md: Handle) -> c_int;
    pub(crate) fn PtlMEAppend(
        ni: Handle,
        index: u32,
        me: *const Me,
        list: u8,
        user_ptr: *mut c_void,
        handle: *mut Handle,
    ) -> c_int;
    pub(crate) fn PtlMEUnlink(me: Handle) -> c_int;
    pub(crate) fn PtlEQAlloc(ni: Handle, count: u64, eq: *mut Handle) -> c_int;
    pub(crate) fn PtlEQFree(eq: Handle) -> c_int;
    pub(crate) fn PtlEQPoll(
        eqs: *const Handle,
        size: c_uint,
        timeout: c_uint,
        event: *mut EventWords,
        which: *mut c_uint,
    ) -> c_int;
    pub(crate) fn PtlCTAlloc(ni: Handle, ct: *mut Handle) -> c_int;
    pub(crate) fn PtlCTFree(ct: Handle) -> c_int;
    pub(crate) fn PtlCTCancelTriggered(ct: Handle) -> c_int;
    pub(crate) fn PtlCTGet(ct: Handle, event: *mut CountingEvent) -> c_int;
    pub(crate) fn PtlCTInc(ct: Handle, by: CountingEvent) -> c_int;
    pub(crate) fn PtlCTPoll(
        cts: *const Handle,
        tests: *const u64,
        size: c_uint,
        timeout: c_uint,
        event: *mut CountingEvent,
        which: *mut c_uint,
    ) -> c_int;
    pub(crate) fn PtlPut(
        md: Handle,
        local_offset: u64,
        length: u64,
        ack: u8,
        target: ProcessId,
        index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
        hdr_data: u64,
    ) -> c_int;
    pub(crate) fn PtlTriggeredPut(
        md: Handle,
        local_offset: u64,
        length: u64,
        ack: u8,
        target: ProcessId,
        index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
        hdr_data: u64,
        trigger: Handle,
        threshold: u64,
    ) -> c_int;
    pub(crate) fn PtlAtomic(
        md: Handle,
        local_offset: u64,
        length: u64,
        ack: u8,
        target: ProcessId,
        index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
        hdr_data: u64,
        operation: u8,
        datatype: u8,
    ) -> c_int;
    pub(crate) fn PtlTriggeredAtomic(
        md: Handle,
        local_offset: u64,
        length: u64,
        ack: u8,
        target: ProcessId,
        index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
        hdr_data: u64,
        operation: u8,
        datatype: u8,
        trigger: Handle,
        threshold: u64,
    ) -> c_int;
    pub(crate) fn PtlTriggeredCTInc(
        ct: Handle,
        by: CountingEvent,
        trigger: Handle,
        threshold: u64,
    ) -> c_int;
}
