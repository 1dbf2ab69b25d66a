//! `one-core`: two ranks on one core, where a rank that waits keeps the other from running.

use super::endpoint::{Endpoint, Setup};
use super::options::Wait;
use super::pingpong::PutPing;
use super::session::Session;
use crate::error::Result;
use crate::harness::{Workload, measure};
use crate::limits::kernel::FutexWake;
use crate::machine;
use crate::portals::Counted;
use crate::report::Row;
use crate::report::names::ONE_CORE;

/// Half a round trip of 8 B puts by each way to wait, beside two threads that wake each other
/// by a futex. All threads of both ranks move to rank 0's core, and back afterwards.
pub fn run(session: &mut Session) -> Result<()> {
    let cores = session.options.cores.clone();
    // Opened first, so that the library's own threads are there to be moved.
    session.interface()?;
    machine::pin_all_threads(cores[0])?;
    session.team.barrier()?;
    let measured = points(session);
    machine::pin_all_threads(cores[session.team.rank()])?;
    measured?;
    session.team.barrier()
}

fn points(session: &mut Session) -> Result<()> {
    for wait in [Wait::Eqwait, Wait::Ct, Wait::Eq] {
        session.announce("two ranks on one core", 8);
        let mut setup = Setup::simple(session, 4096, Counted::Acks);
        setup.arrive = wait;
        let endpoint = Endpoint::new(session, setup)?;
        let mut put = Many(PutPing::new(&endpoint, 8, 0));
        let mut wake = Many(FutexWake::new(&session.team)?);
        let workloads: &mut [&mut dyn Workload] = &mut [&mut wake, &mut put];
        let outcomes = measure(&session.team, session.plan, workloads)?;
        session.record(|| {
            let (own, limit) = ((&outcomes[1], 2.0), (&outcomes[0], 2.0));
            Row::new(ONE_CORE, wait.name(), 8)
                .timed(own.0, own.1)
                .against("futex hand-over on one core", own, limit)
        });
        session.team.barrier()?;
    }
    Ok(())
}

/// So many repetitions at a time that it doesn't show how long a rank, once it is through,
/// polls for the other, which needs the core for its last one.
struct Many<W>(W);

impl<W: Workload> Workload for Many<W> {
    fn lead(&mut self, n: u64) -> Result<()> {
        self.0.lead(n)
    }

    fn follow(&mut self, n: u64) -> Result<()> {
        self.0.follow(n)
    }

    fn fewest(&self) -> u64 {
        256
    }
}
