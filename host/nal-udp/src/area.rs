//! Where datagrams are received.

use crate::socket::Socket;
use lintel_claim::{Claim, Region};
use std::io;

/// The longest datagram, or train of them, that a system call gives.
const BYTES: u64 = 1 << 16;

/// The one buffer for what comes: a datagram, or a train of them, is taken apart here.
pub(crate) struct Area {
    region: Region,
    /// What isn't taken apart yet.
    rest: Claim,
    /// Bytes of each datagram in there but the last.
    segment: u64,
}

impl Area {
    pub(crate) fn new() -> Area {
        Area {
            region: Region::new(BYTES),
            rest: Claim::empty(),
            segment: 0,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        BYTES
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Receives from a socket; what was left in the area is lost.
    #[inline]
    pub(crate) fn receive(&mut self, socket: &Socket) -> io::Result<()> {
        let received = socket.receive(&[self.region.claim()])?;
        self.rest = self.region.claim().slice(0, received.length as u64);
        self.segment = received.segment.unwrap_or(received.length).max(1) as u64;
        Ok(())
    }

    /// The next datagram.
    #[inline]
    pub(crate) fn pop(&mut self) -> Claim {
        let first = self.rest.slice(0, self.segment);
        self.rest = self.rest.slice(self.segment, u64::MAX);
        first
    }
}
