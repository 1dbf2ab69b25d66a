//! [`Walk`]: a place in a list of pieces, as if the list were one piece.

use crate::claim::Claim;

/// A contiguous range of bytes, ours or a peer's.
pub(crate) trait Piece: Copy {
    const EMPTY: Self;

    fn len(self) -> u64;

    /// Without its first `count` bytes; empty when it has no more.
    fn skip(self, count: u64) -> Self;
}

impl Piece for Claim {
    const EMPTY: Claim = Claim::empty();

    #[inline]
    fn len(self) -> u64 {
        Claim::len(self)
    }

    #[inline]
    fn skip(self, count: u64) -> Claim {
        self.slice(count, u64::MAX)
    }
}

/// Stands at the next byte of a list of pieces. Copying a walk keeps the place.
#[derive(Clone, Copy)]
pub(crate) struct Walk<'a, P: Piece = Claim> {
    /// The pieces not yet entered.
    rest: &'a [P],
    /// What remains of the current one; empty only when all is done.
    front: P,
}

impl<'a, P: Piece> Walk<'a, P> {
    #[inline]
    pub(crate) fn new(pieces: &'a [P]) -> Walk<'a, P> {
        let mut walk = Walk {
            rest: pieces,
            front: P::EMPTY,
        };
        walk.skip_empty();
        walk
    }

    /// The contiguous bytes at this place; empty at the end.
    #[inline]
    pub(crate) fn front(&self) -> P {
        self.front
    }

    /// Whether no byte is left.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.front.len() == 0
    }

    /// The contiguous pieces from here on, none of them empty.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = P> + use<'a, P> {
        let front = self.front;
        std::iter::once(front)
            .chain(self.rest.iter().copied())
            .filter(|piece| piece.len() != 0)
    }

    /// Moves on by `count` bytes, across pieces; stops at the end.
    #[inline]
    pub(crate) fn advance(&mut self, mut count: u64) {
        while count >= self.front.len() && self.front.len() != 0 {
            count -= self.front.len();
            self.front = P::EMPTY;
            self.skip_empty();
        }
        self.front = self.front.skip(count);
    }

    #[inline]
    fn skip_empty(&mut self) {
        while self.front.len() == 0 {
            let Some((next, rest)) = self.rest.split_first() else {
                return;
            };
            self.front = *next;
            self.rest = rest;
        }
    }
}

impl Walk<'_, Claim> {
    /// Gathers bytes from here without moving on; returns how many there were.
    pub(crate) fn gather(&self, mut into: &mut [u8]) -> usize {
        let wanted = into.len();
        for piece in self.pieces() {
            let count = piece.read(into);
            into = &mut into[count..];
            if into.is_empty() {
                break;
            }
        }
        wanted - into.len()
    }

    /// Scatters bytes from here without moving on; returns how many had a place.
    pub(crate) fn scatter(&self, mut from: &[u8]) -> usize {
        let wanted = from.len();
        for piece in self.pieces() {
            let count = piece.write(from);
            from = &from[count..];
            if from.is_empty() {
                break;
            }
        }
        wanted - from.len()
    }
}
