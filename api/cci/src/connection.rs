//! Connections, and messages on them.

use crate::Result;
use crate::endpoint::{Endpoint, copy_of};
use crate::remote::Rma;
use lintel_cci_endpoint::{Attribute, ConnectionId, ConnectionInfo, MessageFlags, Region};
use lintel_cci_endpoint::{RmaRequest, Status};
use std::fmt;

/// How the end of an operation is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completion {
    /// By [`Event::Sent`](crate::Event::Sent) with this context.
    Event(u64),
    /// The call returns when the operation has ended, with its result (`CCI_FLAG_BLOCKING`).
    Blocking,
    /// Not at all (`CCI_FLAG_SILENT`).
    Silent,
}

impl Completion {
    fn parts(self) -> (u64, MessageFlags) {
        let context = match self {
            Completion::Event(context) => context,
            Completion::Blocking | Completion::Silent => 0,
        };
        let flags = MessageFlags {
            blocking: self == Completion::Blocking,
            silent: self == Completion::Silent,
            no_copy: false,
        };
        (context, flags)
    }
}

/// One end of a connection (cci_connection_t). It is dropped with this value (cci_disconnect):
/// the peer isn't notified, and its later sends fail with `Disconnected`.
pub struct Connection {
    endpoint: Endpoint,
    id: ConnectionId,
    info: ConnectionInfo,
}

impl Connection {
    pub(crate) fn new(endpoint: Endpoint, id: ConnectionId, info: ConnectionInfo) -> Connection {
        Connection { endpoint, id, info }
    }

    /// Names it in events and options.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// What it promises.
    pub fn attribute(&self) -> Attribute {
        self.info.attribute
    }

    /// The longest message, bytes; not more than the device's.
    pub fn max_send_size(&self) -> u32 {
        self.info.max_send
    }

    /// The endpoint that it belongs to.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Sends a message (cci_send). The bytes are copied.
    ///
    /// # Errors
    /// `MessageSize` beyond [`max_send_size`](Self::max_send_size); `NoBuffers` if too many
    /// operations are pending; `Disconnected`; `Invalid` on a connection that only receives. With
    /// [`Completion::Blocking`] also what [`Event::Sent`](crate::Event::Sent) would report.
    pub fn send(&self, bytes: &[u8], completion: Completion) -> Result<()> {
        let (context, flags) = completion.parts();
        let inner = &self.endpoint.open.inner;
        inner.send_bytes(self.id, bytes, context, flags)
    }

    /// Reads or writes the peer's memory (cci_rma).
    ///
    /// # Errors
    /// As [`send`](Self::send). `Invalid` if the length is 0, the connection is unreliable, or the
    /// local memory is of another endpoint; with [`Completion::Blocking`] also `RmaHandle` and
    /// `RmaOperation`.
    pub fn rma(&self, access: Rma<'_>, completion: Completion) -> Result<()> {
        if !access.local.is_of(&self.endpoint) {
            return Err(Status::Invalid);
        }
        let request = RmaRequest {
            direction: access.direction,
            local: Region {
                key: access.local.key(),
                offset: access.local_offset,
                length: access.length,
            },
            remote_key: access.remote.key(),
            remote_offset: access.remote_offset,
            fence: access.fence,
        };
        let message = access.message.map(copy_of);
        let message = message.as_ref().map(|region| region.claim());
        let (context, flags) = completion.parts();
        let inner = &self.endpoint.open.inner;
        inner.rma(self.id, request, message, context, flags)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // It is open, as nobody else ends it.
        let _ = self.endpoint.open.inner.disconnect(self.id);
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("attribute", &self.info.attribute)
            .finish_non_exhaustive()
    }
}
