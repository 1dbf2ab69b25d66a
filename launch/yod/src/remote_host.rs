//! Another machine of a job, as the launcher sees it.
//!
//! ```text
//!   RemoteHost ── Link ── ssh host yod --remote ── Link ── RemoteLauncher ── LocalLauncher
//! ```
//!
//! The launch agent (ssh) is given nothing but the host and the command to run there:
//! program, environment and secret travel through the connection.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::allocation::HOST;
use crate::job::Job;
use crate::layout;
use crate::link::{Broken, HANDSHAKE_TIMEOUT, HEARTBEAT_INTERVAL, HEARTBEAT_TIMEOUT, Link, REMOTE};
use crate::message::{BackendEvent, FromRemote, Request, Start, ToRemote};
use crate::outcome::End;
use crate::plan::{Plan, Scope};
use crate::poll::{Interest, wait_for};
use crate::process::Process;
use crate::shell::quoted;
use crate::tied::tied_command;
use crate::watchdog::Watchdog;

/// A machine that runs ranks for the supervisor.
pub(crate) struct RemoteHost {
    name: String,
    /// The ranks that run there; empty once they are lost.
    ranks: Vec<usize>,
    launch_agent: Process,
    link: Link<FromRemote>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It runs ranks, or is about to.
    Running,
    /// It has reported that nothing is left.
    Finished,
    /// Its connection is broken.
    Lost,
}

/// What a host's descriptor is polled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Incoming,
    Outgoing,
}

impl RemoteHost {
    /// Starts the launch agent for node `node` of `plan`, and sends what is to be started.
    pub(crate) fn start(
        job: &Job,
        plan: &Plan,
        (node, host): (usize, &layout::Host),
        watchdog: &mut Watchdog,
    ) -> io::Result<RemoteHost> {
        let mut launch_agent = Process::start(&mut agent_command(job, host))?;
        watchdog.on_group(launch_agent.group());
        let input = launch_agent.take_input().expect("its input was asked for");
        let output = launch_agent
            .take_output()
            .expect("its output was asked for");
        let mut link = Link::new(OwnedFd::from(output), OwnedFd::from(input))?;
        link.send(&ToRemote::Start(Box::new(Start {
            plan: plan.for_another_machine(),
            node,
            directory: std::env::current_dir()?.into_os_string(),
        })));
        Ok(RemoteHost {
            name: host.name.clone(),
            ranks: plan
                .slots(Scope::Node(node))
                .map(|slot| slot.rank)
                .collect(),
            launch_agent,
            link,
            state: State::Running,
        })
    }

    pub(crate) fn interests(&self) -> Vec<Interest<'_, Source>> {
        if self.state != State::Running {
            return Vec::new();
        }
        let mut all = vec![(Source::Incoming, self.link.incoming(), PollFlags::IN)];
        let outgoing = self.link.outgoing();
        all.extend(outgoing.map(|fd| (Source::Outgoing, fd, PollFlags::OUT)));
        all
    }

    pub(crate) fn on_ready(&mut self, source: Source, emit: &mut impl FnMut(BackendEvent)) {
        if source == Source::Outgoing {
            return self.link.on_writable();
        }
        match self.link.on_readable() {
            Ok(messages) => messages
                .into_iter()
                .for_each(|message| self.on_message(message, emit)),
            Err(broken) if self.state == State::Running => self.on_broken_link(&broken, emit),
            Err(_) => {}
        }
    }

    pub(crate) fn on_request(&mut self, request: Request) {
        if self.state == State::Running {
            self.link.send(&ToRemote::Request(request));
        }
    }

    /// Writes queued requests as far as that goes without waiting.
    pub(crate) fn flush_requests(&mut self) {
        self.link.on_writable();
    }

    /// When [`RemoteHost::on_clock`] wants to be called, from `now` on.
    pub(crate) fn next_step(&self, now: Instant) -> Option<Duration> {
        let (since_received, since_sent) = self.link.silence(now);
        let left = |limit: Duration, silence| limit.saturating_sub(silence);
        let next =
            left(self.receive_timeout(), since_received).min(left(HEARTBEAT_INTERVAL, since_sent));
        (self.state == State::Running).then_some(next)
    }

    pub(crate) fn on_clock(&mut self, now: Instant, emit: &mut impl FnMut(BackendEvent)) {
        if self.state != State::Running {
            return;
        }
        let (since_received, since_sent) = self.link.silence(now);
        if since_received >= self.receive_timeout() {
            let why = format!("it sent nothing for {} s", since_received.as_secs());
            self.lose(why, emit);
        } else if since_sent >= HEARTBEAT_INTERVAL {
            self.link.send(&ToRemote::Heartbeat);
        }
    }

    /// Asks it to end what is left; then [`RemoteHost::finish`].
    pub(crate) fn request_shutdown(&mut self) {
        if self.state == State::Running {
            self.link.send(&ToRemote::Shutdown);
        }
    }

    /// Waits until nothing of the job is left there, or `deadline`. Returns its name if
    /// it did not report so.
    pub(crate) fn finish(mut self, deadline: Instant) -> Option<String> {
        while self.state == State::Running {
            let left = deadline.saturating_duration_since(Instant::now());
            let ready = wait_for(&self.interests(), Some(left)).unwrap_or_default();
            if ready.is_empty() {
                break;
            }
            for (source, _) in ready {
                self.on_ready(source, &mut |_| {});
            }
        }
        (self.state == State::Running).then_some(self.name)
    }

    fn receive_timeout(&self) -> Duration {
        match self.link.is_connected() {
            true => HEARTBEAT_TIMEOUT,
            false => HANDSHAKE_TIMEOUT,
        }
    }

    fn on_message(&mut self, message: FromRemote, emit: &mut impl FnMut(BackendEvent)) {
        match message {
            FromRemote::Report(report) => emit(BackendEvent::Report(report)),
            FromRemote::Heartbeat => {}
            FromRemote::Finished => self.state = State::Finished,
            FromRemote::Failed { code, text } => {
                self.state = State::Finished;
                emit(BackendEvent::Failed {
                    host: self.name.clone(),
                    code,
                    text,
                    ranks: std::mem::take(&mut self.ranks),
                });
            }
        }
    }

    fn on_broken_link(&mut self, broken: &Broken, emit: &mut impl FnMut(BackendEvent)) {
        let exit = [((), self.launch_agent.exit.as_fd(), PollFlags::IN)];
        // An agent that closes its output is about to end.
        let _ = wait_for(&exit, Some(EXIT_TIMEOUT));
        let mut why = broken.to_string();
        if let Some(end) = self.launch_agent.ended().map(|outcome| outcome.end) {
            why = format!("{why}; the launch agent ended {end}");
            if end == End::Exited(127) {
                why.push_str(" (is yod there under the same path? if not, --remote-yod names it)");
            }
        }
        self.lose(why, emit);
    }

    fn lose(&mut self, why: String, emit: &mut impl FnMut(BackendEvent)) {
        self.state = State::Lost;
        emit(BackendEvent::Lost {
            host: self.name.clone(),
            why,
            ranks: std::mem::take(&mut self.ranks),
        });
    }
}

/// `ssh host 'yod --remote'`, connected to this process by pipes.
fn agent_command(job: &Job, host: &layout::Host) -> std::process::Command {
    let (mut words, named) = with_host(job.launch_agent(), &host.name);
    let name = format!("launch agent of {}", host.name);
    let mut command = tied_command(&name, &words.remove(0), None);
    let yod = job.remote_yod.clone().or_else(this_binary);
    let yod = quoted(yod.as_deref().unwrap_or("yod".as_ref()));
    // ssh joins its arguments with blanks and passes them to a shell.
    command
        .args(words)
        .args((!named).then_some(&host.name))
        .arg(format!("{yod} {REMOTE}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// The launch agent's words with the host's name where they ask for it, and whether they do.
fn with_host(words: Vec<OsString>, name: &str) -> (Vec<OsString>, bool) {
    let mut named = false;
    let words = words.into_iter().map(|word| match word.to_str() {
        Some(text) if text.contains(HOST) => {
            named = true;
            text.replace(HOST, name).into()
        }
        _ => word,
    });
    let words = words.collect();
    (words, named)
}

fn this_binary() -> Option<OsString> {
    Some(std::env::current_exe().ok()?.into_os_string())
}

const EXIT_TIMEOUT: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_name_goes_where_the_launch_agent_asks_for_it() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let srun = with_host(words("srun --nodelist={host} sh -c"), "n1");
        assert_eq!(srun, (words("srun --nodelist=n1 sh -c"), true));
        assert_eq!(with_host(words("ssh -T"), "n1"), (words("ssh -T"), false));
    }
}
