//! Portals 3.3: the engine's interface, its event queues, and the calls.
//!
//! ```text
//!   process3() ──▶ Library<Portals3Process> ──lock──▶ Core { Portals3 { engine3, queues } }
//! ```
//!
//! A process has one interface. Its queues lie under the library's lock: a look at one and
//! PtlMDUpdate are each one step against what arrives. The handler of a queue runs once the
//! lock is released, by the thread that had it.

mod calls;
mod effects;
mod handlers;
mod landing;
mod lifecycle;
mod names;
mod process;
mod queues;
mod shared;
mod state;

pub use calls::Taken;
pub use handlers::Handler;
pub use lifecycle::Opening;
pub use process::{Portals3Process, fini3, process3};
pub use queues::MAX_EVENTS;
