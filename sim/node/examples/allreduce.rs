//! An all-reduce of many nodes with noise: how long a simulation of it takes.
//!
//! `cargo run --release -p lintel-sim-node --example allreduce [NODES_LOG2 [OPERATIONS]]`
//!
//! Eight-byte messages up and down an 8-nomial tree. The host starts an operation
//! and is notified of its end; in between only interfaces work, as triggered operations
//! let them. So noise of 25 µs each millisecond meets a host twice at most. Only
//! the messages are simulated, without contention, in a 3D torus. All hosts start
//! an operation when the last one has ended the one before.
//!
//! Prints what the operations took, and seconds of processor time.
#![forbid(unsafe_code)]

use std::fs;

use lintel_sim_fabric::{
    Arbitration, Dimension, Fabric, FabricEvent, FreeFabric, LinkParameters, Message, Node,
    Outcome, Parameters, Topology, Torus,
};
use lintel_sim_kernel::{
    Bandwidth, Bytes, Duration, Event, EventQueue, Samples, SimTime, Simulation, Streams, World,
};
use lintel_sim_node::{Core, Noise, NoiseParameters, Placement};

/// The tree's width (the seed's model: 8-nomial).
const FANOUT: u32 = 8;
/// Host work to start an operation and to be notified of its end, and the interface's work
/// per message (the public triggered-operations model, set 1: 200 ns of setup,
/// 100 ns to receive, 100 ns in the interface).
const START: Duration = Duration::from_ns(200);
const HEAR: Duration = Duration::from_ns(100);
const INTERFACE: Duration = Duration::from_ns(100);

/// 60 ns a hop, 100 ns between node and router (set 1); 2.5 GB/s (Red Storm).
fn parameters() -> Parameters {
    let bandwidth = Bandwidth::from_bytes_per_second(2_500_000_000).expect("not zero");
    let link = |ns| LinkParameters {
        bandwidth,
        latency: Duration::from_ns(ns),
    };
    Parameters {
        packet: Bytes(64),
        buffer: 8,
        credit: Duration::from_ns(60),
        arbitration: Arbitration::RoundRobin,
        classes: 1,
        inject: link(100),
        near: link(60),
        far: link(60),
        eject: link(100),
    }
}

/// 25 µs at 1 kHz (the seed's middle case).
const NOISE: NoiseParameters = NoiseParameters {
    length: Duration::from_us(25),
    interval: Duration::from_us(1_000),
    placement: Placement::Periodic,
};

#[derive(Clone, Copy)]
enum ExampleEvent {
    Fabric(FabricEvent),
    /// A child's part, or the node's own, is in.
    Part(Node),
    /// The result is in.
    Result(Node),
    /// The host has been notified.
    Heard,
}

impl From<FabricEvent> for ExampleEvent {
    fn from(event: FabricEvent) -> Self {
        ExampleEvent::Fabric(event)
    }
}

impl Event for ExampleEvent {
    fn word(&self) -> u64 {
        match self {
            ExampleEvent::Fabric(event) => event.word(),
            ExampleEvent::Part(node) => 1 << 40 | u64::from(node.0),
            ExampleEvent::Result(node) => 2 << 40 | u64::from(node.0),
            ExampleEvent::Heard => 3 << 40,
        }
    }
}

struct Machine {
    fabric: FreeFabric<Torus>,
    hosts: Vec<Core>,
    /// Parts that each node still waits for.
    missing: Vec<u32>,
    unheard: u32,
    left: u32,
    begun: SimTime,
    took: Samples,
}

/// A node's children in a k-nomial tree: it plus each digit in each place below
/// its own lowest one, the largest subtrees first.
fn children(node: u32, nodes: u32) -> impl Iterator<Item = u32> {
    let places = (0..nodes.ilog2().div_ceil(FANOUT.ilog2())).map(|i| FANOUT.pow(i));
    let own = places.take_while(move |place| node % (place * FANOUT) == 0);
    let places: Vec<u32> = own.collect();
    let each = |place| (1..FANOUT).map(move |digit| digit * place);
    let all = places
        .into_iter()
        .rev()
        .flat_map(each)
        .map(move |step| node + step);
    all.filter(move |&child| child < nodes)
}

fn parent(node: u32) -> Option<u32> {
    let mut place = 1;
    while node > 0 && node / place % FANOUT == 0 {
        place *= FANOUT;
    }
    (node > 0).then(|| node - node / place % FANOUT * place)
}

impl Machine {
    fn new(shape: Torus) -> Self {
        let nodes = shape.nodes();
        let streams = Streams::new(1);
        let host = |node| {
            let stream = streams.stream(&format!("node/{node}/noise"));
            Core::new(Noise::new(NOISE, stream).expect("it leaves time for work"))
        };
        Machine {
            fabric: FreeFabric::new(shape, &parameters()).expect("good parameters"),
            hosts: (0..nodes).map(host).collect(),
            missing: vec![0; nodes as usize],
            unheard: 0,
            left: 0,
            begun: SimTime::START,
            took: Samples::new(),
        }
    }

    fn begin(&mut self, events: &mut EventQueue<ExampleEvent>) {
        self.begun = events.now();
        self.unheard = self.fabric.nodes();
        self.left -= 1;
        for node in 0..self.fabric.nodes() {
            self.missing[node as usize] = 1 + children(node, self.fabric.nodes()).count() as u32;
            let started = self.hosts[node as usize].run(self.begun, START);
            events.at(started, ExampleEvent::Part(Node(node)));
        }
    }

    fn on_part(&mut self, node: Node, events: &mut EventQueue<ExampleEvent>) {
        let missing = &mut self.missing[node.0 as usize];
        *missing -= 1;
        if *missing > 0 {
            return;
        }
        match parent(node.0) {
            Some(parent) => self.send(node, Node(parent), 0, events),
            None => events.after(INTERFACE, ExampleEvent::Result(node)),
        }
    }

    fn on_result(&mut self, node: Node, events: &mut EventQueue<ExampleEvent>) {
        for child in children(node.0, self.fabric.nodes()) {
            self.send(node, Node(child), 1, events);
        }
        let heard = self.hosts[node.0 as usize].run(events.now(), HEAR);
        events.at(heard, ExampleEvent::Heard);
    }

    fn on_heard(&mut self, events: &mut EventQueue<ExampleEvent>) {
        self.unheard -= 1;
        if self.unheard == 0 {
            self.took.add(events.now().since(self.begun));
            if self.left > 0 {
                self.begin(events);
            }
        }
    }

    fn send(&mut self, from: Node, to: Node, tag: u64, events: &mut EventQueue<ExampleEvent>) {
        let message = Message {
            tag,
            ..Message::new(from, to, Bytes(64))
        };
        self.fabric.send(message, events);
    }
}

impl World for Machine {
    type Event = ExampleEvent;

    fn on_event(&mut self, event: ExampleEvent, events: &mut EventQueue<ExampleEvent>) {
        match event {
            ExampleEvent::Part(node) => self.on_part(node, events),
            ExampleEvent::Result(node) => self.on_result(node, events),
            ExampleEvent::Heard => self.on_heard(events),
            ExampleEvent::Fabric(event) => {
                if let Some(Outcome::Arrived(message)) = self.fabric.on_event(event, events) {
                    let next = match message.tag {
                        0 => ExampleEvent::Part(message.to),
                        _ => ExampleEvent::Result(message.to),
                    };
                    events.after(INTERFACE, next);
                }
            }
        }
    }
}

/// Time that this process spent computing; others on the machine don't count.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns: f64 = stat
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .unwrap_or(0.0);
    ns / 1e9
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse::<u32>());
    let mut argument = |default| arguments.next().and_then(Result::ok).unwrap_or(default);
    let (log2, operations) = (argument(16), argument(100));
    let size = |i: u32| 1u16 << ((log2 + i) / 3);
    let shape = Torus::new([2, 1, 0].map(|i| Dimension::ring(size(i)))).expect("a good torus");
    let nodes = shape.nodes();
    let mut machine = Machine::new(shape);
    machine.left = operations.max(1);
    let mut simulation = Simulation::new(machine);
    let begin = processor_seconds();
    let Simulation { world, events } = &mut simulation;
    world.begin(events);
    simulation.run();
    let seconds = processor_seconds() - begin;
    let took = &mut simulation.world.took;
    let us = |d: Option<Duration>| d.map_or(0.0, |d| d.as_ps() as f64 / 1e6);
    println!(
        "{nodes} nodes, {} operations: mean {:.1}, median {:.1}, 99 % {:.1}, longest {:.1} us",
        took.len(),
        us(took.mean()),
        us(took.permille(500)),
        us(took.permille(990)),
        us(took.max()),
    );
    let events = simulation.events.executed() as f64 / 1e6;
    println!(
        "{events:.1} M events in {seconds:.2} s, {:.1} M/s",
        events / seconds
    );
}
