//! Progress is implicit, and waiting costs nothing.

use lintel_fault::job::{Job, Worker};
use std::time::Duration;

fn job() -> Job {
    Job::new(env!("CARGO_BIN_EXE_fault-worker"))
}

fn pair(job: &Job) -> (Worker, Worker) {
    let (mut one, mut two) = (job.start(&["script", "11"]), job.start(&["script", "12"]));
    one.expect("ready");
    two.expect("ready");
    (one, two)
}

#[test]
fn a_put_reaches_a_process_that_computes() {
    let job = job();
    for length in ["8", "8000", "3000000"] {
        let (mut one, mut two) = pair(&job);
        two.send("compute 1000");
        two.expect("computing");
        one.send(&format!("put 12 0 {length}"));
        one.expect("Ok");
        one.send(&format!("get 12 0 {length}"));
        one.expect("Ok");
        let after: i64 = two.expect("computed").parse().expect("milliseconds");
        assert!(
            (0..900).contains(&after),
            "{length} bytes came after {after} ms"
        );
        two.send(&format!("received 0 {length}"));
        two.expect("right");
        for mut worker in [one, two] {
            worker.send("quit");
            worker.expect("bye");
            worker.succeed();
        }
    }
}

/// Hundredths of a second on a processor, and switches between threads.
fn cost(process: u32) -> (u64, u64) {
    let read = |path: String| std::fs::read_to_string(path).unwrap_or_default();
    let stat = read(format!("/proc/{process}/stat"));
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let number = |word: &str| word.parse::<u64>().unwrap_or(0);
    let ticks = number(fields[11]) + number(fields[12]);
    let mut switches = 0;
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    for task in tasks.flatten() {
        let status = read(format!("{}/status", task.path().display()));
        let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
        switches += counts
            .filter_map(|line| line.split_whitespace().last())
            .map(number)
            .sum::<u64>();
    }
    (ticks, switches)
}

/// Waits for a second in which a process uses nothing. One that sleeps has such a second
/// as soon as it has fallen asleep; one that polls, or is woken by a timer, never has.
fn sleeps(worker: &Worker, what: &str) {
    let mut seen = Vec::new();
    while seen.len() < SECONDS_TO_FALL_ASLEEP {
        let before = cost(worker.id());
        std::thread::sleep(Duration::from_secs(1));
        let after = cost(worker.id());
        let (ticks, switches) = (after.0 - before.0, after.1 - before.1);
        if ticks <= 1 && switches <= 10 {
            return;
        }
        seen.push(format!("{ticks} ticks and {switches} switches"));
    }
    panic!("{what}: no quiet second, but {}", seen.join(", "));
}

/// A machine that is busy with other tests may keep a process from going to sleep.
const SECONDS_TO_FALL_ASLEEP: usize = 20;

#[test]
fn an_idle_process_uses_no_processor() {
    let job = job();
    let (mut one, mut two) = pair(&job);
    sleeps(&two, "after PtlNIInit");
    one.send("put 12 0 8");
    one.expect("Ok");
    sleeps(&two, "after a message");
    sleeps(&one, "after an acknowledgement");
    two.send("wait-event");
    sleeps(&two, "in PtlEQWait");
    one.send("wait-count 1000");
    one.expect("waiting");
    sleeps(&one, "in PtlCTWait");
}

#[test]
fn a_sleeper_in_ptlctwait_is_woken() {
    let job = job();
    let (mut one, mut two) = pair(&job);
    for round in 1..=200 {
        two.send(&format!("wait-count {round}"));
        two.expect("waiting");
        if round % 8 == 0 {
            // Long enough that it sleeps.
            std::thread::sleep(Duration::from_millis(5));
        }
        one.send("put 12 0 8");
        one.expect("Ok");
        two.expect(&format!("Ok({round})"));
    }
}
