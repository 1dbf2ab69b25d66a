//! Simulated networks: messages leave one node and reach another.
//!
//! ```text
//!              inject       near, far          eject
//!   node ──▶ ▭▭▭▭ ══════▶ router ══════▶ router ══════▶ node
//!   send     queue         buffers, a lane each         Outcome
//! ```
//!
//! A [`Topology`] knows which link leads where and which one a packet takes next:
//! [`Torus`] (or mesh, by dimension), [`FatTree`], [`Dragonfly`]. Two models carry
//! messages over any of them behind the trait [`Fabric`]:
//!
//! - [`PacketFabric`] moves each packet over each link, with buffers that fill up
//!   and links that are waited for.
//! - [`FreeFabric`] computes when a message gets there in a network without
//!   contention; only the two ends are shared. Two events a message, however
//!   long it is and however far it goes.
//!
//! Without contention, both agree to the picosecond.
//!
//! A fabric knows no headers: the bytes of a message are all that it puts on the
//! wire. Interfaces, matching and retries are for others. No constant of any
//! machine is in here; [`Parameters`] come from a profile.
//!
//! Order of use: build a topology, then a fabric; [`Fabric::send`]; hand each
//! [`FabricEvent`] to [`Fabric::on_event`], which may give an [`Outcome`].
//!
//! ```
//! use lintel_sim_fabric::{
//!     Arbitration, Dimension, Fabric, FabricEvent, LinkParameters, Message, Node, Outcome, PacketFabric,
//!     Parameters, Torus,
//! };
//! use lintel_sim_kernel::{EventQueue, Bandwidth, Bytes, Duration, SimTime, Simulation, World};
//!
//! struct Machine(PacketFabric<Torus>, Vec<SimTime>);
//!
//! impl World for Machine {
//!     type Event = FabricEvent;
//!
//!     fn on_event(&mut self, event: FabricEvent, events: &mut EventQueue<FabricEvent>) {
//!         if let Some(Outcome::Arrived(_)) = self.0.on_event(event, events) {
//!             self.1.push(events.now());
//!         }
//!     }
//! }
//!
//! let link = LinkParameters {
//!     bandwidth: Bandwidth::from_bytes_per_second(1_000_000_000).unwrap(),
//!     latency: Duration::from_ns(50),
//! };
//! let parameters = Parameters {
//!     packet: Bytes(64),
//!     buffer: 8,
//!     credit: Duration::from_ns(10),
//!     arbitration: Arbitration::RoundRobin,
//!     classes: 1,
//!     inject: link,
//!     near: link,
//!     far: link,
//!     eject: link,
//! };
//! let ring = Torus::new([Dimension::ring(8), Dimension::LINE_OF_ONE, Dimension::LINE_OF_ONE]);
//! let fabric = PacketFabric::new(ring.unwrap(), &parameters).unwrap();
//! let mut simulation = Simulation::new(Machine(fabric, Vec::new()));
//! let message = Message::new(Node(0), Node(2), Bytes(64));
//! simulation.world.0.send(message, &mut simulation.events);
//! simulation.run();
//! // In, two hops, out; and 64 bytes at one a nanosecond.
//! assert_eq!(simulation.world.1, [SimTime::START + Duration::from_ns(4 * 50 + 64)]);
//! ```
#![forbid(unsafe_code)]

mod event;
mod free;
mod message;
mod packet;
mod parameters;
mod pool;
mod topology;

pub use event::FabricEvent;
pub use free::FreeFabric;
pub use message::{Carried, Message, Node, Outcome};
pub use packet::PacketFabric;
pub use parameters::{Arbitration, ConfigError, LinkParameters, Parameters};
pub use topology::{
    Dimension, Dragonfly, End, FatTree, Leg, Legs, Port, Reach, Step, Topology, Torus,
};

use lintel_sim_kernel::{Event, EventQueue};

/// Carries messages from node to node.
pub trait Fabric {
    /// How many nodes it joins: numbers 0 and up.
    fn nodes(&self) -> u32;

    /// Puts a message behind those that the node is already sending in this
    /// class. Never refuses: a caller that bounds its own queue learns when the
    /// message has left by [`Message::notify_left`].
    ///
    /// # Panics
    ///
    /// If an end is no node of this fabric, the message has no bytes, or its
    /// class is none of [`Parameters::classes`].
    fn send<E>(&mut self, message: Message, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>;

    /// An event that this fabric put on the event queue is due.
    fn on_event<E>(&mut self, event: FabricEvent, events: &mut EventQueue<E>) -> Option<Outcome>
    where
        E: Event + From<FabricEvent>;

    /// Reads what an event will need: for [`lintel_sim_kernel::World::foresee`].
    fn foresee(&self, event: &FabricEvent) {
        let _ = event;
    }

    /// The node takes no further packet in until [`Fabric::resume`]; what is on
    /// its way fills the buffers behind.
    fn hold(&mut self, node: Node);

    /// The node takes packets in again.
    fn resume<E>(&mut self, node: Node, events: &mut EventQueue<E>)
    where
        E: Event + From<FabricEvent>;

    /// What it has carried so far.
    fn carried(&self) -> Carried;

    /// How many messages were sent and haven't arrived. When nothing is to happen
    /// any more, these are stuck.
    fn unfinished(&self) -> usize;
}
