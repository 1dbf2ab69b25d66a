//! What a node may do to the rest of the world.

use std::collections::BTreeMap;

use lintel_sim_fabric::{Message as FabricMessage, Node as Place};
use lintel_sim_kernel::{Bytes, Event, EventQueue, SimTime};

use crate::machine::{MachineEvent, Protection};
use crate::message::Message;
use crate::node::Task;
use crate::profile::Profile;
use crate::trace::{Observer, Span, Track};

/// A node's view of the world while something happens to it.
pub(crate) struct Context<'a> {
    pub(crate) now: SimTime,
    pub(crate) node: u32,
    pub(crate) profile: &'a Profile,
    pub(crate) protection: Protection,
    pub(crate) events: &'a mut EventQueue<MachineEvent>,
    pub(crate) shared: &'a mut Shared,
}

/// What all nodes share: names, and what waits for its time.
#[derive(Default)]
pub(crate) struct Shared {
    named: u64,
    tasks: BTreeMap<u64, Task>,
    flights: BTreeMap<u64, Flight>,
    /// What the network is to do, once the node has done its part.
    pub(crate) orders: Vec<Order>,
    pub(crate) observer: Option<Observer>,
}

/// A message in the network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    pub(crate) message: Message,
    /// The sender's name for it; none for what went by PIO.
    pub(crate) ticket: Option<u64>,
    /// When it was put on the wire.
    pub(crate) sent: SimTime,
}

/// Something that the network is to do.
pub(crate) enum Order {
    Send(FabricMessage),
    Hold(Place),
    Resume(Place),
}

impl Shared {
    fn name(&mut self) -> u64 {
        self.named += 1;
        self.named
    }

    pub(crate) fn take_task(&mut self, name: u64) -> Task {
        self.tasks.remove(&name).expect("a task is done once")
    }

    /// A message that is still in the network.
    pub(crate) fn flight(&self, name: u64) -> Flight {
        self.flights[&name]
    }

    /// Takes a message out of the network.
    pub(crate) fn land(&mut self, name: u64) -> Flight {
        self.flights.remove(&name).expect("a message arrives once")
    }
}

impl Context<'_> {
    /// Lets something happen to this node.
    pub(crate) fn at(&mut self, when: SimTime, task: Task) {
        let name = self.shared.name();
        self.shared.tasks.insert(name, task);
        let node = self.node;
        self.events.at(when, MachineEvent::Task { node, name });
    }

    /// A name that nothing else has.
    pub(crate) fn name(&mut self) -> u64 {
        self.shared.name()
    }

    /// Puts a message on the wire.
    pub(crate) fn send(&mut self, message: Message, ticket: Option<u64>) {
        let tag = self.shared.name();
        let flight = Flight {
            message,
            ticket,
            sent: self.now,
        };
        self.shared.flights.insert(tag, flight);
        let bytes = Bytes(message.wire_bytes(self.profile));
        let carried = FabricMessage {
            class: message.network_class(),
            notify_left: true,
            notify_began: true,
            notify_every: Bytes(message.bytes_of_command(self.profile)),
            tag,
            ..FabricMessage::new(Place(self.node), Place(message.to.nid), bytes)
        };
        self.shared.orders.push(Order::Send(carried));
    }

    /// The RX pipeline stands still.
    pub(crate) fn hold(&mut self) {
        self.shared.orders.push(Order::Hold(Place(self.node)));
    }

    /// Lets the RX pipeline go on.
    pub(crate) fn resume(&mut self) {
        self.shared.orders.push(Order::Resume(Place(self.node)));
    }

    pub(crate) fn span(&mut self, track: Track, name: &'static str, start: SimTime, end: SimTime) {
        self.report(track, name, None, start, end);
    }

    /// A message was there from `start` until now.
    pub(crate) fn message_span(&mut self, track: Track, message: &Message, start: SimTime) {
        self.report(track, message.name(), Some(message.body), start, self.now);
    }

    fn report(
        &mut self,
        track: Track,
        name: &'static str,
        bytes: Option<u64>,
        start: SimTime,
        end: SimTime,
    ) {
        let at = self.node;
        if let Some(observer) = &mut self.shared.observer {
            observer(Span {
                at,
                track,
                name,
                bytes: bytes.map(Bytes),
                start,
                end,
            });
        }
    }
}

impl Event for MachineEvent {
    fn word(&self) -> u64 {
        match self {
            MachineEvent::Fabric(event) => event.word(),
            MachineEvent::Task { node, name } => 1 << 63 | u64::from(*node) << 40 | name,
        }
    }
}
