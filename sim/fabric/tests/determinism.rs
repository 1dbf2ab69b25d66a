//! Nothing is lost, nothing overtakes, and the same seed does the same.

mod rig;

use std::collections::BTreeMap;

use lintel_sim_fabric::{
    Arbitration, Dimension, Dragonfly, Fabric, FatTree, Message, Parameters, Torus,
};
use lintel_sim_kernel::{Duration, Simulation};
use rig::{Net, arrivals, by_packet, even, free, grid, message, send, storm, uneven};

fn torus() -> Torus {
    grid([Dimension::ring(4), Dimension::ring(5), Dimension::line(3)])
}

fn tree() -> FatTree {
    FatTree::new(&[4, 4, 2], &[1, 2, 2]).expect("good")
}

fn dragonfly() -> Dragonfly {
    Dragonfly::new(7, 3, 2, 2).expect("good")
}

/// Small buffers, so that much has to wait.
fn tight() -> Parameters {
    Parameters {
        buffer: 2,
        ..uneven()
    }
}

/// Credits return late, so that many places of a buffer wait to be known as free.
fn roomy() -> Parameters {
    Parameters {
        buffer: 40,
        credit: Duration::from_ns(900),
        ..uneven()
    }
}

/// The hash of a storm, after which nothing is missing.
fn hash<F: Fabric>(mut simulation: Simulation<Net<F>>, seed: u64) -> u64 {
    storm(&mut simulation, seed, 30, 500);
    simulation.run();
    assert_eq!(simulation.world.fabric.unfinished(), 0);
    let arrived = arrivals(&simulation).len();
    assert_eq!(arrived, 30 * simulation.world.fabric.nodes() as usize);
    simulation.events.trace_hash()
}

/// Every result changes with these: say why.
#[test]
fn same_seed_gives_the_same_trace_hash_twice_and_against_the_golden() {
    let by_age = Parameters {
        arbitration: Arbitration::Oldest,
        ..tight()
    };
    let hashes = |seed| {
        [
            hash(by_packet(torus(), &tight()), seed),
            hash(by_packet(tree(), &tight()), seed),
            hash(by_packet(dragonfly(), &tight()), seed),
            hash(by_packet(torus(), &by_age), seed),
            hash(free(torus(), &tight()), seed),
            hash(by_packet(torus(), &roomy()), seed),
        ]
    };
    assert_eq!(hashes(1), hashes(1));
    assert!(
        hashes(1)
            .iter()
            .zip(hashes(2))
            .all(|(one, other)| *one != other)
    );
    let golden = [
        0xf689_48f6_b8ac_64da,
        0xbc39_2083_e483_adf1,
        0x0834_80b7_0e3a_e6cc,
        0xaa7a_5b33_84eb_09ec,
        0x3f75_9108_f1c3_dd3d,
        0xcca2_95a1_c1b7_63b1,
    ];
    assert_eq!(hashes(1), golden, "{:#x?}", hashes(1));
}

#[test]
fn messages_between_two_nodes_keep_their_order() {
    let mut simulation = by_packet(torus(), &tight());
    storm(&mut simulation, 9, 100, 200);
    simulation.run();
    let mut last = BTreeMap::new();
    for (_, message) in arrivals(&simulation) {
        let before = last.insert((message.from, message.to), message.tag);
        assert!(
            before.is_none_or(|before| before < message.tag),
            "{message:?}"
        );
    }
}

#[test]
fn a_class_does_not_wait_for_another_ones_buffers() {
    let parameters = Parameters {
        classes: 2,
        buffer: 1,
        ..even()
    };
    let mut simulation = by_packet(rig::ring(8), &parameters);
    // Class 0 waits at a link over which class 1 passes.
    simulation.world.fabric.hold(lintel_sim_fabric::Node(2));
    send(&mut simulation, message(0, 2, 6_400));
    send(
        &mut simulation,
        Message {
            class: 1,
            ..message(0, 3, 640)
        },
    );
    simulation.run();
    let arrived = arrivals(&simulation);
    assert_eq!(arrived.len(), 1);
    assert_eq!(arrived[0].1.class, 1);
}

#[test]
#[should_panic(expected = "Node(60) is none of 60 nodes")]
fn a_message_to_nobody_is_refused() {
    let mut simulation = by_packet(torus(), &tight());
    send(&mut simulation, message(0, 60, 1));
}
