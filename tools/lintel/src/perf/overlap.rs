//! `overlap`: how much of a transfer hides behind computing, at either side.
//!
//! Three workloads take turns: the transfer alone, the computing alone, and both. If T
//! and C are the first two times and B the third, the overlap is
//! (T + C − B) / min(T, C).

use std::hint::black_box;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::Instant;

use super::endpoint::{Endpoint, Setup};
use super::options::Wait;
use super::session::Session;
use crate::error::Result;
use crate::harness::{Workload, measure};
use crate::portals::Counted;
use crate::raw::Region;
use crate::report::Row;
use crate::team::{Team, WORDS, spin_until};

/// 64 KiB and 4 MiB, the origin computing, then the target: with an event for each message, or
/// as the options say, and with an entry that counts.
pub fn run(session: &mut Session) -> Result<()> {
    let mut waits = vec![session.options.wait, Wait::Ct];
    waits.dedup();
    for side in [Side::Origin, Side::Target] {
        for &arrive in &waits {
            for bytes in [64 << 10, 4 << 20] {
                point(session, side, arrive, bytes)?;
            }
        }
    }
    Ok(())
}

fn point(session: &mut Session, side: Side, arrive: Wait, bytes: u64) -> Result<()> {
    let variant = side.name(arrive);
    session.announce(variant, bytes);
    let setup = Setup {
        arrive,
        ..Setup::simple(session, bytes, Counted::Acks)
    };
    let endpoint = Endpoint::new(session, setup)?;
    let flags = session.team.share(4096)?;
    let exchange = |moves, rounds| Exchange {
        endpoint: &endpoint,
        team_leads: session.team.leads(),
        flags: &flags,
        bytes,
        side,
        moves,
        rounds,
    };
    let mut transfer = exchange(true, 0);
    let alone = measure(&session.team, session.plan, &mut [&mut transfer])?;
    let length = alone.first().filter(|_| session.team.leads());
    let rounds = rounds_for(&session.team, length.map(|o| o.times(1.0).median_us))?;
    let mut compute = exchange(false, rounds);
    let mut both = exchange(true, rounds);
    let workloads: &mut [&mut dyn Workload] = &mut [&mut transfer, &mut compute, &mut both];
    let outcomes = measure(&session.team, session.plan, workloads)?;
    session.record(|| {
        let [t, c, b] = [0, 1, 2].map(|i| outcomes[i].times(1.0).median_us);
        let percent = 100.0 * (t + c - b) / t.min(c);
        Row::new("overlap", variant, bytes)
            .timed(&outcomes[2], 1.0)
            .with("transfer µs", t)
            .with("computing µs", c)
            .with("overlap %", percent.clamp(0.0, 100.0))
    });
    session.team.barrier()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Origin,
    Target,
}

impl Side {
    fn name(self, arrive: Wait) -> &'static str {
        match (self, arrive) {
            (Self::Origin, Wait::Ct) => "origin computes, counted",
            (Self::Target, Wait::Ct) => "target computes, counted",
            (Self::Origin, _) => "origin computes",
            (Self::Target, _) => "target computes",
        }
    }
}

/// One put and its acknowledgement, one stretch of computing, or both at once; over
/// when both sides are through.
struct Exchange<'a> {
    endpoint: &'a Endpoint,
    team_leads: bool,
    flags: &'a Region,
    bytes: u64,
    side: Side,
    moves: bool,
    rounds: u64,
}

impl Exchange<'_> {
    fn compute(&self) {
        let mine = (self.side == Side::Origin) == self.team_leads;
        if mine {
            compute(self.rounds);
        }
    }

    /// The two ranks meet: rank 0 raises line 0, rank 1 line 1.
    fn notify(&self) {
        let own = usize::from(!self.team_leads);
        let word = &self.flags.lines()[2 * own].0[0];
        word.store(word.load(Acquire) + 1, Release);
    }

    fn heed(&self) -> Result<()> {
        let (own, other) = if self.team_leads { (0, 2) } else { (2, 0) };
        let lines = self.flags.lines();
        let heard = &lines[own].0[1];
        let next = heard.load(Acquire) + 1;
        heard.store(next, Release);
        spin_until(|| lines[other].0[0].load(Acquire) >= next)
    }
}

impl Workload for Exchange<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        let transfer = self.endpoint.transfer(self.bytes);
        for _ in 0..n {
            self.notify();
            if self.moves {
                self.endpoint
                    .descriptor
                    .put(&transfer, self.endpoint.completions.ack())?;
            }
            self.compute();
            if self.moves {
                self.endpoint.completions.next()?;
            }
            self.heed()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.heed()?;
            self.compute();
            if self.moves {
                self.endpoint.arrivals.next()?;
            }
            self.notify();
        }
        Ok(())
    }
}

/// Arithmetic in registers: it takes time and touches no memory.
fn compute(rounds: u64) {
    let mut value = 1_u64;
    for i in 0..rounds {
        value = black_box(value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(i));
    }
    black_box(value);
}

/// How many rounds take `us`, measured by rank 0, broadcast to all.
fn rounds_for(team: &Team, us: Option<f64>) -> Result<u64> {
    let mut words = [0; WORDS];
    if let Some(us) = us {
        let probe = |_| {
            let start = Instant::now();
            compute(PROBE);
            start.elapsed().as_nanos() as f64 / PROBE as f64
        };
        let each = (0..PROBES).map(probe).fold(f64::MAX, f64::min);
        words[0] = (us * 1e3 / each).ceil() as u64;
    }
    Ok(team.broadcast(words)?[0])
}

const PROBE: u64 = 1 << 16;
/// The quickest counts: other processes on the machine only make one slower.
const PROBES: u32 = 32;
