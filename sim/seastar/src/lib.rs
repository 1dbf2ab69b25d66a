//! The simulated SeaStar machine: Cray's XT3 to XT5, whose NIC has a processor.
//!
//! ```text
//!   ┌─────────────── host ───────────────┐      ┌──────────────── SeaStar ────────────────┐
//!   │ process ── trap ──▶ kernel ────────┼─HT──▶│ mailbox ──▶ firmware ──▶ TX queue ──────┼──▶ torus
//!   │    ▲                  ▲            │      │                │            PIO ────────┼──▶
//!   │    └── event queue ───┴─ ring ◀────┼─HT───│── interrupt ◀──┴── CAM, RX queues ◀─────┼───
//!   └────────────────────────────────────┘      └─────────────────────────────────────────┘
//! ```
//!
//! The engine of Portals 3.3 that carries real messages, `lintel-engine3`, sits in the
//! simulated kernel ([`Mode::Generic`]) or in the simulated firmware ([`Mode::Accelerated`]);
//! it counts what it does, and a [`Profile`] prices it. Events come as the papers' did: a
//! START event with a message's header, an END event once its bytes are in place or have
//! left, each of the two upon an interrupt of its own unless the bytes ride in the header's
//! packet. [`Mode::Cci`] is the third firmware, without matching. Connections, numbers,
//! acknowledgements and refusals follow `lintel-cci`, the rules of `libcci.so.2`; buffers,
//! credits and commands are those of S4's prototype.
//!
//! Every constant of a machine stands in [`profile`], with its source. Networks are
//! `lintel-sim-fabric`'s; a network's first and last links stand for the TX and RX
//! engines.
//!
//! Simplifications: a link's retry delays a message as a whole; a source that was swapped
//! out of the CAM is swapped in again once a message, not once a packet; the RX FIFO fills
//! only while the RX engine stands still, and otherwise the network waits for a slow engine;
//! of what the host does only the end of an interrupt waits for memory that the engines use;
//! the firmware's 15 windows into host memory (S4 II) are as many as it needs; an area that CCI's
//! firmware closes is not reported by an event; CCI's connections are
//! made before the clock starts, and no send of theirs times out; the protocols that protect
//! the CAM ([`Protection`]) are the least that does, as no document describes the machine's.
//!
//! Order of use: [`Machine::new`], [`Machine::add`] each process with its
//! [`Program`], [`Machine::into_simulation`], run; [`Machine::unfinished`] must be
//! empty then. The papers' benchmarks are in [`workload`], their points and
//! curves in [`figures`].
//!
//! ```
//! use lintel_sim_seastar::workload::{Case, Way, ping_pong};
//! use lintel_sim_seastar::{Mode, profile::RED_STORM_2005};
//!
//! let put = |profile, mode| ping_pong(&Case::new(profile, mode), Way::Put, 0, 0);
//! let generic = put(RED_STORM_2005, Mode::Generic)?;
//! let accelerated = put(RED_STORM_2005, Mode::Accelerated)?;
//! assert!(accelerated < generic);
//! // One constant is changed: what if interrupts were free?
//! let free = RED_STORM_2005.with("interrupt_entry", 0)?.with("interrupt_exit", 0)?;
//! assert!(put(free, Mode::Generic)? < generic);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod context;
pub mod figures;
mod machine;
mod message;
mod nic;
mod node;
pub mod profile;
mod trace;
pub mod workload;

pub use machine::{Machine, MachineEvent, Protection, Setting};
pub use message::Class;
pub use nic::{OutOfMemory, Sram};
pub use node::{
    Action, Exposure, Mode, NodeReport, Notice, Placement, Program, Refused, Setup, any_process,
    get, put,
};
pub use profile::Profile;
pub use trace::{Observer, Span, Track};
