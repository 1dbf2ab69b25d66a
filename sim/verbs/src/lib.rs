//! Simulated host channel adapters, and what connections cost them.
//!
//! ```text
//!   process ── post ──▶ send engine ──▶ bus ──▶ switch ──▶ receive engine ──▶ bus ──▶ process
//!                        │ context?                         │ context?
//!                        └────▶ Cache ◀─────────────────────┘  of each adapter
//! ```
//!
//! - A [`Transport`] says how many queue pairs there are and which of them a message
//!   uses: one for each remote process (RC), one for each remote node (XRC), one in all
//!   (UD). [`counts`] counts them, and the memory that they take, to any size.
//! - An [`adapter`](Machine) sends by turns from the queue pairs that have something to
//!   send. It needs a queue pair's context to work for it; those that its cache doesn't
//!   hold are fetched while it stands still.
//! - [`measure`] measures what "MVAPICH with XRC: Early Experiences" (Panda, 2007)
//!   measured between two nodes; [`table`] holds it against the published figures.
//!
//! Every constant stands in [`constants`], with its source. Acknowledgements of RC and
//! XRC take no part of the wire here, memory registration and the library's own copies
//! of short messages cost nothing.
//!
//! Order of use: [`Machine::new`], [`Machine::post`] for each message, run; or one of the
//! functions in [`measure`].
#![forbid(unsafe_code)]

mod cache;
pub mod constants;
pub mod counts;
mod machine;
pub mod measure;
mod table;
mod trace;

pub use machine::{Arrived, Machine, MachineEvent, Post, Process};
pub use table::{Row, table};
pub use trace::{Observer, Span, Track};

/// How queue pairs are shared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Transport {
    /// Reliable connection: a queue pair for each pair of processes.
    Rc,
    /// Extended reliable connection: a sending one for each process and remote node,
    /// and a receiving one for it there, whose messages name the receive queue.
    Xrc,
    /// Unreliable datagram: a queue pair for each process, messages of a packet at most.
    Ud,
}

impl Transport {
    /// All transports, in the order of the paper.
    pub const ALL: [Transport; 3] = [Transport::Rc, Transport::Xrc, Transport::Ud];

    /// As the field writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Transport::Rc => "RC",
            Transport::Xrc => "XRC",
            Transport::Ud => "UD",
        }
    }
}
