//! [`History`]: which incarnations of a peer are over, and which one is current.

use crate::Incarnation;

/// Which incarnation of a peer has sent something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sender {
    /// The one that is known.
    Current,
    /// One that follows all that are over, while none is known.
    First(Incarnation),
    /// One that follows the known one, which has ended unnoticed.
    Successor(Incarnation),
    /// One that is over, or none.
    Stale,
}

/// The incarnations of a peer, as far as they matter: at most one is current, and all up to
/// another are over.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct History {
    current: Option<Incarnation>,
    /// The latest one that was lost, closed or followed: a tombstone.
    dead: Option<Incarnation>,
}

impl History {
    /// Of a peer whose incarnations up to `dead` are over.
    pub fn after(dead: Option<Incarnation>) -> History {
        History {
            current: None,
            dead,
        }
    }

    /// The one that messages go to, once the peer has named it.
    #[inline]
    pub fn current(&self) -> Option<Incarnation> {
        self.current
    }

    /// The current one's number on the wire, 0 if there is none.
    #[inline]
    pub fn current_number(&self) -> u64 {
        self.current.map_or(0, Incarnation::get)
    }

    /// Whether the sender with that number is the current one.
    #[inline]
    pub fn is_current(&self, number: u64) -> bool {
        self.current.is_some_and(|current| current.get() == number)
    }

    /// The latest one that is over.
    pub fn dead(&self) -> Option<Incarnation> {
        self.dead
    }

    /// The latest one that was ever known.
    pub fn latest(&self) -> Option<Incarnation> {
        self.dead.max(self.current)
    }

    /// Which incarnation has sent something that names this number as its sender's.
    #[inline]
    pub fn classify(&self, number: u64) -> Sender {
        if self.is_current(number) {
            return Sender::Current;
        }
        self.classify_other(number)
    }

    #[cold]
    fn classify_other(&self, number: u64) -> Sender {
        match Incarnation::new(number) {
            Some(sender) if Some(sender) > self.latest() => match self.current {
                None => Sender::First(sender),
                Some(_) => Sender::Successor(sender),
            },
            _ => Sender::Stale,
        }
    }

    /// The peer has named its incarnation, which isn't [stale](Sender::Stale).
    pub fn establish(&mut self, incarnation: Incarnation) {
        self.current = Some(incarnation);
    }

    /// The current incarnation is over.
    pub fn retire(&mut self) {
        *self = History::after(self.latest());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(number: u64) -> Incarnation {
        Incarnation::new(number).expect("it isn't 0")
    }

    #[test]
    fn the_first_one_is_established_and_current_from_then_on() {
        let mut history = History::default();
        assert_eq!((history.current_number(), history.latest()), (0, None));
        assert_eq!(history.classify(5), Sender::First(of(5)));
        history.establish(of(5));
        assert_eq!(history.classify(5), Sender::Current);
        assert!(history.is_current(5) && !history.is_current(0));
        assert_eq!(history.current(), Some(of(5)));
        assert_eq!(history.current_number(), 5);
        assert_eq!((history.dead(), history.latest()), (None, Some(of(5))));
    }

    #[test]
    fn an_older_one_is_stale_and_a_newer_one_a_successor() {
        let mut history = History::default();
        history.establish(of(5));
        assert_eq!(history.classify(4), Sender::Stale);
        assert_eq!(history.classify(6), Sender::Successor(of(6)));
    }

    #[test]
    fn a_retired_one_never_comes_back() {
        let mut history = History::default();
        history.establish(of(5));
        history.retire();
        assert_eq!((history.current(), history.dead()), (None, Some(of(5))));
        assert_eq!(history.classify(5), Sender::Stale);
        assert_eq!(history.classify(6), Sender::First(of(6)));
        history.retire();
        assert_eq!(history.dead(), Some(of(5)), "nothing was current");
        history.establish(of(6));
        history.retire();
        assert_eq!(history.classify(6), Sender::Stale);
    }

    #[test]
    fn a_tombstone_speaks_for_all_before_it() {
        let history = History::after(Some(of(5)));
        for number in 0..=5 {
            assert_eq!(history.classify(number), Sender::Stale, "{number}");
        }
        assert_eq!(history.classify(6), Sender::First(of(6)));
        assert_eq!(History::after(None).classify(0), Sender::Stale, "no number");
    }
}
