//! yod on another machine: runs the ranks of one node for a launcher at the other end
//! of standard input and output.
//!
//! It starts what it is asked to, carries out requests and reports. If the launcher is lost,
//! it ends all that it has started; if it is killed itself, its watchdog does so.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::exit;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::Signal;

use crate::error::Error;
use crate::link::{HANDSHAKE_TIMEOUT, HEARTBEAT_INTERVAL, HEARTBEAT_TIMEOUT, Link};
use crate::local_launcher::{self, LocalLauncher};
use crate::message::{FromRemote, Request, Start, ToRemote};
use crate::plan::Scope;
use crate::poll::{Interest, wait_for};
use crate::program;
use crate::rank::Input;

use crate::group::GRACE;
use crate::signals::Signals;
use crate::stale_segments::{self, SHARED_MEMORY};
use crate::watchdog::Watchdog;

/// Runs the launcher of one node until its end.
pub(crate) fn run() -> ! {
    let lost = |why: String| {
        eprintln!("yod: remote: {why}");
        exit(1)
    };
    match serve() {
        Ok(()) => exit(0),
        Err(error) => lost(error.to_string()),
    }
}

fn serve() -> io::Result<()> {
    let from = io::stdin().as_fd().try_clone_to_owned()?;
    let to = io::stdout().as_fd().try_clone_to_owned()?;
    let mut link = Link::new(from, to)?;
    let (start, more) = first_messages(&mut link)?;
    let name = file_name(&start);
    let mut watchdog = Watchdog::start(&name)?;
    let outcome = match start_local(&start, &mut watchdog) {
        Err(error) => {
            let (code, text) = (error.exit_code(), error.to_string());
            link.send(&FromRemote::Failed { code, text });
            Ok(())
        }
        Ok((local, signals)) => {
            let mut remote = RemoteLauncher {
                link: &mut link,
                signals,
                launcher_stopped: false,
            };
            remote
                .serve_until_shutdown(local, more)
                .map(|()| link.send(&FromRemote::Finished))
        }
    };
    watchdog.dismiss();
    let _ = stale_segments::remove(Path::new(SHARED_MEMORY), &name);
    flush(&mut link);
    outcome
}

/// What the job's files on this node are named after: other nodes may be on this
/// machine.
fn file_name(start: &Start) -> String {
    let id = &start.plan.id;
    match start.plan.layout.addresses[start.node].map(u32::from) {
        Some(nid) => format!("{id}-{nid:x}"),
        None => id.clone(),
    }
}

/// What is to be started, and the messages that arrived behind it.
fn first_messages(link: &mut Link<ToRemote>) -> io::Result<(Start, Vec<ToRemote>)> {
    let deadline = Instant::now() + HANDSHAKE_TIMEOUT;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let ready = wait_for(&link_interests(link), Some(left))?;
        if ready.is_empty() {
            return Err(io::Error::other("the launcher sent nothing"));
        }
        for (source, _) in ready {
            if source == Source::Outgoing {
                link.on_writable();
                continue;
            }
            let mut messages = link.on_readable().map_err(lost)?.into_iter();
            match messages.next() {
                Some(ToRemote::Start(start)) => return Ok((*start, messages.collect())),
                Some(_) => {
                    return Err(io::Error::other(
                        "the launcher did not send what to start first",
                    ));
                }
                None => {}
            }
        }
    }
}

fn start_local(start: &Start, watchdog: &mut Watchdog) -> Result<(LocalLauncher, Signals), Error> {
    let refused = |what| move |error| Error::System { what, error };
    let signals = Signals::take().map_err(refused("installing signal handlers"))?;
    std::env::set_current_dir(&start.directory).map_err(|error| Error::Directory {
        directory: start.directory.clone(),
        error,
    })?;
    program::find(&start.plan.program)?;
    let here = Scope::Node(start.node);
    let local = LocalLauncher::start(&start.plan, here, Input::Piped, watchdog, &signals)?;
    Ok((local, signals))
}

fn lost(broken: crate::link::Broken) -> io::Error {
    io::Error::other(format!("the launcher is lost: {broken}"))
}

fn link_interests(link: &Link<ToRemote>) -> Vec<Interest<'_, Source>> {
    let mut all = vec![(Source::Incoming, link.incoming(), PollFlags::IN)];
    let outgoing = link.outgoing();
    all.extend(outgoing.map(|fd| (Source::Outgoing, fd, PollFlags::OUT)));
    all
}

/// Sends what is queued, as long as the launcher takes it.
fn flush(link: &mut Link<ToRemote>) {
    let deadline = Instant::now() + GRACE;
    while let Some(fd) = link.outgoing() {
        let left = deadline.saturating_duration_since(Instant::now());
        let ready = wait_for(&[((), fd, PollFlags::OUT)], Some(left));
        if ready.is_ok_and(|ready| ready.is_empty()) {
            return;
        }
        link.on_writable();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Incoming,
    Outgoing,
    Signal,
    Local(local_launcher::Source),
}

struct RemoteLauncher<'a> {
    link: &'a mut Link<ToRemote>,
    signals: Signals,
    /// The launcher was stopped: its silence means nothing.
    launcher_stopped: bool,
}

impl RemoteLauncher<'_> {
    /// Serves the ranks of `local` until the launcher asks for shutdown or is lost; none of
    /// them is left then. `messages` have arrived already.
    fn serve_until_shutdown(
        &mut self,
        mut local: LocalLauncher,
        messages: Vec<ToRemote>,
    ) -> io::Result<()> {
        let mut outcome = self.on_messages(messages, &mut local);
        while let Ok(false) = outcome {
            outcome = self.poll_once(&mut local);
        }
        local.finish(GRACE);
        outcome.map(drop)
    }

    /// Whether the launcher has asked for shutdown.
    fn poll_once(&mut self, local: &mut LocalLauncher) -> io::Result<bool> {
        let ready = {
            let mut interests = link_interests(self.link);
            let signals = self.signals.requests_to_end();
            interests.extend(signals.map(|(_, fd)| (Source::Signal, fd, PollFlags::IN)));
            let ranks = local.interests(!self.link.is_full()).into_iter();
            interests.extend(ranks.map(|(source, fd, flags)| (Source::Local(source), fd, flags)));
            wait_for(&interests, Some(self.next_step()))?
        };
        let mut shutdown = false;
        for (source, flags) in ready {
            match source {
                Source::Incoming => {
                    let messages = self.link.on_readable().map_err(lost)?;
                    shutdown |= self.on_messages(messages, local)?;
                }
                Source::Outgoing => self.link.on_writable(),
                Source::Signal => return Err(io::Error::other("a signal asked to end")),
                Source::Local(source) => {
                    let mut emit = |report| self.link.send(&FromRemote::Report(report));
                    local.on_ready(source, flags, &mut emit);
                }
            }
        }
        self.on_clock(Instant::now()).map(|()| shutdown)
    }

    /// Whether one of `messages` is the shutdown.
    fn on_messages(
        &mut self,
        messages: Vec<ToRemote>,
        local: &mut LocalLauncher,
    ) -> io::Result<bool> {
        for message in messages {
            self.launcher_stopped = false;
            match message {
                ToRemote::Request(request) => {
                    self.launcher_stopped =
                        matches!(request, Request::Signal(n) if n == Signal::STOP.as_raw());
                    let mut emit = |report| self.link.send(&FromRemote::Report(report));
                    local.on_request(request, &mut emit);
                }
                ToRemote::Heartbeat => {}
                ToRemote::Shutdown => return Ok(true),
                ToRemote::Start(_) => return Err(io::Error::other("started twice")),
            }
        }
        Ok(false)
    }

    fn next_step(&self) -> Duration {
        let (since_received, since_sent) = self.link.silence(Instant::now());
        let heartbeat = HEARTBEAT_INTERVAL.saturating_sub(since_sent);
        match self.launcher_stopped {
            true => heartbeat,
            false => heartbeat.min(HEARTBEAT_TIMEOUT.saturating_sub(since_received)),
        }
    }

    fn on_clock(&mut self, now: Instant) -> io::Result<()> {
        let (since_received, since_sent) = self.link.silence(now);
        if since_received >= HEARTBEAT_TIMEOUT && !self.launcher_stopped {
            return Err(io::Error::other(
                "the launcher has sent nothing for too long",
            ));
        }
        if since_sent >= HEARTBEAT_INTERVAL {
            self.link.send(&FromRemote::Heartbeat);
        }
        Ok(())
    }
}
