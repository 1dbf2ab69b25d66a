//! The machine: nodes and the network between them.

use std::collections::VecDeque;

use lintel_sim_fabric::{Fabric, FabricEvent, Node as Place, Outcome};
use lintel_sim_kernel::{EventQueue, Simulation, Streams, World};
use lintel_types::ProcessId;

use crate::context::{Context, Flight, Order, Shared};
use crate::node::{Handshake, Mode, Node, NodeReport, Placement, Program, Refused};
use crate::profile::Profile;
use crate::trace::Observer;

/// What becomes of a message that finds all entries of the CAM taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protection {
    /// It is lost; accelerated firmware aborts the node.
    None,
    /// The receiver's host refuses it, and the sender's host retransmits it (COP and BEER).
    /// Accelerated firmware, whose messages no host sees, aborts the node.
    Host,
    /// The receiver's firmware refuses it, and the sender's retransmits it.
    EndToEnd,
    /// Another source's entry is swapped out.
    Swap,
}

/// Something that happens to a machine.
#[derive(Clone, Copy, Debug)]
pub enum MachineEvent {
    /// An event within the network.
    Fabric(FabricEvent),
    /// On a node: something by its name.
    Task {
        /// The node whose task it is.
        node: u32,
        /// Which only the machine knows.
        name: u64,
    },
}

impl From<FabricEvent> for MachineEvent {
    fn from(event: FabricEvent) -> Self {
        MachineEvent::Fabric(event)
    }
}

/// What a machine is besides its constants and its network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// How many processes a node has.
    pub placement: Placement,
    /// What becomes of messages without an entry of the CAM.
    pub protection: Protection,
    /// The seed of all random streams.
    pub seed: u64,
}

/// A machine, as a world of a simulation.
pub struct Machine<F> {
    fabric: F,
    profile: Profile,
    setting: Setting,
    nodes: Vec<Node>,
    shared: Shared,
}

impl<F: Fabric> Machine<F> {
    /// Nodes without processes, as many as the network joins.
    ///
    /// # Errors
    /// The NIC's memory is too small for its firmware.
    pub fn new(profile: Profile, setting: Setting, fabric: F) -> Result<Self, Refused> {
        let streams = Streams::new(setting.seed);
        let count = fabric.nodes();
        let node = |number| {
            let link = streams.stream(&format!("node/{number}/link"));
            Node::new(&profile, count, link)
        };
        let nodes: Result<Vec<Node>, _> = (0..count).map(node).collect();
        Ok(Machine {
            fabric,
            profile,
            setting,
            nodes: nodes?,
            shared: Shared::default(),
        })
    }

    /// Reports each span from now on.
    pub fn observe(&mut self, observer: Observer) {
        self.shared.observer = Some(observer);
    }

    /// Puts a process on a node's next core.
    ///
    /// # Errors
    /// The node has no core or its NIC no memory left, or the program was refused
    /// something.
    pub fn add(
        &mut self,
        node: u32,
        mode: Mode,
        program: Box<dyn Program>,
    ) -> Result<ProcessId, Refused> {
        let place = self.nodes.get_mut(node as usize);
        let place = place.ok_or_else(|| Refused(format!("there is no node {node}")))?;
        place.add(node, mode, self.setting.placement, program, &self.profile)
    }

    /// What a node has counted.
    pub fn report(&self, node: u32) -> NodeReport {
        self.nodes[node as usize].report()
    }

    /// Processes that haven't come to their end, and why those failed that did.
    /// When nothing is to happen any more, these are stuck.
    pub fn unfinished(&self) -> Vec<String> {
        self.nodes.iter().flat_map(Node::unfinished).collect()
    }

    /// All that the network has carried.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    /// Lets the clock start: every process begins, in order of nodes and cores.
    pub fn into_simulation(mut self) -> Simulation<Self> {
        self.make_connections();
        let mut simulation = Simulation::new(self);
        let Simulation { world, events } = &mut simulation;
        for node in 0..world.fabric.nodes() {
            world.with_node(Place(node), events, |node, ctx| node.start(ctx));
        }
        simulation
    }

    /// CCI's processes connect by the handshake of their endpoints. What that takes isn't
    /// published, and is not measured.
    fn make_connections(&mut self) {
        let mut frames: VecDeque<Handshake> = VecDeque::new();
        for node in &mut self.nodes {
            frames.extend(node.ask_for_connections());
        }
        while let Some(frame) = frames.pop_front() {
            let there = self.nodes.get_mut(frame.to.nid as usize);
            match there.and_then(|node| node.on_handshake(&frame)) {
                Some(answers) => frames.extend(answers),
                None => self.nodes[frame.from.nid as usize].on_nobody(&frame),
            }
        }
    }

    /// Something happens to a node; what it orders from the network is done then.
    fn with_node(
        &mut self,
        Place(number): Place,
        events: &mut EventQueue<MachineEvent>,
        happens: impl FnOnce(&mut Node, &mut Context<'_>),
    ) {
        let mut context = Context {
            now: events.now(),
            node: number,
            profile: &self.profile,
            protection: self.setting.protection,
            events,
            shared: &mut self.shared,
        };
        happens(&mut self.nodes[number as usize], &mut context);
        for order in std::mem::take(&mut self.shared.orders) {
            match order {
                Order::Send(message) => self.fabric.send(message, events),
                Order::Hold(node) => self.fabric.hold(node),
                Order::Resume(node) => self.fabric.resume(node, events),
            }
        }
    }

    fn on_outcome(&mut self, outcome: Outcome, events: &mut EventQueue<MachineEvent>) {
        match outcome {
            Outcome::Left(message) => {
                let flight = self.shared.flight(message.tag);
                self.with_node(message.from, events, |node, ctx| node.on_left(flight, ctx));
            }
            Outcome::Noticed(message) => {
                let (name, flight) = (message.tag, self.shared.flight(message.tag));
                self.with_node(message.to, events, |node, ctx| {
                    node.on_noticed(name, flight, ctx)
                });
            }
            Outcome::Began(message) => {
                let (name, flight) = (message.tag, self.shared.flight(message.tag));
                self.with_node(message.to, events, |node, ctx| {
                    node.on_began(name, flight, ctx)
                });
            }
            Outcome::Passed(message) => {
                let name = message.tag;
                self.with_node(message.to, events, |node, ctx| node.on_passed(name, ctx));
            }
            Outcome::Arrived(message) => {
                let (name, flight): (u64, Flight) = (message.tag, self.shared.land(message.tag));
                self.with_node(message.to, events, |node, ctx| {
                    node.on_arrived(name, flight, ctx)
                });
            }
        }
    }
}

impl<F: Fabric> World for Machine<F> {
    type Event = MachineEvent;

    fn on_event(&mut self, event: MachineEvent, events: &mut EventQueue<MachineEvent>) {
        match event {
            MachineEvent::Fabric(event) => {
                if let Some(outcome) = self.fabric.on_event(event, events) {
                    self.on_outcome(outcome, events);
                }
            }
            MachineEvent::Task { node, name } => {
                let task = self.shared.take_task(name);
                self.with_node(Place(node), events, |node, ctx| node.on_task(task, ctx));
            }
        }
    }
}
