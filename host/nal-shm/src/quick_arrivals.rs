//! Short messages from the sender whose turn it is, in few instructions.

use crate::ShmNal;
use crate::inbound::Inbound;
use crate::record::FORM_MASK;
use lintel_claim::Claim;
use lintel_nal::Origin;
use lintel_types::ALWAYS_COPIED;
use lintel_wire::Words;

/// A short message that has arrived: its sender, its header, and its bytes.
pub type QuickArrival = (Origin, Words, Claim);

impl Inbound {
    #[inline(always)]
    fn peek_quickly(&mut self, is_wanted: impl FnOnce(u64) -> bool) -> Option<QuickArrival> {
        let record = self
            .receiver_mut()
            .peek_if(|first| first & FORM_MASK == 0 && is_wanted(first))?;
        let is_short = record.payload.len() <= ALWAYS_COPIED;
        self.receiver_mut().fetch_payload();
        is_short.then(|| (self.origin(), record.words, record.payload))
    }
}

impl ShmNal {
    /// The next message, if its sender's turn isn't over, its few bytes came with it and its first
    /// word is wanted. It stays the next one until [`done_quickly`](Self::done_quickly).
    #[inline(always)]
    pub fn peek_quickly(&mut self, is_wanted: impl FnOnce(u64) -> bool) -> Option<QuickArrival> {
        match self.has_turn_ended() {
            true => None,
            false => self.inbound.get_mut(self.cursor)?.peek_quickly(is_wanted),
        }
    }

    /// The message that [`peek_quickly`](Self::peek_quickly) gave has been dealt with.
    #[inline(always)]
    pub fn done_quickly(&mut self) {
        self.count_arrival();
        if let Some(inbound) = self.inbound.get_mut(self.cursor) {
            inbound.receiver_mut().advance();
        }
    }
}
