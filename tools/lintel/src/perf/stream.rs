//! `bandwidth` and `rate`: many operations in flight.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::baseline::{Baseline, Span};
use super::endpoint::Setup;
use super::options::{Api, Wait};
use super::session::Session;
use super::side::{Side, over_api, variant};
use crate::error::Result;
use crate::harness::{Workload, measure};
use crate::limits::lines::Slots;
use crate::limits::network::{Burst, UdpStream};
use crate::portals::Counted;
use crate::raw::Region;
use crate::report::Row;
use crate::team::{Team, spin_until};

/// Streams of puts, then of gets, of each size.
pub fn bandwidth(session: &mut Session) -> Result<()> {
    over_api!(session, bandwidth_over)
}

fn bandwidth_over<S: Side>(session: &mut Session) -> Result<()> {
    let put = ("put", Way::Put(End::Acked), Span::PutStream, Counted::Acks);
    let get = ("get", Way::Get, Span::GetStream, Counted::Replies);
    for (name, way, span, stage) in [put, get] {
        let setup = counting(session.options.largest(), stage);
        let side = S::open(session, setup)?;
        let sizes = session.options.sizes.clone();
        for bytes in sizes.into_iter().filter(|&bytes| bytes >= SMALLEST) {
            session.announce(&format!("bandwidth, {name}"), bytes);
            let limit = Baseline::new(session, &side, bytes, span)?;
            let window = window_for(bytes);
            let transfer = side.transfer_at(bytes, 0);
            let mut stream = Stream::new(&session.team, &side, transfer, window, way)?;
            let measured = limit.measure(&session.team, session.plan, &mut [&mut stream])?;
            session.record(|| {
                let row = Row::new("bandwidth", variant::<S>(name), bytes)
                    .timed(&measured.own[0], 1.0)
                    .with_bandwidth(bytes)
                    .with("in flight", window as f64);
                measured.compare(row, 0, 1.0)
            });
        }
        session.team.barrier()?;
    }
    Ok(())
}

/// Streams of 8 B puts, distinguished by what reports their arrival.
pub fn rate(session: &mut Session) -> Result<()> {
    over_api!(session, rate_over)
}

fn rate_over<S: Side>(session: &mut Session) -> Result<()> {
    let window = session.options.window;
    for &(name, arrive, end) in rate_forms(S::API) {
        session.announce("rate", 8);
        let mut setup = counting(4096, Counted::Acks);
        setup.arrive = arrive;
        setup.depth = 2 * window;
        let side = S::open(session, setup)?;
        let way = Way::Put(end);
        let transfer = side.transfer_at(8, 0);
        let mut stream = Stream::new(&session.team, &side, transfer, window, way)?;
        let (limit_name, mut limit) = rate_limit(session)?;
        let workloads: &mut [&mut dyn Workload] = &mut [&mut *limit, &mut stream];
        let outcomes = measure(&session.team, session.plan, workloads)?;
        session.record(|| {
            Row::new("rate", variant::<S>(name), 8)
                .timed(&outcomes[1], 1.0)
                .with_rate(1.0)
                .with("in flight", window as f64)
                .against(limit_name, (&outcomes[1], 1.0), (&outcomes[0], 1.0))
        });
        session.team.barrier()?;
    }
    Ok(())
}

/// Names, how arrivals are waited for, and what ends a stream. Portals 3.3 has no counters, and
/// with unacknowledged puts its sender would overrun the target's queue.
fn rate_forms(api: Api) -> &'static [(&'static str, Wait, End)] {
    match api {
        Api::Portals4 => &[
            ("counted at the target", Wait::Ct, End::Arrived),
            ("counted acknowledgements", Wait::Ct, End::Acked),
            ("events at the target", Wait::Eq, End::Acked),
        ],
        Api::Portals3 => &[("events at the target", Wait::Eq, End::Acked)],
    }
}

/// What 8 B messages are held against: slots of shared memory, or bare datagrams.
fn rate_limit(session: &Session) -> Result<(&'static str, Box<dyn Workload>)> {
    let team = &session.team;
    if session.options.network.is_crossed() {
        let stream = UdpStream::new(team, Burst::Datagram(8))?;
        return Ok(("bare UDP, one call each", Box::new(stream)));
    }
    Ok(("64 B slots", Box::new(Slots::new(team)?)))
}

/// Counting events at both ends, as streams use them.
pub fn counting<'a>(bytes: u64, stage: Counted) -> Setup<'a> {
    Setup {
        bytes,
        arrive: Wait::Ct,
        complete: (Wait::Ct, stage),
        depth: 64,
        ahead: &[],
    }
}

/// The smallest message whose stream is measured as bandwidth, in bytes.
pub const SMALLEST: u64 = 64;

/// Messages in flight that keep about 4 MiB moving.
pub fn window_for(bytes: u64) -> u64 {
    ((4 << 20) / bytes.max(1)).clamp(4, 256)
}

/// Which way the bytes of a stream go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From rank 0 to rank 1.
    Put(End),
    /// From rank 1 to rank 0.
    Get,
}

/// Which rank reports to rank 0 that a stream of puts is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Counting acknowledgements; they also keep the window.
    Acked,
    /// Rank 1, outside Portals, when its counter says so. The window is the
    /// library's own.
    Arrived,
}

/// Up to `window` operations of rank 0 in flight.
pub struct Stream<'a, S: Side> {
    side: &'a S,
    transfer: S::Transfer,
    window: u64,
    way: Way,
    /// Where rank 1 counts batches, if it reports their ends.
    done: Option<Region>,
    batches: u64,
    in_flight: Cell<u64>,
}

impl<'a, S: Side> Stream<'a, S> {
    /// Whose side counts completions at rank 0's end.
    pub fn new(
        team: &Team,
        side: &'a S,
        transfer: S::Transfer,
        window: u64,
        way: Way,
    ) -> Result<Self> {
        let done = match way {
            Way::Put(End::Arrived) => Some(team.share(4096)?),
            Way::Put(End::Acked) | Way::Get => None,
        };
        Ok(Self {
            side,
            transfer,
            window,
            way,
            done,
            batches: 0,
            in_flight: Cell::new(0),
        })
    }

    fn issue(&self) -> Result<()> {
        match self.way {
            Way::Put(End::Arrived) => return self.side.put(&self.transfer, false),
            Way::Put(End::Acked) => self.side.put(&self.transfer, true)?,
            Way::Get => self.side.get(&self.transfer)?,
        }
        self.in_flight.set(self.in_flight.get() + 1);
        Ok(())
    }

    /// With the window full, waits until half of it is complete.
    fn make_room(&self) -> Result<()> {
        let in_flight = self.in_flight.get();
        if in_flight < self.window {
            return Ok(());
        }
        self.complete(in_flight - self.window / 2)
    }

    fn complete(&self, count: u64) -> Result<()> {
        self.side.take_completions(count)?;
        self.in_flight.set(self.in_flight.get() - count);
        Ok(())
    }
}

impl<S: Side> Workload for Stream<'_, S> {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.make_room()?;
            self.issue()?;
        }
        self.batches += 1;
        if let Some(done) = &self.done {
            return spin_until(|| done.words()[0].load(Acquire) == self.batches);
        }
        self.complete(self.in_flight.get())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.side.take_arrivals(n)?;
        self.batches += 1;
        if let Some(done) = &self.done {
            done.words()[0].store(self.batches, Release);
        }
        Ok(())
    }

    fn fewest(&self) -> u64 {
        2 * self.window
    }
}
