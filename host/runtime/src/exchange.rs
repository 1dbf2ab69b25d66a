//! An atomic operation on memory of this process.

use lintel_claim::{Claim, Datatype, Operation, Region, atomic, combine, fetch_atomic, swap};
use lintel_nal::Payload;
use lintel_types::NiFail;
use lintel_wire::{OPERAND_BYTES, Request, Verb};

/// An atomic operation and its operands.
pub(crate) struct Exchange {
    verb: Verb,
    operation: Operation,
    datatype: Datatype,
    /// What a swap compares with, then the operands.
    data: Claim,
    /// Bytes of the operands, and of the target.
    length: usize,
}

/// Bytes that a short exchange takes: what it compares with, operands and earlier values.
pub(crate) const SHORT_EXCHANGE: usize = 128;

impl Exchange {
    /// The operation of a request whose entry takes `length` bytes.
    ///
    /// # Errors
    /// `OpViolation` or `Segv`, for the initiator.
    pub(crate) fn new(
        request: &Request,
        length: u64,
        payload: Payload,
    ) -> Result<Exchange, NiFail> {
        let Payload::Inline(data) = payload else {
            return Err(NiFail::OpViolation);
        };
        let exchange = Exchange {
            verb: request.verb,
            operation: request.operation,
            datatype: request.datatype,
            data,
            length: length as usize,
        };
        match data.len() < exchange.bytes_ahead() as u64 + length {
            true => Err(NiFail::Segv),
            false => Ok(exchange),
        }
    }

    /// Bytes ahead of the operands: what a swap compares with.
    fn bytes_ahead(&self) -> usize {
        match self.verb {
            Verb::Swap => OPERAND_BYTES,
            _ => 0,
        }
    }

    /// Carries the operation out by plain loads and stores, for a target that nothing else
    /// changes meanwhile: the core's lock keeps our own operations apart.
    pub(crate) fn combine(&self, target: Claim) {
        let operands = self.data.slice(0, self.length as u64);
        combine(self.operation, self.datatype, operands, target);
    }

    /// Carries the operation out by the processor's own atomics. Returns the target's earlier
    /// values, which lie in `small`, or in `large` if that is too small.
    pub(crate) fn perform<'a>(
        &self,
        target: &[Claim],
        small: &'a mut [u8; SHORT_EXCHANGE],
        large: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        let ahead = self.bytes_ahead();
        let bytes = ahead + 2 * self.length;
        let room = match small.get_mut(..bytes) {
            Some(room) => room,
            None => {
                large.resize(large.len().max(bytes), 0);
                &mut large[..bytes]
            }
        };
        let (sent, old) = room.split_at_mut(ahead + self.length);
        self.data.read(sent);
        let (compare, operands) = sent.split_at(ahead);
        match self.verb {
            Verb::Atomic => atomic(self.operation, self.datatype, target, operands),
            Verb::FetchAtomic => fetch_atomic(self.operation, self.datatype, target, operands, old),
            _ => {
                let compare = &compare[..self.datatype.size().min(ahead)];
                swap(
                    self.operation,
                    self.datatype,
                    target,
                    operands,
                    compare,
                    old,
                );
            }
        }
        old
    }
}

/// Memory that exchanges use one after the other.
pub(crate) struct ExchangeBuffers {
    scratch: Vec<u8>,
    /// The earlier value on its way to the initiator.
    reply: Region,
}

/// Bytes that the reply's buffer begins with.
const REPLY_BYTES: u64 = 4096;

impl ExchangeBuffers {
    pub(crate) fn new() -> ExchangeBuffers {
        ExchangeBuffers {
            scratch: Vec::new(),
            reply: Region::new(REPLY_BYTES),
        }
    }

    /// The buffer for [`Exchange::perform`]; it keeps its memory.
    pub(crate) fn take_scratch(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    pub(crate) fn put_back_scratch(&mut self, scratch: Vec<u8>) {
        self.scratch = scratch;
    }

    /// A claim of a copy of these bytes, valid until the next one.
    pub(crate) fn reply_of(&mut self, bytes: &[u8]) -> Claim {
        let length = bytes.len() as u64;
        if self.reply.len() < length {
            self.reply = Region::new(length);
        }
        self.reply.write(0, bytes);
        self.reply.claim().slice(0, length)
    }
}
