//! What is reported of a run while it goes on.

/// Where something takes time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Track {
    /// A processor of the rank.
    Cpu(u8),
    /// The network, on the way to the rank. Messages overlap.
    Network,
}

/// Something that took time at a rank.
pub type Span = lintel_sim_kernel::Span<Track>;

/// Receives each span of a run.
pub type Observer = lintel_sim_kernel::Observer<Track>;
