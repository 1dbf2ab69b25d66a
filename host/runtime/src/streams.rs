//! Streams that are arriving, and what to do with each once it is whole.

use lintel_claim::Region;
use lintel_engine4::{Landed, PendingReply};
use lintel_memory::Pieces;
use lintel_types::InterfaceNumber;

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
