//! Both models where nothing is in the way.

mod rig;

use lintel_sim_fabric::{
    Arbitration, Dimension, Dragonfly, Fabric, FatTree, LinkParameters, Message, Outcome,
    Parameters, Topology,
};
use lintel_sim_kernel::{Bytes, Duration, SimTime, Simulation};
use proptest::prelude::*;
use rig::{Net, by_packet, even, free, grid, megabytes, message, send, stream, uneven};

/// What is reported about one message, with times.
fn reported<F>(mut simulation: Simulation<Net<F>>, message: Message) -> Vec<(SimTime, Outcome)>
where
    F: Fabric,
{
    send(&mut simulation, message);
    simulation.run();
    let mut reported = simulation.world.reported;
    // Without contention the end of sending is known before anything else.
    reported.sort_by_key(|&(when, outcome)| (when, matches!(outcome, Outcome::Arrived(_))));
    reported
}

/// One message between random nodes, in both models.
fn check<T: Topology>(topology: impl Fn() -> T, p: &Parameters, seed: u64, bytes: u64) {
    let mut stream = stream(seed);
    let nodes = u64::from(topology().nodes());
    let (from, to) = (stream.below(nodes) as u32, stream.below(nodes) as u32);
    let message = Message {
        notify_left: true,
        notify_began: true,
        ..message(from, to, bytes)
    };
    let exact = reported(by_packet(topology(), p), message);
    let formula = reported(free(topology(), p), message);
    assert_eq!(exact, formula, "seed {seed}");
}

fn link() -> impl Strategy<Value = LinkParameters> {
    (100u64..9_000, 0u64..300).prop_map(|(mb, ns)| LinkParameters {
        bandwidth: megabytes(mb),
        latency: Duration::from_ns(ns),
    })
}

/// Any links, and buffers that cover every way and back.
fn parameters() -> impl Strategy<Value = Parameters> {
    let links = (link(), link(), link(), link());
    (links, 1u64..300).prop_map(|((inject, near, far, eject), packet)| Parameters {
        packet: Bytes(packet),
        buffer: 64,
        credit: Duration::from_ns(10),
        arbitration: Arbitration::RoundRobin,
        classes: 1,
        inject,
        near,
        far,
        eject,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_message_alone_takes_the_same_time_to_the_picosecond(
        p in parameters(), seed: u64, packets in 0u64..40, more in 1u64..300,
    ) {
        let bytes = packets * p.packet.0 + more.min(p.packet.0);
        check(|| grid([Dimension::ring(7), Dimension::line(5), Dimension::ring(2)]), &p, seed, bytes);
        check(|| FatTree::new(&[3, 2, 2], &[1, 2, 3]).expect("good"), &p, seed, bytes);
        check(|| Dragonfly::new(5, 2, 2, 2).expect("good"), &p, seed, bytes);
    }
}

/// Neighbours exchange in turns that don't meet, so that both models do as much.
#[test]
fn an_exchange_in_which_nobody_meets_takes_the_same_time() {
    fn exchange<F: Fabric>(mut simulation: Simulation<Net<F>>) -> Vec<(SimTime, u32)> {
        for round in 0..20 {
            for node in 0..64 {
                send(&mut simulation, message(node, node ^ 1, 64 * (1 + round)));
            }
        }
        simulation.run();
        let arrivals = rig::arrivals(&simulation);
        let mut all: Vec<_> = arrivals.iter().map(|(when, m)| (*when, m.to.0)).collect();
        all.sort_unstable();
        all
    }
    let torus = || grid([Dimension::ring(4); 3]);
    for parameters in [even(), uneven()] {
        let exact = exchange(by_packet(torus(), &parameters));
        assert_eq!(exact, exchange(free(torus(), &parameters)));
    }
}

#[test]
fn contention_only_ever_delays() {
    let torus = || grid([Dimension::ring(4), Dimension::ring(4), Dimension::line(3)]);
    let mut exact = by_packet(torus(), &even());
    let mut formula = free(torus(), &even());
    rig::storm(&mut exact, 3, 20, 600);
    rig::storm(&mut formula, 3, 20, 600);
    exact.run();
    formula.run();
    assert_eq!(exact.world.fabric.carried(), formula.world.fabric.carried());
    assert!(exact.events.now() > formula.events.now());
}
