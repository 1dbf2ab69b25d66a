//! How bodies go to a peer: copied, lent, at once or in parts, by what each way costs.

use crate::costs::{
    Costs, Estimate, FIXED_NS, IN_A_ROW, IN_A_ROW_STREAMING, LEAST, SAMPLED, SystemCopy, known,
    per_kib,
};
use crate::intervals::{Intervals, Untimed, is_mostly_else};
use crate::outbound::CHUNK;
use crate::parts::PAGE;
use lintel_ring::MAX_PAYLOAD;
use lintel_types::ALWAYS_COPIED;
use std::time::{Duration, Instant};

/// The part of the time to copy a long body for which its initiator waits until the peer shows that it
/// polls.
const PATIENT_PART: f32 = 1.0 / 64.0;
/// That is no longer, however long the body is: the initiator holds a lock meanwhile.
const MOST_PATIENCE: Duration = Duration::from_micros(100);

/// Bodies of which some in a row go the other way all the same, so that a threshold that doesn't
/// hold is noticed: of lent ones, and of copied ones of half the threshold's length or more.
const EXPLORED: u32 = 512;
/// The same of bodies in a stream.
const EXPLORED_STREAMING: u32 = 2048;
/// Bodies of twice the threshold's length explore half as often, and so on so many times: they lose more
/// by it, and the threshold would have to be further from what holds.
const MOST_HALVED: u32 = 4;
/// Bodies of which one is preceded by a look whether the peer has messages to read.
const BODIES_PER_LOOK: u32 = 16;

/// The least part of a body that both sides move, bytes, where costs aren't measured.
const LEAST_PART: u64 = 32 << 10;
/// Longer bodies are moved by one side alone, while programs have other work for the other one: in the
/// time in which both would move one that long, a processor does much.
const LONGEST_SHARED: u64 = 2 << 20;

/// A copy is long if its length takes so many times as long as all else.
const LONG_COPY: f32 = 32.0;
/// The same in bytes, where costs aren't measured.
const LONG_COPY_BYTES: u64 = 1 << 20;

/// How bodies go to one peer, by what they have cost so far.
#[derive(Debug)]
pub(crate) struct Choice {
    costs: Costs,
    /// Of bodies whose receiver waits for them: they are written, then read.
    alone: Threshold,
    /// Of bodies in a stream: one is written while the receiver reads another.
    streaming: Threshold,
    /// Of bodies that explore, and of as many before them. Apart, since other ones need what is beside it.
    intervals: Box<Intervals>,
    /// Whether there are any.
    compares: bool,
    /// What the sides have timed of bodies that aren't in a stream.
    timed: Option<TimedWays>,
    /// What lent ones take beside that, if a record would hold them, and if they would go in parts.
    untimed: [Untimed; 2],
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

/// What both sides have timed, ns.
#[derive(Clone, Copy, Debug)]
struct TimedWays {
    /// A KiB that is written to the ring, and one that is read from it.
    pushed: f32,
    copied: f32,
    /// A lent body beside its length.
    lent: f32,
}

impl TimedWays {
    /// A KiB through the ring, written, then read.
    fn in_one(&self) -> f32 {
        self.pushed + self.copied
    }

    /// The same of a body in parts, one of which is written while the receiver reads another.
    fn overlapped(&self) -> f32 {
        self.pushed.max(self.copied)
    }

    /// What is left of the first part, or the last one.
    fn first_part(&self) -> f32 {
        self.pushed.min(self.copied) * (CHUNK as f32 / 1024.0)
    }

    /// What bodies of that length take: copied, and lent.
    fn of(&self, length: u64, copy: SystemCopy) -> [f32; 2] {
        let kib = length as f32 / 1024.0;
        let through_ring = match length <= MAX_PAYLOAD as u64 {
            true => kib * self.in_one(),
            false => kib * self.overlapped() + self.first_part(),
        };
        [through_ring, kib * copy.kib_ns + self.lent]
    }
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

    /// The place of the next body, which is of that length.
    fn next(&mut self, length: u64) -> Place {
        self.asked = self.asked.wrapping_add(1);
        let halved = (length / self.bytes.max(1)).max(1).ilog2();
        let of = self.explored << halved.min(MOST_HALVED);
        Place {
            number: self.asked % of,
            of,
            in_a_row: self.in_a_row,
        }
    }

    /// Bodies of that length that were copied and lent, in this order, `took` so long with all else,
    /// and lent ones take about `lent_ns`. Where nothing is pushed and timed, as by a process that only
    /// gets, that alone shows which way is the quicker one.
    fn settle(&mut self, length: u64, took: [Duration; 2], lent_ns: f32) {
        let [copied, lent] = took;
        if is_mostly_else(took, lent_ns) {
            return;
        }
        self.bytes = match lent < copied {
            true => self.bytes.min(length - 1),
            false => self.bytes.max(length),
        };
    }
}

/// Where a body is among those of which the last ones, in a row, go the other way.
#[derive(Clone, Copy)]
struct Place {
    number: u32,
    of: u32,
    in_a_row: u32,
}

impl Place {
    /// Whether it goes the other way.
    fn explores(self) -> bool {
        self.number >= self.of - self.in_a_row
    }

    /// Whether it explores, or is one of as many before those that do.
    fn is_compared(self) -> bool {
        self.number >= self.of - 2 * self.in_a_row
    }

    /// Whether it follows the last one that explored.
    fn follows_row(self) -> bool {
        self.number == 0
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
            intervals: Box::default(),
            compares: false,
            timed: None,
            untimed: Default::default(),
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
    #[inline]
    pub(crate) fn lends(&mut self, length: u64, arrivals: u32) -> bool {
        self.lends_by(length, arrivals, Instant::now)
    }

    /// The same by another clock.
    #[inline]
    fn lends_by(&mut self, length: u64, arrivals: u32, clock: impl FnOnce() -> Instant) -> bool {
        let follows = std::mem::replace(&mut self.arrivals, arrivals) == arrivals;
        self.is_streaming = follows || self.has_unread;
        let threshold = match self.is_streaming {
            true => &mut self.streaming,
            false => &mut self.alone,
        };
        let is_long = length > threshold.bytes;
        if matches!(self.costs, Costs::Set(_)) || length < threshold.bytes / 2 {
            self.end_comparison();
            return is_long;
        }
        let place = threshold.next(length);
        let explores = place.explores();
        self.explores = explores && is_long;
        let is_lent = is_long != explores;
        let is_comparable = !self.is_streaming && !self.is_shared(length, || false);
        if is_comparable && (place.is_compared() || place.follows_row()) {
            self.compare_intervals(length, is_lent, clock());
            if place.follows_row() {
                self.end_row(length);
            }
        } else {
            self.end_comparison();
        }
        is_lent
    }

    /// Bodies that come later are compared without earlier ones.
    #[inline(always)]
    fn end_comparison(&mut self) {
        if std::mem::take(&mut self.compares) {
            self.intervals.take();
        }
    }

    /// A body of that length is about to go that way.
    #[cold]
    fn compare_intervals(&mut self, length: u64, is_lent: bool, at: Instant) {
        self.compares = true;
        self.intervals.sent(length, is_lent, at);
    }

    /// Bodies of that length have gone both ways: what that shows.
    #[cold]
    fn end_row(&mut self, length: u64) {
        let took = self.intervals.take();
        let (Some(took), Costs::Measured(copy)) = (took, self.costs) else {
            return;
        };
        match self.timed {
            Some(timed) => {
                let untimed = &mut self.untimed[usize::from(length > MAX_PAYLOAD as u64)];
                untimed.add(took, timed.of(length, copy), copy.call_ns);
            }
            None => {
                let lent = self.costs.assumed_lent_ns() + length as f32 / 1024.0 * copy.kib_ns;
                self.alone.settle(length, took, lent);
                // Nearer than what holds before anything is known.
                if self.streaming.pushed.is_unknown() {
                    self.streaming.bytes = self.alone.bytes;
                }
            }
        }
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
    pub(crate) fn is_shared(&self, length: u64, follows: impl FnOnce() -> bool) -> bool {
        let least = 2 * self.least_part();
        (least..=LONGEST_SHARED).contains(&length) && (length >= 2 * least || !follows())
    }

    /// Bytes of each part of a body of that length that is granted. The target's part, which is the
    /// first one, is the longer one: the initiator has yet to read the grant, and begins about a call of
    /// the system later.
    pub(crate) fn part_of(&self, length: u64) -> u64 {
        match self.is_shared(length, || false) {
            true => {
                let half = length.div_ceil(2).next_multiple_of(PAGE);
                half + self.least_part() / 2 / PAGE * PAGE
            }
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
        if length <= ALWAYS_COPIED {
            return None;
        }
        self.pushes = self.pushes.wrapping_add(1);
        let explores = std::mem::take(&mut self.explores);
        let is_timed = explores || self.pushes % SAMPLED == 0;
        (is_timed && matches!(self.costs, Costs::Measured(_))).then(Instant::now)
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
        let timed = TimedWays {
            pushed,
            copied,
            lent,
        };
        if self.is_streaming {
            way.bytes = self.costs.meeting(Some(timed.overlapped()), lent);
            return;
        }
        self.timed = Some(timed);
        let [in_one, in_parts] = &self.untimed;
        let meeting = |kib, lent: f32| self.costs.meeting(Some(kib), lent.max(0.0));
        way.bytes = match meeting(timed.in_one(), lent + in_one.ns()) {
            // Longer ones than a record holds go in parts.
            bytes if bytes >= MAX_PAYLOAD as u64 => bytes.max(meeting(
                timed.overlapped(),
                lent + in_parts.ns() - timed.first_part(),
            )),
            bytes => bytes,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::published;
    use crate::costs::tests::COSTS;

    impl Choice {
        /// Whether a body is lent that follows an arrival, long after the one before.
        fn alone(&mut self, length: u64) -> bool {
            let long = Duration::from_millis(self.arrivals.into());
            self.alone_at(length, Instant::now() + long)
        }

        fn alone_at(&mut self, length: u64, at: Instant) -> bool {
            let arrivals = self.arrivals.wrapping_add(1);
            self.lends_by(length, arrivals, || at)
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
            assert_eq!(choice.is_shared(length, || false), is_shared, "{length}");
        }
        for (length, is_shared) in [(49 << 10, false), (51 << 10, true), (2 << 20, true)] {
            assert_eq!(
                choice.is_shared(length, || true),
                is_shared,
                "in a stream: {length}"
            );
        }
        assert_eq!(choice.part_of(24 << 10), 24 << 10);
        assert_eq!(choice.least_part() / PAGE, 3);
        for (length, first) in [(26 << 10, 20 << 10), ((64 << 10) - 1, 36 << 10)] {
            assert_eq!(choice.part_of(length), first, "of {length}");
        }
        assert_eq!(choice.part_of((2 << 20) + 1), (2 << 20) + 1);
        let set = Choice::new(Costs::Set(5000));
        assert!(!set.is_shared((64 << 10) - 1, || false) && set.is_shared(64 << 10, || false));
        assert!(!set.is_shared((128 << 10) - 1, || true) && set.is_shared(128 << 10, || true));
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

    /// A ping-pong: a body each so long that the peer answers, by what it `takes`, ns, copied and lent.
    fn ping_pong(choice: &mut Choice, length: u64, takes: [u64; 2], bodies: u32) {
        let mut at = Instant::now();
        for _ in 0..bodies {
            let is_lent = choice.alone_at(length, at);
            at += Duration::from_nanos(takes[usize::from(is_lent)]);
            choice.pushed(
                4096,
                Duration::from_nanos(320),
                published([80.0, 900.0, 0.0]),
            );
        }
    }

    #[test]
    fn what_neither_side_times_of_a_lent_body_shows_in_the_intervals_of_a_ping_pong() {
        let mut choice = Choice::new(COSTS);
        // By what is timed, 900 ns and 35 ns a KiB to 160 ns a KiB.
        choice.pushed(
            4096,
            Duration::from_nanos(320),
            published([80.0, 900.0, 0.0]),
        );
        assert_eq!(choice.alone.bytes / 1024, 7, "{choice:?}");
        // A lent body of 5 KiB takes 475 ns longer than a copied one, not 275.
        ping_pong(&mut choice, 5 << 10, [1000, 1475], 20 * EXPLORED);
        let found = choice.alone.bytes;
        assert!((8900..9100).contains(&found), "{choice:?}");
        // A program that computes meanwhile shows nothing.
        ping_pong(&mut choice, 5 << 10, [90_000, 50_000], 20 * EXPLORED);
        assert_eq!(choice.alone.bytes, found, "{choice:?}");
    }

    #[test]
    fn where_nothing_is_pushed_the_intervals_alone_show_which_way_is_quicker() {
        let mut choice = Choice::new(COSTS);
        let mut get = |length, takes: [u64; 2]| {
            let mut at = Instant::now();
            let mut lent = 0;
            for _ in 0..4 * EXPLORED {
                let is_lent = choice.alone_at(length, at);
                at += Duration::from_nanos(takes[usize::from(is_lent)]);
                lent += u32::from(is_lent);
            }
            (lent > 2 * EXPLORED, choice.alone.bytes)
        };
        assert_eq!(get(12 << 10, [3200, 2200]), (true, (12 << 10) - 1));
        assert_eq!(get(8 << 10, [2000, 1200]), (true, (8 << 10) - 1));
        assert_eq!(get(5 << 10, [1200, 1400]), (false, (8 << 10) - 1));
        assert_eq!(get(12 << 10, [3200, 3600]), (false, 12 << 10));
        let (_, found) = get(12 << 10, [90_000, 50_000]);
        assert_eq!(found, 12 << 10, "a program that computes shows nothing");
        assert_eq!(choice.streaming.bytes, found, "and for streams");
    }

    #[test]
    fn bodies_that_would_go_in_parts_are_compared_apart() {
        let mut choice = Choice::new(COSTS);
        ping_pong(&mut choice, 12 << 10, [3000, 2000], 20 * EXPLORED);
        ping_pong(&mut choice, 5 << 10, [1000, 1600], 20 * EXPLORED);
        assert_eq!(choice.alone.bytes / 1024, 9, "{choice:?}");
        ping_pong(&mut choice, 12 << 10, [1500, 2000], 20 * EXPLORED);
        assert!(choice.alone.bytes > 12 << 10, "{choice:?}");
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
        let lent = (0..EXPLORED).filter(|_| choice.alone(24 * 1024)).count();
        assert_eq!(lent, (EXPLORED - IN_A_ROW) as usize);
        let lent = (0..EXPLORED).filter(|_| choice.alone(12 * 1024)).count();
        assert_eq!(lent, IN_A_ROW as usize, "and the other way round");
        assert!((0..EXPLORED).all(|_| !choice.alone(4 * 1024)));
    }

    #[test]
    fn the_longer_a_body_beside_the_threshold_the_less_often_it_goes_the_other_way() {
        let bytes = Choice::new(COSTS).alone.bytes;
        for (length, halved) in [(bytes + 1, 0), (2 * bytes, 1), (9 * bytes, 3), (1 << 30, 4)] {
            let mut choice = Choice::new(COSTS);
            let copied = (0..16 * EXPLORED).filter(|_| !choice.alone(length));
            assert_eq!(copied.count() as u32, (16 >> halved) * IN_A_ROW, "{length}");
        }
    }

    #[test]
    fn a_threshold_that_was_set_holds_for_every_body() {
        let mut choice = Choice::new(Costs::Set(5000));
        push(&mut choice, 4096, 220.0, 200);
        assert!((0..1000).all(|_| choice.alone(5001) && !choice.alone(5000)));
    }
}
