//! `lintel sim` as a user starts it.
#![forbid(unsafe_code)]

mod rig;

use std::path::{Path, PathBuf};
use std::process::Command;

use rig::Running;
use serde_json::Value;
use tempfile::TempDir;

fn scenario(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    folder.join(name).to_string_lossy().into_owned()
}

/// A file in a folder of its own; dropping it removes both.
struct Scratch {
    path: PathBuf,
    _folder: TempDir,
}

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        Scratch {
            path: folder.path().join(name),
            _folder: folder,
        }
    }

    fn path(&self) -> &str {
        self.path.to_str().expect("text")
    }
}

#[test]
fn a_scenario_gives_the_same_twice_but_for_how_long_it_took() {
    let run = || {
        let mut found =
            Running::start(&["sim", "run", &scenario("tree.toml"), "--json", "-"]).json();
        let entry = &mut found["entries"][0];
        assert!(
            entry["seconds"]
                .as_f64()
                .is_some_and(|seconds| seconds > 0.0)
        );
        entry["seconds"] = Value::Null;
        found
    };
    let first = run();
    assert!(first["entries"][0]["trace_hash"].is_string(), "{first}");
    assert_eq!(first, run());
}

#[test]
fn a_trace_holds_each_rank_s_work_and_each_message() {
    let trace = Scratch::new("trace.json");
    Running::start(&[
        "sim",
        "run",
        &scenario("tree.toml"),
        "--trace",
        trace.path(),
    ])
    .text();
    let text = std::fs::read_to_string(trace.path()).expect("written");
    let events: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    assert!(
        events.iter().all(|event| event["ph"].is_string()),
        "Perfetto reports an event without a phase as an error"
    );
    let count = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count();
    // Seven messages, each sent and received; eight ranks, and a processor of each, have names.
    assert_eq!(
        (count("X"), count("b"), count("e"), count("M")),
        (14, 7, 7, 16)
    );
}

#[test]
fn a_trace_of_seastar_has_nodes_as_processes_and_their_parts_as_tracks() {
    let trace = Scratch::new("seastar.json");
    let scenario = scenario("seastar-put.toml");
    let path = trace.path();
    let printed =
        Running::start(&["sim", "run", &scenario, "--point", "11", "--trace", path]).text();
    let text = std::fs::read_to_string(path).expect("written");
    let events: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let named = |what: &str, name: &str| {
        let is = |event: &&Value| event["name"] == what && event["args"]["name"] == name;
        events.iter().filter(is).count()
    };
    assert_eq!(
        named("process_name", "node 0") + named("process_name", "node 1"),
        2
    );
    for part in ["process 0", "kernel", "firmware", "RX stands still"] {
        assert_eq!(named("thread_name", part), 2, "{part}");
    }
    for way in ["TX DMA: put", "RX DMA: put", "links: put"] {
        assert!(events.iter().any(|event| event["name"] == way), "{way}");
    }
    let spans = events
        .iter()
        .filter(|e| e["ph"] == "X" || e["ph"] == "b")
        .count();
    assert!(
        printed.contains(&format!("{path}: {spans} spans")),
        "{printed}"
    );
}

#[test]
fn a_plot_with_a_log_axis_has_a_place_for_zero() {
    let text = std::fs::read_to_string(scenario("seastar-matching.toml")).expect("it is there");
    assert!(text.contains("\"powers\""), "{text}");
    let file = Scratch::new("log.toml");
    std::fs::write(file.path(), text.replace("\"powers\"", "\"log\"")).expect("written");
    let plots = Scratch::new("plots");
    Running::start(&["sim", "run", file.path(), "--plots", plots.path()]).text();
    assert!(plots.path.join("log.svg").is_file());
}

/// A scenario of Red Storm without a table `plot`, with one line more.
fn without_plot(line: &str) -> Scratch {
    let file = Scratch::new("plain.toml");
    let text = format!(
        "[machine]\nmodel = \"seastar\"\nprofile = \"redstorm-2005\"\n\
         matching = [\"host\", \"nic\"]\n[workload]\nkind = \"put\"\n{line}\n"
    );
    std::fs::write(file.path(), text).expect("written");
    file
}

#[test]
fn a_scenario_without_a_plot_is_drawn_over_its_first_list_of_numbers() {
    let file = without_plot("bytes = [8, 64]");
    let plots = Scratch::new("plots");
    Running::start(&["sim", "run", file.path(), "--plots", plots.path()]).text();
    let svg = std::fs::read_to_string(plots.path.join("plain.svg")).expect("it is drawn");
    for text in ["bytes", "host", "nic"] {
        assert!(svg.contains(&format!("\n{text}\n")), "{text}");
    }
}

#[test]
fn a_sweep_without_numbers_is_refused_with_an_example_of_a_plot() {
    let file = without_plot("bytes = 8");
    let plots = Scratch::new("plots");
    let mut lintel = Command::new(env!("CARGO_BIN_EXE_lintel"));
    let words = ["sim", "run", file.path(), "--plots", plots.path()];
    let output = lintel.args(words).output().expect("starts");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("text");
    assert!(text.contains("[plot]\n    x = "), "{text}");
}

#[test]
fn a_faulty_scenario_is_reported_and_nothing_is_simulated() {
    let file = Scratch::new("faulty.toml");
    std::fs::write(
        file.path(),
        "[machine]\nmodel = \"packet\"\nsise = \"8x8x8\"\n",
    )
    .expect("written");
    let mut lintel = Command::new(env!("CARGO_BIN_EXE_lintel"));
    let output = lintel
        .args(["sim", "run", file.path()])
        .output()
        .expect("starts");
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).expect("text");
    let expected = format!("lintel: {}: machine.size is missing", file.path());
    assert!(text.starts_with(&expected), "{text}");
}
