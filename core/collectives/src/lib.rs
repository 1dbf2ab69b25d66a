//! Collective operations as data: what each rank sends when which counter is reached.
//!
//! A [`Collective`] says what is to be done and by which algorithm; its
//! [`Schedule`] for a rank is a list of steps, each of which may wait for a counter
//! and then sends bytes of the rank's own memory to a rank's counter, or counts at
//! a counter of its own:
//!
//! ```text
//!   rank 0                            rank 1
//!   Input ──combine──▶ counter 1 ◀──combine── Input      round 0
//!                      counter 1 is 2: ──▶ …             round 1
//! ```
//!
//! Nothing here sends, waits or computes. The same steps can be posted whole as
//! triggered operations, so that a network interface carries them out (`PtlTriggeredPut`,
//! `PtlTriggeredAtomic`, `PtlTriggeredCTInc`), or be gone through by a host, one after
//! the other. [`interpreter`] runs them in one memory, in any order that a network
//! may choose.
//!
//! # One operation after the other
//!
//! Operations of one collective are numbered: see [`Epoch`]. Each second one has
//! memory and counters of its own, so that an early message of the next operation
//! meets nothing of the present one. No message can be earlier still: who has ended
//! an all-reduce or a barrier knows that all have begun it, and elsewhere a sender
//! waits until the receiver has released the memory. A caller that gives each operation
//! memory and counters of its own for a while does without: [`Reuse::ByCaller`].
//!
//! Order of use, for each rank:
//!
//! 1. Make a collective and its [`Collective::schedule`]. Provide twice
//!    [`Schedule::slot_bytes`] of memory, with [`Schedule::resets`] filled with the
//!    operation's identity, and twice [`Schedule::counters`].
//! 2. For each operation, post or go through [`Schedule::steps`].
//! 3. Wait for [`Schedule::done`], and until what was sent has left.
//! 4. Carry out [`Schedule::stores`]; fill [`Schedule::resets`] again; send
//!    [`Schedule::releases`]. Only then begin the next operation.
//!
//! ```
//! use lintel_collectives::{Algorithm, Collective, Epoch, Shape};
//!
//! let shape = Shape { ranks: 6, bytes: 8 };
//! let allreduce = Collective::allreduce(shape, Algorithm::RecursiveDoubling).unwrap();
//! let schedule = allreduce.schedule(0);
//! for step in &schedule.steps {
//!     let Some(when) = step.when else { continue };
//!     // The counter, and what it is to reach, in the fifth operation.
//!     let _ = schedule.threshold(when, Epoch(4));
//! }
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod algorithms;
mod collective;

pub mod interpreter;
mod schedule;
mod tree;

pub use collective::{Algorithm, Collective, ConfigError, Order, Reuse, Shape};
pub use schedule::{
    Act, Counter, CounterId, Epoch, Memory, Movement, Schedule, Span, Step, Store, Target,
    Threshold, Transfer, When,
};
pub use tree::{Branch, Family, Tree};
