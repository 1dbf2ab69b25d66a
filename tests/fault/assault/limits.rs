//! What a system grants little of.

use crate::Options;
use crate::peer::{Peer, command, job, meet};
use crate::sandbox::{self, Mounted, Outcome, program};
use lintel_fault::job::{Job, Worker};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// Nobody else's number, so that only this user's processes count.
const USER: u32 = 64_977;
/// How often `PtlNIInit` is tried.
const TRIES: u32 = 10;
const MIB: u64 = 1 << 20;

/// A command, as the superuser's or as an ordinary user's where that can be.
fn limited(job: &Job, number: u32, before: &[String]) -> Command {
    let agreed = command(job, number);
    let mut command = Command::new(&before[0]);
    command.args(&before[1..]).arg(program("peer"));
    for (name, value) in agreed.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command
}

fn prlimit(what: &str, value: u64) -> Vec<String> {
    vec!["prlimit".into(), format!("--{what}={value}:{value}")]
}

/// A peer, unless the system doesn't even load the program.
fn begin(job: &Job, number: u32, command: Command) -> Option<Peer> {
    let mut worker = Worker::start(command);
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        if worker.try_line().is_some_and(|line| line == "ready") {
            return Some(Peer::of(job, number, worker));
        }
        if worker.ended().is_some() || Instant::now() > until {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// In each of these limits `PtlNIInit` answers, and no signal ends anybody.
fn answers_within(what: &str, values: &[u64]) -> Result<Vec<String>, String> {
    let job = job();
    let mut complaints = Vec::new();
    let (mut begun, mut opened) = (0, 0);
    for value in values {
        let limited = limited(&job, 0, &prlimit(what, *value));
        let Some(mut peer) = begin(&job, 0, limited) else {
            continue;
        };
        begun += 1;
        let open = format!("open {}", peer.process.pid);
        let failed = |why| format!("--{what}={value}: {why}");
        peer.send(&open);
        let answer = peer.answer().map_err(failed)?;
        match answer.as_str() {
            "ok" => {
                opened += 1;
                peer.answers_or_ended_by_itself("close 0").map_err(failed)?;
            }
            refused if refused.starts_with("refused") => {
                peer.complains();
                complaints.push(peer.stderr());
            }
            other => return Err(failed(other.into())),
        }
    }
    println!(
        "{what}: of {} limits {begun} begun, {opened} opened",
        values.len()
    );
    match begun {
        0 => Err(format!("no process began with {what} limited")),
        _ => Ok(complaints),
    }
}

/// Threads and descriptors of a process.
fn resources(peer: &Peer) -> (usize, usize) {
    let count = |what: &str| {
        let entries = std::fs::read_dir(format!("/proc/{}/{what}", peer.id()));
        entries.map_or(0, Iterator::count)
    };
    (count("task"), count("fd"))
}

/// The same once no thread is left over; one that has ended is there for a moment still.
fn settled(peer: &Peer, before: (usize, usize)) -> (usize, usize) {
    let until = Instant::now() + Duration::from_secs(5);
    while resources(peer).0 > before.0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    resources(peer)
}

/// If a thread is refused, everything created before it is released.
pub fn threads(_: &Options) -> Outcome {
    let mut refused = 0;
    for threads in 1..=12 {
        let job = job();
        let mut command = limited(&job, 0, &prlimit("nproc", threads));
        if sandbox::has_users() {
            command.uid(USER).gid(USER);
        }
        let Some(mut peer) = begin(&job, 0, command) else {
            continue;
        };
        let before = resources(&peer);
        let open = format!("open {}", peer.process.pid);
        let first = peer.request(&open);
        if first == "ok" {
            continue;
        }
        refused += 1;
        println!("--nproc={threads}: {first}");
        let after_first = resources(&peer);
        for _ in 1..TRIES {
            peer.request(&open);
        }
        let after = settled(&peer, before);
        if after.0 > before.0 || after.1 > after_first.1.max(before.1) {
            let counts = format!("threads and descriptors {before:?}, then {after:?}");
            return Err(format!(
                "--nproc={threads}: {TRIES} times {first}: {counts}"
            ));
        }
    }
    match refused {
        0 => Err("no limit refused a thread".into()),
        _ => Ok(()),
    }
}

/// With 4 to 12 descriptors, two processes exchange messages or are refused with a reason.
pub fn descriptors(_: &Options) -> Outcome {
    let values: Vec<u64> = (4..=12).collect();
    let complaints = answers_within("nofile", &values)?;
    // An agent whose message can't be received isn't of another version.
    match complaints.iter().find(|said| said.contains("version")) {
        Some(said) => Err(format!("it blames a version: {said}")),
        None => Ok(()),
    }
}

/// The same with files of at most 0 bytes to 32 MiB.
pub fn file_size(_: &Options) -> Outcome {
    let values = [0, 1, 4096, MIB, 8 * MIB, 16 * MIB, 28 * MIB, 32 * MIB];
    answers_within("fsize", &values).map(drop)
}

/// The same with an address space of 16 to 496 MiB.
pub fn memory(_: &Options) -> Outcome {
    let values: Vec<u64> = (0..16).map(|step| (16 + 32 * step) * MIB).collect();
    answers_within("as", &values).map(drop)
}

/// Files that a process makes for itself are its own, whatever its umask.
pub fn umask(_: &Options) -> Outcome {
    for mask in ["0777", "0277", "0000"] {
        let job = job();
        let start = |number: u32| {
            let words = format!("umask {mask}; exec \"$0\"");
            let before = ["sh".to_owned(), "-c".to_owned(), words];
            let mut command = limited(&job, number, &before);
            if sandbox::has_users() {
                command.uid(USER).gid(USER);
            }
            Peer::from(&job, number, command)
        };
        let (mut one, mut two) = (start(0), start(1));
        together(&mut one, &mut two).map_err(|why| format!("umask {mask}: {why}"))?;
    }
    Ok(())
}

fn together(one: &mut Peer, two: &mut Peer) -> Outcome {
    for peer in [&mut *one, &mut *two] {
        peer.open_interface()?;
        peer.area(3, 256 << 10, b'A')?;
        peer.ok("offer 3 1 quiet")?;
        peer.ok("bind 3")?;
    }
    meet(one, two)
}

/// Without them a process works, or is refused with a line that says why.
pub fn no_proc(_: &Options) -> Outcome {
    let _sys = Mounted::nothing_at("/sys")?;
    let _proc = Mounted::nothing_at("/proc")?;
    let job = job();
    let (mut one, mut two) = (Peer::start(&job, 0), Peer::start(&job, 1));
    for peer in [&mut one, &mut two] {
        let answer = peer.request(&format!("open {}", peer.process.pid));
        if answer != "ok" && !peer.complains() {
            return Err(format!("PtlNIInit: {answer}, without a line that says why"));
        }
        if answer != "ok" {
            return Ok(());
        }
        peer.area(3, 256 << 10, b'A')?;
        peer.ok("offer 3 1 quiet")?;
        peer.ok("bind 3")?;
    }
    meet(&mut one, &mut two)?;
    one.end()?;
    two.end()
}
