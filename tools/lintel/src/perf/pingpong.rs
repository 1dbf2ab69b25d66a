//! `put`, `get`, `bidirectional`: PortalPerf (seed 001, section 5.1).

use std::hint::black_box;
use std::sync::atomic::Ordering::Relaxed;

use super::baseline::{Baseline, Span};
use super::endpoint::Setup;
use super::session::Session;
use super::side::{Side, over_api, variant};
use crate::error::Result;
use crate::harness::Workload;
use crate::portals::Counted;
use crate::raw::{Line, Region};
use crate::report::Row;

/// Half a round trip of puts, each answered when its event was seen.
pub fn put(session: &mut Session) -> Result<()> {
    over_api!(session, put_over)
}

/// A get from a target that polls, from the call to the reply.
pub fn get(session: &mut Session) -> Result<()> {
    over_api!(session, get_over)
}

/// Both put at once, and each waits for its own send and for the other's put.
pub fn bidirectional(session: &mut Session) -> Result<()> {
    over_api!(session, bidirectional_over)
}

fn put_over<S: Side>(session: &mut Session) -> Result<()> {
    let form = Form {
        name: "put",
        parts: 2.0,
        span: Span::HalfTrip,
        stage: Counted::Acks,
    };
    let is_used = session.options.used;
    at_all_sizes::<S>(session, form, |side, bytes| {
        Box::new(PutPing {
            is_used,
            ..PutPing::new(side, bytes, 0)
        })
    })
}

fn get_over<S: Side>(session: &mut Session) -> Result<()> {
    let form = Form {
        name: "get",
        parts: 1.0,
        span: Span::RoundTrip,
        stage: Counted::Replies,
    };
    at_all_sizes::<S>(session, form, |side, bytes| {
        Box::new(Get(side, side.transfer_at(bytes, 0)))
    })
}

fn bidirectional_over<S: Side>(session: &mut Session) -> Result<()> {
    let form = Form {
        name: "bidirectional",
        parts: 1.0,
        span: Span::HalfTrip,
        stage: Counted::Sends,
    };
    at_all_sizes::<S>(session, form, |side, bytes| {
        Box::new(Bidirectional(side, side.transfer_at(bytes, 0)))
    })
}

/// A put there, a put back.
pub struct PutPing<'a, S: Side> {
    side: &'a S,
    transfer: S::Transfer,
    bytes: u64,
    /// Each line is written before, and read afterwards.
    is_used: bool,
}

impl<'a, S: Side> PutPing<'a, S> {
    /// Puts of that many bytes, from an offset to the same one.
    pub fn new(side: &'a S, bytes: u64, offset: u64) -> Self {
        PutPing {
            side,
            transfer: side.transfer_at(bytes, offset),
            bytes,
            is_used: false,
        }
    }

    fn send(&self) -> Result<()> {
        if self.is_used {
            let lines = self.lines(self.side.buffers().0).iter();
            lines.for_each(|line| line.0[0].store(self.bytes, Relaxed));
        }
        self.side.put(&self.transfer, false)
    }

    fn receive(&self) -> Result<()> {
        self.side.take_arrivals(1)?;
        if self.is_used {
            for line in self.lines(self.side.buffers().1) {
                black_box(line.0[0].load(Relaxed));
            }
        }
        Ok(())
    }

    /// The lines of what is put.
    fn lines<'r>(&self, region: &'r Region) -> &'r [Line] {
        &region.lines()[..(self.bytes as usize).div_ceil(size_of::<Line>())]
    }
}

impl<S: Side> Workload for PutPing<'_, S> {
    /// Behind its last put the follower waits for the leader without a call of Portals, and copies no
    /// part of a long body, as both sides do otherwise: of many it counts little. As many take about as
    /// long as the blocks of the programs for other libraries.
    fn fewest(&self) -> u64 {
        match self.bytes {
            LEAST_SHARED..=MOST_SHARED => 32,
            _ => 8,
        }
    }

    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.send()?;
            self.receive()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.receive()?;
            self.send()?;
        }
        Ok(())
    }
}

/// Bodies of which both sides may move parts, in bytes, but for those whose copies take long.
const LEAST_SHARED: u64 = 16 << 10;
const MOST_SHARED: u64 = 512 << 10;

/// A get by rank 0.
pub struct Get<'a, S: Side>(pub &'a S, pub S::Transfer);

impl<S: Side> Workload for Get<'_, S> {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.get(&self.1)?;
            self.0.take_completions(1)?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.0.take_arrivals(n)
    }
}

struct Bidirectional<'a, S: Side>(&'a S, S::Transfer);

impl<S: Side> Bidirectional<'_, S> {
    fn exchange(&self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.put(&self.1, false)?;
            self.0.take_completions(1)?;
            self.0.take_arrivals(1)?;
        }
        Ok(())
    }
}

impl<S: Side> Workload for Bidirectional<'_, S> {
    fn lead(&mut self, n: u64) -> Result<()> {
        self.exchange(n)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.exchange(n)
    }
}

/// What distinguishes the three.
#[derive(Clone, Copy)]
struct Form {
    name: &'static str,
    /// By how many the time of a repetition is divided.
    parts: f64,
    span: Span,
    stage: Counted,
}

fn at_all_sizes<S: Side>(
    session: &mut Session,
    form: Form,
    workload: impl for<'a> Fn(&'a S, u64) -> Box<dyn Workload + 'a>,
) -> Result<()> {
    let setup = Setup::simple(session, session.options.largest(), form.stage);
    let side = S::open(session, setup)?;
    for bytes in session.options.sizes.clone() {
        session.announce(form.name, bytes);
        let limit = Baseline::new(session, &side, bytes, form.span)?;
        let mut own = workload(&side, bytes);
        let measured = limit.measure(&session.team, session.plan, &mut [&mut *own])?;
        let wait = session.options.wait.name();
        let variant = match form.name == "put" && session.options.used {
            true => variant::<S>(&format!("{wait}, used")),
            false => variant::<S>(wait),
        };
        let directions = if form.name == "bidirectional" { 2 } else { 1 };
        session.record(|| {
            let row = Row::new(form.name, variant, bytes)
                .timed(&measured.own[0], form.parts)
                .with_bandwidth(bytes * directions);
            measured.compare(row, 0, form.parts)
        });
    }
    session.team.barrier()
}
