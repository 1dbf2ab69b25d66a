//! The part of `portals4.h` that the benchmarks call, as the C API has it
//! (Portals 4.3, integer handles). `portals4-c` provides the symbols.

#![allow(missing_docs)]

use core::ffi::{c_int, c_uint, c_void};

pub type Handle = u32;

pub const PTL_OK: c_int = 0;
pub const PTL_EQ_EMPTY: c_int = 4;
pub const PTL_FAIL: c_int = 5;
pub const PTL_IN_USE: c_int = 7;

/// Names of the return codes, by value.
pub const RETURN_CODES: [&str; 16] = [
    "PTL_OK",
    "PTL_ARG_INVALID",
    "PTL_CT_NONE_REACHED",
    "PTL_EQ_DROPPED",
    "PTL_EQ_EMPTY",
    "PTL_FAIL",
    "PTL_IGNORED",
    "PTL_IN_USE",
    "PTL_LIST_TOO_LONG",
    "PTL_NO_INIT",
    "PTL_NO_SPACE",
    "PTL_PID_IN_USE",
    "PTL_PT_FULL",
    "PTL_PT_EQ_NEEDED",
    "PTL_PT_IN_USE",
    "PTL_ABORTED",
];

pub const PTL_IFACE_DEFAULT: c_uint = 0xffff_ffff;
pub const PTL_PID_ANY: u32 = 0xffff;
pub const PTL_NID_ANY: u32 = 0xffff;
pub const PTL_UID_ANY: u32 = 0xffff_ffff;
pub const PTL_PT_ANY: u32 = 0xffff_ffff;
pub const PTL_EQ_NONE: Handle = 0x3fff_ffff;
pub const PTL_CT_NONE: Handle = 0x5fff_ffff;

pub const PTL_NI_MATCHING: c_uint = 1 << 0;
pub const PTL_NI_PHYSICAL: c_uint = 1 << 3;
pub const PTL_COHERENT_ATOMICS: c_uint = 1 << 2;
pub const PTL_NI_OK: u8 = 0;

pub const PTL_MD_EVENT_CT_SEND: c_uint = 0x2;
pub const PTL_MD_EVENT_CT_REPLY: c_uint = 0x4;
pub const PTL_MD_EVENT_CT_ACK: c_uint = 0x8;
pub const PTL_MD_EVENT_SEND_DISABLE: c_uint = 0x80;

pub const PTL_ME_OP_PUT: c_uint = 0x2;
pub const PTL_ME_OP_GET: c_uint = 0x4;
pub const PTL_ME_EVENT_LINK_DISABLE: c_uint = 0x40;
pub const PTL_ME_EVENT_COMM_DISABLE: c_uint = 0x80;
pub const PTL_ME_EVENT_UNLINK_DISABLE: c_uint = 0x800;
pub const PTL_ME_EVENT_CT_COMM: c_uint = 0x1000;

pub const PTL_PRIORITY_LIST: u8 = 0;

pub const PTL_SUM: u8 = 2;
pub const PTL_BXOR: u8 = 9;
pub const PTL_SWAP: u8 = 10;
pub const PTL_CSWAP: u8 = 11;
pub const PTL_UINT64_T: u8 = 8;

/// `ptl_process_t` seen as physical: the union's larger arm.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Process {
    pub nid: u32,
    pub pid: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryDescriptor {
    pub start: *mut c_void,
    pub length: u64,
    pub options: c_uint,
    pub eq_handle: Handle,
    pub ct_handle: Handle,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct MatchEntry {
    pub start: *mut c_void,
    pub length: u64,
    pub ct_handle: Handle,
    pub uid: u32,
    pub options: c_uint,
    pub match_id: Process,
    pub match_bits: u64,
    pub ignore_bits: u64,
    pub min_free: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub success: u64,
    pub failure: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Event {
    pub start: *mut c_void,
    pub user_ptr: *mut c_void,
    pub hdr_data: u64,
    pub match_bits: u64,
    pub rlength: u64,
    pub mlength: u64,
    pub remote_offset: u64,
    pub initiator: Process,
    pub uid: u32,
    pub pt_index: u32,
    pub kind: u8,
    pub ptl_list: u8,
    pub ni_fail_type: u8,
    pub atomic_operation: u8,
    pub atomic_type: u8,
}

/// `ptl_ni_limits_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Limits {
    pub max_entries: c_int,
    pub max_unexpected_headers: c_int,
    pub max_mds: c_int,
    pub max_cts: c_int,
    pub max_eqs: c_int,
    pub max_pt_index: c_int,
    pub max_iovecs: c_int,
    pub max_list_size: c_int,
    pub max_triggered_ops: c_int,
    pub max_msg_size: u64,
    pub max_atomic_size: u64,
    pub max_fetch_atomic_size: u64,
    pub max_waw_ordered_size: u64,
    pub max_war_ordered_size: u64,
    pub max_volatile_size: u64,
    pub features: c_uint,
}

const _: () = {
    assert!(size_of::<Process>() == 8);
    assert!(size_of::<MemoryDescriptor>() == 32);
    assert!(size_of::<MatchEntry>() == 64);
    assert!(size_of::<Count>() == 16);
    assert!(size_of::<Event>() == 80);
    assert!(size_of::<Limits>() == 96);
};

unsafe extern "C" {
    pub fn PtlInit() -> c_int;
    pub fn PtlFini();
    pub fn PtlNIInit(
        iface: c_uint,
        options: c_uint,
        pid: u32,
        desired: *const Limits,
        actual: *mut Limits,
        ni_handle: *mut Handle,
    ) -> c_int;
    pub fn PtlNIFini(ni_handle: Handle) -> c_int;
    pub fn PtlGetPhysId(ni_handle: Handle, id: *mut Process) -> c_int;
    pub fn PtlGetUid(ni_handle: Handle, uid: *mut u32) -> c_int;
    pub fn PtlPTAlloc(
        ni_handle: Handle,
        options: c_uint,
        eq_handle: Handle,
        pt_index_req: u32,
        pt_index: *mut u32,
    ) -> c_int;
    pub fn PtlPTFree(ni_handle: Handle, pt_index: u32) -> c_int;
    pub fn PtlMDBind(
        ni_handle: Handle,
        md: *const MemoryDescriptor,
        md_handle: *mut Handle,
    ) -> c_int;
    pub fn PtlMDRelease(md_handle: Handle) -> c_int;
    pub fn PtlMEAppend(
        ni_handle: Handle,
        pt_index: u32,
        me: *const MatchEntry,
        ptl_list: u8,
        user_ptr: *mut c_void,
        me_handle: *mut Handle,
    ) -> c_int;
    pub fn PtlMEUnlink(me_handle: Handle) -> c_int;
    pub fn PtlEQAlloc(ni_handle: Handle, count: u64, eq_handle: *mut Handle) -> c_int;
    pub fn PtlEQFree(eq_handle: Handle) -> c_int;
    pub fn PtlEQGet(eq_handle: Handle, event: *mut Event) -> c_int;
    pub fn PtlEQWait(eq_handle: Handle, event: *mut Event) -> c_int;
    pub fn PtlCTAlloc(ni_handle: Handle, ct_handle: *mut Handle) -> c_int;
    pub fn PtlCTFree(ct_handle: Handle) -> c_int;
    pub fn PtlCTGet(ct_handle: Handle, event: *mut Count) -> c_int;
    pub fn PtlCTWait(ct_handle: Handle, test: u64, event: *mut Count) -> c_int;
    pub fn PtlPut(
        md_handle: Handle,
        local_offset: u64,
        length: u64,
        ack_req: u8,
        target_id: Process,
        pt_index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
        hdr_data: u64,
    ) -> c_int;
    pub fn PtlGet(
        md_handle: Handle,
        local_offset: u64,
        length: u64,
        target_id: Process,
        pt_index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
    ) -> c_int;
    pub fn PtlAtomic(
        md_handle: Handle,
        local_offset: u64,
        length: u64,
        ack_req: u8,
        target_id: Process,
        pt_index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
        hdr_data: u64,
        operation: u8,
        datatype: u8,
    ) -> c_int;
    pub fn PtlFetchAtomic(
        get_md_handle: Handle,
        local_get_offset: u64,
        put_md_handle: Handle,
        local_put_offset: u64,
        length: u64,
        target_id: Process,
        pt_index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
        hdr_data: u64,
        operation: u8,
        datatype: u8,
    ) -> c_int;
    pub fn PtlSwap(
        get_md_handle: Handle,
        local_get_offset: u64,
        put_md_handle: Handle,
        local_put_offset: u64,
        length: u64,
        target_id: Process,
        pt_index: u32,
        match_bits: u64,
        remote_offset: u64,
        user_ptr: *mut c_void,
        hdr_data: u64,
        operand: *const c_void,
        operation: u8,
        datatype: u8,
    ) -> c_int;
}
