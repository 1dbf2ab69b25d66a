//! The command as a user starts it: whole runs of a blink's length, whose rows are there
//! whatever their figures.
#![forbid(unsafe_code)]

mod rig;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Instant;

use rig::{LOOK_AGAIN, PATIENCE, Running};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Benchmark and variant of every row, each once.
fn rows(report: &Value) -> Vec<(String, String)> {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let rows = report["rows"].as_array().expect("rows");
    let mut all: Vec<_> = rows
        .iter()
        .map(|row| (text(row, "benchmark"), text(row, "variant")))
        .collect();
    all.dedup();
    all
}

#[test]
fn connections_measure_every_model_in_every_figure_and_count_it() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let plots = folder.path().join("plots");
    let place = plots.to_str().expect("text");
    let words = [
        "perf",
        "connections",
        "--nodes=1",
        "--models=rc,xrc",
        "--sizes=8,64",
        "--most-pairs=2",
        "--most-processes=2",
        "--time=2",
        "--rounds=1",
        "--json=-",
        "--plots",
        place,
    ];
    let report = Running::start(&words).json();
    let found = rows(&report);
    for benchmark in [
        "conn-latency",
        "conn-one-way",
        "conn-both-ways",
        "conn-pairs",
        "conn-many",
        "conn-stalled",
        "conn-counts",
        "conn-formula",
    ] {
        for model in ["rc", "xrc"] {
            assert!(
                found.contains(&(benchmark.into(), model.into())),
                "{benchmark} {model}: {found:?}"
            );
        }
    }
    assert_eq!(report["options"]["nodes"], 1);
    assert!(plots.join("connections-latency.png").is_file());
}

#[test]
fn collectives_measure_every_operation_in_both_placements() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let plots = folder.path().join("plots");
    let place = plots.to_str().expect("text");
    let words = [
        "perf",
        "collectives",
        "--ranks=2,3",
        "--sizes=8,3000",
        "--time=2",
        "--rounds=1",
        "--json=-",
        "--plots",
        place,
    ];
    let report = Running::start(&words).json();
    let found = rows(&report);
    for operation in [
        "barrier",
        "broadcast",
        "allreduce",
        "reduce",
        "gather",
        "scatter",
    ] {
        for ranks in [2, 3] {
            for placement in ["offloaded", "host"] {
                let variant = format!("{operation}, {ranks} ranks, {placement}");
                let row = ("collectives".to_owned(), variant);
                assert!(found.contains(&row), "{row:?}: {found:?}");
            }
        }
    }
    assert!(plots.join("collectives.png").is_file());
}

#[test]
fn two_ranks_on_two_nodes_are_held_against_bare_datagrams() {
    let words = [
        "perf",
        "put",
        "rate",
        "--nodes=2",
        "--sizes=8,64K",
        "--time=2",
        "--rounds=1",
        "--json=-",
    ];
    let report = Running::start(&words).json();
    assert_eq!(report["options"]["nodes"], 2);
    let rows = report["rows"].as_array().expect("rows");
    assert!(rows.len() > 2, "{report}");
    for row in rows {
        let limit = row["limit"]["name"].as_str().unwrap_or_default();
        assert!(limit.starts_with("bare UDP"), "{row}");
    }
}

#[test]
fn puts_of_bytes_that_are_used_are_measured_as_such() {
    for api in ["portals4", "portals3"] {
        let api = format!("--api={api}");
        let words = [
            "perf",
            "put",
            "--used",
            "--sizes=0,1,72,64K",
            "--time=2",
            "--rounds=1",
            "--json=-",
            &api,
        ];
        let report = Running::start(&words).json();
        let rows = report["rows"].as_array().expect("rows");
        let is_used = |row: &Value| {
            row["variant"]
                .as_str()
                .unwrap_or_default()
                .ends_with("used")
        };
        assert!(rows.len() == 4 && rows.iter().all(is_used), "{report}");
    }
}

#[test]
fn a_server_that_sleeps_is_measured_beside_a_futex() {
    let words = ["perf", "asleep", "--time=2", "--rounds=1", "--json=-"];
    let report = Running::start(&words).json();
    let found = report["rows"].as_array().expect("rows");
    let limit = "futex there, spinning back";
    let is_measured = |row: &Value| row["limit"]["name"] == limit;
    assert!(
        found.len() == 3 && found.iter().all(is_measured),
        "{report}"
    );
}

#[test]
fn two_ranks_on_one_core_are_measured_by_each_way_to_wait() {
    let words = ["perf", "one-core", "--time=2", "--rounds=1", "--json=-"];
    let report = Running::start(&words).json();
    let found = rows(&report);
    for wait in ["PtlEQWait", "PtlCTWait", "PtlEQGet"] {
        assert!(
            found.contains(&("one-core".into(), wait.into())),
            "{found:?}"
        );
    }
}

#[test]
fn info_shows_the_processes_of_a_running_job() {
    let _running = Running::start(&["perf", "idle", "--csv=-"]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let overview = Running::start(&["info", "--resources", "--json"]).json();
        let processes = overview["processes"].as_array().expect("a list");
        let of_job = |job: &Value| processes.iter().filter(|p| p["job"] == *job).count();
        if processes.iter().any(|process| of_job(&process["job"]) == 2) {
            return;
        }
        assert!(Instant::now() < deadline, "{overview}");
        std::thread::sleep(LOOK_AGAIN);
    }
}

#[test]
fn portals_3_is_measured_by_the_benchmarks_of_portals_4() {
    let words = "perf put get bidirectional bandwidth rate depth --api=portals3 --sizes=8,64 \
                 --depths=100 --time=2 --rounds=1 --json=-";
    let words: Vec<&str> = words.split(' ').filter(|word| !word.is_empty()).collect();
    let rows = rows(&Running::start(&words).json());
    for name in ["put", "get", "bidirectional", "bandwidth", "rate", "depth"] {
        let of_3 = |(benchmark, variant): &&(String, String)| {
            benchmark == name && variant.starts_with("Portals 3.3, ")
        };
        assert!(rows.iter().any(|row| of_3(&row)), "{name} in {rows:?}");
    }
}

#[test]
fn an_interrupted_run_reports_what_it_has_measured() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let place = folder.path().join("report.json");
    let words = [
        "perf",
        "put",
        "--time=500",
        "--rounds=1",
        "--live",
        "--json",
    ];
    let mut command = Command::new("env");
    // What starts the tests may ignore interrupts.
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_lintel")]);
    command.args(words).arg(&place).stderr(Stdio::piped());
    let mut run = command.spawn().expect("lintel starts");
    let mut lines = BufReader::new(run.stderr.take().expect("piped")).lines();
    let first = lines.find(|line| line.as_ref().is_ok_and(|line| line.starts_with("put")));
    assert!(first.is_some(), "a line for the first point");
    kill_process(Pid::from_child(&run), Signal::INT).expect("it runs");
    lines.for_each(drop);
    assert_eq!(run.wait().expect("it ends").code(), Some(130));
    let report = std::fs::read_to_string(&place).expect("it was written");
    let report: Value = serde_json::from_str(&report).expect("a report");
    assert_eq!(report["interrupted"], true);
    assert!(!rows(&report).is_empty(), "{report}");
}
