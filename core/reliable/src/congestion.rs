//! How fast one may send: round-trip time, and a window that losses shrink.

use crate::time::{Nanos, Time};

/// What the kernel of a receiver books for a datagram beyond its bytes, about.
pub(crate) const OVERHEAD: u64 = 1024;
/// Bytes that may be under way before anything is known of a path.
const INITIAL_WINDOW: u64 = 128 << 10;
/// More gains nothing even at 10 GB/s and 100 µs.
const MAX_WINDOW: u64 = 1 << 20;
/// A receiver may look seldom: its thread may just have lost its processor.
const MIN_TIMEOUT: Nanos = Nanos::from_millis(2);
/// Before the first answer.
const INITIAL_TIMEOUT: Nanos = Nanos::from_millis(20);
/// A path this long is worth pacing for; on shorter ones bursts are swallowed whole.
const MIN_PACED_RTT: Nanos = Nanos::from_millis(1);
/// How far ahead of its pace a sender may be.
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

    /// How long to wait for the first answer of a process. A question is short, and to put
    /// it twice where the path is long costs nothing.
    pub(crate) fn timeout_of_first(&self, most: Nanos) -> Nanos {
        match self.srtt {
            Nanos(0) => MIN_TIMEOUT,
            _ => self.timeout(most),
        }
    }

    /// How long to wait for an answer.
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

/// Bytes that may be under way: doubled each round trip until something is lost, then
/// a datagram more each round trip, and by three tenths less for each round with a loss
/// (the factor of RFC 9438).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    size: u64,
    ssthresh: u64,
    min_window: u64,
    /// Losses of what was sent before belong to one that has been answered.
    recovery_start: Time,
    paced_until: Time,
    /// What the window was before a silence.
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

    /// As others have found it; nonsense is brought within limits.
    pub(crate) fn adopt(&mut self, size: u64, ssthresh: u64) {
        self.size = size.clamp(self.min_window, MAX_WINDOW.max(self.min_window));
        self.ssthresh = ssthresh.clamp(self.min_window, MAX_WINDOW.max(self.min_window));
    }

    /// So many bytes have arrived, of `in_flight` that were under way.
    #[inline]
    pub(crate) fn on_arrived(&mut self, bytes: u64, in_flight: u64) {
        if in_flight < self.size / 2 {
            return; // It isn't what holds the sender back.
        }
        let gain = match self.size < self.ssthresh {
            true => bytes,
            false => (bytes * self.min_window / 2 / self.size).max(1),
        };
        self.size = (self.size + gain).min(MAX_WINDOW);
    }

    /// Something that was sent at that time got lost.
    pub(crate) fn on_lost(&mut self, now: Time, sent: Time) {
        if sent < self.recovery_start {
            return;
        }
        self.recovery_start = now;
        self.size = (self.size / 10 * 7).max(self.min_window);
        self.ssthresh = self.size;
    }

    /// Nothing comes back from there at all.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        self.recovery_start = now;
        self.before_timeout = self.before_timeout.max(self.size);
        self.ssthresh = (self.size / 2).max(self.min_window);
        self.size = self.min_window;
    }

    /// What was sent before the silence has arrived all the same: it wasn't the network
    /// that was silent, but a receiver who didn't look.
    pub(crate) fn on_spurious_timeout(&mut self) {
        let most = core::mem::take(&mut self.before_timeout) / 10 * 7;
        self.size = self.size.max(most);
        self.ssthresh = self.ssthresh.max(most);
    }

    /// Until when to wait with the next datagram; nothing where it may go now.
    #[inline]
    pub(crate) fn paced(&self, now: Time) -> Option<Time> {
        (self.paced_until > now.after(MAX_BURST)).then_some(self.paced_until)
    }

    /// So many bytes were sent: on long paths they are spread over the round trip,
    /// a quarter faster than the window asks for.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u64, round_trip: &RoundTrip) {
        if round_trip.srtt > MIN_PACED_RTT {
            let share = round_trip.srtt.0 * bytes / self.size * 4 / 5;
            self.paced_until = self.paced_until.max(now).after(Nanos(share));
        }
    }
}
