//! yod starts the ranks of a parallel program on this machine, serves them
//! PMI-1, passes their output through, and sees to it that all of them end.
//!
//! ```text
//!   yod ── PMI-1 server, signals, output, exit codes        one loop, no threads
//!    ├─ guard            ends the job should yod be killed, then leaves
//!    ├─ agent of node 0  in generic placement: before the ranks, after them
//!    ├─ rank 0           own process group, own socket (PMI_FD), own pipes
//!    └─ rank 1 …
//! ```
//!
//! What the ranks say to each other through PMI is `lintel-pmi`'s; what they
//! say through Portals is not seen here.
//!
//! 1. A binary that starts jobs calls [`become_helper_if_asked`] first of all:
//!    ranks and guard begin as copies of the running binary.
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
mod cli;
mod guard;
mod helper;
mod job;
mod layout;
mod leftovers;
mod output;
mod plan;
mod process;
mod program;
mod rank;
mod secret;
mod signals;
mod supervisor;

pub use cli::{Options, command, normalise};
pub use helper::become_helper_if_asked;
pub use job::{Bind, Cause, End, Error, Job, Outcome, RankOutcome};
pub use layout::{Map, Nodes};
pub use leftovers::remove as remove_leftovers;
pub use supervisor::{GRACE, run};
