//! The timelines of two processes, joined.
#![forbid(unsafe_code)]

mod rig;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use lintel_snapshot::timeline::{Timeline, What};
use rig::Running;
use serde_json::Value;

/// A measurement of two ranks, its timelines merged.
fn measured(sizes: &str) -> Vec<Value> {
    measured_with(sizes, "on")
}

/// As [`measured`], with calls or without.
fn measured_with(sizes: &str, calls: &str) -> Vec<Value> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let out = folder.path().join("trace.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lintel"));
    measure(&mut command, sizes, calls, folder.path());
    let text = |path: &Path| path.to_str().expect("text").to_owned();
    let (from, to) = (text(folder.path()), text(&out));
    let said = Running::start(&["trace", "merge", &from, "--out", &to]).text();
    assert!(said.contains("of 2 processes"), "{said}");
    let trace = std::fs::read_to_string(&out).expect("it was written");
    serde_json::from_str(&trace).expect("an array")
}

/// Runs a measurement whose ranks write their timelines into a folder, by a command that starts
/// `lintel`.
fn measure(command: &mut Command, sizes: &str, calls: &str, folder: &Path) {
    let words = format!("perf put --sizes={sizes} --time=1 --rounds=1 --csv=-");
    command
        .args(words.split(' '))
        .env("PTL_TRACE", folder)
        .env("PTL_TRACE_CALLS", calls);
    let ended = command.stdout(Stdio::null()).status().expect("it starts");
    assert!(ended.success(), "{command:?}: {ended}");
}

/// A track, and a time in it in nanoseconds.
fn place(event: &Value) -> ((u64, u64), u64) {
    let number = |key: &str| event[key].as_u64().expect("a number");
    let ns = event["ts"].as_f64().expect("a time") * 1000.0;
    ((number("pid"), number("tid")), ns.round() as u64)
}

/// What Perfetto's importer asks of a file; it drops what is otherwise.
#[test]
fn spans_of_a_track_nest_and_each_point_of_an_arrow_is_in_one() {
    let trace = measured("8,64K");
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    for span in trace.iter().filter(|event| event["ph"] == "X") {
        let (track, begin) = place(span);
        let length = span["dur"].as_f64().expect("a length") * 1000.0;
        let end = begin + length.round() as u64;
        tracks.entry(track).or_default().push((begin, end));
    }
    for ((process, thread), spans) in &mut tracks {
        assert!(*process > 0 && *thread > 0, "0 means others to Perfetto");
        spans.sort_by_key(|(begin, end)| (*begin, std::cmp::Reverse(*end)));
        let mut open: Vec<u64> = Vec::new();
        for (begin, end) in spans {
            open.retain(|outer| outer > begin);
            assert!(open.iter().all(|outer| outer >= end), "{begin} to {end}");
            open.push(*end);
        }
    }
    for point in trace.iter().filter(|event| event["cat"] == "message") {
        let (track, at) = place(point);
        let is_in = |(begin, end): &(u64, u64)| (*begin..=*end).contains(&at);
        assert!(tracks[&track].iter().any(is_in), "{point}");
    }
}

#[test]
fn without_calls_a_timeline_has_the_messages_and_their_arrows() {
    let trace = measured_with("8", "off");
    let has = |key: &str, value: &str| trace.iter().any(|event| event[key] == value);
    assert!(has("name", "PUT") && has("cat", "message"));
    assert!(!has("name", "PtlPut") && !has("name", "PtlMDBind"));
}

#[test]
fn every_arrow_begins_in_a_message_that_was_sent_and_leads_forward() {
    let trace = measured("8");
    let spans = |name: &str| -> Vec<(u64, f64, f64)> {
        let named = trace.iter().filter(|event| event["name"] == name);
        named
            .map(|event| {
                let number = |key: &str| event[key].as_f64().expect("a number");
                let end = number("ts") + number("dur");
                (event["pid"].as_u64().expect("a process"), number("ts"), end)
            })
            .collect()
    };
    let (calls, messages) = (spans("PtlPut"), spans("PUT"));
    let within = |call: &(u64, f64, f64), message: &(u64, f64, f64)| {
        call.0 == message.0 && call.1 <= message.1 && message.2 <= call.2
    };
    assert!(
        calls
            .iter()
            .any(|call| messages.iter().any(|message| within(call, message))),
        "a message is sent in a call"
    );
    let mut arrows: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    for event in trace.iter().filter(|event| event["cat"] == "message") {
        let id = event["id"]
            .as_u64()
            .expect("a number: Perfetto takes no names");
        arrows.entry(id).or_default().push(event);
    }
    assert!(!arrows.is_empty());
    for (id, points) in &arrows {
        let start = points.iter().find(|point| point["ph"] == "s");
        let start = start.unwrap_or_else(|| panic!("{id} has no start: {points:?}"));
        let time = |point: &Value| point["ts"].as_f64().expect("a number");
        let is_later = |point: &&Value| time(point) >= time(start);
        assert!(
            points.len() > 1 && points.iter().all(is_later),
            "{points:?}"
        );
    }
}

/// No message arrives more than 100 ns before it was sent, the error that two ranks' clocks may
/// have. In both directions: neither rank's clock is ahead of the other's by more than that and
/// what the fastest message takes.
fn no_message_arrives_100_ns_before_it_was_sent(folder: &Path) {
    let files = std::fs::read_dir(folder).expect("a folder");
    let read = |file: std::io::Result<std::fs::DirEntry>| {
        let bytes = std::fs::read(file.expect("a file").path()).expect("readable");
        Timeline::from_bytes(&bytes).expect("a timeline")
    };
    let timelines: Vec<Timeline> = files.map(read).collect();
    assert_eq!(timelines.len(), 2);
    for (from, to) in [(0, 1), (1, 0)] {
        let (from, to) = (&timelines[from], &timelines[to]);
        let sent = from.records.iter().filter_map(|record| match &record.what {
            What::Sent(message) if message.peer == to.process => {
                Some((message.number, record.at_ns))
            }
            _ => None,
        });
        let sent: BTreeMap<u64, u64> = sent.collect();
        let mut joined = 0;
        for record in &to.records {
            let What::Handled(message) = &record.what else {
                continue;
            };
            let sent_ns = sent.get(&message.number);
            if let Some(sent_ns) = sent_ns.filter(|_| message.peer == from.process) {
                let number = message.number;
                let done_ns = record.at_ns + record.length_ns;
                assert!(
                    done_ns + 100 >= *sent_ns,
                    "{number}: {sent_ns} to {done_ns}"
                );
                joined += 1;
            }
        }
        assert!(joined > 0, "none of {} messages", sent.len());
    }
}

#[test]
fn no_message_arrives_before_it_was_sent_by_two_ranks_clocks() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lintel"));
    measure(&mut command, "8", "on", folder.path());
    no_message_arrives_100_ns_before_it_was_sent(folder.path());
}

/// The kernel says nowhere that it trusts the processor's ticks: an empty file system covers it.
#[test]
fn without_steady_ticks_no_message_arrives_before_it_was_sent_either() {
    let cover = "mount -t tmpfs none /sys/devices/system/clocksource && exec \"$@\"";
    let unshared = || {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", cover, "sh"]);
        command
    };
    let tried = unshared().arg("true").stderr(Stdio::piped()).output();
    let tried = tried.expect("unshare of util-linux starts");
    if !tried.status.success() {
        let why = String::from_utf8_lossy(&tried.stderr).into_owned();
        println!("not tried, for this system forbids mounts in a namespace: {why}");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder can be made");
    let mut command = unshared();
    command.arg(env!("CARGO_BIN_EXE_lintel"));
    measure(&mut command, "8", "on", folder.path());
    no_message_arrives_100_ns_before_it_was_sent(folder.path());
}
