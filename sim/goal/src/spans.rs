//! What is told of a run while it goes on.

use lintel_sim_kernel::SimTime;

use crate::goal::Rank;

/// Where something takes time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Track {
    /// A processor of the rank.
    Cpu(u8),
    /// The network, on the way to the rank. Messages overlap.
    Way,
}

/// Something that took time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// At this rank.
    pub rank: Rank,
    /// There.
    pub track: Track,
    /// What it was.
    pub name: &'static str,
    /// Bytes, or nanoseconds of work.
    pub size: u64,
    /// From then.
    pub start: SimTime,
    /// Until then.
    pub end: SimTime,
}

/// Gets each span when its end is known, which is not the order of their ends.
pub type Observer = Box<dyn FnMut(Span)>;
