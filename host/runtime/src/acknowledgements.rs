//! Acknowledgements of puts that land in one look: those to one process go together.

use lintel_types::{InterfaceNumber, ProcessId};
use lintel_wire::{Acknowledgements, Words};

/// What a look has to acknowledge yet: to one process, of one interface.
pub(crate) struct GatheredAcknowledgements {
    to: ProcessId,
    /// How many there are.
    count: usize,
    message: Acknowledgements,
}

impl GatheredAcknowledgements {
    /// None yet, to that process and of that interface.
    pub(crate) fn new(to: ProcessId, interface: InterfaceNumber) -> GatheredAcknowledgements {
        GatheredAcknowledgements {
            to,
            count: 0,
            message: Acknowledgements::new(interface),
        }
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether there is room for another one, to that process and of that interface.
    #[inline(always)]
    pub(crate) fn takes(&self, to: ProcessId, interface: InterfaceNumber) -> bool {
        self.to == to
            && self.message.interface() == interface
            && self.count < Acknowledgements::MOST
    }

    /// Adds one, for which there is room.
    #[inline(always)]
    pub(crate) fn add(&mut self, token: u32) {
        self.message.push(token, self.count);
        self.count += 1;
    }

    /// Whom they go to, and the message; none are left.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> (ProcessId, Words) {
        let (to, words) = (self.to, self.message.to_words());
        *self = GatheredAcknowledgements::new(to, self.message.interface());
        (to, words)
    }
}
