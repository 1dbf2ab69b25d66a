//! The timelines of two processes, joined.
#![forbid(unsafe_code)]

mod rig;

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use rig::Running;
use serde_json::Value;

#[test]
fn every_arrow_begins_in_a_message_that_was_sent_and_leads_forward() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let out = folder.path().join("trace.json");
    let words = "perf put --sizes=8 --time=1 --rounds=1 --csv=-";
    let mut command = Command::new(env!("CARGO_BIN_EXE_lintel"));
    command
        .args(words.split(' '))
        .env("PTL_TRACE", folder.path());
    let ended = command.stdout(Stdio::null()).status().expect("it starts");
    assert!(ended.success());
    let text = |path: &std::path::Path| path.to_str().expect("text").to_owned();
    let (from, to) = (text(folder.path()), text(&out));
    let said = Running::start(&["trace", "merge", &from, "--out", &to]).text();
    assert!(said.contains("of 2 processes"), "{said}");
    let trace = std::fs::read_to_string(&out).expect("it was written");
    let trace: Vec<Value> = serde_json::from_str(&trace).expect("an array");
    let mut arrows: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for event in trace.iter().filter(|event| event["cat"] == "message") {
        let id = event["id"].as_str().expect("a name");
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
