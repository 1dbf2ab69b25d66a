//! What running processes answer to `lintel info --queues`.
#![forbid(unsafe_code)]

mod rig;

use portals4::{Counter, Interface, Options, Portals};
use rig::Running;
use serde_json::Value;

/// What `process` answers, if it is listed.
fn answer_of(process: u32) -> Option<Value> {
    let all = Running::start(&["info", "--queues", "--json"]).json();
    let mut all = all.as_array().expect("processes").iter();
    all.find(|answer| answer["os_process"] == process).cloned()
}

/// Lines about this process that two looks write.
fn lines_of_top() -> usize {
    let words = ["top", "--csv", "--every", "10ms", "--looks", "2"];
    let text = Running::start(&words).text();
    let mut lines = csv::Reader::from_reader(text.as_bytes());
    let own = std::process::id().to_string();
    let lines = lines.records().map(|line| line.expect("a line"));
    lines
        .filter(|line| line.iter().any(|cell| cell == own))
        .count()
}

#[test]
fn a_process_answers_with_its_counters_while_its_threads_make_no_call() {
    let portals = Portals::init().expect("Portals can be used");
    let interface = Interface::open(&portals, Options::default()).expect("one opens");
    let counter = Counter::alloc(&interface).expect("one is free");
    counter.increment(7).expect("it is live");
    let answer = answer_of(std::process::id()).expect("it is listed");
    let seen = &answer["snapshot"]["interfaces"][0]["counters"][0];
    assert_eq!(seen["success"], 7, "{answer}");
    assert_eq!(answer["stopped"], false);
    assert_eq!(lines_of_top(), 2, "a line for each look");
    drop((counter, interface));
    drop(portals);
    assert_eq!(answer_of(std::process::id()), None, "it has left");
}
