//! What is reported of a run while it goes on, whatever its model.

use lintel_sim_goal::Track as GoalTrack;
use lintel_sim_kernel::{Bytes, SimTime};
use lintel_sim_seastar::Track as SeaStarTrack;
use lintel_sim_triggered::Track as TriggeredTrack;
use lintel_sim_verbs::Track as VerbsTrack;

/// Something that took time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The node or rank.
    pub place: Place,
    /// The track of that node or rank.
    pub track: Track,
    /// The activity, such as `send` or `interrupt`.
    pub name: &'static str,
    /// Of the message or packet, if it was one and has a length.
    pub bytes: Option<Bytes>,
    /// Time at which it begins.
    pub start: SimTime,
    /// When it ends, not before `start`.
    pub end: SimTime,
}

/// A node, or a rank if several may share a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// A node, by number.
    Node(u32),
    /// A rank, by its number.
    Rank(u32),
}

/// A part of a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Track {
    /// Its place among those of a node or rank: hosts first, links last.
    pub order: u32,
    /// The component, such as `kernel` or `links`.
    pub what: &'static str,
    /// Its number, if there may be several.
    pub number: Option<u32>,
    /// Whether its spans overlap.
    pub overlaps: bool,
}

/// Gets each span when its end is known, which is not the order of their ends.
pub type Observer = Box<dyn FnMut(Span)>;

/// Hands a model's spans on; `place` makes a node or rank of a number.
pub(crate) fn relay<T: Into<Track>>(
    mut observer: Observer,
    place: impl Fn(u32) -> Place + 'static,
) -> lintel_sim_kernel::Observer<T> {
    Box::new(move |span| {
        observer(Span {
            place: place(span.at),
            track: span.track.into(),
            name: span.name,
            bytes: span.bytes,
            start: span.start,
            end: span.end,
        })
    })
}

impl Track {
    /// One of several that are alike.
    const fn numbered(what: &'static str, number: u32) -> Self {
        Track {
            number: Some(number),
            ..Track::single(number, what)
        }
    }

    const fn single(order: u32, what: &'static str) -> Self {
        Track {
            order,
            what,
            number: None,
            overlaps: false,
        }
    }

    const fn overlapping(order: u32, what: &'static str) -> Self {
        Track {
            overlaps: true,
            ..Track::single(order, what)
        }
    }
}

/// After all processors and processes of a node.
const AFTER_HOSTS: u32 = 1 << 16;
const LINKS: Track = Track::overlapping(AFTER_HOSTS + 9, "links");

impl From<GoalTrack> for Track {
    fn from(track: GoalTrack) -> Self {
        match track {
            GoalTrack::Cpu(cpu) => Track::numbered("cpu", cpu.into()),
            GoalTrack::Network => LINKS,
        }
    }
}

impl From<SeaStarTrack> for Track {
    fn from(track: SeaStarTrack) -> Self {
        match track {
            SeaStarTrack::Process(number) => Track::numbered("process", number),
            SeaStarTrack::Kernel => Track::single(AFTER_HOSTS, "kernel"),
            SeaStarTrack::Firmware => Track::single(AFTER_HOSTS + 1, "firmware"),
            SeaStarTrack::Tx => Track::overlapping(AFTER_HOSTS + 2, "TX DMA"),
            SeaStarTrack::Rx => Track::overlapping(AFTER_HOSTS + 3, "RX DMA"),
            SeaStarTrack::Stall => Track::single(AFTER_HOSTS + 4, "RX stands still"),
            SeaStarTrack::Link => LINKS,
        }
    }
}

impl From<TriggeredTrack> for Track {
    fn from(track: TriggeredTrack) -> Self {
        match track {
            TriggeredTrack::Host => Track::single(0, "host"),
            TriggeredTrack::Interface => Track::overlapping(AFTER_HOSTS, "interface"),
            TriggeredTrack::Link => LINKS,
        }
    }
}

impl From<VerbsTrack> for Track {
    fn from(track: VerbsTrack) -> Self {
        match track {
            VerbsTrack::Process(number) => Track::numbered("process", number),
            VerbsTrack::Send => Track::single(AFTER_HOSTS, "send engine"),
            VerbsTrack::Receive => Track::single(AFTER_HOSTS + 1, "receive engine"),
            VerbsTrack::Link => LINKS,
        }
    }
}
