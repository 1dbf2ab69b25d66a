//! The loop of a job: one poll over signals, standard streams and what the
//! launchers of the ranks report.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use lintel_pmi::server::{Event, Server};
use rustix::event::PollFlags;
use rustix::process::{Signal, getpid, kill_process};

use crate::backend::{self, Backend};
use crate::ending::Ending;
use crate::error::Error;
use crate::group::GRACE;
use crate::job::Job;
use crate::layout::Nodes;
use crate::message::{BackendEvent, Report, Request, Stream};
use crate::outcome::{Cause, End, Outcome, RankOutcome};
use crate::output::{Lines, Sink};
use crate::plan::Plan;
use crate::poll::wait_for;
use crate::rank::Input;
use crate::signals::Signals;
use crate::stale_segments::{self, SHARED_MEMORY};
use crate::stdin_forwarder::StdinForwarder;
use crate::watchdog::Watchdog;

/// Runs a job to its end: all of its processes have ended and its shared memory
/// is gone when this returns.
///
/// Blocks. Takes SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2 and SIGTSTP meanwhile;
/// one job runs at a time in a process. The ranks die with the calling thread.
/// The binary must call [`crate::become_helper_if_asked`] first in its `main`, and
/// its other threads should start no processes while ranks are being started: they
/// would inherit a rank's PMI connection.
///
/// # Errors
/// [`Error`] if no rank, or not every rank, could be started; none is left then.
pub fn run(job: &Job) -> Result<Outcome, Error> {
    let plan = Plan::new(job)?;
    let signals = Signals::take().map_err(failed("installing signal handlers"))?;
    let mut watchdog = Watchdog::start(&plan.id).map_err(failed("starting the job's watchdog"))?;
    let outcome = run_watched(job, &plan, &mut watchdog, &signals);
    watchdog.dismiss();
    // Best effort: a system without /dev/shm has nothing left in it.
    let _ = stale_segments::remove(Path::new(SHARED_MEMORY), &plan.id);
    outcome
}

fn run_watched(
    job: &Job,
    plan: &Plan,
    watchdog: &mut Watchdog,
    signals: &Signals,
) -> Result<Outcome, Error> {
    let started = Instant::now();
    let remote = matches!(job.nodes, Nodes::Hosts(_));
    let forwarder = StdinForwarder::needed(remote);
    let input = match forwarder {
        Some(_) => Input::Piped,
        None => Input::Inherited,
    };
    let backend = Backend::start(job, plan, input, watchdog, signals)?;
    let mut supervisor = Supervisor::new(job, plan, backend, forwarder, signals, started);
    supervisor.run().map_err(failed("waiting for the ranks"))?;
    Ok(supervisor.finish(plan.id.clone()))
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::System { what, error }
}

struct Supervisor<'a> {
    job: &'a Job,
    backend: Backend,
    ranks: Vec<Rank>,
    server: Server,
    signals: &'a Signals,
    stdout: Sink<io::Stdout>,
    stderr: Sink<io::Stderr>,
    /// Whether the launchers were asked to stop reading standard output, or error.
    output_held: [bool; 2],
    input: Option<StdinForwarder>,
    started: Instant,
    /// The value of `LINTEL_JOB`.
    id: String,
    /// When the ranks are asked what they wait for; nothing once they were.
    dump_at: Option<Instant>,
    cause: Option<Cause>,
    ending: Option<Ending>,
    /// Asked twice to end: output that is not read is dropped.
    forced: bool,
}

/// What is known of a rank.
struct Rank {
    node: usize,
    stdout: Lines,
    stderr: Lines,
    /// Which of its streams may still carry output.
    open: [bool; 2],
    /// How the process ended, once it has.
    outcome: Option<RankOutcome>,
}

/// What a descriptor is polled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Signal(i32),
    Backend(backend::Source),
    OwnStdout,
    OwnStderr,
    Input,
}

impl<'a> Supervisor<'a> {
    fn new(
        job: &'a Job,
        plan: &Plan,
        backend: Backend,
        input: Option<StdinForwarder>,
        signals: &'a Signals,
        started: Instant,
    ) -> Supervisor<'a> {
        let nodes = plan.layout.nodes_of_ranks();
        let rank = |(number, &node)| Rank {
            node,
            stdout: Lines::new(number, job.ranks, job.label),
            stderr: Lines::new(number, job.ranks, job.label),
            open: [true; 2],
            outcome: None,
        };
        Supervisor {
            job,
            backend,
            ranks: nodes.iter().enumerate().map(rank).collect(),
            server: Server::on_nodes(&nodes, &format!("kvs_{}", plan.id)),
            signals,
            stdout: Sink::new(io::stdout()),
            stderr: Sink::new(io::stderr()),
            output_held: [false; 2],
            input,
            started,
            id: plan.id.clone(),
            dump_at: job.dump_after.and_then(|after| started.checked_add(after)),
            cause: None,
            ending: None,
            forced: false,
        }
    }

    fn run(&mut self) -> io::Result<()> {
        while !self.is_done() {
            let mut events = Vec::new();
            for (source, flags) in self.wait()? {
                match source {
                    Source::Signal(signal) => self.on_signal(signal),
                    Source::Backend(source) => {
                        self.backend
                            .on_ready(source, flags, &mut |event| events.push(event));
                    }
                    Source::OwnStdout => self.on_own_stdout(),
                    // Without standard error there is no way to report it.
                    Source::OwnStderr => drop(self.stderr.on_writable()),
                    Source::Input => self.on_input(),
                }
            }
            self.on_backend_events(events);
            self.hold_output();
            self.on_clock(Instant::now());
        }
        Ok(())
    }

    /// All processes ended, and all that they wrote was passed on.
    fn is_done(&self) -> bool {
        let ended = |rank: &Rank| rank.outcome.is_some();
        let silent = |rank: &Rank| rank.open == [false; 2];
        let given_up = self.ending.as_ref().is_some_and(|ending| ending.given_up);
        let passed_on = self.stdout.is_empty() && self.stderr.is_empty();
        self.ranks.iter().all(ended)
            && (given_up || self.ranks.iter().all(silent))
            && (self.forced || passed_on)
    }

    /// Waits until something happens, and returns it, causes before effects.
    fn wait(&self) -> io::Result<Vec<(Source, PollFlags)>> {
        let mut all: Vec<(Source, BorrowedFd, PollFlags)> = Vec::new();
        let read = PollFlags::IN;
        for (signal, fd) in self.signals.sources() {
            all.push((Source::Signal(signal), fd, read));
        }
        let backend = self.backend.interests().into_iter();
        all.extend(backend.map(|(source, fd, flags)| (Source::Backend(source), fd, flags)));
        if !self.stdout.is_empty() {
            all.push((Source::OwnStdout, self.stdout.fd(), PollFlags::OUT));
        }
        if !self.stderr.is_empty() {
            all.push((Source::OwnStderr, self.stderr.fd(), PollFlags::OUT));
        }
        let input = self.input.as_ref().and_then(StdinForwarder::interest);
        all.extend(input.map(|fd| (Source::Input, fd, read)));
        wait_for(&all, self.next_step(Instant::now()))
    }

    /// When to go on even if nothing happens.
    fn next_step(&self, now: Instant) -> Option<Duration> {
        let own = match &self.ending {
            Some(ending) => (!ending.given_up).then_some(ending.at),
            None => self
                .job
                .timeout
                .and_then(|timeout| self.started.checked_add(timeout)),
        };
        let left = |at: Instant| at.saturating_duration_since(now);
        let own = [own, self.dump_at].into_iter().flatten().map(left);
        own.chain(self.backend.next_step(now)).min()
    }

    fn on_clock(&mut self, now: Instant) {
        let mut events = Vec::new();
        self.backend.on_clock(now, &mut |event| events.push(event));
        self.on_backend_events(events);
        if self
            .ending
            .as_ref()
            .is_some_and(|ending| !ending.given_up && ending.at <= now)
        {
            self.escalate(now);
        }
        if self.dump_at.take_if(|at| *at <= now).is_some() {
            self.ask_for_state();
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
                Signal::TSTP => self.suspend_with_ranks(),
                Signal::QUIT => self.ask_for_state(),
                _ if self.ending.is_some() => {
                    self.forced = true;
                    self.kill_all();
                }
                _ => self.on_cause(Cause::Interrupted(number), signal),
            }
        }
    }

    /// Asks the ranks what they wait for; what they answer is printed.
    fn ask_for_state(&mut self) {
        let mut events = Vec::new();
        self.backend
            .request_state(&self.id, &mut |event| events.push(event));
        self.on_backend_events(events);
    }

    /// Ctrl-Z: the ranks are in groups that the terminal doesn't reach.
    fn suspend_with_ranks(&mut self) {
        self.signal_all(Signal::STOP);
        self.backend.flush_requests();
        let _ = kill_process(getpid(), Signal::STOP);
        self.signal_all(Signal::CONT);
    }

    /// Ends are handled last: what arrived together with them happened before.
    fn on_backend_events(&mut self, events: Vec<BackendEvent>) {
        let mut ended = Vec::new();
        for event in events {
            match event {
                BackendEvent::Report(report) => self.on_report(report, &mut ended),
                BackendEvent::Failed {
                    host,
                    code,
                    text,
                    ranks,
                } => {
                    self.on_cause(Cause::HostFailed { host, code, text }, Signal::TERM);
                    self.on_ranks_lost(&ranks);
                }
                BackendEvent::Lost { host, why, ranks } => {
                    self.on_cause(Cause::HostLost { host, why }, Signal::TERM);
                    self.on_ranks_lost(&ranks);
                }
            }
        }
        self.on_ends(&ended);
    }

    fn on_report(&mut self, report: Report, ended: &mut Vec<usize>) {
        match report {
            Report::Pmi { rank, bytes } => self.on_pmi(rank, &bytes),
            Report::PmiClosed { rank } => self.server.on_closed(rank),
            Report::Output {
                rank,
                stream,
                bytes,
            } => self.on_output(rank, stream, Some(&bytes)),
            Report::OutputEnd { rank, stream } => self.on_output(rank, stream, None),
            Report::Ended { rank, outcome } => {
                self.ranks[rank].outcome = Some(outcome);
                ended.push(rank);
            }
            Report::AgentEnded { address, end } => {
                self.on_cause(Cause::Agent { address, end }, Signal::TERM);
            }
            Report::State(lines) => self.stderr.push(lines.as_bytes()),
            Report::InputTaken => {
                if let Some(forwarder) = &mut self.input {
                    forwarder.wanted = true;
                }
            }
        }
    }

    /// The host of `ranks` is lost: they will report nothing more.
    fn on_ranks_lost(&mut self, ranks: &[usize]) {
        for &number in ranks {
            self.server.on_closed(number);
            for stream in [Stream::Out, Stream::Err] {
                self.on_output(number, stream, None);
            }
            self.ranks[number].outcome.get_or_insert(RankOutcome::LOST);
        }
    }

    fn on_pmi(&mut self, rank: usize, bytes: &[u8]) {
        self.server.on_bytes(rank, bytes);
        let mut events = Vec::new();
        for rank in 0..self.ranks.len() {
            if let Some(bytes) = self.server.poll_output(rank) {
                let request = Request::Pmi { rank, bytes };
                let node = self.ranks[rank].node;
                self.backend
                    .request(node, request, &mut |event| events.push(event));
            }
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
        self.on_backend_events(events);
    }

    /// What a rank wrote, or `None` if it will write no more.
    fn on_output(&mut self, rank: usize, stream: Stream, bytes: Option<&[u8]>) {
        let rank = &mut self.ranks[rank];
        match stream {
            Stream::Out => rank.stdout.pass_on(bytes, |line| self.stdout.push(line)),
            Stream::Err => rank.stderr.pass_on(bytes, |line| self.stderr.push(line)),
        }
        rank.open[stream as usize] &= bytes.is_some();
    }

    /// A slow reader of the job's output stops the ranks' output, and nothing else.
    fn hold_output(&mut self) {
        let full = [self.stdout.is_full(), self.stderr.is_full()];
        for stream in [Stream::Out, Stream::Err] {
            let hold = full[stream as usize];
            if std::mem::replace(&mut self.output_held[stream as usize], hold) != hold {
                self.backend.request_all(&Request::Hold { stream, hold });
            }
        }
    }

    fn on_own_stdout(&mut self) {
        let Err(error) = self.stdout.on_writable() else {
            return;
        };
        let cause = match error.kind() {
            io::ErrorKind::BrokenPipe => Cause::OutputClosed,
            _ => Cause::OutputFailed(error.to_string()),
        };
        self.on_cause(cause, Signal::TERM);
    }

    fn on_input(&mut self) {
        let request = self.input.as_mut().and_then(StdinForwarder::on_readable);
        if let Some(request) = request {
            let mut events = Vec::new();
            let node = self.ranks[0].node;
            self.backend
                .request(node, request, &mut |event| events.push(event));
            self.on_backend_events(events);
        }
    }

    fn on_ends(&mut self, ended: &[usize]) {
        let end = |rank: usize| self.ranks[rank].outcome.map(|outcome| outcome.end);
        let failed = |&&rank: &&usize| end(rank).is_some_and(|end| end != End::Exited(0));
        // Of ranks that are found ended together, one that crashed is more likely the
        // cause than one that gave up.
        let crashed = |&&rank: &&usize| matches!(end(rank), Some(End::Killed(_)));
        let first = ended
            .iter()
            .find(crashed)
            .or_else(|| ended.iter().find(failed));
        if let Some((&rank, end)) = first.and_then(|rank| Some((rank, end(*rank)?))) {
            let cause = Cause::Rank { rank, end };
            match self.job.keep_going {
                true => self.record(cause, "; the others go on"),
                false => self.on_cause(cause, Signal::TERM),
            }
        }
        self.check_for_stuck_barrier();
        if self.ending.is_none() && !ended.is_empty() {
            self.end_remaining();
        }
    }

    /// A rank that closed its connection and ended well leaves a barrier that
    /// others wait in for ever. One that ended badly is a cause of its own.
    fn check_for_stuck_barrier(&mut self) {
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
    fn end_remaining(&mut self) {
        if self.ranks.iter().all(|rank| rank.outcome.is_some()) {
            self.terminate_with(Signal::TERM);
        }
    }

    /// Records why the job ends early, and begins its end.
    fn on_cause(&mut self, cause: Cause, signal: Signal) {
        self.record(cause, "; ending the job");
        if self.ending.is_none() {
            self.terminate_with(signal);
        }
    }

    /// The first cause counts: later ones are its consequences.
    fn record(&mut self, cause: Cause, suffix: &str) {
        if self.cause.is_some() && self.ending.is_some() {
            return;
        }
        if !self.job.quiet {
            let suffix = if self.job.ranks > 1 { suffix } else { "" };
            self.stderr
                .push(format!("yod: {cause}{suffix}\n").as_bytes());
        }
        self.cause.get_or_insert(cause);
    }

    /// Begins to end the job with the gentlest signal.
    fn terminate_with(&mut self, signal: Signal) {
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

    fn escalate(&mut self, now: Instant) {
        let Some(ending) = &mut self.ending else {
            return;
        };
        ending.at = now + GRACE;
        match ending.next.take() {
            Some(Signal::KILL) => self.kill_all(),
            Some(signal) => {
                ending.next = Some(Signal::KILL);
                self.signal_all(signal);
            }
            // What the ranks' pipes still hold waits for a slow reader of the job's output.
            None => {
                ending.given_up = self.forced || self.stdout.is_empty() && self.stderr.is_empty()
            }
        }
    }

    fn kill_all(&mut self) {
        self.signal_all(Signal::KILL);
        let at = Instant::now() + DRAIN_TIMEOUT;
        self.ending = Some(Ending {
            next: None,
            at,
            given_up: false,
        });
    }

    fn signal_all(&mut self, signal: Signal) {
        self.backend.request_all(&Request::Signal(signal.as_raw()));
    }

    fn finish(self, job: String) -> Outcome {
        let grace = if self.forced { Duration::ZERO } else { GRACE };
        for host in self.backend.finish(grace) {
            eprintln!("yod: host {host} did not say that nothing of the job is left there");
        }
        let elapsed = self.started.elapsed();
        let ranks: Option<Vec<RankOutcome>> = self.ranks.iter().map(|rank| rank.outcome).collect();
        let ranks = ranks.expect("the loop ends when every rank has");
        Outcome {
            job,
            cause: self.cause,
            elapsed,
            ranks,
        }
    }
}

/// How long the last output may take after SIGKILL.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
