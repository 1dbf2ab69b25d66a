//! Routes: they arrive, are shortest, and never wait in a circle.

mod rig;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lintel_sim_fabric::{
    Dimension, Dragonfly, End, FatTree, Node, PacketFabric, Parameters, Port, Reach, Step,
    Topology, Torus,
};
use proptest::prelude::*;
use rig::grid;

/// A link and a lane of it.
type Channel = (u32, Step);

/// The channels that packets in one want next: router, port, lane.
type After = BTreeMap<(u32, u32, u32), BTreeSet<(u32, u32, u32)>>;

/// The channels that a packet takes, the last one into its node.
fn walk<T: Topology>(topology: &T, from: Node, to: Node) -> Vec<Channel> {
    let mut route = topology.route(from, to);
    let mut router = topology.home(from).router;
    let mut way = Vec::new();
    loop {
        let step = topology.step(router, &mut route);
        assert!(step.lane < topology.lanes(), "{step:?}");
        way.push((router, step));
        assert!(way.len() < 1_000, "{from:?} to {to:?} goes astray: {way:?}");
        match topology.end(Port {
            router,
            port: step.port,
        }) {
            End::Router(next, reach) => {
                assert_eq!(step.reach, Some(reach));
                router = next;
            }
            End::Node(node) => {
                assert_eq!(step.reach, None);
                assert_eq!(node, to);
                return way;
            }
            End::Nowhere => panic!("{from:?} to {to:?} leads nowhere: {way:?}"),
        }
    }
}

/// Fewest links from a router to each other one over at most `far_links` far links.
fn distances<T: Topology>(topology: &T, from: u32, far_links: u32) -> Vec<u32> {
    let mut best = vec![u32::MAX; topology.routers() as usize];
    let mut seen = BTreeSet::from([(from, 0)]);
    let mut queue = VecDeque::from([(from, 0, 0)]);
    while let Some((router, used, links)) = queue.pop_front() {
        let known = &mut best[router as usize];
        *known = links.min(*known);
        for port in 0..topology.ports() {
            let End::Router(next, reach) = topology.end(Port { router, port }) else {
                continue;
            };
            let used = used + u32::from(reach == Reach::Far);
            if used <= far_links && seen.insert((next, used)) {
                queue.push_back((next, used, links + 1));
            }
        }
    }
    best
}

/// Everything that a topology promises.
fn check<T: Topology>(topology: &T) {
    check_links(topology);
    let mut after = After::new();
    for from in (0..topology.nodes()).map(Node) {
        let best = distances(topology, topology.home(from).router, 1);
        for to in (0..topology.nodes()).map(Node) {
            let way = walk(topology, from, to);
            let links = best[topology.home(to).router as usize];
            assert_eq!(way.len() as u32 - 1, links, "{from:?} to {to:?}");
            check_legs(topology, from, to, &way);
            for pair in way.windows(2) {
                let [one, other] = [pair[0], pair[1]].map(|(r, s)| (r, s.port, s.lane));
                after.entry(one).or_default().insert(other);
            }
        }
    }
    check_no_circle(after);
}

/// Each link between routers has one back, and nodes sit where they are at home.
fn check_links<T: Topology>(topology: &T) {
    let mut between = BTreeMap::new();
    for router in 0..topology.routers() {
        for port in 0..topology.ports() {
            match topology.end(Port { router, port }) {
                End::Router(to, reach) => {
                    *between
                        .entry((router, to, reach == Reach::Far))
                        .or_insert(0) += 1;
                }
                End::Node(node) => assert_eq!(topology.home(node), Port { router, port }),
                End::Nowhere => {}
            }
        }
    }
    for (&(one, other, far), count) in &between {
        assert_eq!(between.get(&(other, one, far)), Some(count));
    }
}

fn check_legs<T: Topology>(topology: &T, from: Node, to: Node, way: &[Channel]) {
    let reaches: Vec<Reach> = way.iter().filter_map(|(_, step)| step.reach).collect();
    let legs = topology.legs(from, to);
    let reported = legs
        .iter()
        .flat_map(|leg| vec![leg.reach; leg.links as usize]);
    assert_eq!(reported.collect::<Vec<_>>(), reaches, "{from:?} to {to:?}");
}

/// A channel is waited for by those before it. Takes channels away that wait for
/// none; what stays is a circle.
fn check_no_circle(mut after: After) {
    loop {
        let waiting: BTreeSet<_> = after.keys().copied().collect();
        let before = after.len();
        after.retain(|_, next| next.iter().any(|channel| waiting.contains(channel)));
        if after.len() == before {
            break;
        }
    }
    assert!(after.is_empty(), "these wait in a circle: {after:?}");
}

fn dimension() -> impl Strategy<Value = Dimension> {
    (1u16..7, any::<bool>()).prop_map(|(size, wraps)| match wraps {
        true => Dimension::ring(size),
        false => Dimension::line(size),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn tori_and_meshes_keep_their_promises(dimensions in prop::array::uniform3(dimension())) {
        check(&grid(dimensions));
    }

    #[test]
    fn fat_trees_keep_their_promises(
        levels in prop::collection::vec((1u32..5, 1u32..4), 1..4),
    ) {
        let (down, mut up): (Vec<u32>, Vec<u32>) = levels.into_iter().unzip();
        up[0] = 1;
        check(&FatTree::new(&down, &up).expect("a good tree"));
    }

    #[test]
    fn dragonflies_keep_their_promises(
        (routers, nodes, far_links) in (1u32..5, 1u32..3, 1u32..4),
        missing in 0u32..4,
    ) {
        let groups = (routers * far_links + 1).saturating_sub(missing).max(1);
        check(&Dragonfly::new(groups, routers, nodes, far_links).expect("a good dragonfly"));
    }
}

#[test]
fn ways_of_equal_length_share_both_directions_of_a_ring() {
    let ring = rig::ring(8);
    let up = (0..8).filter(|&from| walk(&ring, Node(from), Node((from + 4) % 8))[0].1.port == 0);
    assert_eq!(up.count(), 4);
}

#[test]
fn one_dimension_is_finished_before_the_next() {
    let grid = grid([Dimension::ring(5), Dimension::line(4), Dimension::ring(3)]);
    let way = walk(&grid, grid.at([0, 0, 0]), grid.at([3, 2, 2]));
    let ports: Vec<u32> = way.iter().map(|(_, step)| step.port).collect();
    assert_eq!(ports, [1, 1, 2, 2, 5, 6]);
}

#[test]
fn what_no_network_can_be_is_refused_with_a_reason() {
    let torus = Torus::new([Dimension::ring(0); 3]).map(|_| ());
    let tree = FatTree::new(&[4, 4], &[2, 2]).map(|_| ());
    let dragonfly = Dragonfly::new(10, 2, 1, 4).map(|_| ());
    let many = Parameters {
        classes: 9,
        ..rig::even()
    };
    let lanes = PacketFabric::new(rig::ring(4), &many).map(|_| ());
    let text = [torus, tree, dragonfly, lanes].map(|r| r.expect_err("refused").to_string());
    assert_eq!(
        text,
        [
            "a dimension has 0 routers, it takes 1 to 16384",
            "a fat tree gives each node one parent",
            "a dragonfly group has 8 far links, for 9 other groups",
            "classes is above 8, a link has 16 lanes",
        ]
    );
}
