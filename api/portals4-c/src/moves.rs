//! Data movement.

use crate::convert::code;
use lintel_engine4::Transfer;
use lintel_runtime::process;
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
    let (operation, datatype) = parse(kinds, AtomicCall::FetchAtomic)?;
    let transfer = transfer(Verb::FetchAtomic, source, sink, length, to);
    Ok(Transfer {
        operation,
        datatype,
        ..transfer
    })
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
    let to = Target {
        process: target_id,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data,
    };
    let ack = parsed!(AckRequest::try_from(ack_req));
    start(|| put((md_handle, local_offset), length, ack, to))
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
    let to = Target {
        process: target_id,
        pt_index,
        match_bits,
        remote_offset,
        user_ptr,
        hdr_data: 0,
    };
    start(|| get((md_handle, local_offset), length, to))
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
    let transfer = parsed!(fetch_atomic(
        sink,
        source,
        length,
        to,
        (operation, datatype),
    ));
    start(|| transfer.clone())
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
