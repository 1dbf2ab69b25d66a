//! Everything at once, from many threads.

use crate::Options;
use crate::peer::{command, job, process_of};
use crate::sandbox::{Outcome, not_ended_by_signal, program};
use crate::space::agent_lives;
use lintel_fault::job::{Job, Worker};
use std::process::Command;
use std::time::{Duration, Instant};

const SECONDS: u64 = 6;
const THREADS: &str = "4";
const PROCESSES: u32 = 2;

/// Calls of all kinds, each with handles that may be another thread's, freed, or none.
pub fn calls(options: &Options) -> Outcome {
    mix("calls", options)
}

/// The same while a thread closes and opens the interface.
pub fn cycles(options: &Options) -> Outcome {
    mix("cycles", options)
}

fn mix(kind: &str, options: &Options) -> Outcome {
    let (job, mut random) = (job(), options.random());
    let seconds = options.seconds(SECONDS);
    let start = |number: u32| {
        let other = process_of(&job, (number + 1) % PROCESSES);
        let agreed = command(&job, number);
        let mut command = Command::new(program("mix"));
        for (name, value) in agreed.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let pid = process_of(&job, number).pid.to_string();
        command.args([kind, &seconds.to_string(), THREADS, &pid]);
        command.args([other.nid.to_string(), random.number().to_string()]);
        command.arg(other.pid.to_string());
        Worker::start(command)
    };
    let mut workers: Vec<Worker> = (0..PROCESSES).map(start).collect();
    let until = Instant::now() + Duration::from_secs(seconds + 60);
    for worker in &mut workers {
        while worker.ended().is_none() {
            if Instant::now() > until {
                return Err(format!("a process hangs; it said: {}", worker.stderr()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        not_ended_by_signal("a process", worker)?;
        println!("{}", worker.line());
        worker.succeed();
    }
    agent_lives(&job)
}

/// Four threads put, four wait: each event is posted once.
pub fn threads(options: &Options) -> Outcome {
    let job = Job::new(&program("fault-worker").display().to_string());
    let until = Instant::now() + Duration::from_secs(options.seconds(1));
    loop {
        let mut other = job.start(&["script", "12"]);
        other.expect("ready");
        let mut one = job.start(&["threads", "11", "12"]);
        one.expect("done");
        one.succeed();
        other.send("quit");
        other.expect("bye");
        if Instant::now() > until {
            return Ok(());
        }
    }
}
