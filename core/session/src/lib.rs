//! A session between two processes: which incarnation of the peer is the present one, whether it is
//! still alive, and when a short message to it waits for more. No sockets, no clock, no queues.
//!
//! ```text
//!   a header names its sender's incarnation ──▶ History::classify ──▶ Current   handle it
//!                                                                   ├▶ First     establish
//!                                                                   ├▶ Successor retire, then establish
//!                                                                   └▶ Stale     drop it
//!   something is awaited from it ──▶  Liveness ──▶ quiet_since: probe it; silent_since, probes: give it up
//!   a message is to be sent      ──▶  Coalescing ──▶ may_wait: leave it; else send all that wait
//! ```
//!
//! A process that ends and starts again under the same name has a newer *incarnation*: a
//! larger number. Whatever an older one has sent is stale, however late it arrives. Numbers
//! come from the clock, which may be set back: [`Incarnation::follow`] is the rule that puts
//! a process behind a predecessor with a larger number.
//!
//! Order of use: [`History::classify`] for each header; [`History::establish`] for the first
//! header of an incarnation, [`History::retire`] when it is lost or followed. A retired
//! incarnation is never current again. [`Liveness`] is asked by the clock.
//!
//! Left to others: sequence numbers and windows, which differ between a datagram protocol
//! that retransmits (`lintel-reliable`) and a transport that doesn't lose (`nal-ofi`), and
//! when silence is too long.
#![no_std]
#![forbid(unsafe_code)]

mod coalescing;
mod history;
mod incarnation;
mod liveness;

pub use coalescing::{Coalescing, Waiting};
pub use history::{History, Sender};
pub use incarnation::{CLOCK_STEP_BITS, Incarnation};
pub use liveness::Liveness;
