//! The coarse machine against the full one, and that over both kinds of
//! fabric.

use lintel_collectives::Tree;
use lintel_sim_fabric::{Dimension, Fabric, FreeFabric, PacketFabric, Torus};
use lintel_sim_kernel::{Duration, Samples, SimTime, Simulation};
use lintel_sim_node::Noise;
use lintel_sim_triggered::curves::{ALGORITHMS, WITH_NOISE};
use lintel_sim_triggered::program::{self, Program};
use lintel_sim_triggered::{Algorithm, By, Case, Entry, Machine, NOISES, Timing, operate};

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
fn agree(full: f64, coarse: f64, permille: f64) -> bool {
    (full - coarse).abs() <= full * permille / 1e3
}

#[test]
fn undisturbed_operations_take_as_long_in_the_coarse_model() {
    for timing in SETS {
        for algorithm in ALGORITHMS {
            for sides in [[4, 4, 4], [4, 8, 8]] {
                let case = case(timing, sides, algorithm);
                let full = ns(case.measure(1).expect("a sound case").max());
                let coarse = ns(case.measure_coarse(1).expect("a sound case").max());
                assert!(agree(full, coarse, 5.0), "{case:?}: {full}, {coarse} ns");
            }
        }
    }
}

#[test]
fn trees_of_any_size_take_as_long_in_the_coarse_model() {
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
                let coarse = ns(case.measure_coarse(1).expect("a sound case").max());
                assert!(agree(full, coarse, 20.0), "{case:?}: {full}, {coarse} ns");
            }
        }
    }
}

#[test]
fn disturbed_operations_take_as_long_in_the_coarse_model() {
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
                let coarse = mean(case.measure_coarse(60).expect("a sound case"));
                assert!(agree(full, coarse, 30.0), "{case:?}: {full}, {coarse} ns");
            }
        }
    }
}

fn torus(sides: [u16; 3]) -> Torus {
    Torus::new(sides.map(Dimension::ring)).expect("a good torus")
}

/// How long an operation takes over some fabric.
fn over<F: Fabric>(timing: Timing, fabric: F, programs: Vec<Program>) -> Duration {
    let noises = vec![Noise::NONE; programs.len()];
    let machine = Machine::new(timing, fabric, programs, noises);
    operate(
        &mut Simulation::new(machine),
        SimTime::START,
        Entry::Undisturbed,
    )
}

/// By packet, and without contention.
fn over_both(timing: Timing, sides: [u16; 3], programs: &[Program]) -> [Duration; 2] {
    let network = timing.network();
    let packet = PacketFabric::new(torus(sides), &network).expect("good parameters");
    let free = FreeFabric::new(torus(sides), &network).expect("good parameters");
    [
        over(timing, packet, programs.to_vec()),
        over(timing, free, programs.to_vec()),
    ]
}

#[test]
fn a_ping_pong_takes_the_same_time_over_both_kinds_of_fabric() {
    for timing in SETS {
        let [packet, free] = over_both(timing, [2, 1, 1], &[0, 1].map(program::ping_pong));
        assert_eq!(packet, free);
    }
}

#[test]
fn packets_that_meet_in_the_network_hardly_matter_to_an_all_reduce() {
    for timing in SETS {
        for algorithm in ALGORITHMS {
            let programs: Vec<_> = (0..256).map(|rank| algorithm.program(rank, 256)).collect();
            let both = over_both(timing, [4, 8, 8], &programs);
            let [packet, free] = both.map(|took| ns(Some(took)));
            assert!(agree(packet, free, 5.0), "{algorithm}: {packet}, {free} ns");
        }
    }
}

#[test]
fn an_unsound_case_is_refused_with_what_is_wrong() {
    let doubling = Algorithm::new(By::Interfaces, None);
    let reported = |case: Case| case.measure(1).expect_err("unsound").to_string();
    assert!(
        reported(case(Timing::SET_1, [3, 5, 2], doubling)).contains("30 nodes are no power of two")
    );
    assert!(reported(case(Timing::SET_1, [0, 1, 1], doubling)).contains("0 routers"));
    let mut noise = NOISES[0];
    noise.length = noise.interval;
    let noisy = Case {
        noise: Some(noise),
        ..case(Timing::SET_1, [2, 2, 2], doubling)
    };
    assert!(reported(noisy).contains("no time for work"));
}
