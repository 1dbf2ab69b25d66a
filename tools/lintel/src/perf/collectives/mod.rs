//! `collectives`: the operations of libptlcoll among some ranks, progressed by the Portals
//! library and by the calling thread, beside each other.
//!
//! ```text
//!   lintel perf collectives ── Job of 2 ranks ──┐   each rank: one interface, two groups
//!                  rows ◀───── Job of 4 ranks ──┘   that take turns at every point
//! ```
//!
//! What is timed is rank 0's call, after a barrier that isn't: the root of what has a root
//! doesn't wait for the others, and the last rank of a broadcast takes longer.

mod ranks;

use std::process::ExitCode;

use lintel_pmi::client::Client;
use portals4_collectives::{Call, Combine, Datatype, Operation, Reduction};

use super::multi_pair::jobs::{Job, Task};
use super::options::Options;
use super::session::Progress;
use crate::error::Result;
use crate::harness::{Outcome, Plan};
use crate::report::Row;
use crate::report::names::{COLLECTIVES, OPERATIONS, collective_variant};
use crate::stats::Times;
use ranks::{CollectiveRanks, PROGRESS, Turns};

/// Starts a job for each number of ranks and delivers the report.
///
/// # Errors
/// A job that can't be started or fails, and places that can't be written.
pub fn launch(options: &Options) -> Result<ExitCode> {
    let start = super::Start::now(options);
    let mut rows = Vec::new();
    for &ranks in &options.ranks {
        let job = Job {
            task: Task::Collectives,
            ranks,
            variables: Vec::new(),
        };
        rows.extend(job.run(options)?);
    }
    super::deliver(&start.report(options, rows, Vec::new()), options)?;
    Ok(ExitCode::SUCCESS)
}

/// In each rank of a job: every operation at every size.
///
/// # Errors
/// What the launcher, Portals or the system refused, and a member that died.
pub fn figures(client: &mut Client, options: &Options) -> Result<Vec<Row>> {
    let sizes = sizes(options);
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let mut ranks = CollectiveRanks::join(client, options, largest)?;
    let points = OPERATIONS.len() * sizes.len();
    let progress = Progress::new(ranks.leads(), points as u64);
    let mut rows = Vec::new();
    for name in OPERATIONS {
        let of_barrier = [0];
        let sizes = if name == "barrier" {
            &of_barrier
        } else {
            &sizes[..]
        };
        for &bytes in sizes {
            progress.announce(name, bytes);
            let found = ranks.in_turns(call(name, bytes), plan(options))?;
            if ranks.leads() {
                rows.extend(rows_of(name, bytes, ranks.ranks(), options.rounds, &found));
            }
            progress.advance();
        }
    }
    ranks.leave()?;
    progress.finish();
    Ok(rows)
}

/// In each rank of a job: an all-reduce of one element.
///
/// # Errors
/// As [`figures`].
pub fn allreduce(client: &mut Client, options: &Options) -> Result<Vec<Row>> {
    let bytes = Datatype::Double.size() as u64;
    let mut ranks = CollectiveRanks::join(client, options, bytes)?;
    let found = ranks.in_turns(call("allreduce", bytes), options.plan())?;
    let rows = match ranks.leads() {
        true => rows_of("allreduce", bytes, ranks.ranks(), options.rounds, &found),
        false => Vec::new(),
    };
    ranks.leave()?;
    Ok(rows)
}

/// Whole elements, each size once.
fn sizes(options: &Options) -> Vec<u64> {
    let element = Datatype::Double.size() as u64;
    let given: &[u64] = match options.sizes.is_empty() {
        true => &SIZES,
        false => &options.sizes,
    };
    let whole = given.iter().map(|bytes| bytes.next_multiple_of(element));
    let mut sizes: Vec<u64> = whole.collect();
    sizes.dedup();
    sizes
}

/// A part of the time for each of [`PROGRESS`], since there are many points.
fn plan(options: &Options) -> Plan {
    let plan = options.plan();
    Plan {
        time: plan.time / 4,
        ..plan
    }
}

/// What a name in [`OPERATIONS`] asks for, with rank 0 as the root.
fn call(name: &str, bytes: u64) -> Call {
    let root = 0;
    let reduction = Reduction {
        combine: Combine {
            operation: Operation::Sum,
            datatype: Datatype::Double,
        },
        count: bytes / Datatype::Double.size() as u64,
    };
    match name {
        "broadcast" => Call::Broadcast { root, bytes },
        "allreduce" => Call::Allreduce(reduction),
        "reduce" => Call::Reduce { root, reduction },
        "gather" => Call::Gather { root, bytes },
        "scatter" => Call::Scatter { root, bytes },
        _ => Call::Barrier,
    }
}

/// A row for each of [`PROGRESS`], beside the first.
fn rows_of(name: &str, bytes: u64, ranks: u32, planned: u32, found: &[Turns; 2]) -> Vec<Row> {
    let outcome = |turns: &Turns| Outcome::of_rounds(turns.rounds.clone(), 0, planned);
    let first = outcome(&found[0]);
    let row = |(progress, turns): (&(&str, _), &Turns)| {
        let mut row = Row::new(
            COLLECTIVES,
            collective_variant(name, ranks, progress.0),
            bytes,
        )
        .with("ranks", f64::from(ranks))
        .with("× offloaded", outcome(turns).ratio_to(&first));
        row.times = Some(Times::of(&turns.samples));
        row.iterations = turns.samples.len() as u64;
        row.shortened = outcome(turns).shortened();
        row
    };
    PROGRESS.iter().zip(found).map(row).collect()
}

/// Unless others are asked for, in bytes.
const SIZES: [u64; 5] = [8, 1 << 10, 16 << 10, 64 << 10, 256 << 10];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_and_host_are_compared_round_by_round() {
        let turns = |ns: [f64; 3]| Turns {
            samples: ns.to_vec(),
            rounds: ns.to_vec(),
        };
        let found = [
            turns([1000.0, 4000.0, 1000.0]),
            turns([500.0, 2000.0, 500.0]),
        ];
        let rows = rows_of("reduce", 8, 4, 3, &found);
        assert_eq!(rows[1].variant, "reduce, 4 ranks, host");
        assert_eq!(rows[1].median_us(), Some(0.5));
        assert_eq!(rows[1].figures["× offloaded"], 0.5);
    }

    #[test]
    fn sizes_are_whole_elements() {
        let mut options = Options::for_tests();
        options.sizes = vec![1, 8, 9];
        assert_eq!(sizes(&options), [8, 16]);
    }
}
