//! The heavy part of a connection: what is known of the path to a peer.

use crate::Model;
use crate::congestion::{RoundTrip, Window};
use crate::time::{Nanos, Time};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hashbrown::HashMap;
use lintel_types::ProcessId;
use rustc_hash::FxBuildHasher;

/// A context in which nothing is under way is kept for so long.
pub(crate) const CONTEXT_IDLE: Nanos = Nanos::from_millis(30_000);

/// How often what processes know of a path is brought together: some round trips of a
/// short path, and rare enough for a file.
const SYNC: Nanos = Nanos::from_micros(200);
/// No path is longer.
const LONGEST: u64 = 10_000_000_000;

/// What several processes know of the path to a node.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Path {
    /// Bytes that all of them together may have under way.
    pub window: u64,
    /// Bytes from which on the window grows slowly.
    pub ssthresh: u64,
    /// Smoothed round-trip time; 0: not known.
    pub srtt: Nanos,
    /// Its variation.
    pub rttvar: Nanos,
    /// When anything came from there last.
    pub last_heard: Time,
    /// How many use the path, about.
    pub users: u32,
}

/// Where the processes of a node tell each other of paths ([`Model::Node`]). Their times
/// count from the same moment.
pub trait Paths: Send {
    /// What is known of the path to a node; nothing if that is nowhere kept. This process
    /// counts as a user from now on, for a while.
    fn load(&mut self, node: u32, now: Time) -> Option<Path>;

    /// This process knows better.
    fn store(&mut self, node: u32, path: &Path);
}

/// The path to a peer, which several pairs may share.
pub(crate) struct Context {
    key: ProcessId,
    /// What the others knew when that was looked at last, and when.
    known: Path,
    synced_at: Time,
    pub(crate) window: Window,
    pub(crate) round_trip: RoundTrip,
    /// Bytes under way, of pairs that aren't parked.
    pub(crate) in_flight: u64,
    /// Pairs that would send if there were room, each once.
    pub(crate) blocked: VecDeque<u32>,
    /// When anything came from there last.
    pub(crate) last_heard: Time,
    pub(crate) last_used: Time,
}

impl Context {
    #[inline]
    pub(crate) fn admits(&self, cost: u64) -> bool {
        self.in_flight == 0 || self.in_flight + cost <= self.share()
    }

    /// Bytes that this process may have under way.
    #[inline]
    pub(crate) fn share(&self) -> u64 {
        self.window.size() / u64::from(self.known.users.max(1))
    }

    /// Brings what this process has found out about the path, and what others have,
    /// together: changes of the window add up, round-trip times are averaged.
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
        let middle = |theirs: Nanos, own: Nanos| match (theirs.0.min(LONGEST), own.0) {
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

/// All contexts of an endpoint.
pub(crate) struct Contexts {
    model: Model,
    datagram: u64,
    slots: Vec<Option<Context>>,
    by_key: HashMap<ProcessId, u32, FxBuildHasher>,
    paths: Option<Box<dyn Paths>>,
}

impl Contexts {
    pub(crate) fn share(&mut self, paths: Box<dyn Paths>) {
        self.paths = Some(paths);
    }

    /// As [`get`](Self::get), with what other processes have found out lately.
    #[inline]
    pub(crate) fn get_synced(&mut self, index: u32, now: Time) -> &mut Context {
        if let (Some(paths), Some(context)) = (&mut self.paths, &mut self.slots[index as usize]) {
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

    /// The context for a peer; made where there is none.
    pub(crate) fn open(&mut self, peer: ProcessId, now: Time) -> u32 {
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
        let index = free.unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[index] = Some(context);
        self.by_key.insert(key, index as u32);
        index as u32
    }

    #[inline]
    pub(crate) fn get(&mut self, index: u32) -> &mut Context {
        self.slots[index as usize]
            .as_mut()
            .expect("a pair forgets a context before it goes")
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The numbers of all contexts.
    pub(crate) fn indices(&self) -> Vec<u32> {
        self.by_key.values().copied().collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Bytes that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        let queues: usize = self
            .slots
            .iter()
            .flatten()
            .map(|c| c.blocked.capacity() * 4)
            .sum();
        self.slots.capacity() * size_of::<Option<Context>>()
            + self.by_key.capacity() * (size_of::<(ProcessId, u32)>() + 1)
            + queues
    }

    /// Those that nobody has used for long.
    pub(crate) fn idle(&self, now: Time) -> Vec<u32> {
        let idle = |slot: &Option<Context>| slot.as_ref().is_some_and(|c| c.is_idle(now));
        let numbered = (0u32..).zip(&self.slots);
        numbered
            .filter(|(_, slot)| idle(slot))
            .map(|(index, _)| index)
            .collect()
    }

    pub(crate) fn close(&mut self, index: u32) {
        if let Some(context) = self.slots[index as usize].take() {
            self.by_key.remove(&context.key);
        }
    }
}
