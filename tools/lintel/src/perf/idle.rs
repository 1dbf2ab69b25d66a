//! `idle`: processor time of a process that has met its peer and now sleeps.

use std::time::{Duration, Instant};

use rustix::time::ClockId;

use super::delay::since;
use super::endpoint::{Endpoint, Setup};
use super::pingpong::PutPing;
use super::session::Session;
use crate::error::Result;
use crate::harness::Workload;
use crate::portals::Counted;
use crate::report::Row;
use crate::team::WORDS;

/// Both processes sleep; the busier one counts.
pub fn run(session: &mut Session) -> Result<()> {
    session.announce("idle", 0);
    let setup = Setup::simple(session, 4096, Counted::Acks);
    let endpoint = Endpoint::new(session, setup)?;
    let mut ping = PutPing::new(&endpoint, 8, 0);
    match session.team.leads() {
        true => ping.lead(100)?,
        false => ping.follow(100)?,
    }
    session.team.barrier()?;
    let (start, before) = (Instant::now(), processor_time());
    std::thread::sleep(NAP);
    let used = processor_time() - before;
    let percent = 100.0 * used.as_secs_f64() / start.elapsed().as_secs_f64();
    let mut words = [0; WORDS];
    words[0] = percent.to_bits();
    let all = session.team.exchange(words)?;
    session.record(|| {
        let busier = all.iter().map(|w| f64::from_bits(w[0])).fold(0.0, f64::max);
        Row::new("idle", "asleep, interface open", 0)
            .with("processor %", busier)
            .with("seconds", NAP.as_secs_f64())
    });
    session.team.barrier()
}

/// Of all threads of this process.
fn processor_time() -> Duration {
    since(ClockId::ProcessCPUTime)
}

const NAP: Duration = Duration::from_secs(2);
