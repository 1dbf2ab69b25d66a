//! The same machine does the same, event by event.

use lintel_sim_kernel::{Duration, SimTime};
use lintel_sim_seastar::profile::{RED_STORM_2005, XT5_2009};
use lintel_sim_seastar::workload::{Case, PingPong, Way, measured, pair};
use lintel_sim_seastar::{Class, Mode, Program};

/// The hash of a run, and when it ended.
fn trace(case: &Case, way: Way) -> (u64, Duration) {
    let program =
        |begins| -> Box<dyn Program> { Box::new(PingPong::new(way, 3_000, 5, begins, measured())) };
    let simulation = pair(case, [program(true), program(false)]).expect("the case runs");
    let events = &simulation.events;
    (events.trace_hash(), events.now().since(SimTime::START))
}

fn cases() -> [(Case, Way); 4] {
    [
        (Case::new(RED_STORM_2005, Mode::Generic), Way::Get),
        (Case::new(XT5_2009, Mode::Generic), Way::Both),
        (
            Case::new(RED_STORM_2005, Mode::Accelerated),
            Way::AcknowledgedPut,
        ),
        (Case::new(XT5_2009, Mode::Cci), Way::Cci(Class::Reliable)),
    ]
}

/// On every machine. Any change to what happens, or when, shows here.
#[test]
fn each_case_leaves_the_trace_that_it_always_left() {
    let traces = cases().map(|(case, way)| trace(&case, way).0);
    assert_eq!(traces, GOLDEN, "{traces:#x?}");
}

const GOLDEN: [u64; 4] = [
    0xd5d6_53fd_8b89_4754,
    0x3a43_cf52_c6ce_1323,
    0xb7de_1b55_ca12_70a8,
    0xfcf9_1736_8d48_7de9,
];

#[test]
fn the_same_run_leaves_the_same_trace() {
    for (case, way) in cases() {
        assert_eq!(trace(&case, way), trace(&case, way), "{way:?}");
    }
}

#[test]
fn another_constant_leaves_another_trace() {
    for (case, way) in cases() {
        let other = case.profile.with("hop", 51).expect("there is one");
        let other = Case {
            profile: other,
            ..case
        };
        assert_ne!(trace(&case, way).0, trace(&other, way).0, "{way:?}");
    }
}
