//! Whether the system may put alike datagrams of one sender together (`UDP_GRO`).
//!
//! A train saves a system call for each datagram but the first. To be told where its
//! datagrams end takes 130 ns more a look, of the microsecond that one takes, so trains
//! are taken where much comes at a time, and not where one message is waited for.

/// Datagrams in a row, after which trains are taken.
const MANY: u32 = 4;
/// Datagrams that came one by one, after which they aren't any more.
const CALM: u32 = 64;

/// Follows what comes.
#[derive(Default)]
pub(crate) struct Trains {
    pub(crate) are_taken: bool,
    /// The system may have put a train together before it was told not to.
    pub(crate) may_hide: bool,
    /// Looks that found something since the socket was empty.
    in_row: u32,
    /// Times that the socket was empty behind the only datagram in it.
    calm: u32,
}

impl Trains {
    /// There was something; true where trains are to be taken from now on.
    #[inline]
    pub(crate) fn on_arrival(&mut self) -> bool {
        self.in_row = self.in_row.saturating_add(1);
        let begins = self.in_row >= MANY && !self.are_taken;
        if begins {
            self.are_taken = true;
            self.may_hide = false;
            self.calm = 0;
        }
        begins
    }

    /// There was nothing; true where trains aren't to be taken from now on.
    #[inline]
    pub(crate) fn on_empty(&mut self) -> bool {
        if self.in_row == 0 {
            return false;
        }
        self.calm = if self.in_row == 1 { self.calm + 1 } else { 0 };
        self.in_row = 0;
        self.may_hide = false;
        let ends = self.calm >= CALM && self.are_taken;
        if ends {
            self.are_taken = false;
            self.may_hide = true;
        }
        ends
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
        for calm in 1..2 * CALM {
            if calm == CALM {
                trains.on_refused();
            }
            trains.on_arrival();
            assert_eq!(trains.on_empty(), calm == 2 * CALM - 1, "{calm}");
        }
        assert!(trains.may_hide, "one that came before the system knew");
        trains.on_arrival();
        trains.on_empty();
        assert!(!trains.may_hide && !trains.are_taken);
    }
}
