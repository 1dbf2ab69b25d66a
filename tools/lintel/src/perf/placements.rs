//! `placements`: generic against accelerated, as the studies of SeaStar show
//! them: the ping-pong between two nodes with one process a node (SN) and with two (VN), over NetPIPE's
//! sizes without their neighbours. The placements alternate, job by job.

use std::process::ExitCode;

use lintel_pmi::client::Client;

use super::multi_pair::jobs::{Job, Task};
use super::multi_pair::pattern::{Form, Pattern};
use super::multi_pair::{MultiPair, RankLayout};
use super::netpipe::schedule;
use super::network::Mode;
use super::options::Options;
use super::session::Progress;
use crate::error::{Error, Result};
use crate::harness::Plan;
use crate::report::Row;
use crate::report::names::PLACEMENTS;
use crate::stats::{Times, median};

/// Refuses options that fix what this benchmark varies.
///
/// # Errors
/// `--mode` is given.
pub fn check(options: &Options) -> Result<()> {
    match options.network.mode {
        None => Ok(()),
        Some(_) => Err(Error::Usage(
            "placements measures every placement: leave --mode out".into(),
        )),
    }
}

/// Starts the jobs and delivers the report.
///
/// # Errors
/// A job that can't be started or fails, and places that can't be written.
pub fn launch(options: &Options) -> Result<ExitCode> {
    let start = super::Start::now(options);
    let mut found = MODES.map(|_| Vec::new());
    for _ in 0..options.rounds.min(ROUNDS) {
        for (mode, runs) in MODES.iter().zip(&mut found) {
            runs.push(job(*mode).run(options)?);
        }
    }
    let mut rows = Vec::new();
    for (mode, runs) in MODES.iter().zip(&found) {
        rows.extend(merge(*mode, runs, &found[0]));
    }
    super::deliver(&start.report(options, rows, Vec::new()), options)?;
    Ok(ExitCode::SUCCESS)
}

fn job(mode: Mode) -> Job {
    Job {
        task: Task::Placement,
        ranks: LAYOUT.ranks(),
        variables: vec![("PTL_MODE".into(), mode.name().into())],
    }
}

/// In each rank of a job: both ways to use a node, at every size.
///
/// # Errors
/// What the launcher, Portals or the system refused.
pub fn sweep(client: &mut Client, options: &Options) -> Result<Vec<Row>> {
    let largest = options.sizes.iter().copied().max().unwrap_or(LARGEST);
    let sizes = schedule(largest, 0);
    let multi_pair = MultiPair::join(client, LAYOUT, options, largest)?;
    let progress = Progress::new(multi_pair.team.leads(), (sizes.len() * FORMS.len()) as u64);
    let mut rows = Vec::new();
    for (name, pairs) in FORMS {
        for &bytes in &sizes {
            progress.announce(name, bytes);
            let form = Form::PingPong;
            let pattern = Pattern { form, pairs, bytes };
            let outcomes = multi_pair.in_turns(plan(options), pattern)?;
            rows.push(Row::new(PLACEMENTS, name, bytes).timed(&outcomes[0], 2.0));
            progress.advance();
        }
    }
    progress.finish();
    Ok(rows)
}

/// A quarter of the time, since there are many points and several jobs.
fn plan(options: &Options) -> Plan {
    let plan = options.plan();
    Plan {
        rounds: plan.rounds.min(ROUNDS),
        time: plan.time / 4,
        ..plan
    }
}

/// One row a point of all runs of a placement, beside the runs of the first one.
fn merge(mode: Mode, runs: &[Vec<Row>], first: &[Vec<Row>]) -> Vec<Row> {
    let Some(points) = runs.first() else {
        return Vec::new();
    };
    let row = |at: usize| {
        let point = &points[at];
        let pairs = FORMS.iter().find(|(name, _)| point.variant == *name);
        let pairs = pairs.map_or(1, |(_, pairs)| *pairs) as u64;
        let all: Vec<&Row> = runs.iter().map(|rows| &rows[at]).collect();
        let ratios: Vec<f64> = all
            .iter()
            .zip(first)
            .filter_map(|(own, first)| Some(own.median_us()? / first[at].median_us()?))
            .collect();
        let variant = format!("{}, {}", mode.name(), point.variant);
        let mut row =
            Row::new(PLACEMENTS, variant, point.bytes).with("× accelerated", median(&ratios));
        row.times = merged_times(&all);
        row.iterations = all.iter().map(|row| row.iterations).sum();
        row.with_bandwidth(point.bytes * pairs)
    };
    (0..points.len()).map(row).collect()
}

fn merged_times(rows: &[&Row]) -> Option<Times> {
    let all: Vec<Times> = rows.iter().filter_map(|row| row.times).collect();
    let of = |value: fn(&Times) -> f64| all.iter().map(value).collect::<Vec<f64>>();
    if all.is_empty() {
        return None;
    }
    Some(Times {
        median_us: median(&of(|t| t.median_us)),
        min_us: of(|t| t.min_us).into_iter().fold(f64::MAX, f64::min),
        mean_us: of(|t| t.mean_us).iter().sum::<f64>() / all.len() as f64,
        p99_us: of(|t| t.p99_us).into_iter().fold(0.0, f64::max),
    })
}

/// Single-node and virtual-node mode: how many of a node's processes play.
const FORMS: [(&str, usize); 2] = [("SN", 1), ("VN", 2)];
const LAYOUT: RankLayout = RankLayout {
    groups: 1,
    slots: 2,
};
const MODES: [Mode; 2] = [Mode::Accelerated, Mode::Generic];
/// The largest size unless others are asked for, in bytes.
const LARGEST: u64 = 1 << 20;
/// Jobs of each placement, and turns of each point in one of them.
const ROUNDS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_merged_point_by_point_and_compared_run_by_run() {
        let run = |ns: f64| {
            let mut row = Row::new(PLACEMENTS, "VN", 1000);
            row.times = Some(Times::of(&[ns]));
            vec![row]
        };
        let accelerated = [run(1000.0), run(2000.0), run(1000.0)];
        let generic = [run(3000.0), run(6000.0), run(3000.0)];
        let rows = merge(Mode::Generic, &generic, &accelerated);
        assert_eq!(rows[0].variant, "generic, VN");
        assert_eq!(rows[0].median_us(), Some(3.0));
        assert_eq!(rows[0].figures["× accelerated"], 3.0);
        // Two pairs move two messages in that time.
        assert!((rows[0].gb_per_s.expect("bytes") - 2000.0 / 3e3).abs() < 1e-9);
    }
}
