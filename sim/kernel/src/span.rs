//! What a world reports of its run while that goes on.

use crate::time::SimTime;
use crate::units::Bytes;

/// An activity, with its duration, on a track of a world's own kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span<Track> {
    /// The node or rank, by number.
    pub at: u32,
    /// The track of that node or rank.
    pub track: Track,
    /// The activity, such as `send` or `interrupt`.
    pub name: &'static str,
    /// Length of the message or packet, if it is one.
    pub bytes: Option<Bytes>,
    /// Time at which it begins.
    pub start: SimTime,
    /// When it ends, not before `start`.
    pub end: SimTime,
}

/// Gets each span when its end is known, which is not the order of their ends.
pub type Observer<Track> = Box<dyn FnMut(Span<Track>)>;
