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

/// Three processes, one of which writes garbage into its lanes at the others; then another one
/// takes its place and its name. The job's program is `fault-worker`, over shared memory.
///
/// # Panics
/// If one of the others ends, doesn't notice, or gets nothing through to whom it should.
pub fn garble_one(job: &Job, random: &mut Random) {
    let seed = (random.number() as u32).to_string();
    let mut one = job.start(&["load", "11", "12,13", &seed, "13"]);
    let mut two = job.start(&["load", "12", "11,13", &seed, "13"]);
    let mut bad = job.start(&["corrupt", "13", "11,12", &seed]);
    for worker in [&mut one, &mut two, &mut bad] {
        worker.expect("ready");
    }
    // Until everybody has a lane at everybody.
    std::thread::sleep(Duration::from_millis(200));
    bad.send("corrupt");
    bad.expect("corrupting");
    let until = Instant::now() + PATIENCE;
    while !(complained(&one) && complained(&two)) {
        assert!(
            Instant::now() < until,
            "not everybody notices; they say: {:?}",
            [&one, &two, &bad].map(Worker::stderr)
        );
        // Both go on all the while.
        succeeded(&mut one);
        succeeded(&mut two);
    }
    goes_on(&mut one, 12);
    goes_on(&mut two, 11);
    bad.kill();
    let mut good = job.start(&["load", "13", "11,12", &seed]);
    good.expect("ready");
    goes_on(&mut good, 11);
    goes_on(&mut good, 12);
    goes_on(&mut one, 13);
    goes_on(&mut two, 13);
    for worker in [&mut one, &mut two, &mut good] {
        worker.send("stop");
        worker.expect("count ");
        worker.succeed();
    }
    assert_eq!(job.shared_memory_names(), Vec::<String>::new());
}

fn complained(worker: &Worker) -> bool {
    worker.stderr().contains("wrote nonsense into its lane")
}

/// Waits for successes with a peer.
fn goes_on(worker: &mut Worker, peer: u32) {
    let before = succeeded(worker)[&peer];
    let until = Instant::now() + PATIENCE;
    while succeeded(worker)[&peer] < before + 10 {
        assert!(
            Instant::now() < until,
            "nothing gets through to {peer}: {}",
            worker.stderr()
        );
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
