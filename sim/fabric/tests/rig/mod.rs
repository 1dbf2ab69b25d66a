//! A fabric alone in the world, and a network of round numbers, of no machine.
#![allow(dead_code)] // Each test file takes what it needs.

use lintel_sim_fabric::{
    Arbitration, Dimension, Fabric, FabricEvent, FreeFabric, LinkParameters, Message, Node,
    Outcome, PacketFabric, Parameters, Topology, Torus,
};
use lintel_sim_kernel::{
    Bandwidth, Bytes, Duration, EventQueue, SimTime, Simulation, Stream, Streams, World,
};

/// A fabric, and what it reported when.
pub struct Net<F> {
    pub fabric: F,
    pub reported: Vec<(SimTime, Outcome)>,
}

impl<F: Fabric> World for Net<F> {
    type Event = FabricEvent;

    fn on_event(&mut self, event: FabricEvent, events: &mut EventQueue<FabricEvent>) {
        if let Some(outcome) = self.fabric.on_event(event, events) {
            self.reported.push((events.now(), outcome));
        }
    }
}

pub fn by_packet<T: Topology>(topology: T, p: &Parameters) -> Simulation<Net<PacketFabric<T>>> {
    alone(PacketFabric::new(topology, p).expect("the parameters are good"))
}

pub fn free<T: Topology>(topology: T, p: &Parameters) -> Simulation<Net<FreeFabric<T>>> {
    alone(FreeFabric::new(topology, p).expect("the parameters are good"))
}

fn alone<F: Fabric>(fabric: F) -> Simulation<Net<F>> {
    let reported = Vec::new();
    Simulation::new(Net { fabric, reported })
}

pub fn send<F: Fabric>(simulation: &mut Simulation<Net<F>>, message: Message) {
    let Simulation { world, events } = simulation;
    world.fabric.send(message, events);
}

/// Arrivals, in order: when, and which.
pub fn arrivals<F>(simulation: &Simulation<Net<F>>) -> Vec<(SimTime, Message)>
where
    F: Fabric,
{
    let reported = simulation.world.reported.iter();
    reported
        .filter_map(|&(when, outcome)| match outcome {
            Outcome::Arrived(message) => Some((when, message)),
            _ => None,
        })
        .collect()
}

/// When the last message arrived, in picoseconds.
pub fn last_arrival<F: Fabric>(simulation: &Simulation<Net<F>>) -> u64 {
    let all = arrivals(simulation);
    all.last().expect("something arrived").0.as_ps()
}

pub fn message(from: u32, to: u32, bytes: u64) -> Message {
    Message::new(Node(from), Node(to), Bytes(bytes))
}

pub fn gigabytes(per_second: u64) -> Bandwidth {
    megabytes(1_000 * per_second)
}

pub fn megabytes(per_second: u64) -> Bandwidth {
    Bandwidth::from_bytes_per_second(per_second * 1_000_000).expect("not zero")
}

/// A byte a nanosecond, 50 ns a link, 64-byte packets, ample buffers.
pub fn even() -> Parameters {
    let link = LinkParameters {
        bandwidth: gigabytes(1),
        latency: Duration::from_ns(50),
    };
    Parameters {
        packet: Bytes(64),
        buffer: 8,
        credit: Duration::from_ns(10),
        arbitration: Arbitration::RoundRobin,
        classes: 1,
        inject: link,
        near: link,
        far: link,
        eject: link,
    }
}

/// `even`, with a hundred nanoseconds on far links and every speed another.
pub fn uneven() -> Parameters {
    let mut parameters = even();
    parameters.inject.bandwidth = megabytes(1_500);
    parameters.near.bandwidth = megabytes(2_500);
    parameters.far.bandwidth = megabytes(2_000);
    parameters.eject.bandwidth = megabytes(1_700);
    parameters.far.latency = Duration::from_ns(100);
    parameters
}

pub fn ring(size: u16) -> Torus {
    grid([
        Dimension::ring(size),
        Dimension::LINE_OF_ONE,
        Dimension::LINE_OF_ONE,
    ])
}

pub fn grid(dimensions: [Dimension; 3]) -> Torus {
    Torus::new(dimensions).expect("a good grid")
}

pub fn stream(seed: u64) -> Stream {
    Streams::new(seed).stream("test")
}

/// Every node sends `count` messages of 1 to `longest` bytes to random nodes.
pub fn storm<F>(simulation: &mut Simulation<Net<F>>, seed: u64, count: u64, longest: u64)
where
    F: Fabric,
{
    let mut stream = stream(seed);
    let nodes = simulation.world.fabric.nodes();
    for tag in 0..count {
        for from in 0..nodes {
            let to = stream.below(u64::from(nodes)) as u32;
            let bytes = 1 + stream.below(longest);
            send(
                simulation,
                Message {
                    tag,
                    ..message(from, to, bytes)
                },
            );
        }
    }
}
