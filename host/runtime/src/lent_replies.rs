//! Replies to gets whose bytes stay in the target's memory until they have arrived.

/// Gets that aren't over at their target, by the number under which their memory is lent.
pub(crate) struct LentReplies<L>(Vec<(u64, L)>);

impl<L> LentReplies<L> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn insert(&mut self, number: u64, landed: L) {
        self.0.push((number, landed));
    }

    /// The get whose memory was lent under that number, unless it was dropped.
    pub(crate) fn remove(&mut self, number: u64) -> Option<L> {
        let index = self.0.iter().position(|(lent, _)| *lent == number)?;
        Some(self.0.swap_remove(index).1)
    }

    /// Drops gets, of an interface that closes.
    pub(crate) fn drop_if(&mut self, is_dropped: impl Fn(&L) -> bool) {
        self.0.retain(|(_, landed)| !is_dropped(landed));
    }
}

impl<L> Default for LentReplies<L> {
    fn default() -> Self {
        LentReplies(Vec::new())
    }
}
