//! What a caller does between polls that find nothing.

use crate::spin::SpinLimit;
use core::time::Duration;

/// Polls in vain after which peers that haven't looked are woken: soon, and once more for
/// those that may have been copying.
const WAKE_PEERS_AFTER: [u32; 2] = [128, 512];
/// Polls in vain after which peers are woken from then on.
const WAKE_PEERS_EVERY: u32 = 20_000;
/// Polls before a waiter sleeps; well above what an answer from a running peer takes. The polls
/// themselves yield the processor if others wait for it.
const POLLS_BEFORE_SLEEP: u32 = 16384;
/// A look at the clock costs as much as several polls.
const POLLS_PER_LOOK_AT_CLOCK: u32 = 64;

/// Counts polls in vain of all callers: when peers are woken, and when a caller yields.
#[derive(Default, Debug)]
pub struct Polling {
    /// Polls since one has found something.
    in_vain: u32,
    /// How long callers poll before they yield.
    spin: SpinLimit,
}

impl Polling {
    /// A poll has found something.
    #[inline(always)]
    pub fn on_found(&mut self) {
        self.in_vain = 0;
        self.spin.found();
    }

    /// So many polls have found nothing; whether peers are to be woken now.
    #[inline(always)]
    pub fn on_nothing(&mut self, polls: u32) -> bool {
        let before = self.in_vain;
        self.in_vain += polls;
        let passed = |after: &u32| before < *after && self.in_vain >= *after;
        WAKE_PEERS_AFTER.iter().any(passed) || self.in_vain >= WAKE_PEERS_EVERY
    }

    /// Peers have been woken.
    pub fn on_peers_woken(&mut self) {
        self.in_vain %= WAKE_PEERS_EVERY;
    }

    /// After so many polls: whether the caller yields its processor now.
    #[inline(always)]
    pub fn yields(&mut self, polls: u32) -> bool {
        self.in_vain > 0 && self.spin.in_vain(polls)
    }

    /// A caller has yielded its processor for so long.
    pub fn on_yielded(&mut self, took: Duration) {
        self.spin.yielded(took);
    }
}

/// The polls of one caller that waits for something.
#[derive(Default, Debug)]
pub struct Wait {
    polls: u32,
}

/// What a caller does that has polled and still waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitNext {
    /// Poll again.
    Poll,
    /// Poll again unless its time is over.
    CheckDeadline,
    /// Sleep, then poll again unless its time is over.
    Sleep,
}

impl Wait {
    /// A poll, during which something was posted or counted (`active`) or not.
    #[inline]
    pub fn on_polled(&mut self, active: bool) -> WaitNext {
        self.polls = if active { 1 } else { self.polls + 1 };
        if self.polls >= POLLS_BEFORE_SLEEP {
            return WaitNext::Sleep;
        }
        match self.polls % POLLS_PER_LOOK_AT_CLOCK {
            1 => WaitNext::CheckDeadline,
            _ => WaitNext::Poll,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    #[test]
    fn peers_are_woken_soon_once_more_and_then_seldom() {
        let mut polling = Polling::default();
        let wakes = (1..=2 * WAKE_PEERS_EVERY).filter(|_| {
            let wakes = polling.on_nothing(1);
            if wakes {
                polling.on_peers_woken();
            }
            wakes
        });
        let often = [128, 512, WAKE_PEERS_EVERY];
        let again = often.map(|polls| polls + WAKE_PEERS_EVERY);
        assert_eq!(wakes.collect::<Vec<u32>>(), [often, again].concat());
    }

    #[test]
    fn polls_that_are_counted_together_wake_peers_as_often() {
        let mut polling = Polling::default();
        let wakes = (1..=600).filter(|_| polling.on_nothing(17));
        assert_eq!(wakes.collect::<Vec<u32>>(), [8, 31]);
    }

    #[test]
    fn a_poll_that_finds_something_starts_the_count_anew() {
        let mut polling = Polling::default();
        assert!(!(1..128).any(|_| polling.on_nothing(1)));
        polling.on_found();
        assert!(!polling.yields(1), "it is found, not in vain");
        assert_eq!((1..=128).find(|_| polling.on_nothing(1)), Some(128));
    }

    #[test]
    fn a_waiter_checks_its_deadline_seldom_and_sleeps_after_many_polls_without_activity() {
        let mut wait = Wait::default();
        let first: Vec<WaitNext> = (0..130).map(|_| wait.on_polled(false)).collect();
        let checks = |at: &usize| first[*at] == WaitNext::CheckDeadline;
        assert_eq!(
            (0..130).filter(checks).collect::<Vec<usize>>(),
            [0, 64, 128]
        );
        assert_eq!(wait.on_polled(true), WaitNext::CheckDeadline);
        let sleeps = (2..).find(|_| wait.on_polled(false) == WaitNext::Sleep);
        assert_eq!(sleeps, Some(POLLS_BEFORE_SLEEP));
        assert_eq!(
            wait.on_polled(false),
            WaitNext::Sleep,
            "nothing has happened"
        );
    }
}
