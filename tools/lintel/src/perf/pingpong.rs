//! `put`, `get`, `bidirectional`: PortalPerf (seed 001, section 5.1).

use super::baseline::{Baseline, Span};
use super::endpoint::{Endpoint, Setup};
use super::session::Session;
use crate::error::Result;
use crate::harness::Workload;
use crate::portals::{AckRequest, Counted, Transfer};
use crate::report::Row;

/// Half a round trip of puts, each answered when its event was seen.
pub fn put(session: &mut Session) -> Result<()> {
    let setup = Setup::simple(session, session.options.largest(), Counted::Acks);
    let endpoint = Endpoint::new(session, setup)?;
    for bytes in session.options.sizes.clone() {
        let mut ping = PutPing(&endpoint, endpoint.transfer(bytes));
        let (name, parts) = ("put", 2.0);
        point(
            session,
            &endpoint,
            name,
            bytes,
            parts,
            Span::HalfTrip,
            &mut ping,
        )?;
    }
    session.team.barrier()
}

/// A get from a target that polls, from the call to the reply.
pub fn get(session: &mut Session) -> Result<()> {
    let setup = Setup::simple(session, session.options.largest(), Counted::Replies);
    let endpoint = Endpoint::new(session, setup)?;
    for bytes in session.options.sizes.clone() {
        let mut get = Get(&endpoint, endpoint.transfer(bytes));
        point(
            session,
            &endpoint,
            "get",
            bytes,
            1.0,
            Span::RoundTrip,
            &mut get,
        )?;
    }
    session.team.barrier()
}

/// Both put at once, and each waits for its own send and for the other's put.
pub fn bidirectional(session: &mut Session) -> Result<()> {
    let setup = Setup::simple(session, session.options.largest(), Counted::Sends);
    let endpoint = Endpoint::new(session, setup)?;
    for bytes in session.options.sizes.clone() {
        let mut both = Bidirectional(&endpoint, endpoint.transfer(bytes));
        let (name, span) = ("bidirectional", Span::HalfTrip);
        point(session, &endpoint, name, bytes, 1.0, span, &mut both)?;
    }
    session.team.barrier()
}

/// A put there, a put back.
pub struct PutPing<'a>(pub &'a Endpoint, pub Transfer);

impl Workload for PutPing<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.descriptor.put(&self.1, AckRequest::None)?;
            self.0.arrivals.next()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.arrivals.next()?;
            self.0.descriptor.put(&self.1, AckRequest::None)?;
        }
        Ok(())
    }
}

/// A get by rank 0.
pub struct Get<'a>(pub &'a Endpoint, pub Transfer);

impl Workload for Get<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.descriptor.get(&self.1)?;
            self.0.completions.next()?;
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.0.arrivals.take(n)
    }
}

struct Bidirectional<'a>(&'a Endpoint, Transfer);

impl Bidirectional<'_> {
    fn exchange(&self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.0.descriptor.put(&self.1, AckRequest::None)?;
            self.0.completions.next()?;
            self.0.arrivals.next()?;
        }
        Ok(())
    }
}

impl Workload for Bidirectional<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        self.exchange(n)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.exchange(n)
    }
}

fn point(
    session: &mut Session,
    endpoint: &Endpoint,
    name: &str,
    bytes: u64,
    parts: f64,
    span: Span,
    workload: &mut dyn Workload,
) -> Result<()> {
    session.announce(name, bytes);
    let limit = Baseline::new(session, endpoint, bytes, span)?;
    let measured = limit.measure(&session.team, session.plan, &mut [workload])?;
    let variant = session.options.wait.name();
    let directions = if name == "bidirectional" { 2 } else { 1 };
    session.record(|| {
        let row = Row::new(name, variant, bytes)
            .timed(&measured.own[0], parts)
            .with_bandwidth(bytes * directions);
        measured.compare(row, 0, parts)
    });
    Ok(())
}
