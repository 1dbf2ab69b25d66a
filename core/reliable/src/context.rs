//! [`Context`]: the path state of a connection, congestion control towards a peer.

use crate::congestion::{RoundTrip, Window};
use crate::time::{Nanos, Time};
use crate::{Model, PairId};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use hashbrown::HashMap;
use lintel_types::ProcessId;
use rustc_hash::FxBuildHasher;

/// A context in which nothing is in flight is closed after so long.
pub(crate) const CONTEXT_IDLE: Nanos = Nanos::from_millis(30_000);

/// How often the processes of a node exchange what they know of a path: some round trips of
/// a short path, and rare enough for a file.
const SYNC: Nanos = Nanos::from_micros(200);
/// Round-trip times that other processes report are cut to this, nanoseconds.
const MAX_ROUND_TRIP: u64 = 10_000_000_000;

/// What several processes know of the path to a node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Path {
    /// Bytes that all of them together may have in flight (the congestion window).
    pub window: u64,
    /// The slow-start threshold, bytes.
    pub ssthresh: u64,
    /// Smoothed round-trip time (RFC 6298); 0 if it isn't known.
    pub srtt: Nanos,
    /// Variation of the round-trip time (RFC 6298).
    pub rttvar: Nanos,
    /// When a packet last arrived from there.
    pub last_heard: Time,
    /// Processes that use the path, about.
    pub users: u32,
}

/// Where the processes of a node share what they know of paths ([`Model::Node`]). Their
/// times count from the same moment.
pub trait Paths: Send {
    /// What is known of the path to a node; `None` if that is kept nowhere. This process
    /// counts as a user from now on, for a while.
    fn load(&mut self, node: u32, now: Time) -> Option<Path>;

    /// Replaces what is known of the path to a node.
    fn store(&mut self, node: u32, path: &Path);
}

/// The path to a peer, which several pairs may share.
pub(crate) struct Context {
    key: ProcessId,
    /// What was known together at the last exchange, and when that was.
    known: Path,
    synced_at: Time,
    pub(crate) window: Window,
    pub(crate) round_trip: RoundTrip,
    /// Bytes in flight, of pairs that aren't parked.
    pub(crate) in_flight: u64,
    /// Pairs that wait for the window or the pace, each once.
    pub(crate) blocked: VecDeque<PairId>,
    /// When a packet last arrived from there.
    pub(crate) last_heard: Time,
    /// When a packet was last sent there.
    pub(crate) last_used: Time,
}

impl Context {
    /// Whether a packet of that cost may be sent; one at a time always may.
    #[inline]
    pub(crate) fn admits(&self, cost: u64) -> bool {
        self.in_flight == 0 || self.in_flight + cost <= self.share()
    }

    /// Bytes that this process may have in flight.
    #[inline]
    pub(crate) fn share(&self) -> u64 {
        match self.known.users {
            0 | 1 => self.window.size(), // A division takes as long as all that precedes it.
            users => self.window.size() / u64::from(users),
        }
    }

    /// Combines what this process has found out about the path with what others have:
    /// changes of the window add up, round-trip times are averaged.
    #[cold]
    fn sync(&mut self, now: Time, paths: &mut dyn Paths) {
        self.synced_at = now;
        let Some(others) = paths.load(self.key.nid, now) else {
            return;
        };
        let (known, own) = (self.known, self.path());
        if others.window == 0 {
            self.known = Path {
                users: others.users,
                ..own
            };
            return paths.store(self.key.nid, &self.known);
        }
        let changed = |theirs: u64, own: u64, known: u64| match known {
            0 => theirs,
            known => (theirs + own).saturating_sub(known),
        };
        let window = changed(others.window.min(1 << 40), own.window, known.window);
        let ssthresh = changed(others.ssthresh.min(1 << 40), own.ssthresh, known.ssthresh);
        self.window.adopt(window, ssthresh);
        let middle = |theirs: Nanos, own: Nanos| match (theirs.0.min(MAX_ROUND_TRIP), own.0) {
            (0, one) | (one, 0) => Nanos(one),
            (one, other) => Nanos((one + other) / 2),
        };
        self.round_trip.srtt = middle(others.srtt, own.srtt);
        self.round_trip.rttvar = middle(others.rttvar, own.rttvar);
        self.last_heard = self.last_heard.max(others.last_heard.min(now));
        self.known = Path {
            users: others.users,
            ..self.path()
        };
        if own != known {
            paths.store(self.key.nid, &self.known);
        }
    }

    fn path(&self) -> Path {
        Path {
            window: self.window.size(),
            ssthresh: self.window.ssthresh(),
            srtt: self.round_trip.srtt,
            rttvar: self.round_trip.rttvar,
            last_heard: self.last_heard,
            users: self.known.users,
        }
    }

    fn is_idle(&self, now: Time) -> bool {
        self.in_flight == 0 && self.blocked.is_empty() && now.since(self.last_used) >= CONTEXT_IDLE
    }
}

/// Names a context of an endpoint: its slot, plus one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ContextIndex(NonZeroU32);

impl ContextIndex {
    fn of_slot(slot: usize) -> ContextIndex {
        let number = u32::try_from(slot + 1).ok().and_then(NonZeroU32::new);
        ContextIndex(number.expect("there are fewer contexts than pids"))
    }

    #[inline]
    fn slot(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// All contexts of an endpoint.
pub(crate) struct Contexts {
    model: Model,
    datagram: u64,
    slots: Vec<Option<Context>>,
    by_key: HashMap<ProcessId, ContextIndex, FxBuildHasher>,
    paths: Option<Box<dyn Paths>>,
}

impl Contexts {
    /// Shares what is known of paths from now on.
    pub(crate) fn share(&mut self, paths: Box<dyn Paths>) {
        self.paths = Some(paths);
    }

    /// As [`get`](Self::get), with what other processes have found out lately.
    #[inline]
    pub(crate) fn get_synced(&mut self, index: ContextIndex, now: Time) -> &mut Context {
        if let (Some(paths), Some(context)) = (&mut self.paths, &mut self.slots[index.slot()]) {
            if context.known.window == 0 || now.since(context.synced_at) >= SYNC {
                context.sync(now, paths.as_mut());
            }
        }
        self.get(index)
    }

    pub(crate) fn new(model: Model, datagram: u64) -> Contexts {
        Contexts {
            model,
            datagram,
            slots: Vec::new(),
            by_key: HashMap::default(),
            paths: None,
        }
    }

    /// The context for a peer, which is made if there is none.
    pub(crate) fn open(&mut self, peer: ProcessId, now: Time) -> ContextIndex {
        let key = match self.model {
            Model::Rc => peer,
            Model::Xrc | Model::Node => ProcessId::new(peer.nid, 0),
        };
        if let Some(index) = self.by_key.get(&key) {
            return *index;
        }
        let context = Context {
            key,
            known: Path::default(),
            synced_at: Time(0),
            window: Window::new(self.datagram),
            round_trip: RoundTrip::default(),
            in_flight: 0,
            blocked: VecDeque::new(),
            last_heard: Time(0),
            last_used: now,
        };
        let free = self.slots.iter().position(Option::is_none);
        let slot = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(context);
        let index = ContextIndex::of_slot(slot);
        self.by_key.insert(key, index);
        index
    }

    #[inline]
    pub(crate) fn get(&mut self, index: ContextIndex) -> &mut Context {
        self.slots[index.slot()]
            .as_mut()
            .expect("pairs forget a context before it is closed")
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The names of all contexts.
    pub(crate) fn indices(&self) -> Vec<ContextIndex> {
        self.by_key.values().copied().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Bytes of memory, about.
    pub(crate) fn bytes(&self) -> usize {
        let queues: usize = self
            .slots
            .iter()
            .flatten()
            .map(|c| c.blocked.capacity() * size_of::<PairId>())
            .sum();
        self.slots.capacity() * size_of::<Option<Context>>()
            + self.by_key.capacity() * (size_of::<(ProcessId, u32)>() + 1)
            + queues
    }

    /// Those that weren't used for long.
    pub(crate) fn idle(&self, now: Time) -> Vec<ContextIndex> {
        let is_idle = |slot: &Option<Context>| slot.as_ref().is_some_and(|c| c.is_idle(now));
        let numbered = self.slots.iter().enumerate();
        numbered
            .filter(|(_, slot)| is_idle(slot))
            .map(|(slot, _)| ContextIndex::of_slot(slot))
            .collect()
    }

    pub(crate) fn close(&mut self, index: ContextIndex) {
        if let Some(context) = self.slots[index.slot()].take() {
            self.by_key.remove(&context.key);
        }
    }
}

#[cfg(test)]
mod tests;
