//! One rank: how it is started, and what the launcher holds of it.

use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::io::{FdFlags, fcntl_setfd};

use crate::job::RankOutcome;
use crate::layout::Seat;
use crate::output::Lines;
use crate::plan::Plan;
use crate::process::{Process, tied_command};

/// A started rank.
pub(crate) struct Rank {
    pub(crate) process: Process,
    /// The launcher's end of the PMI connection, while it is open.
    pub(crate) pmi: Option<UnixStream>,
    /// Answers that the connection did not take yet.
    pub(crate) pmi_held: Vec<u8>,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    /// How the process ended, once it has.
    pub(crate) outcome: Option<RankOutcome>,
}

/// One of a rank's output streams.
pub(crate) struct Stream {
    /// While a process holds the other end.
    pub(crate) pipe: Option<OwnedFd>,
    pub(crate) lines: Lines,
}

impl Rank {
    /// Starts the rank that sits at `seat`.
    pub(crate) fn start(plan: &Plan, seat: &Seat) -> io::Result<Rank> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        // The rank alone inherits its end: it is closed below, before another starts.
        fcntl_setfd(&theirs, FdFlags::empty())?;
        let mut process = Process::start(&mut command_of(plan, seat, &theirs))?;
        drop(theirs);
        let job = plan.job;
        let lines = || Lines::new(seat.rank, job.ranks, job.label);
        let stdout = process.take_output().map(OwnedFd::from);
        let stderr = process.take_errors().map(OwnedFd::from);
        Ok(Rank {
            process,
            pmi: Some(ours),
            pmi_held: Vec::new(),
            stdout: Stream {
                pipe: stdout,
                lines: lines(),
            },
            stderr: Stream {
                pipe: stderr,
                lines: lines(),
            },
            outcome: None,
        })
    }

    /// Learns how the process ended.
    pub(crate) fn on_exit(&mut self) {
        self.outcome = self.process.ended().map(RankOutcome::from);
    }
}

fn command_of(plan: &Plan, seat: &Seat, socket: &UnixStream) -> Command {
    let name = format!("rank {}", seat.rank);
    let mut command = tied_command(&name, &plan.job.program, plan.core_of(seat));
    command.args(&plan.job.args);
    plan.set_common_variables(&mut command);
    command
        .envs(plan.layout.variables(seat))
        .env("PMI_FD", socket.as_raw_fd().to_string());
    command
        .stdin(input_of(seat.rank))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Rank 0 inherits standard input. A terminal's it gets through a pipe: the
/// kernel stops a process outside the foreground group that reads a terminal.
fn input_of(rank: usize) -> Stdio {
    match rank {
        0 if io::stdin().is_terminal() => Stdio::piped(),
        0 => Stdio::inherit(),
        _ => Stdio::null(),
    }
}
