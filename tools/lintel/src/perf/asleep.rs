//! `asleep`: requests to a server that sleeps until one comes, and its answers.

use std::thread;
use std::time::{Duration, Instant};

use super::endpoint::{Endpoint, Setup};
use super::options::Wait;
use super::pingpong::PutPing;
use super::session::Session;
use crate::error::Result;
use crate::harness::{Outcome, Workload, is_past};
use crate::limits::kernel::FutexCall;
use crate::portals::Counted;
use crate::report::Row;
use crate::report::names::ASLEEP;
use crate::team::Team;

/// A put to a process that has long slept in a call that waits, until its put back has come, beside a
/// futex by which one thread wakes another that answers through shared memory.
pub fn run(session: &mut Session) -> Result<()> {
    for bytes in SIZES {
        session.announce("a server that sleeps", bytes);
        let mut setup = Setup::simple(session, bytes, Counted::Acks);
        setup.arrive = Wait::Eqwait;
        let endpoint = Endpoint::new(session, setup)?;
        let mut call = FutexCall::new(&session.team)?;
        let mut put = PutPing::new(&endpoint, bytes, 0);
        let deadline = session.plan.deadline(2);
        let [limit, own] = repeat(&session.team, [&mut call, &mut put], deadline)?;
        session.record(|| {
            Row::new(ASLEEP, Wait::Eqwait.name(), bytes)
                .timed(&own, 1.0)
                .against("futex there, spinning back", (&own, 1.0), (&limit, 1.0))
        });
        session.team.barrier()?;
    }
    Ok(())
}

/// Requests of each workload in turns, with a pause ahead of each; in rank 0, nothing elsewhere.
fn repeat(
    team: &Team,
    mut workloads: [&mut dyn Workload; 2],
    deadline: Instant,
) -> Result<[Outcome; 2]> {
    let mut rounds = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (workload, rounds) in workloads.iter_mut().zip(&mut rounds) {
            if !team.leads() {
                workload.follow(REQUESTS)?;
                continue;
            }
            let mut took = Duration::ZERO;
            for _ in 0..REQUESTS {
                thread::sleep(PAUSE);
                let start = Instant::now();
                workload.lead(1)?;
                took += start.elapsed();
            }
            // The first round has connected the two processes.
            if round > 0 {
                rounds.push(took.as_nanos() as f64 / REQUESTS as f64);
            }
        }
        // One round is measured however late it is.
        if team.barrier_with(is_past(deadline))? != 0 && round > 0 {
            break;
        }
    }
    let outcome = |rounds: Vec<f64>| {
        let requests = REQUESTS * rounds.len() as u64;
        Outcome::of_rounds(rounds, requests, ROUNDS)
    };
    Ok(rounds.map(outcome))
}

const SIZES: [u64; 3] = [8, 16 << 10, 1 << 20];
/// Longer than a call that waits polls before it sleeps.
const PAUSE: Duration = Duration::from_millis(4);
/// Requests of one workload before it is the other's turn.
const REQUESTS: u64 = 8;
const ROUNDS: u32 = 24;
