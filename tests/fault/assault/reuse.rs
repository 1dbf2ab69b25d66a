//! Process identifiers that name another process.
//!
//! A process posts a long operation to one that is stopped, and dies. Another program, which
//! has never heard of Portals, gets its number and has memory at the same addresses. Then
//! the one that was stopped goes on. It must neither deliver the stranger's bytes nor
//! write any into it.

use crate::Options;
use crate::peer::{BITS, Peer, SECRET, job, pair};
use crate::sandbox::{Outcome, program};
use lintel_fault::job::Job;
use lintel_fault::worker::Worker;
use std::process::Command;

/// Long enough to be lent.
const BYTES: usize = 1 << 20;
/// Milliseconds without an event after which none is expected any more.
const QUIET: u32 = 1500;

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Put,
    Get,
}

/// How the number comes to name another program.
#[derive(Clone, Copy, PartialEq)]
enum Successor {
    Stranger,
    Exec,
}

/// The initiator of a put dies, and another program gets its pid.
pub fn put(_: &Options) -> Outcome {
    against_receiver(Operation::Put, Successor::Stranger)
}

/// The initiator of a get dies, and another program gets its pid.
pub fn get(_: &Options) -> Outcome {
    against_receiver(Operation::Get, Successor::Stranger)
}

/// The initiator of a put, then of a get, calls exec.
pub fn exec(_: &Options) -> Outcome {
    against_receiver(Operation::Put, Successor::Exec)?;
    against_receiver(Operation::Get, Successor::Exec)
}

fn against_receiver(operation: Operation, successor: Successor) -> Outcome {
    let job = job();
    let (mut initiator, mut target) = pair(&job, BYTES)?;
    target.ok(&format!("offer 0 {BITS}"))?;
    target.stop();
    post(operation, &mut initiator, &target)?;
    let mut stranger = replace(&job, initiator, successor)?;
    target.resume();
    judge(operation, &mut stranger, &mut target)
}

/// As [`put`], in generic placement.
pub fn put_through_agent(_: &Options) -> Outcome {
    through_agent(Operation::Put)
}

/// As [`get`], in generic placement.
pub fn get_through_agent(_: &Options) -> Outcome {
    through_agent(Operation::Get)
}

/// Stops the agent, which is what moves bytes.
fn through_agent(operation: Operation) -> Outcome {
    let job = job();
    let (mut initiator, mut target) = pair(&job, BYTES)?;
    target.ok(&format!("offer 0 {BITS}"))?;
    let agent = job.agent(0).ok_or("there is no agent")?;
    signal(agent, "STOP")?;
    post(operation, &mut initiator, &target)?;
    let mut stranger = replace(&job, initiator, Successor::Stranger)?;
    signal(agent, "CONT")?;
    judge(operation, &mut stranger, &mut target)
}

fn signal(process: u32, name: &str) -> Outcome {
    let words = format!("kill -{name} {process}");
    crate::sandbox::run(Command::new("sh").args(["-c", &words]))
}

fn post(operation: Operation, initiator: &mut Peer, target: &Peer) -> Outcome {
    let answer = match operation {
        Operation::Put => initiator.put(0, BYTES, target.process, BITS),
        Operation::Get => initiator.get(0, BYTES, target.process, BITS),
    };
    match answer.as_str() {
        "ok" => Ok(()),
        answer => Err(format!("the operation was refused: {answer}")),
    }
}

/// Another program under the same number, with secrets at the same addresses.
fn replace(job: &Job, mut initiator: Peer, successor: Successor) -> Result<Peer, String> {
    let number = initiator.number;
    let mut stranger = match successor {
        Successor::Exec => {
            initiator.send("become");
            initiator.expect("ready");
            initiator
        }
        Successor::Stranger => {
            let id = initiator.id().to_string();
            initiator.kill();
            drop(initiator);
            let mut command = Command::new(program("reborn"));
            command.arg(id).arg(program("peer"));
            Peer::from(job, number, command)
        }
    };
    stranger.area(0, BYTES, SECRET)?;
    Ok(stranger)
}

fn judge(operation: Operation, stranger: &mut Peer, target: &mut Peer) -> Outcome {
    let events = target.events(QUIET);
    let delivered = target.like(0, SECRET)?;
    let kept = stranger.like(0, SECRET)?;
    not_ended(stranger)?;
    if delivered > 0 {
        return Err(format!(
            "{delivered} bytes of a stranger were delivered; {events:?}"
        ));
    }
    if kept < BYTES {
        return Err(format!(
            "{} bytes of a stranger were overwritten",
            BYTES - kept
        ));
    }
    let success = |event: &&String| event.starts_with("put 0 ");
    match events.iter().find(success) {
        Some(event) if operation == Operation::Put => {
            Err(format!("the put of a dead process was delivered: {event}"))
        }
        _ => Ok(()),
    }
}

fn not_ended(stranger: &mut Worker) -> Outcome {
    match stranger.ended() {
        Some(status) => Err(format!("the stranger ended with {status}")),
        None => Ok(()),
    }
}
