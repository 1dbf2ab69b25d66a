//! Another machine of a job, as the launcher sees it.
//!
//! ```text
//!   Host ── Link ── ssh host yod --remote ── Link ── remote ── Crew
//! ```
//!
//! The launch agent (ssh) is told nothing but the host and the command to run there:
//! program, environment and secret travel through the connection.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;

use crate::guard::Guard;
use crate::helper::REMOTE;
use crate::job::{End, Job, quoted};
use crate::layout;
use crate::link::{Broken, Link};
use crate::message::{FromRemote, Order, Report, Start, ToRemote};
use crate::plan::{Here, Plan};
use crate::poll::{Interest, wait_for};
use crate::process::{Process, tied_command};

/// A machine that keeps ranks for the launcher.
pub(crate) struct Host {
    name: String,
    /// The ranks that it keeps.
    ranks: Vec<usize>,
    agent: Process,
    link: Link<FromRemote>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It keeps ranks, or is about to.
    Keeping,
    /// It has said that nothing is left.
    Gone,
    /// No more will come from it.
    Lost,
}

/// What a host tells.
pub(crate) enum News {
    Report(Report),
    /// It could start no rank.
    Failed {
        host: String,
        code: u8,
        text: String,
        ranks: Vec<usize>,
    },
    /// It is out of reach, and what became of its ranks is not known.
    Lost {
        host: String,
        why: String,
        ranks: Vec<usize>,
    },
}

/// What a host's descriptor is polled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Incoming,
    Outgoing,
}

impl Host {
    /// Starts the launch agent for node `node` of `plan`, and sends what is to be done.
    pub(crate) fn start(
        job: &Job,
        plan: &Plan,
        (node, host): (usize, &layout::Host),
        guard: &mut Guard,
    ) -> io::Result<Host> {
        let mut agent = Process::start(&mut agent_command(job, host))?;
        guard.on_group(agent.group());
        let input = agent.take_input().expect("its input was asked for");
        let output = agent.take_output().expect("its output was asked for");
        let mut link = Link::new(OwnedFd::from(output), OwnedFd::from(input))?;
        link.send(&ToRemote::Start(Box::new(Start {
            plan: plan.for_another_machine(),
            node,
            directory: std::env::current_dir()?.into_os_string(),
        })));
        Ok(Host {
            name: host.name.clone(),
            ranks: plan.seats(Here::Node(node)).map(|seat| seat.rank).collect(),
            agent,
            link,
            state: State::Keeping,
        })
    }

    pub(crate) fn interests(&self) -> Vec<Interest<'_, Source>> {
        if self.state != State::Keeping {
            return Vec::new();
        }
        let mut all = vec![(Source::Incoming, self.link.incoming(), PollFlags::IN)];
        let outgoing = self.link.outgoing();
        all.extend(outgoing.map(|fd| (Source::Outgoing, fd, PollFlags::OUT)));
        all
    }

    pub(crate) fn on_ready(&mut self, source: Source, tell: &mut impl FnMut(News)) {
        if source == Source::Outgoing {
            return self.link.on_writable();
        }
        match self.link.on_readable() {
            Ok(messages) => messages
                .into_iter()
                .for_each(|message| self.on_message(message, tell)),
            Err(broken) if self.state == State::Keeping => self.on_lost(&broken, tell),
            Err(_) => {}
        }
    }

    pub(crate) fn obey(&mut self, order: Order) {
        if self.state == State::Keeping {
            self.link.send(&ToRemote::Order(order));
        }
    }

    /// Sends what was ordered, as far as that goes without waiting.
    pub(crate) fn push_orders(&mut self) {
        self.link.on_writable();
    }

    /// When [`Host::on_clock`] wants to be called, from `now` on.
    pub(crate) fn next_step(&self, now: Instant) -> Option<Duration> {
        let (heard, said) = self.link.silence(now);
        let left = |limit: Duration, silence| limit.saturating_sub(silence);
        let next = left(self.patience(), heard).min(left(SAY_SOMETHING, said));
        (self.state == State::Keeping).then_some(next)
    }

    pub(crate) fn on_clock(&mut self, now: Instant, tell: &mut impl FnMut(News)) {
        if self.state != State::Keeping {
            return;
        }
        let (heard, said) = self.link.silence(now);
        if heard >= self.patience() {
            let why = format!("nothing was heard of it for {} s", heard.as_secs());
            self.lose(why, tell);
        } else if said >= SAY_SOMETHING {
            self.link.send(&ToRemote::Alive);
        }
    }

    /// Asks it to end what is left; then [`Host::finish`].
    pub(crate) fn say_farewell(&mut self) {
        if self.state == State::Keeping {
            self.link.send(&ToRemote::Farewell);
        }
    }

    /// Waits until nothing of the job is left there, or `deadline`. Gives its name where
    /// that is not known.
    pub(crate) fn finish(mut self, deadline: Instant) -> Option<String> {
        while self.state == State::Keeping {
            let left = deadline.saturating_duration_since(Instant::now());
            let ready = wait_for(&self.interests(), Some(left)).unwrap_or_default();
            if ready.is_empty() {
                break;
            }
            for (source, _) in ready {
                self.on_ready(source, &mut |_| {});
            }
        }
        (self.state == State::Keeping).then_some(self.name)
    }

    fn patience(&self) -> Duration {
        match self.link.is_greeted() {
            true => SILENCE,
            false => FIRST_WORD,
        }
    }

    fn on_message(&mut self, message: FromRemote, tell: &mut impl FnMut(News)) {
        match message {
            FromRemote::Report(report) => tell(News::Report(report)),
            FromRemote::Alive => {}
            FromRemote::Gone => self.state = State::Gone,
            FromRemote::Failed { code, text } => {
                self.state = State::Gone;
                tell(News::Failed {
                    host: self.name.clone(),
                    code,
                    text,
                    ranks: std::mem::take(&mut self.ranks),
                });
            }
        }
    }

    fn on_lost(&mut self, broken: &Broken, tell: &mut impl FnMut(News)) {
        let exit = [((), self.agent.exit.as_fd(), PollFlags::IN)];
        // An agent that closes its output is about to end.
        let _ = wait_for(&exit, Some(ABOUT_TO_END));
        let mut why = broken.to_string();
        if let Some(end) = self.agent.ended().map(|outcome| outcome.end) {
            why = format!("{why}; the launch agent ended {end}");
            if end == End::Exited(127) {
                why.push_str(" (is yod there under the same path? if not, --remote-yod names it)");
            }
        }
        self.lose(why, tell);
    }

    fn lose(&mut self, why: String, tell: &mut impl FnMut(News)) {
        self.state = State::Lost;
        tell(News::Lost {
            host: self.name.clone(),
            why,
            ranks: std::mem::take(&mut self.ranks),
        });
    }
}

/// `ssh host 'yod --remote'`, its standard input and output ours.
fn agent_command(job: &Job, host: &layout::Host) -> std::process::Command {
    let mut words = job.launch_agent();
    let name = format!("launch agent of {}", host.name);
    let mut command = tied_command(&name, &words.remove(0), None);
    let yod = job.remote_yod.clone().or_else(this_binary);
    let yod = quoted(yod.as_deref().unwrap_or("yod".as_ref()));
    // ssh joins its words by blanks and gives them to a shell.
    command
        .args(words)
        .arg(&host.name)
        .arg(format!("{yod} {REMOTE}"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

fn this_binary() -> Option<OsString> {
    Some(std::env::current_exe().ok()?.into_os_string())
}

/// A half that has nothing to say says so this often.
pub(crate) const SAY_SOMETHING: Duration = Duration::from_secs(5);
/// A half of which nothing is heard for so long is lost.
pub(crate) const SILENCE: Duration = Duration::from_secs(30);
/// How long a host may take to its first word: logging in may be slow.
pub(crate) const FIRST_WORD: Duration = Duration::from_secs(60);
const ABOUT_TO_END: Duration = Duration::from_millis(200);
