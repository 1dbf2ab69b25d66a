//! The messages between the supervisor and the launchers of ranks: calls within one
//! process, frames between machines.

use std::ffi::OsString;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::outcome::{End, RankOutcome};
use crate::plan::Plan;

/// What the supervisor asks of a launcher.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Write to the PMI connection of a rank.
    Pmi { rank: usize, bytes: Vec<u8> },
    /// Send the signal of this number to every rank and all that it started.
    Signal(i32),
    /// Write to the standard input of rank 0; answered by [`Report::InputTaken`].
    Input(Vec<u8>),
    /// Standard input has ended.
    InputEnd,
    /// Stop reading this stream's output, or continue.
    Hold { stream: Stream, hold: bool },
    /// Report what the processes of that job on this machine wait for; answered by
    /// [`Report::State`].
    State { job: String },
}

/// What a launcher reports to the supervisor.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// A rank wrote to its PMI connection.
    Pmi { rank: usize, bytes: Vec<u8> },
    /// A rank's PMI connection is closed.
    PmiClosed { rank: usize },
    /// A rank wrote to one of its streams.
    Output {
        rank: usize,
        stream: Stream,
        bytes: Vec<u8>,
    },
    /// No process holds that stream any more.
    OutputEnd { rank: usize, stream: Stream },
    /// A rank's process ended; its pipes may still hold output.
    Ended { rank: usize, outcome: RankOutcome },
    /// The agent of a node ended.
    AgentEnded { address: Ipv4Addr, end: End },
    /// What processes of the job wait for, in lines for a person.
    State(String),
    /// The last [`Request::Input`] was written: more may be sent.
    InputTaken,
}

/// What a backend reports to the supervisor.
pub(crate) enum BackendEvent {
    Report(Report),
    /// The host could start no rank.
    Failed {
        host: String,
        code: u8,
        text: String,
        ranks: Vec<usize>,
    },
    /// The host is unreachable; how its ranks ended is not known.
    Lost {
        host: String,
        why: String,
        ranks: Vec<usize>,
    },
}

/// An output stream of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Stream {
    Out,
    Err,
}

/// What the launcher sends to another machine.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToRemote {
    /// The first message: what to start.
    Start(Box<Start>),
    Request(Request),
    /// Shows that the supervisor is alive, if it sends nothing else.
    Heartbeat,
    /// The job is over: end what is left, and exit.
    Shutdown,
}

/// What another machine sends to the launcher.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromRemote {
    /// No rank could be started, and why; `code` is the launcher's exit code.
    Failed {
        code: u8,
        text: String,
    },
    Report(Report),
    /// Shows that this machine is alive, if it sends nothing else.
    Heartbeat,
    /// Nothing of the job is left here.
    Finished,
}

/// What another machine is to start.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) plan: Plan,
    /// The machine's node in the plan.
    pub(crate) node: usize,
    /// The launcher's working directory.
    pub(crate) directory: OsString,
}
