//! The public model's own times, without noise: one 8-byte all-reduce, from entry to
//! the last node's exit, in a torus as nearly a cube as can be.
//!
//! The numbers are those of `portals4_sm` with `SS_router` (sst-elements, the parent of
//! commit b29149868), run on a sequential core with `--coalesce=1`.

use lintel_collectives::Tree;
use lintel_sim_fabric::{Dimension, Node, PacketFabric, Torus};
use lintel_sim_kernel::{Duration, SimTime, Simulation};
use lintel_sim_node::Noise;
use lintel_sim_triggered::{Algorithm, By, Entry, Machine, Timing, cube, curves, operate, program};

const HOST_DOUBLING: Algorithm = Algorithm::new(By::Hosts, None);
const DOUBLING: Algorithm = Algorithm::new(By::Interfaces, None);

const fn host_tree(base: u32) -> Algorithm {
    Algorithm::new(By::Hosts, Some(Tree::KNomial(base)))
}

const fn tree(base: u32) -> Algorithm {
    Algorithm::new(By::Interfaces, Some(Tree::KNomial(base)))
}

/// Nanoseconds for 64, 128, 256 nodes and so on.
type Row = (Algorithm, &'static [u64]);

fn holds(set: u8, rows: &[Row]) {
    for &(algorithm, expected) in rows {
        for (nodes_log2, &ns) in (6..).zip(expected) {
            let point = curves::undisturbed(set, algorithm, nodes_log2).expect("a sound case");
            let nodes = point.nodes;
            assert_eq!(
                point.took.max,
                Duration::from_ns(ns),
                "set {set}: {algorithm}, {nodes} nodes"
            );
        }
    }
}

#[test]
fn set_1_takes_hosts_as_long_as_published() {
    holds(
        1,
        &[
            (HOST_DOUBLING, &[5528, 6566, 7604, 8642, 9920, 11198, 12476]),
            (
                host_tree(4),
                &[6298, 8374, 8788, 10864, 11418, 14586, 14288],
            ),
            (host_tree(8), &[5792, 7868, 8166, 8598, 11254, 11968, 12782]),
        ],
    );
    for (nodes_log2, ns) in [(6, 10356), (8, 14408), (10, 19040), (12, 24152)] {
        let point = curves::undisturbed(1, host_tree(2), nodes_log2).expect("a sound case");
        assert_eq!(
            point.took.max,
            Duration::from_ns(ns),
            "{} nodes",
            point.nodes
        );
    }
}

#[test]
fn set_1_takes_interfaces_as_long_as_published() {
    holds(
        1,
        &[
            (DOUBLING, &[4215, 4835, 5455, 6075, 6935, 7795, 8655]),
            (tree(4), &[4990, 6512, 6876, 8398, 8910, 11484, 11092]),
            (tree(8), &[4232, 5726, 5846, 5902, 8080, 8868, 9536]),
        ],
    );
}

#[test]
fn set_2_takes_hosts_as_long_as_published() {
    holds(
        2,
        &[
            (HOST_DOUBLING, &[9729, 11467, 13205, 14943, 16921, 18899]),
            (host_tree(4), &[11099, 14575, 15089, 18565, 19255, 23655]),
            (
                host_tree(8),
                &[9793, 13269, 13719, 14599, 18655, 19385, 20489],
            ),
        ],
    );
    for (nodes_log2, ns) in [(6, 18757), (8, 25609), (10, 33041)] {
        let point = curves::undisturbed(2, host_tree(2), nodes_log2).expect("a sound case");
        assert_eq!(
            point.took.max,
            Duration::from_ns(ns),
            "{} nodes",
            point.nodes
        );
    }
}

#[test]
fn set_2_takes_interfaces_as_long_as_published() {
    holds(
        2,
        &[
            (DOUBLING, &[7515, 8535, 9555, 10575, 11835]),
            (tree(4), &[8864, 11386, 11750, 14272, 14784, 18358]),
            (tree(8), &[7106, 9600, 9720, 9776, 12954, 13742, 14410]),
        ],
    );
}

#[test]
fn set_3_takes_hosts_as_long_as_published() {
    holds(
        3,
        &[
            (HOST_DOUBLING, &[13173, 15485, 17797, 20109, 22661, 25213]),
            (host_tree(4), &[15893, 20517, 21457, 26081, 27121, 32585]),
            (
                host_tree(8),
                &[14789, 19413, 20273, 22093, 27297, 28377, 30317],
            ),
        ],
    );
    for (nodes_log2, ns) in [(6, 25645), (8, 34793), (10, 44521)] {
        let point = curves::undisturbed(3, host_tree(2), nodes_log2).expect("a sound case");
        assert_eq!(
            point.took.max,
            Duration::from_ns(ns),
            "{} nodes",
            point.nodes
        );
    }
}

#[test]
fn set_3_takes_interfaces_as_long_as_published() {
    holds(
        3,
        &[
            (DOUBLING, &[9564, 10784, 12004, 13224, 14692]),
            (tree(4), &[11113, 14135, 14499, 17521, 18033, 22107]),
            (tree(8), &[8855, 11849, 11969, 12025, 15703, 16491, 17159]),
        ],
    );
}

/// Published as half a round trip, rounded: 683, 1308 and 1758 ns.
#[test]
fn a_ping_pong_takes_as_long_as_published() {
    for (timing, half) in [
        (Timing::SET_1, 683),
        (Timing::SET_2, 1308),
        (Timing::SET_3, 1758),
    ] {
        let pair = [2, 1, 1].map(Dimension::ring);
        let torus = Torus::new(pair).expect("a good torus");
        let fabric = PacketFabric::new(torus, &timing.network()).expect("good parameters");
        let programs = vec![program::ping_pong(0), program::ping_pong(1)];
        let machine = Machine::new(timing, fabric, programs, vec![Noise::NONE; 2]);
        // It begins an odd number of nanoseconds after the start, in all sets.
        let start = SimTime::START + Duration::from_ns(1);
        let took = operate(&mut Simulation::new(machine), start, Entry::Undisturbed);
        assert_eq!(took.as_ps().div_ceil(2_000), half);
    }
}

/// The sum over all rounds of the way to the partner.
fn hops(nodes_log2: u32) -> u64 {
    let torus = Torus::new(cube(nodes_log2).map(Dimension::ring)).expect("a good torus");
    let way = |round| u64::from(torus.distance(Node(0), Node(1u32 << round)));
    (0..nodes_log2).map(way).sum()
}

/// For hosts to the nanosecond, but one where a round takes an odd time: 200 ns of
/// setup, the rounds, 60 ns a hop. For interfaces the closed form is from runs, and
/// misses what packets wait for each other, up to 8 ns.
#[test]
fn recursive_doubling_follows_the_closed_forms() {
    let sets = [
        (1, 798, 380, 1395),
        (2, 1498, 780, 2295),
        (3, 2072, 980, 3144),
    ];
    for (set, by_host, by_interface, constant) in sets {
        for nodes_log2 in 1..=9 {
            let rounds = u64::from(nodes_log2);
            let ways = 60 * hops(nodes_log2);
            let ns = |algorithm| {
                let point = curves::undisturbed(set, algorithm, nodes_log2);
                point.expect("a sound case").took.max.as_ps() / 1_000
            };
            let host = 200 + rounds * by_host + ways;
            let interface = constant + rounds * by_interface + ways;
            assert!(
                ns(HOST_DOUBLING).abs_diff(host) <= 1,
                "set {set}, {rounds} rounds"
            );
            assert!(
                ns(DOUBLING).abs_diff(interface) <= 8,
                "set {set}, {rounds} rounds"
            );
        }
    }
}
