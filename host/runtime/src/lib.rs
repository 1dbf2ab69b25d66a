//! The only owner of locks, threads, clock and waiting: the "accelerated"
//! placement, where the engine lives in the process.
//!
//! ```text
//!   a call ──▶ Process ──lock──▶ Core { four interfaces, NAL, loopback }
//!                 │                    │ events, counts
//!                 └── Tables ◀─────────┘      read without the lock
//!   helper thread: sleeps on the bell, makes progress when no caller does
//! ```
//!
//! Progress is implicit. While a thread of the application polls, it moves the
//! messages; when none does, the helper sleeps and a sender's ring wakes it; in
//! between the helper looks every [`LEASE`], so that nobody need say that he
//! stops polling. No thread spins while it has nothing to do.
//!
//! Order of use: [`process`], [`Process::init`], [`Process::open`], then
//! [`Process::with`] for engine commands and the calls on queues and counters;
//! [`Process::close`], [`Process::fini`].
#![forbid(unsafe_code)]

mod calls;
mod client;
mod commands;
mod core;
mod effects;
mod helper;
mod landing;
mod library;
mod log;
mod looking;
mod owner;
mod process;
mod queue;
mod remote;
mod resources;
mod secret;
mod settings;
mod tables;
mod waiting;
mod watcher;
mod ways;

pub use client::{Client, Session};
pub use helper::LEASE;
pub use library::Library;
pub use lintel_bridge::Taken;
pub use lintel_nal_udp::Model;
pub use log::{Level, log, log_level};
pub use owner::{Itself, Owner};
pub use process::{Effects, Process, process};
pub use resources::{Placement, Published, published};
pub use settings::{Between, Mode, SETTINGS, Setting, SettingError, Settings};

/// The engine over real memory.
pub type Interface = lintel_engine4::Interface<lintel_claim::Claim>;
