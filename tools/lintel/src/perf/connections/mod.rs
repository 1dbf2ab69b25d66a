//! `connections`: what a connection between nodes is kept for, and what that costs.
//! Repeats the figures of MVAPICH over XRC (seed 003): the models measured in turns,
//! process by process of their own, then counts contexts and memory as nodes fill up.
//!
//! ```text
//!   job of figures   two nodes × models × slots   latency … many-to-many, a stalled receiver
//!   jobs of counts   two nodes × 1, 2, 4 … processes, one model each
//!   formula          what was counted, carried on to 64K processes
//! ```

mod counts;
pub mod formula;
mod stalled;

pub use counts::counts;

use std::process::ExitCode;

use lintel_pmi::client::Client;

use super::multi_pair::jobs::{Job, Task};
use super::multi_pair::pattern::{Form, Pattern};
use super::multi_pair::{MultiPair, RankLayout};
use super::network::Model;
use super::options::Options;
use super::session::Progress;
use crate::error::{Error, Result};
use crate::harness::Outcome;
use crate::report::names::{BOTH_WAYS, LATENCY, MANY_TO_MANY, MULTI_PAIR, ONE_WAY};
use crate::report::{Row, connections as verdicts};
use crate::stats::doubling;

/// Refuses options that fix what this benchmark varies.
///
/// # Errors
/// `--conn` is given.
pub fn check(options: &Options) -> Result<()> {
    match options.network.conn {
        None => Ok(()),
        Some(_) => Err(Error::Usage(
            "connections compares several models: choose them by --models, not --conn".into(),
        )),
    }
}

/// Starts the jobs and delivers the report.
///
/// # Errors
/// A job that can't be started or fails, and places that can't be written.
pub fn launch(options: &Options) -> Result<ExitCode> {
    let start = super::Start::now(options);
    let mut rows = figures_job(options)?;
    rows.extend(counts::jobs(options)?);
    formula::compare(&mut rows);
    rows.extend(formula::rows(&rows));
    let verdicts = verdicts::judge(&rows);
    super::deliver(&start.report(options, rows, verdicts), options)?;
    Ok(ExitCode::SUCCESS)
}

fn figures_job(options: &Options) -> Result<Vec<Row>> {
    let job = Job {
        task: Task::Figures,
        ranks: layout(options).ranks(),
        variables: Vec::new(),
    };
    job.run(options)
}

/// The variable that gives the rank of that number its model.
pub fn variable_of(rank: usize, options: &Options) -> (&'static str, String) {
    let model = options.models[layout(options).slot_of(rank).group];
    ("PTL_CONN", model.name().into())
}

/// In each rank of the job of figures: all of them, group by group in turns.
///
/// # Errors
/// What the launcher, Portals or the system refused.
pub fn figures(client: &mut Client, options: &Options) -> Result<Vec<Row>> {
    let steps = steps(options);
    let most = steps.iter().map(|step| step.pattern.bytes).max();
    let bytes = most.unwrap_or(0).max(stalled::BULK);
    let multi_pair = MultiPair::join(client, layout(options), options, bytes)?;
    let progress = Progress::new(multi_pair.team.leads(), steps.len() as u64 + 1);
    let mut rows = Vec::new();
    for step in steps {
        progress.announce(step.benchmark, step.pattern.bytes);
        let outcomes = multi_pair.in_turns(options.plan(), step.pattern)?;
        rows.extend(step.rows(&options.models, &outcomes));
        progress.advance();
    }
    progress.announce("a stalled receiver", 8);
    rows.extend(stalled::run(&multi_pair, options)?);
    progress.finish();
    Ok(rows)
}

/// A point of a figure.
struct Step {
    benchmark: &'static str,
    pattern: Pattern,
}

impl Step {
    /// A row a model, each beside the first one.
    fn rows(&self, models: &[Model], outcomes: &[Outcome]) -> Vec<Row> {
        let Pattern { bytes, pairs, .. } = self.pattern;
        let first = models[0].name();
        let row = |(model, outcome): (&Model, &Outcome)| {
            let messages = self.pattern.messages() as f64;
            let row = Row::new(self.benchmark, model.name(), bytes)
                .timed(outcome, messages)
                .with_bandwidth(bytes)
                .with_rate(1.0)
                .with("pairs", pairs as f64);
            row.with(&format!("× {first}"), outcome.ratio_to(&outcomes[0]))
        };
        models.iter().zip(outcomes).map(row).collect()
    }
}

/// Every point of every figure, in order.
fn steps(options: &Options) -> Vec<Step> {
    let most = options.most_pairs;
    let mut all = Vec::new();
    let mut add = |benchmark, form, pairs, sizes: &[u64]| {
        all.extend(sizes.iter().map(|&bytes| Step {
            benchmark,
            pattern: Pattern { form, pairs, bytes },
        }));
    };
    let (small, fine, coarse) = (
        sizes(options, 0, SMALL, 2),
        sizes(options, 1, LARGE, 2),
        sizes(options, 1, LARGE, 4),
    );
    add(LATENCY, Form::PingPong, 1, &small);
    add(ONE_WAY, Form::OneWay, 1, &fine);
    add(BOTH_WAYS, Form::BothWays, 1, &fine);
    for pairs in doubling(most) {
        add(MULTI_PAIR, Form::OneWay, pairs, &coarse);
    }
    add(MANY_TO_MANY, Form::ManyToMany, most, &coarse);
    all
}

/// Those that were asked for between `least` and `most`; else every power of `factor`.
fn sizes(options: &Options, least: u64, most: u64, factor: u64) -> Vec<u64> {
    if !options.sizes.is_empty() {
        let within = |&&bytes: &&u64| (least..=most).contains(&bytes);
        return options.sizes.iter().filter(within).copied().collect();
    }
    let zero = (least == 0).then_some(0);
    let powers = (0..)
        .map(|n| factor.pow(n))
        .take_while(|&bytes| bytes <= most);
    zero.into_iter().chain(powers).collect()
}

fn layout(options: &Options) -> RankLayout {
    RankLayout {
        groups: options.models.len(),
        slots: options.most_pairs,
    }
}

/// The largest size of the latency figure, in bytes (seed 003, "Latency").
const SMALL: u64 = 8 << 10;
/// The largest size of the bandwidth figures, in bytes.
const LARGE: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latency_goes_from_nothing_to_eight_kib() {
        let options = Options::for_tests();
        let small = sizes(&options, 0, SMALL, 2);
        assert_eq!((small[0], small[1], small.len()), (0, 1, 15));
        assert_eq!(small.last(), Some(&8192));
        assert_eq!(sizes(&options, 1, LARGE, 4).len(), 11);
    }
}
