//! From which length on a body is better lent than copied: that differs by a factor of ten
//! between processors, and between two cores and two threads of one. So it is measured.
//!
//! A body that is copied crosses from one core's cache to the other's line by line. One that is
//! lent costs a system call at the receiver, and an answer, and then crosses faster. What the
//! system's copy costs is measured once, on this process's own memory. The rest shows while
//! messages flow: now and then the sender times a push into its peer's ring, and the receiver
//! how long it takes over a long body, copied or lent, until it is done with it. The receiver
//! publishes that in the lane ([`Received`]). Both ways' costs over the length meet at the
//! threshold, for each peer ([`Choice`]).

use crate::outbound::CHUNK;
use lintel_claim::{Region, copy_checked};
use lintel_ring::MAX_PAYLOAD;
use lintel_types::ALWAYS_COPIED;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Bytes of a long copy by the system.
const LONG: u64 = 64 * 1024;
/// Copies of each kind; the least time counts.
const TRIES: u32 = 8;
/// What a lent body is taken to cost beside the system's copy until a receiver has timed one.
const FIXED_NS: f32 = 450.0;

/// Bytes that one call of the system moves are enough once the call itself takes so small a part
/// of the time that the copy takes: further ones would only delay the first ones' events.
const CALL_PART: f32 = 1.0 / 20.0;
/// The bounds of that, and what holds where the system's copy wasn't measured.
const LEAST_TOGETHER: u64 = 64 * 1024;
const MOST_TOGETHER: u64 = 1024 * 1024;
const UNKNOWN_TOGETHER: u64 = 256 * 1024;

/// The part of a body's time that it may take to find out whether the peer polls.
const ASKING_PART: f32 = 1.0 / 8.0;
/// The part of the time to copy a long body for which its initiator waits until the peer shows that it
/// polls.
const PATIENT_PART: f32 = 1.0 / 64.0;
/// That is no longer, however long the body is: the initiator holds a lock meanwhile.
const MOST_PATIENCE: Duration = Duration::from_micros(100);

/// The threshold's least value, and what holds before anything is known, bytes.
pub(crate) const LEAST: u64 = ALWAYS_COPIED;
const UNKNOWN: u64 = 16 * 1024;

/// Long bodies of which one is timed, at either side.
const SAMPLED: u32 = 8;
/// Bodies of which some in a row go the other way all the same, so that a threshold that doesn't
/// hold is noticed: of lent ones, and of copied ones of half the threshold's length or more.
const EXPLORED: u32 = 512;
/// How many do: the first ones that go another way than those before take longer.
const IN_A_ROW: u32 = 8;
/// The same of bodies in a stream, of which many are moved together.
const EXPLORED_STREAMING: u32 = 2048;
const IN_A_ROW_STREAMING: u32 = 32;
/// Bodies of which one is preceded by a look whether the peer has messages to read.
const BODIES_PER_LOOK: u32 = 16;

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

/// The least part of a body that both sides move, bytes, where costs aren't measured.
const LEAST_PART: u64 = 32 << 10;
/// Longer bodies are moved by one side alone, while programs have other work for the other one: in the
/// time in which both would move one that long, a processor does much.
const LONGEST_SHARED: u64 = 2 << 20;

/// A copy is long if its length takes so many times as long as all else.
const LONG_COPY: f32 = 32.0;
/// The same in bytes, where costs aren't measured.
const LONG_COPY_BYTES: u64 = 1 << 20;

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
    fn assumed_lent_ns(&self) -> f32 {
        match self {
            Costs::Measured(copy) => copy.call_ns + FIXED_NS,
            Costs::Set(_) => 0.0,
        }
    }

    /// Bytes from which on an initiator has the system copy to a peer that neither sleeps nor polls:
    /// that takes no longer than both sides do over the ring, since nothing is announced or
    /// answered, and to ask a peer that polls whether it does costs little beside the body.
    fn direct_threshold(&self, ring_kib_ns: Option<f32>, asked: Estimate) -> u64 {
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
    fn meeting(&self, ring_kib_ns: Option<f32>, lent_ns: f32) -> u64 {
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
struct Estimate(Option<f32>);

impl Estimate {
    fn add(&mut self, sample: f32) -> f32 {
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
}

fn per_kib(took: Duration, length: u64) -> f32 {
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
        if length >= LEAST {
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
fn published([copied, lent_alone, lent_streaming]: [f32; 3]) -> u64 {
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
fn known(published: u64) -> Known {
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
struct Known {
    copied: Option<f32>,
    lent_alone: Option<f32>,
    lent_streaming: Option<f32>,
}

/// How bodies go to one peer, by what they have cost so far.
#[derive(Debug)]
pub(crate) struct Choice {
    costs: Costs,
    /// Of bodies whose receiver waits for them: they are written, then read.
    alone: Threshold,
    /// Of bodies in a stream: one is written while the receiver reads another.
    streaming: Threshold,
    /// How long a peer that polls has taken to show it.
    answered: Estimate,
    /// From which length on the initiator copies into memory of the peer itself, unless the peer
    /// waits for it.
    direct: u64,
    /// Whether the last body belonged to a stream.
    is_streaming: bool,
    /// Messages that had arrived when it was sent.
    arrivals: u32,
    /// Whether the peer had messages to read at the last look.
    has_unread: bool,
    looks: u32,
    pushes: u32,
    /// The next long push is of a body that would be lent.
    explores: bool,
}

/// From which length on bodies are lent.
#[derive(Debug)]
struct Threshold {
    /// A KiB that is written to the ring.
    pushed: Estimate,
    bytes: u64,
    /// Bodies so far, of how many some explore, and how many.
    asked: u32,
    explored: u32,
    in_a_row: u32,
}

impl Threshold {
    fn new(costs: Costs, (explored, in_a_row): (u32, u32)) -> Threshold {
        Threshold {
            pushed: Estimate::default(),
            bytes: costs.threshold(None),
            asked: 0,
            explored,
            in_a_row,
        }
    }

    /// Whether the next body goes the other way.
    fn explores(&mut self) -> bool {
        self.asked = self.asked.wrapping_add(1);
        self.asked % self.explored >= self.explored - self.in_a_row
    }
}

impl Choice {
    pub(crate) fn new(costs: Costs) -> Choice {
        let alone = (EXPLORED, IN_A_ROW);
        let streaming = (EXPLORED_STREAMING, IN_A_ROW_STREAMING);
        Choice {
            costs,
            alone: Threshold::new(costs, alone),
            streaming: Threshold::new(costs, streaming),
            answered: Estimate::default(),
            direct: costs.direct_threshold(None, Estimate::default()),
            is_streaming: false,
            arrivals: 0,
            has_unread: false,
            looks: 0,
            pushes: 0,
            explores: false,
        }
    }

    /// Whether to look if the peer has messages to read: now and then, since it takes the line away
    /// from the peer that this one writes for each message.
    pub(crate) fn looks_for_unread(&mut self) -> bool {
        self.looks = self.looks.wrapping_add(1);
        self.looks % BODIES_PER_LOOK == 0
    }

    /// Whether the peer had messages to read when a body was sent.
    pub(crate) fn note_unread(&mut self, has_unread: bool) {
        self.has_unread = has_unread;
    }

    /// Whether a body of that length is lent. `arrivals` counts the messages that have arrived
    /// in this process: a body that none precedes belongs to a stream, and so do those that are sent
    /// while the peer [has messages to read](Self::note_unread), whose acknowledgements arrive.
    pub(crate) fn lends(&mut self, length: u64, arrivals: u32) -> bool {
        let follows = std::mem::replace(&mut self.arrivals, arrivals) == arrivals;
        self.is_streaming = follows || self.has_unread;
        let threshold = match self.is_streaming {
            true => &mut self.streaming,
            false => &mut self.alone,
        };
        let is_long = length > threshold.bytes;
        if matches!(self.costs, Costs::Set(_)) || length < threshold.bytes / 2 {
            return is_long;
        }
        let explores = threshold.explores();
        self.explores = explores && is_long;
        is_long != explores
    }

    /// Whether a body of that length is copied at once into memory of the peer that the system
    /// reaches, if the peer doesn't wait for it.
    pub(crate) fn copies_at_once(&self, length: u64) -> bool {
        length >= self.direct
    }

    /// Whether to copy a body of that length takes so long that to ask a peer whether it polls
    /// hardly counts.
    pub(crate) fn copies_for_long(&self, length: u64) -> bool {
        match self.costs {
            Costs::Measured(copy) => {
                length as f32 * copy.kib_ns / 1024.0 >= LONG_COPY * copy.call_ns
            }
            Costs::Set(_) => length >= LONG_COPY_BYTES,
        }
    }

    /// Whether both sides had better move parts of a body of that length, if both wait: it takes long
    /// enough to tell the other side, and isn't so long that one side had better be left alone. One that
    /// others follow could be moved along with them, by one call for all.
    pub(crate) fn is_shared(&self, length: u64, follows: bool) -> bool {
        let least = match follows {
            true => 4 * self.least_part(),
            false => 2 * self.least_part(),
        };
        (least..=LONGEST_SHARED).contains(&length)
    }

    /// Bytes of each part of a body of that length that is granted.
    pub(crate) fn part_of(&self, length: u64) -> u64 {
        match self.is_shared(length, false) {
            true => length.div_ceil(2),
            false => length,
        }
    }

    /// The length of a part that takes as long as the call of the system that copies it.
    fn least_part(&self) -> u64 {
        match self.costs {
            Costs::Measured(copy) => {
                let bytes = copy.call_ns / copy.kib_ns.max(1.0) * 1024.0;
                (bytes as u64).max(LEAST)
            }
            Costs::Set(_) => LEAST_PART,
        }
    }

    /// How long the initiator of a body waits for a peer to show that it polls: not longer than the
    /// copy takes beside its length, and a small part of what that takes. A peer that is about to
    /// wait, or is interrupted, is worth a few microseconds of a long copy.
    pub(crate) fn patience(&self, length: u64) -> Duration {
        let ns = match self.costs {
            Costs::Measured(copy) => {
                copy.call_ns + length as f32 * copy.kib_ns / 1024.0 * PATIENT_PART
            }
            Costs::Set(_) => FIXED_NS,
        };
        Duration::from_nanos(ns as u64).min(MOST_PATIENCE)
    }

    /// The peer has shown that it polls, so long after it was asked.
    pub(crate) fn answered(&mut self, took: Duration) {
        let took = took.min(self.patience(0));
        self.answered.add(took.as_nanos() as f32);
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
    /// takes as long again to read them, unless it has `published` what it takes.
    pub(crate) fn pushed(&mut self, length: u64, took: Duration, published: u64) {
        let known = known(published);
        let (way, lent) = match self.is_streaming {
            true => (&mut self.streaming, known.lent_streaming),
            false => (&mut self.alone, known.lent_alone),
        };
        let pushed = way.pushed.add(per_kib(took, length));
        let copied = known.copied.unwrap_or(pushed);
        let ring = Some(pushed + copied);
        self.direct = self.costs.direct_threshold(ring, self.answered);
        let lent = lent.unwrap_or_else(|| self.costs.assumed_lent_ns());
        let overlapped = pushed.max(copied);
        let in_parts = || {
            let first_part = pushed.min(copied) * (CHUNK as f32 / 1024.0);
            self.costs.meeting(Some(overlapped), lent - first_part)
        };
        way.bytes = match self.is_streaming {
            true => self.costs.meeting(Some(overlapped), lent),
            // Longer ones than a record holds go in parts: one is written while the receiver
            // reads another.
            false => match self.costs.meeting(Some(pushed + copied), lent) {
                bytes if bytes >= MAX_PAYLOAD as u64 => bytes.max(in_parts()),
                bytes => bytes,
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs::Measured(SystemCopy {
        call_ns: 440.0,
        kib_ns: 35.0,
    });

    impl Choice {
        /// Whether a body is lent that follows an arrival.
        fn alone(&mut self, length: u64) -> bool {
            let arrivals = self.arrivals + 1;
            self.lends(length, arrivals)
        }
    }

    fn push(choice: &mut Choice, length: u64, ns_per_kib: f32, count: u32) {
        for _ in 0..count {
            if choice.begin_push(length).is_some() {
                let ns = ns_per_kib / 2.0 * length as f32 / 1024.0;
                choice.pushed(length, Duration::from_nanos(ns as u64), 0);
            }
        }
    }

    #[test]
    fn bodies_are_lent_from_where_both_ways_cost_the_same() {
        let mut choice = Choice::new(COSTS);
        push(&mut choice, 4096, 220.0, 200);
        assert!((4096..6000).contains(&choice.alone.bytes), "{choice:?}");
        assert!(!choice.alone(4000));
        assert!(choice.alone(8192));
    }

    #[test]
    fn a_body_is_copied_at_once_where_the_call_costs_less_than_the_ring() {
        let mut choice = Choice::new(COSTS);
        push(&mut choice, 4096, 220.0, 200);
        // 440 ns and 35 ns a KiB to 220 ns a KiB; to ask takes an eighth of them, at most 440 ns.
        assert!(!choice.copies_at_once(15 << 10) && choice.copies_at_once(17 << 10));
        for (answered, least) in [(200, 7400), (40, 2400)] {
            (0..20).for_each(|_| choice.answered(Duration::from_nanos(answered)));
            push(&mut choice, 4096, 220.0, 20);
            let is_direct = [least - 300, least + 300].map(|length| choice.copies_at_once(length));
            assert_eq!(is_direct, [false, true], "{choice:?}");
        }
        // However quick the ring is.
        push(&mut choice, 4096, 20.0, 200);
        assert!(!choice.copies_at_once(32 << 10) && choice.copies_at_once(64 << 10));
        let set = Choice::new(Costs::Set(5000));
        assert!(!set.copies_at_once(4999) && set.copies_at_once(5000));
    }

    #[test]
    fn both_sides_move_bodies_whose_length_takes_longer_than_two_calls_up_to_a_limit() {
        let choice = Choice::new(COSTS);
        for (length, is_shared) in [(24 << 10, false), (26 << 10, true), (2 << 20, true)] {
            assert_eq!(choice.is_shared(length, false), is_shared, "{length}");
        }
        for (length, is_shared) in [(49 << 10, false), (51 << 10, true), (2 << 20, true)] {
            assert_eq!(
                choice.is_shared(length, true),
                is_shared,
                "in a stream: {length}"
            );
        }
        assert_eq!(choice.part_of(24 << 10), 24 << 10);
        assert_eq!(choice.part_of((2 << 20) - 1), 1 << 20);
        assert_eq!(choice.part_of((2 << 20) + 1), (2 << 20) + 1);
        let set = Choice::new(Costs::Set(5000));
        assert!(!set.is_shared((64 << 10) - 1, false) && set.is_shared(64 << 10, false));
        assert!(!set.is_shared((128 << 10) - 1, true) && set.is_shared(128 << 10, true));
    }

    #[test]
    fn what_the_receiver_has_timed_counts_for_more_than_what_is_assumed() {
        let mut choice = Choice::new(COSTS);
        let pushed = Duration::from_nanos(200);
        choice.pushed(4096, pushed, published([200.0, 0.0, 0.0]));
        let assumed = choice.alone.bytes;
        choice.pushed(4096, pushed, published([200.0, 1290.0, 0.0]));
        assert!((6000..6300).contains(&choice.alone.bytes), "{choice:?}");
        assert!(assumed < choice.alone.bytes);
        choice.pushed(4096, pushed, published([60.0, 1290.0, 0.0]));
        assert!(choice.alone.bytes > 15_000, "{choice:?}");
    }

    #[test]
    fn a_lent_body_that_is_cheap_in_a_stream_is_copied_alone() {
        let mut choice = Choice::new(COSTS);
        let published = published([50.0, 9000.0, 100.0]);
        for is_streaming in [false, true] {
            choice.is_streaming = is_streaming;
            choice.pushed(32 * 1024, Duration::from_nanos(50 * 32), published);
        }
        assert_eq!(choice.alone.bytes, crate::EAGER, "{choice:?}");
        assert!(choice.streaming.bytes < 8192, "{choice:?}");
    }

    #[test]
    fn a_body_that_goes_in_parts_is_written_while_it_is_read() {
        let took = Duration::from_nanos(100 * 4);
        // By the sum of both, 19 KiB would cost the same either way; in parts, 44 KiB do.
        let mut choice = Choice::new(COSTS);
        choice.pushed(4096, took, published([100.0, 3200.0, 0.0]));
        assert!(
            (42..46).contains(&(choice.alone.bytes / 1024)),
            "{choice:?}"
        );
        // Bodies that one record holds aren't.
        choice.pushed(4096, took, published([100.0, 660.0, 0.0]));
        assert!((4000..4200).contains(&choice.alone.bytes), "{choice:?}");
    }

    #[test]
    fn a_receiver_that_publishes_nonsense_moves_the_threshold_within_its_bounds() {
        for published in [
            u64::MAX,
            1,
            1 << 63,
            0x7f80_0000_7f80_0000,
            0x0000_0001_7f7f_ffff,
        ] {
            let mut choice = Choice::new(COSTS);
            choice.pushed(4096, Duration::from_nanos(200), published);
            assert!(
                (LEAST..=crate::EAGER).contains(&choice.alone.bytes),
                "{choice:?}"
            );
        }
    }

    #[test]
    fn a_receiver_times_copied_and_lent_bodies_and_publishes_both() {
        let mut received = Received::new(COSTS);
        received.begin_copy(LEAST - 1);
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
    fn a_peer_has_a_small_part_of_a_long_copys_time_to_show_that_it_polls() {
        let mut choice = Choice::new(COSTS);
        let call = Duration::from_nanos(440);
        assert_eq!(choice.patience(0), call);
        let long = (4096.0 * 35.0 * PATIENT_PART) as u64;
        assert_eq!(choice.patience(4 << 20), call + Duration::from_nanos(long));
        assert_eq!(choice.patience(u64::MAX), MOST_PATIENCE);
        choice.answered(choice.patience(4 << 20));
        assert_eq!(choice.answered.0, Some(440.0), "bodies of all lengths");
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
    fn between_threads_of_one_core_everything_that_may_is_copied() {
        let mut choice = Choice::new(COSTS);
        push(&mut choice, 4096, 20.0, 200);
        assert!(!choice.alone(crate::EAGER));
    }

    #[test]
    fn a_body_in_a_stream_is_copied_up_to_a_greater_length() {
        let mut choice = Choice::new(COSTS);
        for is_streaming in [false, true] {
            choice.is_streaming = is_streaming;
            push(&mut choice, 4096, 220.0, 200);
        }
        let [alone, streaming] = [choice.alone.bytes, choice.streaming.bytes];
        assert!((2 * alone..3 * alone).contains(&streaming), "{choice:?}");
        assert!(choice.alone(2 * alone));
        let arrivals = choice.arrivals;
        assert!(!choice.lends(2 * alone, arrivals), "nothing has arrived");
        choice.note_unread(true);
        assert!(!choice.alone(2 * alone), "an acknowledgement has arrived");
        choice.note_unread(false);
        assert!(choice.alone(2 * alone));
    }

    #[test]
    fn one_push_that_was_interrupted_moves_the_threshold_little() {
        let mut choice = Choice::new(COSTS);
        push(&mut choice, 4096, 60.0, 400);
        let before = choice.alone.bytes;
        choice.pushed(4096, Duration::from_millis(3), 0);
        assert!(choice.alone.bytes > before / 3, "{before} {choice:?}");
        push(&mut choice, 4096, 60.0, 400);
        assert!(choice.alone.bytes.abs_diff(before) < before / 10);
    }

    #[test]
    fn a_clock_that_sees_nothing_pass_at_first_does_not_hide_what_pushes_cost() {
        let mut choice = Choice::new(COSTS);
        choice.pushed(4096, Duration::ZERO, 0);
        push(&mut choice, 4096, 220.0, 2000);
        assert!(choice.alone(8192), "{choice:?}");
    }

    #[test]
    fn now_and_then_a_body_goes_the_other_way() {
        let mut choice = Choice::new(COSTS);
        let lent = (0..EXPLORED).filter(|_| choice.alone(32 * 1024)).count();
        assert_eq!(lent, (EXPLORED - IN_A_ROW) as usize);
        let lent = (0..EXPLORED).filter(|_| choice.alone(12 * 1024)).count();
        assert_eq!(lent, IN_A_ROW as usize, "and the other way round");
        assert!((0..EXPLORED).all(|_| !choice.alone(4 * 1024)));
    }

    #[test]
    fn a_threshold_that_was_set_holds_for_every_body() {
        let mut choice = Choice::new(Costs::Set(5000));
        push(&mut choice, 4096, 220.0, 200);
        assert!((0..1000).all(|_| choice.alone(5001) && !choice.alone(5000)));
    }

    #[test]
    fn the_copy_of_this_machine_is_measured_once() {
        assert_eq!(Costs::of_this_machine(), Costs::of_this_machine());
    }
}
