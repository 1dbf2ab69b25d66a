//! The agent of a node: one process per node and user that runs the engines of
//! the processes in generic placement (`PTL_MODE=generic`).
//!
//! ```text
//!   client A ──socket──▶ ┌ agent ────────────────────────────────────┐
//!      ▲ └───region────▶ │ session A: thread, library, helper ── NAL ├──▶ other processes,
//!      └───copies─────── │ session B: thread, library, helper ── NAL │    other nodes
//!   client B ──────────▶ └───────────────────────────────────────────┘
//! ```
//!
//! To peers a client looks like any process: it has a segment, a process identifier,
//! an endpoint on the network. But the agent writes its headers, with the user that
//! the system reports, and moves its bytes, by cross-memory copies that the system
//! checks. What a client held is released when it ends, however it ends.
//!
//! Left to others: shared region, mailbox and listener ([`lintel_bridge`]); what a session does
//! ([`lintel_runtime::Session`]).
//!
//! Order of use: [`Options::parse`](clap::Parser::parse), [`Agent::open`],
//! [`Agent::announce`], then [`Agent::run`], which returns when a signal ends the process.
#![forbid(unsafe_code)]

mod agent;
mod lock;
mod secret;

pub use agent::{Agent, OpenError};

use std::net::Ipv4Addr;

/// Has the engines of this node's processes that run with PTL_MODE=generic.
///
/// It writes "ready" on standard output when it listens, and ends on SIGTERM. Its
/// clients are processes of the same user, job (LINTEL_JOB) and node; they need no
/// network and no job secret of their own. The secret comes by --secret-stdin, from
/// LINTEL_SECRET or from PTL_SECRET_FILE, in this order. PTL_NAL, PTL_CONN, PTL_LOG and the other
/// variables mean the same as in a process without an agent, and hold for all clients.
#[derive(Clone, Debug, clap::Parser)]
#[command(name = "lintel-agent", version)]
pub struct Options {
    /// The node's address, as PTL_IFACE; its clients have the same there
    #[arg(long, value_name = "ADDRESS")]
    pub iface: Option<Ipv4Addr>,

    /// Read the job's secret from standard input: one line of 64 hexadecimal digits
    #[arg(long)]
    pub secret_stdin: bool,
}
