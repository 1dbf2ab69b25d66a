//! `atomics`: the four atomic calls on one word of 8 B.

use super::baseline::{Baseline, Span};
use super::endpoint::{Endpoint, Setup};
use super::session::Session;
use crate::error::Result;
use crate::harness::Workload;
use crate::portals::{AckRequest, Counted, Datatype, Operation, Sink};
use crate::report::Row;

/// An atomic one way as a ping-pong; the fetching ones from call to reply, by a
/// target that polls.
pub fn run(session: &mut Session) -> Result<()> {
    let setup = Setup::simple(session, 4096, Counted::Replies);
    let endpoint = Endpoint::new(session, setup)?;
    let calls = [
        ("atomic sum, one way", Call::Atomic),
        ("fetch-atomic sum", Call::Fetch),
        ("swap", Call::Swap),
        ("conditional swap", Call::CompareSwap),
    ];
    for (variant, call) in calls {
        session.announce(variant, 8);
        let span = call.span();
        let parts = if span == Span::HalfTrip { 2.0 } else { 1.0 };
        let limit = Baseline::new(session, &endpoint, 8, span)?;
        let mut workload = Atomic(&endpoint, call);
        let measured = limit.measure(&session.team, session.plan, &mut [&mut workload])?;
        session.record(|| {
            let row = Row::new("atomics", variant, 8).timed(&measured.own[0], parts);
            measured.compare(row, 0, parts)
        });
    }
    session.team.barrier()
}

/// The Portals call that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `PtlAtomic`, which returns nothing
    Atomic,
    /// `PtlFetchAtomic`, which returns the old value
    Fetch,
    /// `PtlSwap` with `PTL_SWAP`: replaces, and returns the earlier value
    Swap,
    /// `PtlSwap` with `PTL_CSWAP`: swaps if equal
    CompareSwap,
}

impl Call {
    fn span(self) -> Span {
        match self {
            Self::Atomic => Span::HalfTrip,
            _ => Span::RoundTrip,
        }
    }
}

/// One call on one word, by rank 0 or there and back.
pub struct Atomic<'a>(pub &'a Endpoint, pub Call);

impl Atomic<'_> {
    /// Starts the call.
    ///
    /// # Errors
    /// What Portals refused.
    pub fn issue(&self) -> Result<()> {
        let t = self.0.transfer(8);
        let descriptor = &self.0.descriptor;
        let old = Sink {
            descriptor,
            offset: OLD,
        };
        let sum = (Operation::Sum, Datatype::Uint64);
        match self.1 {
            Call::Atomic => descriptor.atomic(&t, sum, AckRequest::None)?,
            Call::Fetch => descriptor.fetch_atomic(&t, sum, old)?,
            Call::Swap => descriptor.swap(&t, Operation::Swap, None, old)?,
            Call::CompareSwap => descriptor.swap(&t, Operation::CswapEq, Some(0), old)?,
        }
        Ok(())
    }
}

impl Workload for Atomic<'_> {
    fn lead(&mut self, n: u64) -> Result<()> {
        for _ in 0..n {
            self.issue()?;
            match self.1 {
                Call::Atomic => self.0.arrivals.next()?,
                _ => self.0.completions.next()?,
            }
        }
        Ok(())
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        if self.1 != Call::Atomic {
            return self.0.arrivals.take(n);
        }
        for _ in 0..n {
            self.0.arrivals.next()?;
            self.issue()?;
        }
        Ok(())
    }
}

/// Where the old value lands in the descriptor.
const OLD: u64 = 64;
