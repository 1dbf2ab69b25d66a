//! Datagrams that were recorded on the wire.

use crate::Options;
use crate::peer::{BITS, Peer, job, pair, process_of};
use crate::sandbox::{Outcome, program};
use lintel_fault::worker::Worker;
use lintel_types::ProcessId;
use std::net::Ipv4Addr;
use std::process::Command;

const RECORDING: &str = "/mnt/recording";
const BYTES: usize = 4096;
/// Milliseconds without an event after which none is expected any more.
const QUIET: u32 = 1500;

/// What a client sent to a server that is dead by now is sent to the server's successor,
/// once without the client, once beside its successor.
pub fn new_life(_: &Options) -> Outcome {
    let job = job();
    let (client, server) = record(&job)?;
    let mut next = begin(&job, 1)?;
    replay(client, server)?;
    nothing_comes(&mut next)?;
    let mut successor = begin(&job, 0)?;
    crate::peer::meet(&mut successor, &mut next)?;
    next.events(100);
    replay_beside(&mut successor, client, server)?;
    nothing_comes(&mut next)?;
    // And it still hears who is there.
    let mut successor = begin(&job, 0)?;
    crate::peer::meet(&mut successor, &mut next)
}

/// Where the client was, and the server.
fn record(job: &lintel_fault::job::Job) -> Result<(ProcessId, ProcessId), String> {
    let port = process_of(job, 1).pid.to_string();
    let mut command = Command::new(program("wire"));
    command.args(["record", &port, RECORDING]);
    let mut wire = Worker::start(command);
    wire.expect("recording");
    let (mut one, mut two) = pair(job, BYTES)?;
    two.ok(&format!("offer 0 {BITS}"))?;
    match one.put(0, 100, two.process, BITS).as_str() {
        "ok" => {}
        answer => return Err(format!("a put was answered by {answer}")),
    }
    two.event_of("put")?;
    let both = (one.process, two.process);
    one.kill();
    two.kill();
    wire.kill();
    let recorded = std::fs::metadata(RECORDING).map_err(|why| why.to_string())?;
    match recorded.len() {
        0 => Err("nothing was recorded".into()),
        _ => Ok(both),
    }
}

fn begin(job: &lintel_fault::job::Job, number: u32) -> Result<Peer, String> {
    let mut peer = Peer::open(job, number)?;
    peer.area(0, BYTES, b'B')?;
    peer.area(3, 256 << 10, b'B')?;
    peer.ok(&format!("offer 0 {BITS}"))?;
    // Counted too: the first puts of a life are the first that are recorded.
    peer.ok("offer 3 1")?;
    peer.ok("bind 3")?;
    Ok(peer)
}

fn replay(from: ProcessId, to: ProcessId) -> Outcome {
    let mut command = Command::new(program("wire"));
    command.args(["replay", RECORDING]);
    for process in [from, to] {
        command.arg(Ipv4Addr::from(process.nid).to_string());
        command.arg(process.pid.to_string());
    }
    crate::sandbox::run(&mut command)
}

/// The client's address is taken by its successor, which ends first.
fn replay_beside(successor: &mut Peer, from: ProcessId, to: ProcessId) -> Outcome {
    successor.kill();
    replay(from, to)
}

fn nothing_comes(server: &mut Peer) -> Outcome {
    let events = server.events(QUIET);
    let put = |event: &&String| event.starts_with("put");
    match events.iter().find(put) {
        Some(event) => Err(format!("replayed datagrams made {event:?}")),
        None => Ok(()),
    }
}
