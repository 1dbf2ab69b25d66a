//! The bytes of a message until it has arrived.

use lintel_claim::{Claim, Region, copy, gather};

/// Bytes that are kept in the body itself.
const SMALL: usize = 56;

/// The bytes of a message, where the caller of a send has them.
#[derive(Clone, Copy)]
pub(crate) enum Fresh<'a> {
    Copied(&'a [Claim]),
    /// The user's own memory, lent until completion (`CCI_FLAG_NO_COPY`).
    Lent(&'a [Claim]),
    /// Bytes that nobody else changes.
    Bytes(&'a [u8]),
}

impl Fresh<'_> {
    /// Beyond the call.
    pub(crate) fn hold(self) -> Body {
        match self {
            Fresh::Copied(pieces) => Body::copied(pieces),
            Fresh::Lent(pieces) => Body::Lent(pieces.to_vec()),
            Fresh::Bytes(bytes) => Body::of_bytes(bytes),
        }
    }

    /// Calls `send` with the bytes' place; those that aren't claimed memory are copied to
    /// `scratch` before, which has room for every message.
    #[inline]
    pub(crate) fn with<R>(self, scratch: &Region, send: impl FnOnce(&[Claim]) -> R) -> R {
        match self {
            Fresh::Copied(pieces) | Fresh::Lent(pieces) => send(pieces),
            Fresh::Bytes(bytes) => send(&[in_scratch(bytes, scratch)]),
        }
    }

    /// A copy of the bytes, in one piece.
    pub(crate) fn to_vec(self) -> Vec<u8> {
        let pieces = match self {
            Fresh::Copied(pieces) | Fresh::Lent(pieces) => pieces,
            Fresh::Bytes(bytes) => return bytes.to_vec(),
        };
        let mut bytes = vec![0; lintel_memory::length(pieces) as usize];
        gather(pieces, &mut bytes);
        bytes
    }
}

/// The bytes of a message that waits to be sent, or may have to be retransmitted.
pub(crate) enum Body {
    Small([u8; SMALL], u8),
    Copied(Vec<u8>),
    /// The user's own memory, lent until completion (`CCI_FLAG_NO_COPY`).
    Lent(Vec<Claim>),
}

impl Body {
    /// A copy of all pieces.
    fn copied(pieces: &[Claim]) -> Body {
        let length = lintel_memory::length(pieces) as usize;
        let mut small = [0; SMALL];
        if length <= SMALL {
            gather(pieces, &mut small);
            return Body::Small(small, length as u8);
        }
        let mut bytes = vec![0; length];
        gather(pieces, &mut bytes);
        Body::Copied(bytes)
    }

    /// A copy of bytes that nobody else changes.
    fn of_bytes(bytes: &[u8]) -> Body {
        let mut small = [0; SMALL];
        match small.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Body::Small(small, bytes.len() as u8)
            }
            None => Body::Copied(bytes.to_vec()),
        }
    }

    /// As [`Fresh::with`].
    pub(crate) fn with<R>(&self, scratch: &Region, send: impl FnOnce(&[Claim]) -> R) -> R {
        let bytes = match self {
            Body::Small(bytes, length) => &bytes[..usize::from(*length)],
            Body::Copied(bytes) => bytes,
            Body::Lent(pieces) => return send(pieces),
        };
        send(&[in_scratch(bytes, scratch)])
    }
}

fn in_scratch(bytes: &[u8], scratch: &Region) -> Claim {
    let claim = scratch.claim().slice(0, bytes.len() as u64);
    claim.write(bytes);
    claim
}

/// Copies a message to its receive buffer, and a zero behind it: a program of the public
/// library reads a string that was sent without its end.
pub(crate) fn land(from: Claim, buffer: Claim) {
    let copied = copy(from, buffer);
    buffer.slice(copied, 1).write(&[0]);
}
