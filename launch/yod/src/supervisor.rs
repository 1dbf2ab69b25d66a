//! The loop of a job: one poll over signals, PMI connections, output and exits.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use lintel_pmi::server::{Event, Server};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{
    Resource, Rlimit, Signal, getpgrp, getpid, getrlimit, kill_process, setrlimit,
};
use rustix::termios::tcgetpgrp;

use crate::agents::Agents;
use crate::guard::Guard;
use crate::job::{Cause, End, Error, Job, Outcome, RankOutcome};
use crate::leftovers::{self, SHARED_MEMORY};
use crate::output::Sink;
use crate::plan::Plan;
use crate::process::wait_until_gone;
use crate::program;
use crate::rank::Rank;
use crate::signals::Signals;

/// How long ranks have to end after a signal before the next, harder one.
pub const GRACE: Duration = Duration::from_secs(2);

/// Runs a job to its end: all of its processes have ended and its shared memory
/// is gone when this returns.
///
/// Blocks. Takes SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGTSTP meanwhile;
/// one job runs at a time in a process. The ranks die with the calling thread.
/// The binary must call [`crate::become_helper_if_asked`] first in its `main`, and
/// its other threads should start no processes while ranks are being started: they
/// would inherit a rank's PMI connection.
///
/// # Errors
/// [`Error`] where no rank, or not every rank, could be started; none is left then.
pub fn run(job: &Job) -> Result<Outcome, Error> {
    let plan = Plan::new(job)?;
    program::find(&job.program)?;
    let signals = Signals::take().map_err(failed("installing signal handlers"))?;
    make_room_for_descriptors(job.ranks);
    let mut guard = Guard::start(&plan.id).map_err(failed("starting the job's guard"))?;
    let outcome = run_guarded(&plan, &mut guard, &signals);
    guard.dismiss();
    // Best effort: a system without /dev/shm has nothing left in it.
    let _ = leftovers::remove(Path::new(SHARED_MEMORY), &plan.id);
    outcome
}

fn run_guarded(plan: &Plan, guard: &mut Guard, signals: &Signals) -> Result<Outcome, Error> {
    let started = Instant::now();
    let agents = Agents::start(plan, guard, signals)?;
    let ranks = start_ranks(plan, guard)?;
    let mut supervisor = Supervisor::new(plan, ranks, agents, signals, started);
    supervisor.run().map_err(failed("waiting for the ranks"))?;
    Ok(supervisor.finish(plan.id.clone()))
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::System { what, error }
}

fn start_ranks(plan: &Plan, guard: &mut Guard) -> Result<Vec<Rank>, Error> {
    let start = |seat| {
        let rank = Rank::start(plan, seat)?;
        guard.on_group(rank.process.group());
        Ok(rank)
    };
    let ranks: io::Result<Vec<Rank>> = plan.layout.seats.iter().map(start).collect();
    ranks.map_err(failed("starting a rank"))
}

/// A socket, two pipes and a process descriptor for each rank, and some for yod.
fn make_room_for_descriptors(ranks: usize) {
    let needed = 4 * ranks as u64 + 64;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        let current = Some(limit.maximum.map_or(needed, |maximum| needed.min(maximum)));
        // If refused, the start of the rank that finds no descriptor tells.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current,
                maximum: limit.maximum,
            },
        );
    }
}

struct Supervisor<'a> {
    job: &'a Job,
    ranks: Vec<Rank>,
    agents: Agents,
    server: Server,
    signals: &'a Signals,
    stdout: Sink<io::Stdout>,
    stderr: Sink<io::Stderr>,
    input: Option<InputRelay>,
    started: Instant,
    cause: Option<Cause>,
    ending: Option<Ending>,
    /// Asked twice to end: output that nobody takes is dropped.
    hurry: bool,
}

/// The steps of ending a job, each harder than the one before.
struct Ending {
    /// What is sent next; after SIGKILL nothing is.
    next: Option<Signal>,
    at: Instant,
    /// SIGKILL was sent a while ago: what still holds a pipe is none of ours.
    given_up: bool,
}

/// What a descriptor is polled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Signal(i32),
    Pmi(usize),
    Stdout(usize),
    Stderr(usize),
    Exit(usize),
    Agents,
    OwnStdout,
    OwnStderr,
    InputFrom,
    InputTo,
}

impl<'a> Supervisor<'a> {
    fn new(
        plan: &Plan<'a>,
        mut ranks: Vec<Rank>,
        agents: Agents,
        signals: &'a Signals,
        started: Instant,
    ) -> Supervisor<'a> {
        let input = ranks[0].process.take_input().map(|to| InputRelay {
            to: to.into(),
            held: Vec::new(),
        });
        let nodes = plan.layout.nodes_of_ranks();
        Supervisor {
            job: plan.job,
            server: Server::on_nodes(&nodes, &format!("kvs_{}", plan.id)),
            ranks,
            agents,
            signals,
            stdout: Sink::new(io::stdout()),
            stderr: Sink::new(io::stderr()),
            input,
            started,
            cause: None,
            ending: None,
            hurry: false,
        }
    }

    fn run(&mut self) -> io::Result<()> {
        while !self.is_done() {
            let mut exits = Vec::new();
            for (source, flags) in self.wait()? {
                match source {
                    Source::Signal(signal) => self.on_signal(signal),
                    Source::Pmi(rank) => self.on_pmi(rank, flags),
                    Source::Stdout(rank) => self.on_stdout(rank),
                    Source::Stderr(rank) => self.on_stderr(rank),
                    Source::Exit(rank) => exits.push(rank),
                    Source::Agents => self.on_agents(),
                    Source::OwnStdout => self.on_own_stdout(),
                    // Without standard error there is nobody to tell.
                    Source::OwnStderr => drop(self.stderr.on_writable()),
                    Source::InputFrom | Source::InputTo => self.on_input(source),
                }
            }
            self.on_exits(exits);
            self.on_clock(Instant::now());
        }
        Ok(())
    }

    /// All processes ended, and all that they wrote was passed on.
    fn is_done(&self) -> bool {
        let ended = |rank: &Rank| rank.outcome.is_some();
        let silent = |rank: &Rank| rank.stdout.pipe.is_none() && rank.stderr.pipe.is_none();
        let given_up = self.ending.as_ref().is_some_and(|ending| ending.given_up);
        let passed_on = self.stdout.is_empty() && self.stderr.is_empty();
        self.ranks.iter().all(ended)
            && (given_up || self.ranks.iter().all(silent))
            && (self.hurry || passed_on)
    }

    /// Waits for something to do, and tells what, causes before effects.
    fn wait(&self) -> io::Result<Vec<(Source, PollFlags)>> {
        let interests = self.interests();
        let mut fds: Vec<PollFd> = interests
            .iter()
            .map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
            .collect();
        let timeout = self.next_step().map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec::try_from(left).unwrap_or(Timespec {
                tv_sec: i64::MAX,
                tv_nsec: 0,
            })
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = interests
            .iter()
            .zip(&fds)
            .filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready
            .map(|((source, ..), fd)| (*source, fd.revents()))
            .collect())
    }

    fn interests(&self) -> Vec<(Source, BorrowedFd<'_>, PollFlags)> {
        let mut all = Vec::with_capacity(4 * self.ranks.len() + 10);
        let read = PollFlags::IN;
        for (signal, fd) in self.signals.sources() {
            all.push((Source::Signal(signal), fd, read));
        }
        for (number, rank) in self.ranks.iter().enumerate() {
            if let Some(pmi) = &rank.pmi {
                // A rank that doesn't take its answers is asked for no more questions.
                let flags = if rank.pmi_held.is_empty() {
                    read
                } else {
                    PollFlags::OUT
                };
                all.push((Source::Pmi(number), pmi.as_fd(), flags));
            }
            if let Some(pipe) = rank.stdout.pipe.as_ref().filter(|_| !self.stdout.is_full()) {
                all.push((Source::Stdout(number), pipe.as_fd(), read));
            }
            if let Some(pipe) = rank.stderr.pipe.as_ref().filter(|_| !self.stderr.is_full()) {
                all.push((Source::Stderr(number), pipe.as_fd(), read));
            }
            if rank.outcome.is_none() {
                all.push((Source::Exit(number), rank.process.exit.as_fd(), read));
            }
        }
        for fd in self.agents.descriptors() {
            all.push((Source::Agents, fd, read));
        }
        if !self.stdout.is_empty() {
            all.push((Source::OwnStdout, self.stdout.fd(), PollFlags::OUT));
        }
        if !self.stderr.is_empty() {
            all.push((Source::OwnStderr, self.stderr.fd(), PollFlags::OUT));
        }
        all.extend(self.input.as_ref().and_then(InputRelay::interest));
        all
    }

    /// When something is to be done though nothing happens.
    fn next_step(&self) -> Option<Instant> {
        match &self.ending {
            Some(ending) => (!ending.given_up).then_some(ending.at),
            None => self
                .job
                .timeout
                .and_then(|timeout| self.started.checked_add(timeout)),
        }
    }

    fn on_clock(&mut self, now: Instant) {
        if self
            .ending
            .as_ref()
            .is_some_and(|ending| !ending.given_up && ending.at <= now)
        {
            self.end_harder(now);
        }
        let Some(timeout) = self.job.timeout else {
            return;
        };
        if self.ending.is_none() && now.duration_since(self.started) >= timeout {
            self.on_cause(Cause::Timeout(timeout), Signal::TERM);
        }
    }

    fn on_signal(&mut self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else {
            return;
        };
        for _ in 0..self.signals.take_arrivals(number) {
            match signal {
                Signal::USR1 | Signal::USR2 => self.signal_all(signal),
                Signal::TSTP => self.stop_with_ranks(),
                _ if self.ending.is_some() => {
                    self.hurry = true;
                    self.end_at_once();
                }
                _ => self.on_cause(Cause::Interrupted(number), signal),
            }
        }
    }

    /// Ctrl-Z: the ranks stand in groups that the terminal doesn't reach.
    fn stop_with_ranks(&self) {
        self.signal_all(Signal::STOP);
        let _ = kill_process(getpid(), Signal::STOP);
        self.signal_all(Signal::CONT);
    }

    fn on_pmi(&mut self, rank: usize, flags: PollFlags) {
        let Some(mut stream) = self.ranks[rank].pmi.as_ref() else {
            return;
        };
        if !flags.contains(PollFlags::OUT) {
            let mut bytes = [0; 4096];
            match stream.read(&mut bytes) {
                Ok(0) => self.on_pmi_closed(rank),
                Ok(count) => self.server.on_bytes(rank, &bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.on_pmi_closed(rank),
            }
        }
        for rank in 0..self.ranks.len() {
            self.answer(rank);
        }
        while let Some(event) = self.server.poll_event() {
            let cause = match event {
                Event::Abort {
                    rank,
                    code,
                    message,
                } => Cause::Aborted {
                    rank,
                    code,
                    message,
                },
                Event::Violation { rank, error } => Cause::Protocol { rank, error },
            };
            self.on_cause(cause, Signal::TERM);
        }
    }

    fn on_pmi_closed(&mut self, rank: usize) {
        self.ranks[rank].pmi = None;
        self.server.on_closed(rank);
    }

    fn answer(&mut self, number: usize) {
        let rank = &mut self.ranks[number];
        rank.pmi_held
            .extend(self.server.poll_output(number).unwrap_or_default());
        let Some(mut stream) = rank.pmi.as_ref() else {
            return rank.pmi_held.clear();
        };
        while !rank.pmi_held.is_empty() {
            match stream.write(&rank.pmi_held) {
                Ok(count) => drop(rank.pmi_held.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => return self.on_pmi_closed(number),
            }
        }
    }

    fn on_stdout(&mut self, rank: usize) {
        let stream = &mut self.ranks[rank].stdout;
        let sink = &mut self.stdout;
        pass_on(&mut stream.pipe, |bytes| match bytes {
            Some(bytes) => stream.lines.on_bytes(bytes, |line| sink.push(line)),
            None => stream.lines.on_end(|line| sink.push(line)),
        });
    }

    fn on_stderr(&mut self, rank: usize) {
        let stream = &mut self.ranks[rank].stderr;
        let sink = &mut self.stderr;
        pass_on(&mut stream.pipe, |bytes| match bytes {
            Some(bytes) => stream.lines.on_bytes(bytes, |line| sink.push(line)),
            None => stream.lines.on_end(|line| sink.push(line)),
        });
    }

    fn on_own_stdout(&mut self) {
        if self.stdout.on_writable().is_err() {
            self.on_cause(Cause::OutputClosed, Signal::TERM);
        }
    }

    fn on_input(&mut self, source: Source) {
        let Some(relay) = &mut self.input else { return };
        if !relay.on_ready(source) {
            self.input = None;
        }
    }

    fn on_agents(&mut self) {
        while let Some((address, end)) = self.agents.on_readable() {
            self.on_cause(Cause::Agent { address, end }, Signal::TERM);
        }
    }

    fn on_exits(&mut self, exits: Vec<usize>) {
        for &rank in &exits {
            self.ranks[rank].on_exit();
        }
        let end = |rank: usize| self.ranks[rank].outcome.map(|outcome| outcome.end);
        let failed = |&&rank: &&usize| end(rank).is_some_and(|end| end != End::Exited(0));
        // Of ranks found ended together, one that crashed is rather the cause than
        // one that gave up.
        let crashed = |&&rank: &&usize| matches!(end(rank), Some(End::Killed(_)));
        let first = exits
            .iter()
            .find(crashed)
            .or_else(|| exits.iter().find(failed));
        if let Some((&rank, end)) = first.and_then(|rank| Some((rank, end(*rank)?))) {
            let cause = Cause::Rank { rank, end };
            match self.job.keep_going {
                true => self.note(cause, "; the others go on"),
                false => self.on_cause(cause, Signal::TERM),
            }
        }
        self.look_for_stuck_barrier();
        if self.ending.is_none() && !exits.is_empty() {
            self.end_what_is_left();
        }
    }

    /// A rank that closed its connection and ended well leaves a barrier that
    /// others wait in for ever. One that ended badly is a cause of its own.
    fn look_for_stuck_barrier(&mut self) {
        if self.ending.is_some() {
            return;
        }
        let Some(stuck) = self.server.stuck_barrier() else {
            return;
        };
        if stuck
            .left
            .iter()
            .any(|&rank| self.ranks[rank].outcome.is_some())
        {
            self.on_cause(Cause::Barrier(stuck), Signal::TERM);
        }
    }

    /// After the last rank's end: what ranks started and left behind is ended too.
    fn end_what_is_left(&mut self) {
        if self.ranks.iter().all(|rank| rank.outcome.is_some()) {
            self.end_by(Signal::TERM);
        }
    }

    /// Something went wrong that ends the job.
    fn on_cause(&mut self, cause: Cause, signal: Signal) {
        self.note(cause, "; ending the job");
        if self.ending.is_none() {
            self.end_by(signal);
        }
    }

    /// The first cause counts; what follows, follows from it.
    fn note(&mut self, cause: Cause, and: &str) {
        if self.cause.is_some() && self.ending.is_some() {
            return;
        }
        if !self.job.quiet {
            let and = if self.job.ranks > 1 { and } else { "" };
            self.stderr.push(format!("yod: {cause}{and}\n").as_bytes());
        }
        self.cause.get_or_insert(cause);
    }

    /// Begins the end of the job, gently.
    fn end_by(&mut self, signal: Signal) {
        self.signal_all(signal);
        let next = if signal == Signal::TERM {
            Signal::KILL
        } else {
            Signal::TERM
        };
        self.ending = Some(Ending {
            next: Some(next),
            at: Instant::now() + GRACE,
            given_up: false,
        });
    }

    fn end_harder(&mut self, now: Instant) {
        let Some(ending) = &mut self.ending else {
            return;
        };
        ending.at = now + GRACE;
        match ending.next.take() {
            Some(Signal::KILL) => self.end_at_once(),
            Some(signal) => {
                ending.next = Some(Signal::KILL);
                self.signal_all(signal);
            }
            // What the ranks' pipes still hold waits for a slow reader of ours.
            None => {
                ending.given_up = self.hurry || self.stdout.is_empty() && self.stderr.is_empty()
            }
        }
    }

    fn end_at_once(&mut self) {
        self.signal_all(Signal::KILL);
        let at = Instant::now() + AFTER_KILL;
        self.ending = Some(Ending {
            next: None,
            at,
            given_up: false,
        });
    }

    fn signal_all(&self, signal: Signal) {
        for rank in &self.ranks {
            rank.process.signal(signal);
        }
    }

    fn finish(mut self, job: String) -> Outcome {
        self.ranks.iter_mut().for_each(|rank| rank.process.reap());
        let groups: Vec<_> = self.ranks.iter().map(|rank| rank.process.group()).collect();
        wait_until_gone(&groups, GONE);
        let grace = if self.hurry { Duration::ZERO } else { GRACE };
        self.agents.end(grace);
        let elapsed = self.started.elapsed();
        let ranks: Option<Vec<RankOutcome>> = self.ranks.iter().map(|rank| rank.outcome).collect();
        let ranks = ranks.expect("the loop ends when every rank has");
        Outcome {
            job,
            cause: self.cause.take(),
            elapsed,
            ranks,
        }
    }
}

/// How long killed processes may take to go.
const GONE: Duration = Duration::from_millis(200);
/// How long the last output may take after SIGKILL.
const AFTER_KILL: Duration = Duration::from_secs(1);

/// Reads once from `pipe`; hands the bytes on, or `None` at its end.
fn pass_on(pipe: &mut Option<OwnedFd>, mut each: impl FnMut(Option<&[u8]>)) {
    let Some(fd) = pipe else { return };
    let mut bytes = [0; 32768];
    match rustix::io::read(fd, &mut bytes[..]) {
        Ok(count @ 1..) => each(Some(&bytes[..count])),
        Err(Errno::INTR | Errno::AGAIN) => {}
        Ok(0) | Err(_) => {
            *pipe = None;
            each(None);
        }
    }
}

/// Carries what is typed at the terminal to rank 0.
struct InputRelay {
    to: OwnedFd,
    held: Vec<u8>,
}

impl InputRelay {
    fn interest(&self) -> Option<(Source, BorrowedFd<'_>, PollFlags)> {
        if !self.held.is_empty() {
            return Some((Source::InputTo, self.to.as_fd(), PollFlags::OUT));
        }
        // A background job that reads the terminal would be stopped.
        let stdin = rustix::stdio::stdin();
        let foreground = tcgetpgrp(stdin).is_ok_and(|group| group == getpgrp());
        foreground.then_some((Source::InputFrom, stdin, PollFlags::IN))
    }

    /// Whether there is more to come.
    fn on_ready(&mut self, source: Source) -> bool {
        if source == Source::InputTo {
            // No more than a writable pipe takes at once.
            return match rustix::io::write(&self.to, &self.held) {
                Ok(count) => {
                    self.held.drain(..count);
                    true
                }
                Err(Errno::INTR | Errno::AGAIN) => true,
                Err(_) => false,
            };
        }
        let mut bytes = [0; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut bytes[..]) {
            Ok(count @ 1..) => {
                self.held.extend_from_slice(&bytes[..count]);
                true
            }
            Err(Errno::INTR | Errno::AGAIN) => true,
            Ok(0) | Err(_) => false,
        }
    }
}
