//! Portals 3.3: the engine's interface, its event queues, and the calls.
//!
//! ```text
//!   process3() ──▶ Process3 ──▶ Library<Portals3Process> ──lock──▶ Core { Portals3 { engine3 } }
//! ```
//!
//! A process has one interface. Its engine lives in the process, or in the agent: a
//! [`Process3`] carries a call out by the library, or asks the agent, whose library carries it
//! out by the same name. Events are written under the library's lock and taken without it, which
//! only empties a queue: PtlMDUpdate is one step against what arrives. The handler of a queue
//! runs once the lock is released, by the thread that had it; a client's, by a thread of the
//! client.

mod calls;
mod commands;
mod effects;
mod handlers;
mod landing;
mod lifecycle;
mod names;
mod owner;
mod process;
mod queue_calls;
mod queues;
mod remote_cache;
mod remote_handlers;
mod shared;
mod shared_queues;
mod state;

pub use calls::{EntryWith, Identity};
pub(crate) use commands::Command3;
pub use handlers::Handler;
pub use lifecycle::Opening;
pub use owner::{Owner3, Portals3Process};
pub use process::{Process3, fini3, process3};
pub use queues::MAX_EVENTS;
pub use shared::Shared;
pub use shared_queues::SharedQueues;
pub use state::Portals3;
