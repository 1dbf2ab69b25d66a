//! Where datagrams are received.

use crate::socket::Socket;
use lintel_claim::{Claim, Region, copy_vectored};
use lintel_reliable::{FURTHER_BYTES, Header};
use std::io;

/// The longest datagram, or train of them, that a system call gives.
const BYTES: u64 = 1 << 16;
/// Bytes ahead of the payload of a stream's further part.
pub(crate) const AHEAD: u64 = FURTHER_BYTES as u64;

/// The one buffer for what comes: a datagram, or a train of them, is taken apart here.
///
/// Where a stream's next part is the next to come, its place is lent to the area: the
/// kernel puts the payload there, and the header here, as if the area had a hole:
///
/// ```text
///   area   │ header │ · · · hole · · · │ rest │
///   place           │ payload          │
/// ```
///
/// A payload that changed on its way is copied into the hole, to be refused as any other;
/// what belongs into the place comes once more.
pub(crate) struct RecvBuffer {
    region: Region,
    /// What isn't taken apart yet.
    rest: Claim,
    /// Bytes of each datagram in it, the last one perhaps fewer, where the system has told.
    each: Option<u64>,
    /// Header, place, and rest, while there is a hole; else empty.
    pieces: Vec<Claim>,
}

impl RecvBuffer {
    pub(crate) fn new() -> RecvBuffer {
        RecvBuffer {
            region: Region::new(BYTES),
            rest: Claim::empty(),
            each: None,
            pieces: Vec::new(),
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        BYTES
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that aren't taken apart yet.
    pub(crate) fn length(&self) -> u64 {
        self.rest.len()
    }

    /// Receives from a socket; what was left in the area is lost.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &mut Socket) -> io::Result<()> {
        self.pieces.clear();
        let received = socket.receive(&[self.region.claim()])?;
        self.rest = self.region.claim().slice(0, received.bytes);
        self.each = received.each;
        Ok(())
    }

    /// As [`receive`](Self::receive), with a hole that `place` fills.
    pub(crate) fn receive_around(
        &mut self,
        socket: &mut Socket,
        place: &[Claim],
    ) -> io::Result<()> {
        let whole = self.region.claim();
        let hole = lintel_memory::length(place);
        self.pieces.clear();
        self.pieces.push(whole.slice(0, AHEAD));
        self.pieces.extend_from_slice(place);
        self.pieces.push(whole.slice(AHEAD + hole, u64::MAX));
        let received = socket.receive(&self.pieces);
        if received.is_err() {
            self.pieces.clear();
        }
        let received = received?;
        self.rest = whole.slice(0, received.bytes);
        self.each = received.each;
        Ok(())
    }

    /// The datagram that has been received around a hole: what comes before the hole,
    /// what fills it, and what comes behind.
    pub(crate) fn around_hole(&self) -> Option<(Claim, &[Claim], Claim)> {
        let (_, [place @ .., _]) = self.pieces.split_first()? else {
            return None;
        };
        let behind = AHEAD + lintel_memory::length(place);
        let header = self.rest.slice(0, AHEAD);
        Some((header, place, self.rest.slice(behind, u64::MAX)))
    }

    /// Fills the hole with what lies in its place.
    pub(crate) fn fill_hole(&mut self) {
        if let Some((_, place, _)) = self.around_hole() {
            let hole = self.rest.slice(AHEAD, u64::MAX);
            copy_vectored(place, &[hole]);
        }
        self.pieces.clear();
    }

    /// Forgets where a hole was, once what was received around it has been taken.
    pub(crate) fn forget_place(&mut self) {
        debug_assert!(self.is_empty() || self.pieces.is_empty());
        self.pieces.clear();
    }

    /// The next datagram. Where the system hasn't told how long it is, it has to be
    /// believed itself.
    #[inline]
    pub(crate) fn pop(&mut self) -> Claim {
        let length = self.each.unwrap_or_else(|| self.claimed());
        self.take(length)
    }

    #[cold]
    fn claimed(&self) -> u64 {
        let mut beginning = [0; 64];
        let count = self.rest.read(&mut beginning);
        let claimed = Header::claimed_bytes(&beginning[..count]);
        claimed.map_or(u64::MAX, |bytes| bytes as u64)
    }

    /// All that came together, which is one datagram.
    #[inline]
    pub(crate) fn pop_all(&mut self) -> Claim {
        self.take(u64::MAX)
    }

    #[inline]
    fn take(&mut self, length: u64) -> Claim {
        let first = self.rest.slice(0, length);
        self.rest = self.rest.slice(length, u64::MAX);
        first
    }
}
