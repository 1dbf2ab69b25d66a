//! The body of a message to be sent: where its bytes are.

use crate::buffers::{Buffer, Buffers};
use lintel_claim::{Claim, Lease, Loan, copy_vectored};
use lintel_memory::{length, parts};
use lintel_nal::Outgoing;
use lintel_wire::OPERAND_BYTES;

/// Bytes that a body may have to be kept in the message itself.
pub(crate) const SMALL: usize = 64;

/// Bytes that a message takes beside a copy of its body, about.
const OVERHEAD: u64 = 128;

/// The body of a message.
pub(crate) enum Body {
    /// Its bytes; the message knows how many.
    Small([u8; SMALL]),
    /// A copy in memory of our own, and its length.
    Own(Buffer, u64),
    /// The user's own memory, lent until the peer has acknowledged it. If it has a number, its
    /// [return](lintel_nal::Arrival::Returned) is reported.
    Lent(Loan, Option<u64>),
}

impl Body {
    /// Copies or borrows what is to be sent; returns its length too.
    #[inline]
    pub(crate) fn new(outgoing: Outgoing<'_>, buffers: &mut Buffers) -> (Body, u64) {
        match outgoing {
            Outgoing::Copied { operand, pieces } => copy(operand, pieces, buffers),
            Outgoing::LentToRead(lent) => (Body::Lent(lent.keep(), None), lent.len()),
            Outgoing::LentToFill(_) => (Body::empty(), 0),
        }
    }

    /// A body without bytes.
    pub(crate) fn empty() -> Body {
        Body::Small([0; SMALL])
    }

    /// Whether it is memory of that lease.
    pub(crate) fn is_of(&self, lease: &Lease) -> bool {
        matches!(self, Body::Lent(loan, _) if loan.is_of(lease))
    }

    /// Bytes of memory that it and its message take, about.
    pub(crate) fn memory(&self) -> u64 {
        match self {
            Body::Small(_) | Body::Lent(..) => OVERHEAD,
            Body::Own(_, length) => OVERHEAD + length,
        }
    }

    /// Pieces that a part of it may have, its header included.
    pub(crate) fn max_pieces(&self) -> usize {
        match self {
            Body::Small(_) => 1,
            Body::Own(..) => 2,
            Body::Lent(loan, _) => 1 + loan.pieces().len(),
        }
    }

    /// Adds the pieces from `offset` on, `length` bytes, to `into`; a small body has none.
    pub(crate) fn part(&self, offset: u64, length: u64, into: &mut Vec<Claim>) {
        match self {
            Body::Small(_) => {}
            Body::Own(buffer, whole) => {
                into.push(buffer.claim().slice(0, *whole).slice(offset, length));
            }
            Body::Lent(loan, _) => into.extend(parts(loan.pieces(), offset, length)),
        }
    }
}

fn copy(
    operand: Option<&[u8; OPERAND_BYTES]>,
    pieces: &[Claim],
    buffers: &mut Buffers,
) -> (Body, u64) {
    let ahead = operand.map_or(0, |operand| operand.len());
    let length = ahead as u64 + length(pieces);
    if length <= SMALL as u64 {
        let mut small = [0; SMALL];
        if let Some(operand) = operand {
            small[..ahead].copy_from_slice(operand);
        }
        let mut at = ahead;
        for piece in pieces {
            at += piece.read(&mut small[at..]);
        }
        return (Body::Small(small), length);
    }
    let buffer = buffers.take(length);
    if let Some(operand) = operand {
        buffer.claim().write(operand);
    }
    copy_vectored(pieces, &[buffer.claim().slice(ahead as u64, u64::MAX)]);
    (Body::Own(buffer, length), length)
}
