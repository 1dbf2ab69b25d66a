//! `small`: the operations of 8 B in turns, so that they can be held against each
//! other: a put by every way to wait, a get, a fetch-atomic.

use super::atomics::{Atomic, Call};
use super::baseline::{Baseline, Span};
use super::endpoint::{Endpoint, Setup};
use super::options::Wait;
use super::pingpong::{Get, PutPing};
use super::session::Session;
use crate::error::Result;
use crate::harness::Workload;
use crate::limits::lines::Handover;
use crate::portals::Counted;
use crate::report::Row;
use crate::report::names::TWO_LINES;

/// Every row also shows its ratio to the first one, the put by `PtlEQGet`.
pub fn run(session: &mut Session) -> Result<()> {
    session.announce("small", 8);
    let by_get = endpoint(session, Wait::Eq)?;
    let by_count = endpoint(session, Wait::Ct)?;
    let by_wait = endpoint(session, Wait::Eqwait)?;
    let limit = Baseline::new(session, &by_get, 8, Span::HalfTrip)?;
    let mut two_lines = Handover::two_lines(&session.team)?;
    let mut puts = [&by_get, &by_count, &by_wait].map(|side| PutPing::new(side, 8, 0));
    let mut get = Get(&by_get, by_get.transfer(8));
    let mut fetch = Atomic(&by_get, Call::Fetch);
    let [first, second, third] = &mut puts;
    let workloads: &mut [&mut dyn Workload] =
        &mut [first, second, third, &mut get, &mut fetch, &mut two_lines];
    let measured = limit.measure(&session.team, session.plan, workloads)?;
    let forms = [
        ("put, PtlEQGet", 2.0),
        ("put, PtlCTWait", 2.0),
        ("put, PtlEQWait", 2.0),
        ("get", 1.0),
        ("fetch-atomic", 1.0),
    ];
    for (i, (variant, parts)) in forms.into_iter().enumerate() {
        session.record(|| {
            let (put, own) = (&measured.own[0], &measured.own[i]);
            let two_lines = measured.own.last().expect("it is measured");
            let row = Row::new("small", variant, 8)
                .timed(own, parts)
                .with("× put", own.ratio_to(put) * 2.0 / parts)
                .with(TWO_LINES, own.ratio_to(two_lines) * 2.0 / parts);
            measured.compare(row, i, parts)
        });
    }
    session.team.barrier()
}

fn endpoint(session: &mut Session, wait: Wait) -> Result<Endpoint> {
    let mut setup = Setup::simple(session, 4096, Counted::Replies);
    setup.arrive = wait;
    setup.complete.0 = wait;
    Endpoint::new(session, setup)
}
