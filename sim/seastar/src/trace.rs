//! What is reported of a run while it goes on: spans on tracks.

/// Where something takes time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Track {
    /// A process, by its number on the node.
    Process(u32),
    /// The kernel, on core 0.
    Kernel,
    /// The NIC's PowerPC, which runs the firmware.
    Firmware,
    /// The TX engine, its way into the router included.
    Tx,
    /// The RX engine, from a message's first packet to its last byte's being in host
    /// memory. Messages overlap.
    Rx,
    /// Times at which the RX pipeline stalls.
    Stall,
    /// The network, on the way to this node. Messages overlap.
    Link,
}

/// Something that took time on a node.
pub type Span = lintel_sim_kernel::Span<Track>;

/// Receives each span of a run.
pub type Observer = lintel_sim_kernel::Observer<Track>;
