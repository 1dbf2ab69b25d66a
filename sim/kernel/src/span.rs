//! What a world tells of its run while that goes on.

use crate::time::SimTime;
use crate::units::Bytes;

/// Something that took time, on a track of a world's own kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span<Track> {
    /// The node or rank, by number.
    pub at: u32,
    /// On which of its tracks.
    pub track: Track,
    /// What it was.
    pub name: &'static str,
    /// Of the message or packet, where it was one.
    pub bytes: Option<Bytes>,
    /// From then.
    pub start: SimTime,
    /// Until then.
    pub end: SimTime,
}

/// Gets each span when its end is known, which is not the order of their ends.
pub type Observer<Track> = Box<dyn FnMut(Span<Track>)>;
