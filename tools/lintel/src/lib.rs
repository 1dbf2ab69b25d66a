//! The command `lintel`: information, measurement and plots of Portals.
//!
//! It talks to Portals through the C API, as most users do, for collective operations
//! through the safe Rust interface, and compares what it measures with what the machine
//! itself can do.
//!
//! ```text
//!   cli ── info ── resources         interfaces, limits, variables; running processes
//!       ├─ doctor                  what keeps programs from running, and how to mend it
//!       ├─ perf ── team ── harness   two pinned processes, paired rounds
//!       │    │      ├─ limits        what the machine can do
//!       │    │      └─ one module a benchmark, over `portals`
//!       │    └── multi_pair ── pattern  two nodes of several processes, groups in turns
//!       ├─ plot ── report            reads what perf wrote
//!       ├─ compare ── report         two of them
//!       └─ sim ── lintel-sim-*       simulated machines, which touch nothing of this one
//! ```
//!
//! Raw pointers live in [`raw`]; nothing else here is unsafe.

#![deny(unsafe_code)]

// Defines the functions that `portals` calls.
extern crate portals as _;

pub mod cli;
mod compare;
mod connection;
mod doctor;
mod error;
mod harness;
pub mod info;
pub mod limits;
pub mod machine;
pub mod models;
mod output;
pub mod perf;
pub mod plot;
pub mod portals;
pub mod raw;
pub mod report;
mod resources;
pub mod sim;
mod stats;
mod team;
mod timeline;
mod top;
mod trace_events;

pub use cli::command;
pub use error::{Error, Result};
