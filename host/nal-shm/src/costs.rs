//! From which length on a body is better lent than copied: that differs by a factor of ten
//! between processors, and between two cores and two threads of one. So it is measured.
//!
//! A body that is copied crosses from one core's cache to the other's line by line. One that is
//! lent costs a system call at the receiver, and an answer, and then crosses faster. What the
//! system call costs is measured once, on this process's own memory. What a line costs shows
//! while messages flow: now and then a push into a peer's ring is timed. The two costs over
//! the length meet at the threshold, for each peer.

use lintel_claim::{Region, copy_checked};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Bytes of a long copy by the system.
const LONG: u64 = 64 * 1024;
/// Copies of each kind; the least time counts.
const TRIES: u32 = 8;
/// What a lent body costs beside the system's copy: a record for the answer, a second line for
/// the addresses, the table of operations under way. 0.4 to 0.5 µs on an Intel Xeon (Sapphire
/// Rapids) with lines of 75 ns.
const FIXED_NS: f32 = 450.0;

/// The threshold's least value, and what holds before anything is known, bytes.
const LEAST: u64 = 2048;
const UNKNOWN: u64 = 16 * 1024;

/// Pushes of long bodies of which one is timed.
const SAMPLED: u32 = 8;
/// Lent bodies of which one is copied all the same, so that a threshold that no longer holds
/// is noticed.
const EXPLORED: u32 = 64;
/// How much of the estimate a sample replaces that is less, or more: whatever disturbs a push
/// makes it longer.
const WEIGHT_OF_LESS: f32 = 0.25;
const WEIGHT_OF_MORE: f32 = 0.1;

/// What moves bodies between two processes: the system's copy, as measured, or a threshold that
/// the user has set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Costs {
    /// The time of a copy by the system.
    Measured(SystemCopy),
    /// Bodies up to so many bytes are copied through the ring.
    Set(u64),
}

/// What a copy by the system costs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SystemCopy {
    /// A copy of 8 bytes, ns.
    pub call_ns: f32,
    /// Each further KiB, ns.
    pub kib_ns: f32,
}

impl Costs {
    /// This machine's, measured at the first call in a process, which takes about 30 µs.
    /// Without the system's copy nothing is lent.
    pub fn of_this_machine() -> Costs {
        static COPY: OnceLock<Option<SystemCopy>> = OnceLock::new();
        match COPY.get_or_init(SystemCopy::measure) {
            Some(copy) => Costs::Measured(*copy),
            None => Costs::Set(crate::EAGER),
        }
    }

    /// Bytes up to which a body is copied, if a further KiB through the ring, written and read,
    /// is known to cost so much, ns.
    pub fn threshold(&self, ring_kib_ns: Option<f32>) -> u64 {
        match (self, ring_kib_ns) {
            (Costs::Set(threshold), _) => *threshold,
            (Costs::Measured(_), None) => UNKNOWN,
            (Costs::Measured(copy), Some(ring)) if ring <= copy.kib_ns => crate::EAGER,
            (Costs::Measured(copy), Some(ring)) => {
                let meet = (copy.call_ns + FIXED_NS) / (ring - copy.kib_ns) * 1024.0;
                (meet as u64).clamp(LEAST, crate::EAGER)
            }
        }
    }
}

impl SystemCopy {
    /// Nothing if the system forbids it.
    fn measure() -> Option<SystemCopy> {
        let (from, to) = (Region::new(LONG), Region::new(LONG));
        let part = |region: &Region, length| [region.claim().slice(0, length)];
        let least = |length: u64| {
            let mut least = Duration::MAX;
            for _ in 0..TRIES {
                let begun = Instant::now();
                copy_checked(&part(&from, length), &part(&to, length)).ok()?;
                least = least.min(begun.elapsed());
            }
            Some(least.as_nanos() as f32)
        };
        let (short, long) = (least(8)?, least(LONG)?);
        Some(SystemCopy {
            call_ns: short,
            kib_ns: (long - short).max(0.0) / (LONG as f32 / 1024.0),
        })
    }
}

/// How bodies go to one peer, by what they have cost so far.
#[derive(Debug)]
pub(crate) struct Choice {
    costs: Costs,
    /// A further KiB through the ring, written and read, ns.
    ring_kib_ns: Option<f32>,
    threshold: u64,
    pushes: u32,
    lent: u32,
    /// The next long push is of a body that would be lent.
    explores: bool,
}

impl Choice {
    pub(crate) fn new(costs: Costs) -> Choice {
        Choice {
            costs,
            ring_kib_ns: None,
            threshold: costs.threshold(None),
            pushes: 0,
            lent: 0,
            explores: false,
        }
    }

    /// Whether a body of that length is lent.
    pub(crate) fn lends(&mut self, length: u64) -> bool {
        if length <= self.threshold {
            return false;
        }
        self.lent = self.lent.wrapping_add(1);
        self.explores = self.lent % EXPLORED == 0 && matches!(self.costs, Costs::Measured(_));
        !self.explores
    }

    /// A body of that length is about to be pushed: when it began, if it is to be timed.
    #[inline]
    pub(crate) fn begin_push(&mut self, length: u64) -> Option<Instant> {
        if length < LEAST {
            return None;
        }
        self.pushes = self.pushes.wrapping_add(1);
        let explores = std::mem::take(&mut self.explores);
        (explores || self.pushes % SAMPLED == 0).then(Instant::now)
    }

    /// A push of that length has taken so long, until every line was written. The receiver
    /// takes as long again to read them.
    pub(crate) fn pushed(&mut self, length: u64, took: Duration) {
        let sample = 2.0 * took.as_nanos() as f32 / (length as f32 / 1024.0);
        // A coarse clock may see nothing pass; an estimate of 0 could never grow again.
        let sample = sample.max(1.0);
        let known = self.ring_kib_ns.unwrap_or(sample);
        // One that was interrupted counts for no more than this.
        let sample = sample.min(4.0 * known);
        let weight = match sample < known {
            true => WEIGHT_OF_LESS,
            false => WEIGHT_OF_MORE,
        };
        let ring = known + (sample - known) * weight;
        self.ring_kib_ns = Some(ring);
        self.threshold = self.costs.threshold(Some(ring));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs::Measured(SystemCopy {
        call_ns: 440.0,
        kib_ns: 35.0,
    });

    fn push(choice: &mut Choice, length: u64, ns_per_kib: f32, count: u32) {
        for _ in 0..count {
            if choice.begin_push(length).is_some() {
                let ns = ns_per_kib / 2.0 * length as f32 / 1024.0;
                choice.pushed(length, Duration::from_nanos(ns as u64));
            }
        }
    }

    #[test]
    fn bodies_are_lent_from_where_both_ways_cost_the_same() {
        let mut choice = Choice::new(COSTS);
        push(&mut choice, 4096, 220.0, 200);
        assert!((4096..6000).contains(&choice.threshold), "{choice:?}");
        assert!(!choice.lends(4000));
        assert!(choice.lends(8192));
    }

    #[test]
    fn between_threads_of_one_core_everything_that_may_is_copied() {
        let mut choice = Choice::new(COSTS);
        push(&mut choice, 4096, 20.0, 200);
        assert!(!choice.lends(crate::EAGER));
    }

    #[test]
    fn one_push_that_was_interrupted_moves_the_threshold_little() {
        let mut choice = Choice::new(COSTS);
        push(&mut choice, 4096, 60.0, 400);
        let before = choice.threshold;
        choice.pushed(4096, Duration::from_millis(3));
        assert!(choice.threshold > before / 3, "{before} {choice:?}");
        push(&mut choice, 4096, 60.0, 400);
        assert!(choice.threshold.abs_diff(before) < before / 10);
    }

    #[test]
    fn a_clock_that_sees_nothing_pass_at_first_does_not_hide_what_pushes_cost() {
        let mut choice = Choice::new(COSTS);
        choice.pushed(4096, Duration::ZERO);
        push(&mut choice, 4096, 220.0, 2000);
        assert!(choice.lends(8192), "{choice:?}");
    }

    #[test]
    fn now_and_then_a_body_is_copied_that_would_be_lent() {
        let mut choice = Choice::new(COSTS);
        let lent = (0..EXPLORED).filter(|_| choice.lends(32 * 1024)).count();
        assert_eq!(lent, EXPLORED as usize - 1);
    }

    #[test]
    fn a_threshold_that_was_set_holds_for_every_body() {
        let mut choice = Choice::new(Costs::Set(5000));
        push(&mut choice, 4096, 220.0, 200);
        assert!((0..1000).all(|_| choice.lends(5001) && !choice.lends(5000)));
    }

    #[test]
    fn the_copy_of_this_machine_is_measured_once() {
        assert_eq!(Costs::of_this_machine(), Costs::of_this_machine());
    }
}
