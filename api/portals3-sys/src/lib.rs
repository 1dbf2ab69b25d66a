//! `portals3.h` in Rust: declarations of the functions, over the structures of
//! [`lintel_types::portals3`], whichever library defines them.
//!
//! ```text
//!   a program ──call──▶ PtlPut, … ◀──define── portals3-c, or another libportals3.so.0
//!            └── MemoryDescriptor, Event … of lintel-types ──┘
//! ```
//!
//! The header documents what a function does and what its pointers must be; this crate's test
//! compares both sides, and so does that of `portals3-c`. A function that takes plain values
//! only is declared safe: it refuses a handle that names nothing. Nothing is linked here: a
//! program links `portals3-c`, or `-lportals3`.
#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_ulong, c_void};

pub use lintel_types::portals3::{Event, Limits, MemoryDescriptor};
pub use lintel_types::{Handle, ProcessId};

/// `ptl_eq_handler_t`: called with each event of a queue.
pub type EventHandler = Option<unsafe extern "C" fn(*mut Event)>;

/// `PTL_IFACE_DEFAULT`
pub const IFACE_DEFAULT: u32 = 0xf0f0_f000;
/// `PTL_TIME_FOREVER`
pub const TIME_FOREVER: u32 = u32::MAX;
/// `PTL_ACK_REQ`
pub const ACK_REQ: c_int = 0;
/// `PTL_NO_ACK_REQ`
pub const NO_ACK_REQ: c_int = 1;

/// `ptl_md_iovec_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Iovec {
    /// The first byte of the piece.
    pub iov_base: *mut c_void,
    /// Length of the piece, bytes.
    pub iov_len: u64,
}

/// Status registers (`PTL_SR_*`), by the header's names.
pub mod registers {
    /// Messages dropped.
    pub const DROP_COUNT: u32 = 0;
    /// Bytes of the messages dropped.
    pub const DROP_LENGTH: u32 = 1;
    /// Requests that an entry has taken.
    pub const RECV_COUNT: u32 = 2;
    /// Their bytes.
    pub const RECV_LENGTH: u32 = 3;
    /// Operations started.
    pub const SEND_COUNT: u32 = 4;
    /// Their bytes.
    pub const SEND_LENGTH: u32 = 5;
    /// The most match entries at one time.
    pub const MES_MAX: u32 = 14;
    /// Match entries in use.
    pub const MES_CUR: u32 = 15;
    /// The most memory descriptors at one time.
    pub const MDS_MAX: u32 = 18;
    /// Memory descriptors in use.
    pub const MDS_CUR: u32 = 19;
    /// The most event queues at one time.
    pub const EQS_MAX: u32 = 22;
    /// Event queues in use.
    pub const EQS_CUR: u32 = 23;
    /// The bit of a register of one match list, whose index lies in bits 16 and up.
    pub const OF_LIST: u32 = 1 << 31;
}

// SAFETY: the header test compares each with the header.
unsafe extern "C" {
    /// `PtlInit`
    pub fn PtlInit(max_interfaces: *mut c_int) -> c_int;
    /// `PtlFini`
    pub safe fn PtlFini();
    /// `PtlNIInit`
    pub fn PtlNIInit(
        iface: u32,
        pid: u32,
        desired: *mut Limits,
        actual: *mut Limits,
        ni: *mut Handle,
    ) -> c_int;
    /// `PtlNIFini`
    pub safe fn PtlNIFini(ni: Handle) -> c_int;
    /// `PtlNIStatus`
    pub fn PtlNIStatus(ni: Handle, reg: u32, value: *mut u64) -> c_int;
    /// `PtlNIDist`
    pub fn PtlNIDist(ni: Handle, process: ProcessId, distance: *mut c_ulong) -> c_int;
    /// `PtlNIHandle`
    pub fn PtlNIHandle(any: Handle, ni: *mut Handle) -> c_int;
    /// `PtlGetUid`
    pub fn PtlGetUid(ni: Handle, uid: *mut u32) -> c_int;
    /// `PtlGetId`
    pub fn PtlGetId(ni: Handle, id: *mut ProcessId) -> c_int;
    /// `PtlGetJid`
    pub fn PtlGetJid(ni: Handle, jid: *mut u32) -> c_int;
    /// `PtlMEAttach`
    pub fn PtlMEAttach(
        ni: Handle,
        pt: u32,
        match_id: ProcessId,
        match_bits: u64,
        ignore_bits: u64,
        unlink: c_int,
        pos: c_int,
        me: *mut Handle,
    ) -> c_int;
    /// `PtlMEAttachAny`
    pub fn PtlMEAttachAny(
        ni: Handle,
        pt: *mut u32,
        match_id: ProcessId,
        match_bits: u64,
        ignore_bits: u64,
        unlink: c_int,
        me: *mut Handle,
    ) -> c_int;
    /// `PtlMEInsert`
    pub fn PtlMEInsert(
        base: Handle,
        match_id: ProcessId,
        match_bits: u64,
        ignore_bits: u64,
        unlink: c_int,
        pos: c_int,
        me: *mut Handle,
    ) -> c_int;
    /// `PtlMEUnlink`
    pub safe fn PtlMEUnlink(me: Handle) -> c_int;
    /// `PtlMDAttach`
    pub fn PtlMDAttach(
        me: Handle,
        md: MemoryDescriptor,
        unlink: c_int,
        handle: *mut Handle,
    ) -> c_int;
    /// `PtlMDBind`
    pub fn PtlMDBind(ni: Handle, md: MemoryDescriptor, unlink: c_int, handle: *mut Handle)
    -> c_int;
    /// `PtlMDUnlink`
    pub safe fn PtlMDUnlink(md: Handle) -> c_int;
    /// `PtlMDUpdate`
    pub fn PtlMDUpdate(
        md: Handle,
        old_md: *mut MemoryDescriptor,
        new_md: *mut MemoryDescriptor,
        testq: Handle,
    ) -> c_int;
    /// `PtlEQAlloc`
    pub fn PtlEQAlloc(ni: Handle, count: u64, handler: EventHandler, eq: *mut Handle) -> c_int;
    /// `PtlEQFree`
    pub safe fn PtlEQFree(eq: Handle) -> c_int;
    /// `PtlEQGet`
    pub fn PtlEQGet(eq: Handle, event: *mut Event) -> c_int;
    /// `PtlEQWait`
    pub fn PtlEQWait(eq: Handle, event: *mut Event) -> c_int;
    /// `PtlEQPoll`
    pub fn PtlEQPoll(
        eqs: *mut Handle,
        size: c_int,
        timeout: u32,
        event: *mut Event,
        which: *mut c_int,
    ) -> c_int;
    /// `PtlACEntry`
    pub safe fn PtlACEntry(
        ni: Handle,
        index: u32,
        match_id: ProcessId,
        uid: u32,
        jid: u32,
        pt: u32,
    ) -> c_int;
    /// `PtlPut`
    pub safe fn PtlPut(
        md: Handle,
        ack: c_int,
        target: ProcessId,
        pt: u32,
        ac: u32,
        match_bits: u64,
        remote_offset: u64,
        hdr_data: u64,
    ) -> c_int;
    /// `PtlPutRegion`
    pub safe fn PtlPutRegion(
        md: Handle,
        local_offset: u64,
        length: u64,
        ack: c_int,
        target: ProcessId,
        pt: u32,
        ac: u32,
        match_bits: u64,
        remote_offset: u64,
        hdr_data: u64,
    ) -> c_int;
    /// `PtlGet`
    pub safe fn PtlGet(
        md: Handle,
        target: ProcessId,
        pt: u32,
        ac: u32,
        match_bits: u64,
        remote_offset: u64,
    ) -> c_int;
    /// `PtlGetRegion`
    pub safe fn PtlGetRegion(
        md: Handle,
        local_offset: u64,
        length: u64,
        target: ProcessId,
        pt: u32,
        ac: u32,
        match_bits: u64,
        remote_offset: u64,
    ) -> c_int;
    /// `PtlGetPut`
    pub safe fn PtlGetPut(
        get_md: Handle,
        put_md: Handle,
        target: ProcessId,
        pt: u32,
        ac: u32,
        match_bits: u64,
        remote_offset: u64,
        hdr_data: u64,
    ) -> c_int;
    /// `PtlHandleIsEqual`
    pub safe fn PtlHandleIsEqual(a: Handle, b: Handle) -> c_int;
    /// `PtlMEMDPost`
    pub fn PtlMEMDPost(
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
    ) -> c_int;
    /// `PtlMEMDAttach`
    pub fn PtlMEMDAttach(
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
    ) -> c_int;
    /// `PtlMEMDInsert`
    pub fn PtlMEMDInsert(
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
    ) -> c_int;
    /// `PtlEQPeek`
    pub fn PtlEQPeek(eq: Handle, event: *mut Event) -> c_int;
    /// `PtlGetPutRegion`
    pub safe fn PtlGetPutRegion(
        get_md: Handle,
        get_offset: u64,
        put_md: Handle,
        put_offset: u64,
        length: u64,
        target: ProcessId,
        pt: u32,
        ac: u32,
        match_bits: u64,
        remote_offset: u64,
        hdr_data: u64,
    ) -> c_int;
    /// `PtlProgress`
    pub safe fn PtlProgress(any: Handle, timeout: u32) -> c_int;
    /// `PtlNIEqDump`
    pub safe fn PtlNIEqDump(ni: Handle) -> c_int;
    /// `PtlErrorStr`
    pub safe fn PtlErrorStr(code: u32) -> *const c_char;
    /// `PtlNIFailStr`
    pub safe fn PtlNIFailStr(ni: Handle, fail: u32) -> *const c_char;
    /// `PtlEventKindStr`
    pub safe fn PtlEventKindStr(kind: c_int) -> *const c_char;
    /// `PtlSetRank`
    pub safe fn PtlSetRank(ni: Handle, rank: u32, group_size: u32) -> c_int;
    /// `PtlSetNIDMap`
    pub fn PtlSetNIDMap(ni: Handle, map: *mut u32, group_size: u32) -> c_int;
    /// `PtlSetPIDMap`
    pub fn PtlSetPIDMap(ni: Handle, map: *mut u32, group_size: u32) -> c_int;
    /// `PtlSetJID`
    pub safe fn PtlSetJID(jid: u32) -> c_int;
    /// `PtlGetRank`
    pub fn PtlGetRank(ni: Handle, rank: *mut u32, group_size: *mut u32) -> c_int;
    /// `PtlGetRankId`
    pub fn PtlGetRankId(ni: Handle, rank: u32, id: *mut ProcessId) -> c_int;
    /// `PtlGetNIDMap`
    pub fn PtlGetNIDMap(ni: Handle, map: *mut u32, group_size: u32) -> c_int;
    /// `PtlGetPIDMap`
    pub fn PtlGetPIDMap(ni: Handle, map: *mut u32, group_size: u32) -> c_int;
    /// `PtlNIDebug`
    pub safe fn PtlNIDebug(ni: Handle, mask: u32) -> u32;
    /// `PtlTblDump`
    pub safe fn PtlTblDump(ni: Handle, pt_index: c_int) -> c_int;
    /// `PtlMEDump`
    pub safe fn PtlMEDump(me: Handle) -> c_int;

}
