//! The lock around the engine, the threads that make progress, and waiting; and which
//! process runs the engine.
//!
//! ```text
//!   a call ──▶ Process ──accelerated──▶ Library ──lock──▶ Core { four interfaces, NAL, loopback }
//!                 │                        │                │ events, counts
//!                 │                        └── Tables ◀─────┘      read without the lock
//!                 └──generic──▶ Remote ══ lintel-bridge ══▶ Session { Library of a Client }
//!                              (here, waits)                (in the agent)
//!   helper thread: sleeps on the bell, makes progress when no caller does
//! ```
//!
//! Progress is implicit. While a thread of the application polls, it moves the
//! messages; when none does, the helper sleeps and a sender's doorbell wakes it; in
//! between the helper looks after [`Limits::interval`], and ever later while callers go on
//! polling, so that they needn't announce that they stop. No thread of the library spins while
//! it has nothing to do. `lintel-progress` decides, this crate carries out.
//!
//! [`Limits::interval`]: lintel_progress::Limits::interval
//!
//! An engine has an [`Owner`], the process whose memory its spans name: [`LocalProcess`]
//! in the accelerated placement, a [`Client`] of the agent in the generic one. All
//! code between the calls and the NAL is the same for both, and chosen when it is
//! compiled.
//!
//! Portals 3.3 is a second protocol over the same lock, threads and transports: a library of
//! [`Portals3Process`] has its engine beside that of Portals 4.
//!
//! Order of use: [`process`], [`Process::init`], [`Process::open`], then the calls by
//! their names; [`Process::close`], [`Process::fini`]. In an agent: a [`Session`] for
//! each client.
#![forbid(unsafe_code)]

mod acknowledgements;
mod arrivals;
mod barriers;
mod calls;
mod capture;
mod carry_out;
mod client;
mod commands;
mod core;
mod delivery;
mod direct;
mod direct_calls;
mod direct_entries;
mod direct_starts;
mod effects;
mod exchange;
mod grants;
mod helper;
mod key;
mod landing;
mod landing_granted;
mod landing_lent;
mod launcher_waits;
mod lent_landings;
mod lent_replies;
mod library;
mod lifecycle;
mod loans;
mod locked;
mod log;
mod memory;
mod mover;
mod observed;
mod orphans;
mod owner;
mod portals3;
mod prepared;
mod prepared_landings;
mod prepared_sends;
mod process;
mod protocol;
mod queue;
mod queue_calls;
mod remote;
mod remote_cache;
mod resources;
mod secret;
mod send_copy;
mod send_starts;
mod settings;
mod snapshot;
mod staged;
mod staged_sends;
mod staging_pool;
mod stamps;
mod streams;
mod tables;
#[cfg(test)]
mod testing;
mod thread;
mod timeline;
mod transport;
mod transports;
mod variables;
mod waiting;
mod wakeup;
mod watcher;

pub use barriers::register_for_barriers;
pub use client::{Client, Session};
pub use key::key_of;
pub use library::Library;
pub use lintel_bridge::{Taken, Taken3};
pub use lintel_nal_shm::{Costs, SystemCopy};
pub use lintel_nal_udp::Model;
pub use log::{Level, log, log_level};
pub use owner::{LocalProcess, Owner};
pub use portals3::{
    EntryWith, Handler, Identity, MAX_EVENTS, Opening, Owner3, Portals3Process, Process3, fini3,
    process3,
};
pub use prepared::Asked;
pub use process::{Process, process};
pub use resources::{EndpointCounts, Placement, Published, publish_endpoint, published};
pub use secret::{MalformedSecret, Secret};
pub use settings::{Between, LAUNCHERS_SETTINGS, Mode, SETTINGS, Setting, SettingError, Settings};
pub use thread::spawn;

/// The engine over real memory.
pub type Interface = lintel_engine4::Interface<lintel_claim::Claim>;
