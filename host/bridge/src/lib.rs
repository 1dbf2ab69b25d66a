//! The way from a process to the agent of its node, in the generic placement.
//!
//! ```text
//!   client                       shared pages                          agent
//!   a call ──ask──▶ ┌──────────────────────────────────┐ ──command──▶ engine
//!          ◀─────── │ message │ posts │ queues, counters│ ◀──answer───
//!   a put ──post──▶ │                                  │ ──command──▶
//!   a wait ◀─activity─ └──────────────────────────────────┘ ◀──post, publish
//!          └──────────── unix socket: who is it, does it live? ───────┘
//! ```
//!
//! Here are the ways only: what a command says, and what is done about it, is the
//! runtime's. The rules of an event queue are here too, since they hold for queues in
//! shared pages and for those of a process that needs no agent.
//!
//! The client isn't trusted. It can write anything into its pages at any moment, and
//! harms nobody but itself by it: the agent reads each word once, copies a command
//! before it looks at it, and finds what it writes to by numbers of its own. Who the
//! client is the system tells, by the socket.
//!
//! Order of use. Agent: [`Listener::open`], [`Listener::accept`], [`PendingClient::hello`],
//! [`SharedRegion::create`], [`PendingClient::send_region`]; then [`SharedRegion::next_command`] and [`SharedRegion::reply`]
//! in turn, with a [`SharedTables`] an interface. Client: [`Channel::connect`]; then
//! [`SharedRegion::request`] and [`SharedRegion::post`] for commands, [`SharedRegion::take_event`] and
//! [`SharedRegion::counter_value`] to look, [`SharedRegion::sleep`] to wait.
#![deny(unsafe_code)]

mod connection;
mod counter;
mod mailbox;
mod posts;
mod queue;
mod region;
mod tables;

pub use connection::{Channel, ConnectError, Hello, Listener, Peer, PendingClient, path};
pub use counter::CounterCell;
pub use mailbox::{ClientCommand, Cursor, Disconnected};
pub use posts::POST_BYTES;
pub use queue::{QueueEnds, Slot, Slots, Taken};
pub use region::{COUNTERS, MESSAGE_BYTES, QUEUES, SharedRegion};
pub use tables::{SharedTables, Tables};
