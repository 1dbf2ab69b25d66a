//! Data movement.
//!
//! What is like an earlier call is repeated: on memory of a peer ([`Process::repeat_short`]), or by a
//! message ([`Process::repeat_send`]). Each function tries the shortest way, in which it calls no
//! other one, and gives what takes more to a function with the same arguments, which the compiler
//! then leaves where they are.
//!
//! [`Process::repeat_short`]: lintel_runtime::Process::repeat_short
//! [`Process::repeat_send`]: lintel_runtime::Process::repeat_send

use crate::convert::code;
use lintel_engine4::Transfer;
use lintel_runtime::{Asked, process};
use lintel_types::{
    AckRequest, AtomicCall, Datatype, Error, Handle, Operation, ProcessId, Result, valid,
};
use lintel_wire::{OPERAND_BYTES, Verb};
use std::ffi::{c_int, c_void};

/// The arguments that all calls share.
#[derive(Clone, Copy)]
pub(crate) struct Target {
    pub(crate) process: ProcessId,
    pub(crate) pt_index: u32,
    pub(crate) match_bits: u64,
    pub(crate) remote_offset: u64,
    pub(crate) user_ptr: *mut c_void,
    pub(crate) hdr_data: u64,
}

/// A descriptor and an offset in it.
pub(crate) type Place = (Handle, u64);
/// `ptl_op_t` and `ptl_datatype_t`, as the caller gave them.
pub(crate) type Kinds = (u8, u8);

const NOWHERE: Place = (Handle::INVALID, 0);
const NO_ACK: u8 = AckRequest::None as u8;
/// Bytes of a word that is moved in the fewest instructions.
const WORD: u64 = size_of::<u64>() as u64;
const OK: c_int = 0;

#[inline(always)]
fn transfer(verb: Verb, source: Place, sink: Place, length: u64, to: Target) -> Transfer {
    Transfer {
        verb,
        source: source.0,
        source_offset: source.1,
        sink: sink.0,
        sink_offset: sink.1,
        length,
        ack: AckRequest::None,
        target: to.process,
        portal: to.pt_index,
        match_bits: to.match_bits,
        remote_offset: to.remote_offset,
        user_ptr: to.user_ptr as u64,
        hdr_data: to.hdr_data,
        operation: Operation::default(),
        datatype: Datatype::default(),
        operand: [0; OPERAND_BYTES],
    }
}

#[inline(always)]
pub(crate) fn put(source: Place, length: u64, ack: AckRequest, to: Target) -> Transfer {
    Transfer {
        ack,
        ..transfer(Verb::Put, source, NOWHERE, length, to)
    }
}

#[inline(always)]
pub(crate) fn get(sink: Place, length: u64, to: Target) -> Transfer {
    transfer(Verb::Get, NOWHERE, sink, length, to)
}

#[inline(always)]
pub(crate) fn atomic(
    source: Place,
    length: u64,
    ack_req: u8,
    to: Target,
    kinds: Kinds,
) -> Result<Transfer> {
    let (operation, datatype) = parse(kinds, AtomicCall::Atomic)?;
    let ack = AckRequest::try_from(ack_req)?;
    let transfer = transfer(Verb::Atomic, source, NOWHERE, length, to);
    Ok(Transfer {
        ack,
        operation,
        datatype,
        ..transfer
    })
}

#[inline(always)]
pub(crate) fn fetch_atomic(
    sink: Place,
    source: Place,
    length: u64,
    to: Target,
    kinds: Kinds,
) -> Result<Transfer> {
    let kinds = parse(kinds, AtomicCall::FetchAtomic)?;
    Ok(fetch_atomic_of(sink, source, length, to, kinds))
}

#[inline(always)]
fn fetch_atomic_of(
    sink: Place,
    source: Place,
    length: u64,
    to: Target,
    (operation, datatype): (Operation, Datatype),
) -> Transfer {
    Transfer {
        operation,
        datatype,
        ..transfer(Verb::FetchAtomic, source, sink, length, to)
    }
}

pub(crate) fn swap(
    sink: Place,
    source: Place,
    length: u64,
    to: Target,
    operand: *const c_void,
    kinds: Kinds,
) -> Result<Transfer> {
    let (operation, datatype) = parse(kinds, AtomicCall::Swap)?;
    let mut bytes = [0; OPERAND_BYTES];
    if operation.uses_compare() {
        if operand.is_null() {
            return Err(Error::ArgInvalid);
        }
        let size = datatype.size();
        // SAFETY: not null, and the header asks for one element of the datatype,
        // which is at most OPERAND_BYTES long.
        unsafe {
            operand
                .cast::<u8>()
                .copy_to_nonoverlapping(bytes.as_mut_ptr(), size)
        };
    }
    let transfer = transfer(Verb::Swap, source, sink, length, to);
    Ok(Transfer {
        operation,
        datatype,
        operand: bytes,
        ..transfer
    })
}

/// The operation and the datatype, if the call has that operation on that datatype.
fn parse((operation, datatype): Kinds, call: AtomicCall) -> Result<(Operation, Datatype)> {
    match (Operation::try_from(operation), Datatype::try_from(datatype)) {
        (Ok(operation), Ok(datatype)) if valid(operation, datatype, call) => {
            Ok((operation, datatype))
        }
        _ => Err(Error::ArgInvalid),
    }
}

/// What a function asks for, if it can be repeated. Its argument `ack_req` isn't checked.
#[inline(always)]
fn asked(verb: Verb, (source, sink): (Place, Place), length: u64, ack: u8, to: Target) -> Asked {
    Asked {
        verb,
        source: source.0,
        source_offset: source.1,
        sink: sink.0,
        sink_offset: sink.1,
        length,
        ack,
        target: to.process,
        portal: to.pt_index,
        match_bits: to.match_bits,
        remote_offset: to.remote_offset,
        kinds: (0, 0),
    }
}

/// Starts the transfer that a function gives.
#[inline(always)]
fn start(transfer: impl Fn() -> Transfer) -> c_int {
    code(process().start_by(transfer))
}

/// The value of a result, or the return of its error's code.
macro_rules! parsed {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => return code(Err(error)),
        }
    };
}

/// What `PtlPut` is given.
#[derive(Clone, Copy)]
struct PutArguments {
    source: Place,
    length: u64,
    ack_req: u8,
    to: Target,
}

impl PutArguments {
    #[inline(always)]
    fn asked(self) -> Asked {
        let ends = (self.source, NOWHERE);
        asked(Verb::Put, ends, self.length, self.ack_req, self.to)
    }

    #[inline(always)]
    fn transfer(self, ack: AckRequest) -> Transfer {
        put(self.source, self.length, ack, self.to)
    }

    /// Repeats an earlier put, if it can without calling a function.
    #[inline(always)]
    fn repeat_in_place(self) -> bool {
        match process().repeats() {
            true => process().repeat_word(&self.asked()),
            false => {
                process().repeats_sends()
                    && self.ack_req == NO_ACK
                    && process().repeat_silent_put(&self.transfer(AckRequest::None))
            }
        }
    }

    /// Repeats an earlier put, if it can.
    #[inline(always)]
    fn repeat(self) -> bool {
        if process().repeats() {
            return self.length != WORD && process().repeat_bytes(&self.asked());
        }
        match AckRequest::try_from(self.ack_req) {
            Ok(ack) => process().repeats_sends() && process().repeat_send(&self.transfer(ack)),
            Err(_) => false,
        }
    }
}

/// What `PtlGet` is given.
#[derive(Clone, Copy)]
struct GetArguments {
    sink: Place,
    length: u64,
    to: Target,
}

impl GetArguments {
    #[inline(always)]
    fn asked(self) -> Asked {
        let ends = (NOWHERE, self.sink);
        asked(Verb::Get, ends, self.length, NO_ACK, self.to)
    }

    #[inline(always)]
    fn transfer(self) -> Transfer {
        get(self.sink, self.length, self.to)
    }

    /// Repeats an earlier get, if it can.
    #[inline(always)]
    fn repeat(self) -> bool {
        match process().repeats() {
            true => self.length != WORD && process().repeat_bytes(&self.asked()),
            false => process().repeats_sends() && process().repeat_send(&self.transfer()),
        }
    }
}

/// `PtlPut`
#[unsafe(no_mangle)]
pub extern "C" fn PtlPut(
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
) -> c_int {
    let given = PutArguments {
        source: (md_handle, local_offset),
        length,
        ack_req,
        to: Target {
            process: target_id,
            pt_index,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
        },
    };
    if given.repeat_in_place() {
        return OK;
    }
    repeat_put(
        md_handle,
        local_offset,
        length,
        ack_req,
        target_id,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
    )
}

/// As `PtlPut`.
#[inline(never)]
extern "C" fn repeat_put(
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
) -> c_int {
    let given = PutArguments {
        source: (md_handle, local_offset),
        length,
        ack_req,
        to: Target {
            process: target_id,
            pt_index,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
        },
    };
    if given.repeat() {
        return OK;
    }
    start_put(
        md_handle,
        local_offset,
        length,
        ack_req,
        target_id,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
    )
}

/// As `PtlPut`, of a put that isn't repeated.
#[inline(never)]
extern "C" fn start_put(
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
) -> c_int {
    let given = PutArguments {
        source: (md_handle, local_offset),
        length,
        ack_req,
        to: Target {
            process: target_id,
            pt_index,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
        },
    };
    match AckRequest::try_from(ack_req) {
        Ok(ack) => start(|| given.transfer(ack)),
        Err(error) => code(Err(error)),
    }
}

/// `PtlGet`
#[unsafe(no_mangle)]
pub extern "C" fn PtlGet(
    md_handle: Handle,
    local_offset: u64,
    length: u64,
    target_id: ProcessId,
    pt_index: u32,
    match_bits: u64,
    remote_offset: u64,
    user_ptr: *mut c_void,
) -> c_int {
    let given = GetArguments {
        sink: (md_handle, local_offset),
        length,
        to: Target {
            process: target_id,
            pt_index,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data: 0,
        },
    };
    if process().repeats() && process().repeat_short(&given.asked()) {
        return OK;
    }
    repeat_get(
        md_handle,
        local_offset,
        length,
        target_id,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
    )
}

/// As `PtlGet`.
#[inline(never)]
extern "C" fn repeat_get(
    md_handle: Handle,
    local_offset: u64,
    length: u64,
    target_id: ProcessId,
    pt_index: u32,
    match_bits: u64,
    remote_offset: u64,
    user_ptr: *mut c_void,
) -> c_int {
    let given = GetArguments {
        sink: (md_handle, local_offset),
        length,
        to: Target {
            process: target_id,
            pt_index,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data: 0,
        },
    };
    if given.repeat() {
        return OK;
    }
    start_get(
        md_handle,
        local_offset,
        length,
        target_id,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
    )
}

/// As `PtlGet`, of a get that isn't repeated.
#[inline(never)]
extern "C" fn start_get(
    md_handle: Handle,
    local_offset: u64,
    length: u64,
    target_id: ProcessId,
    pt_index: u32,
    match_bits: u64,
    remote_offset: u64,
    user_ptr: *mut c_void,
) -> c_int {
    let given = GetArguments {
        sink: (md_handle, local_offset),
        length,
        to: Target {
            process: target_id,
            pt_index,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data: 0,
        },
    };
    start(|| given.transfer())
}

/// `PtlAtomic`
#[unsafe(no_mangle)]
pub extern "C" fn PtlAtomic(
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
) -> c_int {
    if process().repeats() {
        let to = Target {
            process: target_id,
            pt_index,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
        };
        if process().repeat_word(&Asked {
            kinds: (operation, datatype),
            ..asked(
                Verb::Atomic,
                ((md_handle, local_offset), NOWHERE),
                length,
                ack_req,
                to,
            )
        }) {
            return OK;
        }
    }
    start_atomic(
        md_handle,
        local_offset,
        length,
        ack_req,
        target_id,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
        operation,
        datatype,
    )
}

#[inline(never)]
extern "C" fn start_atomic(
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
) -> c_int {
    let to = Target {
        process: target_id,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
    };
    let transfer = parsed!(atomic(
        (md_handle, local_offset),
        length,
        ack_req,
        to,
        (operation, datatype),
    ));
    start(|| transfer.clone())
}

/// `PtlFetchAtomic`
#[unsafe(no_mangle)]
pub extern "C" fn PtlFetchAtomic(
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
) -> c_int {
    if process().repeats() {
        let to = Target {
            process: target_id,
            pt_index,
            match_bits,
            remote_offset,
            user_ptr,
            hdr_data,
        };
        if process().repeat_word(&Asked {
            kinds: (operation, datatype),
            ..asked(
                Verb::FetchAtomic,
                (
                    (put_md_handle, local_put_offset),
                    (get_md_handle, local_get_offset),
                ),
                length,
                NO_ACK,
                to,
            )
        }) {
            return OK;
        }
    }
    start_fetch_atomic(
        get_md_handle,
        local_get_offset,
        put_md_handle,
        local_put_offset,
        length,
        target_id,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
        operation,
        datatype,
    )
}

#[inline(never)]
extern "C" fn start_fetch_atomic(
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
) -> c_int {
    let to = Target {
        process: target_id,
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
    let kinds = parsed!(parse((operation, datatype), AtomicCall::FetchAtomic));
    start(|| fetch_atomic_of(sink, source, length, to, kinds))
}

/// `PtlSwap`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlSwap(
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
) -> c_int {
    let to = Target {
        process: target_id,
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
    let transfer = parsed!(swap(
        sink,
        source,
        length,
        to,
        operand,
        (operation, datatype),
    ));
    start(|| transfer.clone())
}

/// `PtlAtomicSync`
#[unsafe(no_mangle)]
pub extern "C" fn PtlAtomicSync() -> c_int {
    code(process().atomic_sync())
}
