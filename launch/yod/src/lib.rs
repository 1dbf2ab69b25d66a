//! yod starts the ranks of a parallel program, here or on other machines, serves them
//! PMI, forwards their output, and makes sure that all of them end.
//!
//! ```text
//!   supervisor ── PMI server, signals, output, exit codes      one loop, no threads
//!    ├─ local launcher ─┬─ agent of each node   in generic placement: starts first, ends last
//!    │                  ├─ rank 0               own process group, socket (PMI_FD), pipes
//!    │                  └─ rank 1 …
//!    └─ or a remote host for each node ══ ssh ══ yod --remote ── its local launcher
//!   watchdog ── ends what its yod has started if that is killed, then exits
//! ```
//!
//! The supervisor decides; a local launcher carries out its requests and reports events.
//! Both are calls within a process and messages between machines.
//!
//! The exchange between ranks through PMI is `lintel-pmi`'s; their Portals messages are not
//! seen here.
//!
//! 1. A binary that starts jobs calls [`become_helper_if_asked`] first of all:
//!    ranks and watchdog begin as copies of the running binary.
//! 2. [`Job::new`], then [`run`].
//!
//! ```no_run
//! yod::become_helper_if_asked();
//! let mut job = yod::Job::new(2, "hostname");
//! job.label = true;
//! let outcome = yod::run(&job)?;
//! std::process::exit(outcome.exit_code().into());
//! # #[allow(unreachable_code)]
//! # Ok::<(), yod::Error>(())
//! ```
#![forbid(unsafe_code)]

mod agents;
mod allocation;
mod backend;
mod cli;
mod describe;
mod ending;
mod error;
mod group;
mod helper;
mod host_list;
mod job;
mod layout;
mod link;
mod local_launcher;
mod message;
mod outcome;
mod output;
mod plan;
mod poll;
mod portals3;
mod process;
mod program;
mod rank;
mod remote_host;
mod remote_launcher;
mod resources;
mod secret;
mod shell;
mod signals;
mod stale_segments;
mod state;
mod stdin_forwarder;
mod supervisor;
mod tied;
mod watchdog;

pub use cli::{Options, command, normalise};
pub use error::Error;
pub use group::GRACE;
pub use helper::become_helper_if_asked;
pub use job::{Bind, Job};
pub use layout::{Host, Map, Nodes};
pub use outcome::{Cause, End, Outcome, RankOutcome};
pub use stale_segments::remove as remove_stale_segments;
pub use supervisor::run;
