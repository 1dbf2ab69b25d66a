//! Whether the kernel may coalesce datagrams of one sender (`UDP_GRO`).
//!
//! That saves a system call for each datagram but the first, but asking where the
//! datagrams end takes 130 ns more a call, of the microsecond that one takes. So it is on
//! while many datagrams arrive in a row, and off while one message is waited for.

/// Datagrams in a row, after which GRO is switched on.
const ENABLE_AFTER: u32 = 4;
/// Bursts of a single datagram in a row, after which it is switched off.
const DISABLE_AFTER: u32 = 16;
/// Bursts of a single datagram in a row, after which only every `SKIP_AT_MOST`th poll
/// right behind a datagram is made at all.
const SKIP_AFTER: u32 = 8;
const SKIP_AT_MOST: u32 = 16;

/// Follows how datagrams arrive.
#[derive(Default)]
pub(crate) struct GroPolicy {
    pub(crate) is_enabled: bool,
    /// The system may have coalesced datagrams before it was switched off, and doesn't
    /// report any more where they end.
    pub(crate) may_be_coalesced: bool,
    /// Polls that found something since the socket was empty.
    in_row: u32,
    /// Polls right behind a datagram that found nothing, since one found something.
    empty_polls: u32,
    /// Such polls that were skipped in the meantime.
    skipped: u32,
}

impl GroPolicy {
    /// A poll found something; true if GRO is to be switched on.
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

    /// A poll found nothing; true if GRO is to be switched off.
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

    /// Whether a poll right behind a datagram would find nothing, by all experience.
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

    /// A datagram was refused: such a sender may send more than one at a time.
    pub(crate) fn on_refused(&mut self) {
        self.empty_polls = 0;
    }

    /// The kernel has no GRO.
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
        assert!(
            gro.may_be_coalesced,
            "datagrams coalesced before the switch"
        );
        gro.on_arrival();
        gro.on_empty();
        assert!(!gro.may_be_coalesced && !gro.is_enabled);
    }

    #[test]
    fn polls_in_vain_become_rare_until_one_finds_something() {
        let mut gro = GroPolicy::default();
        let mut polls = 0;
        for _ in 0..SKIP_AFTER + 10 * (SKIP_AT_MOST + 1) {
            gro.on_arrival();
            if !gro.expect_nothing() {
                gro.on_empty();
                polls += 1;
            }
        }
        assert_eq!(polls, SKIP_AFTER + 10);
        gro.on_arrival();
        gro.on_arrival();
        assert!(!gro.expect_nothing(), "two came together");
    }
}
