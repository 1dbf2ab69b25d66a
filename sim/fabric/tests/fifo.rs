//! What a held node takes in.

mod rig;

use lintel_sim_fabric::{Fabric, Message, Node, Outcome, PacketFabric, Parameters, Torus};
use lintel_sim_kernel::{Duration, SimTime, Simulation};
use rig::{Net, by_packet, even, message, ring, send};

/// A ring of four whose nodes have room for so many packets, the last of whose links take
/// that time.
fn with_fifo(packets: u32, latency: Duration) -> Simulation<Net<PacketFabric<Torus>>> {
    let mut parameters = Parameters {
        buffer: 2,
        ..even()
    };
    parameters.eject.latency = latency;
    let mut simulation = by_packet(ring(4), &parameters);
    let plain = std::mem::replace(
        &mut simulation.world.fabric,
        PacketFabric::new(ring(4), &parameters).expect("the parameters are good"),
    );
    simulation.world.fabric = plain.with_fifo(packets);
    simulation
}

fn noticed(from: u32, bytes: u64, tag: u64) -> Message {
    Message {
        notify_began: true,
        notify_left: true,
        tag,
        ..message(from, 1, bytes)
    }
}

/// What is reported of node 1 when it is held from the first packet to `until`.
fn held(packets: u32, messages: &[Message], until: Duration) -> Vec<(u64, Outcome)> {
    held_behind(Duration::ZERO, packets, messages, until)
}

/// The same with a last link of that latency.
fn held_behind(
    latency: Duration,
    packets: u32,
    messages: &[Message],
    until: Duration,
) -> Vec<(u64, Outcome)> {
    let mut simulation = with_fifo(packets, latency);
    messages.iter().for_each(|&m| send(&mut simulation, m));
    while simulation.world.reported.is_empty() {
        let now = simulation.events.now();
        simulation.run_until(now + Duration::from_ns(1));
    }
    simulation.world.fabric.hold(Node(1));
    simulation.run_until(SimTime::START + until);
    let Simulation { world, events } = &mut simulation;
    world.fabric.resume(Node(1), events);
    simulation.run();
    assert_eq!(simulation.world.fabric.unfinished(), 0);
    let reported = simulation.world.reported.iter();
    reported
        .map(|&(when, outcome)| (when.as_ps() / 1_000, outcome))
        .collect()
}

#[test]
fn a_fifo_takes_a_message_off_its_sender_s_hands() {
    let one = noticed(0, 64 * 8, 1);
    let left = |packets| {
        let reported = held(packets, &[one], Duration::from_us(5));
        let left = reported.iter().find(|(_, o)| *o == Outcome::Left(one));
        left.expect("it leaves").0
    };
    // Without it, two packets fit behind each link and the others wait for the node.
    assert!(left(0) > 5_000);
    assert_eq!(left(16), 8 * 64);
}

#[test]
fn what_waits_in_a_fifo_goes_on_at_the_engine_s_rate() {
    let one = noticed(0, 64 * 8, 1);
    let reported = held(16, &[one], Duration::from_us(5));
    // The first packet was in; seven follow.
    assert_eq!(
        reported.last(),
        Some(&(5_000 + 7 * 64, Outcome::Arrived(one)))
    );
}

#[test]
fn packets_on_their_way_when_a_node_is_held_wait_in_its_fifo() {
    // The node is held at the first report, which is to be that of the first packet.
    let [one, other] = [1, 2].map(|tag| Message {
        notify_left: false,
        ..noticed(0, 64 * 3, tag)
    });
    // Three packets are on the last link when the first one is there.
    let latency = Duration::from_ns(200);
    let reported = held_behind(latency, 16, &[one, other], Duration::from_us(5));
    let of = |wanted: Outcome| -> Vec<u64> {
        let same = reported.iter().filter(|(_, o)| *o == wanted);
        same.map(|(when, _)| *when).collect()
    };
    let first = of(Outcome::Began(one))[0];
    assert_eq!(of(Outcome::Noticed(other)), [first + 3 * 64]);
    assert_eq!(of(Outcome::Arrived(one)), [5_000 + 2 * 64]);
    assert_eq!(of(Outcome::Arrived(other)), [5_000 + 5 * 64]);
}

#[test]
fn a_message_behind_a_held_one_is_noticed_once_and_arrives_after_it() {
    let (first, second) = (noticed(0, 64 * 3, 1), noticed(0, 64 * 3, 2));
    let reported = held(16, &[first, second], Duration::from_us(5));
    let of = |wanted: Outcome| -> Vec<u64> {
        let same = reported.iter().filter(|(_, o)| *o == wanted);
        same.map(|(when, _)| *when).collect()
    };
    // Three packets, then its first: in, a hop and out.
    assert_eq!(of(Outcome::Noticed(second)), [2 * 50 + 4 * 64]);
    assert_eq!(of(Outcome::Noticed(first)), []);
    assert_eq!(of(Outcome::Arrived(first)), [5_000 + 2 * 64]);
    assert_eq!(of(Outcome::Began(second)), [5_000 + 3 * 64]);
    assert_eq!(of(Outcome::Arrived(second)), [5_000 + 5 * 64]);
}

#[test]
fn a_full_fifo_holds_the_network_and_loses_nothing() {
    for packets in 1..6 {
        let messages: Vec<Message> = (0..6)
            .map(|tag| noticed(3 * (tag % 2) as u32, 64 * 5, tag))
            .collect();
        let reported = held(packets, &messages, Duration::from_us(9));
        let arrived = reported
            .iter()
            .filter(|(_, o)| matches!(o, Outcome::Arrived(_)));
        assert_eq!(arrived.count(), 6, "{packets}");
    }
}

#[test]
fn a_control_message_reaches_a_node_that_is_held_and_whose_fifo_is_full() {
    let parameters = Parameters {
        buffer: 2,
        classes: 2,
        ..even()
    };
    for packets in [0, 4] {
        let plain = PacketFabric::new(ring(4), &parameters).expect("the parameters are good");
        let mut simulation = by_packet(ring(4), &parameters);
        simulation.world.fabric = plain.with_fifo(packets).with_control(1);
        simulation.world.fabric.hold(Node(1));
        let data = noticed(0, 64 * 20, 1);
        let control = Message {
            class: 1,
            ..message(0, 1, 64)
        };
        send(&mut simulation, data);
        simulation.run();
        let is_there = |simulation: &Simulation<Net<_>>, wanted| {
            let reported = &simulation.world.reported;
            reported.iter().any(|(_, o)| *o == Outcome::Arrived(wanted))
        };
        send(&mut simulation, control);
        simulation.run();
        assert!(is_there(&simulation, control) && !is_there(&simulation, data));
        let Simulation { world, events } = &mut simulation;
        world.fabric.resume(Node(1), events);
        simulation.run();
        assert!(is_there(&simulation, data), "{packets}");
    }
}
