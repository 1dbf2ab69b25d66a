//! What is told of a run while it goes on: spans on tracks.

use lintel_sim_kernel::SimTime;

/// Where something takes time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Track {
    /// A process, by its number on the node.
    Process(u32),
    /// The kernel, on core 0.
    Kernel,
    /// The PowerPC.
    Firmware,
    /// The TX engine, its way into the router included.
    Tx,
    /// The RX engine, from a message's first packet to its last byte's being in host
    /// memory. Messages overlap.
    Rx,
    /// The RX pipeline, where it stands still.
    Stall,
    /// The network, on the way to this node. Messages overlap.
    Link,
}

/// Something that took time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// On this node.
    pub node: u32,
    /// There.
    pub track: Track,
    /// What it was.
    pub name: &'static str,
    /// Bytes of payload, where it is a message.
    pub bytes: Option<u64>,
    /// From then.
    pub start: SimTime,
    /// Until then.
    pub end: SimTime,
}

/// Gets each span when its end is known, which is not the order of their ends.
pub type Observer = Box<dyn FnMut(Span)>;
