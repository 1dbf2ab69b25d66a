//! What carries messages between hosts.

use lintel_sim_fabric::{Fabric, FabricEvent, Message, Node, Outcome};
use lintel_sim_kernel::{Bytes, Duration, EventQueue, SimTime};

use crate::goal::Rank;
use crate::machine::MachineEvent;

/// A message on its way, by the number that the machine gave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// Identifies it among the messages in flight.
    pub number: u32,
    /// The rank that sends it.
    pub from: Rank,
    /// The receiver; may be the sender.
    pub to: Rank,
    /// Its length; may be zero.
    pub bytes: u64,
}

/// Carries messages from rank to rank.
pub trait Network {
    /// A message leaves its host at `leaves`, which is now or later. The network puts
    /// [`MachineEvent::Arrive`] on the event queue, or [`MachineEvent::Leave`], upon which
    /// [`Network::on_leave`] is called.
    fn carry(&mut self, envelope: Envelope, leaves: SimTime, events: &mut EventQueue<MachineEvent>);

    /// A message leaves its host now.
    fn on_leave(&mut self, envelope: Envelope, events: &mut EventQueue<MachineEvent>);

    /// An event of the network is due. Returns the number of a message that has arrived.
    fn on_event(
        &mut self,
        event: FabricEvent,
        events: &mut EventQueue<MachineEvent>,
    ) -> Option<u32>;

    /// Reads what an event will need: for [`lintel_sim_kernel::World::foresee`].
    fn foresee(&self, event: &FabricEvent) {
        let _ = event;
    }

    /// How long bytes after a message's first one follow it into its host, or out of it.
    fn tail(&self, bytes: u64) -> Duration;
}

/// The network of LogGP, where each message takes the same time, without
/// contention. The first byte arrives after `L`, the others `G` apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogGp {
    latency: Duration,
    per_byte: Duration,
}

/// Any fabric. It puts a header before each message and reports a message when all of
/// it is there.
pub struct Over<F> {
    fabric: F,
    header: Bytes,
    ranks_per_node: u32,
}

impl LogGp {
    /// With this `L`, and no `G`.
    pub const fn new(latency: Duration) -> Self {
        LogGp {
            latency,
            per_byte: Duration::ZERO,
        }
    }

    /// Replaces `G`, the time for each byte after the first.
    #[must_use]
    pub const fn per_byte(self, per_byte: Duration) -> Self {
        LogGp { per_byte, ..self }
    }
}

impl<F: Fabric> Over<F> {
    /// One rank a node; `header` is what goes over the wire besides a message's bytes.
    pub const fn new(fabric: F, header: Bytes) -> Self {
        Over {
            fabric,
            header,
            ranks_per_node: 1,
        }
    }

    /// So many ranks a node, in order.
    ///
    /// # Panics
    ///
    /// If it is none.
    #[must_use]
    pub fn ranks_per_node(self, ranks: u32) -> Self {
        assert!(ranks > 0, "a node has a rank at least");
        Over {
            ranks_per_node: ranks,
            ..self
        }
    }

    /// How many ranks its nodes hold.
    pub fn ranks(&self) -> u64 {
        u64::from(self.fabric.nodes()) * u64::from(self.ranks_per_node)
    }

    /// The fabric that carries the messages.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }

    fn node(&self, rank: Rank) -> Node {
        Node(rank / self.ranks_per_node)
    }
}

impl Network for LogGp {
    #[inline]
    fn carry(
        &mut self,
        envelope: Envelope,
        leaves: SimTime,
        events: &mut EventQueue<MachineEvent>,
    ) {
        events.at(leaves + self.latency, MachineEvent::Arrive(envelope.number));
    }

    fn on_leave(&mut self, envelope: Envelope, _: &mut EventQueue<MachineEvent>) {
        unreachable!("{envelope:?} is to arrive: no leaving is reported");
    }

    fn on_event(&mut self, event: FabricEvent, _: &mut EventQueue<MachineEvent>) -> Option<u32> {
        unreachable!("{event:?} is none of this network's");
    }

    #[inline]
    fn tail(&self, bytes: u64) -> Duration {
        after_the_first(self.per_byte, bytes)
    }
}

/// What bytes after the first take, longer than any simulation at most.
pub(crate) fn after_the_first(per_byte: Duration, bytes: u64) -> Duration {
    let ps = per_byte.as_ps().saturating_mul(bytes.saturating_sub(1));
    Duration::from_ps(ps.min(1 << 62))
}

impl<F: Fabric> Network for Over<F> {
    fn carry(
        &mut self,
        envelope: Envelope,
        leaves: SimTime,
        events: &mut EventQueue<MachineEvent>,
    ) {
        events.at(leaves, MachineEvent::Leave(envelope.number));
    }

    fn on_leave(&mut self, envelope: Envelope, events: &mut EventQueue<MachineEvent>) {
        // A message of nothing, with no header, is a byte on the wire.
        let bytes = Bytes((envelope.bytes + self.header.0).max(1));
        let message = Message {
            tag: envelope.number.into(),
            ..Message::new(self.node(envelope.from), self.node(envelope.to), bytes)
        };
        self.fabric.send(message, events);
    }

    #[inline]
    fn on_event(
        &mut self,
        event: FabricEvent,
        events: &mut EventQueue<MachineEvent>,
    ) -> Option<u32> {
        match self.fabric.on_event(event, events) {
            Some(Outcome::Arrived(message)) => {
                Some(u32::try_from(message.tag).expect("it was made of a u32"))
            }
            _ => None,
        }
    }

    fn foresee(&self, event: &FabricEvent) {
        self.fabric.foresee(event);
    }

    /// All of a message is there when it arrives, and the fabric lets one wait for the
    /// other.
    fn tail(&self, _: u64) -> Duration {
        Duration::ZERO
    }
}
