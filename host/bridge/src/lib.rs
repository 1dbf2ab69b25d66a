//! The way from a process to the agent of its node, in the generic placement.
//!
//! ```text
//!   client                       shared pages                          agent
//!   a call ──ask──▶ ┌──────────────────────────────────┐ ──command──▶ engine
//!          ◀─────── │ message │ posts │ queues, counters│ ◀──answer───
//!   a put ──post──▶ │                                  │ ──command──▶
//!   a wait ◀─noise─ └──────────────────────────────────┘ ◀──post, publish
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
//! Order of use. Agent: [`Door::open`], [`Door::accept`], [`Visitor::greeting`],
//! [`Page::create`], [`Visitor::welcome`]; then [`Page::next`] and [`Page::answer`]
//! in turn, with a [`Board`] an interface. Client: [`Line::connect`]; then
//! [`Page::ask`] and [`Page::post`] for commands, [`Page::take_event`] and
//! [`Page::counter_value`] to look, [`Page::sleep`] to wait.
#![deny(unsafe_code)]

mod counter;
mod door;
mod mailbox;
mod page;
mod posts;
mod queue;
mod tables;

pub use counter::Cell;
pub use door::{Closed, Door, Greeting, Line, Peer, Visitor, path};
pub use mailbox::{Gone, Next, Seen};
pub use page::{COUNTERS, MESSAGE_BYTES, Page, QUEUES};
pub use posts::POST_BYTES;
pub use queue::{Ends, Slot, Slots, Taken};
pub use tables::{Board, Tables};
