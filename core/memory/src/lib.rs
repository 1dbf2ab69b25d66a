//! What an engine knows of memory: that a span has an address and a length and
//! can be narrowed. Engines decide where bytes go; the owner of the memory
//! moves them.
//!
//! A real span is `lintel_claim::Claim`; a [`Ghost`] has lengths only, for
//! tests and for simulated nodes, where no byte is stored.
//!
//! ```
//! use lintel_memory::{Buffer, Ghost, Span};
//! let vector: Buffer<Ghost> = Buffer::vector(vec![Ghost::new(100, 8), Ghost::new(900, 8)]);
//! let pieces = vector.pieces(6, 4);
//! assert_eq!(pieces.as_slice(), [Ghost::new(106, 2), Ghost::new(900, 2)]);
//! ```
//!
//! A list of spans is read as one run of bytes in order: [`length`], [`parts`], [`skip`] and
//! [`Walk`] are all the arithmetic of that, for engines and NALs alike.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod pieces;

pub use pieces::{MOST_MEMORY, Pieces, Walk, length, part, parts, skip};

use alloc::sync::Arc;
use alloc::vec::Vec;

/// A run of bytes that its creator vouches for. It can be narrowed, never widened.
pub trait Span: Copy {
    /// A span without bytes.
    fn empty() -> Self;
    /// Address of the first byte.
    fn address(self) -> u64;
    /// Bytes that it spans; may be 0.
    fn length(self) -> u64;
    /// The part from `offset`, at most `length` bytes, never beyond the span.
    fn narrow(self, offset: u64, length: u64) -> Self;
    /// As [`narrow`](Self::narrow), but nothing if not all of it lies in the span.
    #[inline(always)]
    fn part(self, offset: u64, length: u64) -> Option<Self> {
        let end = offset.checked_add(length)?;
        (end <= self.length()).then(|| self.narrow(offset, length))
    }
}

/// A span without memory behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ghost {
    address: u64,
    length: u64,
}

impl Ghost {
    /// A run of `length` bytes at a made-up address.
    pub const fn new(address: u64, length: u64) -> Self {
        Self { address, length }
    }
}

impl Span for Ghost {
    fn empty() -> Self {
        Self::default()
    }
    fn address(self) -> u64 {
        self.address
    }
    fn length(self) -> u64 {
        self.length
    }
    fn narrow(self, offset: u64, length: u64) -> Self {
        let offset = offset.min(self.length);
        Self::new(
            self.address.wrapping_add(offset),
            length.min(self.length - offset),
        )
    }
}

/// Memory of a descriptor or entry: one span, or the pieces of an I/O vector,
/// which count as one contiguous region.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(
        from = "Portable<S>",
        into = "Portable<S>",
        bound(
            serialize = "S: Span + serde::Serialize",
            deserialize = "S: Span + serde::Deserialize<'de>"
        )
    )
)]
pub enum Buffer<S> {
    /// All of it lies in one span.
    Contiguous(S),
    /// The pieces of an I/O vector, and their total length in bytes.
    Vector(Arc<[S]>, u64),
}

/// A buffer as it is serialized. The receiver computes a vector's total length anew.
#[cfg(feature = "serde")]
#[derive(serde::Serialize, serde::Deserialize)]
enum Portable<S> {
    Contiguous(S),
    Vector(Vec<S>),
}

#[cfg(feature = "serde")]
impl<S: Span> From<Portable<S>> for Buffer<S> {
    fn from(portable: Portable<S>) -> Self {
        match portable {
            Portable::Contiguous(span) => Buffer::Contiguous(span),
            Portable::Vector(pieces) => Buffer::vector(pieces),
        }
    }
}

#[cfg(feature = "serde")]
impl<S: Span> From<Buffer<S>> for Portable<S> {
    fn from(buffer: Buffer<S>) -> Self {
        match buffer {
            Buffer::Contiguous(span) => Portable::Contiguous(span),
            Buffer::Vector(pieces, _) => Portable::Vector(pieces.to_vec()),
        }
    }
}

impl<S: Span> Buffer<S> {
    /// The region that an I/O vector describes.
    pub fn vector(pieces: Vec<S>) -> Self {
        let length = pieces
            .iter()
            .fold(0u64, |sum, piece| sum.saturating_add(piece.length()));
        Buffer::Vector(pieces.into(), length)
    }

    /// Bytes of all its pieces.
    #[inline]
    pub fn length(&self) -> u64 {
        match self {
            Buffer::Contiguous(span) => span.length(),
            Buffer::Vector(_, length) => *length,
        }
    }

    /// Where `length` bytes from `offset` lie; fewer if the region ends before.
    #[inline]
    pub fn pieces(&self, offset: u64, length: u64) -> Pieces<S> {
        match self {
            Buffer::Contiguous(span) => Pieces::One(span.narrow(offset, length)),
            Buffer::Vector(pieces, _) => Pieces::Many(part(pieces, offset, length)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_span_never_grows() {
        let span = Ghost::new(100, 10);
        assert_eq!(span.narrow(4, u64::MAX), Ghost::new(104, 6));
        assert_eq!(span.narrow(11, 1).length(), 0);
    }

    #[test]
    fn pieces_cross_the_joints_of_a_vector() {
        let buffer = Buffer::vector(vec![Ghost::new(0, 3), Ghost::new(10, 0), Ghost::new(20, 5)]);
        assert_eq!(buffer.length(), 8);
        assert_eq!(
            buffer.pieces(2, 99).as_slice(),
            [Ghost::new(2, 1), Ghost::new(20, 5)]
        );
        assert_eq!(buffer.pieces(8, 1).length(), 0);
    }

    #[test]
    fn a_span_narrows_to_the_part_that_it_has() {
        let span = Ghost::new(100, 10);
        assert_eq!((span.address(), span.length()), (100, 10));
        for (offset, length, expected) in [
            (0, 10, Ghost::new(100, 10)),
            (3, 4, Ghost::new(103, 4)),
            (3, 99, Ghost::new(103, 7)),
            (10, 1, Ghost::new(110, 0)),
            (99, 1, Ghost::new(110, 0)),
        ] {
            assert_eq!(span.narrow(offset, length), expected, "{offset} {length}");
        }
        assert_eq!(Ghost::empty(), Ghost::new(0, 0));
    }

    #[test]
    fn one_span_is_a_buffer_of_one_piece() {
        let buffer = Buffer::Contiguous(Ghost::new(100, 10));
        assert_eq!(buffer.length(), 10);
        assert_eq!(buffer.pieces(4, 99).as_slice(), [Ghost::new(104, 6)]);
        assert_eq!(buffer.pieces(4, 2).start(), 104);
    }

    #[test]
    fn a_vector_longer_than_memory_is_cut_to_the_highest_length() {
        let buffer = Buffer::vector(vec![Ghost::new(0, u64::MAX), Ghost::new(0, 2)]);
        assert_eq!(buffer.length(), u64::MAX);
    }
}
