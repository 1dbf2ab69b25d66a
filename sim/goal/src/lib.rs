//! Schedules of computing and messages, and the hosts that execute them.
//!
//! ```text
//!   text of GOAL ──▶ parse ─┐            ┌─────────── Machine ────────────┐
//!   patterns ───────────────┼─▶ Goal ──▶ │ Hosts: L o g O G S, cpus, nics │
//!   core/collectives ───────┘            │    │                   ▲       │
//!                                        │    ▼                   │       │
//!                                        │ Network: LogGp, or any Fabric  │
//!                                        └────────────────────────────────┘
//! ```
//!
//! A [`Goal`] says what each rank sends, receives and computes, and what waits for
//! what. It comes from the textual form that LogGOPSim and ATLAHS read
//! ([`Goal::parse`]), from a pattern ([`patterns`]), or from a collective operation
//! ([`Goal::of_collective`]).
//!
//! The hosts are those of LogGOPS (Hoefler, Schneider, Lumsdaine, "LogGOPSim –
//! Simulating Large-Scale Applications in the LogGOPS Model", 2010): to send takes a
//! processor `o` and `O` a byte, a network interface `g` and `G` a byte; messages
//! above `S` wait for their receiver. [`LogGp`] is the network of that model, where
//! each message takes `L`; [`Over`] lets any [`lintel_sim_fabric::Fabric`] carry
//! messages in its place. Noise stretches what hosts do.
//!
//! [`Machine::unfinished`] reports what a schedule leaves undone; it is never
//! taken for an end.
//!
//! Order of use: make a goal, [`Goal::compile`], [`Machine::new`], [`Machine::start`],
//! run the simulation, look at [`Machine::ends`].
//!
//! ```
//! use lintel_sim_goal::{Goal, Hosts, LogGp, run};
//! use lintel_sim_kernel::Duration;
//!
//! let text = "num_ranks 2
//! rank 0 {
//!   ask: send 8b to 1 tag 7
//!   answer: recv 8b from 1 tag 7
//!   answer requires ask
//! }
//! rank 1 {
//!   asked: recv 8b from 0 tag 7
//!   reply: send 8b to 0 tag 7
//!   reply requires asked
//! }";
//! let goal = Goal::parse(text).unwrap();
//! let hosts = Hosts {
//!     overhead: Duration::from_ns(100),
//!     ..Hosts::FREE
//! };
//! let wire = LogGp::new(Duration::from_ns(800));
//! let done = run(&goal, hosts, wire).unwrap();
//! // There and back: to send, the way, to receive.
//! assert_eq!(done.world.end(), Duration::from_ns(2 * (100 + 800 + 100)));
//! ```
#![forbid(unsafe_code)]

mod collective;
mod compiled;
mod goal;
mod hosts;
mod machine;
mod matching;
mod network;
mod parse;
pub mod patterns;
mod spans;

pub use compiled::{Compiled, Cycle};
pub use goal::{Act, Goal, Label, Operation, Order, Rank};
pub use hosts::Hosts;
pub use machine::{Machine, MachineEvent, Unfinished, run};
pub use network::{Envelope, LogGp, Network, Over};
pub use parse::{ParseError, without_comments};
pub use spans::{Observer, Span, Track};
