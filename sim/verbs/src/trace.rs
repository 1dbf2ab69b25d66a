//! What is told of a run while it goes on: spans on tracks.

use lintel_sim_kernel::{Bytes, SimTime};

/// Where something takes time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Track {
    /// A process, by its place on the node.
    Process(u32),
    /// The adapter's send engine, its read of host memory included.
    Send,
    /// The adapter's receive engine, its write to host memory included.
    Receive,
    /// The network, on the way to this node, from a message's first packet to its last.
    /// Messages overlap.
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
    /// Of the message, or of its packet.
    pub bytes: Bytes,
    /// From then.
    pub start: SimTime,
    /// Until then.
    pub end: SimTime,
}

/// Gets each span when its end is known, which is not the order of their ends.
pub type Observer = Box<dyn FnMut(Span)>;
