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

    /// Whether all that [`perform`](Self::perform) takes has room in its small buffer.
    pub(crate) fn is_short(&self) -> bool {
        self.bytes_ahead() + 2 * self.length <= SHORT_EXCHANGE
    }

    /// Carries the operation out. Returns the earlier values, if the initiator wants them; they lie
    /// in `small`, or in `large` if that is too small.
    ///
    /// By the processor's own atomics, unless the target need not be coherent and its earlier values
    /// aren't wanted: then plain loads and stores are enough, since the core's lock keeps our own
    /// operations apart.
    pub(crate) fn perform<'a>(
        &self,
        target: &[Claim],
        is_coherent: bool,
        small: &'a mut [u8; SHORT_EXCHANGE],
        large: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        if let (&[target], Verb::Atomic, false) = (target, self.verb, is_coherent) {
            let operands = self.data.slice(0, self.length as u64);
            combine(self.operation, self.datatype, operands, target);
            return &[];
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_types::{AckRequest, InterfaceNumber, PortalIndex};

    fn request(verb: Verb, operation: Operation) -> Request {
        let [interface, ..] = InterfaceNumber::ALL;
        Request {
            verb,
            interface,
            ack: AckRequest::None,
            referenced: false,
            portal: PortalIndex::from(0u16),
            token: 1,
            rank: 0,
            length: 8,
            operation,
            datatype: Datatype::Uint64,
            match_bits: 0,
            remote_offset: 0,
            hdr_data: 0,
        }
    }

    fn words(values: &[u64]) -> Region {
        let region = Region::new(values.len() as u64 * 8);
        for (at, value) in values.iter().enumerate() {
            region.write(at as u64 * 8, &value.to_ne_bytes());
        }
        region
    }

    fn read(region: &Region) -> Vec<u64> {
        let mut bytes = vec![0; region.len() as usize];
        region.read(0, &mut bytes);
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().expect("eight bytes"));
        bytes.chunks_exact(8).map(word).collect()
    }

    #[test]
    fn a_fetch_returns_the_earlier_values_whatever_its_length() {
        for count in [1, 4, 500] {
            let (target, operands) = (words(&vec![40; count]), words(&vec![2; count]));
            let request = request(Verb::FetchAtomic, Operation::Sum);
            let payload = Payload::Inline(operands.claim());
            let exchange = Exchange::new(&request, target.len(), payload).expect("it is whole");
            let (mut small, mut large) = ([0; SHORT_EXCHANGE], Vec::new());
            let old = exchange.perform(&[target.claim()], true, &mut small, &mut large);
            assert_eq!(old, 40u64.to_ne_bytes().repeat(count));
            assert_eq!(read(&target), vec![42; count]);
        }
    }

    #[test]
    fn a_conditional_swap_compares_with_what_lies_ahead_of_its_operand() {
        for (compared, after) in [(7, 9), (8, 7)] {
            let target = words(&[7]);
            let mut sent = vec![compared];
            sent.resize(OPERAND_BYTES / 8, 0);
            sent.push(9);
            let sent = words(&sent);
            let request = request(Verb::Swap, Operation::CswapEq);
            let payload = Payload::Inline(sent.claim());
            let exchange = Exchange::new(&request, 8, payload).expect("it is whole");
            let (mut small, mut large) = ([0; SHORT_EXCHANGE], Vec::new());
            let old = exchange.perform(&[target.claim()], true, &mut small, &mut large);
            assert_eq!((old, read(&target)), (&7u64.to_ne_bytes()[..], vec![after]));
        }
    }

    #[test]
    fn plain_loads_and_stores_give_the_same() {
        let (target, operands) = (words(&[40]), words(&[2]));
        let payload = Payload::Inline(operands.claim());
        let request = request(Verb::Atomic, Operation::Sum);
        let exchange = Exchange::new(&request, 8, payload).expect("it is whole");
        let (mut small, mut large) = ([0; SHORT_EXCHANGE], Vec::new());
        exchange.perform(&[target.claim()], false, &mut small, &mut large);
        assert_eq!(read(&target), [42]);
    }

    #[test]
    fn operands_that_are_short_or_not_inline_are_refused() {
        let sent = words(&[1]);
        let refused = |verb, length, payload| {
            let request = request(verb, Operation::Sum);
            Exchange::new(&request, length, payload).map(drop).err()
        };
        let inline = || Payload::Inline(sent.claim());
        assert_eq!(refused(Verb::Atomic, 8, inline()), None);
        assert_eq!(refused(Verb::Atomic, 16, inline()), Some(NiFail::Segv));
        assert_eq!(refused(Verb::Swap, 8, inline()), Some(NiFail::Segv));
        let streamed = Payload::Streamed(8);
        assert_eq!(
            refused(Verb::Atomic, 8, streamed),
            Some(NiFail::OpViolation)
        );
    }

    #[test]
    fn the_replys_buffer_grows_with_what_it_carries() {
        let mut buffers = ExchangeBuffers::new();
        for length in [8, REPLY_BYTES as usize + 1] {
            let bytes = vec![3; length];
            let claim = buffers.reply_of(&bytes);
            let mut copy = vec![0; length];
            assert_eq!(
                (claim.len(), claim.read(&mut copy)),
                (length as u64, length)
            );
            assert!(copy == bytes);
        }
    }
}
