//! Whether the system may put alike datagrams of one sender together (`UDP_GRO`).
//!
//! A train saves a system call for each datagram but the first. To be told where its
//! datagrams end takes 130 ns more a look, of the microsecond that one takes, so trains
//! are taken where much comes at a time, and not where one message is waited for.

/// Datagrams in a row, after which trains are taken.
const MANY: u32 = 4;
/// Looks behind a datagram that found nothing, after which they aren't any more.
const CALM: u32 = 16;
/// And after which only every so-manieth such look is taken at all.
const QUIET: u32 = 8;
const SELDOM: u32 = 16;

/// Follows what comes.
#[derive(Default)]
pub(crate) struct Trains {
    pub(crate) are_taken: bool,
    /// The system may have put a train together before it was told not to.
    pub(crate) may_hide: bool,
    /// Looks that found something since the socket was empty.
    in_row: u32,
    /// Looks behind a datagram that found nothing, and none that found something between.
    calm: u32,
    /// Looks behind a datagram that weren't taken in the meantime.
    skipped: u32,
}

impl Trains {
    /// There was something; true where trains are to be taken from now on.
    #[inline]
    pub(crate) fn on_arrival(&mut self) -> bool {
        self.in_row = self.in_row.saturating_add(1);
        if self.in_row == 1 {
            return false;
        }
        self.calm = 0;
        let begins = self.in_row >= MANY && !self.are_taken;
        if begins {
            self.are_taken = true;
            self.may_hide = false;
        }
        begins
    }

    /// There was nothing; true where trains aren't to be taken from now on.
    #[inline]
    pub(crate) fn on_empty(&mut self) -> bool {
        if std::mem::take(&mut self.in_row) == 0 {
            return false;
        }
        self.calm = self.calm.saturating_add(1);
        self.may_hide = false;
        let ends = self.calm >= CALM && self.are_taken;
        if ends {
            self.are_taken = false;
            self.may_hide = true;
        }
        ends
    }

    /// Whether a look right behind a datagram would find nothing, by all experience.
    #[inline]
    pub(crate) fn expect_nothing(&mut self) -> bool {
        if self.calm < QUIET || self.skipped >= SELDOM {
            self.skipped = 0;
            return false;
        }
        self.skipped += 1;
        self.in_row = 0;
        true
    }

    /// A datagram was refused: what such a sender sends must not hide in a train.
    pub(crate) fn on_refused(&mut self) {
        self.calm = 0;
    }

    /// The system knows none.
    pub(crate) fn forgo(&mut self) {
        self.are_taken = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trains_are_taken_while_much_comes_at_a_time() {
        let mut trains = Trains::default();
        for _ in 0..1000 {
            assert!(!trains.on_arrival(), "one by one");
            assert!(!trains.on_empty());
        }
        let begun = (1..=MANY).find(|_| trains.on_arrival());
        assert_eq!(begun, Some(MANY));
        assert!(trains.are_taken && !trains.on_empty());
        trains.on_refused();
        for calm in 1..=CALM {
            trains.on_arrival();
            assert_eq!(trains.on_empty(), calm == CALM, "{calm}");
        }
        assert!(trains.may_hide, "one that came before the system knew");
        trains.on_arrival();
        trains.on_empty();
        assert!(!trains.may_hide && !trains.are_taken);
    }

    #[test]
    fn looks_in_vain_become_rare_and_cease_to_be_where_they_find_something() {
        let mut trains = Trains::default();
        let mut looks = 0;
        for _ in 0..QUIET + 10 * (SELDOM + 1) {
            trains.on_arrival();
            if !trains.expect_nothing() {
                trains.on_empty();
                looks += 1;
            }
        }
        assert_eq!(looks, QUIET + 10);
        trains.on_arrival();
        trains.on_arrival();
        assert!(!trains.expect_nothing(), "two came together");
    }
}
