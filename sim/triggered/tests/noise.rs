//! What noise does to all-reduces: the order and the shape of the studies' curves.
//!
//! Means of the public model, 15 to 50 operations a point, at 64, 256, 1024 and 4096
//! nodes with 25 µs each millisecond: recursive doubling by hosts 10.6, 37.1, 61.1 and
//! 83.7 µs; an 8-nomial tree by interfaces 8.4, 24.0, 42.1 and 55.9 µs, and 55 to 58 µs
//! at the longest from 256 nodes on.

use lintel_collectives::Tree;
use lintel_sim_fabric::{Dimension, PacketFabric, Torus};
use lintel_sim_kernel::{Duration, SimTime, Simulation, Streams};
use lintel_sim_node::Noise;
use lintel_sim_triggered::curves::{Spread, disturbed, undisturbed};
use lintel_sim_triggered::{Algorithm, By, Entry, Machine, NOISES, Timing, operate};

const HOST_DOUBLING: Algorithm = Algorithm::new(By::Hosts, None);
const HOST_TREE: Algorithm = Algorithm::new(By::Hosts, Some(Tree::KNomial(8)));
const TREE: Algorithm = Algorithm::new(By::Interfaces, Some(Tree::KNomial(8)));

fn us(took: Duration) -> f64 {
    took.as_ps() as f64 / 1e6
}

fn with_noise(kind: usize, algorithm: Algorithm, nodes_log2: u32, operations: u32) -> Spread {
    let point = disturbed(1, algorithm, nodes_log2, NOISES[kind], operations);
    point.expect("a sound case").took
}

#[test]
fn short_and_frequent_noise_adds_a_microsecond_at_most() {
    for algorithm in [HOST_DOUBLING, HOST_TREE, TREE] {
        for nodes_log2 in [6, 8, 10] {
            let quiet = undisturbed(1, algorithm, nodes_log2)
                .expect("a sound case")
                .took
                .max;
            let mean = with_noise(0, algorithm, nodes_log2, 100).mean;
            let more = us(mean) - us(quiet);
            assert!(
                (0.0..1.2).contains(&more),
                "{algorithm}, 2^{nodes_log2}: {more} us more"
            );
        }
    }
}

#[test]
fn with_noise_of_25_us_hosts_doubling_climbs_fastest_and_interfaces_are_first() {
    let mean = |algorithm| [6, 8, 10].map(|log2| us(with_noise(1, algorithm, log2, 200).mean));
    let (doubling, host, interface) = (mean(HOST_DOUBLING), mean(HOST_TREE), mean(TREE));
    for size in 0..3 {
        assert!(interface[size] < host[size], "{interface:?}, {host:?}");
        assert!(host[size] < doubling[size] * 1.05, "{host:?}, {doubling:?}");
    }
    let climb = |means: [f64; 3]| means[2] - means[0];
    assert!(climb(doubling) > climb(host), "{doubling:?}, {host:?}");
    assert!(climb(host) > climb(interface), "{host:?}, {interface:?}");
}

/// An interface's operation meets noise while its host posts and while it wakes up,
/// not in between; hosts hand theirs on.
#[test]
fn an_interfaces_longest_operation_stays_near_two_noises_and_hosts_does_not() {
    for nodes_log2 in [8, 10] {
        let quiet = undisturbed(1, TREE, nodes_log2)
            .expect("a sound case")
            .took
            .max;
        let longest = us(with_noise(1, TREE, nodes_log2, 200).max);
        assert!(
            (0.0..=52.0).contains(&(longest - us(quiet))),
            "2^{nodes_log2}: {longest} us"
        );
        let of_hosts = us(with_noise(1, HOST_DOUBLING, nodes_log2, 200).max);
        assert!(
            of_hosts > longest + 10.0,
            "2^{nodes_log2}: {of_hosts} us, {longest} us"
        );
    }
}

/// Most operations meet none, few meet 2.5 ms.
#[test]
fn long_and_rare_noise_shows_in_the_percentiles() {
    let Spread {
        median,
        percentile_99,
        max,
        ..
    } = with_noise(2, TREE, 6, 1_000);
    assert!(us(median) < 5.0, "{median}");
    assert!(us(percentile_99) < 5_100.0, "{percentile_99}");
    assert!((2_500.0..5_100.0).contains(&us(max)), "{max}");
}

fn trace_hash(seed: u64) -> u64 {
    let timing = Timing::SET_1;
    let torus = Torus::new([4, 4, 4].map(Dimension::ring)).expect("a good torus");
    let fabric = PacketFabric::new(torus, &timing.network()).expect("good parameters");
    let streams = Streams::new(seed);
    let noise = |node| Noise::new(NOISES[1], streams.stream(&format!("node/{node}/noise")));
    let noises = (0..64).map(|node| noise(node).expect("it leaves time for work"));
    let programs = (0..64).map(|rank| TREE.program(rank, 64)).collect();
    let machine = Machine::new(timing, fabric, programs, noises.collect());
    let mut simulation = Simulation::new(machine);
    for operation in 0..20 {
        let start = SimTime::START + Duration::from_us(1_000) * operation;
        operate(&mut simulation, start, Entry::Anyhow);
    }
    simulation.events.trace_hash()
}

/// The number is the same on every machine. What changes it, changes times.
#[test]
fn the_same_seed_gives_the_same_trace() {
    assert_eq!(trace_hash(1), 381_609_638_268_118_524);
    assert_ne!(trace_hash(2), trace_hash(1));
}
