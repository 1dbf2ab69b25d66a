//! What is reported of a run while it goes on: spans on tracks.

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

/// Something that took time on a node.
pub type Span = lintel_sim_kernel::Span<Track>;

/// Receives each span of a run.
pub type Observer = lintel_sim_kernel::Observer<Track>;
