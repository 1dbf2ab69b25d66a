//! Messages whose bodies their initiators were granted to move.

use crate::lent_landings::LentLanding;
use lintel_nal::Origin;
use lintel_types::{InterfaceNumber, ProcessId};

/// Messages that their initiators were granted to move, and from where they came.
pub(crate) struct Grants<S>(Vec<(Origin, LentLanding<S>)>);

impl<S> Grants<S> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn insert(&mut self, origin: Origin, landing: LentLanding<S>) {
        self.0.push((origin, landing));
    }

    /// Ends the grant of a lane, which has one at a time.
    pub(crate) fn take(&mut self, lane: u32) -> Option<LentLanding<S>> {
        self.take_if(|origin| origin.lane == lane)
    }

    /// Ends a grant of a process, if it has one.
    pub(crate) fn take_of(&mut self, process: ProcessId) -> Option<LentLanding<S>> {
        self.take_if(|origin| origin.process == process)
    }

    fn take_if(&mut self, is_it: impl Fn(&Origin) -> bool) -> Option<LentLanding<S>> {
        let index = self.0.iter().position(|(origin, _)| is_it(origin))?;
        Some(self.0.swap_remove(index).1)
    }

    /// Ends those of an interface that closes.
    pub(crate) fn close(&mut self, number: InterfaceNumber) {
        self.0
            .retain(|(_, landing)| landing.landed.request().interface != number);
    }
}

impl<S> Default for Grants<S> {
    fn default() -> Self {
        Grants(Vec::new())
    }
}
