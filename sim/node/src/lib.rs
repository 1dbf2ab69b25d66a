//! Simulated hosts: who computes when, and what interrupts it.
//!
//! ```text
//!   ┌──────────────────────────── node ─────────────────────────────┐
//!   │ Core ── work, traps, stretched by Noise     InterruptLine ◀── │ device
//!   │   │                                               │ enter     │
//!   │   └── copies ──▶ Bus ◀── copies of devices        ▼ Core      │
//!   └───────────────────────────────────────────────────────────────┘
//! ```
//!
//! - [`Noise`]: what an operating system takes from a core, by the clock or at
//!   random, from a stream of its own.
//! - [`Core`]: does one thing after the other; says when a piece of work is done,
//!   noise included.
//! - [`InterruptLine`]: gathers what a device reports, and says when the handler
//!   is entered.
//! - [`Bus`]: memory's bandwidth, shared evenly by the copies under way.
//!
//! None of them puts anything on an event queue: each returns when something is done, and
//! the world that owns them puts its own event there. What runs on a core, and
//! what an interrupt's handler does, is for others. All costs come in as
//! parameters.
//!
//! ```
//! use lintel_sim_kernel::{Duration, SimTime, Streams};
//! use lintel_sim_node::{Core, Noise, NoiseParameters, Placement};
//!
//! let noise = NoiseParameters {
//!     length: Duration::from_us(25),
//!     interval: Duration::from_us(1_000),
//!     placement: Placement::Periodic,
//! };
//! let stream = Streams::new(1).stream("node/0/core/0/noise");
//! let mut core = Core::new(Noise::new(noise, stream).unwrap());
//! // The work that noise leaves room for in an interval takes the interval.
//! let done = core.run(SimTime::START, Duration::from_us(975));
//! assert_eq!(done, SimTime::START + Duration::from_us(1_000));
//! ```
#![forbid(unsafe_code)]

mod bus;
mod core;
mod interrupt;
mod noise;

pub use bus::{Bus, BusParameters, Copy, Due};
pub use core::Core;
pub use interrupt::{InterruptLine, InterruptParameters};
pub use noise::{ConfigError, Noise, NoiseParameters, Placement};
