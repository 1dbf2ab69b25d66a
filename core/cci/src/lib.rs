//! The rules of CCI: connections, messages, remote memory access, as a value.
//!
//! ```text
//!   connect, accept, send, rma ─▶ ┌──────────┐ ─▶ Host::send   frames for the peer
//!   a frame that has arrived ───▶ │ Endpoint │ ─▶ Host::post   events for the application
//!   the time ───────────────────▶ └──────────┘ ─▶ Action       where the frame's bytes go
//! ```
//!
//! An endpoint knows no socket, no address of memory and no clock. Below it lies a network
//! that keeps the order between two processes, loses nothing while both live, and reports
//! once that a peer has ended. So what is left to this crate is what CCI adds: the
//! handshake, the three attributes, receivers that refuse for lack of a buffer, completion
//! when a message is in the peer's library, timeouts, keepalive, and the checks of remote
//! memory access.
//!
//! Order of use: [`Endpoint::on_message`] for each frame, then the [`Action`] that it
//! returns; [`Endpoint::finish`] after a batch of frames; [`Endpoint::on_time`] when
//! [`Endpoint::due`] has passed.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod connection;
mod endpoint;
mod frame;
mod handshake;
mod options;
mod receiving;
mod rma;
mod sending;
mod status;
mod timers;

pub use connection::{ConnectionId, ConnectionInfo};
pub use endpoint::{Endpoint, Event, Host, Message, NoWay, Outgoing, OutgoingOf, Resources};
pub use frame::is_acknowledgement;
pub use handshake::Request;
pub use options::{DEFAULT_RECV_BUFFERS, DEFAULT_SEND_BUFFERS, DEFAULT_SEND_TIMEOUT};
pub use receiving::{Action, Transfer};
pub use rma::{Access, Region, RmaRequest};
pub use sending::{Completion, Direction, Notify};
pub use status::{Attribute, Status};
pub use timers::{TICK, Time};

/// The longest data of a connection request, bytes (`CCI_CONN_REQ_LEN`).
pub const MAX_REQUEST: u32 = 1024;
