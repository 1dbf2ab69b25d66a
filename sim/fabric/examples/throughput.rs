//! How fast the fabrics run, and how much memory they take.
//!
//! `cargo run --release -p lintel-sim-fabric --example throughput [PATTERN [NODES]]`
//!
//! Patterns on a torus: `uniform` (packets to random nodes, at 15 % of what a
//! node can inject), `neighbours` (to the next node upwards), `halo` (ten times 4 KB to
//! each of six neighbours, the next time when all six have come), `doubling` (8-byte
//! all-reduce by recursive doubling, of which only the messages are simulated).
//! Prints a row per pattern, size and model: events, links that packets went over,
//! seconds of processor time, and the most memory that the process had.
//!
//! By packet, on one core of a virtual machine (AMD EPYC of family 26, 32 MB of L3) whose
//! other work slows it down, the best of three to six runs, in million events a second:
//! uniform 11.1 on 1024 nodes, 7.2 on 32,768 and 5.6 on 65,536, whose events wait for
//! memory; halo 21.1 and neighbours 13.1 on 4096; doubling 10.9 on 32,768.
#![forbid(unsafe_code)]

use std::fs;

use lintel_sim_fabric::{
    Arbitration, Dimension, End, Fabric, FabricEvent, FreeFabric, LinkParameters, Message, Node,
    Outcome, PacketFabric, Parameters, Port, Topology, Torus,
};
use lintel_sim_kernel::{
    Bandwidth, Bytes, Duration, Event, EventQueue, Simulation, Stream, Streams, World,
};

/// Speeds of links: 2.5 GB/s (Portals 3.3 on Red Storm, section 2), 60 ns a hop and
/// 100 ns between node and router (the public triggered-operations model, set 1).
/// Buffers and credits are assumed: eight packets cover a hop and the way back.
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

/// A message's time to be worked on before the next step: assumed, and of no
/// weight for the figures here.
const STEP: Duration = Duration::from_ns(500);

#[derive(Clone, Copy)]
enum ExampleEvent {
    Fabric(FabricEvent),
    Step(Node),
}

impl From<FabricEvent> for ExampleEvent {
    fn from(event: FabricEvent) -> Self {
        ExampleEvent::Fabric(event)
    }
}

impl Event for ExampleEvent {
    #[inline]
    fn word(&self) -> u64 {
        match self {
            ExampleEvent::Fabric(event) => event.word(),
            ExampleEvent::Step(node) => 1 << 40 | u64::from(node.0),
        }
    }
}

/// The traffic that nodes generate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    Uniform,
    Neighbours,
    Halo,
    Doubling,
}

const PATTERNS: [(&str, Pattern); 4] = [
    ("uniform", Pattern::Uniform),
    ("neighbours", Pattern::Neighbours),
    ("halo", Pattern::Halo),
    ("doubling", Pattern::Doubling),
];

impl Pattern {
    /// The steps that each node takes.
    fn steps(self, nodes: u32) -> u32 {
        match self {
            Pattern::Uniform | Pattern::Neighbours => 20_000_000 / nodes / 16,
            Pattern::Halo => 10,
            Pattern::Doubling => nodes.ilog2(),
        }
    }

    /// Messages for which a node waits after each step; without any, it goes on
    /// after a time of its own.
    fn awaits(self) -> u32 {
        match self {
            Pattern::Uniform | Pattern::Neighbours => 0,
            Pattern::Halo => 6,
            Pattern::Doubling => 1,
        }
    }
}

struct Machine<F> {
    fabric: F,
    pattern: Pattern,
    shape: Torus,
    steps: u32,
    stream: Stream,
    taken: Vec<u32>,
    /// Messages that have come, for this step and for the next.
    come: Vec<[u32; 2]>,
}

impl<F: Fabric> Machine<F> {
    fn new(fabric: F, shape: &Torus, pattern: Pattern) -> Self {
        let nodes = shape.nodes();
        Machine {
            fabric,
            pattern,
            shape: shape.clone(),
            steps: pattern.steps(nodes),
            stream: Streams::new(1).stream("throughput"),
            taken: vec![0; nodes as usize],
            come: vec![[0; 2]; nodes as usize],
        }
    }

    fn step(&mut self, node: Node, events: &mut EventQueue<ExampleEvent>) {
        let taken = self.taken[node.0 as usize];
        if taken == self.steps {
            return;
        }
        self.taken[node.0 as usize] += 1;
        match self.pattern {
            Pattern::Uniform => {
                let to = self.stream.below(u64::from(self.fabric.nodes())) as u32;
                self.send(node, Node(to), 64, taken, events);
                // 64 bytes each 170 ns: 15 % of 2.5 GB/s, at jittered times.
                let jitter = self.stream.below_duration(Duration::from_ns(80));
                events.after(Duration::from_ns(130) + jitter, ExampleEvent::Step(node));
            }
            Pattern::Neighbours => {
                let next = self.neighbours(node)[0];
                self.send(node, next, 64, taken, events);
                events.after(Duration::from_ns(26), ExampleEvent::Step(node));
            }
            Pattern::Halo => {
                for to in self.neighbours(node) {
                    self.send(node, to, 4_096, taken, events);
                }
            }
            Pattern::Doubling => self.send(node, Node(node.0 ^ 1 << taken), 64, taken, events),
        }
    }

    fn send(
        &mut self,
        from: Node,
        to: Node,
        bytes: u64,
        step: u32,
        events: &mut EventQueue<ExampleEvent>,
    ) {
        let message = Message {
            tag: u64::from(step),
            ..Message::new(from, to, Bytes(bytes))
        };
        self.fabric.send(message, events);
    }

    fn neighbours(&self, node: Node) -> [Node; 6] {
        std::array::from_fn(|port| {
            let port = Port {
                router: node.0,
                port: port as u32,
            };
            match self.shape.end(port) {
                End::Router(router, _) => Node(router),
                _ => node,
            }
        })
    }

    /// A node goes on when all of its last step's messages have come. Others may
    /// be a step ahead of it, and no more.
    fn on_arrived(&mut self, message: Message, events: &mut EventQueue<ExampleEvent>) {
        let awaits = self.pattern.awaits();
        if awaits == 0 {
            return;
        }
        let node = message.to.0 as usize;
        let ahead = message.tag + 1 - u64::from(self.taken[node]);
        self.come[node][ahead as usize] += 1;
        self.go_on(message.to, events);
    }

    fn go_on(&mut self, node: Node, events: &mut EventQueue<ExampleEvent>) {
        let come = &mut self.come[node.0 as usize];
        if come[0] == self.pattern.awaits() {
            *come = [come[1], 0];
            events.after(STEP, ExampleEvent::Step(node));
        }
    }
}

impl<F: Fabric> World for Machine<F> {
    type Event = ExampleEvent;

    #[inline]
    fn foresee(&self, event: &ExampleEvent) {
        if let ExampleEvent::Fabric(event) = event {
            self.fabric.foresee(event);
        }
    }

    #[inline]
    fn on_event(&mut self, event: ExampleEvent, events: &mut EventQueue<ExampleEvent>) {
        match event {
            ExampleEvent::Step(node) => self.step(node, events),
            ExampleEvent::Fabric(event) => {
                if let Some(Outcome::Arrived(message)) = self.fabric.on_event(event, events) {
                    self.on_arrived(message, events);
                }
            }
        }
    }
}

/// Runs one pattern, and prints its row.
fn measure<F: Fabric>(name: &str, model: &str, shape: &Torus, make: impl Fn(Torus) -> F) {
    let pattern = PATTERNS.iter().find(|p| p.0 == name).expect("a pattern").1;
    forget_peak_memory();
    let begin = processor_seconds();
    let machine = Machine::new(make(shape.clone()), shape, pattern);
    let mut simulation = Simulation::new(machine);
    let built = processor_seconds();
    for node in 0..shape.nodes() {
        simulation
            .events
            .after(Duration::ZERO, ExampleEvent::Step(Node(node)));
    }
    simulation.run();
    let took = processor_seconds() - built;
    assert_eq!(simulation.world.fabric.unfinished(), 0, "{name} is stuck");
    let events = simulation.events.executed() as f64 / 1e6;
    let links = simulation.world.fabric.carried().links as f64 / 1e6;
    println!(
        "| {name} | {} | {model} | {events:.1} | {:.1} | {links:.1} | {:.1} | {:.2} + {took:.2} | {} | {} | {:016x} |",
        shape.nodes(),
        events / took,
        links / took,
        built - begin,
        peak_megabytes(),
        simulation.events.now(),
        simulation.events.trace_hash(),
    );
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

fn forget_peak_memory() {
    // Where the system refuses, the peak of the patterns before is shown.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

fn peak_megabytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) / 1024
}

fn main() {
    let wanted = std::env::args().nth(1);
    let wanted_nodes: Option<u32> = std::env::args().nth(2).and_then(|n| n.parse().ok());
    println!(
        "| pattern | nodes | model | M events | M events/s | M links | M links/s | s to build + run | MB | simulated | trace hash |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let packet = |torus| PacketFabric::new(torus, &parameters()).expect("good parameters");
    let free = |torus| FreeFabric::new(torus, &parameters()).expect("good parameters");
    for (name, _) in PATTERNS {
        if wanted.as_ref().is_some_and(|wanted| wanted != name) {
            continue;
        }
        for [x, y, z] in [[16, 8, 8], [16, 16, 16], [32, 32, 32], [64, 32, 32]] {
            let shape = Torus::new([x, y, z].map(Dimension::ring)).expect("a good torus");
            if wanted_nodes.is_some_and(|nodes| nodes != shape.nodes()) {
                continue;
            }
            measure(name, "packet", &shape, packet);
            measure(name, "free", &shape, free);
        }
    }
}
