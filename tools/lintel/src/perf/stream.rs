//! `bandwidth` and `rate`: many operations in flight.

use std::cell::Cell;
use std::sync::atomic::Ordering::{Acquire, Release};

use super::baseline::{Baseline, Span};
use super::endpoint::{Endpoint, Setup, Signal};
use super::options::Wait;
use super::session::Session;
use crate::error::Result;
use crate::harness::{Workload, measure};
use crate::limits::lines::Slots;
use crate::limits::network::{Burst, UdpStream};
use crate::portals::{AckRequest, Counted, Transfer, wait_count};
use crate::raw::Region;
use crate::report::Row;
use crate::team::{Team, spin_until};

/// Streams of puts, then of gets, of each size.
pub fn bandwidth(session: &mut Session) -> Result<()> {
    for (variant, way, stage) in [
        ("put", Way::Put(End::Acked), Counted::Acks),
        ("get", Way::Get, Counted::Replies),
    ] {
        let setup = counting(session.options.largest(), stage);
        let endpoint = Endpoint::new(session, setup)?;
        let sizes = session.options.sizes.clone();
        for bytes in sizes.into_iter().filter(|&bytes| bytes >= SMALLEST) {
            session.announce(&format!("bandwidth, {variant}"), bytes);
            let limit = Baseline::new(session, &endpoint, bytes, Span::Stream)?;
            let window = window_for(bytes);
            let transfer = endpoint.transfer(bytes);
            let mut stream = Stream::new(&session.team, &endpoint, transfer, window, way)?;
            let measured = limit.measure(&session.team, session.plan, &mut [&mut stream])?;
            session.record(|| {
                let row = Row::new("bandwidth", variant, bytes)
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
    let window = session.options.window;
    let forms = [
        ("counted at the target", Wait::Ct, End::Arrived),
        ("counted acknowledgements", Wait::Ct, End::Acked),
        ("events at the target", Wait::Eq, End::Acked),
    ];
    for (variant, arrive, end) in forms {
        session.announce("rate", 8);
        let mut setup = counting(4096, Counted::Acks);
        setup.arrive = arrive;
        setup.depth = 2 * window;
        let endpoint = Endpoint::new(session, setup)?;
        let way = Way::Put(end);
        let transfer = endpoint.transfer(8);
        let mut stream = Stream::new(&session.team, &endpoint, transfer, window, way)?;
        let (limit_name, mut limit) = rate_limit(session)?;
        let workloads: &mut [&mut dyn Workload] = &mut [&mut *limit, &mut stream];
        let outcomes = measure(&session.team, session.plan, workloads)?;
        session.record(|| {
            Row::new("rate", variant, 8)
                .timed(&outcomes[1], 1.0)
                .with_rate(1.0)
                .with("in flight", window as f64)
                .against(limit_name, (&outcomes[1], 1.0), (&outcomes[0], 1.0))
        });
        session.team.barrier()?;
    }
    Ok(())
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
pub struct Stream<'a> {
    endpoint: &'a Endpoint,
    transfer: Transfer,
    window: u64,
    way: Way,
    done: Region,
    batches: u64,
    issued: Cell<u64>,
    completed: Cell<u64>,
}

impl<'a> Stream<'a> {
    /// Whose endpoint counts at rank 0's end.
    pub fn new(
        team: &Team,
        endpoint: &'a Endpoint,
        transfer: Transfer,
        window: u64,
        way: Way,
    ) -> Result<Self> {
        let issued = match &endpoint.completions {
            Signal::Counted(counter, _) => counter.get()?.success,
            _ => 0,
        };
        Ok(Self {
            endpoint,
            transfer,
            window,
            way,
            done: team.share(4096)?,
            batches: 0,
            issued: Cell::new(issued),
            completed: Cell::new(issued),
        })
    }

    fn issue(&self) -> Result<()> {
        match self.way {
            Way::Put(End::Acked) => self
                .endpoint
                .descriptor
                .put(&self.transfer, AckRequest::Counting)?,
            Way::Put(End::Arrived) => {
                return Ok(self
                    .endpoint
                    .descriptor
                    .put(&self.transfer, AckRequest::None)?);
            }
            Way::Get => self.endpoint.descriptor.get(&self.transfer)?,
        }
        self.issued.set(self.issued.get() + 1);
        Ok(())
    }

    /// With the window full, waits until half of it is complete.
    fn make_room(&self) -> Result<()> {
        if self.issued.get() - self.completed.get() < self.window {
            return Ok(());
        }
        self.complete(self.issued.get() - self.window / 2)
    }

    fn complete(&self, count: u64) -> Result<()> {
        if let Signal::Counted(counter, _) = &self.endpoint.completions {
            wait_count(counter, count)?;
        }
        self.completed.set(count);
        Ok(())
    }
}

impl Workload for Stream<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.make_room()?;
            self.issue()?;
        }
        self.batches += 1;
        if self.way == Way::Put(End::Arrived) {
            return spin_until(|| self.done.words()[0].load(Acquire) == self.batches);
        }
        self.complete(self.issued.get())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.endpoint.arrivals.take(n)?;
        self.batches += 1;
        self.done.words()[0].store(self.batches, Release);
        Ok(())
    }

    fn fewest(&self) -> u64 {
        2 * self.window
    }
}
