//! `paths`: what the library chooses for a message within a node, beside each of its paths
//! alone, at sizes from 0 B up.
//!
//! ```text
//!   one job ── group 0: the library chooses  ┐
//!              group 1: all through the ring ├─ take turns at every size
//!              group 2: all lent             ┘
//! ```
//!
//! The groups differ in `PTL_SHM_EAGER` alone. Bodies that are longer than the ring takes are
//! lent in each group, so their rows only show how far two pairs of processes differ, and the
//! verdict leaves them out. So are those of up to 2 KiB copied in each. Gets come first, while the
//! processes that get have sent nothing else.

use std::process::ExitCode;

use lintel_pmi::client::Client;

use super::multi_pair::jobs::{Job, Task};
use super::multi_pair::pattern::{Form, Pattern};
use super::multi_pair::{MultiPair, RankLayout};
use super::options::Options;
use super::session::Progress;
use crate::error::{Error, Result};
use crate::harness::{Outcome, Plan};
use crate::report::Row;
use crate::report::names::PATHS;
use crate::report::targets::{Bound, Verdict};

/// Refuses what fixes the path, or leads around shared memory.
///
/// # Errors
/// `PTL_SHM_EAGER` is set, or messages go over a network.
pub fn check(options: &Options) -> Result<()> {
    if std::env::var_os(EAGER).is_some() {
        return Err(Error::Usage(format!(
            "paths compares what the library chooses: unset {EAGER}"
        )));
    }
    match options.network.is_crossed() {
        false => Ok(()),
        true => Err(Error::Usage(
            "paths are those of shared memory: leave --nodes and --nal out".into(),
        )),
    }
}

/// Starts the job and delivers the report with a verdict on the worst size.
///
/// # Errors
/// A job that can't be started or fails, and places that can't be written.
pub fn launch(options: &Options) -> Result<ExitCode> {
    let start = super::Start::now(options);
    let job = Job {
        task: Task::Paths,
        ranks: LAYOUT.ranks(),
        variables: Vec::new(),
    };
    let rows = job.run(options)?;
    let verdicts = FORMS.map(|(name, _)| judge(name, &rows)).into();
    super::deliver(&start.report(options, rows, verdicts), options)?;
    Ok(ExitCode::SUCCESS)
}

/// The variable that binds the rank of that number to a path, if it is bound to one.
pub fn variable_of(rank: usize) -> Option<(&'static str, String)> {
    let (_, eager) = PATHS_ALONE[LAYOUT.slot_of(rank).group.checked_sub(1)?];
    Some((EAGER, eager.to_string()))
}

/// In each rank of the job: every form at every size.
///
/// # Errors
/// What the launcher, Portals or the system refused.
pub fn figures(client: &mut Client, options: &Options) -> Result<Vec<Row>> {
    let sizes = match options.sizes.is_empty() {
        true => schedule(LARGEST),
        false => options.sizes.clone(),
    };
    let largest = sizes.iter().copied().max().unwrap_or(0).max(8);
    let multi_pair = MultiPair::join(client, LAYOUT, options, largest)?;
    let progress = Progress::new(multi_pair.team.leads(), (sizes.len() * FORMS.len()) as u64);
    let mut rows = Vec::new();
    for (name, form) in FORMS {
        for &bytes in &sizes {
            progress.announce(name, bytes);
            let pattern = Pattern {
                form,
                pairs: 1,
                bytes,
            };
            let found = multi_pair.in_turns(plan(options), pattern)?;
            rows.push(row(name, pattern, &found));
            progress.advance();
        }
    }
    progress.finish();
    Ok(rows)
}

/// A point: the time of what was chosen, that of each path, and the ratio to the quicker one.
fn row(name: &str, pattern: Pattern, found: &[Outcome]) -> Row {
    let (chosen, alone) = found.split_first().expect("a group for each way");
    let messages = pattern.messages() as f64;
    let ratio = alone.iter().map(|path| chosen.ratio_to(path));
    let mut row = Row::new(PATHS, name, pattern.bytes)
        .timed(chosen, messages)
        .with_bandwidth(pattern.bytes);
    for ((path, _), outcome) in PATHS_ALONE.iter().zip(alone) {
        let median_us = outcome.times(messages).median_us;
        row = row.with(&format!("{path} µs"), median_us);
    }
    row.with(TO_BEST, ratio.fold(0.0, f64::max))
}

/// The size at which the choice costs most.
fn judge(form: &str, rows: &[Row]) -> Verdict {
    let ratio = |row: &&Row| row.figures[TO_BEST];
    let of_form = rows.iter().filter(|row| row.variant == form);
    let of_form = of_form.filter(|row| row.bytes <= LONGEST_IN_RING);
    let worst = of_form.max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    let at = worst.map_or(String::new(), |row| format!(", at {} B", row.bytes));
    let measure = format!("{form}: the chosen path to the best{at}");
    Verdict::new(
        &measure,
        Bound::AtMost(WORST),
        "×",
        worst.as_ref().map(ratio),
    )
}

/// A part of the time, since there are many points.
fn plan(options: &Options) -> Plan {
    let plan = options.plan();
    Plan {
        time: plan.time / 4,
        ..plan
    }
}

/// 0, then 1, 2, 3, 4, 6, 8, 12 … `largest`; four steps an octave where the paths part.
fn schedule(largest: u64) -> Vec<u64> {
    let mut sizes = vec![0];
    let mut power = 1;
    while power <= largest {
        let quarters: &[u64] = match power {
            FINE_FROM..FINE_TO => &[4, 5, 6, 7],
            2.. => &[4, 6],
            _ => &[4],
        };
        sizes.extend(quarters.iter().map(|quarter| power * quarter / 4));
        power *= 2;
    }
    sizes.retain(|&bytes| bytes <= largest);
    sizes
}

const EAGER: &str = "PTL_SHM_EAGER";
/// Each path alone: bytes up to which bodies go through the ring.
const PATHS_ALONE: [(&str, u64); 2] = [("ring", LONGEST_IN_RING), ("lent", 0)];
/// The longest body that the ring takes, in bytes.
const LONGEST_IN_RING: u64 = 65536;
const LAYOUT: RankLayout = RankLayout {
    groups: 1 + PATHS_ALONE.len(),
    slots: 1,
};
/// Gets ahead of what pushes: an initiator learns from its pushes, too.
const FORMS: [(&str, Form); 4] = [
    ("gets", Form::Gets),
    ("stream of gets", Form::StreamOfGets),
    ("ping-pong", Form::PingPong),
    ("stream", Form::OneWay),
];
/// Time of what was chosen to that of the quicker path.
const TO_BEST: &str = "× best";
/// How much slower than the best path the chosen one may be.
const WORST: f64 = 1.15;
const LARGEST: u64 = 8 << 20;
const FINE_FROM: u64 = 512;
const FINE_TO: u64 = 128 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(ns: f64) -> Outcome {
        Outcome::of_rounds(vec![ns; 3], 3, 3)
    }

    #[test]
    fn a_choice_is_held_against_the_quicker_path() {
        let pattern = Pattern {
            form: Form::PingPong,
            pairs: 1,
            bytes: 4096,
        };
        let found = [outcome(3000.0), outcome(2000.0), outcome(4000.0)];
        let row = row("ping-pong", pattern, &found);
        assert_eq!(row.figures["ring µs"], 1.0);
        assert_eq!(row.figures["lent µs"], 2.0);
        assert_eq!(row.figures[TO_BEST], 1.5);
        let mut long = row.clone();
        long.bytes = 1 << 20;
        long.figures[TO_BEST] = 2.0;
        let verdict = judge("ping-pong", &[row, long]);
        assert!(!verdict.met && verdict.measure.ends_with("at 4096 B"));
        assert_eq!(verdict.reached, Some(1.5));
        assert_eq!(judge("stream", &[]).reached, None);
    }

    #[test]
    fn sizes_reach_from_nothing_to_eight_mib() {
        let sizes = schedule(LARGEST);
        assert!(sizes.is_sorted_by(|a, b| a < b), "{sizes:?}");
        assert_eq!((sizes[0], sizes.last()), (0, Some(&LARGEST)));
        assert!(sizes.contains(&1280) && sizes.contains(&98304) && !sizes.contains(&160));
    }

    #[test]
    fn the_first_group_chooses_and_each_other_is_bound_to_a_path() {
        let given: Vec<_> = (0..LAYOUT.groups).map(variable_of).collect();
        let eager = |bytes: &str| Some((EAGER, bytes.to_owned()));
        assert_eq!(given, [None, eager("65536"), eager("0")]);
    }
}
