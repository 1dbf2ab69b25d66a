//! What a caller does between polls that find nothing.

use crate::spin::SpinLimit;
use core::time::Duration;

/// How long callers poll in vain until peers that haven't looked are woken, and until they are
/// woken once more, for one may have been copying. To wake a peer that polls costs it some
/// microseconds, in which this side polls in vain: so the first time is longer than that, and
/// than an interrupt takes.
const WAKE_PEERS_AFTER: [Duration; 2] = [Duration::from_micros(15), Duration::from_micros(60)];
/// How often peers are woken from then on.
const WAKE_PEERS_EVERY: Duration = Duration::from_micros(1000);
/// What the time between two looks at the clock counts at most. If more has passed, the caller didn't
/// run, and the peer may well have looked meanwhile: who woke it for that would interrupt it, and
/// would soon be woken for the same reason.
const MOST_BETWEEN_LOOKS: Duration = Duration::from_micros(5);
/// Polls in vain between two looks at the clock: a microsecond, or twenty in a program that yields its
/// processor between them.
const POLLS_PER_LOOK_AT_PEERS: u32 = 32;
/// Polls before a waiter sleeps; well above what an answer from a running peer takes. The polls
/// themselves yield the processor if others wait for it.
const POLLS_BEFORE_SLEEP: u32 = 16384;
/// Polls in vain from which on a wait is long: some microseconds.
const LONG_WAIT: u32 = 128;
/// A look at the clock costs as much as several polls.
const POLLS_PER_LOOK_AT_CLOCK: u32 = 64;

/// Counts polls in vain of all callers: when peers are woken, and when a caller yields.
#[derive(Default, Debug)]
pub struct Polling {
    /// Polls since one has found something.
    in_vain: u32,
    /// How long callers have polled since a look at the clock first followed that poll, when the last
    /// look was, and how often peers were woken since.
    polled: Duration,
    looked: Duration,
    wakes: u32,
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

    /// Callers wait for something else from now on: if peers were woken since a poll has found
    /// something, the time after which they are woken begins anew. If they weren't, it goes on, so
    /// that who sends all the time doesn't put it off.
    #[inline(always)]
    pub fn begin(&mut self) {
        if self.in_vain >= POLLS_PER_LOOK_AT_PEERS && self.wakes > 0 {
            self.in_vain = 0;
        }
    }

    /// So many polls have found nothing; whether peers are to be woken now. `now` is the time
    /// since some moment, the same in each call.
    #[inline(always)]
    pub fn on_nothing(&mut self, polls: u32, now: impl FnOnce() -> Duration) -> bool {
        let looks = self.in_vain / POLLS_PER_LOOK_AT_PEERS;
        self.in_vain = self.in_vain.wrapping_add(polls);
        self.in_vain / POLLS_PER_LOOK_AT_PEERS != looks && self.wakes_peers(looks == 0, now())
    }

    /// Whether peers are to be woken now, at the first look at the clock or another.
    #[inline(never)]
    fn wakes_peers(&mut self, is_first: bool, now: Duration) -> bool {
        if is_first {
            (self.polled, self.looked, self.wakes) = (Duration::ZERO, now, 0);
        }
        self.polled += now.saturating_sub(self.looked).min(MOST_BETWEEN_LOOKS);
        self.looked = now;
        let due = match WAKE_PEERS_AFTER.get(self.wakes as usize) {
            Some(after) => *after,
            None => WAKE_PEERS_EVERY * (self.wakes - 1),
        };
        let is_due = self.polled >= due;
        self.wakes = self.wakes.saturating_add(u32::from(is_due));
        is_due
    }

    /// Whether callers have polled in vain for a microsecond or more.
    #[inline(always)]
    pub fn is_long(&self) -> bool {
        self.in_vain >= LONG_WAIT
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

    const POLL: Duration = Duration::from_nanos(100);

    /// At which polls in vain, of that many together each time, peers are woken.
    fn wakes(polling: &mut Polling, together: u32, most: u32) -> Vec<u32> {
        let ends = (together..=most).step_by(together as usize);
        ends.filter(|polls| polling.on_nothing(together, || POLL * *polls))
            .collect()
    }

    #[test]
    fn peers_are_woken_soon_once_more_and_then_seldom() {
        let woken = wakes(&mut Polling::default(), 1, 31_000);
        // 3.2 µs to the first look at the clock, and a look each 3.2 µs from then on.
        assert_eq!(woken, [192, 640, 10_048, 20_032, 30_048]);
    }

    #[test]
    fn polls_that_are_counted_together_wake_peers_as_often() {
        let woken = wakes(&mut Polling::default(), 17, 31_000);
        assert_eq!(woken.len(), 5, "{woken:?}");
    }

    #[test]
    fn a_poll_that_finds_something_starts_the_time_anew() {
        let mut polling = Polling::default();
        assert_eq!(wakes(&mut polling, 1, 600), [192]);
        polling.on_found();
        assert!(!polling.yields(1), "it is found, not in vain");
        assert_eq!(wakes(&mut polling, 1, 600), [192]);
    }

    #[test]
    fn callers_that_wait_for_something_else_have_peers_woken_as_soon_again() {
        let mut polling = Polling::default();
        assert_eq!(wakes(&mut polling, 1, 600), [192]);
        polling.begin();
        assert_eq!(wakes(&mut polling, 1, 600), [192]);
    }

    #[test]
    fn who_sends_all_the_time_doesnt_put_off_that_peers_are_woken() {
        let mut polling = Polling::default();
        let woken: Vec<u32> = (1..=400)
            .filter(|polls| {
                polling.begin();
                polling.on_nothing(1, || POLL * *polls)
            })
            .collect();
        assert_eq!(woken, [192, 384]);
    }

    #[test]
    fn time_in_which_the_caller_didnt_run_has_no_peer_woken() {
        let mut polling = Polling::default();
        let now = |polls: u32| match polls {
            0..100 => POLL * polls,
            _ => POLL * polls + Duration::from_millis(1),
        };
        let woken: Vec<u32> = (1..=700)
            .filter(|polls| polling.on_nothing(1, || now(*polls)))
            .collect();
        assert_eq!(woken, [192, 640]);
    }

    #[test]
    fn a_count_beyond_its_type_begins_anew() {
        let mut polling = Polling::default();
        assert!(!polling.on_nothing(u32::MAX - 1, || POLL));
        assert!(!polling.on_nothing(9, || POLL * 2));
        assert_eq!(wakes(&mut polling, 1, 600), [185]);
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
