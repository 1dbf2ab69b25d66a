//! What keeps a job waiting, in likely order for each process.

use crate::process::Process;
use crate::text::{awaited, endpoint, index, initiator, pattern, seconds};
use lintel_snapshot::{InterfaceState, PortalState, Snapshot};
use lintel_types::ProcessId;

/// Without a message for so long, a process is said to be idle, in milliseconds.
const IDLE: u64 = 1000;

/// Counters with triggered operations that a process's line names.
const NAMED: usize = 3;

/// Requests other than a barrier are answered at once.
const AWAITS_LAUNCHER: &str =
    "waits for its launcher, as in ptljob_barrier until all ranks have called it";

const WAITS_IN_NO_CALL: &str =
    "waits in no call of Portals: it computes, polls by itself or waits for something else";

/// A line for each process: what it waits for, and what may be the reason.
pub fn reasons(processes: &[Process]) -> Vec<String> {
    let of = |process: &Process| {
        let found = match &process.snapshot {
            None if process.stopped => vec!["is stopped by a signal or a debugger".into()],
            None => vec!["doesn't answer".into()],
            Some(snapshot) => of_snapshot(snapshot, processes),
        };
        format!("{} {}", process.name(), found.join("; "))
    };
    processes.iter().map(of).collect()
}

fn of_snapshot(snapshot: &Snapshot, all: &[Process]) -> Vec<String> {
    if let Some(held) = &snapshot.endpoint {
        return vec![format!("is a {}", endpoint(held))];
    }
    let mut found: Vec<String> = snapshot
        .waits
        .iter()
        .map(|wait| format!("waits for {}", awaited(&wait.awaits)))
        .collect();
    found.extend(snapshot.awaits_launcher.map(|_| AWAITS_LAUNCHER.into()));
    match snapshot.generic {
        true => found.push("has its engine in an agent, which doesn't know its calls".into()),
        false if found.is_empty() => found.push(WAITS_IN_NO_CALL.into()),
        false => {}
    }
    match snapshot.idle_ms {
        None => found.push("no message has arrived yet".into()),
        Some(idle) if idle >= IDLE => found.push(format!("no messages for {}", seconds(idle))),
        Some(_) => {}
    }
    for interface in &snapshot.interfaces {
        for portal in &interface.portals {
            of_portal(&mut found, portal, interface.logical, all);
        }
        of_interface(&mut found, interface, all);
    }
    found
}

fn of_portal(found: &mut Vec<String>, portal: &PortalState, logical: bool, all: &[Process]) {
    let pt = portal.index;
    if !portal.enabled {
        found.push(format!("pt {pt} is disabled and refuses messages"));
    }
    if let Some(header) = portal.headers.first() {
        let (count, bits) = (portal.unexpected, header.match_bits);
        let from = match logical {
            true => initiator(header.from, logical),
            false => peer(header.from, all),
        };
        let why = match portal.entries.first() {
            None => "no entry is in the priority list".to_owned(),
            Some(entry) => format!("no entry matches, as that for {}", pattern(entry, logical)),
        };
        found.push(format!(
            "{count} unexpected headers in pt {pt}, with bits {bits:#x} from {from}: {why}"
        ));
    }
}

fn of_interface(found: &mut Vec<String>, interface: &InterfaceState, all: &[Process]) {
    if interface.drops > 0 {
        found.push(format!(
            "{} messages were dropped: no entry took them",
            interface.drops
        ));
    }
    for queue in interface.queues.iter().filter(|q| q.fill >= q.size) {
        found.push(format!("queue {} is full", index(queue.handle)));
    }
    of_triggered(found, interface);
    if let Some(operation) = interface.operations.first() {
        let (pending, who) = (interface.pending, peer(operation.target, all));
        found.push(format!(
            "{pending} operations await answers, one from {who}"
        ));
    }
}

/// Counters that triggered operations wait for, a few by name: programs make thousands.
fn of_triggered(found: &mut Vec<String>, interface: &InterfaceState) {
    let mut rest = interface.triggered;
    let awaited = interface.counters.iter().filter_map(|counter| {
        let threshold = counter.threshold?;
        Some((counter, threshold))
    });
    for (counter, threshold) in awaited.take(NAMED) {
        let (name, value) = (index(counter.handle), counter.success);
        found.push(format!(
            "{} triggered operations wait for counter {name} >= {threshold}, it stands at {value}",
            counter.triggered
        ));
        rest = rest.saturating_sub(counter.triggered);
    }
    if rest > 0 {
        found.push(format!("{rest} more triggered operations wait"));
    }
}

/// A process by its rank, and whether it can answer.
fn peer(process: ProcessId, all: &[Process]) -> String {
    let Some(known) = all.iter().find(|other| other.process == process) else {
        return process.to_string();
    };
    let state = if known.stopped {
        ", which is stopped"
    } else {
        ""
    };
    format!("{}{state}", known.name())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_snapshot::{
        Awaited, CounterState, CounterTest, EntryState, HeaderState, OperationState, Wait,
    };
    use std::net::Ipv4Addr;

    const ONE: ProcessId = ProcessId::new(0x7f00_0001, 1);
    const TWO: ProcessId = ProcessId::new(0x7f00_0001, 2);

    fn process(rank: u32, process: ProcessId, snapshot: Option<Snapshot>) -> Process {
        Process {
            job: "j".into(),
            address: Ipv4Addr::LOCALHOST,
            process,
            os_process: 1,
            program: None,
            rank: Some(rank),
            stopped: snapshot.is_none(),
            snapshot,
        }
    }

    /// Waits for a counter, with a header that its entry doesn't match.
    fn mismatched() -> Snapshot {
        let test = CounterTest {
            handle: 3,
            test: 5,
            success: 4,
            failure: 0,
        };
        let portal = PortalState {
            index: 4,
            enabled: true,
            priority: 1,
            unexpected: 3,
            entries: vec![EntryState {
                match_bits: 0x11,
                ignore_bits: 0,
                source: ONE,
            }],
            headers: vec![HeaderState {
                match_bits: 0x10,
                from: ONE,
                length: 8,
            }],
            ..PortalState::default()
        };
        Snapshot {
            idle_ms: Some(12_000),
            waits: vec![Wait {
                thread: 9,
                since_ms: 12_000,
                awaits: Awaited::Counters(vec![test]),
            }],
            interfaces: vec![InterfaceState {
                portals: vec![portal],
                ..InterfaceState::default()
            }],
            ..Snapshot::default()
        }
    }

    /// Awaits the answer of an operation to the other process.
    fn unanswered() -> Snapshot {
        let operation = OperationState {
            target: TWO,
            length: 8,
            fetches: false,
        };
        Snapshot {
            interfaces: vec![InterfaceState {
                pending: 1,
                operations: vec![operation],
                ..InterfaceState::default()
            }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn a_counter_that_stands_and_a_header_that_no_entry_matches_are_named() {
        let found = reasons(&[process(1, TWO, Some(mismatched()))]);
        assert_eq!(
            found,
            [
                "rank 1 waits for counter 3 (0x3) >= 5, it stands at 4; no messages for 12.0 s; \
              3 unexpected headers in pt 4, with bits 0x10 from 127.0.0.1/1: no entry matches, \
              as that for bits 0x11 from 127.0.0.1/1"
            ]
        );
    }

    /// Has as many counters with a triggered operation each as a snapshot lists, and others.
    fn with_many_triggered() -> Snapshot {
        let counter = |handle| CounterState {
            handle,
            success: 0,
            failure: 0,
            triggered: 1,
            threshold: Some(1),
        };
        Snapshot {
            interfaces: vec![InterfaceState {
                counters: (0..32).map(counter).collect(),
                more_counters: 19_968,
                triggered: 20_000,
                ..InterfaceState::default()
            }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn of_many_counters_with_triggered_operations_three_are_named_and_the_rest_counted() {
        let found = reasons(&[process(0, ONE, Some(with_many_triggered()))]);
        assert_eq!(found[0].matches("wait for counter").count(), 3);
        let rest = "; 19997 more triggered operations wait";
        assert!(found[0].ends_with(rest), "{}", found[0]);
    }

    #[test]
    fn who_waits_for_its_launcher_is_not_said_to_wait_in_no_call() {
        let in_barrier = Snapshot {
            awaits_launcher: Some(9),
            ..Snapshot::default()
        };
        let found = reasons(&[
            process(0, ONE, Some(in_barrier)),
            process(1, TWO, Some(Snapshot::default())),
        ]);
        let barrier = "rank 0 waits for its launcher, as in ptljob_barrier";
        assert!(found[0].starts_with(barrier), "{}", found[0]);
        let elsewhere = "rank 1 waits in no call of Portals: ";
        assert!(found[1].starts_with(elsewhere), "{}", found[1]);
    }

    #[test]
    fn who_awaits_the_answer_of_a_stopped_process_says_so() {
        let all = [process(0, ONE, Some(unanswered())), process(1, TWO, None)];
        let found = reasons(&all);
        assert_eq!(found[1], "rank 1 is stopped by a signal or a debugger");
        let answers = "1 operations await answers, one from rank 1, which is stopped";
        assert!(found[0].ends_with(answers), "{}", found[0]);
    }
}
