//! Paired measurement: several workloads take turns in short rounds, so that a noisy
//! moment of the machine falls on all of them, and their ratio stays true.

use std::time::{Duration, Instant};

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
}

impl Outcome {
    /// Of rounds of one batch each: nanoseconds a repetition.
    pub fn of_rounds(rounds: Vec<f64>, repetitions: u64) -> Self {
        Self {
            samples: rounds.clone(),
            rounds,
            repetitions,
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
}

/// Measures `workloads` in turns.
///
/// # Errors
/// The first error of a workload, or of a peer that doesn't come.
pub fn measure(
    team: &Team,
    plan: Plan,
    workloads: &mut [&mut dyn Workload],
) -> Result<Vec<Outcome>> {
    let mut blocks = Vec::new();
    for workload in workloads.iter_mut() {
        blocks.push(calibrate(team, plan, *workload)?);
    }
    let mut outcomes = vec![Outcome::default(); workloads.len()];
    for _ in 0..plan.rounds {
        for ((workload, block), outcome) in workloads.iter_mut().zip(&blocks).zip(&mut outcomes) {
            let samples = run(team, *block, *workload)?;
            if team.leads() {
                outcome.repetitions += block.batches * block.repeats;
                outcome.rounds.push(median(&samples));
                outcome.samples.extend(samples);
            }
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
    loop {
        let samples = run(team, block, workload)?;
        // The quickest counts: a disturbed one would leave the point with few samples.
        let quickest = samples.into_iter().reduce(f64::min);
        let next = quickest.map(|each| refine(plan, block, workload.fewest(), each));
        let (next, settled) = next.unwrap_or((block, true));
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
/// is good enough to keep.
fn refine(plan: Plan, tried: Block, fewest: u64, each: f64) -> (Block, bool) {
    let each = each.max(1.0);
    let batch = BATCH.as_nanos() as f64;
    if each * (tried.repeats as f64) < batch {
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

fn run(team: &Team, block: Block, workload: &mut dyn Workload) -> Result<Vec<f64>> {
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
        team.barrier()?;
    }
    Ok(samples)
}

/// The shortest stretch that is timed as one: a thousand times the clock's own cost.
pub const BATCH: Duration = Duration::from_micros(25);

/// Batches of a trial block.
const PROBES: u64 = 3;

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
        };
        let mut one = Busy(Duration::from_micros(30));
        let mut two = Busy(Duration::from_micros(60));
        let outcomes = measure(&team, plan, &mut [&mut one, &mut two]).expect("measures");
        let ratio = outcomes[1].ratio_to(&outcomes[0]);
        assert!((1.8..2.2).contains(&ratio), "ratio {ratio}");
    }
}
