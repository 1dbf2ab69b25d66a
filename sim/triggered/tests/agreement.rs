//! The machine in outline against the machine in full.

use lintel_collectives::Tree;
use lintel_sim_kernel::{Duration, Samples};
use lintel_sim_triggered::curves::{ALGORITHMS, WITH_NOISE};
use lintel_sim_triggered::{Algorithm, By, Case, Entry, NOISES, Timing};

const SETS: [Timing; 3] = [Timing::SET_1, Timing::SET_2, Timing::SET_3];
const SEED: u64 = 1;

fn case(timing: Timing, sides: [u16; 3], algorithm: Algorithm) -> Case {
    Case {
        timing,
        sides,
        algorithm,
        noise: None,
        entry: Entry::Undisturbed,
        seed: SEED,
    }
}

fn ns(took: Option<Duration>) -> f64 {
    took.expect("operations were measured").as_ps() as f64 / 1e3
}

/// Packets that meet in the network wait a few tens of nanoseconds.
fn agree(full: f64, outline: f64, permille: f64) -> bool {
    (full - outline).abs() <= full * permille / 1e3
}

#[test]
fn undisturbed_operations_take_as_long_in_outline() {
    for timing in SETS {
        for algorithm in ALGORITHMS {
            for sides in [[4, 4, 4], [4, 8, 8]] {
                let case = case(timing, sides, algorithm);
                let full = ns(case.measure(1).expect("a sound case").max());
                let outline = ns(case.measure_in_outline(1).expect("a sound case").max());
                assert!(agree(full, outline, 5.0), "{case:?}: {full}, {outline} ns");
            }
        }
    }
}

#[test]
fn trees_of_any_size_take_as_long_in_outline() {
    for by in [By::Hosts, By::Interfaces] {
        for tree in [
            Tree::KNomial(3),
            Tree::KNomial(8),
            Tree::KAry(2),
            Tree::KAry(1),
        ] {
            for sides in [[1, 1, 1], [2, 1, 1], [3, 5, 2], [7, 1, 9]] {
                let case = case(Timing::SET_1, sides, Algorithm::new(by, Some(tree)));
                let full = ns(case.measure(1).expect("a sound case").max());
                let outline = ns(case.measure_in_outline(1).expect("a sound case").max());
                assert!(agree(full, outline, 20.0), "{case:?}: {full}, {outline} ns");
            }
        }
    }
}

#[test]
fn disturbed_operations_take_as_long_in_outline() {
    for noise in &NOISES[..2] {
        for algorithm in WITH_NOISE {
            for entry in [Entry::Undisturbed, Entry::Anyhow] {
                let case = case(Timing::SET_1, [4, 4, 4], algorithm);
                let case = Case {
                    noise: Some(*noise),
                    entry,
                    ..case
                };
                let mean = |samples: Samples| ns(samples.mean());
                let full = mean(case.measure(60).expect("a sound case"));
                let outline = mean(case.measure_in_outline(60).expect("a sound case"));
                assert!(agree(full, outline, 30.0), "{case:?}: {full}, {outline} ns");
            }
        }
    }
}

#[test]
fn an_unsound_case_is_refused_with_what_is_wrong() {
    let doubling = Algorithm::new(By::Interfaces, None);
    let told = |case: Case| case.measure(1).expect_err("unsound").to_string();
    assert!(
        told(case(Timing::SET_1, [3, 5, 2], doubling)).contains("30 nodes are no power of two")
    );
    assert!(told(case(Timing::SET_1, [0, 1, 1], doubling)).contains("0 routers"));
    let mut noise = NOISES[0];
    noise.length = noise.interval;
    let noisy = Case {
        noise: Some(noise),
        ..case(Timing::SET_1, [2, 2, 2], doubling)
    };
    assert!(told(noisy).contains("no time for work"));
}
