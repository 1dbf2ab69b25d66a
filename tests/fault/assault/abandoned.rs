//! Jobs whose launcher, or whose agent, is killed.

use crate::Options;
use crate::peer::{job, pair};
use crate::sandbox::{Outcome, in_shared_memory, program};
use lintel_fault::worker::Worker;
use std::process::Command;
use std::time::{Duration, Instant};

/// How long anything may take to end.
const PATIENCE: Duration = Duration::from_secs(15);
const ROUNDS: u32 = 3;
/// What the ranks run, for longer than the attack takes.
const RANK: &str = "mix";

fn wait_until(what: &str, holds: impl Fn() -> Result<(), String>) -> Outcome {
    let until = Instant::now() + PATIENCE;
    loop {
        match holds() {
            Ok(()) => return Ok(()),
            Err(why) if Instant::now() > until => return Err(format!("{what}: {why}")),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

/// Processes of this namespace that run a program, zombies aside.
pub fn running(name: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    ids.filter(|id: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        let zombie = stat
            .rsplit(") ")
            .next()
            .is_none_or(|rest| rest.starts_with('Z'));
        !zombie && stat.contains(&format!("({name})"))
    })
    .collect()
}

fn yod(words: &[&str]) -> Result<Worker, String> {
    let mut command = Command::new(program("yod"));
    command.args(words).arg(program(RANK));
    command.args(["calls", "60", "2", "0", "0", "7"]);
    let yod = Worker::start(command);
    wait_until("ranks begin", || match running(RANK).len() {
        3 => Ok(()),
        n => Err(format!("{n} ranks run")),
    })?;
    wait_until("ranks open", || match in_shared_memory().len() {
        0 => Err("there is nothing in /dev/shm".into()),
        _ => Ok(()),
    })?;
    Ok(yod)
}

fn nothing_left() -> Outcome {
    wait_until("ranks end", || match running(RANK) {
        ranks if ranks.is_empty() => Ok(()),
        ranks => Err(format!("{} run on", ranks.len())),
    })?;
    wait_until("shared memory is cleared", || match in_shared_memory() {
        names if names.is_empty() => Ok(()),
        names => Err(format!("{names:?} are left")),
    })
}

/// The launcher, then a rank.
pub fn launcher(_: &Options) -> Outcome {
    for words in [
        ["-n", "3", "--mode", "accelerated"],
        ["-n", "3", "--mode", "generic"],
    ] {
        let failed = |why| format!("{words:?}: {why}");
        for _ in 0..ROUNDS {
            let mut yod = yod(&words).map_err(failed)?;
            yod.kill();
            nothing_left().map_err(|why| failed(format!("yod was killed: {why}")))?;
        }
        let mut yod = yod(&words).map_err(failed)?;
        kill(running(RANK)[1])?;
        let status = yod.wait();
        if status.success() {
            return Err(failed("a rank was killed, and yod ends with 0".into()));
        }
        nothing_left().map_err(|why| failed(format!("a rank was killed: {why}")))?;
    }
    Ok(())
}

fn kill(process: u32) -> Outcome {
    let words = format!("kill -KILL {process}");
    crate::sandbox::run(Command::new("sh").args(["-c", &words]))
}

/// The clients of an agent, with operations under way: each call answers.
pub fn agent(_: &Options) -> Outcome {
    let job = job();
    let (mut one, mut two) = pair(&job, 8 << 20)?;
    two.ok("offer 0 7")?;
    one.ok("offer 0 7")?;
    let (first, second) = (one.process, two.process);
    one.put(0, 8 << 20, second, 7);
    two.get(0, 8 << 20, first, 7);
    kill(job.agent(0).ok_or("there is no agent")?)?;
    for peer in [&mut one, &mut two] {
        for words in ["event 2000", "event 2000", "open-second", "count 1 100"] {
            peer.answers_or_ended_by_itself(words)?;
        }
        let words = format!("put 3 100 {} {} 1", second.nid, second.pid);
        peer.answers_or_ended_by_itself(&words)?;
        peer.answers_or_ended_by_itself("close 0")?;
        peer.answers_or_ended_by_itself("end")?;
        peer.await_stderr("agent");
    }
    Ok(())
}
