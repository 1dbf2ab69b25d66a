//! Whether the system may put alike datagrams of one sender together (`UDP_GRO`).
//!
//! A train saves a system call for each datagram but the first. To be told where its
//! datagrams end takes 130 ns more a look, of the microsecond that one takes, so trains
//! are taken where much comes at a time, and not where one message is waited for.

/// Datagrams in a row, after which trains are taken.
const ENABLE_AFTER: u32 = 4;
/// Looks behind a datagram that found nothing, after which they aren't any more.
const DISABLE_AFTER: u32 = 16;
/// And after which only every so-manieth such look is taken at all.
const SKIP_AFTER: u32 = 8;
const SKIP_AT_MOST: u32 = 16;

/// Follows what comes.
#[derive(Default)]
pub(crate) struct GroPolicy {
    pub(crate) is_enabled: bool,
    /// The system may have put a train together before it was told not to.
    pub(crate) may_be_coalesced: bool,
    /// Looks that found something since the socket was empty.
    in_row: u32,
    /// Looks behind a datagram that found nothing, and none that found something between.
    empty_polls: u32,
    /// Looks behind a datagram that weren't taken in the meantime.
    skipped: u32,
}

impl GroPolicy {
    /// There was something; true where trains are to be taken from now on.
    #[inline]
    pub(crate) fn on_arrival(&mut self) -> bool {
        self.in_row = self.in_row.saturating_add(1);
        if self.in_row == 1 {
            return false;
        }
        self.empty_polls = 0;
        let begins = self.in_row >= ENABLE_AFTER && !self.is_enabled;
        if begins {
            self.is_enabled = true;
            self.may_be_coalesced = false;
        }
        begins
    }

    /// There was nothing; true where trains aren't to be taken from now on.
    #[inline]
    pub(crate) fn on_empty(&mut self) -> bool {
        if std::mem::take(&mut self.in_row) == 0 {
            return false;
        }
        self.empty_polls = self.empty_polls.saturating_add(1);
        self.may_be_coalesced = false;
        let ends = self.empty_polls >= DISABLE_AFTER && self.is_enabled;
        if ends {
            self.is_enabled = false;
            self.may_be_coalesced = true;
        }
        ends
    }

    /// Whether a look right behind a datagram would find nothing, by all experience.
    #[inline]
    pub(crate) fn expect_nothing(&mut self) -> bool {
        if self.empty_polls < SKIP_AFTER || self.skipped >= SKIP_AT_MOST {
            self.skipped = 0;
            return false;
        }
        self.skipped += 1;
        self.in_row = 0;
        true
    }

    /// A datagram was refused: what such a sender sends must not hide in a train.
    pub(crate) fn on_refused(&mut self) {
        self.empty_polls = 0;
    }

    /// The system knows none.
    pub(crate) fn disable(&mut self) {
        self.is_enabled = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gro_is_enabled_while_many_datagrams_arrive_in_a_row() {
        let mut gro = GroPolicy::default();
        for _ in 0..1000 {
            assert!(!gro.on_arrival(), "one by one");
            assert!(!gro.on_empty());
        }
        let begun = (1..=ENABLE_AFTER).find(|_| gro.on_arrival());
        assert_eq!(begun, Some(ENABLE_AFTER));
        assert!(gro.is_enabled && !gro.on_empty());
        gro.on_refused();
        for calm in 1..=DISABLE_AFTER {
            gro.on_arrival();
            assert_eq!(gro.on_empty(), calm == DISABLE_AFTER, "{calm}");
        }
        assert!(gro.may_be_coalesced, "one that came before the system knew");
        gro.on_arrival();
        gro.on_empty();
        assert!(!gro.may_be_coalesced && !gro.is_enabled);
    }

    #[test]
    fn looks_in_vain_become_rare_and_cease_to_be_where_they_find_something() {
        let mut gro = GroPolicy::default();
        let mut looks = 0;
        for _ in 0..SKIP_AFTER + 10 * (SKIP_AT_MOST + 1) {
            gro.on_arrival();
            if !gro.expect_nothing() {
                gro.on_empty();
                looks += 1;
            }
        }
        assert_eq!(looks, SKIP_AFTER + 10);
        gro.on_arrival();
        gro.on_arrival();
        assert!(!gro.expect_nothing(), "two came together");
    }
}
