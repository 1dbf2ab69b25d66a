//! Streams that are arriving, and what to do with each once it is whole.

use crate::mover::Mover;
use crate::owner::Owner;
use crate::transports::Transports;
use lintel_claim::{Lease, Region};
use lintel_engine4::{Landed, PendingReply};
use lintel_memory::Pieces;
use lintel_nal::{Nal, Origin};
use lintel_types::InterfaceNumber;
use std::slice;

/// Where a stream goes: the owner's memory, by way of a staging buffer if it has one.
pub(crate) struct Place<'a, O: Owner> {
    pub(crate) lease: &'a Lease,
    pub(crate) pieces: Pieces<O::Span>,
    /// Bytes of the stream.
    pub(crate) length: u64,
    pub(crate) buffer: Option<Region>,
}

impl<O: Owner> Place<'_, O> {
    /// Lends the memory to the NAL until the stream is whole or broken. Returns what is to be
    /// copied then, and to where.
    pub(crate) fn receive(
        self,
        transports: &mut Transports,
        origin: Origin,
    ) -> Option<(Region, Pieces<O::Span>)> {
        let staged = self.buffer.as_ref().map(Region::claim);
        let staged = staged.map(|claim| claim.slice(0, self.length));
        let place = match &staged {
            Some(claim) => slice::from_ref(claim),
            None => O::Mover::as_claims(self.pieces.as_slice()).unwrap_or_default(),
        };
        let place = self.lease.lend(place).keep();
        transports.nal.receive_into(origin, place);
        self.buffer.map(|buffer| (buffer, self.pieces))
    }
}

/// A stream, from its announcement until it is whole or broken.
pub(crate) struct Stream<S> {
    pub(crate) target: StreamTarget,
    /// The buffer that the bytes come into first, and where they go from there.
    pub(crate) staged: Option<(Region, Pieces<S>)>,
}

/// The operation that a stream belongs to.
pub(crate) enum StreamTarget {
    /// The stream is the body of a request.
    Request(Landed),
    /// The stream is the body of a reply to that interface.
    Reply(InterfaceNumber, PendingReply),
}

impl<S> Stream<S> {
    /// The interface whose memory the stream fills.
    pub(crate) fn interface(&self) -> InterfaceNumber {
        match &self.target {
            StreamTarget::Request(landed) => landed.request().interface,
            StreamTarget::Reply(number, _) => *number,
        }
    }
}
