//! Whether a peer accesses memory of the table's owner.

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::table::Table;

/// Odd while one peer accesses memory that a [`Table`] names; the peer alone writes it.
#[derive(Debug)]
pub struct AccessWord(AtomicU32);

/// Who orders a peer's mark against its look at the version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fence {
    /// The peer, in each access.
    Own,
    /// The owner: it orders a barrier of all processes when it withdraws an entry.
    OfOwner,
}

impl Default for AccessWord {
    fn default() -> Self {
        AccessWord(AtomicU32::new(0))
    }
}

impl AccessWord {
    /// Forgets what an earlier peer has left; before this one begins its first access.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Begins an access to what the table named when it had that version; false, with
    /// nothing begun, if it has another one.
    #[inline(always)]
    pub fn begin(&self, table: &Table, version: u32, by: Fence) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        // "access end", too: an owner that waits for an earlier access may see this one first.
        self.0.store(word | 1, Ordering::Release);
        order(by);
        if table.version() == version {
            return true;
        }
        self.end();
        false
    }

    /// Ends the access that has begun. Pairs with the Acquire load in
    /// [`is_over`](Self::is_over) ("access end"): an owner that sees it sees what was written.
    #[inline(always)]
    pub fn end(&self) {
        // One instruction, where the processor has such a one.
        let word = self.0.load(Ordering::Relaxed);
        self.0.store(word.wrapping_add(1), Ordering::Release);
    }

    /// For the owner, after the barrier: names the access that is under way, if one is.
    pub fn under_way(&self) -> Option<u32> {
        let word = self.0.load(Ordering::Acquire);
        (word & 1 == 1).then_some(word)
    }

    /// For the owner: whether that access has ended. A later one has looked at the version
    /// after it was changed.
    pub fn is_over(&self, access: u32) -> bool {
        self.0.load(Ordering::Acquire) != access
    }
}

/// The mark comes before the look at the version.
#[inline(always)]
fn order(by: Fence) {
    match by {
        Fence::Own => fence(Ordering::SeqCst),
        #[cfg(not(loom))]
        Fence::OfOwner => std::sync::atomic::compiler_fence(Ordering::SeqCst),
        #[cfg(loom)]
        Fence::OfOwner => {}
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_access_is_under_way_between_begin_and_end() {
        let (word, table) = (AccessWord::default(), Table::default());
        assert_eq!(word.under_way(), None);
        assert!(word.begin(&table, table.version(), Fence::Own));
        let access = word.under_way().expect("it has begun");
        assert!(!word.is_over(access));
        word.end();
        assert!(word.is_over(access) && word.under_way().is_none());
        assert!(word.begin(&table, table.version(), Fence::OfOwner));
        assert!(word.is_over(access), "this is a later one");
    }

    #[test]
    fn an_access_to_another_version_does_not_begin() {
        let (word, table) = (AccessWord::default(), Table::default());
        assert!(!word.begin(&table, table.version() + 2, Fence::Own));
        assert_eq!(word.under_way(), None);
    }
}
