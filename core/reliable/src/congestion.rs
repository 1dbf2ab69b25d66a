//! How fast a path may be sent on: round-trip time, and a congestion window.

use crate::time::{Nanos, Time};

/// What a receiver's kernel accounts for a datagram beyond its bytes, about.
pub(crate) const OVERHEAD: u64 = 1024;
/// Bytes that may be in flight before anything is known of a path.
const INITIAL_WINDOW: u64 = 128 << 10;
/// Bytes in flight at most: more gains nothing even at 10 GB/s and 100 µs.
const MAX_WINDOW: u64 = 1 << 20;
/// The shortest timeout: a receiver's thread may just have lost its processor.
const MIN_TIMEOUT: Nanos = Nanos::from_millis(2);
/// The timeout before the round-trip time is known.
const INITIAL_TIMEOUT: Nanos = Nanos::from_millis(20);
/// Paths with a longer round trip are paced; on shorter ones buffers absorb a burst.
const MIN_PACED_RTT: Nanos = Nanos::from_millis(1);
/// A sender may be so far ahead of its pace.
const MAX_BURST: Nanos = Nanos::from_millis(1);

/// Smoothed round-trip time and its variation, as RFC 6298 has them.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RoundTrip {
    pub(crate) srtt: Nanos,
    pub(crate) rttvar: Nanos,
}

impl RoundTrip {
    pub(crate) fn sample(&mut self, taken: Nanos) {
        if self.srtt == Nanos(0) {
            *self = RoundTrip {
                srtt: Nanos(taken.0.max(1)),
                rttvar: Nanos(taken.0 / 2),
            };
            return;
        }
        let error = taken.0.abs_diff(self.srtt.0);
        self.rttvar = Nanos(self.rttvar.0 - self.rttvar.0 / 4 + error / 4);
        self.srtt = Nanos((self.srtt.0 - self.srtt.0 / 8 + taken.0 / 8).max(1));
    }

    /// How long to wait for a process's first answer. A probe is short, and to send it twice
    /// on a long path costs nothing.
    pub(crate) fn timeout_of_first(&self, most: Nanos) -> Nanos {
        match self.srtt {
            Nanos(0) => MIN_TIMEOUT,
            _ => self.timeout(most),
        }
    }

    /// How long to wait for an acknowledgement: RFC 6298, and four round trips at least.
    pub(crate) fn timeout(&self, most: Nanos) -> Nanos {
        match self.srtt {
            Nanos(0) => INITIAL_TIMEOUT,
            Nanos(smoothed) => {
                let usual = smoothed + 4 * self.rttvar.0;
                Nanos(usual.max(4 * smoothed)).min(most).max(MIN_TIMEOUT)
            }
        }
    }
}

/// The congestion window: doubled each round trip until something is lost (slow start), then
/// a datagram more each round trip, and three tenths less for each round trip with a loss
/// (the factor of RFC 9438).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    size: u64,
    ssthresh: u64,
    min_window: u64,
    /// Losses of what was sent before belong to one that the window has shrunk for.
    recovery_start: Time,
    paced_until: Time,
    /// The window before timeouts shrank it.
    before_timeout: u64,
}

impl Window {
    pub(crate) fn new(datagram: u64) -> Window {
        Window {
            size: INITIAL_WINDOW.max(2 * (datagram + OVERHEAD)),
            ssthresh: MAX_WINDOW,
            min_window: 2 * (datagram + OVERHEAD),
            recovery_start: Time(0),
            paced_until: Time(0),
            before_timeout: 0,
        }
    }

    #[inline]
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    pub(crate) fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// Takes over what other processes have found out, within limits.
    pub(crate) fn adopt(&mut self, size: u64, ssthresh: u64) {
        self.size = size.clamp(self.min_window, MAX_WINDOW.max(self.min_window));
        self.ssthresh = ssthresh.clamp(self.min_window, MAX_WINDOW.max(self.min_window));
    }

    /// So many bytes were acknowledged, of those in flight.
    #[inline]
    pub(crate) fn on_arrived(&mut self, bytes: u64, in_flight: u64) {
        if in_flight < self.size / 2 {
            return; // The window isn't what limits the sender.
        }
        let gain = match self.size < self.ssthresh {
            true => bytes,
            false => (bytes * self.min_window / 2 / self.size).max(1),
        };
        self.size = (self.size + gain).min(MAX_WINDOW);
    }

    /// A packet that was sent at that time is lost.
    pub(crate) fn on_lost(&mut self, now: Time, sent: Time) {
        if sent < self.recovery_start {
            return;
        }
        self.recovery_start = now;
        self.size = (self.size / 10 * 7).max(self.min_window);
        self.ssthresh = self.size;
    }

    /// Nothing on the path is answered any more.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        self.recovery_start = now;
        self.before_timeout = self.before_timeout.max(self.size);
        self.ssthresh = (self.size / 2).max(self.min_window);
        self.size = self.min_window;
    }

    /// What was sent before the timeout has arrived all the same (RFC 5682): not the network
    /// was silent, but a receiver that didn't poll.
    pub(crate) fn on_spurious_timeout(&mut self) {
        let most = core::mem::take(&mut self.before_timeout) / 10 * 7;
        self.size = self.size.max(most);
        self.ssthresh = self.ssthresh.max(most);
    }

    /// Until when the next datagram waits; `None` if it may be sent now.
    #[inline]
    pub(crate) fn paced(&self, now: Time) -> Option<Time> {
        (self.paced_until > now.after(MAX_BURST)).then_some(self.paced_until)
    }

    /// So many bytes were sent: on long paths they are spread over the round trip, a quarter
    /// faster than the window requires.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64, round_trip: &RoundTrip) {
        if round_trip.srtt > MIN_PACED_RTT {
            let share = round_trip.srtt.0 * bytes / self.size * 4 / 5;
            self.paced_until = self.paced_until.max(now).after(Nanos(share));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATAGRAM: u64 = 1000;
    /// The smallest window: two datagrams, in bytes.
    const LEAST: u64 = 2 * (DATAGRAM + OVERHEAD);
    const MS: u64 = 1_000_000;
    const LONG: Nanos = Nanos::from_millis(10_000);

    fn round_trip(srtt: u64, rttvar: u64) -> RoundTrip {
        RoundTrip {
            srtt: Nanos(srtt),
            rttvar: Nanos(rttvar),
        }
    }

    #[test]
    fn samples_are_smoothed_as_rfc_6298_has_it() {
        let mut path = RoundTrip::default();
        path.sample(Nanos(1000));
        assert_eq!((path.srtt.0, path.rttvar.0), (1000, 500));
        path.sample(Nanos(2000));
        assert_eq!((path.srtt.0, path.rttvar.0), (1125, 625));
        path.sample(Nanos(325));
        assert_eq!((path.srtt.0, path.rttvar.0), (1025, 669));
        let mut short = RoundTrip::default();
        short.sample(Nanos(0));
        assert_eq!(short.srtt.0, 1, "0 means not known");
        short.sample(Nanos(0));
        assert_eq!(short.srtt.0, 1);
    }

    #[test]
    fn a_timeout_is_four_round_trips_or_four_variations_more_within_limits() {
        assert_eq!(RoundTrip::default().timeout(LONG).0, 20 * MS);
        assert_eq!(RoundTrip::default().timeout_of_first(LONG).0, 2 * MS);
        let steady = round_trip(10 * MS, MS);
        assert_eq!(steady.timeout(LONG).0, 40 * MS);
        assert_eq!(steady.timeout_of_first(LONG).0, 40 * MS);
        let varying = round_trip(10 * MS, 20 * MS);
        assert_eq!(varying.timeout(LONG).0, 90 * MS);
        assert_eq!(varying.timeout(Nanos(50 * MS)).0, 50 * MS);
        assert_eq!(varying.timeout(Nanos(0)).0, 2 * MS);
        assert_eq!(round_trip(1000, 10).timeout(LONG).0, 2 * MS);
    }

    #[test]
    fn a_window_holds_two_datagrams_at_least() {
        assert_eq!(Window::new(DATAGRAM).size(), 128 << 10);
        assert_eq!(Window::new(100_000).size(), 2 * (100_000 + OVERHEAD));
        assert_eq!(Window::new(DATAGRAM).ssthresh(), 1 << 20);
        let mut window = Window::new(DATAGRAM);
        window.adopt(1, 1);
        assert_eq!((window.size(), window.ssthresh()), (LEAST, LEAST));
        window.adopt(u64::MAX, u64::MAX);
        assert_eq!((window.size(), window.ssthresh()), (1 << 20, 1 << 20));
    }

    #[test]
    fn a_window_in_use_grows_by_what_arrives_then_by_a_datagram_a_round_trip() {
        let mut window = Window::new(DATAGRAM);
        window.adopt(10_000, 30_000);
        window.on_arrived(5000, 4999);
        assert_eq!(window.size(), 10_000, "less than half of it is used");
        window.on_arrived(5000, 5000);
        assert_eq!(window.size(), 15_000);
        window.adopt(30_000, 30_000);
        window.on_arrived(30_000, 30_000);
        assert_eq!(window.size(), 30_000 + LEAST / 2);
        window.adopt(500_000, LEAST);
        window.on_arrived(1, 500_000);
        assert_eq!(window.size(), 500_001, "a byte at least");
        window.adopt(1 << 20, 1 << 20);
        window.on_arrived(1 << 20, 1 << 20);
        assert_eq!(window.size(), 1 << 20);
    }

    #[test]
    fn a_loss_shrinks_the_window_once_a_round_trip() {
        let mut window = Window::new(DATAGRAM);
        window.adopt(100_000, 1 << 20);
        window.on_lost(Time(50), Time(10));
        assert_eq!((window.size(), window.ssthresh()), (70_000, 70_000));
        window.on_lost(Time(60), Time(49));
        assert_eq!(window.size(), 70_000, "sent before the window shrank");
        window.on_lost(Time(60), Time(50));
        assert_eq!(window.size(), 49_000);
        window.adopt(5000, 5000);
        window.on_lost(Time(100), Time(90));
        assert_eq!(window.size(), LEAST);
    }

    #[test]
    fn a_timeout_closes_the_window_and_a_spurious_one_opens_most_of_it_again() {
        let mut window = Window::new(DATAGRAM);
        window.adopt(100_000, 1 << 20);
        window.on_timeout(Time(50));
        assert_eq!((window.size(), window.ssthresh()), (LEAST, 50_000));
        window.on_lost(Time(60), Time(49));
        assert_eq!(window.size(), LEAST);
        window.on_timeout(Time(70));
        assert_eq!(window.ssthresh(), LEAST);
        window.on_spurious_timeout();
        assert_eq!((window.size(), window.ssthresh()), (70_000, 70_000));
        window.adopt(9000, 9000);
        window.on_spurious_timeout();
        assert_eq!(window.size(), 9000, "it is known once");
    }

    #[test]
    fn long_paths_are_paced_a_quarter_faster_than_the_window_requires() {
        let mut window = Window::new(DATAGRAM);
        window.adopt(100_000, 1 << 20);
        let now = Time(7 * MS);
        window.on_sent(now, 100_000, &round_trip(MS, 0));
        assert_eq!(window.paced(Time(0)), None, "a short path");
        window.on_sent(now, 50_000, &round_trip(10 * MS, 0));
        let until = Time(now.0 + 4 * MS);
        assert_eq!(window.paced(now), Some(until));
        assert_eq!(window.paced(Time(until.0 - MS - 1)), Some(until));
        assert_eq!(window.paced(Time(until.0 - MS)), None, "a burst");
        window.on_sent(now, 25_000, &round_trip(10 * MS, 0));
        assert_eq!(window.paced(now), Some(Time(until.0 + 2 * MS)));
        let later = Time(100 * MS);
        window.on_sent(later, 50_000, &round_trip(10 * MS, 0));
        assert_eq!(window.paced(later), Some(Time(later.0 + 4 * MS)));
    }
}
