//! Who polls for what arrives, who sleeps, and who is rung. No threads, no clock, no futex:
//! events go in, [`Orders`] and the next step of each thread come out.
//!
//! ```text
//!   callers   poll, yield ──▶ asleep ──▶ poll     they sleep on the bell
//!   helper    polls at intervals ──▶ sleeps on the bell, until its deadline
//!   watcher   parked ──▶ sleeps on the network's descriptor
//!   bell      armed: a sender rings the sleeper │ disarmed: a caller polls all the time
//! ```
//!
//! One of them always polls for what arrives, or is rung for it:
//!
//! - While callers poll, the helper looks at intervals whether they still do, each twice as long
//!   as the one before, up to a limit. After [`Limits::disarm_after`] polls the bell is disarmed,
//!   and senders needn't ring.
//! - When they no longer do, the helper arms the bell for itself and sleeps.
//! - A caller that sleeps arms the bell for itself, and wakes the helper when it returns.
//! - The watcher is parked while a caller polls and the network says that it is looked at.
//!
//! `tests/interleavings.rs` checks that for every order of the threads' steps;
//! `tests/golden/transitions.txt` lists every transition of [`Progress`].
//!
//! Order of use: [`Progress`] stands under a lock, its owner carries out the [`Orders`] of each
//! event before the lock is released. A caller counts its polls in [`Polling`], and in [`Wait`]
//! if it waits for something. A thread that is to sleep on the bell follows [`SleepStep`].
//!
//! Left to others: the bell itself and its memory barrier (`lintel-presence`), threads, the
//! lock and what a poll does (`lintel-runtime`).
#![no_std]
#![forbid(unsafe_code)]

mod backlog;
mod deferral;
mod machine;
mod polling;
mod sleep;
mod spin;
mod watcher;

pub use backlog::{Retries, RoomNext, RoomWait};
pub use deferral::Deferral;
pub use machine::{BellOrder, HelperNext, Interval, Limits, Orders, Progress, Sleeper};
pub use polling::{Polling, Wait, WaitNext};
pub use sleep::{RETRY, SLEEP_BEFORE_BARRIER, SleepStep};
pub use spin::SpinLimit;
pub use watcher::{WatcherLook, WatcherNext};
