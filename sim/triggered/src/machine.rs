//! All nodes and the network between them.

use lintel_sim_fabric::{Fabric, FabricEvent, Message as FabricMessage, Node, Outcome};
use lintel_sim_kernel::{Duration, Event, EventQueue, SimTime, Simulation, World};
use lintel_sim_node::Noise;

use crate::host::Host;
use crate::interface::Interface;
use crate::measure::Entry;
use crate::program::{Command, Counter, Message, Program};
use crate::timing::{self, PACKET, Timing};
use crate::trace::{Observer, Trace};

/// Nodes that carry out programs.
pub struct Machine<F> {
    pub(crate) timing: Timing,
    pub(crate) fabric: F,
    pub(crate) hosts: Vec<Host>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) trace: Option<Trace>,
}

/// What a packet is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A whole message, whose bytes are combined with what is there.
    Atomic,
    /// A whole message, whose bytes replace what is there.
    Put,
    /// The header of a message whose bytes follow.
    First,
    /// The packet with a put's bytes, after that with its header.
    Rest,
    /// Says that a message has come: each gets one, whether or not it is asked for.
    Reply,
}

/// A packet between two interfaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packet {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) kind: Kind,
    pub(crate) counter: Option<Counter>,
}

/// What happens, and to which node.
#[derive(Clone, Copy, Debug)]
pub enum MachineEvent {
    /// An event within the network.
    Fabric(FabricEvent),
    /// An event within a node.
    Node(Inside),
}

/// What happens in a node.
#[derive(Clone, Copy, Debug)]
pub struct Inside(pub(crate) Action);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Action {
    /// The host goes on.
    Resume(u32),
    /// A command's write is complete.
    Written(u32, Command),
    /// The bus may carry something to the interface.
    Bus(u32),
    /// A command is at the interface.
    Queued(u32, Command),
    /// An edge of the interface's clock.
    Edge(u32),
    /// A command is at the Portals unit.
    Ordered(u32, Command),
    /// A packet leaves for the router.
    Leave(Packet),
    /// A packet is at the Portals unit.
    Arrived(Packet),
    /// A counter of this node counts by one.
    Count(u32, Counter),
    /// The next released operation is carried out.
    Release(u32),
    /// The host is notified of a counter's value.
    Notified(u32, Counter, u32),
    /// The host gets a message from a node.
    Heard(u32, u32),
    /// The interface asks for host memory.
    Read(u32),
    /// The host has got the question.
    Asked(u32),
    /// The bytes are there.
    Fetched(u32),
    /// They are at the interface.
    Data(u32),
}

impl From<FabricEvent> for MachineEvent {
    fn from(event: FabricEvent) -> Self {
        MachineEvent::Fabric(event)
    }
}

impl Event for MachineEvent {
    fn word(&self) -> u64 {
        let action = match self {
            MachineEvent::Fabric(event) => return event.word(),
            MachineEvent::Node(Inside(action)) => action,
        };
        let (kind, node) = match *action {
            Action::Resume(node) => (0, node),
            Action::Written(node, _) => (1, node),
            Action::Bus(node) => (2, node),
            Action::Queued(node, _) => (3, node),
            Action::Edge(node) => (4, node),
            Action::Ordered(node, _) => (5, node),
            Action::Leave(packet) => (6, packet.from),
            Action::Arrived(packet) => (7, packet.to),
            Action::Count(node, _) => (8, node),
            Action::Release(node) => (9, node),
            Action::Notified(node, ..) => (10, node),
            Action::Heard(node, _) => (11, node),
            Action::Read(node) => (12, node),
            Action::Asked(node) => (13, node),
            Action::Fetched(node) => (14, node),
            Action::Data(node) => (15, node),
        };
        1 << 40 | kind << 32 | u64::from(node)
    }
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Atomic => "atomic",
            Kind::Put => "put",
            Kind::First => "header",
            Kind::Rest => "data",
            Kind::Reply => "reply",
        }
    }
}

impl Packet {
    pub(crate) fn new(from: u32, message: Message, kind: Kind) -> Self {
        Packet {
            from,
            to: message.to,
            kind,
            counter: message.counter,
        }
    }

    fn message(self) -> FabricMessage {
        let counter = self.counter.map_or(0, |counter| u64::from(counter) + 1);
        FabricMessage {
            tag: self.kind as u64 | counter << 8,
            ..FabricMessage::new(Node(self.from), Node(self.to), PACKET)
        }
    }

    fn from_message(message: FabricMessage) -> Self {
        let kinds = [
            Kind::Atomic,
            Kind::Put,
            Kind::First,
            Kind::Rest,
            Kind::Reply,
        ];
        let counter = (message.tag >> 8).checked_sub(1);
        Packet {
            from: message.from.0,
            to: message.to.0,
            kind: kinds[(message.tag & 0xff) as usize],
            // It was a counter's number before.
            counter: counter.map(|counter| counter as Counter),
        }
    }
}

/// Lets something happen in a node a while from now.
pub(crate) fn after(events: &mut EventQueue<MachineEvent>, wait: Duration, action: Action) {
    let when = timing::later(events.now(), wait);
    events.at(when, MachineEvent::Node(Inside(action)));
}

impl<F: Fabric> Machine<F> {
    /// A machine whose node `n` does `programs[n]`, disturbed by `noises[n]`.
    ///
    /// # Panics
    ///
    /// If there isn't one of each for every node of the fabric.
    pub fn new(timing: Timing, fabric: F, programs: Vec<Program>, noises: Vec<Noise>) -> Self {
        let nodes = fabric.nodes() as usize;
        assert_eq!((programs.len(), noises.len()), (nodes, nodes));
        let each = programs.into_iter().zip(noises);
        Machine {
            timing,
            fabric,
            hosts: each
                .map(|(program, noise)| Host::new(program, noise))
                .collect(),
            interfaces: (0..nodes).map(|_| Interface::default()).collect(),
            trace: None,
        }
    }

    /// Reports each span from now on.
    pub fn observe(&mut self, observer: Observer) {
        self.trace = Some(Trace::new(observer));
    }

    /// Begins an operation on all nodes at `start`.
    fn begin(&mut self, start: SimTime, entry: Entry, events: &mut EventQueue<MachineEvent>) {
        for node in 0..self.fabric.nodes() {
            self.hosts[node as usize].begin(start, entry);
            self.interfaces[node as usize].begin();
            let resume = Action::Resume(node);
            events.at(start, MachineEvent::Node(Inside(resume)));
        }
    }

    fn trace_left(&mut self, packet: Packet, now: SimTime) {
        if let Some(trace) = &mut self.trace {
            trace.leave(packet.from, packet.to, now);
        }
    }

    fn trace_arrived(&mut self, packet: Packet, now: SimTime) {
        if let Some(trace) = &mut self.trace {
            trace.arrive(packet.from, packet.to, packet.kind.name(), now);
        }
    }

    /// When the last host had ended its program.
    fn ended(&self) -> SimTime {
        let ended = |(node, host): (usize, &Host)| {
            let ended = host.ended();
            ended.unwrap_or_else(|| panic!("node {node} waits in vain: {host:?}"))
        };
        self.hosts
            .iter()
            .enumerate()
            .map(ended)
            .max()
            .unwrap_or_default()
    }

    fn on_action(&mut self, action: Action, events: &mut EventQueue<MachineEvent>) {
        match action {
            Action::Resume(node) => self.resume(node, events),
            Action::Written(node, command) => self.on_written(node, command, events),
            Action::Bus(node) => self.on_bus(node, events),
            Action::Queued(node, command) => self.on_queued(node, command, events),
            Action::Edge(node) => self.on_edge(node, events),
            Action::Ordered(node, command) => self.on_ordered(node, command, events),
            Action::Leave(packet) => {
                self.trace_left(packet, events.now());
                self.fabric.send(packet.message(), events);
            }
            Action::Arrived(packet) => self.on_arrived(packet, events),
            Action::Count(node, counter) => self.on_count(node, counter, events),
            Action::Release(node) => self.on_release(node, events),
            Action::Notified(node, counter, value) => {
                self.on_notified(node, counter, value, events)
            }
            Action::Heard(node, from) => self.on_heard(node, from, events),
            Action::Read(node) => self.on_read(node, events),
            Action::Asked(node) => after(events, timing::MEMORY, Action::Fetched(node)),
            Action::Fetched(node) => self.on_fetched(node, events),
            Action::Data(node) => self.on_data(node, events),
        }
    }
}

impl<F: Fabric> World for Machine<F> {
    type Event = MachineEvent;

    fn on_event(&mut self, event: MachineEvent, events: &mut EventQueue<MachineEvent>) {
        match event {
            MachineEvent::Node(Inside(action)) => self.on_action(action, events),
            MachineEvent::Fabric(event) => {
                if let Some(Outcome::Arrived(message)) = self.fabric.on_event(event, events) {
                    self.trace_arrived(Packet::from_message(message), events.now());
                    let edge = timing::next_edge(events.now());
                    let when = timing::later(edge, self.timing.unit);
                    let arrived = Action::Arrived(Packet::from_message(message));
                    events.at(when, MachineEvent::Node(Inside(arrived)));
                }
            }
        }
    }

    fn foresee(&self, event: &MachineEvent) {
        if let MachineEvent::Fabric(event) = event {
            self.fabric.foresee(event);
        }
    }
}

/// Carries out one operation that begins at `start` everywhere, and all that it
/// leaves under way. How long it took until the last host had ended it.
///
/// # Panics
///
/// If a host doesn't end: its program waits for a message that isn't sent.
pub fn operate<F: Fabric>(
    simulation: &mut Simulation<Machine<F>>,
    start: SimTime,
    entry: Entry,
) -> Duration {
    let start = timing::later(start, Duration::ZERO);
    simulation.world.begin(start, entry, &mut simulation.events);
    simulation.run();
    simulation.world.ended().since(start)
}
