//! `put`, `get`, `bidirectional`: PortalPerf (seed 001, section 5.1).

use super::baseline::{Baseline, Span};
use super::harness::{Pattern, measure};
use super::session::Session;
use super::station::{Setup, Station};
use crate::error::Result;
use crate::portals::{Ack, Counted, Transfer};
use crate::report::Row;

/// Half a round trip of puts, each answered when its event was seen.
pub fn put(session: &mut Session) -> Result<()> {
    let setup = Setup::simple(session, session.options.largest(), Counted::Acks);
    let station = Station::new(session, setup)?;
    for bytes in session.options.sizes.clone() {
        let mut ping = PutPing(&station, station.transfer(bytes));
        let (name, parts) = ("put", 2.0);
        point(
            session,
            &station,
            name,
            bytes,
            parts,
            Span::HalfTrip,
            &mut ping,
        )?;
    }
    session.team.meet()
}

/// A get from a target that polls, from the call to the reply.
pub fn get(session: &mut Session) -> Result<()> {
    let setup = Setup::simple(session, session.options.largest(), Counted::Replies);
    let station = Station::new(session, setup)?;
    for bytes in session.options.sizes.clone() {
        let mut get = Get(&station, station.transfer(bytes));
        point(
            session,
            &station,
            "get",
            bytes,
            1.0,
            Span::RoundTrip,
            &mut get,
        )?;
    }
    session.team.meet()
}

/// Both put at once, and each waits for its own send and for the other's put.
pub fn bidirectional(session: &mut Session) -> Result<()> {
    let setup = Setup::simple(session, session.options.largest(), Counted::Sends);
    let station = Station::new(session, setup)?;
    for bytes in session.options.sizes.clone() {
        let mut both = Bidirectional(&station, station.transfer(bytes));
        let (name, span) = ("bidirectional", Span::HalfTrip);
        point(session, &station, name, bytes, 1.0, span, &mut both)?;
    }
    session.team.meet()
}

/// A put there, a put back.
pub struct PutPing<'a>(pub &'a Station, pub Transfer);

impl Pattern for PutPing<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.md.put(&self.1, Ack::None)?;
            self.0.arrivals.next()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.arrivals.next()?;
            self.0.md.put(&self.1, Ack::None)?;
        }
        Ok(())
    }
}

/// A get by rank 0.
pub struct Get<'a>(pub &'a Station, pub Transfer);

impl Pattern for Get<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.md.get(&self.1)?;
            self.0.completions.next()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.0.arrivals.take(n)
    }
}

struct Bidirectional<'a>(&'a Station, Transfer);

impl Bidirectional<'_> {
    fn exchange(&self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.md.put(&self.1, Ack::None)?;
            self.0.completions.next()?;
            self.0.arrivals.next()?;
        }
        Ok(())
    }
}

impl Pattern for Bidirectional<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        self.exchange(n)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.exchange(n)
    }
}

fn point(
    session: &mut Session,
    station: &Station,
    name: &str,
    bytes: u64,
    parts: f64,
    span: Span,
    pattern: &mut dyn Pattern,
) -> Result<()> {
    session.announce(name, bytes);
    let mut limit = Baseline::new(session, station, bytes, span)?;
    let outcomes = measure(&session.team, session.plan, &mut [limit.pattern(), pattern])?;
    let variant = session.options.wait.name();
    let directions = if name == "bidirectional" { 2 } else { 1 };
    session.record(|| {
        let row = Row::new(name, variant, bytes)
            .timed(&outcomes[1], parts)
            .with_bandwidth(bytes * directions);
        limit.compare(row, &outcomes[1], parts, &outcomes[0])
    });
    Ok(())
}
