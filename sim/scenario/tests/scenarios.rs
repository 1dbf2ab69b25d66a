//! The scenarios that come along: each can be run, and gives the same each time and on
//! any machine.
//!
//! `golden.txt` holds what each point found. After a change that is meant to change
//! results, `LINTEL_BLESS=1 cargo test -p lintel-sim-scenario` writes it anew; read what
//! changed.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lintel_sim_scenario::{Observer, Outcome, Point, Scenario, Span};

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios")
}

fn all() -> Vec<(String, Scenario)> {
    let folder = fs::read_dir(scenarios()).expect("the folder is there");
    let mut files: Vec<PathBuf> = folder
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "toml"));
    files.sort();
    let read = |file: PathBuf| {
        let name = file
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&file).expect("text");
        let scenario = Scenario::parse(&name, &text).unwrap_or_else(|m| panic!("{m}"));
        (name, scenario)
    };
    files.into_iter().map(read).collect()
}

fn run(point: &Point) -> Outcome {
    watched(point, None)
}

fn watched(point: &Point, observer: Option<Observer>) -> Outcome {
    let file = point.file().map(|file| scenarios().join(file));
    let text = file.map(|file| fs::read_to_string(file).expect("a schedule"));
    let run = point.prepare(text.as_deref(), observer);
    let mut run = run.expect("it can be run");
    while !run.advance(100_000) {
        assert!((0.0..=1.0).contains(&run.done()), "{}", run.done());
    }
    run.finish().expect("it ends")
}

#[test]
fn every_scenario_gives_what_it_gave_before_twice_and_watched_or_not() {
    let mut found = String::new();
    for (name, scenario) in all() {
        for point in &scenario.points {
            let varied = point.varied.iter().map(|(k, v)| format!("{k}={v}"));
            let which = format!("{name} {}", varied.collect::<Vec<_>>().join(" "));
            let outcome = run_twice(point, &which);
            let first = &outcome.figures[0];
            writeln!(
                found,
                "{which}: {:016x}, {:.3} {}",
                outcome.trace_hash, first.value, first.name
            )
            .expect("memory takes it");
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden.txt");
    if std::env::var_os("LINTEL_BLESS").is_some() {
        fs::write(&golden, &found).expect("the tree is writable");
    }
    let expected = fs::read_to_string(&golden).unwrap_or_default();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn k_nomial_trees_have_any_base_and_that_of_2_is_binomial() {
    let models = [
        "model = \"packet\"\nsize = \"4x4x2\"",
        "model = \"triggered\"\ncarried_by = \"interfaces\"\nnodes_log2 = 5",
    ];
    for machine in models {
        let trace = |algorithm: &str| {
            let text = format!(
                "[machine]\n{machine}\n[workload]\nkind = \"all-reduce\"\n\
                 algorithm = \"{algorithm}\"\n"
            );
            let scenario = Scenario::parse("a.toml", &text).unwrap_or_else(|m| panic!("{m}"));
            run(&scenario.points[0]).trace_hash
        };
        assert_eq!(trace("2-nomial"), trace("binomial"), "{machine}");
        let traces = ["2-nomial", "3-nomial", "5-nomial", "7-nomial"].map(trace);
        let mut different = traces.to_vec();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), traces.len(), "{machine}");
        // With 32 nodes these are the same: every node hangs at the root.
        assert_eq!(trace("32-nomial"), trace("65536-nomial"), "{machine}");
    }
}

/// Once alone and once with an observer, who changes nothing.
fn run_twice(point: &Point, which: &str) -> Outcome {
    let spans = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&spans);
    let observer: Observer = Box::new(move |span| seen.borrow_mut().push(span));
    let (alone, watched) = (run(point), watched(point, Some(observer)));
    assert_eq!(alone, watched, "{which}");
    check_tracks(&spans.borrow(), which);
    alone
}

/// Each place has spans; what doesn't overlap, doesn't.
fn check_tracks(spans: &[Span], which: &str) {
    assert!(!spans.is_empty(), "{which}");
    let mut tracks: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for span in spans.iter().filter(|span| !span.track.overlaps) {
        let of_track = tracks.entry((span.place, span.track)).or_default();
        of_track.push((span.start, span.end, span.name));
    }
    for (track, mut spans) in tracks {
        spans.sort_unstable();
        for pair in spans.windows(2) {
            assert!(pair[0].1 <= pair[1].0, "{which}, {track:?}: {pair:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_one_another() {
    let text = |seed: u32| {
        format!(
            "seed = {seed}\n[machine]\nmodel = \"packet\"\nsize = \"4x4x1\"\n\
             [workload]\nkind = \"uniform\"\nmessages = 20\n"
        )
    };
    let hash = |seed| {
        let scenario = Scenario::parse("seeds.toml", &text(seed)).expect("sound");
        run(&scenario.points[0]).trace_hash
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn a_list_makes_a_point_for_each_of_its_values() {
    let text = "[machine]\nmodel = [\"packet\", \"free\"]\nsize = \"2x1x1\"\n\
                [workload]\nkind = \"ping-pong\"\nbytes = [1, 2, 3]";
    let scenario = Scenario::parse("sweep.toml", text).expect("sound");
    assert_eq!(scenario.points.len(), 6);
    let last = &scenario.points[5];
    assert_eq!(last.value("machine.model"), Some("free"));
    assert_eq!(last.value("workload.bytes"), Some("3"));
}
