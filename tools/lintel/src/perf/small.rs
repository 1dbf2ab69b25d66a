//! `small`: the operations of 8 B in turns, so that they can be held against each
//! other: a put by every way to wait, a get, a fetch-atomic.

use super::atomics::{Atomic, Call};
use super::baseline::{Baseline, Span};
use super::endpoint::{Endpoint, Setup};
use super::options::Wait;
use super::pingpong::{Get, PutPing};
use super::session::Session;
use crate::error::Result;
use crate::harness::{Workload, measure};
use crate::portals::Counted;
use crate::report::Row;

/// Every row also shows its ratio to the first one, the put by `PtlEQGet`.
pub fn run(session: &mut Session) -> Result<()> {
    session.announce("small", 8);
    let by_get = endpoint(session, Wait::Eq)?;
    let by_count = endpoint(session, Wait::Ct)?;
    let by_wait = endpoint(session, Wait::Eqwait)?;
    let mut limit = Baseline::new(session, &by_get, 8, Span::HalfTrip)?;
    let mut puts = [&by_get, &by_count, &by_wait].map(|s| PutPing(s, s.transfer(8)));
    let mut get = Get(&by_get, by_get.transfer(8));
    let mut fetch = Atomic(&by_get, Call::Fetch);
    let [first, second, third] = &mut puts;
    let workloads: &mut [&mut dyn Workload] =
        &mut [limit.workload(), first, second, third, &mut get, &mut fetch];
    let outcomes = measure(&session.team, session.plan, workloads)?;
    let forms = [
        ("put, PtlEQGet", 2.0),
        ("put, PtlCTWait", 2.0),
        ("put, PtlEQWait", 2.0),
        ("get", 1.0),
        ("fetch-atomic", 1.0),
    ];
    for (i, (variant, parts)) in forms.into_iter().enumerate() {
        session.record(|| {
            let (put, own) = (&outcomes[1], &outcomes[i + 1]);
            let row = Row::new("small", variant, 8)
                .timed(own, parts)
                .with("× put", own.ratio_to(put) * 2.0 / parts);
            limit.compare(row, own, parts, &outcomes[0])
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
