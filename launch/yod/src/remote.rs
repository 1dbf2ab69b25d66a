//! yod on another machine: keeps the ranks of one node for a launcher at the other end
//! of standard input and output.
//!
//! It starts what it is told, obeys and reports. Should the launcher be lost, it ends
//! all that it has started; its guard does so should it be killed itself.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::exit;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::process::Signal;

use crate::crew::{self, Crew};
use crate::guard::Guard;
use crate::host::{FIRST_WORD, SAY_SOMETHING, SILENCE};
use crate::job::Error;
use crate::leftovers::{self, SHARED_MEMORY};
use crate::link::Link;
use crate::message::{FromRemote, Order, Start, ToRemote};
use crate::plan::Here;
use crate::poll::{Interest, wait_for};
use crate::program;
use crate::rank::Input;
use crate::signals::Signals;
use crate::supervisor::GRACE;

/// The life of the remote half.
pub(crate) fn keep() -> ! {
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
    let mut guard = Guard::start(&name)?;
    let outcome = match start_crew(&start, &mut guard) {
        Err(error) => {
            let (code, text) = (error.exit_code(), error.to_string());
            link.send(&FromRemote::Failed { code, text });
            Ok(())
        }
        Ok((crew, signals)) => {
            let mut keeper = Keeper {
                link: &mut link,
                signals,
                patient: false,
            };
            keeper
                .keep(crew, more)
                .map(|()| link.send(&FromRemote::Gone))
        }
    };
    guard.dismiss();
    let _ = leftovers::remove(Path::new(SHARED_MEMORY), &name);
    say_the_rest(&mut link);
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

/// What is to be started, and what came right behind it.
fn first_messages(link: &mut Link<ToRemote>) -> io::Result<(Start, Vec<ToRemote>)> {
    let deadline = Instant::now() + FIRST_WORD;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let ready = wait_for(&link_interests(link), Some(left))?;
        if ready.is_empty() {
            return Err(io::Error::other("the launcher says nothing"));
        }
        for (source, _) in ready {
            if source == Source::Outgoing {
                link.on_writable();
                continue;
            }
            let mut messages = link.on_readable().map_err(lost)?.into_iter();
            match messages.next() {
                Some(ToRemote::Start(start)) => return Ok((*start, messages.collect())),
                Some(_) => return Err(io::Error::other("the launcher speaks out of turn")),
                None => {}
            }
        }
    }
}

fn start_crew(start: &Start, guard: &mut Guard) -> Result<(Crew, Signals), Error> {
    let refused = |what| move |error| Error::System { what, error };
    let signals = Signals::take().map_err(refused("installing signal handlers"))?;
    std::env::set_current_dir(&start.directory).map_err(|error| Error::Directory {
        directory: start.directory.clone(),
        error,
    })?;
    program::find(&start.plan.program)?;
    let here = Here::Node(start.node);
    let crew = Crew::start(&start.plan, here, Input::Piped, guard, &signals)?;
    Ok((crew, signals))
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

/// Sends what is held, as long as the launcher takes it.
fn say_the_rest(link: &mut Link<ToRemote>) {
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
    Crew(crew::Source),
}

struct Keeper<'a> {
    link: &'a mut Link<ToRemote>,
    signals: Signals,
    /// The launcher was stopped: its silence means nothing.
    patient: bool,
}

impl Keeper<'_> {
    /// Keeps `crew` until the launcher says farewell or is lost; nothing of it is left
    /// then. `messages` have come already.
    fn keep(&mut self, mut crew: Crew, messages: Vec<ToRemote>) -> io::Result<()> {
        let mut outcome = self.on_messages(messages, &mut crew);
        while let Ok(false) = outcome {
            outcome = self.one_round(&mut crew);
        }
        crew.finish(GRACE);
        outcome.map(drop)
    }

    /// Whether the launcher has said farewell.
    fn one_round(&mut self, crew: &mut Crew) -> io::Result<bool> {
        let ready = {
            let mut interests = link_interests(self.link);
            let signals = self.signals.requests_to_end();
            interests.extend(signals.map(|(_, fd)| (Source::Signal, fd, PollFlags::IN)));
            let ranks = crew.interests(!self.link.is_full()).into_iter();
            interests.extend(ranks.map(|(source, fd, flags)| (Source::Crew(source), fd, flags)));
            wait_for(&interests, Some(self.next_step()))?
        };
        let mut farewell = false;
        for (source, flags) in ready {
            match source {
                Source::Incoming => {
                    let messages = self.link.on_readable().map_err(lost)?;
                    farewell |= self.on_messages(messages, crew)?;
                }
                Source::Outgoing => self.link.on_writable(),
                Source::Signal => return Err(io::Error::other("a signal asks for the end")),
                Source::Crew(source) => {
                    let mut tell = |report| self.link.send(&FromRemote::Report(report));
                    crew.on_ready(source, flags, &mut tell);
                }
            }
        }
        self.on_clock(Instant::now()).map(|()| farewell)
    }

    /// Whether one of `messages` is the farewell.
    fn on_messages(&mut self, messages: Vec<ToRemote>, crew: &mut Crew) -> io::Result<bool> {
        for message in messages {
            self.patient = false;
            match message {
                ToRemote::Order(order) => {
                    self.patient = matches!(order, Order::Signal(n) if n == Signal::STOP.as_raw());
                    let mut tell = |report| self.link.send(&FromRemote::Report(report));
                    crew.obey(order, &mut tell);
                }
                ToRemote::Alive => {}
                ToRemote::Farewell => return Ok(true),
                ToRemote::Start(_) => return Err(io::Error::other("started twice")),
            }
        }
        Ok(false)
    }

    fn next_step(&self) -> Duration {
        let (heard, said) = self.link.silence(Instant::now());
        let speak = SAY_SOMETHING.saturating_sub(said);
        match self.patient {
            true => speak,
            false => speak.min(SILENCE.saturating_sub(heard)),
        }
    }

    fn on_clock(&mut self, now: Instant) -> io::Result<()> {
        let (heard, said) = self.link.silence(now);
        if heard >= SILENCE && !self.patient {
            return Err(io::Error::other("nothing is heard of the launcher"));
        }
        if said >= SAY_SOMETHING {
            self.link.send(&FromRemote::Alive);
        }
        Ok(())
    }
}
