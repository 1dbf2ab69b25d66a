//! The data movement calls, each at once and triggered, behind one set of arguments.

use crate::rig::World;
use lintel_types::{Handle, ProcessId};
use portals::*;
use std::ffi::c_void;
use std::ptr::null_mut;

pub const SUM: u8 = 2;
pub const SWAP: u8 = 10;
pub const CSWAP: u8 = 11;
pub const INT64: u8 = 7;

/// What any of them may take.
#[derive(Clone, Copy)]
pub struct Args {
    /// Where a reply goes.
    pub sink: Handle,
    pub sink_offset: u64,
    /// Where data comes from.
    pub source: Handle,
    pub source_offset: u64,
    pub length: u64,
    pub ack: u8,
    pub target: ProcessId,
    pub operand: *const c_void,
    pub operation: u8,
    pub datatype: u8,
    /// Of the triggered form.
    pub trigger: Handle,
}

/// A call, and which of its arguments it has.
pub struct Call {
    pub name: &'static str,
    pub run: fn(&Args) -> i32,
    pub sink: bool,
    pub source: bool,
    pub acknowledged: bool,
    pub atomic: bool,
    pub triggered: bool,
    pub operation: u8,
}

impl Args {
    /// Good for every call.
    pub fn good(world: &World, call: &Call) -> Args {
        Args {
            sink: world.matching.md,
            sink_offset: 0,
            source: world.matching.md,
            source_offset: 8,
            length: 8,
            ack: 0,
            target: world.me,
            operand: world.start(),
            operation: call.operation,
            datatype: INT64,
            trigger: world.matching.ct,
        }
    }
}

/// No entry of that process has these bits and this index: what isn't refused is dropped.
const BITS: u64 = 0xdead;
const PT: u32 = 60;

macro_rules! call {
    ($name:ident, $operation:expr, [$($flag:ident)*], $($argument:expr),*) => {
        Call {
            $($flag: true,)*
            ..Call {
                name: stringify!($name),
                // SAFETY: an operand is there, or null, which is refused.
                #[allow(unused_unsafe)]
                run: |a: &Args| unsafe { $name($($argument(a)),*) },
                sink: false,
                source: false,
                acknowledged: false,
                atomic: false,
                triggered: false,
                operation: $operation,
            }
        }
    };
}

pub fn all() -> Vec<Call> {
    vec![
        call!(PtlPut, 0, [source acknowledged],
            source, source_at, length, ack, target, pt, bits, offset, user, hdr),
        call!(
            PtlGet,
            0,
            [sink],
            sink,
            sink_at,
            length,
            target,
            pt,
            bits,
            offset,
            user
        ),
        call!(PtlAtomic, SUM, [source acknowledged atomic],
            source, source_at, length, ack, target, pt, bits, offset, user, hdr, op, datatype),
        call!(PtlFetchAtomic, SUM, [sink source atomic],
            sink, sink_at, source, source_at, length, target, pt, bits, offset, user, hdr, op,
            datatype),
        call!(PtlSwap, CSWAP, [sink source atomic],
            sink, sink_at, source, source_at, length, target, pt, bits, offset, user, hdr,
            operand, op, datatype),
        call!(PtlTriggeredPut, 0, [source acknowledged triggered],
            source, source_at, length, ack, target, pt, bits, offset, user, hdr, trigger, one),
        call!(PtlTriggeredGet, 0, [sink triggered],
            sink, sink_at, length, target, pt, bits, offset, user, trigger, one),
        call!(PtlTriggeredAtomic, SUM, [source acknowledged atomic triggered],
            source, source_at, length, ack, target, pt, bits, offset, user, hdr, op, datatype,
            trigger, one),
        call!(PtlTriggeredFetchAtomic, SUM, [sink source atomic triggered],
            sink, sink_at, source, source_at, length, target, pt, bits, offset, user, hdr, op,
            datatype, trigger, one),
        call!(PtlTriggeredSwap, CSWAP, [sink source atomic triggered],
            sink, sink_at, source, source_at, length, target, pt, bits, offset, user, hdr,
            operand, op, datatype, trigger, one),
    ]
}

fn sink(a: &Args) -> Handle {
    a.sink
}
fn sink_at(a: &Args) -> u64 {
    a.sink_offset
}
fn source(a: &Args) -> Handle {
    a.source
}
fn source_at(a: &Args) -> u64 {
    a.source_offset
}
fn length(a: &Args) -> u64 {
    a.length
}
fn ack(a: &Args) -> u8 {
    a.ack
}
fn target(a: &Args) -> ProcessId {
    a.target
}
fn operand(a: &Args) -> *const c_void {
    a.operand
}
fn op(a: &Args) -> u8 {
    a.operation
}
fn datatype(a: &Args) -> u8 {
    a.datatype
}
fn trigger(a: &Args) -> Handle {
    a.trigger
}
fn pt(_: &Args) -> u32 {
    PT
}
fn bits(_: &Args) -> u64 {
    BITS
}
fn offset(_: &Args) -> u64 {
    0
}
fn hdr(_: &Args) -> u64 {
    0
}
fn one(_: &Args) -> u64 {
    1
}
fn user(_: &Args) -> *mut c_void {
    null_mut()
}
