//! The heavy part of a connection: what is known of the path to a peer.

use crate::Model;
use crate::congestion::{RoundTrip, Window};
use crate::time::{Nanos, Time};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use hashbrown::HashMap;
use lintel_types::ProcessId;
use rustc_hash::FxBuildHasher;

/// A context in which nothing is under way is kept for so long.
pub(crate) const IDLE: Nanos = Nanos::from_millis(30_000);

/// The path to a peer, which several pairs may share.
pub(crate) struct Context {
    key: ProcessId,
    pub(crate) window: Window,
    pub(crate) round_trip: RoundTrip,
    /// Bytes under way, of pairs that aren't parked.
    pub(crate) flying: u64,
    /// Pairs that would send if there were room, each once.
    pub(crate) blocked: VecDeque<u32>,
    /// When anything came from there last.
    pub(crate) heard: Time,
    pub(crate) used: Time,
}

impl Context {
    #[inline]
    pub(crate) fn admits(&self, cost: u64) -> bool {
        self.flying == 0 || self.flying + cost <= self.window.size()
    }

    fn is_idle(&self, now: Time) -> bool {
        self.flying == 0 && self.blocked.is_empty() && now.since(self.used) >= IDLE
    }
}

/// All contexts of an endpoint.
pub(crate) struct Contexts {
    model: Model,
    datagram: u64,
    slots: Vec<Option<Context>>,
    by_key: HashMap<ProcessId, u32, FxBuildHasher>,
}

impl Contexts {
    pub(crate) fn new(model: Model, datagram: u64) -> Contexts {
        Contexts {
            model,
            datagram,
            slots: Vec::new(),
            by_key: HashMap::default(),
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
            window: Window::new(self.datagram),
            round_trip: RoundTrip::default(),
            flying: 0,
            blocked: VecDeque::new(),
            heard: Time(0),
            used: now,
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
