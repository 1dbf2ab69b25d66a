//! One receiver of a node is stopped while its queue fills; what do the others notice?

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::error::{During, Error, Result};
use crate::perf::multi_pair::MultiPair;
use crate::perf::options::Options;
use crate::portals::Transfer;
use crate::report::Row;
use crate::report::names::STALLED;
use crate::stats::Times;
use crate::team::WORDS;

/// Bytes of each message that fills the stopped one's queue.
pub const BULK: u64 = 64 << 10;

/// Model by model: the others' times without and with a stopped process. Nothing where
/// a node has one process only.
///
/// # Errors
/// What Portals or the system refused.
pub fn run(multi_pair: &MultiPair, options: &Options) -> Result<Vec<Row>> {
    let slots = multi_pair.layout.slots;
    let mut rows = Vec::new();
    if slots < 2 {
        return Ok(rows);
    }
    let pids = pids(multi_pair)?;
    for (group, model) in options.models.iter().enumerate() {
        let mut found = Found::default();
        for _ in 0..options.rounds.min(ROUNDS) {
            multi_pair.team.barrier()?;
            if multi_pair.team.rank() == multi_pair.leader_of(group) {
                found.round(multi_pair, options, pids[multi_pair.stalled_rank_of(group)])?;
            }
        }
        let all = multi_pair.team.exchange(found.words())?;
        let words = all[multi_pair.leader_of(group)].map(f64::from_bits);
        rows.push(row(model.name(), slots, words));
    }
    Ok(rows)
}

/// Nanoseconds of one acknowledged put.
#[derive(Default)]
struct Found {
    calm: Vec<f64>,
    stalled: Vec<f64>,
}

impl Found {
    fn round(&mut self, multi_pair: &MultiPair, options: &Options, stalled_pid: Pid) -> Result<()> {
        let last = multi_pair.layout.slots - 1;
        self.calm.extend(sample(multi_pair, options)?);
        let stopped = Stopped::new(stalled_pid)?;
        let bulk = Transfer {
            length: BULK,
            ..multi_pair.across(last)
        };
        for _ in 0..BULK_MESSAGES {
            multi_pair.endpoint.put_aside(&bulk)?;
        }
        // What its queue and the network take has left by then; the rest waits.
        std::thread::sleep(FILLING);
        let found = sample(multi_pair, options);
        drop(stopped);
        self.stalled.extend(found?);
        multi_pair.endpoint.await_acks_aside(BULK_MESSAGES)
    }

    fn words(&self) -> [u64; WORDS] {
        let mut words = [0; WORDS];
        if self.calm.is_empty() || self.stalled.is_empty() {
            return words;
        }
        let (calm, stalled) = (Times::of(&self.calm), Times::of(&self.stalled));
        let figures = [
            stalled.median_us,
            stalled.min_us,
            stalled.mean_us,
            stalled.p99_us,
            calm.median_us,
            calm.p99_us,
            self.stalled.len() as f64,
        ];
        words.copy_from_slice(&figures.map(f64::to_bits));
        words
    }
}

/// 8 B to every process of the other node but the last, one after the other.
fn sample(multi_pair: &MultiPair, options: &Options) -> Result<Vec<f64>> {
    let others = multi_pair.layout.slots - 1;
    let targets: Vec<Transfer> = (0..others)
        .map(|index| Transfer {
            length: 8,
            ..multi_pair.across(index)
        })
        .collect();
    let mut samples = Vec::new();
    let end = Instant::now() + options.plan().time / 2;
    while samples.len() < FEWEST || Instant::now() < end {
        for target in &targets {
            let start = Instant::now();
            multi_pair.endpoint.put_acked(target)?;
            multi_pair.endpoint.await_acks(1)?;
            samples.push(start.elapsed().as_nanos() as f64);
        }
    }
    Ok(samples)
}

fn row(model: &str, slots: usize, words: [f64; WORDS]) -> Row {
    let [
        median_us,
        min_us,
        mean_us,
        p99_us,
        calm_us,
        calm_p99,
        samples,
    ] = words;
    let mut row = Row::new(STALLED, model, 8)
        .with("processes a node", slots as f64)
        .with("calm median µs", calm_us)
        .with("calm p99 µs", calm_p99)
        .with("p99 × calm", p99_us / calm_p99);
    row.times = Some(Times {
        median_us,
        min_us,
        mean_us,
        p99_us,
    });
    row.iterations = samples as u64;
    row
}

/// The system's numbers of all ranks.
fn pids(multi_pair: &MultiPair) -> Result<Vec<Pid>> {
    let mut words = [0; WORDS];
    words[0] = std::process::id().into();
    let all = multi_pair.team.exchange(words)?;
    all.iter()
        .map(|words| Pid::from_raw(words[0] as i32))
        .collect::<Option<_>>()
        .ok_or_else(|| Error::Wrong("a rank has no process number".into()))
}

/// A process that is stopped until this value goes.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: Pid) -> Result<Self> {
        kill_process(pid, Signal::STOP).during("stopping a rank")?;
        Ok(Self(pid))
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

const BULK_MESSAGES: u64 = 32;
const FILLING: Duration = Duration::from_millis(20);
/// Samples of one state and round, so that there is a 99th percentile.
const FEWEST: usize = 100;
const ROUNDS: u32 = 5;
