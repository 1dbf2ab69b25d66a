//! What a fabric carries, and what it reports about it.

use lintel_sim_kernel::Bytes;

/// A node's number, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Node(pub u32);

/// Bytes from one node to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// The node that sends it.
    pub from: Node,
    /// The receiver; may be the sender.
    pub to: Node,
    /// All that goes over the wire, headers included; not zero.
    pub bytes: Bytes,
    /// Messages of different classes have buffers of their own and don't wait
    /// for each other's: requests and answers.
    pub class: u8,
    /// Whether [`Outcome::Left`] is wanted.
    pub notify_left: bool,
    /// Whether [`Outcome::Began`] is wanted, and [`Outcome::Noticed`] where there is a FIFO.
    pub notify_began: bool,
    /// How often [`Outcome::Passed`] is wanted: each time that so many bytes behind the first
    /// packet are in; 0: never. A fabric without packets reports none.
    pub notify_every: Bytes,
    /// The sender's own name for it.
    pub tag: u64,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Its last byte has left the node.
    Left(Message),
    /// Its first packet waits in the node's FIFO, behind others or because the node is
    /// held. It is reported as begun, or as arrived, when it has been taken out.
    Noticed(Message),
    /// Its first packet is in, and more are to come.
    Began(Message),
    /// Another [`Message::notify_every`] bytes behind its first packet are in, and more are to
    /// come.
    Passed(Message),
    /// All of it is in.
    Arrived(Message),
}

/// What a fabric has carried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Carried {
    /// Messages that have arrived.
    pub messages: u64,
    /// Packets that have arrived.
    pub packets: u64,
    /// Links that packets went over, those to and from nodes included.
    pub links: u64,
    /// Bytes of the messages that have arrived.
    pub bytes: u64,
}

impl Message {
    /// A message of class 0, of which only the arrival is reported.
    pub const fn new(from: Node, to: Node, bytes: Bytes) -> Self {
        Message {
            from,
            to,
            bytes,
            class: 0,
            notify_left: false,
            notify_began: false,
            notify_every: Bytes(0),
            tag: 0,
        }
    }

    /// Keeps [`crate::Fabric::send`]'s promise to panic.
    pub(crate) fn check(&self, nodes: u32, classes: u8) {
        let last = self.from.max(self.to);
        assert!(last.0 < nodes, "{last:?} is none of {nodes} nodes");
        assert!(self.bytes.0 > 0, "a message has a byte at least");
        let class = self.class;
        assert!(class < classes, "class {class} is none of {classes}");
    }
}
