//! A process of `tests/c/assault/peer.c`, and the commands that it takes.

use crate::sandbox::{self, Outcome, program};
use lintel_fault::job::{Job, Worker};
use lintel_types::ProcessId;
use std::ops::{Deref, DerefMut};
use std::process::Command;
use std::time::{Duration, Instant};

/// The byte that fills memory which no other process may read or change.
pub const SECRET: u8 = b'S';
/// Match bits of the area that a peer exposes.
pub const BITS: u64 = 7;

/// A job whose processes are peers.
pub fn job() -> Job {
    Job::new(&program("peer").display().to_string())
}

/// Process 0 of an attack has this number in its job, where 0 is no pid.
const FIRST: u32 = 11;

/// The Portals name of a process of an attack.
pub fn process_of(job: &Job, number: u32) -> ProcessId {
    job.places().process(FIRST + number)
}

/// The command that starts a process of the job.
pub fn command(job: &Job, number: u32) -> Command {
    job.command(&["peer", &(FIRST + number).to_string()])
}

/// A process that executes commands line by line.
pub struct Peer {
    worker: Worker,
    /// Its number in the job.
    pub number: u32,
    /// Its physical identifier, node and process number.
    pub process: ProcessId,
}

impl Peer {
    /// Starts a peer, which has no interface yet.
    pub fn start(job: &Job, number: u32) -> Peer {
        Peer::from(job, number, command(job, number))
    }

    /// Starts a peer by another command.
    pub fn from(job: &Job, number: u32, command: Command) -> Peer {
        let mut worker = Worker::start(command);
        worker.expect("ready");
        Peer::of(job, number, worker)
    }

    /// A peer that has reported that it is ready.
    pub fn of(job: &Job, number: u32, worker: Worker) -> Peer {
        Peer {
            worker,
            number,
            process: process_of(job, number),
        }
    }

    /// Starts one, and opens its interface.
    pub fn open(job: &Job, number: u32) -> Result<Peer, String> {
        let mut peer = Peer::start(job, number);
        peer.open_interface()?;
        Ok(peer)
    }

    /// Has the peer call `PtlInit` and `PtlNIInit`.
    pub fn open_interface(&mut self) -> Outcome {
        let pid = self.process.pid;
        self.ok(&format!("open {pid}"))
    }

    /// Sends a line, and returns the reply.
    pub fn request(&mut self, words: &str) -> String {
        self.worker.send(words);
        self.worker.line()
    }

    /// Says a line to which the answer must be `ok`.
    pub fn ok(&mut self, words: &str) -> Outcome {
        match self.request(words).as_str() {
            "ok" => Ok(()),
            answer => Err(format!(
                "{words:?} was answered by {answer:?}; it said: {}",
                self.worker.stderr()
            )),
        }
    }

    /// Makes an area of so many bytes of a value.
    pub fn area(&mut self, area: u32, bytes: usize, value: u8) -> Outcome {
        self.ok(&format!("area {area} {bytes} {value}"))
    }

    /// How many bytes of an area have that value.
    pub fn like(&mut self, area: u32, value: u8) -> Result<usize, String> {
        let answer = self.request(&format!("like {area} {value}"));
        answer.parse().map_err(|_| answer)
    }

    /// Puts so much of an area; whether the call was accepted.
    pub fn put(&mut self, area: u32, bytes: usize, to: ProcessId, bits: u64) -> String {
        let ProcessId { nid, pid } = to;
        self.request(&format!("put {area} {bytes} {nid} {pid} {bits}"))
    }

    /// Gets so much into an area.
    pub fn get(&mut self, area: u32, bytes: usize, from: ProcessId, bits: u64) -> String {
        let ProcessId { nid, pid } = from;
        self.request(&format!("get {area} {bytes} {nid} {pid} {bits}"))
    }

    /// The next event within so many milliseconds, or `none`.
    pub fn event(&mut self, milliseconds: u32) -> String {
        self.request(&format!("event {milliseconds}"))
    }

    /// The next event of a kind, without its kind; others are skipped.
    pub fn event_of(&mut self, kind: &str) -> Result<String, String> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(rest) = self.event(200).strip_prefix(kind) {
                return Ok(rest.trim().to_owned());
            }
        }
        Err(format!("no event {kind} for process {}", self.number))
    }

    /// All events until there has been none for so many milliseconds, or more than any
    /// attack causes.
    pub fn events(&mut self, quiet_for: u32) -> Vec<String> {
        let mut seen = Vec::new();
        while seen.len() < MOST_EVENTS {
            match self.event(quiet_for) {
                none if none == "none" => break,
                event => seen.push(event),
            }
        }
        seen
    }

    /// `PtlNIFini` of its interface.
    pub fn close(&mut self) -> Outcome {
        match self.request("close 0").strip_prefix("closed 0 ") {
            Some(_) => Ok(()),
            None => Err("PtlNIFini failed".into()),
        }
    }

    /// `PtlNIFini`, `PtlFini` and the end of the process.
    pub fn end(mut self) -> Outcome {
        self.close()?;
        self.ok("end")?;
        self.worker.send("quit");
        self.worker.succeed();
        Ok(())
    }

    /// Whether it writes a line to standard error; that comes by another pipe than answers.
    pub fn complains(&self) -> bool {
        let until = Instant::now() + COMPLAINT;
        while self.worker.stderr().is_empty() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        !self.worker.stderr().is_empty()
    }

    /// Fails where a signal has ended it.
    pub fn lives(&mut self) -> Outcome {
        let who = format!("process {}", self.number);
        sandbox::not_ended_by_signal(&who, &mut self.worker)
    }

    /// Says a line, and waits until it is answered or the process has ended, but not by
    /// a signal.
    pub fn answers_or_ended_by_itself(&mut self, words: &str) -> Outcome {
        self.worker.send(words);
        self.answer().map(drop)
    }

    /// The answer to what was said, or nothing where the process has ended, though not by
    /// a signal.
    pub fn answer(&mut self) -> Result<String, String> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if let Some(line) = self.worker.try_line() {
                return Ok(line);
            }
            if self.worker.ended().is_some() {
                self.lives()?;
                return Ok(String::new());
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        Err(format!(
            "process {} doesn't answer; it said: {}",
            self.number,
            self.worker.stderr()
        ))
    }
}

/// Longer than anything takes; an operation to a dead peer ends within four seconds.
const PATIENCE: Duration = Duration::from_secs(25);
/// How long a line may be under way between two processes.
const COMPLAINT: Duration = Duration::from_secs(5);
const MOST_EVENTS: usize = 100_000;

impl Deref for Peer {
    type Target = Worker;

    fn deref(&self) -> &Worker {
        &self.worker
    }
}

impl DerefMut for Peer {
    fn deref_mut(&mut self) -> &mut Worker {
        &mut self.worker
    }
}

/// Two peers with areas, each of which has put to the other one: they have met, and know
/// by which ways they reach each other.
pub fn pair(job: &Job, bytes: usize) -> Result<(Peer, Peer), String> {
    let (mut one, mut two) = strangers(job, bytes)?;
    meet(&mut one, &mut two)?;
    Ok((one, two))
}

/// Two peers with areas that haven't met.
pub fn strangers(job: &Job, bytes: usize) -> Result<(Peer, Peer), String> {
    let mut one = Peer::open(job, 0)?;
    let mut two = Peer::open(job, 1)?;
    for (peer, value) in [(&mut one, b'A'), (&mut two, b'B')] {
        peer.area(0, bytes, value)?;
        peer.area(3, GREETING, value)?;
        peer.ok("offer 3 1 quiet")?;
        peer.ok("bind 0")?;
        peer.ok("bind 3")?;
    }
    Ok((one, two))
}

/// Long enough to be lent.
const GREETING: usize = 256 << 10;

/// Each puts twice to the other: the first put establishes how they reach each other.
pub fn meet(one: &mut Peer, two: &mut Peer) -> Outcome {
    for _ in 0..2 {
        exchange_hello(one, two.process)?;
        exchange_hello(two, one.process)?;
    }
    Ok(())
}

/// A put that is acknowledged.
pub fn exchange_hello(peer: &mut Peer, to: ProcessId) -> Outcome {
    match peer.put(3, GREETING, to, 1).as_str() {
        "ok" => {}
        answer => return Err(format!("a put was answered by {answer}")),
    }
    let ack = peer.event_of("ack")?;
    match ack.starts_with("0 ") {
        true => Ok(()),
        false => Err(format!("a put failed: {ack}")),
    }
}
