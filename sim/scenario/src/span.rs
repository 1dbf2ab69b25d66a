//! What is told of a run while it goes on, whatever its model.

use lintel_sim_kernel::SimTime;
use lintel_sim_seastar::Track as SeaStarTrack;
use lintel_sim_triggered::Track as TriggeredTrack;
use lintel_sim_verbs::Track as VerbsTrack;

/// Something that took time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Where.
    pub place: Place,
    /// On which of its tracks.
    pub track: Track,
    /// What it was.
    pub name: &'static str,
    /// How much, with its unit, where that is known.
    pub size: Option<(&'static str, u64)>,
    /// From then.
    pub start: SimTime,
    /// Until then.
    pub end: SimTime,
}

/// A node, or a rank where several may share one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// A node, by number.
    Node(u32),
    /// A rank.
    Rank(u32),
}

/// A part of a place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Track {
    /// Its place among those of a node or rank: hosts first, links last.
    pub order: u32,
    /// What it is.
    pub what: &'static str,
    /// Which, where there may be several.
    pub number: Option<u32>,
    /// Whether its spans overlap.
    pub overlaps: bool,
}

/// Gets each span when its end is known, which is not the order of their ends.
pub type Observer = Box<dyn FnMut(Span)>;

/// Hands a model's spans on.
pub(crate) fn relay<S: Into<Span>>(mut observer: Observer) -> Box<dyn FnMut(S)> {
    Box::new(move |span| observer(span.into()))
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

impl From<lintel_sim_goal::Span> for Span {
    fn from(span: lintel_sim_goal::Span) -> Self {
        let unit = if span.name == "calc" { "ns" } else { "bytes" };
        Span {
            place: Place::Rank(span.rank),
            track: match span.track {
                lintel_sim_goal::Track::Cpu(cpu) => Track::numbered("cpu", cpu.into()),
                lintel_sim_goal::Track::Way => LINKS,
            },
            name: span.name,
            size: Some((unit, span.size)),
            start: span.start,
            end: span.end,
        }
    }
}

impl From<lintel_sim_seastar::Span> for Span {
    fn from(span: lintel_sim_seastar::Span) -> Self {
        Span {
            place: Place::Node(span.node),
            track: match span.track {
                SeaStarTrack::Process(number) => Track::numbered("process", number),
                SeaStarTrack::Kernel => Track::single(AFTER_HOSTS, "kernel"),
                SeaStarTrack::Firmware => Track::single(AFTER_HOSTS + 1, "firmware"),
                SeaStarTrack::Tx => Track::overlapping(AFTER_HOSTS + 2, "TX DMA"),
                SeaStarTrack::Rx => Track::overlapping(AFTER_HOSTS + 3, "RX DMA"),
                SeaStarTrack::Stall => Track::single(AFTER_HOSTS + 4, "RX stands still"),
                SeaStarTrack::Link => LINKS,
            },
            name: span.name,
            size: span.bytes.map(|bytes| ("bytes", bytes)),
            start: span.start,
            end: span.end,
        }
    }
}

impl From<lintel_sim_triggered::Span> for Span {
    fn from(span: lintel_sim_triggered::Span) -> Self {
        Span {
            place: Place::Node(span.node),
            track: match span.track {
                TriggeredTrack::Host => Track::single(0, "host"),
                TriggeredTrack::Interface => Track::overlapping(AFTER_HOSTS, "interface"),
                TriggeredTrack::Link => LINKS,
            },
            name: span.name,
            size: None,
            start: span.start,
            end: span.end,
        }
    }
}

impl From<lintel_sim_verbs::Span> for Span {
    fn from(span: lintel_sim_verbs::Span) -> Self {
        Span {
            place: Place::Node(span.node),
            track: match span.track {
                VerbsTrack::Process(number) => Track::numbered("process", number),
                VerbsTrack::Send => Track::single(AFTER_HOSTS, "send engine"),
                VerbsTrack::Receive => Track::single(AFTER_HOSTS + 1, "receive engine"),
                VerbsTrack::Link => LINKS,
            },
            name: span.name,
            size: Some(("bytes", span.bytes.0)),
            start: span.start,
            end: span.end,
        }
    }
}
