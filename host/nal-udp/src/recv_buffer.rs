//! The buffer that datagrams are received into.

use crate::gro::GroPolicy;
use crate::socket::Socket;
use lintel_claim::{Claim, Region, copy_vectored};
use lintel_reliable::{FURTHER_BYTES, Header};
use std::io;

/// The most that one system call receives: the longest datagram, or several coalesced ones.
const BYTES: u64 = 1 << 16;
/// Bytes ahead of the payload of a stream's further part.
pub(crate) const AHEAD: u64 = FURTHER_BYTES as u64;

/// Holds what one system call has received: a datagram, or several that the kernel has
/// coalesced (`UDP_GRO`), which are taken out one by one.
///
/// If a stream's next part is about to arrive, its place is lent to the kernel: the payload
/// is received there, and the header here, as if the buffer had a hole:
///
/// ```text
///   buffer  │ header │ · · · hole · · · │ rest │
///   place            │ payload          │
/// ```
///
/// A payload that is damaged is copied into the hole, to be refused as any other; the
/// sender retransmits what belongs into the place.
pub(crate) struct RecvBuffer {
    region: Region,
    /// Datagrams that weren't taken yet.
    rest: Claim,
    /// Bytes of each datagram in it, of the last one perhaps fewer, if the system has reported it.
    each: Option<u64>,
    /// Header, place and rest while there is a hole; otherwise empty.
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

    /// Bytes of memory, whatever it holds.
    pub(crate) fn bytes(&self) -> u64 {
        BYTES
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Bytes that weren't taken yet.
    pub(crate) fn length(&self) -> u64 {
        self.rest.len()
    }

    /// Receives from a socket over what was left here.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &Socket, gro: &mut GroPolicy) -> io::Result<()> {
        self.pieces.clear();
        let received = socket.receive(gro, &[self.region.claim()])?;
        self.rest = self.region.claim().slice(0, received.bytes);
        self.each = received.each;
        Ok(())
    }

    /// As [`receive`](Self::receive), with a hole that `place` fills.
    pub(crate) fn receive_around(
        &mut self,
        socket: &Socket,
        gro: &mut GroPolicy,
        place: &[Claim],
    ) -> io::Result<()> {
        let whole = self.region.claim();
        let hole = lintel_memory::length(place);
        self.pieces.clear();
        self.pieces.push(whole.slice(0, AHEAD));
        self.pieces.extend_from_slice(place);
        self.pieces.push(whole.slice(AHEAD + hole, u64::MAX));
        let received = socket.receive(gro, &self.pieces);
        if received.is_err() {
            self.pieces.clear();
        }
        let received = received?;
        self.rest = whole.slice(0, received.bytes);
        self.each = received.each;
        Ok(())
    }

    /// Whether a datagram was received around a hole.
    #[inline]
    pub(crate) fn has_hole(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// The datagram that was received around a hole: what lies before the hole, what fills
    /// it, and what lies behind.
    pub(crate) fn around_hole(&self) -> Option<(Claim, &[Claim], Claim)> {
        let (_, [place @ .., _]) = self.pieces.split_first()? else {
            return None;
        };
        let behind = AHEAD + lintel_memory::length(place);
        let header = self.rest.slice(0, AHEAD);
        Some((header, place, self.rest.slice(behind, u64::MAX)))
    }

    /// Copies what lies in the place into the hole, which is one no more.
    pub(crate) fn fill_hole(&mut self) {
        if let Some((_, place, _)) = self.around_hole() {
            let hole = self.rest.slice(AHEAD, u64::MAX);
            copy_vectored(place, &[hole]);
        }
        self.pieces.clear();
    }

    /// Forgets the place that filled a hole, once what was received around it was taken.
    pub(crate) fn forget_place(&mut self) {
        debug_assert!(self.is_empty() || self.pieces.is_empty());
        self.pieces.clear();
    }

    /// The next datagram. If the system hasn't reported its length, the datagram's own
    /// header determines it.
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

    /// Everything that was received, which is one datagram.
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
