//! Events, and what they bring.

use crate::Result;
use crate::connection::Connection;
use crate::endpoint::Endpoint;
use lintel_cci_endpoint as lower;
use lintel_cci_endpoint::{Attribute, ConnectionId, Status};
use std::fmt;

/// An event of an endpoint (cci_event_t).
#[derive(Debug)]
pub enum Event {
    /// A send or a remote memory access has ended. On reliable connections `Ok` means that the
    /// message is in the peer's library, or the data are in place.
    Sent {
        /// Its connection.
        connection: ConnectionId,
        /// As given to the operation.
        context: u64,
        /// `Rnr`: the receiver had no buffer until the send timeout; `TimedOut`; `Disconnected`;
        /// `RmaHandle`: the access goes beyond the memory of a side, or the peer's isn't
        /// registered; `RmaOperation`: its registration doesn't allow the access.
        result: Result<()>,
    },
    /// A message has arrived.
    Received {
        /// On which connection.
        connection: ConnectionId,
        /// Its bytes.
        message: Message,
    },
    /// The answer to [`Endpoint::connect`].
    Connected {
        /// As given to it.
        context: u64,
        /// The connection; `Refused`, `TimedOut`.
        result: Result<Connection>,
    },
    /// A client asks for a connection.
    Request(Request),
    /// How [`Request::accept`] has ended. It comes before the connection's first message.
    Accepted {
        /// As given to it.
        context: u64,
        /// The connection, or why there is none.
        result: Result<Connection>,
    },
    /// The peer didn't answer for the keepalive timeout, which is 0 now. The connection stays open.
    KeepaliveTimedOut {
        /// Which connection.
        connection: ConnectionId,
    },
}

impl Event {
    pub(crate) fn new(event: lower::Event, endpoint: &Endpoint) -> Event {
        let connection = |(id, info)| Connection::new(endpoint.clone(), id, info);
        match event {
            lower::Event::Sent {
                connection,
                context,
                status,
            } => Event::Sent {
                connection,
                context,
                result: result(status),
            },
            lower::Event::Received {
                connection,
                message,
            } => Event::Received {
                connection,
                message: Message::new(message, endpoint),
            },
            lower::Event::Connected { context, result } => Event::Connected {
                context,
                result: result.map(connection),
            },
            lower::Event::Accepted { context, result } => Event::Accepted {
                context,
                result: result.map(connection),
            },
            lower::Event::Request {
                connection,
                attribute,
                data,
            } => Event::Request(Request::new(endpoint, connection, attribute, data)),
            lower::Event::KeepaliveTimedOut { connection } => {
                Event::KeepaliveTimedOut { connection }
            }
        }
    }
}

fn result(status: Status) -> Result<()> {
    match status {
        Status::Success => Ok(()),
        status => Err(status),
    }
}

/// A message in a receive buffer of the library, which it gives back when it is dropped.
pub struct Message {
    /// Taken by `drop` alone.
    held: Option<lower::Message>,
    endpoint: Endpoint,
}

impl Message {
    fn new(message: lower::Message, endpoint: &Endpoint) -> Message {
        Message {
            held: Some(message),
            endpoint: endpoint.clone(),
        }
    }

    fn held(&self) -> &lower::Message {
        self.held.as_ref().expect("it is held until it is dropped")
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.held().len() as usize
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.held().is_empty()
    }

    /// Copies as many bytes as `into` takes; returns how many these were.
    pub fn read(&self, into: &mut [u8]) -> usize {
        self.held().read(into)
    }

    /// A copy of the bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.held().to_vec()
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if let Some(message) = self.held.take() {
            self.endpoint.open.inner.return_message(message);
        }
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({} bytes)", self.len())
    }
}

/// A client's request for a connection. If it is dropped without an answer, it is rejected.
#[derive(Debug)]
pub struct Request {
    connection: ConnectionId,
    attribute: Attribute,
    data: Vec<u8>,
    /// `None` once it was answered.
    endpoint: Option<Endpoint>,
}

impl Request {
    fn new(
        endpoint: &Endpoint,
        connection: ConnectionId,
        attribute: Attribute,
        data: lower::Message,
    ) -> Request {
        let bytes = data.to_vec();
        endpoint.open.inner.return_request(data);
        Request {
            connection,
            attribute,
            data: bytes,
            endpoint: Some(endpoint.clone()),
        }
    }

    /// What the client asks for.
    pub fn attribute(&self) -> Attribute {
        self.attribute
    }

    /// The client's data.
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// Accepts it (cci_accept); [`Event::Accepted`] has the connection, and `context`.
    ///
    /// # Errors
    /// `Invalid` if the client has given up.
    pub fn accept(mut self, context: u64) -> Result<()> {
        match self.endpoint.take() {
            Some(endpoint) => endpoint.open.inner.accept(self.connection, context),
            None => Err(Status::Invalid),
        }
    }

    /// Rejects it (cci_reject); the client gets `Refused`.
    ///
    /// # Errors
    /// `Invalid` if the client has given up.
    pub fn reject(mut self) -> Result<()> {
        match self.endpoint.take() {
            Some(endpoint) => endpoint.open.inner.reject(self.connection),
            None => Err(Status::Invalid),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if let Some(endpoint) = self.endpoint.take() {
            // Fails only if the client has given up.
            let _ = endpoint.open.inner.reject(self.connection);
        }
    }
}
