//! Paired measurement: several workloads take turns in short rounds, so that a noisy
//! moment of the machine falls on all of them, and their ratio stays true.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::stats::{Times, median};
use crate::team::{Team, WORDS};

/// Something that two processes repeat together while rank 0 holds the watch.
///
/// Both sides are called equally often with equal counts.
pub trait Workload {
    /// Rank 0's side of `n` repetitions; it returns when all of them are over.
    fn lead(&mut self, n: u64) -> Result<()>;

    /// The other rank's side.
    fn follow(&mut self, n: u64) -> Result<()>;

    /// The fewest repetitions that mean something, such as a full window.
    fn fewest(&self) -> u64 {
        1
    }
}

/// How long and how often to measure.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Turns that each workload gets.
    pub rounds: u32,
    /// Time for all turns of one workload.
    pub time: Duration,
    /// Wall-clock time that one workload may take with its calibration: where others use the
    /// processors, fewer batches and rounds are measured. One batch may exceed it.
    pub budget: Duration,
}

impl Plan {
    /// When `workloads` that begin now have used their time up.
    pub fn deadline(&self, workloads: usize) -> Instant {
        let workloads = u32::try_from(workloads).unwrap_or(u32::MAX);
        Instant::now() + self.budget * workloads
    }
}

/// What rank 0 saw; empty elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Nanoseconds a repetition, one value a batch.
    samples: Vec<f64>,
    /// The median of each round.
    rounds: Vec<f64>,
    /// Repetitions of all rounds together.
    pub repetitions: u64,
    /// What would have been measured within the budget.
    planned: Planned,
}

#[derive(Clone, Copy, Debug, Default)]
struct Planned {
    rounds: u32,
    batches: u64,
}

/// How much of a point was measured before its wall-clock budget was used up.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shortened {
    /// Rounds measured, the last one included even if it is incomplete.
    pub rounds: u32,
    /// Rounds that were asked for; fewer run if time is over.
    pub planned_rounds: u32,
    /// Timed batches, of all rounds.
    pub batches: u64,
    /// Batches that would have filled the time asked for.
    pub planned_batches: u64,
}

impl Outcome {
    /// Of rounds of one batch each, of which `planned` were asked for: nanoseconds a
    /// repetition.
    pub fn of_rounds(rounds: Vec<f64>, repetitions: u64, planned: u32) -> Self {
        Self {
            samples: rounds.clone(),
            rounds,
            repetitions,
            planned: Planned {
                rounds: planned,
                batches: planned.into(),
            },
        }
    }

    /// Statistics of a repetition's time divided by `parts`, such as 2 for half a
    /// round trip. A sample is the mean of one batch of at least [`BATCH`].
    pub fn times(&self, parts: f64) -> Times {
        let samples: Vec<f64> = self.samples.iter().map(|ns| ns / parts).collect();
        Times::of(&samples)
    }

    /// The median over rounds of this one's time to `limit`'s.
    pub fn ratio_to(&self, limit: &Outcome) -> f64 {
        let ratios: Vec<f64> = self
            .rounds
            .iter()
            .zip(&limit.rounds)
            .map(|(own, limit)| own / limit)
            .collect();
        median(&ratios)
    }

    /// How much was measured, if it is less than was planned.
    pub fn shortened(&self) -> Option<Shortened> {
        let (rounds, batches) = (self.rounds.len() as u32, self.samples.len() as u64);
        let is_short = rounds < self.planned.rounds || batches < self.planned.batches;
        is_short.then_some(Shortened {
            rounds,
            planned_rounds: self.planned.rounds,
            batches,
            planned_batches: self.planned.batches,
        })
    }
}

/// Measures `workloads` in turns, within the plan's budget for each.
///
/// Each gets one round at least, however long that takes.
///
/// # Errors
/// The first error of a workload, or of a peer that doesn't come.
pub fn measure(
    team: &Team,
    plan: Plan,
    workloads: &mut [&mut dyn Workload],
) -> Result<Vec<Outcome>> {
    let end = plan.deadline(workloads.len());
    let mut blocks = Vec::new();
    for workload in workloads.iter_mut() {
        blocks.push(calibrate(team, plan, *workload)?);
    }
    let planned = |block: &Block| Planned {
        rounds: plan.rounds,
        batches: block.batches * u64::from(plan.rounds),
    };
    let outcome = |block| Outcome {
        planned: planned(block),
        ..Outcome::default()
    };
    let mut outcomes: Vec<Outcome> = blocks.iter().map(outcome).collect();
    for _ in 0..plan.rounds {
        for ((workload, block), outcome) in workloads.iter_mut().zip(&blocks).zip(&mut outcomes) {
            let deadline = Instant::now() + plan.budget / plan.rounds;
            let samples = run(team, *block, deadline, *workload)?;
            if team.leads() {
                outcome.repetitions += samples.len() as u64 * block.repeats;
                outcome.rounds.push(median(&samples));
                outcome.samples.extend(samples);
            }
        }
        if team.barrier_with(is_past(end))? != 0 {
            break;
        }
    }
    Ok(outcomes)
}

/// A turn: so many batches of so many repetitions.
#[derive(Clone, Copy, Debug)]
struct Block {
    batches: u64,
    repeats: u64,
}

fn calibrate(team: &Team, plan: Plan, workload: &mut dyn Workload) -> Result<Block> {
    let mut block = Block {
        batches: PROBES,
        repeats: workload.fewest(),
    };
    let deadline = Instant::now() + plan.budget / CALIBRATION_SHARE;
    let mut quickest = f64::INFINITY;
    let mut doubtful = 0;
    loop {
        let samples = run(team, block, deadline, workload)?;
        // The quickest counts: a disturbed one would leave the point with few samples.
        quickest = samples.into_iter().fold(quickest, f64::min);
        let is_late = Instant::now() >= deadline;
        let (mut next, mut settled) = (block, true);
        if team.leads() {
            (next, settled) = refine(plan, block, workload.fewest(), quickest, is_late);
        }
        // Where all trials were disturbed, one repetition seems to fill several batches.
        let is_slow = quickest * block.repeats as f64 > 8.0 * BATCH.as_nanos() as f64;
        if settled && is_slow && !is_late && doubtful < DOUBTFUL_TRIALS {
            doubtful += 1;
            (next, settled) = (block, false);
        }
        let mut words = [0; WORDS];
        words[..3].copy_from_slice(&[next.batches, next.repeats, settled.into()]);
        let words = team.broadcast(words)?;
        block = Block {
            batches: words[0],
            repeats: words[1],
        };
        if words[2] != 0 {
            return Ok(block);
        }
    }
}

/// The next block to try after a repetition took `each` nanoseconds, and whether it
/// is good enough to keep; it is kept if there `is_no_time` for another trial.
fn refine(plan: Plan, tried: Block, fewest: u64, each: f64, is_no_time: bool) -> (Block, bool) {
    let each = each.max(1.0);
    let batch = BATCH.as_nanos() as f64;
    if each * (tried.repeats as f64) < batch && !is_no_time {
        let repeats = tried.repeats * 4;
        return (
            Block {
                batches: PROBES,
                repeats,
            },
            false,
        );
    }
    let repeats = ((batch / each).ceil() as u64).max(fewest);
    let turn = plan.time.as_nanos() as f64 / f64::from(plan.rounds);
    let batches = (turn / (repeats as f64 * each)) as u64;
    let batches = batches.clamp(3, 2000);
    (Block { batches, repeats }, true)
}

/// One turn, in rank 0 the time of a repetition in each batch; it ends with the first batch
/// that is over after rank 0's `deadline`.
fn run(
    team: &Team,
    block: Block,
    deadline: Instant,
    workload: &mut dyn Workload,
) -> Result<Vec<f64>> {
    let mut samples = Vec::with_capacity(block.batches as usize);
    team.barrier()?;
    for _ in 0..block.batches {
        if team.leads() {
            let start = Instant::now();
            workload.lead(block.repeats)?;
            samples.push(start.elapsed().as_nanos() as f64 / block.repeats as f64);
        } else {
            workload.follow(block.repeats)?;
        }
        // Off the watch. A side that only counts what arrives never lags by more
        // than a batch, so its queue can be sized.
        if team.barrier_with(is_past(deadline))? != 0 {
            break;
        }
    }
    Ok(samples)
}

/// 1 after `end`, else 0: a word that rank 0 sends.
pub fn is_past(end: Instant) -> u64 {
    (Instant::now() >= end).into()
}

/// The shortest stretch that is timed as one: a thousand times the clock's own cost.
pub const BATCH: Duration = Duration::from_micros(25);

/// Batches of a trial block.
const PROBES: u64 = 3;

/// Trials of what takes long that are repeated, since it may only have been disturbed.
const DOUBTFUL_TRIALS: u32 = 4;

/// Calibration may take one part in so many of the budget.
const CALIBRATION_SHARE: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    struct Busy(Duration);

    impl Workload for Busy {
        fn lead(&mut self, n: u64) -> Result<()> {
            let end = Instant::now() + self.0 * n as u32;
            while Instant::now() < end {}
            Ok(())
        }

        fn follow(&mut self, _: u64) -> Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_pattern_twice_as_long_has_ratio_two() {
        let team = Team::create(1, crate::team::WaitMode::Spin).expect("memory");
        let plan = Plan {
            rounds: 5,
            time: Duration::from_millis(20),
            budget: Duration::from_secs(60),
        };
        let mut one = Busy(Duration::from_micros(30));
        let mut two = Busy(Duration::from_micros(60));
        let outcomes = measure(&team, plan, &mut [&mut one, &mut two]).expect("measures");
        let ratio = outcomes[1].ratio_to(&outcomes[0]);
        assert!((1.8..2.2).contains(&ratio), "ratio {ratio}");
        assert_eq!(outcomes[1].shortened(), None);
    }

    #[test]
    fn a_point_whose_budget_is_used_up_keeps_one_round_and_reports_it() {
        let team = Team::create(1, crate::team::WaitMode::Spin).expect("memory");
        let plan = Plan {
            rounds: 5,
            time: Duration::from_millis(20),
            budget: Duration::ZERO,
        };
        let mut one = Busy(Duration::from_micros(30));
        let mut two = Busy(Duration::from_micros(60));
        let outcomes = measure(&team, plan, &mut [&mut one, &mut two]).expect("measures");
        for outcome in &outcomes {
            let short = outcome.shortened().expect("there was no time");
            assert_eq!((short.rounds, short.planned_rounds), (1, 5));
            assert_eq!(short.batches, 1);
            assert!(short.planned_batches >= 15, "{short:?}");
        }
        assert!(outcomes[1].ratio_to(&outcomes[0]) > 0.0);
    }
}
