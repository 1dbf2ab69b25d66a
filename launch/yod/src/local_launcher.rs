//! The ranks of one machine, with their agents: started together, polled together,
//! ended together.
//!
//! It makes no decisions: it carries out requests and reports what happens, whether the
//! supervisor is in this process or on another machine.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::process::Signal;

use crate::agents::Agents;
use crate::error::Error;
use crate::group::wait_until_gone;
use crate::layout::RankSlot;
use crate::message::{Report, Request, Stream};
use crate::plan::{Plan, Scope};
use crate::rank::{Input, Rank};
use crate::resources::{cores_for, raise_descriptor_limit};
use crate::signals::Signals;
use crate::state;
use crate::watchdog::Watchdog;

/// The running ranks of one machine.
pub(crate) struct LocalLauncher {
    ranks: Vec<Rank>,
    agents: Agents,
    input: Option<InputPipe>,
    /// Standard output is not read until the supervisor takes more.
    hold_out: bool,
    hold_err: bool,
}

/// What a descriptor is polled for; ranks by their index in the launcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Pmi(usize),
    Output(usize, Stream),
    Exit(usize),
    Agents,
    Input,
}

impl LocalLauncher {
    /// Starts the processes of `scope`, agents first. `input` is where rank 0's
    /// standard input comes from, if rank 0 is among them.
    ///
    /// # Errors
    /// The first process that can't be started; none is left then.
    pub(crate) fn start(
        plan: &Plan,
        scope: Scope,
        input: Input,
        watchdog: &mut Watchdog,
        signals: &Signals,
    ) -> Result<LocalLauncher, Error> {
        let slots: Vec<&RankSlot> = plan.slots(scope).collect();
        // A socket, two pipes and a process descriptor each.
        raise_descriptor_limit(4 * slots.len());
        let cores = cores_for(plan.bind);
        let agents = Agents::start(plan, scope, watchdog, signals)?;
        let mut ranks = Vec::with_capacity(slots.len());
        for (index, slot) in slots.into_iter().enumerate() {
            let core = cores.get(index % cores.len().max(1)).copied();
            let input = if slot.rank == 0 {
                input
            } else {
                Input::Nothing
            };
            let rank = Rank::start(plan, slot, core, input).map_err(|error| Error::System {
                what: "starting a rank",
                error,
            })?;
            watchdog.on_group(rank.process.group());
            ranks.push(rank);
        }
        let input = ranks.iter_mut().find_map(|rank| rank.process.take_input());
        Ok(LocalLauncher {
            ranks,
            agents,
            input: input.map(|to| InputPipe {
                to: to.into(),
                held: Vec::new(),
            }),
            hold_out: false,
            hold_err: false,
        })
    }

    /// What to poll: then call [`LocalLauncher::on_ready`]. `read_output` is whether there is room
    /// for more output.
    pub(crate) fn interests(&self, read_output: bool) -> Vec<(Source, BorrowedFd<'_>, PollFlags)> {
        let mut all = Vec::with_capacity(4 * self.ranks.len() + 2);
        let read = PollFlags::IN;
        for (index, rank) in self.ranks.iter().enumerate() {
            if let Some(pmi) = &rank.pmi {
                // No requests are read from a rank that doesn't read its answers.
                let flags = match rank.pmi_backlog.is_empty() {
                    true => read,
                    false => PollFlags::OUT,
                };
                all.push((Source::Pmi(index), pmi.as_fd(), flags));
            }
            let out = rank
                .stdout
                .as_ref()
                .filter(|_| read_output && !self.hold_out);
            let err = rank
                .stderr
                .as_ref()
                .filter(|_| read_output && !self.hold_err);
            for (stream, pipe) in [(Stream::Out, out), (Stream::Err, err)] {
                all.extend(pipe.map(|fd| (Source::Output(index, stream), fd.as_fd(), read)));
            }
            if !rank.ended {
                all.push((Source::Exit(index), rank.process.exit.as_fd(), read));
            }
        }
        let agents = self.agents.descriptors();
        all.extend(agents.map(|fd| (Source::Agents, fd, read)));
        let input = self.input.as_ref().filter(|input| !input.held.is_empty());
        all.extend(input.map(|input| (Source::Input, input.to.as_fd(), PollFlags::OUT)));
        all
    }

    /// Handles a ready descriptor, and reports what came of it.
    pub(crate) fn on_ready(
        &mut self,
        source: Source,
        flags: PollFlags,
        emit: &mut impl FnMut(Report),
    ) {
        match source {
            Source::Pmi(index) if flags.contains(PollFlags::OUT) => {
                self.ranks[index].flush_pmi(emit)
            }
            Source::Pmi(index) => self.ranks[index].on_pmi_readable(emit),
            Source::Output(index, stream) => self.ranks[index].on_output(stream, emit),
            Source::Exit(index) => self.ranks[index].on_exit(emit),
            Source::Agents => {
                while let Some((address, end)) = self.agents.on_readable() {
                    emit(Report::AgentEnded { address, end });
                }
            }
            Source::Input => self.on_input_writable(emit),
        }
    }

    /// Carries out a request of the supervisor.
    pub(crate) fn on_request(&mut self, request: Request, emit: &mut impl FnMut(Report)) {
        match request {
            Request::Pmi { rank, bytes } => {
                let mut ranks = self.ranks.iter_mut();
                if let Some(rank) = ranks.find(|other| other.number == rank) {
                    rank.pmi_backlog.extend_from_slice(&bytes);
                    rank.flush_pmi(emit);
                }
            }
            Request::Signal(number) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    self.signal(signal);
                }
            }
            Request::Input(bytes) => {
                if let Some(input) = &mut self.input {
                    input.held = bytes;
                }
            }
            Request::InputEnd => self.input = None,
            Request::State { job } => emit(Report::State(state::of_job(&job))),
            Request::Hold { stream, hold } => match stream {
                Stream::Out => self.hold_out = hold,
                Stream::Err => self.hold_err = hold,
            },
        }
    }

    /// Ends whatever is left, agents last.
    pub(crate) fn finish(mut self, grace: Duration) {
        self.signal(Signal::KILL);
        self.ranks.iter_mut().for_each(|rank| rank.process.reap());
        let groups: Vec<_> = self.ranks.iter().map(|rank| rank.process.group()).collect();
        wait_until_gone(&groups, EXIT_TIMEOUT);
        self.agents.end(grace);
    }

    fn signal(&self, signal: Signal) {
        for rank in &self.ranks {
            rank.process.signal(signal);
        }
    }

    fn on_input_writable(&mut self, emit: &mut impl FnMut(Report)) {
        let Some(input) = &mut self.input else { return };
        // No more than a writable pipe takes at once.
        let piece = &input.held[..input.held.len().min(4096)];
        match rustix::io::write(&input.to, piece) {
            Ok(count) => drop(input.held.drain(..count)),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The reading end is closed, so no more is asked for.
            Err(_) => self.input = None,
        }
        if self
            .input
            .as_ref()
            .is_some_and(|input| input.held.is_empty())
        {
            emit(Report::InputTaken);
        }
    }
}

/// The writing end of rank 0's standard input, and what it has not taken yet.
struct InputPipe {
    to: OwnedFd,
    held: Vec<u8>,
}

/// How long killed processes may take to end.
const EXIT_TIMEOUT: Duration = Duration::from_millis(200);
