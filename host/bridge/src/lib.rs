//! The connection between a process in the generic placement and the agent of its node.
//!
//! ```text
//!   client                            shared region                           agent
//!   a call ──request──▶ ┌──────────────────────────────────────┐ ──command──▶ engine
//!          ◀──────────  │ message │ posts │ queues, counters   │ ◀──reply────
//!   a put ───post────▶  │                                      │ ──command──▶
//!   a wait ◀─activity─  └──────────────────────────────────────┘ ◀──post, publish
//!          └───────── unix socket: whose process is it, is it alive? ──────┘
//! ```
//!
//! This crate carries bytes: the runtime defines the commands and carries them out. The
//! rules of an event queue are here too, because they hold for queues in a shared region
//! and for those of a process that needs no agent.
//!
//! The agent doesn't trust the client, which can write anything into the region at any
//! moment and harms only itself: the agent reads each word once, copies a command
//! before it parses it, and finds what it writes to by numbers of its own. The system
//! reports the client's process and user for the socket.
//!
//! Order of use. Agent: [`Listener::open`], [`Listener::accept`], [`ClientSocket::hello`],
//! [`SharedRegion::create`], [`ClientSocket::send_region`]; then
//! [`SharedRegion::next_command`] and [`SharedRegion::reply`] in turn, with a
//! [`SharedTables`] for each interface. Client: [`Channel::connect`]; then
//! [`SharedRegion::request`] and [`SharedRegion::post`] for commands,
//! [`SharedRegion::take_event`] and [`SharedRegion::counter_value`] to poll,
//! [`SharedRegion::sleep`] to wait.
#![deny(unsafe_code)]

mod channel;
mod counter;
mod doorbell;
mod futex;
mod hello;
mod listener;
mod mailbox;
mod portals3;
mod post_queue;
mod queue;
mod region;
mod sync;
mod tables;

pub use channel::{Channel, ConnectError};
pub use counter::CounterCell;
pub use doorbell::Disconnected;
pub use hello::{Hello, path};
pub use listener::{ClientSocket, Listener, Peer};
pub use mailbox::{ClientCommand, Cursor};
pub use portals3::Taken3;
pub use post_queue::POST_BYTES;
pub use queue::{QueueEnds, Slot, Slots, Taken};
pub use region::{COUNTERS, MESSAGE_BYTES, QUEUES, SharedRegion};
pub use tables::{SharedTables, Tables};
