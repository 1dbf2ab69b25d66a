//! The papers' points: fitted ones come out, predicted ones have bounds and are a snapshot.
//!
//! A change that moves a prediction shows in `golden/points.txt`; rewrite it with
//! `SEASTAR_GOLDEN=write cargo test -p lintel-sim-seastar --test points` and read
//! what has changed.

use std::fs;
use std::path::Path;

use lintel_sim_seastar::Mode;
use lintel_sim_seastar::figures::{Figure, How, Row, figure, points_of_large_machines, table};
use lintel_sim_seastar::profile::RED_STORM_2005;
use lintel_sim_seastar::workload::{Case, RandomAccess, random_access};

/// By how much a prediction may miss: a tenth, or what is listed here. A change of the model
/// that needs a wider bound has to widen it here, with the snapshot.
const TENTH: f64 = 0.10;
const WIDER: &[(&str, f64)] = &[
    ("bidirectional put, 0 B", 0.12),
    ("half bandwidth, NetPIPE", 0.24),
    ("half bandwidth, NetPIPE bidirectional", 0.40),
    ("put, 1 MB", 0.13),
    ("copying beats binding each, up to", 0.73),
    ("put, Linux over Catamount, 8 B", 1.04),
    ("CCI's latency less than Portals', 8 B", 0.18),
    ("CCI, RO's latency above UU's, 0 B (2.99 - 2.83)", 0.38),
    ("CCI, RO's latency above UU's, 4 KB (5.26 - 4.99)", 0.64),
];

#[test]
fn points_are_within_their_bounds_and_those_of_the_snapshot() {
    let rows = table().expect("the benchmarks run");
    rows.iter().for_each(check_bound);
    let now: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/points.txt");
    if std::env::var("SEASTAR_GOLDEN").as_deref() == Ok("write") {
        fs::write(&golden, &now).expect("the snapshot can be written");
    }
    let before = fs::read_to_string(&golden).expect("there is a snapshot");
    assert_eq!(
        now, before,
        "predictions have moved; see the head of this file"
    );
}

fn check_bound(row: &Row) {
    let wider = WIDER.iter().find(|(what, _)| *what == row.what);
    // A miss says why.
    let misses = row.difference().abs() > TENTH;
    assert!(!misses || !row.cause.is_empty(), "{row}");
    let bound = match row.how {
        How::Fitted | How::Calibrated => 0.001,
        How::Set => 0.0,
        How::Predicted => wider.map_or(TENTH, |(_, bound)| *bound),
        How::Depends | How::Regenerated => return,
    };
    assert!(row.difference().abs() <= bound, "{row}");
    // Nothing else excuses itself.
    assert_eq!(misses, !row.cause.is_empty(), "{row}");
}

#[test]
#[ignore = "a minute, and minutes where it isn't optimized"]
fn points_of_large_machines_are_simulated_at_their_size() {
    let rows = points_of_large_machines().expect("the benchmarks run");
    for row in &rows {
        assert!(row.difference().abs() <= TENTH, "{row}");
    }
}

#[test]
fn the_firmware_loses_to_the_host_as_lists_grow() {
    let curves = figure(Figure::Entries).expect("the benchmarks run");
    let [generic, accelerated] = &curves[..] else {
        panic!("there are two curves");
    };
    let ends = |curve: &lintel_sim_seastar::figures::Curve| {
        (curve.points[0].1, curve.points[curve.points.len() - 1].1)
    };
    assert!(ends(accelerated).0 < ends(generic).0);
    assert!(ends(accelerated).1 > ends(generic).1);
}

#[test]
fn protocol_offload_gains_more_where_two_processes_share_a_node() {
    let run = RandomAccess {
        dimensions: [2, 2, 2],
        updates: 4_000,
        ..RandomAccess::RED_STORM
    };
    let gain = |case: fn(Mode) -> Case| {
        let time = |mode| random_access(&case(mode), run).expect("it runs").as_ps() as f64;
        time(Mode::Generic) / time(Mode::Accelerated)
    };
    let single = gain(|mode| Case::new(RED_STORM_2005, mode));
    let double = gain(|mode| Case::new(RED_STORM_2005, mode).virtual_nodes());
    assert!(1.0 < single && single < double, "{single} {double}");
}
