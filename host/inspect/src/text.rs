//! All that is known of processes, for people.

use crate::process::Process;
use lintel_snapshot::{
    Awaited, CounterState, CounterTest, EndpointState, EntryState, InterfaceState, PortalState,
    Snapshot, Traffic, Wait,
};
use lintel_types::{Handle, ProcessId};
use std::fmt::Write;

/// Each process with its interfaces, queues, counters and peers.
pub fn text(processes: &[Process]) -> String {
    let mut out = String::new();
    for process in processes {
        heading(&mut out, process);
        match &process.snapshot {
            Some(snapshot) => body(&mut out, snapshot),
            None if process.stopped => line(&mut out, 1, "no answer within 1 s: it is stopped"),
            None => line(&mut out, 1, "no answer within 1 s"),
        }
    }
    out
}

fn heading(out: &mut String, process: &Process) {
    let rank = process.rank.map(|rank| format!("rank {rank}, "));
    let program = process.program.as_deref().unwrap_or("?");
    let idle = match &process.snapshot {
        Some(snapshot) if snapshot.endpoint.is_some() => String::new(),
        Some(snapshot) => match snapshot.idle_ms {
            Some(idle) => format!(", last message {} ago", seconds(idle)),
            None => ", no message yet".into(),
        },
        None => String::new(),
    };
    let heading = format!(
        "{}{} of job {}, process {} ({program}){idle}",
        rank.unwrap_or_default(),
        process.process,
        process.job,
        process.os_process,
    );
    line(out, 0, &heading);
}

fn body(out: &mut String, snapshot: &Snapshot) {
    for wait in &snapshot.waits {
        line(out, 1, &waiting(wait));
    }
    if let Some(thread) = snapshot.awaits_launcher {
        line(out, 1, &format!("thread {thread} waits for its launcher"));
    }
    if snapshot.streams > 0 {
        let parts = format!("{} long messages are arriving in parts", snapshot.streams);
        line(out, 1, &parts);
    }
    if snapshot.granted > 0 {
        let moved = format!(
            "{} long messages are moved by their senders",
            snapshot.granted
        );
        line(out, 1, &moved);
    }
    for state in &snapshot.interfaces {
        interface(out, state);
    }
    if let Some(held) = &snapshot.endpoint {
        line(out, 1, &endpoint(held));
    }
    for peer in &snapshot.peers {
        line(out, 1, &traffic(peer));
    }
    more(out, 1, snapshot.more_peers, "peers");
}

/// What an endpoint of CCI holds.
pub(crate) fn endpoint(held: &EndpointState) -> String {
    format!(
        "CCI endpoint: {} connections, {} operations pending, {} messages not returned",
        held.connections, held.pending, held.held
    )
}

fn waiting(wait: &Wait) -> String {
    let (thread, since) = (wait.thread, seconds(wait.since_ms));
    format!(
        "thread {thread} waits since {since} for {}",
        awaited(&wait.awaits)
    )
}

/// What a thread waits for.
pub fn awaited(awaits: &Awaited) -> String {
    match awaits {
        Awaited::Events(queues) => {
            let queues: Vec<String> = queues.iter().map(|queue| index(*queue)).collect();
            format!("an event in queue {}", queues.join(" or "))
        }
        Awaited::Counters(tests) => {
            let tests: Vec<String> = tests.iter().map(counter_test).collect();
            tests.join(" or ")
        }
        Awaited::Other => "an answer, or room for an operation".into(),
    }
}

fn counter_test(test: &CounterTest) -> String {
    let failures = match test.failure {
        0 => String::new(),
        failures => format!(" with {failures} failures"),
    };
    let (counter, at_least, value) = (index(test.handle), test.test, test.success);
    format!("counter {counter} >= {at_least}, it stands at {value}{failures}")
}

fn interface(out: &mut String, state: &InterfaceState) {
    let matching = if state.matching {
        "matching"
    } else {
        "non-matching"
    };
    let logical = if state.logical { "logical" } else { "physical" };
    let kind = match state.portals3 {
        true => "Portals 3.3".into(),
        false => format!("{matching}, {logical}"),
    };
    let mut words = format!(
        "{kind} interface: {} requests and {} responses arrived, {} events, {} pending",
        state.requests, state.responses, state.events, state.pending
    );
    if !state.portals3 {
        let _ = write!(words, ", {} triggered", state.triggered);
    }
    let refused = [
        (state.drops, "dropped"),
        (state.permission_violations, "refused for their user"),
        (state.operation_violations, "refused for their operation"),
    ];
    for (count, what) in refused.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(words, ", {count} {what}");
    }
    line(out, 1, &words);
    for operation in &state.operations {
        let (verb, target) = (
            if operation.fetches { "from" } else { "to" },
            operation.target,
        );
        let words = format!("pending: {} B {verb} {target}", operation.length);
        line(out, 2, &words);
    }
    state
        .portals
        .iter()
        .for_each(|portal| match state.portals3 {
            true => self::list(out, portal),
            false => self::portal(out, portal, state.logical),
        });
    more(out, 2, state.more_portals, "portal table entries");
    for queue in &state.queues {
        let words = format!(
            "queue {}: {} of {} events",
            index(queue.handle),
            queue.fill,
            queue.size
        );
        line(out, 2, &words);
    }
    more(out, 2, state.more_queues, "queues");
    state
        .counters
        .iter()
        .for_each(|counter| line(out, 2, &counter_line(counter)));
    more(out, 2, state.more_counters, "counters");
}

/// A match list of Portals 3.3.
fn list(out: &mut String, portal: &PortalState) {
    let words = format!("pt {}: {} match entries", portal.index, portal.priority);
    line(out, 2, &words);
    for entry in &portal.entries {
        line(out, 3, &format!("entry {}", pattern(entry, false)));
    }
}

fn portal(out: &mut String, portal: &PortalState, logical: bool) {
    let mut words = format!(
        "pt {}: {} priority, {} overflow, {} unexpected, {} landing",
        portal.index, portal.priority, portal.overflow, portal.unexpected, portal.landing
    );
    if let Some(queue) = portal.queue {
        let _ = write!(words, ", queue {}", index(queue));
    }
    if portal.flow_control {
        words += ", flow control";
    }
    if !portal.enabled {
        words += ", disabled";
    }
    line(out, 2, &words);
    for entry in &portal.entries {
        line(out, 3, &format!("entry {}", pattern(entry, logical)));
    }
    for header in &portal.headers {
        let from = initiator(header.from, logical);
        let words = format!(
            "unexpected bits {:#x} from {from}, {} B",
            header.match_bits, header.length
        );
        line(out, 3, &words);
    }
}

/// What an entry takes.
pub(crate) fn pattern(entry: &EntryState, logical: bool) -> String {
    let (bits, ignore, source) = (entry.match_bits, entry.ignore_bits, entry.source);
    let from = match (logical, source.nid, source.pid) {
        (true, ProcessId::RANK_ANY, _) | (false, ProcessId::NID_ANY, ProcessId::PID_ANY) => {
            "anyone".into()
        }
        _ => initiator(source, logical),
    };
    match ignore {
        0 => format!("bits {bits:#x} from {from}"),
        ignore => format!("bits {bits:#x} ignoring {ignore:#x} from {from}"),
    }
}

/// A process as an interface names initiators.
pub(crate) fn initiator(process: ProcessId, logical: bool) -> String {
    match logical {
        true => format!("rank {}", process.rank()),
        false => process.to_string(),
    }
}

fn counter_line(counter: &CounterState) -> String {
    let (name, success, failure) = (index(counter.handle), counter.success, counter.failure);
    let mut words = format!("counter {name}: {success} successes, {failure} failures");
    if let Some(threshold) = counter.threshold {
        let waiting = counter.triggered;
        let _ = write!(
            words,
            ", {waiting} triggered operations, the first at {threshold}"
        );
    }
    words
}

fn traffic(peer: &Traffic) -> String {
    let path = format!("{:?}", peer.path).to_lowercase();
    let mut words = format!("{path} {}:", peer.process);
    for (what, count) in [("sent", peer.sent), ("received", peer.received)] {
        let _ = write!(words, " {what} {} messages", count.messages);
        if count.bytes > 0 {
            let _ = write!(words, ", {} B through the ring", count.bytes);
        }
        if count.copied > 0 {
            let _ = write!(words, ", {} B copied", count.copied);
        }
        words.push(';');
    }
    let _ = write!(words, " {} B queued", peer.backlog);
    words
}

/// A queue or counter as tools name it: its index, and the handle that a program prints.
pub(crate) fn index(handle: u32) -> String {
    format!("{} ({handle:#x})", Handle(handle).index())
}

pub(crate) fn seconds(milliseconds: u64) -> String {
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        _ => format!("{:.1} s", milliseconds as f64 / 1000.0),
    }
}

fn more(out: &mut String, depth: usize, count: u32, what: &str) {
    if count > 0 {
        line(out, depth, &format!("and {count} more {what}"));
    }
}

fn line(out: &mut String, depth: usize, words: &str) {
    let _ = writeln!(out, "{:indent$}{words}", "", indent = depth * 2);
}
