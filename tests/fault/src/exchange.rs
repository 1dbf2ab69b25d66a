//! Processes that exchange random operations, each of which is checked, while some of
//! them are killed and replaced.

use crate::job::{Job, PATIENCE, Worker};
use crate::random::Random;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PIDS: [u32; 4] = [11, 12, 13, 14];

/// Kills one of four processes at a random moment and replaces it, so many times.
/// The job's program is `fault-worker`.
///
/// # Panics
/// If a survivor ends, receives a wrong byte, or gets nothing through to another one.
pub fn kill_at_random(job: &Job, random: &mut Random, rounds: u64) {
    let mut workers: BTreeMap<u32, Worker> = PIDS
        .iter()
        .map(|pid| (*pid, start(job, *pid, random)))
        .collect();
    for worker in workers.values_mut() {
        worker.expect("ready");
    }
    all_exchange(&mut workers, &PIDS);
    for round in 0..rounds {
        let victim = PIDS[random.below(4) as usize];
        // A random moment is the point: this sleep awaits nothing.
        std::thread::sleep(Duration::from_micros(random.below(30_000)));
        workers.get_mut(&victim).expect("it runs").kill();
        let others: Vec<u32> = PIDS.iter().copied().filter(|p| *p != victim).collect();
        if random.below(2) == 0 {
            all_exchange(&mut workers, &others);
        }
        // Sometimes a replacement is killed while it starts.
        for _ in 0..random.below(3) {
            let mut early = start(job, victim, random);
            std::thread::sleep(Duration::from_micros(random.below(8000)));
            early.kill();
        }
        let mut next = start(job, victim, random);
        next.expect("ready");
        workers.insert(victim, next);
        all_exchange(&mut workers, &PIDS);
        let next = workers[&victim].id();
        eprintln!("round {round}: {victim} killed and replaced by {next}");
    }
    for worker in workers.values_mut() {
        worker.send("stop");
        worker.expect("count ");
        worker.succeed();
    }
}

fn start(job: &Job, pid: u32, random: &mut Random) -> Worker {
    let others: Vec<String> = PIDS
        .iter()
        .filter(|other| **other != pid)
        .map(u32::to_string)
        .collect();
    let seed = (random.number() as u32).to_string();
    let mut command = job.command(&["load", &pid.to_string(), &others.join(","), &seed]);
    command.env("PTL_LOG", "info");
    Worker::start(command)
}

/// The operations that have succeeded so far, by peer.
fn succeeded(worker: &mut Worker) -> BTreeMap<u32, u64> {
    worker.send("count");
    let line = worker.expect("count ");
    let counts = line.split(' ').next().unwrap_or("");
    let pairs = counts.split(',').filter_map(|pair| pair.split_once(':'));
    pairs
        .map(|(pid, count)| {
            let number = |word: &str| word.parse::<u64>().expect("a number");
            (number(pid) as u32, number(count))
        })
        .collect()
}

/// Waits until each of these has had successes with each other one from now on.
fn all_exchange(workers: &mut BTreeMap<u32, Worker>, among: &[u32]) {
    let until = Instant::now() + PATIENCE;
    for pid in among {
        let (mut one, mut others): (Vec<_>, Vec<_>) =
            workers.iter_mut().partition(|(other, _)| *other == pid);
        let (_, worker) = one.pop().expect("it runs");
        let before = succeeded(worker);
        let mut missing: Vec<u32> = among.iter().copied().filter(|p| p != pid).collect();
        while !missing.is_empty() {
            let now = succeeded(worker);
            missing.retain(|peer| now[peer] <= before[peer] + 3);
            all_run(&mut others, &missing);
            assert!(
                Instant::now() < until,
                "{pid} gets nothing through to {missing:?}; stderr: {}",
                worker.stderr()
            );
        }
    }
}

/// Asserts that none of these has ended by itself.
fn all_run(workers: &mut [(&u32, &mut Worker)], pids: &[u32]) {
    for (pid, worker) in workers.iter_mut().filter(|(pid, _)| pids.contains(pid)) {
        let ended = worker.ended();
        assert!(
            ended.is_none(),
            "{pid} ended, {ended:?}; stderr: {}",
            worker.stderr()
        );
    }
}
