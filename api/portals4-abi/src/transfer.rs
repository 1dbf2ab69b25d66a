//! Data movement: what a descriptor sends and fetches, now or when a counter says so.

use crate::error::{Result, check};
use crate::events::Counter;
use crate::lists::Descriptor;
use crate::memory::UserMemory;
use lintel_types::{AckRequest, Handle, ProcessId};
use lintel_types::{Datatype, Operation};
use portals4_sys as sys;
use std::ffi::c_void;
use std::ptr;

/// What an operation moves, and between which places.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Transfer {
    /// Offset in the descriptor, bytes.
    pub local_offset: u64,
    /// Bytes to move; 0 is allowed.
    pub length: u64,
    /// The process at the other end.
    pub target: ProcessId,
    /// Its portal table index.
    pub portal: u32,
    /// Bits that its entries are compared with.
    pub match_bits: u64,
    /// Offset in its entry, bytes.
    pub remote_offset: u64,
    /// Comes back in each event of the initiator.
    pub user_ptr: usize,
    /// Goes along, to the event of the target; a get has none.
    pub hdr_data: u64,
}

/// When a triggered operation starts: once the counter has counted so much.
#[derive(Clone, Copy, Debug)]
pub struct Trigger<'a> {
    /// The counter to compare.
    pub counter: &'a Counter,
    /// Successes and failures together, in operations or bytes.
    pub threshold: u64,
}

/// Where an operation that fetches puts the old value.
#[derive(Debug)]
pub struct Sink<'a, M: UserMemory> {
    /// The descriptor whose memory is written.
    pub descriptor: &'a Descriptor<M>,
    /// Bytes from the beginning of that descriptor.
    pub offset: u64,
}

impl Trigger<'_> {
    pub(crate) fn parts(self) -> (Handle, u64) {
        (self.counter.handle(), self.threshold)
    }
}

impl Transfer {
    #[inline(always)]
    fn user(&self) -> *mut c_void {
        ptr::without_provenance_mut(self.user_ptr)
    }
}

impl<M: UserMemory> Descriptor<M> {
    /// `PtlPut`
    ///
    /// # Errors
    /// The code of the call.
    #[inline]
    pub fn put(&self, t: &Transfer, ack: AckRequest) -> Result<()> {
        let code = sys::PtlPut(
            self.handle(),
            t.local_offset,
            t.length,
            ack as u8,
            t.target,
            t.portal,
            t.match_bits,
            t.remote_offset,
            t.user(),
            t.hdr_data,
        );
        check("PtlPut", code)
    }

    /// `PtlTriggeredPut`
    ///
    /// # Errors
    /// The code of the call.
    pub fn triggered_put(&self, t: &Transfer, ack: AckRequest, when: Trigger<'_>) -> Result<()> {
        let (counter, threshold) = when.parts();
        let code = sys::PtlTriggeredPut(
            self.handle(),
            t.local_offset,
            t.length,
            ack as u8,
            t.target,
            t.portal,
            t.match_bits,
            t.remote_offset,
            t.user(),
            t.hdr_data,
            counter,
            threshold,
        );
        check("PtlTriggeredPut", code)
    }

    /// `PtlGet`
    ///
    /// # Errors
    /// The code of the call.
    #[inline]
    pub fn get(&self, t: &Transfer) -> Result<()> {
        let code = sys::PtlGet(
            self.handle(),
            t.local_offset,
            t.length,
            t.target,
            t.portal,
            t.match_bits,
            t.remote_offset,
            t.user(),
        );
        check("PtlGet", code)
    }

    /// `PtlTriggeredGet`
    ///
    /// # Errors
    /// The code of the call.
    pub fn triggered_get(&self, t: &Transfer, when: Trigger<'_>) -> Result<()> {
        let (counter, threshold) = when.parts();
        let code = sys::PtlTriggeredGet(
            self.handle(),
            t.local_offset,
            t.length,
            t.target,
            t.portal,
            t.match_bits,
            t.remote_offset,
            t.user(),
            counter,
            threshold,
        );
        check("PtlTriggeredGet", code)
    }

    /// `PtlAtomic`
    ///
    /// # Errors
    /// The code of the call.
    #[inline]
    pub fn atomic(
        &self,
        t: &Transfer,
        (operation, datatype): (Operation, Datatype),
        ack: AckRequest,
    ) -> Result<()> {
        let code = sys::PtlAtomic(
            self.handle(),
            t.local_offset,
            t.length,
            ack as u8,
            t.target,
            t.portal,
            t.match_bits,
            t.remote_offset,
            t.user(),
            t.hdr_data,
            operation as u8,
            datatype as u8,
        );
        check("PtlAtomic", code)
    }

    /// `PtlTriggeredAtomic`
    ///
    /// # Errors
    /// The code of the call.
    pub fn triggered_atomic(
        &self,
        t: &Transfer,
        (operation, datatype): (Operation, Datatype),
        ack: AckRequest,
        when: Trigger<'_>,
    ) -> Result<()> {
        let (counter, threshold) = when.parts();
        let code = sys::PtlTriggeredAtomic(
            self.handle(),
            t.local_offset,
            t.length,
            ack as u8,
            t.target,
            t.portal,
            t.match_bits,
            t.remote_offset,
            t.user(),
            t.hdr_data,
            operation as u8,
            datatype as u8,
            counter,
            threshold,
        );
        check("PtlTriggeredAtomic", code)
    }

    /// `PtlFetchAtomic`: this descriptor has the operands.
    ///
    /// # Errors
    /// The code of the call.
    #[inline]
    pub fn fetch_atomic(
        &self,
        t: &Transfer,
        (operation, datatype): (Operation, Datatype),
        old: Sink<'_, M>,
    ) -> Result<()> {
        let code = sys::PtlFetchAtomic(
            old.descriptor.handle(),
            old.offset,
            self.handle(),
            t.local_offset,
            t.length,
            t.target,
            t.portal,
            t.match_bits,
            t.remote_offset,
            t.user(),
            t.hdr_data,
            operation as u8,
            datatype as u8,
        );
        check("PtlFetchAtomic", code)
    }

    /// `PtlSwap` of unsigned 64-bit words: this descriptor has the new values, and
    /// conditional operations compare with `operand`.
    ///
    /// # Errors
    /// The code of the call.
    #[inline]
    pub fn swap(
        &self,
        t: &Transfer,
        operation: Operation,
        operand: Option<u64>,
        old: Sink<'_, M>,
    ) -> Result<()> {
        let operand = operand.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: the operand is null, or one element of the datatype that outlives the
        // call, which reads it at once (Portals 4.3, PtlSwap).
        let code = unsafe {
            sys::PtlSwap(
                old.descriptor.handle(),
                old.offset,
                self.handle(),
                t.local_offset,
                t.length,
                t.target,
                t.portal,
                t.match_bits,
                t.remote_offset,
                t.user(),
                t.hdr_data,
                operand.cast(),
                operation as u8,
                Datatype::Uint64 as u8,
            )
        };
        check("PtlSwap", code)
    }
}
