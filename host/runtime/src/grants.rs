//! Messages whose bodies their initiators were granted to move.

use crate::lent_landings::LentLanding;
use lintel_nal::Origin;
use lintel_types::{InterfaceNumber, NiFail, ProcessId};

/// A message whose body its initiator was granted to move, or parts of it.
pub(crate) struct Grant<S> {
    pub(crate) origin: Origin,
    pub(crate) landing: LentLanding<S>,
    /// Parts that this process has moved, and how that ended.
    pub(crate) parts: u32,
    pub(crate) fail: NiFail,
    /// The interface was closed since.
    pub(crate) is_closed: bool,
}

impl<S> Grant<S> {
    /// Of which no part is moved.
    pub(crate) fn new(origin: Origin, landing: LentLanding<S>) -> Grant<S> {
        Grant {
            origin,
            landing,
            parts: 0,
            fail: NiFail::Ok,
            is_closed: false,
        }
    }
}

/// All that haven't ended.
pub(crate) struct Grants<S>(Vec<Grant<S>>);

impl<S> Grants<S> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The initiator of one of them.
    pub(crate) fn first(&self) -> Option<Origin> {
        self.0.first().map(|grant| grant.origin)
    }

    pub(crate) fn insert(&mut self, grant: Grant<S>) {
        self.0.push(grant);
    }

    /// The grant of a lane, which has one at a time.
    pub(crate) fn of(&self, lane: u32) -> Option<&Grant<S>> {
        self.0.iter().find(|grant| grant.origin.lane == lane)
    }

    /// Ends the grant of a lane.
    pub(crate) fn take(&mut self, lane: u32) -> Option<Grant<S>> {
        self.take_if(|origin| origin.lane == lane)
    }

    /// Ends a grant of a process, if it has one.
    pub(crate) fn take_of(&mut self, process: ProcessId) -> Option<Grant<S>> {
        self.take_if(|origin| origin.process == process)
    }

    fn take_if(&mut self, is_it: impl Fn(&Origin) -> bool) -> Option<Grant<S>> {
        let index = self.0.iter().position(|grant| is_it(&grant.origin))?;
        Some(self.0.swap_remove(index))
    }

    /// An interface closes.
    pub(crate) fn close(&mut self, number: InterfaceNumber) {
        for grant in &mut self.0 {
            grant.is_closed |= grant.landing.landed.request().interface == number;
        }
    }
}

impl<S> Default for Grants<S> {
    fn default() -> Self {
        Grants(Vec::new())
    }
}
