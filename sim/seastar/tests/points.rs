//! The papers' points: fitted ones come out, predicted ones are a snapshot.
//!
//! A change that moves a prediction shows in `golden/points.txt`; rewrite it with
//! `SEASTAR_GOLDEN=write cargo test -p lintel-sim-seastar --test points` and read
//! what has changed.

use std::fs;
use std::path::Path;

use lintel_sim_seastar::Mode;
use lintel_sim_seastar::figures::{Figure, How, Row, figure, points_of_pairs};
use lintel_sim_seastar::profile::RED_STORM_2005;
use lintel_sim_seastar::workload::{Case, RandomAccess, random_access};

#[test]
fn fitted_points_come_out_and_predictions_are_those_of_the_snapshot() {
    let rows = points_of_pairs().expect("the benchmarks run");
    let fitted: Vec<&Row> = rows.iter().filter(|row| row.how == How::Fitted).collect();
    assert_eq!(fitted.len(), 4);
    for row in fitted {
        let off = row.published.difference(row.simulated);
        assert!(off.abs() < 0.01, "{row:?}");
    }
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
