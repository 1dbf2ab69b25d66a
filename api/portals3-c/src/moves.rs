//! Data movement.

use crate::convert::code;
use lintel_engine3::Transfer;
use lintel_runtime::process3;
use lintel_types::portals3::{Error, Result};
use lintel_types::{Handle, ProcessId};
use lintel_wire::portals3::Verb;
use portals3_sys::{ACK_REQ, NO_ACK_REQ};
use std::ffi::c_int;

/// A transfer between whole descriptors, without acknowledgement.
#[inline(always)]
fn transfer(verb: Verb, target: ProcessId, (portal, access): (u32, u32)) -> Transfer {
    Transfer {
        verb,
        source: Handle::INVALID,
        source_offset: 0,
        sink: Handle::INVALID,
        sink_offset: 0,
        length: None,
        ack: false,
        target,
        portal,
        access,
        match_bits: 0,
        remote_offset: 0,
        hdr_data: 0,
    }
}

fn acknowledged(ack: c_int) -> Result<bool> {
    match ack {
        ACK_REQ => Ok(true),
        NO_ACK_REQ => Ok(false),
        _ => Err(Error::Fail),
    }
}

/// `PtlPut`
#[unsafe(no_mangle)]
pub extern "C" fn PtlPut(
    md: Handle,
    ack: c_int,
    target: ProcessId,
    pt: u32,
    ac: u32,
    match_bits: u64,
    remote_offset: u64,
    hdr_data: u64,
) -> c_int {
    code(acknowledged(ack).and_then(|ack| {
        process3().start_by(|| Transfer {
            source: md,
            ack,
            match_bits,
            remote_offset,
            hdr_data,
            ..transfer(Verb::Put, target, (pt, ac))
        })
    }))
}

/// `PtlPutRegion`
#[unsafe(no_mangle)]
pub extern "C" fn PtlPutRegion(
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
) -> c_int {
    code(acknowledged(ack).and_then(|ack| {
        process3().start(&Transfer {
            source: md,
            source_offset: local_offset,
            length: Some(length),
            ack,
            match_bits,
            remote_offset,
            hdr_data,
            ..transfer(Verb::Put, target, (pt, ac))
        })
    }))
}

/// `PtlGet`
#[unsafe(no_mangle)]
pub extern "C" fn PtlGet(
    md: Handle,
    target: ProcessId,
    pt: u32,
    ac: u32,
    match_bits: u64,
    remote_offset: u64,
) -> c_int {
    code(process3().start(&Transfer {
        sink: md,
        match_bits,
        remote_offset,
        ..transfer(Verb::Get, target, (pt, ac))
    }))
}

/// `PtlGetRegion`
#[unsafe(no_mangle)]
pub extern "C" fn PtlGetRegion(
    md: Handle,
    local_offset: u64,
    length: u64,
    target: ProcessId,
    pt: u32,
    ac: u32,
    match_bits: u64,
    remote_offset: u64,
) -> c_int {
    code(process3().start(&Transfer {
        sink: md,
        sink_offset: local_offset,
        length: Some(length),
        match_bits,
        remote_offset,
        ..transfer(Verb::Get, target, (pt, ac))
    }))
}

/// `PtlGetPut`
#[unsafe(no_mangle)]
pub extern "C" fn PtlGetPut(
    get_md: Handle,
    put_md: Handle,
    target: ProcessId,
    pt: u32,
    ac: u32,
    match_bits: u64,
    remote_offset: u64,
    hdr_data: u64,
) -> c_int {
    code(process3().start(&Transfer {
        source: put_md,
        sink: get_md,
        match_bits,
        remote_offset,
        hdr_data,
        ..transfer(Verb::GetPut, target, (pt, ac))
    }))
}

/// `PtlGetPutRegion`
#[unsafe(no_mangle)]
pub extern "C" fn PtlGetPutRegion(
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
) -> c_int {
    code(process3().start(&Transfer {
        source: put_md,
        source_offset: put_offset,
        sink: get_md,
        sink_offset: get_offset,
        length: Some(length),
        match_bits,
        remote_offset,
        hdr_data,
        ..transfer(Verb::GetPut, target, (pt, ac))
    }))
}
