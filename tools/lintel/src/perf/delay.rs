//! `delay`: an operation meets a target that computes and makes no call.

use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::endpoint::{Endpoint, Setup};
use super::options::Wait;
use super::session::Session;
use crate::error::Result;
use crate::harness::{Outcome, is_past};
use crate::limits::kernel::BusyWake;
use crate::portals::{Counted, Datatype, Operation, Sink};
use crate::raw::Region;
use crate::report::Row;
use crate::report::names::{ACKNOWLEDGED_TO_WAKE, DELIVERED_TO_WAKE};
use crate::stats::Times;
use crate::team::{Team, WORDS, spin_until};

/// Put, get and fetch-atomic of 8 B, and put and get to an entry that only counts: from the call
/// to the acknowledgement or reply, and to the moment that the target's memory shows the change.
pub fn run(session: &mut Session) -> Result<()> {
    session.announce("futex wake onto a busy core", 0);
    let deadline = session.plan.deadline(1);
    let wakes = BusyWake::new(&session.team)?.repeat(&session.team, deadline)?;
    let wake = (!wakes.is_empty()).then(|| Times::of(&wakes));
    let wait = session.options.wait;
    let calls = [
        ("put", wait, Call::Put, Counted::Acks),
        ("get", wait, Call::Get, Counted::Replies),
        ("fetch-atomic", wait, Call::Fetch, Counted::Replies),
        ("put, counted", Wait::Ct, Call::Put, Counted::Acks),
        ("get, counted", Wait::Ct, Call::Get, Counted::Replies),
    ];
    for (variant, arrive, call, stage) in calls {
        session.announce(variant, 8);
        let setup = Setup {
            arrive,
            ..Setup::simple(session, 4096, stage)
        };
        let endpoint = Endpoint::new(session, setup)?;
        let trial = Trial {
            endpoint: &endpoint,
            call,
            flags: session.team.share(4096)?,
            compute: Duration::from_millis(session.options.compute),
        };
        let enough = session.plan.budget + SLOWNESS * trial.compute;
        let seen = trial.repeat(&session.team, Instant::now() + enough)?;
        session.record(|| beside_wake(seen.into_row(variant, &trial), wake));
        session.team.barrier()?;
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Put,
    Get,
    Fetch,
}

struct Trial<'a> {
    endpoint: &'a Endpoint,
    call: Call,
    flags: Region,
    compute: Duration,
}

#[derive(Default)]
struct Seen {
    completed: Vec<f64>,
    delivered: Vec<f64>,
    evented: u64,
}

impl Trial<'_> {
    fn repeat(&self, team: &Team, deadline: Instant) -> Result<Seen> {
        let mut seen = Seen::default();
        for trial in 0..=TRIALS {
            let mut words = [0; WORDS];
            match team.leads() {
                true => words[..2].copy_from_slice(&self.strike(trial)?),
                false => words[2..4].copy_from_slice(&self.compute(trial)?),
            }
            let all = team.exchange(words)?;
            if trial == 0 {
                // It has connected the two processes.
                continue;
            }
            let (struck, completed) = (all[0][0], all[0][1]);
            let (delivered, evented) = (all[1][2], all[1][3]);
            seen.completed.push(completed as f64);
            if delivered != 0 {
                seen.delivered.push(delivered.saturating_sub(struck) as f64);
            }
            seen.evented += evented;
            if team.barrier_with(is_past(deadline))? != 0 {
                break;
            }
        }
        Ok(seen)
    }

    /// The origin: waits until the other side is deep in its computing. When it
    /// struck, and how long completion took, in ns.
    fn strike(&self, trial: u64) -> Result<[u64; 2]> {
        let started = &self.flags.lines()[0].0[0];
        spin_until(|| started.load(Acquire) == trial)?;
        // Never the same moment, so that no rhythm of the target hides.
        let pause = self.compute * u32::try_from(trial % 7 + 2).unwrap_or(2) / 16;
        let end = Instant::now() + pause;
        while Instant::now() < end {}
        self.endpoint.source.words()[0].store(trial, Release);
        let transfer = self.endpoint.transfer(8);
        let struck = now_ns();
        let start = Instant::now();
        match self.call {
            Call::Put => {
                let ack = self.endpoint.completions.ack();
                self.endpoint.descriptor.put(&transfer, ack)?;
            }
            Call::Get => self.endpoint.descriptor.get(&transfer)?,
            Call::Fetch => {
                let descriptor = &self.endpoint.descriptor;
                let old = Sink {
                    descriptor,
                    offset: 64,
                };
                let sum = (Operation::Sum, Datatype::Uint64);
                descriptor.fetch_atomic(&transfer, sum, old)?;
            }
        }
        self.endpoint.completions.next()?;
        Ok([struck, start.elapsed().as_nanos() as u64])
    }

    /// The target: computes, looking at its own memory. When that changed, in ns, and
    /// whether the event was there at the first look afterwards.
    fn compute(&self, trial: u64) -> Result<[u64; 2]> {
        let landing = &self.endpoint.landing.words()[0];
        let before = landing.load(Acquire);
        let mut delivered = 0;
        self.flags.lines()[0].0[0].store(trial, Release);
        let end = Instant::now() + self.compute;
        while Instant::now() < end {
            if delivered == 0 && landing.load(Acquire) != before {
                delivered = now_ns();
            }
        }
        let evented = self.endpoint.arrivals.try_take()?;
        if !evented {
            self.endpoint.arrivals.next()?;
        }
        Ok([delivered, evented.into()])
    }
}

impl Seen {
    fn into_row(self, variant: &str, trial: &Trial<'_>) -> Row {
        let mut row = Row::new("delay", variant, 8)
            .with("computes ms", trial.compute.as_secs_f64() * 1e3)
            .with(
                "event waiting %",
                100.0 * self.evented as f64 / self.completed.len() as f64,
            );
        row.times = Some(Times::of(&self.completed));
        row.iterations = self.completed.len() as u64;
        let trials = Outcome::of_rounds(self.completed, row.iterations, TRIALS as u32);
        row.shortened = trials.shortened();
        if self.delivered.is_empty() {
            return row;
        }
        let delivered = Times::of(&self.delivered);
        row.with(DELIVERED, delivered.median_us)
            .with("delivered p99 µs", delivered.p99_us)
    }
}

/// Compares with a bare wake of a thread on a core that another one keeps busy: nobody can
/// deliver to a process that computes in less, unless a thread spins.
fn beside_wake(row: Row, wake: Option<Times>) -> Row {
    let Some(wake) = wake else {
        return row;
    };
    let acknowledged = row.median_us().map(|us| us / wake.median_us);
    let delivered = row.figures.get(DELIVERED).map(|us| us / wake.median_us);
    let mut row = row.with("wake median µs", wake.median_us);
    for (name, ratio) in [
        (ACKNOWLEDGED_TO_WAKE, acknowledged),
        (DELIVERED_TO_WAKE, delivered),
    ] {
        row.figures.extend(ratio.map(|ratio| (name.into(), ratio)));
    }
    row
}

/// The time that `clock` shows, from its own epoch.
pub fn since(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// The monotonic clock, which all processes of a machine share.
pub fn now_ns() -> u64 {
    since(ClockId::Monotonic).as_nanos() as u64
}

const DELIVERED: &str = "delivered median µs";
const TRIALS: u64 = 100;
/// Computing times that all trials of one call may take beside the budget.
const SLOWNESS: u32 = 4 * TRIALS as u32;
