//! From which length on a body is better lent than copied: that differs by a factor of ten
//! between processors, and between two cores and two threads of one. So it is measured.
//!
//! A body that is copied crosses from one core's cache to the other's line by line. One that is
//! lent costs a system call at the receiver, and an answer, and then crosses faster. What the
//! system's copy costs is measured once, on this process's own memory. The rest shows while
//! messages flow: now and then the sender times a push into its peer's ring, and the receiver
//! how long it takes over a long body, copied or lent, until it is done with it. The receiver
//! publishes that in the lane ([`Received`]). Both ways' costs over the length meet at the
//! threshold, for each peer ([`Choice`](crate::choice::Choice)). What neither side times shows in the
//! intervals from one body to the next, where they alternate with messages of the peer
//! ([`Intervals`](crate::intervals::Intervals)).

use lintel_claim::{Region, copy_checked};
use lintel_types::ALWAYS_COPIED;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Bytes of a long copy by the system.
const LONG: u64 = 64 * 1024;
/// Copies of each kind; the least time counts.
const TRIES: u32 = 8;
/// What a lent body is taken to cost beside the system's copy until a receiver has timed one.
pub(crate) const FIXED_NS: f32 = 450.0;

/// Bytes that one call of the system moves are enough once the call itself takes so small a part
/// of the time that the copy takes: further ones would only delay the first ones' events.
const CALL_PART: f32 = 1.0 / 20.0;
/// The bounds of that, and what holds where the system's copy wasn't measured.
const LEAST_TOGETHER: u64 = 64 * 1024;
const MOST_TOGETHER: u64 = 1024 * 1024;
const UNKNOWN_TOGETHER: u64 = 256 * 1024;

/// The part of a body's time that it may take to find out whether the peer polls.
const ASKING_PART: f32 = 1.0 / 8.0;

/// The threshold's least value, and what holds before anything is known, bytes.
pub(crate) const LEAST: u64 = ALWAYS_COPIED;
const UNKNOWN: u64 = 16 * 1024;

/// Long bodies of which one is timed, at either side.
pub(crate) const SAMPLED: u32 = 8;
/// Bodies in a row by which a sender explores the other way: the first ones that go another way than
/// those before take longer.
pub(crate) const IN_A_ROW: u32 = 8;
/// The same of bodies in a stream, of which many are moved together.
pub(crate) const IN_A_ROW_STREAMING: u32 = 32;

/// How much of the estimate a sample replaces that is less, or more: whatever disturbs a push
/// makes it longer.
const WEIGHT_OF_LESS: f32 = 0.5;
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
        self.meeting(ring_kib_ns, self.assumed_lent_ns())
    }

    /// What a lent body is taken to cost beside its length.
    pub(crate) fn assumed_lent_ns(&self) -> f32 {
        match self {
            Costs::Measured(copy) => copy.call_ns + FIXED_NS,
            Costs::Set(_) => 0.0,
        }
    }

    /// Bytes from which on an initiator has the system copy to a peer that neither sleeps nor polls:
    /// that takes no longer than both sides do over the ring, since nothing is announced or
    /// answered, and to ask a peer that polls whether it does costs little beside the body.
    pub(crate) fn direct_threshold(&self, ring_kib_ns: Option<f32>, asked: Estimate) -> u64 {
        let Costs::Measured(copy) = self else {
            return self.meeting(ring_kib_ns, 0.0);
        };
        // No longer than a call, or nobody waits for the answer.
        let asked_ns = asked.0.unwrap_or(copy.call_ns);
        let asks = ring_kib_ns.map_or(0.0, |ring| asked_ns / ASKING_PART / ring * 1024.0);
        let meet = self.meeting(ring_kib_ns, copy.call_ns);
        meet.max(asks as u64).min(crate::EAGER)
    }

    /// Bytes of lent bodies from which on one call of the system moves no further body.
    pub fn together(&self) -> u64 {
        match self {
            Costs::Set(_) => UNKNOWN_TOGETHER,
            Costs::Measured(copy) => {
                let bytes = copy.call_ns / CALL_PART / copy.kib_ns * 1024.0;
                (bytes as u64).clamp(LEAST_TOGETHER, MOST_TOGETHER)
            }
        }
    }

    /// As [`threshold`](Self::threshold), if a lent body costs so much beside its length, ns.
    pub(crate) fn meeting(&self, ring_kib_ns: Option<f32>, lent_ns: f32) -> u64 {
        match (self, ring_kib_ns) {
            (Costs::Set(threshold), _) => *threshold,
            (Costs::Measured(_), None) => UNKNOWN,
            (Costs::Measured(copy), Some(ring)) if ring <= copy.kib_ns => crate::EAGER,
            (Costs::Measured(copy), Some(ring)) => {
                let meet = lent_ns / (ring - copy.kib_ns) * 1024.0;
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

/// An average of times, ns. Whatever disturbs makes them longer, so that a longer one counts less.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Estimate(pub(crate) Option<f32>);

impl Estimate {
    pub(crate) fn add(&mut self, sample: f32) -> f32 {
        // A coarse clock may see nothing pass; an estimate of 0 could never grow again.
        let sample = sample.max(1.0);
        let known = self.0.unwrap_or(sample);
        // One that was interrupted counts for no more than this.
        let sample = sample.min(4.0 * known);
        let weight = match sample < known {
            true => WEIGHT_OF_LESS,
            false => WEIGHT_OF_MORE,
        };
        *self.0.insert(known + (sample - known) * weight)
    }

    fn ns(self) -> f32 {
        self.0.unwrap_or(0.0)
    }

    pub(crate) fn is_unknown(self) -> bool {
        self.0.is_none()
    }
}

pub(crate) fn per_kib(took: Duration, length: u64) -> f32 {
    took.as_nanos() as f32 / (length as f32 / 1024.0)
}

/// What long bodies from one peer cost this process, from their record's arrival until they
/// are done with.
#[derive(Debug)]
pub(crate) struct Received {
    costs: Costs,
    bodies: u32,
    /// The last ones that went the same way: whether they were lent, and how many.
    row: (bool, u32),
    /// The one that is being timed.
    timed: Option<Timed>,
    /// A KiB of one that is copied out of the ring.
    copied: Estimate,
    /// One that is lent, without what its length costs: if its sender waits for it, and in a
    /// stream, where it costs less: memory that was just written is still in another cache, and
    /// bodies are moved together.
    lent_alone: Estimate,
    lent_streaming: Estimate,
}

#[derive(Debug)]
struct Timed {
    begun: Instant,
    is_lent: bool,
    /// Bytes of all bodies that were moved together.
    length: u64,
    bodies: u32,
}

impl Received {
    pub(crate) fn new(costs: Costs) -> Received {
        Received {
            costs,
            bodies: 0,
            row: (false, 0),
            timed: None,
            copied: Estimate::default(),
            lent_alone: Estimate::default(),
            lent_streaming: Estimate::default(),
        }
    }

    /// A body of that length has arrived in the ring.
    #[inline(always)]
    pub(crate) fn begin_copy(&mut self, length: u64) {
        if length > ALWAYS_COPIED {
            self.begin(false, length);
        }
    }

    /// A lent body has been announced.
    pub(crate) fn begin_fetch(&mut self) {
        self.begin(true, 0);
    }

    #[inline(never)]
    fn begin(&mut self, is_lent: bool, length: u64) {
        self.bodies = self.bodies.wrapping_add(1);
        self.row = match self.row {
            (was_lent, count) if was_lent == is_lent => (is_lent, count.wrapping_add(1)),
            _ => (is_lent, 0),
        };
        // The last of a row that the sender explores by, and others now and then. Lent bodies
        // may have been moved together, so that none is just that one.
        let is_rare = match is_lent {
            true => (1..IN_A_ROW_STREAMING).contains(&self.row.1),
            false => [IN_A_ROW, IN_A_ROW_STREAMING].contains(&(self.row.1 + 2)),
        };
        let is_sampled = is_rare || self.row.1 >= IN_A_ROW && self.bodies % SAMPLED == 0;
        let is_timed = is_sampled && matches!(self.costs, Costs::Measured(_));
        self.timed = is_timed.then(|| Timed {
            begun: Instant::now(),
            is_lent,
            length,
            bodies: 1,
        });
    }

    /// So many lent bodies were moved together.
    pub(crate) fn note_together(&mut self, bodies: u32) {
        let others = bodies - 1;
        self.bodies = self.bodies.wrapping_add(others);
        self.row.1 = self.row.1.wrapping_add(others);
        if let Some(timed) = &mut self.timed {
            timed.bodies = bodies;
        }
    }

    /// So many bytes of a lent body were fetched.
    pub(crate) fn note_fetched(&mut self, bytes: u64) {
        if let Some(timed) = &mut self.timed {
            timed.length = bytes;
        }
    }

    /// The body that is being timed isn't moved by this process alone.
    pub(crate) fn forget(&mut self) {
        self.timed = None;
    }

    #[inline(always)]
    pub(crate) fn is_timed(&self) -> bool {
        self.timed.is_some()
    }

    /// A part of a stream has taken so long.
    pub(crate) fn streamed(&mut self, length: u64, took: Duration) -> Option<u64> {
        let is_measured = matches!(self.costs, Costs::Measured(_)) && length > 0;
        is_measured.then(|| {
            self.copied.add(per_kib(took, length));
            self.published()
        })
    }

    /// The body is done with: what the sender should know. Whether another message `follows`
    /// that has arrived meanwhile.
    pub(crate) fn end(&mut self, follows: bool) -> Option<u64> {
        let timed = self.timed.take()?;
        let took = timed.begun.elapsed();
        let length = timed.length / u64::from(timed.bodies);
        match (self.costs, timed.is_lent) {
            // Longer ones say little of what comes beside their length.
            (Costs::Measured(copy), true) if (1..=crate::EAGER).contains(&length) => {
                let by_length = copy.kib_ns * timed.length as f32 / 1024.0;
                let beside = took.as_nanos() as f32 - by_length;
                let lent = match follows || timed.bodies > 1 {
                    true => &mut self.lent_streaming,
                    false => &mut self.lent_alone,
                };
                lent.add(beside / timed.bodies as f32);
            }
            (Costs::Measured(_), false) => {
                self.copied.add(per_kib(took, timed.length));
            }
            _ => return None,
        }
        Some(self.published())
    }

    fn published(&self) -> u64 {
        let costs = [self.copied, self.lent_alone, self.lent_streaming];
        published(costs.map(Estimate::ns))
    }
}

/// All in one word: ns of a KiB that was copied, and of a lent body beside its length, alone and
/// in a stream; 0 for what isn't known.
pub(crate) fn published([copied, lent_alone, lent_streaming]: [f32; 3]) -> u64 {
    // One that costs nothing is known, too.
    let units = |ns: f32| match ns > 0.0 {
        true => ((ns / UNIT_NS) as u16).max(1),
        false => 0,
    };
    let lent = u32::from(units(lent_alone)) << 16 | u32::from(units(lent_streaming));
    u64::from(copied.to_bits()) << 32 | u64::from(lent)
}

/// The unit in which costs of lent bodies are published: 16 bits reach to 1 ms.
const UNIT_NS: f32 = 16.0;

/// What [`published`] has put into a word, or the peer any other number. It may only mislead
/// its sender about which way is quicker.
pub(crate) fn known(published: u64) -> Known {
    let copied = f32::from_bits((published >> 32) as u32);
    let lent = |units: u64| Some(units as u16).filter(|units| *units > 0);
    let lent = |units: u64| lent(units).map(|units| f32::from(units) * UNIT_NS);
    Known {
        copied: Some(copied).filter(|ns| ns.is_finite() && *ns > 0.0),
        lent_alone: lent(published >> 16),
        lent_streaming: lent(published),
    }
}

/// Costs that a receiver has published.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) copied: Option<f32>,
    pub(crate) lent_alone: Option<f32>,
    pub(crate) lent_streaming: Option<f32>,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const COSTS: Costs = Costs::Measured(SystemCopy {
        call_ns: 440.0,
        kib_ns: 35.0,
    });

    #[test]
    fn a_receiver_times_copied_and_lent_bodies_and_publishes_both() {
        let mut received = Received::new(COSTS);
        received.begin_copy(ALWAYS_COPIED);
        assert!(!received.is_timed());
        let timed = (1..IN_A_ROW).filter(|_| {
            received.begin_copy(4096);
            received.is_timed()
        });
        assert_eq!(timed.count(), 1);
        (1..IN_A_ROW).for_each(|_| received.begin_fetch());
        received.note_fetched(4096);
        let alone = known(received.end(false).expect("it was timed"));
        assert!(alone.copied.is_none() && alone.lent_alone.is_some());
        assert!(alone.lent_streaming.is_none());
        assert!(received.end(false).is_none());
    }

    #[test]
    fn bodies_are_moved_together_until_a_call_costs_little_beside_them() {
        let (call, kib) = (440.0, 35.0);
        let together = COSTS.together() as f32 / 1024.0;
        assert!((together * kib * CALL_PART - call).abs() < call / 100.0);
        for (call_ns, kib_ns) in [(1.0, 1000.0), (1e9, 0.0), (0.0, 0.0)] {
            let costs = Costs::Measured(SystemCopy { call_ns, kib_ns });
            assert!((LEAST_TOGETHER..=MOST_TOGETHER).contains(&costs.together()));
        }
    }

    #[test]
    fn a_lent_body_costs_its_part_of_what_was_moved_together() {
        for bodies in [1, 4] {
            let begun = Instant::now() - Duration::from_micros(100);
            let mut received = Received::new(COSTS);
            (0..2).for_each(|_| received.begin_fetch());
            received.timed.as_mut().expect("it is timed").begun = begun;
            received.note_fetched(u64::from(bodies) * 4096);
            received.note_together(bodies);
            let part = || begun.elapsed().as_nanos() as f32 / bodies as f32 - 4.0 * 35.0;
            let least = part();
            let ended = received.end(true).expect("it was timed");
            let most = part();
            let cost = known(ended).lent_streaming.expect("it is known");
            let is_part = (least - UNIT_NS..=most).contains(&cost);
            assert!(is_part, "{bodies}: {cost} of {least} to {most}");
        }
    }

    #[test]
    fn the_copy_of_this_machine_is_measured_once() {
        assert_eq!(Costs::of_this_machine(), Costs::of_this_machine());
    }
}
