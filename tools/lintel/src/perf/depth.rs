//! `depth`: put latency behind long match lists, beside a list of one.

use std::hint::black_box;
use std::time::Instant;

use super::endpoint::Setup;
use super::pingpong::PutPing;
use super::session::Session;
use super::side::{Side, over_api, variant};
use crate::error::Result;
use crate::harness::{Workload, measure};
use crate::portals::Counted;
use crate::report::Row;
use crate::stats::median;

/// Every depth with exact entries ahead, then with one in ten a wildcard.
pub fn run(session: &mut Session) -> Result<()> {
    over_api!(session, run_over)
}

fn run_over<S: Side>(session: &mut Session) -> Result<()> {
    for (name, one_in) in [("exact entries", 0), ("one in ten a wildcard", 10)] {
        for depth in session.options.depths.clone() {
            point::<S>(session, name, one_in, depth)?;
        }
    }
    Ok(())
}

fn point<S: Side>(session: &mut Session, name: &str, one_in: usize, depth: usize) -> Result<()> {
    session.announce(&format!("depth {depth}, {name}"), 8);
    let shallow: S = side(session, &entries(1, 0))?;
    let ahead = entries(depth, one_in);
    let deep: S = side(session, &ahead)?;
    let mut one = PutPing::new(&shallow, 8, 0);
    let mut many = PutPing::new(&deep, 8, 0);
    let workloads: &mut [&mut dyn Workload] = &mut [&mut one, &mut many];
    let outcomes = measure(&session.team, session.plan, workloads)?;
    let wildcards: Vec<_> = ahead.into_iter().filter(|entry| entry.1 != 0).collect();
    session.record(|| {
        let row = Row::new("depth", variant::<S>(name), 8)
            .timed(&outcomes[1], 2.0)
            .with("entries ahead", depth as f64)
            .with("× depth 1", outcomes[1].ratio_to(&outcomes[0]));
        if wildcards.is_empty() {
            return row;
        }
        let added = row.median_us().unwrap_or(0.0) - outcomes[0].times(2.0).median_us;
        row.with("added µs", added)
            .with("naive walk of the wildcards µs", naive_walk_us(&wildcards))
    });
    session.team.barrier()
}

fn side<S: Side>(session: &mut Session, ahead: &[(u64, u64)]) -> Result<S> {
    let mut setup = Setup::simple(session, 4096, Counted::Acks);
    setup.ahead = ahead;
    S::open(session, setup)
}

/// Bits and ignore bits that never match a benchmark's own; with `one_in`, every
/// so-manieth ignores its low half.
fn entries(depth: usize, one_in: usize) -> Vec<(u64, u64)> {
    (0..depth)
        .map(|i| {
            let wild = one_in > 0 && i % one_in == 0;
            let ignore = if wild { 0xffff_ffff } else { 0 };
            ((1 << 63) | ((i as u64) << 32) | i as u64, ignore)
        })
        .collect()
}

/// What a plain loop over those entries costs, each in a line of its own as a list
/// would hold it.
fn naive_walk_us(entries: &[(u64, u64)]) -> f64 {
    #[repr(align(64))]
    struct Slot(u64, u64);
    let slots: Vec<Slot> = entries.iter().map(|&(b, i)| Slot(b, i)).collect();
    let walk = |bits: u64| {
        let differs = |slot: &&Slot| (slot.0 ^ bits) & !slot.1 != 0;
        black_box(&slots).iter().take_while(differs).count()
    };
    let samples: Vec<f64> = (0..1000)
        .map(|_| {
            let start = Instant::now();
            black_box(walk(black_box(super::endpoint::BITS)));
            start.elapsed().as_nanos() as f64 / 1e3
        })
        .collect();
    median(&samples)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perf::endpoint::BITS;

    #[test]
    fn no_entry_ahead_matches_the_benchmarks_own_bits() {
        for (bits, ignore) in entries(10_000, 10) {
            assert_ne!((bits ^ BITS) & !ignore, 0);
        }
    }

    #[test]
    fn one_in_ten_is_a_wildcard() {
        let wild = entries(1000, 10)
            .iter()
            .filter(|entry| entry.1 != 0)
            .count();
        assert_eq!(wild, 100);
    }
}
