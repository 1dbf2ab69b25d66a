//! Data movements with everything that can be said of them; `ptl` has shorter forms.

use crate::ptl::{Code, Target};
use lintel_types::{CountingEvent, Handle};
use std::ffi::{c_int, c_void};

/// `PTL_SUM`
const SUM: u8 = 2;
/// `PTL_SWAP`
const SWAP: u8 = 10;
/// `PTL_CSWAP`
const CSWAP: u8 = 11;
/// `PTL_UINT64_T`
const UINT64: u8 = 8;

/// What goes, or comes, where.
#[derive(Clone, Copy, Debug)]
pub struct Move {
    /// The descriptor whose memory goes, or is filled.
    pub descriptor: Handle,
    /// Offset there.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// Portal table index.
    pub portal: u32,
    /// Process, entry and offset at the other end.
    pub target: Target,
    /// Comes back in each event.
    pub user: usize,
    /// `hdr_data`, `ack_req` of what has them.
    pub header: u64,
    /// Which acknowledgement is wanted.
    pub ack: u8,
}

/// Where a triggered operation waits.
#[derive(Clone, Copy, Debug)]
pub struct Trigger {
    /// The counter.
    pub counter: Handle,
    /// Its value.
    pub threshold: u64,
}

fn code(code: c_int) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

impl Move {
    fn user(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.user)
    }

    /// `PtlPut`
    pub fn put(&self) -> Result<(), Code> {
        let Move { target, .. } = self;
        code(portals::PtlPut(
            self.descriptor,
            self.offset,
            self.length,
            self.ack,
            target.process,
            self.portal,
            target.bits,
            target.offset,
            self.user(),
            self.header,
        ))
    }

    /// `PtlTriggeredPut`
    pub fn put_later(&self, trigger: Trigger) -> Result<(), Code> {
        let Move { target, .. } = self;
        code(portals::PtlTriggeredPut(
            self.descriptor,
            self.offset,
            self.length,
            self.ack,
            target.process,
            self.portal,
            target.bits,
            target.offset,
            self.user(),
            self.header,
            trigger.counter,
            trigger.threshold,
        ))
    }

    /// `PtlGet`
    pub fn get(&self) -> Result<(), Code> {
        let Move { target, .. } = self;
        code(portals::PtlGet(
            self.descriptor,
            self.offset,
            self.length,
            target.process,
            self.portal,
            target.bits,
            target.offset,
            self.user(),
        ))
    }

    /// `PtlTriggeredGet`
    pub fn get_later(&self, trigger: Trigger) -> Result<(), Code> {
        let Move { target, .. } = self;
        code(portals::PtlTriggeredGet(
            self.descriptor,
            self.offset,
            self.length,
            target.process,
            self.portal,
            target.bits,
            target.offset,
            self.user(),
            trigger.counter,
            trigger.threshold,
        ))
    }

    /// `PtlAtomic`: adds 64-bit numbers.
    pub fn add(&self) -> Result<(), Code> {
        let Move { target, .. } = self;
        code(portals::PtlAtomic(
            self.descriptor,
            self.offset,
            self.length,
            self.ack,
            target.process,
            self.portal,
            target.bits,
            target.offset,
            self.user(),
            self.header,
            SUM,
            UINT64,
        ))
    }

    /// `PtlFetchAtomic`: adds the 64-bit number at `from`, an offset of `source`, and
    /// brings what was there.
    pub fn fetch_add(&self, source: Handle, from: u64) -> Result<(), Code> {
        let Move { target, .. } = self;
        code(portals::PtlFetchAtomic(
            self.descriptor,
            self.offset,
            source,
            from,
            self.length,
            target.process,
            self.portal,
            target.bits,
            target.offset,
            self.user(),
            self.header,
            SUM,
            UINT64,
        ))
    }

    /// `PtlSwap` of a 64-bit number, where `expected` is given only if it is there.
    pub fn swap(&self, source: Handle, from: u64, expected: Option<u64>) -> Result<(), Code> {
        let Move { target, .. } = self;
        let operand: *const u64 = match &expected {
            Some(number) => number,
            None => std::ptr::null(),
        };
        // SAFETY: the operand, where there is one, is read during the call and as long
        // as the type says.
        code(unsafe {
            portals::PtlSwap(
                self.descriptor,
                self.offset,
                source,
                from,
                self.length,
                target.process,
                self.portal,
                target.bits,
                target.offset,
                self.user(),
                self.header,
                operand.cast(),
                if expected.is_some() { CSWAP } else { SWAP },
                UINT64,
            )
        })
    }
}

/// `PtlCTInc` by a success.
pub fn increment(counter: Handle) -> Result<(), Code> {
    code(portals::PtlCTInc(counter, ONE))
}

/// `PtlTriggeredCTInc` by a success.
pub fn increment_later(counter: Handle, trigger: Trigger) -> Result<(), Code> {
    let Trigger {
        counter: by,
        threshold,
    } = trigger;
    code(portals::PtlTriggeredCTInc(counter, ONE, by, threshold))
}

const ONE: CountingEvent = CountingEvent {
    success: 1,
    failure: 0,
};
