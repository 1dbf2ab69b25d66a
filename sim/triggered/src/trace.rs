//! What is reported of a run while it goes on: spans on tracks.

use std::collections::{BTreeMap, VecDeque};

use lintel_sim_kernel::SimTime;

/// Where something takes time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Track {
    /// The host, noise included.
    Host,
    /// The interface, from a packet's being asked for to its leaving. Packets overlap.
    Interface,
    /// The network, on the way to this node. Packets overlap.
    Link,
}

/// Something that took time on a node.
pub type Span = lintel_sim_kernel::Span<Track>;

/// Receives each span of a run.
pub type Observer = lintel_sim_kernel::Observer<Track>;

/// An observer, and what it needs to know of packets under way.
pub(crate) struct Trace {
    observer: Observer,
    /// When packets have left, by their ends. Those of a pair stay in order.
    under_way: BTreeMap<(u32, u32), VecDeque<SimTime>>,
}

impl Trace {
    pub(crate) fn new(observer: Observer) -> Self {
        Trace {
            observer,
            under_way: BTreeMap::new(),
        }
    }

    pub(crate) fn report(
        &mut self,
        (at, track): (u32, Track),
        name: &'static str,
        start: SimTime,
        end: SimTime,
    ) {
        (self.observer)(Span {
            at,
            track,
            name,
            bytes: None,
            start,
            end,
        });
    }

    pub(crate) fn leave(&mut self, from: u32, to: u32, now: SimTime) {
        self.under_way.entry((from, to)).or_default().push_back(now);
    }

    pub(crate) fn arrive(&mut self, from: u32, to: u32, name: &'static str, now: SimTime) {
        // What left before the observer was set isn't reported.
        let Some(of_pair) = self.under_way.get_mut(&(from, to)) else {
            return;
        };
        let left = of_pair.pop_front();
        if of_pair.is_empty() {
            self.under_way.remove(&(from, to));
        }
        if let Some(left) = left {
            self.report((to, Track::Link), name, left, now);
        }
    }
}
