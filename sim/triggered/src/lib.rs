//! The machine of the first studies of triggered operations: hosts, interfaces that
//! carry posted operations out, a torus.
//!
//! ```text
//!   ┌────────────────────── node ──────────────────────┐
//!   │ host ── commands ──▶ bus ──▶ queue ──▶ Portals   │ ══▶ router ══▶ torus
//!   │  ▲  program, noise           16 ns     unit:     │
//!   │  └────────── counts ◀───────────────── counters, │ ◀══
//!   │                                        triggered │
//!   └──────────────────────────────────────────────────┘
//! ```
//!
//! It is the machine of the public simulator `portals4_sm` (Hemmert, Barrett,
//! Underwood, EuroMPI 2010 and HotI 2011), with its constants in [`timing`], and gives
//! its times to the nanosecond if nothing disturbs the hosts: `tests/published.rs`.
//!
//! - A host does the steps of a [`program`], one after the other, as far as noise lets
//!   it; an interface's parts work at the same time.
//! - [`Machine`] simulates every part and each packet over each link of any fabric;
//!   [`CoarseMachine`] adds up what happens between two messages, for large machines and
//!   many operations. Both agree if packets don't meet: `tests/agreement.rs`.
//! - [`Case`] measures an operation; [`curves`] gives the tables of the studies.
//!
//! Only time is simulated: that schedules give right results is tested where they
//! are made, in `lintel-collectives`. Three things of the model are left out, since
//! they never show in its times: 128 slots for commands, more than a host fills while
//! one comes back; a limit of four packets on the way out, which each reply raises by
//! one; and the walk through match lists, which costs it nothing. One is mended: there,
//! hosts that send and receive themselves feel no noise while they wait.
//!
//! Order of use: build a [`Case`], or a [`MachineSetup`] and programs; [`Case::measure`], or
//! [`Series::advance`] once an operation. A [`Machine`] over another fabric: [`operate`].
//!
//! ```
//! use lintel_sim_kernel::Duration;
//! use lintel_sim_triggered::{Algorithm, By, curves};
//!
//! let doubling = Algorithm::new(By::Interfaces, None);
//! let point = curves::undisturbed(1, doubling, 6).unwrap();
//! assert_eq!((point.nodes, point.took.max), (64, Duration::from_ns(4_215)));
//! ```
#![forbid(unsafe_code)]

mod coarse;
pub mod curves;
mod host;
mod interface;
mod machine;
mod measure;
pub mod program;
mod series;
pub mod timing;
mod trace;

pub use coarse::{CoarseMachine, MessageArrived};
pub use machine::{Inside, Machine, MachineEvent, operate};
pub use measure::{Algorithm, By, Case, ConfigError, Entry, NOISES, Order, cube};
pub use series::{Detail, MachineSetup, Series};
pub use timing::Timing;
pub use trace::{Observer, Span, Track};
