//! What the application takes from an endpoint.

use crate::buffers::Buffer;
use lintel_cci::{Attribute, ConnectionId, ConnectionInfo, Status};

/// A message's bytes in the library's memory, until it is returned.
#[derive(Debug)]
pub struct Message {
    pub(crate) buffer: Buffer,
    pub(crate) length: u32,
}

impl Message {
    /// Bytes.
    pub fn len(&self) -> u32 {
        self.length
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Where they are, aligned to 8; a zero follows them.
    pub fn address(&self) -> u64 {
        self.buffer.claim().address()
    }

    /// Copies as many of them as `into` takes; returns how many these were.
    pub fn read(&self, into: &mut [u8]) -> usize {
        let bytes = self.buffer.claim().slice(0, self.length.into());
        bytes.read(into)
    }

    /// A copy of them.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length as usize];
        self.buffer.claim().read(&mut bytes);
        bytes
    }
}

/// An event of an endpoint.
#[derive(Debug)]
pub enum Event {
    /// A send or an access has ended.
    Sent {
        /// Its connection.
        connection: ConnectionId,
        /// The operation's own.
        context: u64,
        /// How it ended.
        status: Status,
    },
    /// A message has arrived. It is given back by
    /// [`Endpoint::return_message`](crate::Endpoint::return_message).
    Received {
        /// On which connection.
        connection: ConnectionId,
        /// Its bytes.
        message: Message,
    },
    /// The answer to a connection request of this endpoint.
    Connected {
        /// The request's own.
        context: u64,
        /// The connection, or why there is none.
        result: Result<(ConnectionId, ConnectionInfo), Status>,
    },
    /// A peer asks for a connection. The data are given back by
    /// [`Endpoint::return_request`](crate::Endpoint::return_request).
    Request {
        /// To be accepted or rejected.
        connection: ConnectionId,
        /// What the initiator asks for.
        attribute: Attribute,
        /// The request's data.
        data: Message,
    },
    /// How accepting has ended.
    Accepted {
        /// As given to accept.
        context: u64,
        /// The connection, or why there is none.
        result: Result<(ConnectionId, ConnectionInfo), Status>,
    },
    /// The peer was silent for too long.
    KeepaliveTimedOut {
        /// Which connection.
        connection: ConnectionId,
    },
}
