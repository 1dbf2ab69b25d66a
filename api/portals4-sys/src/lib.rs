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

    /// `PTL_OK`: success.
    pub const OK: c_int = 0;
    /// `PTL_CT_NONE_REACHED`: no counter reached its test within the timeout.
    pub const CT_NONE_REACHED: c_int = Error::CtNoneReached as c_int;
    /// `PTL_EQ_DROPPED`: an event was taken, and earlier ones were lost.
    pub const EQ_DROPPED: c_int = Error::EqDropped as c_int;
    /// `PTL_EQ_EMPTY`: no event was there.
    pub const EQ_EMPTY: c_int = Error::EqEmpty as c_int;
    /// `PTL_FAIL`: the system or the environment failed.
    pub const FAIL: c_int = Error::Fail as c_int;
    /// `PTL_IN_USE`: messages still use the object.
    pub const IN_USE: c_int = Error::InUse as c_int;
    /// `PTL_PT_IN_USE`: the portal table index is taken.
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
    /// Bytes that the initiator asked for.
    pub rlength: u64,
    /// Bytes that were moved.
    pub mlength: u64,
    /// Offset in the entry, bytes.
    pub remote_offset: u64,
    /// The process that started the operation.
    pub initiator: ProcessId,
    /// The user id of the initiator.
    pub uid: u32,
    /// The portal table index of the message.
    pub pt_index: u32,
    /// The number of a `PTL_EVENT_*`.
    pub kind: u8,
    /// The list that matched: `PTL_PRIORITY_LIST` or `PTL_OVERFLOW_LIST`.
    pub list: u8,
    /// The number of a `PTL_NI_*`; 0 is success.
    pub ni_fail: u8,
    /// The number of an atomic's `ptl_op_t`.
    pub operation: u8,
    /// The number of an atomic's `ptl_datatype_t`.
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

/// `ptl_md_t`: memory that operations start from, and what reports them.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Md {
    /// First byte, or first I/O vector piece.
    pub start: *mut c_void,
    /// Length in bytes, or number of I/O vector pieces.
    pub length: u64,
    /// Bits of `PTL_MD_*` and `PTL_IOVEC`.
    pub options: u32,
    /// The event queue for full events, or `PTL_EQ_NONE`.
    pub eq_handle: u32,
    /// The counting event that the options feed, or `PTL_CT_NONE`.
    pub ct_handle: u32,
}

/// `ptl_iovec_t`: one piece of an I/O vector.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Iovec {
    /// The first byte of the piece.
    pub iov_base: *mut c_void,
    /// Length of the piece, bytes.
    pub iov_len: u64,
}

/// `ptl_le_t`: memory that messages reach without matching.
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
    /// Bits of `PTL_LE_*` and `PTL_IOVEC`.
    pub options: u32,
}

/// `ptl_me_t`: memory that messages reach if they match.
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
    /// Bits of `PTL_ME_*` and `PTL_IOVEC`.
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
    /// Starts the library, or counts one user more.
    pub safe fn PtlInit() -> c_int;
    /// Ends the library, once as often as it was started.
    pub safe fn PtlFini();
    /// Ends all waiting calls of the process with `PTL_ABORTED`.
    pub safe fn PtlAbort();
    /// Opens an interface, or counts one user more of an open one.
    pub fn PtlNIInit(
        iface: u32,
        options: u32,
        pid: u32,
        desired: *const Limits,
        actual: *mut Limits,
        ni_handle: *mut Handle,
    ) -> c_int;
    /// Closes an interface, once as often as it was opened.
    pub safe fn PtlNIFini(ni_handle: Handle) -> c_int;
    /// Reads a status register of an interface.
    pub fn PtlNIStatus(ni_handle: Handle, status_register: u32, status: *mut i32) -> c_int;
    /// Returns the interface that an object belongs to.
    pub fn PtlNIHandle(handle: Handle, ni_handle: *mut Handle) -> c_int;
    /// Sets the processes by rank of a logical interface, once.
    pub fn PtlSetMap(ni_handle: Handle, map_size: u64, mapping: *const ProcessId) -> c_int;
    /// Reads the processes by rank of a logical interface.
    pub fn PtlGetMap(
        ni_handle: Handle,
        map_size: u64,
        mapping: *mut ProcessId,
        actual_map_size: *mut u64,
    ) -> c_int;
    /// Allocates an entry of the portal table.
    pub fn PtlPTAlloc(
        ni_handle: Handle,
        options: u32,
        eq_handle: Handle,
        pt_index_req: u32,
        pt_index: *mut u32,
    ) -> c_int;
    /// Frees an entry of the portal table whose lists are empty.
    pub safe fn PtlPTFree(ni_handle: Handle, pt_index: u32) -> c_int;
    /// Has a portal table entry refuse messages from now on.
    pub safe fn PtlPTDisable(ni_handle: Handle, pt_index: u32) -> c_int;
    /// Has a disabled portal table entry accept messages again.
    pub safe fn PtlPTEnable(ni_handle: Handle, pt_index: u32) -> c_int;
    /// Returns the user that the process belongs to.
    pub fn PtlGetUid(ni_handle: Handle, uid: *mut u32) -> c_int;
    /// Returns the process as the interface addresses it.
    pub fn PtlGetId(ni_handle: Handle, id: *mut ProcessId) -> c_int;
    /// Returns the process by node and process number.
    pub fn PtlGetPhysId(ni_handle: Handle, id: *mut ProcessId) -> c_int;
    /// Describes memory that operations start from.
    pub fn PtlMDBind(ni_handle: Handle, md: *const Md, md_handle: *mut Handle) -> c_int;
    /// Releases a memory descriptor that no operation uses.
    pub safe fn PtlMDRelease(md_handle: Handle) -> c_int;
    /// Appends an entry without matching to a list.
    pub fn PtlLEAppend(
        ni_handle: Handle,
        pt_index: u32,
        le: *const Le,
        ptl_list: u8,
        user_ptr: *mut c_void,
        le_handle: *mut Handle,
    ) -> c_int;
    /// Unlinks an entry without matching that no message uses.
    pub safe fn PtlLEUnlink(le_handle: Handle) -> c_int;
    /// Searches the unexpected headers without matching.
    pub fn PtlLESearch(
        ni_handle: Handle,
        pt_index: u32,
        le: *const Le,
        ptl_search_op: u8,
        user_ptr: *mut c_void,
    ) -> c_int;
    /// Appends a match list entry to a list.
    pub fn PtlMEAppend(
        ni_handle: Handle,
        pt_index: u32,
        me: *const Me,
        ptl_list: u8,
        user_ptr: *mut c_void,
        me_handle: *mut Handle,
    ) -> c_int;
    /// Unlinks a match list entry that no message uses.
    pub safe fn PtlMEUnlink(me_handle: Handle) -> c_int;
    /// Searches the unexpected headers for one that matches.
    pub fn PtlMESearch(
        ni_handle: Handle,
        pt_index: u32,
        me: *const Me,
        ptl_search_op: u8,
        user_ptr: *mut c_void,
    ) -> c_int;
    /// Allocates a queue of at least `count` events.
    pub fn PtlEQAlloc(ni_handle: Handle, count: u64, eq_handle: *mut Handle) -> c_int;
    /// Frees an event queue; events in it are lost.
    pub safe fn PtlEQFree(eq_handle: Handle) -> c_int;
    /// Takes an event, and doesn't wait.
    pub fn PtlEQGet(eq_handle: Handle, event: *mut RawEvent) -> c_int;
    /// Takes an event, and waits for one.
    pub fn PtlEQWait(eq_handle: Handle, event: *mut RawEvent) -> c_int;
    /// Takes an event of one of several queues within a timeout in milliseconds.
    pub fn PtlEQPoll(
        eq_handles: *const Handle,
        size: u32,
        timeout: u32,
        event: *mut RawEvent,
        which: *mut u32,
    ) -> c_int;
    /// Allocates a counting event of zero.
    pub fn PtlCTAlloc(ni_handle: Handle, ct_handle: *mut Handle) -> c_int;
    /// Frees a counting event, and cancels what waits on it.
    pub safe fn PtlCTFree(ct_handle: Handle) -> c_int;
    /// Cancels the triggered operations that wait on a counting event.
    pub safe fn PtlCTCancelTriggered(ct_handle: Handle) -> c_int;
    /// Reads a counting event, and doesn't wait.
    pub fn PtlCTGet(ct_handle: Handle, event: *mut CountingEvent) -> c_int;
    /// Waits until a counting event reaches a value or counts a failure.
    pub fn PtlCTWait(ct_handle: Handle, test: u64, event: *mut CountingEvent) -> c_int;
    /// Waits for one of several counting events within a timeout in milliseconds.
    pub fn PtlCTPoll(
        ct_handles: *const Handle,
        tests: *const u64,
        size: u32,
        timeout: u32,
        event: *mut CountingEvent,
        which: *mut u32,
    ) -> c_int;
    /// Sets a counting event, which may fire triggered operations.
    pub safe fn PtlCTSet(ct_handle: Handle, new_ct: CountingEvent) -> c_int;
    /// Adds to successes or failures, which may fire triggered operations.
    pub safe fn PtlCTInc(ct_handle: Handle, increment: CountingEvent) -> c_int;
    /// Sends bytes of a descriptor to a process.
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
    /// Fetches bytes of a process into a descriptor.
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
    /// Combines bytes of a descriptor with those of a process.
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
    /// As `PtlAtomic`, and fetches the earlier value.
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
    /// Replaces a value of a process, if it compares, and fetches the earlier one.
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
    /// Orders atomics of the library and those of the processor.
    pub safe fn PtlAtomicSync() -> c_int;
    /// `PtlPut` once a counting event reaches a threshold.
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
    /// `PtlGet` once a counting event reaches a threshold.
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
    /// `PtlAtomic` once a counting event reaches a threshold.
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
    /// `PtlFetchAtomic` once a counting event reaches a threshold.
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
    /// `PtlSwap` once a counting event reaches a threshold.
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
    /// `PtlCTInc` once another counting event reaches a threshold.
    pub safe fn PtlTriggeredCTInc(
        ct_handle: Handle,
        increment: CountingEvent,
        trig_ct_handle: Handle,
        threshold: u64,
    ) -> c_int;
    /// `PtlCTSet` once another counting event reaches a threshold.
    pub safe fn PtlTriggeredCTSet(
        ct_handle: Handle,
        new_ct: CountingEvent,
        trig_ct_handle: Handle,
        threshold: u64,
    ) -> c_int;
    /// `PtlMEAppend` once a counting event reaches a threshold.
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
    /// `PtlMEUnlink` once a counting event reaches a threshold.
    pub safe fn PtlTriggeredMEUnlink(
        me_handle: Handle,
        trig_ct_handle: Handle,
        threshold: u64,
    ) -> c_int;
    /// Announces operations that may be sent together.
    pub safe fn PtlStartBundle(ni_handle: Handle) -> c_int;
    /// Ends what `PtlStartBundle` began.
    pub safe fn PtlEndBundle(ni_handle: Handle) -> c_int;
    /// Compares two handles; `PTL_OK` if they are equal.
    pub safe fn PtlHandleIsEqual(handle1: Handle, handle2: Handle) -> c_int;
    /// Returns the name of a constant of kind `type`.
    pub safe fn PtlToStr(value: c_int, r#type: u32) -> *const c_char;
    /// Writes an event as text into `msg`.
    pub fn PtlEvToStr(ni_options: u32, event: *const RawEvent, msg: *mut c_char) -> c_int;
    /// Allocates memory that peers can map, and writes its first address.
    pub fn PtlMemAlloc(length: u64, start: *mut *mut c_void) -> c_int;
    /// Frees what `PtlMemAlloc` has allocated.
    pub fn PtlMemFree(start: *mut c_void) -> c_int;
}
