//! Events inside fabrics.

use lintel_sim_kernel::Event;

/// An event inside a fabric. Only the fabric that put it on the
/// event queue knows what it means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FabricEvent(pub(crate) EventKind);

/// The numbers are those of packets, links and messages in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EventKind {
    /// By packet: its head is at the next router and may go on.
    Arrive(Arrival),
    /// By packet: a link may be able to take another one.
    Wake(u32),
    /// By packet: all of it is in its node.
    Deliver(u32),
    /// By packet, by node: the first packet of its FIFO has been taken out.
    Drain(u32),
    /// By packet: the first packet of a message is in its node's FIFO.
    Notice(u32),
    /// Both: the last byte of a message has left its node.
    Left(u32),
    /// Without contention: the head of a message is at its node.
    Head(u32),
    /// Without contention: its first packet is in.
    First(u32),
    /// Without contention: the other packets may come in.
    Rest(u32),
    /// Without contention: all of it is in.
    Tail(u32),
}

/// Where a packet arrives and what it wants next. The packet knows it too; but
/// large networks wait for memory, and so its three places are read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    pub(crate) packet: u32,
    pub(crate) at: u32,
    pub(crate) out: u32,
}

impl Event for FabricEvent {
    #[inline]
    fn word(&self) -> u64 {
        let (kind, number) = match self.0 {
            EventKind::Arrive(Arrival { packet, .. }) => (0, packet),
            EventKind::Wake(number) => (1, number),
            EventKind::Deliver(number) => (2, number),
            EventKind::Left(number) => (3, number),
            EventKind::Head(number) => (4, number),
            EventKind::First(number) => (5, number),
            EventKind::Rest(number) => (6, number),
            EventKind::Tail(number) => (7, number),
            EventKind::Drain(number) => (8, number),
            EventKind::Notice(number) => (9, number),
        };
        kind << 32 | u64::from(number)
    }
}
