//! `kill -9` at random moments.

use crate::Options;
use crate::sandbox::{Outcome, program};
use lintel_fault::exchange;
use lintel_fault::job::{Job, Worker};
use std::time::Duration;

fn job() -> Job {
    Job::new(&program("fault-worker").display().to_string())
}

fn nothing_left(job: &Job) -> Outcome {
    match job.shared_memory_names() {
        left if left.is_empty() => Ok(()),
        left => Err(format!("left in /dev/shm: {left:?}")),
    }
}

/// Processes under load, each of whose answers is checked.
pub fn at_random(options: &Options) -> Outcome {
    let (job, mut random) = (job(), options.random());
    exchange::kill_at_random(&job, &mut random, options.kills);
    nothing_left(&job)
}

/// A process may be dead within so many microseconds of its start.
const AT_START: u64 = 6000;

/// Processes that begin; their successors find everything in order.
pub fn at_start(options: &Options) -> Outcome {
    let (job, mut random) = (job(), options.random());
    for _ in 0..options.kills {
        let number = 11 + random.below(4);
        let mut early = job.start(&["script", &number.to_string()]);
        std::thread::sleep(Duration::from_micros(random.below(AT_START)));
        early.kill();
    }
    let start = |number: u32| {
        let mut worker = job.start(&["script", &number.to_string()]);
        worker.expect("ready");
        worker
    };
    let mut workers: Vec<Worker> = (11..15).map(start).collect();
    workers[0].send("put 12 0 100000");
    workers[0].expect("Ok");
    for worker in &mut workers {
        worker.send("quit");
        worker.expect("bye");
        worker.succeed();
    }
    nothing_left(&job)
}
