//! One rank: how it is started, and what its launcher holds of it.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::layout::RankSlot;
use crate::message::{Report, Stream};
use crate::plan::Plan;
use crate::portals3;
use crate::process::Process;
use crate::tied::tied_command;

/// A rank's process, with this end of its pipes and its PMI connection.
pub(crate) struct Rank {
    pub(crate) number: usize,
    pub(crate) process: Process,
    /// Our end of the PMI connection, while it is open.
    pub(crate) pmi: Option<UnixStream>,
    /// Answers that aren't written to the connection yet.
    pub(crate) pmi_backlog: Vec<u8>,
    /// Our ends of its output streams, while a process holds the others.
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
    /// Its end has been reported.
    pub(crate) ended: bool,
}

/// Where a rank's standard input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The launcher's own standard input.
    Inherited,
    /// A pipe that the launcher writes to as requested.
    Piped,
    Nothing,
}

impl Rank {
    /// Starts the rank of `slot`, bound to `core` if one is given.
    pub(crate) fn start(
        plan: &Plan,
        slot: &RankSlot,
        core: Option<usize>,
        input: Input,
    ) -> io::Result<Rank> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        // The rank alone inherits its end: it is closed below, before another starts.
        fcntl_setfd(&theirs, FdFlags::empty())?;
        let mut command = command_of(plan, slot, core, &theirs);
        command.stdin(match input {
            Input::Inherited => Stdio::inherit(),
            Input::Piped => Stdio::piped(),
            Input::Nothing => Stdio::null(),
        });
        let mut process = Process::start(&mut command)?;
        drop(theirs);
        Ok(Rank {
            number: slot.rank,
            pmi: Some(ours),
            pmi_backlog: Vec::new(),
            stdout: process.take_output().map(OwnedFd::from),
            stderr: process.take_errors().map(OwnedFd::from),
            process,
            ended: false,
        })
    }

    /// Reads PMI requests; to be called when its connection is readable.
    pub(crate) fn on_pmi_readable(&mut self, emit: &mut impl FnMut(Report)) {
        let Some(mut stream) = self.pmi.as_ref() else {
            return;
        };
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(count @ 1..) => emit(Report::Pmi {
                rank: self.number,
                bytes: bytes[..count].to_vec(),
            }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(0) | Err(_) => self.on_pmi_closed(emit),
        }
    }

    /// Writes the answers that the connection takes.
    pub(crate) fn flush_pmi(&mut self, emit: &mut impl FnMut(Report)) {
        let Some(mut stream) = self.pmi.as_ref() else {
            return self.pmi_backlog.clear();
        };
        while !self.pmi_backlog.is_empty() {
            match stream.write(&self.pmi_backlog) {
                Ok(count) => drop(self.pmi_backlog.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.on_pmi_closed(emit),
            }
        }
    }

    fn on_pmi_closed(&mut self, emit: &mut impl FnMut(Report)) {
        self.pmi = None;
        emit(Report::PmiClosed { rank: self.number });
    }

    /// Reads once from one of its streams.
    pub(crate) fn on_output(&mut self, stream: Stream, emit: &mut impl FnMut(Report)) {
        let rank = self.number;
        let pipe = match stream {
            Stream::Out => &mut self.stdout,
            Stream::Err => &mut self.stderr,
        };
        let Some(fd) = pipe else { return };
        let mut bytes = [0; 32768];
        match rustix::io::read(fd, &mut bytes[..]) {
            Ok(count @ 1..) => emit(Report::Output {
                rank,
                stream,
                bytes: bytes[..count].to_vec(),
            }),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Ok(0) | Err(_) => {
                *pipe = None;
                emit(Report::OutputEnd { rank, stream });
            }
        }
    }

    /// Records how the process ended.
    pub(crate) fn on_exit(&mut self, emit: &mut impl FnMut(Report)) {
        if let Some(outcome) = self.process.ended().filter(|_| !self.ended) {
            self.ended = true;
            let rank = self.number;
            emit(Report::Ended { rank, outcome });
        }
    }
}

fn command_of(plan: &Plan, slot: &RankSlot, core: Option<usize>, socket: &UnixStream) -> Command {
    let name = format!("rank {}", slot.rank);
    let mut command = tied_command(&name, &plan.program, core);
    command.args(&plan.args);
    plan.set_variables_of_ranks(&mut command);
    command
        .envs(plan.layout.variables(slot))
        .envs(portals3::variables(plan, slot))
        .env("PMI_FD", socket.as_raw_fd().to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
