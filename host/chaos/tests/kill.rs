//! `kill -9` at random points under load.

use lintel_chaos::job::{Job, PATIENCE, Worker};
use lintel_chaos::places::network;
use lintel_chaos::random::Random;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const PIDS: [u32; 4] = [11, 12, 13, 14];

fn job() -> Job {
    Job::new(env!("CARGO_BIN_EXE_chaos-worker"))
}

/// Rounds of killing; `LINTEL_CHAOS_ROUNDS` asks for more.
fn rounds() -> u64 {
    let asked = std::env::var("LINTEL_CHAOS_ROUNDS").ok();
    asked.and_then(|rounds| rounds.parse().ok()).unwrap_or(12)
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

/// By peer, the operations that succeeded so far.
fn succeeded(worker: &mut Worker) -> BTreeMap<u32, u64> {
    worker.say("count");
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
                "{pid} gets nothing through to {missing:?}; it says: {}",
                worker.complaints()
            );
        }
    }
}

/// None of these has ended by itself.
fn all_run(workers: &mut [(&u32, &mut Worker)], pids: &[u32]) {
    for (pid, worker) in workers.iter_mut().filter(|(pid, _)| pids.contains(pid)) {
        let ended = worker.ended();
        assert!(
            ended.is_none(),
            "{pid} ended, {ended:?}; it said: {}",
            worker.complaints()
        );
    }
}

#[test]
fn killing_any_process_at_any_moment_leaves_the_others_working() {
    let mut random = Random::from_env();
    let job = job();
    let mut workers: BTreeMap<u32, Worker> = PIDS
        .iter()
        .map(|pid| (*pid, start(&job, *pid, &mut random)))
        .collect();
    for worker in workers.values_mut() {
        worker.expect("ready");
    }
    all_exchange(&mut workers, &PIDS);
    for round in 0..rounds() {
        let victim = PIDS[random.below(4) as usize];
        // The moment is the point; nothing waits for anything here.
        std::thread::sleep(Duration::from_micros(random.below(30_000)));
        workers.get_mut(&victim).expect("it runs").kill();
        let others: Vec<u32> = PIDS.iter().copied().filter(|p| *p != victim).collect();
        if random.below(2) == 0 {
            all_exchange(&mut workers, &others);
        }
        // Now and then one that is killed while it begins.
        for _ in 0..random.below(3) {
            let mut early = start(&job, victim, &mut random);
            std::thread::sleep(Duration::from_micros(random.below(8000)));
            early.kill();
        }
        let mut next = start(&job, victim, &mut random);
        next.expect("ready");
        workers.insert(victim, next);
        all_exchange(&mut workers, &PIDS);
        let next = workers[&victim].id();
        eprintln!("round {round}: {victim} killed and replaced by {next}");
    }
    for worker in workers.values_mut() {
        worker.say("stop");
        worker.expect("count ");
        worker.succeed();
    }
    assert_eq!(job.leftovers(), Vec::<String>::new());
}

#[test]
fn a_replacement_is_reached_even_by_who_asks_for_no_acknowledgement() {
    let job = job();
    let (mut one, mut two) = (job.start(&["script", "21"]), job.start(&["script", "22"]));
    one.expect("ready");
    two.expect("ready");
    one.say("silent-put 22 8");
    one.expect("Ok");
    two.kill();
    let mut two = job.start(&["script", "22"]);
    two.expect("ready");
    two.say("wait-count 1");
    two.expect("waiting");
    // The first one finds out: at once where it sees that the old one has gone, else
    // by what comes back.
    let until = Instant::now() + PATIENCE;
    let counted = loop {
        one.say("silent-put 22 8");
        one.line();
        if let Some(line) = two.line_if_any() {
            break line;
        }
        assert!(Instant::now() < until, "nothing gets through");
    };
    assert!(counted.starts_with("Ok("), "{counted}");
}

#[test]
fn a_target_outlives_more_senders_than_it_has_lanes() {
    let job = job();
    let mut target = job.start(&["script", "21"]);
    target.expect("ready");
    // Beyond shared memory there are no lanes, and processes that take longer to begin.
    let lanes = if network().contains("shm") { 1024 } else { 64 };
    for _ in 0..(lanes / 16 + 2) {
        let mut senders: Vec<Worker> = (0..16).map(|_| job.start(&["hail", "21"])).collect();
        for (index, sender) in senders.iter_mut().enumerate() {
            sender.expect("heard");
            match index % 2 {
                0 => sender.kill(),
                _ => sender.say("enough"),
            }
        }
        for sender in &mut senders {
            sender.wait();
        }
    }
    target.say("quit");
    target.expect("bye");
}

mod only_shm {
    use super::{Job, PATIENCE, job};
    use std::time::{Duration, Instant};

    /// Who is told that a process is gone has cleared it away, but for an agent, which
    /// tells the peers of its client and clears when it comes to that.
    fn clears_away(job: &Job, number: u32) {
        let agent = std::env::var("PTL_MODE").is_ok_and(|mode| mode == "generic");
        let until = Instant::now() + if agent { PATIENCE } else { Duration::ZERO };
        while job.segment(number).exists() {
            assert!(Instant::now() < until, "{:?}", job.leftovers());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn survivors_clear_away_what_the_killed_left() {
        let job = job();
        let (mut one, mut two) = (job.start(&["script", "21"]), job.start(&["script", "22"]));
        one.expect("ready");
        two.expect("ready");
        one.say("put 22 0 8");
        one.expect("Ok");
        two.kill();
        one.say("put 22 0 8");
        one.expect("Undeliverable");
        clears_away(&job, 22);
        one.say("quit");
        one.expect("bye");
        one.succeed();
        assert_eq!(job.leftovers(), Vec::<String>::new());
    }
}
