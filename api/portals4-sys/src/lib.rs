//! `portals4.h` in Rust: the structures that `lintel-types` lacks, and declarations of the
//! functions, whichever library defines them.
//!
//! ```text
//!   ptlcoll-c, lintel ──call──▶ PtlPut, … ◀──define── portals4-c, or another libportals.so.4
//!            └──── Md, Me, Event … of this crate ────┘
//! ```
//!
//! The header documents what a function does and what its pointers must be; the header
//! test of `portals4-c` compares both sides. A function that takes plain values only is
//! declared safe: the specification has it refuse a handle that names nothing. Nothing is
//! linked here: a program links `portals4-c`, or `-lportals`. `portals4-abi` wraps the calls
//! in owned handles.
#![allow(non_snake_case)]

use lintel_types::{EventKind, List, NiFail};
use std::ffi::{c_char, c_int, c_void};

pub use lintel_types::{CountingEvent, Event, Handle, Limits, ProcessId};

/// Return codes, by the header's names, to match on; `lintel_types::Error` has all errors.
pub mod codes {
    use lintel_types::Error;
    use std::ffi::c_int;

    /// `PTL_OK`
    pub const OK: c_int = 0;
    /// `PTL_CT_NONE_REACHED`
    pub const CT_NONE_REACHED: c_int = Error::CtNoneReached as c_int;
    /// `PTL_EQ_DROPPED`
    pub const EQ_DROPPED: c_int = Error::EqDropped as c_int;
    /// `PTL_EQ_EMPTY`
    pub const EQ_EMPTY: c_int = Error::EqEmpty as c_int;
    /// `PTL_FAIL`
    pub const FAIL: c_int = Error::Fail as c_int;
    /// `PTL_IN_USE`
    pub const IN_USE: c_int = Error::InUse as c_int;
    /// `PTL_PT_IN_USE`
    pub const PT_IN_USE: c_int = Error::PtInUse as c_int;
    /// `PTL_INTERRUPTED`: a name of the header that this library never returns.
    pub const INTERRUPTED: c_int = 16;
}

/// `ptl_event_t` before its kinds are known to exist; the caller may have invented
/// them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawEvent {
    /// Address of the message's data.
    pub start: u64,
    /// The `user_ptr` of the call that made the entry or the operation.
    pub user_ptr: u64,
    /// The eight bytes of data that the initiator has sent along.
    pub hdr_data: u64,
    /// Match bits of the message.
    pub match_bits: u64,
    /// Requested length, bytes.
    pub rlength: u64,
    /// Manipulated length, bytes.
    pub mlength: u64,
    /// Offset in the entry, bytes.
    pub remote_offset: u64,
    /// The process that started the operation.
    pub initiator: ProcessId,
    /// The user id of the initiator.
    pub uid: u32,
    /// The portal table index of the message.
    pub pt_index: u32,
    /// `PTL_EVENT_*`
    pub kind: u8,
    /// `PTL_PRIORITY_LIST` or `PTL_OVERFLOW_LIST`
    pub list: u8,
    /// `PTL_NI_*`
    pub ni_fail: u8,
    /// `ptl_op_t`
    pub operation: u8,
    /// `ptl_datatype_t`
    pub datatype: u8,
}

/// What the kinds mean, if a library has posted the event: of a kind that the header
/// doesn't have, the low bits count.
impl From<RawEvent> for Event {
    fn from(raw: RawEvent) -> Event {
        Event {
            start: raw.start,
            user_ptr: raw.user_ptr,
            hdr_data: raw.hdr_data,
            match_bits: raw.match_bits,
            rlength: raw.rlength,
            mlength: raw.mlength,
            remote_offset: raw.remote_offset,
            initiator: raw.initiator,
            uid: raw.uid,
            pt_index: raw.pt_index,
            kind: EventKind::from_bits(raw.kind),
            list: match raw.list {
                0 => List::Priority,
                _ => List::Overflow,
            },
            ni_fail: NiFail::from_bits(raw.ni_fail),
            operation: raw.operation,
            datatype: raw.datatype,
        }
    }
}

/// `ptl_md_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Md {
    /// First byte, or first I/O vector piece.
    pub start: *mut c_void,
    /// Length in bytes, or number of I/O vector pieces.
    pub length: u64,
    /// `PTL_MD_*`
    pub options: u32,
    /// The event queue for full events, or `PTL_EQ_NONE`.
    pub eq_handle: u32,
    /// The counting event that the options feed, or `PTL_CT_NONE`.
    pub ct_handle: u32,
}

/// `ptl_iovec_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Iovec {
    /// The first byte of the piece.
    pub iov_base: *mut c_void,
    /// Length of the piece, bytes.
    pub iov_len: u64,
}

/// `ptl_le_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Le {
    /// First byte, or first I/O vector piece.
    pub start: *mut c_void,
    /// Length in bytes, or number of I/O vector pieces.
    pub length: u64,
    /// The counting event that the options feed, or `PTL_CT_NONE`.
    pub ct_handle: u32,
    /// The user that may reach the entry, or `PTL_UID_ANY`.
    pub uid: u32,
    /// `PTL_LE_*`
    pub options: u32,
}

/// `ptl_me_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Me {
    /// First byte, or first I/O vector piece.
    pub start: *mut c_void,
    /// Length in bytes, or number of I/O vector pieces.
    pub length: u64,
    /// The counting event that the options feed, or `PTL_CT_NONE`.
    pub ct_handle: u32,
    /// The user that may reach the entry, or `PTL_UID_ANY`.
    pub uid: u32,
    /// `PTL_ME_*`
    pub options: u32,
    /// The initiator whose messages match, or a wildcard.
    pub match_id: ProcessId,
    /// Match bits that a message must have.
    pub match_bits: u64,
    /// Ones at the match bits that aren't compared.
    pub ignore_bits: u64,
    /// Free bytes below which a locally managed entry unlinks.
    pub min_free: u64,
}

const _: () = assert!(size_of::<Md>() == 32 && size_of::<Iovec>() == 16);
const _: () = assert!(size_of::<Le>() == 32 && size_of::<Me>() == 64);
const _: () = assert!(size_of::<RawEvent>() == size_of::<Event>());

unsafe extern "C" {
    /// `PtlInit`
    pub safe fn PtlInit() -> c_int;
    /// `PtlFini`
    pub safe fn PtlFini();
    /// `PtlAbort`
    pub safe fn PtlAbort();
    /// `PtlNIInit`
    pub fn PtlNIInit(
        iface: u32,
        options: u32,
        pid: u32,
        desired: *const Limits,
        actual: *mut Limits,
        ni_handle: *mut Handle,
    ) -> c_int;
    /// `PtlNIFini`
    pub safe fn PtlNIFini(ni_handle: Handle) -> c_int;
    /// `PtlNIStatus`
    pub fn PtlNIStatus(ni_handle: Handle, status_register: u32, status: *mut i32) -> c_int;
    /// `PtlNIHandle`
    pub fn PtlNIHandle(handle: Handle, ni_handle: *mut Handle) -> c_int;
    /// `PtlSetMap`
    pub fn PtlSetMap(ni_handle: Handle, map_size: u64, mapping: *const ProcessId) -> c_int;
    /// `PtlGetMap`
    pub fn PtlGetMap(
        ni_handle: Handle,
        map_size: u64,
        mapping: *mut ProcessId,
        actual_map_size: *mut u64,
    ) -> c_int;
    /// `PtlPTAlloc`
    pub fn PtlPTAlloc(
        ni_handle: Handle,
        options: u32,
        eq_handle: Handle,
        pt_index_req: u32,
        pt_index: *mut u32,
    ) -> c_int;
    /// `PtlPTFree`
    pub safe fn PtlPTFree(ni_handle: Handle, pt_index: u32) -> c_int;
    /// `PtlPTDisable`
    pub safe fn PtlPTDisable(ni_handle: Handle, pt_index: u32) -> c_int;
    /// `PtlPTEnable`
    pub safe fn PtlPTEnable(ni_handle: Handle, pt_index: u32) -> c_int;
    /// `PtlGetUid`
    pub fn PtlGetUid(ni_handle: Handle, uid: *mut u32) -> c_int;
    /// `PtlGetId`
    pub fn PtlGetId(ni_handle: Handle, id: *mut ProcessId) -> c_int;
    /// `PtlGetPhysId`
    pub fn PtlGetPhysId(ni_handle: Handle, id: *mut ProcessId) -> c_int;
    /// `PtlMDBind`
    pub fn PtlMDBind(ni_handle: Handle, md: *const Md, md_handle: *mut Handle) -> c_int;
    /// `PtlMDRelease`
    pub safe fn PtlMDRelease(md_handle: Handle) -> c_int;
    /// `PtlLEAppend`
    pub fn PtlLEAppend(
        ni_handle: Handle,
        pt_index: u32,
        le: *const Le,
        ptl_list: u8,
        user_ptr: *mut c_void,
        le_handle: *mut Handle,
    ) -> c_int;
    /// `PtlLEUnlink`
    pub safe fn PtlLEUnlink(le_handle: Handle) -> c_int;
    /// `PtlLESearch`
    pub fn PtlLESearch(
        ni_handle: Handle,
        pt_index: u32,
        le: *const Le,
        ptl_search_op: u8,
        user_ptr: *mut c_void,
    ) -> c_int;
    /// `PtlMEAppend`
    pub fn PtlMEAppend(
        ni_handle: Handle,
        pt_index: u32,
        me: *const Me,
        ptl_list: u8,
        user_ptr: *mut c_void,
        me_handle: *mut Handle,
    ) -> c_int;
    /// `PtlMEUnlink`
    pub safe fn PtlMEUnlink(me_handle: Handle) -> c_int;
    /// `PtlMESearch`
    pub fn PtlMESearch(
        ni_handle: Handle,
        pt_index: u32,
        me: *const Me,
        ptl_search_op: u8,
        user_ptr: *mut c_void,
    ) -> c_int;
    /// `PtlEQAlloc`
    pub fn PtlEQAlloc(ni_handle: Handle, count: u64, eq_handle: *mut Handle) -> c_int;
    /// `PtlEQFree`
    pub safe fn PtlEQFree(eq_handle: Handle) -> c_int;
    /// `PtlEQGet`
    pub fn PtlEQGet(eq_handle: Handle, event: *mut RawEvent) -> c_int;
    /// `PtlEQWait`
    pub fn PtlEQWait(eq_handle: Handle, event: *mut RawEvent) -> c_int;
    /// `PtlEQPoll`
    pub fn PtlEQPoll(
        eq_handles: *const Handle,
        size: u32,
        timeout: u32,
        event: *mut RawEvent,
        which: *mut u32,
    ) -> c_int;
    /// `PtlCTAlloc`
    pub fn PtlCTAlloc(ni_handle: Handle, ct_handle: *mut Handle) -> c_int;
    /// `PtlCTFree`
    pub safe fn PtlCTFree(ct_handle: Handle) -> c_int;
    /// `PtlCTCancelTriggered`
    pub safe fn PtlCTCancelTriggered(ct_handle: Handle) -> c_int;
    /// `PtlCTGet`
    pub fn PtlCTGet(ct_handle: Handle, event: *mut CountingEvent) -> c_int;
    /// `PtlCTWait`
    pub fn PtlCTWait(ct_handle: Handle, test: u64, event: *mut CountingEvent) -> c_int;
    /// `PtlCTPoll`
    pub fn PtlCTPoll(
        ct_handles: *const Handle,
        tests: *const u64,
        size: u32,
        timeout: u32,
        event: *mut CountingEvent,
        which: *mut u32,
    ) -> c_int;
    /// `PtlCTSet`
    pub safe fn PtlCTSet(ct_handle: Handle, new_ct: CountingEvent) -> c_int;
    /// `PtlCTInc`
    pub safe fn PtlCTInc(ct_handle: Handle, increment: CountingEvent) -> c_int;
    /// `PtlPut`
    pub safe fn PtlPut(
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
    ) -> c_int;
    /// `PtlGet`
    pub safe fn PtlGet(
        md_handle: Handle,
        local_offset: u64,
        length: u64,
        target_id: ProcessId,
        pt_index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
    ) -> c_int;
    /// `PtlAtomic`
    pub safe fn PtlAtomic(
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
    ) -> c_int;
    /// `PtlFetchAtomic`
    pub safe fn PtlFetchAtomic(
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
    ) -> c_int;
    /// `PtlSwap`
    pub fn PtlSwap(
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
    ) -> c_int;
    /// `PtlAtomicSync`
    pub safe fn PtlAtomicSync() -> c_int;
    /// `PtlTriggeredPut`
    pub safe fn PtlTriggeredPut(
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
    ) -> c_int;
    /// `PtlTriggeredGet`
    pub safe fn PtlTriggeredGet(
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
    ) -> c_int;
    /// `PtlTriggeredAtomic`
    pub safe fn PtlTriggeredAtomic(
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
    ) -> c_int;
    /// `PtlTriggeredFetchAtomic`
    pub safe fn PtlTriggeredFetchAtomic(
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
    ) -> c_int;
    /// `PtlTriggeredSwap`
    pub fn PtlTriggeredSwap(
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
    ) -> c_int;
    /// `PtlTriggeredCTInc`
    pub safe fn PtlTriggeredCTInc(
        ct_handle: Handle,
        increment: CountingEvent,
        trig_ct_handle: Handle,
        threshold: u64,
    ) -> c_int;
    /// `PtlTriggeredCTSet`
    pub safe fn PtlTriggeredCTSet(
        ct_handle: Handle,
        new_ct: CountingEvent,
        trig_ct_handle: Handle,
        threshold: u64,
    ) -> c_int;
    /// `PtlTriggeredMEAppend`
    pub fn PtlTriggeredMEAppend(
        ni_handle: Handle,
        pt_index: u32,
        me: *const Me,
        ptl_list: u8,
        user_ptr: *mut c_void,
        me_handle: *mut Handle,
        trig_ct_handle: Handle,
        threshold: u64,
    ) -> c_int;
    /// `PtlTriggeredMEUnlink`
    pub safe fn PtlTriggeredMEUnlink(
        me_handle: Handle,
        trig_ct_handle: Handle,
        threshold: u64,
    ) -> c_int;
    /// `PtlStartBundle`
    pub safe fn PtlStartBundle(ni_handle: Handle) -> c_int;
    /// `PtlEndBundle`
    pub safe fn PtlEndBundle(ni_handle: Handle) -> c_int;
    /// `PtlHandleIsEqual`
    pub safe fn PtlHandleIsEqual(handle1: Handle, handle2: Handle) -> c_int;
    /// `PtlToStr`
    pub safe fn PtlToStr(value: c_int, r#type: u32) -> *const c_char;
    /// `PtlEvToStr`
    pub fn PtlEvToStr(ni_options: u32, event: *const RawEvent, msg: *mut c_char) -> c_int;
}
