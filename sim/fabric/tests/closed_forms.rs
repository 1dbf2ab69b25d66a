//! What can be computed by hand, to the picosecond.

mod rig;

use lintel_sim_fabric::{
    Arbitration, Dimension, Dragonfly, Fabric, FatTree, Message, Node, Outcome, Parameters, Port,
    Topology,
};
use lintel_sim_kernel::{Bandwidth, Bytes, Duration, SimTime, Simulation};
use rig::{
    Net, arrivals, by_packet, even, free, gigabytes, grid, last_arrival, megabytes, message, ring,
    send, uneven,
};

const NS: u64 = 1_000;

#[test]
fn latency_is_links_times_theirs_and_the_packet_once() {
    let torus = || grid([Dimension::ring(6), Dimension::ring(5), Dimension::line(4)]);
    for to in 0..torus().nodes() {
        let mut simulation = by_packet(torus(), &even());
        send(&mut simulation, message(7, to, 40));
        simulation.run();
        let hops = u64::from(torus().distance(Node(7), Node(to)));
        assert_eq!(last_arrival(&simulation), (50 * (hops + 2) + 40) * NS);
    }
}

#[test]
fn a_long_message_adds_its_bytes_at_the_speed_of_its_links() {
    let mut simulation = by_packet(ring(16), &even());
    send(&mut simulation, message(0, 5, 100_001));
    simulation.run();
    assert_eq!(last_arrival(&simulation), (50 * 7 + 100_001) * NS);
}

#[test]
fn a_message_reports_each_stretch_of_bytes_behind_its_first_packet() {
    let mut simulation = by_packet(ring(4), &even());
    let all = Message {
        notify_every: Bytes(256),
        ..message(0, 1, 64 + 3 * 256)
    };
    send(&mut simulation, all);
    simulation.run();
    let reported = simulation.world.reported.iter();
    let reported: Vec<(u64, Outcome)> = reported.map(|&(at, o)| (at.as_ps() / NS, o)).collect();
    let at = |stretches: u64| 3 * 50 + 64 + stretches * 256;
    assert_eq!(
        reported,
        [
            (at(1), Outcome::Passed(all)),
            (at(2), Outcome::Passed(all)),
            (at(3), Outcome::Arrived(all)),
        ]
    );
}

#[test]
fn a_faster_link_waits_until_the_packet_will_not_run_dry() {
    let mut simulation = by_packet(ring(16), &uneven());
    send(&mut simulation, message(0, 5, 64));
    simulation.run();
    // In at 1.5 GB/s, on at 2.5 GB/s, out at 1.7 GB/s.
    let (slow, fast, out) = (42_667, 25_600, 37_648);
    assert_eq!(last_arrival(&simulation), 50 * NS * 7 + slow - fast + out);
}

#[test]
fn a_far_link_takes_its_own_time() {
    let mut simulation = by_packet(Dragonfly::new(5, 2, 2, 2).expect("good"), &uneven());
    // Group 0, router 0 to group 3, router 1: the far link is router 1's, and
    // ends at group 3's router 0.
    send(&mut simulation, message(0, 14, 1));
    simulation.run();
    let links = [667 - 400, 400 - 400, 500 - 400, 0, 589];
    let latencies = 50 + 50 + 100 + 50 + 50;
    assert_eq!(
        last_arrival(&simulation),
        latencies * NS + links.iter().sum::<u64>()
    );
}

#[test]
fn two_messages_over_one_link_take_turns_packet_by_packet() {
    let mut simulation = by_packet(ring(16), &even());
    // Both go over the link from 1 to 2: 0 comes by it, 1 starts there.
    send(&mut simulation, message(0, 2, 640));
    send(&mut simulation, message(1, 3, 640));
    simulation.run();
    let ends: Vec<u64> = arrivals(&simulation)
        .iter()
        .map(|a| a.0.as_ps() / NS)
        .collect();
    // Node 1's packet is on the link from 50 on. Node 0's comes at 100 and has it
    // from 114 on, then in turn: 20 packets, the last at 50 + 19 x 64, then out.
    assert_eq!(*ends.last().expect("both arrived"), 50 + 20 * 64 + 50 + 50);
}

#[test]
fn a_nodes_messages_leave_one_after_the_other() {
    let mut simulation = by_packet(ring(4), &even());
    for to in [1, 2, 3] {
        send(
            &mut simulation,
            Message {
                notify_left: true,
                ..message(0, to, 128)
            },
        );
    }
    simulation.run();
    let left = simulation
        .world
        .reported
        .iter()
        .filter_map(|&(when, outcome)| match outcome {
            Outcome::Left(message) => Some((when.as_ps() / NS, message.to.0)),
            _ => None,
        });
    assert_eq!(left.collect::<Vec<_>>(), [(128, 1), (256, 2), (384, 3)]);
}

#[test]
fn buffers_limit_a_lane_to_their_packets_a_round_trip() {
    for buffer in 1..=3 {
        let mut simulation = by_packet(ring(4), &Parameters { buffer, ..even() });
        send(&mut simulation, message(0, 1, 64 * 300));
        simulation.run();
        // A place is taken when the head leaves, and free again when the tail has
        // left the next router and the sender knows it: 50 + 64 + 10.
        let round = 50 + 64 + 10;
        let rounds = (300 - 1) / u64::from(buffer);
        let within = (300 - 1) % u64::from(buffer);
        let start = (rounds * round).max(rounds * u64::from(buffer) * 64) + within * 64;
        assert_eq!(
            last_arrival(&simulation),
            (start + 3 * 50 + 64) * NS,
            "buffer {buffer}"
        );
    }
}

#[test]
fn a_node_that_holds_fills_the_way_and_goes_on_where_it_stopped() {
    let mut simulation = by_packet(
        ring(8),
        &Parameters {
            buffer: 2,
            ..even()
        },
    );
    simulation.world.fabric.hold(Node(2));
    let long = Message {
        notify_left: true,
        ..message(0, 2, 64 * 20)
    };
    send(&mut simulation, long);
    simulation.run();
    // Two packets in each of the three buffers, and no more left the node.
    assert!(simulation.world.reported.is_empty());
    let out = Port { router: 0, port: 0 };
    assert_eq!(
        simulation.world.fabric.occupied(out),
        Duration::from_ns(4 * 64)
    );
    let Simulation { world, events } = &mut simulation;
    world.fabric.resume(Node(2), events);
    simulation.run();
    assert_eq!(arrivals(&simulation).len(), 1);
}

#[test]
fn a_held_node_takes_in_the_first_packet_alone() {
    fn held<F: Fabric>(mut simulation: Simulation<Net<F>>) -> Vec<u64> {
        send(
            &mut simulation,
            Message {
                notify_began: true,
                ..message(0, 1, 640)
            },
        );
        while simulation.world.reported.is_empty() {
            let now = simulation.events.now();
            simulation.run_until(now + Duration::from_ns(1));
        }
        simulation.world.fabric.hold(Node(1));
        simulation.run_until(SimTime::START + Duration::from_us(2));
        let Simulation { world, events } = &mut simulation;
        world.fabric.resume(Node(1), events);
        simulation.run();
        let reported = simulation.world.reported.iter();
        reported.map(|(when, _)| when.as_ps() / NS).collect()
    }
    let mut parameters = Parameters {
        buffer: 16,
        ..even()
    };
    parameters.eject.latency = Duration::ZERO;
    let began = 50 + 50 + 64;
    // Without contention the holding comes too late: the rest is on its way in.
    assert_eq!(
        held(by_packet(ring(4), &parameters)),
        [began, 2_000 + 8 * 64]
    );
    assert_eq!(held(free(ring(4), &parameters)), [began, began + 9 * 64]);
}

/// Every node sends so many packets to another; gives the nanoseconds until all
/// have arrived.
fn permute<T: Topology>(topology: T, packets: u64, to: impl Fn(u32) -> u32) -> u64 {
    let mut simulation = by_packet(
        topology,
        &Parameters {
            buffer: 16,
            ..even()
        },
    );
    for node in 0..simulation.world.fabric.nodes() {
        send(&mut simulation, message(node, to(node), 64 * packets));
    }
    simulation.run();
    assert_eq!(simulation.world.fabric.unfinished(), 0);
    last_arrival(&simulation) / NS
}

#[test]
fn neighbours_have_their_links_for_themselves() {
    let torus = grid([Dimension::ring(4); 3]);
    assert_eq!(permute(torus, 1_000, |node| node ^ 1), 3 * 50 + 64_000);
}

/// Every node of a ring of eight sends three places on for ever; gives the packets
/// that arrive in half a millisecond, once it runs evenly.
fn tornado(inject: Bandwidth, arbitration: Arbitration) -> u64 {
    let mut parameters = Parameters {
        buffer: 16,
        arbitration,
        ..even()
    };
    parameters.inject.bandwidth = inject;
    let mut simulation = by_packet(ring(8), &parameters);
    for node in 0..8 {
        send(&mut simulation, message(node, (node + 3) % 8, 1 << 40));
    }
    let mut carried_by = |us| {
        simulation.run_until(SimTime::START + Duration::from_us(us));
        simulation.world.fabric.carried().packets
    };
    let warm = carried_by(100);
    carried_by(600) - warm
}

#[test]
fn a_ring_carries_a_tornado_up_to_one_over_its_distance() {
    // 64 bytes each 200 ns, over three links of 64 ns each: 96 % of what there is.
    for arbitration in [Arbitration::RoundRobin, Arbitration::Oldest] {
        assert_eq!(tornado(megabytes(320), arbitration), 8 * 500_000 / 200);
    }
}

#[test]
fn age_keeps_a_ring_beyond_saturation_at_what_it_can_carry() {
    let bound = 8 * 500_000 / (3 * 64);
    let carried = tornado(gigabytes(1), Arbitration::Oldest);
    assert!(
        (bound * 98 / 100..=bound).contains(&carried),
        "{carried} of {bound}"
    );
    let in_turns = tornado(gigabytes(1), Arbitration::RoundRobin);
    assert!(in_turns < bound * 60 / 100, "{in_turns} of {bound}");
}

#[test]
fn a_fat_tree_carries_every_shift_at_full_speed() {
    for shift in 1..64 {
        let tree = FatTree::new(&[4, 4, 4], &[1, 4, 4]).expect("good");
        let took = permute(tree, 40, |node| (node + shift) % 64);
        let bound = 40 * 64;
        let links = 6 * 50;
        assert!(
            (bound..=bound + links).contains(&took),
            "shift {shift}: {took}"
        );
    }
}

#[test]
fn a_dragonflys_group_sends_all_it_has_over_one_far_link() {
    // 4 routers with 2 nodes each; all of a group send to the next group.
    let dragonfly = Dragonfly::new(9, 4, 2, 2).expect("good");
    let took = permute(dragonfly, 500, |node| (node + 8) % 72);
    let bound = 8 * 500 * 64;
    assert!(
        (bound..bound * 102 / 100).contains(&took),
        "{took} against {bound}"
    );
}
