//! The ring between two threads, and against a sender that writes nonsense.

use lintel_claim::{Claim, Region};
use lintel_ring::{
    Control, Corrupt, Full, INLINE, LINE, Lookout, MAX_PAYLOAD, NEAR_LINES, Receiver, SLOTS,
    Sender, WIDE_LINES, WORDS, ring_bytes,
};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

struct Rig {
    memory: Region,
    source: Region,
    // Kept last: the ends point into it.
    control: Box<Control>,
}

impl Rig {
    fn new() -> (Rig, Sender, Receiver) {
        Rig::with_lines(NEAR_LINES)
    }

    fn with_lines(lines: usize) -> (Rig, Sender, Receiver) {
        let rig = Rig {
            memory: Region::new(ring_bytes(lines) as u64),
            source: Region::new(MAX_PAYLOAD as u64),
            control: Box::default(),
        };
        let ring = rig.memory.claim().address() as *mut u8;
        // SAFETY: a region is page-aligned and outlives both ends in every test.
        let sender = unsafe { Sender::new(ring, &*rig.control, lines) };
        // SAFETY: as above.
        let receiver = unsafe { Receiver::new(ring, &*rig.control, lines) };
        (rig, sender, receiver)
    }

    fn payload(&self, length: usize, seed: u64) -> Claim {
        let bytes: Vec<u8> = (0..length).map(|at| (at as u64 * 7 + seed) as u8).collect();
        self.source.write(0, &bytes);
        self.source.claim().slice(0, length as u64)
    }

    /// The bytes of the ring up to the end of that payload.
    fn end_of(&self, payload: Claim) -> usize {
        (payload.address() + payload.len() - self.memory.claim().address()) as usize
    }
}

fn words(value: u64) -> [u64; WORDS] {
    [1 << 32, value, value + 1, value + 2, value + 3, value + 4]
}

fn bytes(claim: Claim) -> Vec<u8> {
    let mut bytes = vec![0; claim.len() as usize];
    claim.read(&mut bytes);
    bytes
}

#[test]
fn records_of_every_length_arrive_whole_and_in_order_over_many_laps() {
    for lines in [NEAR_LINES, WIDE_LINES] {
        let (rig, mut sender, mut receiver) = Rig::with_lines(lines);
        for round in 0..3000u64 {
            let length = (round as usize * 37) % (MAX_PAYLOAD + 1);
            let payload = rig.payload(length, round);
            sender
                .push(&words(round), &[payload])
                .expect("the receiver keeps up");
            let record = receiver
                .peek()
                .expect("no nonsense")
                .expect("it has arrived");
            assert_eq!(record.words[1..], words(round)[1..], "round {round}");
            assert_eq!(
                bytes(record.payload),
                bytes(payload),
                "round {round} of {length} bytes"
            );
            receiver.advance();
            receiver.publish_head();
            assert!(receiver.peek().unwrap().is_none(), "round {round}");
        }
        assert!(sender.is_drained());
    }
}

/// The next number of a sequence, below `end`.
fn next(state: &mut u64, end: u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
    (*state >> 33) % end
}

#[test]
fn records_arrive_whole_and_in_order_however_far_the_receiver_is_behind() {
    for (seed, lines) in (0..40).zip([NEAR_LINES, WIDE_LINES, WIDE_LINES - 5].iter().cycle()) {
        let (rig, mut sender, mut receiver) = Rig::with_lines(*lines);
        let mut random = seed;
        let mut unread = VecDeque::new();
        for round in 0..2000 {
            let longest = [INLINE, 1000, 5000, MAX_PAYLOAD][next(&mut random, 4) as usize];
            let length = next(&mut random, longest as u64 + 1) as usize;
            let payload = rig.payload(length, round);
            if unread.is_empty() {
                receiver.publish_head();
            }
            match sender.push(&words(round), &[payload]) {
                Ok(()) => unread.push_back((round, bytes(payload))),
                Err(Full) => assert!(!unread.is_empty(), "seed {seed}, round {round}"),
            }
            // Rows of records that aren't read take turns with some that all are.
            let is_read = (round / 150) % 2 == 0 || unread.len() > 200;
            for _ in 0..if is_read { next(&mut random, 4) } else { 0 } {
                let Some((round, expected)) = unread.pop_front() else {
                    break;
                };
                let record = receiver.peek().expect("no nonsense").expect("it is there");
                assert_eq!(record.words[1], round, "seed {seed}");
                assert_eq!(bytes(record.payload), expected, "seed {seed}, {round}");
                receiver.advance();
            }
            if next(&mut random, 3) == 0 {
                receiver.publish_head();
            }
        }
    }
}

#[test]
fn a_receiver_that_keeps_up_is_sent_the_same_lines_again() {
    let (rig, mut sender, mut receiver) = Rig::with_lines(WIDE_LINES);
    for round in 0..1000 {
        let pushed = sender.push(&words(round), &[rig.payload(1000, round)]);
        pushed.expect("the receiver keeps up");
        let record = receiver.peek().expect("no nonsense").expect("it is there");
        assert!(rig.end_of(record.payload) <= ring_bytes(NEAR_LINES));
        receiver.advance();
        receiver.publish_head();
    }
}

#[test]
fn a_receiver_that_is_behind_is_sent_all_lines_and_few_once_it_keeps_up() {
    let (rig, mut sender, mut receiver) = Rig::with_lines(WIDE_LINES);
    let payload = rig.payload(MAX_PAYLOAD, 1);
    let mut sent = 0;
    while sender.push(&words(sent), &[payload]).is_ok() {
        sent += 1;
    }
    assert_eq!(sent as usize, WIDE_LINES * LINE / MAX_PAYLOAD);
    let take = |receiver: &mut Receiver| {
        let record = receiver.peek().expect("no nonsense").expect("it is there");
        assert_eq!(bytes(record.payload), bytes(payload));
        receiver.advance();
        receiver.publish_head();
        rig.end_of(record.payload)
    };
    let ends = (0..sent).map(|_| take(&mut receiver));
    let furthest = ends.max().expect("some were sent");
    assert!(furthest > ring_bytes(WIDE_LINES) - MAX_PAYLOAD);
    for _ in 0..100 {
        assert_eq!(sender.push(&words(0), &[payload]), Ok(()));
        assert!(take(&mut receiver) <= ring_bytes(NEAR_LINES));
    }
}

#[test]
fn a_payload_that_would_reach_beyond_the_data_is_nonsense() {
    let (rig, mut sender, mut receiver) = Rig::new();
    let payload = rig.payload(MAX_PAYLOAD, 0);
    for round in 0..2 {
        assert_eq!(sender.push(&words(round), &[payload]), Ok(()));
        assert!(matches!(receiver.peek(), Ok(Some(_))));
        receiver.advance();
    }
    let (commit, wraps) = ((MAX_PAYLOAD as u64) << 16 | 1, 1 << 31);
    for (word, expected) in [(commit, Err(Corrupt)), (commit | wraps, Ok(true))] {
        rig.memory.write(2 * LINE as u64, &word.to_ne_bytes());
        assert_eq!(receiver.peek().map(|record| record.is_some()), expected);
    }
}

#[test]
fn a_short_record_takes_no_data_and_none_of_its_room() {
    let (rig, mut sender, mut receiver) = Rig::new();
    let long = rig.payload(MAX_PAYLOAD, 0);
    while sender.push(&words(0), &[long]).is_ok() {}
    let before = sender.position();
    let payload = rig.payload(INLINE, 1);
    assert_eq!(sender.push_short(&words(1), &[payload]), Ok(()));
    assert_eq!(sender.position(), (before.0 + 1, before.1));
    for _ in 0..before.0 {
        assert!(matches!(receiver.peek(), Ok(Some(_))));
        receiver.advance();
    }
    let record = receiver.peek().expect("no nonsense").expect("it is there");
    assert_eq!(record.words[1..], words(1)[1..]);
    assert_eq!(bytes(record.payload), bytes(payload));
}

#[test]
#[should_panic(expected = "a longer payload takes data")]
fn a_payload_that_its_slot_does_not_hold_is_not_pushed_as_short() {
    let (rig, mut sender, _receiver) = Rig::new();
    let _ = sender.push_short(&words(0), &[rig.payload(INLINE + 1, 0)]);
}

/// Has a lookout watch a rig's ring.
fn watch(lookout: &Lookout, receiver: &Receiver, looks: u32) {
    // SAFETY: in every test the rig outlives the lookout.
    unsafe { lookout.watch([receiver].into_iter(), 0, looks) };
}

#[test]
fn a_lookout_sees_each_record_of_many_laps_and_nothing_before() {
    let (rig, mut sender, mut receiver) = Rig::new();
    let lookout = Lookout::new();
    for round in 0..3 * SLOTS as u64 {
        watch(&lookout, &receiver, 10);
        assert!(lookout.is_quiet(), "round {round}");
        let pushed = sender.push(&words(round), &[rig.payload(8, round)]);
        pushed.expect("the receiver keeps up");
        assert!(!lookout.is_quiet(), "round {round}");
        assert!(matches!(receiver.peek(), Ok(Some(_))));
        receiver.advance();
        receiver.publish_head();
    }
}

#[test]
fn a_lookout_finds_nothing_only_so_many_times_and_counts_its_looks() {
    let (_rig, _sender, receiver) = Rig::new();
    let lookout = Lookout::new();
    assert!(!lookout.is_quiet(), "nothing is watched");
    watch(&lookout, &receiver, 3);
    assert_eq!(lookout.take_looks(), 0);
    assert_eq!((0..10).filter(|_| lookout.is_quiet()).count(), 3);
    assert_eq!((lookout.take_looks(), lookout.take_looks()), (3, 0));
    watch(&lookout, &receiver, 3);
    lookout.close();
    assert!(!lookout.is_quiet());
    assert_eq!(lookout.take_looks(), 0);
}

#[test]
fn a_look_that_is_left_out_finds_nothing_and_the_one_behind_it_all() {
    let (rig, mut sender, receiver) = Rig::new();
    let lookout = Lookout::new();
    watch(&lookout, &receiver, 10);
    let pushed = sender.push(&words(1), &[rig.payload(8, 1)]);
    pushed.expect("there is room");
    lookout.leave_one_out();
    assert_eq!(quiet_looks(&lookout, 10), 1);
    lookout.leave_one_out();
    watch(&lookout, &receiver, 10);
    assert_eq!(quiet_looks(&lookout, 10), 0, "it is watched anew");
    lookout.leave_one_out();
    lookout.close();
    assert_eq!(quiet_looks(&lookout, 10), 0, "the owner is asked");
}

#[test]
fn a_lookout_with_more_rings_than_it_can_watch_is_closed() {
    let (_rig, _sender, receiver) = Rig::new();
    let lookout = Lookout::new();
    // SAFETY: the rig outlives the lookout.
    unsafe { lookout.watch(std::iter::repeat_n(&receiver, 129), 0, 3) };
    assert!(!lookout.is_quiet());
}

/// Looks that find nothing, of at most so many.
fn quiet_looks(lookout: &Lookout, most: usize) -> usize {
    (0..most).take_while(|_| lookout.is_quiet()).count()
}

#[test]
fn a_lookout_sees_the_ring_read_last_at_once_and_each_of_many_others_soon() {
    let mut rigs: Vec<_> = (0..100).map(|_| Rig::new()).collect();
    let lookout = Lookout::new();
    for (place, last) in [(5, 5), (0, 5), (99, 5), (57, 0), (5, 99), (99, 99)] {
        let receivers = rigs.iter().map(|(_, _, receiver)| receiver);
        // SAFETY: the rigs outlive the lookout.
        unsafe { lookout.watch(receivers, last, 2) };
        let looks = quiet_looks(&lookout, 1000);
        assert_eq!(looks, 26, "each ring twice, eight at a time");
        let receivers = rigs.iter().map(|(_, _, receiver)| receiver);
        // SAFETY: as above.
        unsafe { lookout.watch(receivers, last, 2) };
        let (rig, sender, receiver) = &mut rigs[place];
        let pushed = sender.push(&words(1), &[rig.payload(8, 1)]);
        pushed.expect("there is room");
        let most = if place == last { 0 } else { 13 };
        let looks = quiet_looks(&lookout, 1000);
        assert!(looks <= most, "{looks} looks, ring {place}, last {last}");
        assert_eq!(
            [lookout.take_found(), lookout.take_found()],
            [Some(place), None]
        );
        assert!(matches!(receiver.peek(), Ok(Some(_))));
        receiver.advance();
    }
}

#[test]
fn a_lookout_that_looks_on_finds_rings_that_were_read_besides_at_most_too_full() {
    let mut rigs: Vec<_> = (0..40).map(|_| Rig::new()).collect();
    let lookout = Lookout::new();
    // SAFETY: the rigs outlive the lookout.
    unsafe { lookout.watch(rigs.iter().map(|(_, _, receiver)| receiver), 7, 3) };
    // SAFETY: as above.
    let watch_on = |number, receiver: &Receiver| unsafe { lookout.watch_on(number, receiver, 3) };
    let take = |(rig, sender, receiver): &mut (Rig, Sender, Receiver)| {
        let pushed = sender.push(&words(1), &[rig.payload(8, 1)]);
        pushed.expect("there is room");
        assert!(matches!(receiver.peek(), Ok(Some(_))));
        receiver.advance();
    };
    take(&mut rigs[7]);
    assert_eq!(quiet_looks(&lookout, 100), 0, "where that record was");
    watch_on(7, &rigs[7].2);
    assert_eq!(quiet_looks(&lookout, 100), 15, "all rings three times");
    take(&mut rigs[7]);
    take(&mut rigs[30]);
    watch_on(7, &rigs[7].2);
    assert!(quiet_looks(&lookout, 100) < 5);
    watch_on(40, &rigs[7].2);
    assert!(!lookout.is_quiet(), "it watches no ring of that number");
}

#[test]
fn a_lookout_sees_what_was_counted_since_that_was_taken() {
    let (_rig, _sender, receiver) = Rig::new();
    let counts = [const { AtomicU64::new(3) }; 2];
    let many = [const { AtomicU64::new(0) }; 100];
    let lookout = Lookout::new();
    // SAFETY: the counts outlive the lookout.
    let watch_counts = |taken| unsafe { lookout.watch_counts(counts.iter().zip(taken)) };
    assert!(!lookout.is_count_due(), "there are none");
    watch(&lookout, &receiver, 10);
    watch_counts([3, 3]);
    assert!(lookout.is_quiet() && !lookout.is_count_due());
    counts[1].fetch_add(1 << 40, Ordering::Relaxed);
    assert!(!lookout.is_quiet() && lookout.is_count_due());
    watch_counts([3, 3 + (1 << 40)]);
    assert!(lookout.is_quiet() && !lookout.is_count_due());
    lookout.forget_counts();
    assert!(!lookout.is_quiet() && lookout.is_count_due());
    // SAFETY: as above.
    unsafe { lookout.watch_counts(many.iter().map(|count| (count, 0))) };
    assert!(
        !lookout.is_quiet(),
        "one of more than it can watch may have changed"
    );
}

#[test]
fn a_full_ring_refuses_and_forgets_nothing() {
    let (rig, mut sender, mut receiver) = Rig::new();
    let mut sent = 0u64;
    while sender.push(&words(sent), &[rig.payload(100, sent)]) != Err(Full) {
        sent += 1;
    }
    for expected in 0..sent {
        let record = receiver.peek().unwrap().expect("what was accepted arrives");
        assert_eq!(record.words[1], expected);
        receiver.advance();
    }
    receiver.publish_head();
    assert!(receiver.peek().unwrap().is_none());
    assert_eq!(sender.push(&words(sent), &[]), Ok(()));
}

#[test]
fn the_slots_of_an_earlier_lap_are_not_taken_for_records_even_when_laps_are_counted_anew() {
    let (_rig, mut sender, mut receiver) = Rig::new();
    for round in 0..(u64::from(u16::MAX) + 3) * SLOTS as u64 {
        sender.push(&words(round), &[]).expect("there is room");
        let record = receiver.peek().expect("no nonsense").expect("it arrived");
        assert_eq!(record.words[1], round);
        receiver.advance();
        assert!(receiver.peek().unwrap().is_none(), "round {round}");
    }
}

#[test]
fn a_receiver_that_publishes_nonsense_frees_no_slot() {
    let (rig, mut sender, _receiver) = Rig::new();
    while sender.push(&words(0), &[rig.payload(100, 0)]) != Err(Full) {}
    for nonsense in [u64::MAX, 1 << 40, 4000, 4000 << 32 | 1] {
        // SAFETY: the control is an atomic, alive as long as the rig.
        let head = unsafe { AtomicU64::from_ptr((&raw const *rig.control).cast_mut().cast()) };
        head.store(nonsense, Ordering::Relaxed);
        assert_eq!(sender.push(&words(0), &[]), Err(Full), "{nonsense:#x}");
    }
}

#[test]
fn two_threads_exchange_a_million_records() {
    const COUNT: u64 = 1_000_000;
    let (rig, mut sender, mut receiver) = Rig::new();
    let payload = rig.payload(40, 1);
    let expected = bytes(payload);
    let deadline = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..COUNT {
                let payload = payload.slice(0, round % 41);
                while sender.push(&words(round), &[payload]).is_err() {
                    assert!(Instant::now() < deadline, "the receiver doesn't read on");
                    std::thread::yield_now();
                }
            }
        });
        let mut round = 0;
        while round < COUNT {
            match receiver.peek().expect("no nonsense") {
                None => {
                    assert!(Instant::now() < deadline, "nothing more arrives");
                    receiver.publish_head();
                    std::thread::yield_now();
                }
                Some(record) => {
                    assert_eq!(record.words[1..], words(round)[1..]);
                    assert_eq!(bytes(record.payload), expected[..(round % 41) as usize]);
                    receiver.advance();
                    round += 1;
                }
            }
        }
    });
}

#[test]
fn records_behind_the_next_one_are_seen_before_it_is_done_with() {
    let (rig, mut sender, mut receiver) = Rig::new();
    let length = |round: u64| (round as usize * 37) % 200;
    let mut next = 0;
    while next < 3 * SLOTS as u64 {
        for round in next..next + 5 {
            let payload = rig.payload(length(round), round);
            let pushed = sender.push(&words(round), &[payload]);
            pushed.expect("the receiver keeps up");
        }
        assert!(receiver.peek().unwrap().is_some());
        for places in 1..5 {
            let (round, seen) = (next + u64::from(places), receiver.peek_behind(places));
            let seen = seen.expect("it has arrived");
            assert_eq!(seen.words[1..], words(round)[1..], "round {round}");
            let expected = rig.payload(length(round), round);
            assert_eq!(bytes(seen.payload), bytes(expected), "round {round}");
        }
        assert!(receiver.peek_behind(5).is_none());
        receiver.advance_by(4);
        let last = receiver.peek().unwrap().expect("one is left");
        assert_eq!(last.words[1], next + 4);
        receiver.advance();
        receiver.publish_head();
        next += 5;
    }
    assert!(sender.is_drained());
}

#[test]
fn nonsense_behind_the_next_record_is_no_record() {
    let (rig, mut sender, mut receiver) = Rig::new();
    sender.push(&words(1), &[]).expect("there is room");
    rig.memory.write(64, &(0xffff_u64 << 16 | 1).to_ne_bytes());
    assert!(receiver.peek().unwrap().is_some());
    assert!(receiver.peek_behind(1).is_none());
    receiver.advance_by(2);
    assert_eq!(receiver.peek().map(|_| ()), Err(Corrupt));
}

#[test]
fn nonsense_in_the_ring_is_noticed_and_stays_noticed() {
    for garbage in [1u64 << 40 | 2, u64::MAX, 0xffff << 16 | 1, 7] {
        let (rig, _sender, mut receiver) = Rig::new();
        rig.memory.write(0, &garbage.to_ne_bytes());
        assert_eq!(receiver.peek().map(|_| ()), Err(Corrupt), "{garbage:#x}");
        assert_eq!(
            receiver.peek().map(|_| ()),
            Err(Corrupt),
            "{garbage:#x} again"
        );
    }
}

/// A number of `spec/instructions.toml`, by its name.
fn budget(name: &str) -> usize {
    let spec = include_str!("../../../spec/instructions.toml");
    let line = spec.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.trim().strip_prefix('=')?.trim().parse().ok());
    number.expect("the budget names it")
}

/// The lines that differ.
fn changed(before: &[u8], after: &[u8]) -> usize {
    let lines = before.chunks(LINE).zip(after.chunks(LINE));
    lines.filter(|(before, after)| before != after).count()
}

#[test]
fn a_message_of_8_bytes_changes_the_lines_that_the_budget_says() {
    let (rig, mut sender, mut receiver) = Rig::new();
    let (mut written, mut published) = (0, 0);
    for round in 0..4 * SLOTS as u64 {
        let before = bytes(rig.memory.claim());
        let pushed = sender.push(&words(round), &[rig.payload(8, round)]);
        pushed.expect("the receiver keeps up");
        written += changed(&before, &bytes(rig.memory.claim()));
        assert!(matches!(receiver.peek(), Ok(Some(_))));
        let before = format!("{:?}", rig.control);
        receiver.advance();
        published += usize::from(format!("{:?}", rig.control) != before);
    }
    assert_eq!(written, 4 * SLOTS * budget("\"slots, for each message\""));
    assert_eq!(
        published * budget("\"messages, for each line of the head\""),
        4 * SLOTS
    );
}
