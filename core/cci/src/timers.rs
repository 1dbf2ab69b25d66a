//! Time, and who is to be looked at when.

use crate::connection::ConnectionId;
use alloc::collections::BTreeSet;

/// A moment or a length of time, microseconds; moments count from any start.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Time(pub u64);

/// By how much a time that is asked for roughly may be ahead: the tick of the slowest system
/// clock, 100 a second.
pub const TICK: Time = Time(10_000);

impl Time {
    /// The moment that much later.
    pub fn after(self, length: Time) -> Time {
        Time(self.0.saturating_add(length.0))
    }
}

/// Connections by the time at which they are to be looked at; each is in it once at most.
pub(crate) struct Timers {
    set: BTreeSet<(Time, ConnectionId)>,
}

impl Timers {
    pub(crate) fn new() -> Timers {
        Timers {
            set: BTreeSet::new(),
        }
    }

    pub(crate) fn first(&self) -> Option<Time> {
        self.set.first().map(|(at, _)| *at)
    }

    /// The first whose time has come.
    pub(crate) fn pop(&mut self, now: Time) -> Option<ConnectionId> {
        let (at, id) = *self.set.first()?;
        (at <= now).then(|| {
            self.set.pop_first();
            id
        })
    }

    pub(crate) fn insert(&mut self, at: Time, id: ConnectionId) {
        self.set.insert((at, id));
    }

    pub(crate) fn remove(&mut self, at: Time, id: ConnectionId) {
        self.set.remove(&(at, id));
    }
}
