//! CCI 2, the Common Communication Interface, for Rust programs: the safe interface.
//!
//! ```text
//!   client                                   server
//!   Endpoint::connect ──────────────────────▶ Event::Request ─▶ Request::accept
//!   Event::Connected ◀──────────────────────             Event::Accepted
//!     │                                                     │
//!   Connection::send ───────────────────────▶ Event::Received ─▶ Message
//!   Connection::rma  ──▶ memory of the server's Registration
//! ```
//!
//! Order of use: [`devices`], [`Endpoint::open`], then at the client [`Endpoint::connect`] and at
//! the server [`Request::accept`]; both take their [`Connection`] from an event, by
//! [`Endpoint::wait`] or [`Endpoint::get_event`]. Messages go by [`Connection::send`], memory by
//! [`Connection::rma`] from and to a [`Registration`]. Dropping a value gives back what it stands
//! for: a message its buffer, a connection is dropped, a request that wasn't answered is
//! rejected. Each value keeps what it needs, so any order is right.
//!
//! Messages are delivered by themselves, into the library's buffers; a thread of the library makes
//! progress while the application doesn't. All values may be used by several threads at once.
//!
//! Left to others: all rules of CCI, progress and timeouts (`lintel-cci-endpoint`). What isn't
//! explained here is in `include/cci.h`, by the same nouns. A C program with `libcci.so.2` may be
//! at the other end. Lent buffers (`CCI_FLAG_NO_COPY`) aren't offered: [`Connection::send`] copies,
//! and what is too large to be copied goes by [`Connection::rma`].
//!
//! ```
//! use cci2::*;
//! use std::time::Duration;
//!
//! # fn main() -> Result<()> {
//! let device = devices().into_iter().next().ok_or(Status::NoDevice)?;
//! let (client, server) = (Endpoint::open(&device)?, Endpoint::open(&device)?);
//! let soon = Duration::from_secs(20);
//!
//! client.connect(&server.uri(), Connect { data: b"from me", ..Connect::default() })?;
//! let Some(Event::Request(request)) = server.wait(soon)? else {
//!     return Err(Status::TimedOut);
//! };
//! assert_eq!(request.data(), b"from me");
//! request.accept(0)?;
//! let Some(Event::Connected { result, .. }) = client.wait(soon)? else {
//!     return Err(Status::TimedOut);
//! };
//! result?.send(b"lintel", Completion::Blocking)?;
//!
//! let Some(Event::Accepted { result, .. }) = server.wait(soon)? else {
//!     return Err(Status::TimedOut);
//! };
//! let connection = result?;
//! let Some(Event::Received { connection: on, message }) = server.wait(soon)? else {
//!     return Err(Status::TimedOut);
//! };
//! assert_eq!((on, message.to_vec()), (connection.id(), b"lintel".to_vec()));
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod connection;
mod endpoint;
mod event;
mod remote;

pub use connection::{Completion, Connection};
pub use endpoint::{Connect, Endpoint};
pub use event::{Event, Message, Request};
pub use remote::{Registration, Rma, RmaHandle};

pub use lintel_cci_endpoint::{
    Access, Attribute, ConnectionId, Device, Direction, EndpointOption, MAX_REQUEST, Resources,
    Status, Transport, devices,
};
pub use lintel_claim::Region;

/// What a call returns. The error is never [`Status::Success`].
pub type Result<T> = std::result::Result<T, Status>;
