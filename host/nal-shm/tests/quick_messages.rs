//! Short messages in few instructions, between two NALs of one process.

use lintel_claim::{Claim, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_shm::{Costs, EAGER, INLINE, LONGEST_QUICK, SendPlace, ShmNal};
use lintel_presence::{Bell, Segment, Sleeper};
use lintel_types::ProcessId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const NID: u32 = 0x7f00_0001;
const TO: u32 = 7;

/// A sender, and a receiver with its bell.
struct Pair {
    from: ShmNal,
    to: ShmNal,
    bell: Bell,
    job: String,
    place: SendPlace,
    bytes: Region,
}

impl Pair {
    /// One message has passed, so that they are connected.
    fn new() -> Pair {
        static PAIRS: AtomicU32 = AtomicU32::new(0);
        let count = PAIRS.fetch_add(1, Ordering::Relaxed);
        let job = format!("quick-{}-{count}", std::process::id());
        let (mut from, _) = open(&job, ProcessId::PID_ANY);
        let (mut to, bell) = open(&job, TO);
        assert!(
            from.send_place(to.process()).is_none(),
            "nothing was sent to it"
        );
        send(&mut from, to.process(), 0);
        assert_eq!(receive(&mut to), [(0, vec![])]);
        let bytes = Region::new(LONGEST_QUICK);
        for (at, byte) in (0..LONGEST_QUICK).zip((0..=u8::MAX).cycle()) {
            bytes.claim().slice(at, 1).write(&[byte]);
        }
        Pair {
            place: from
                .send_place(to.process())
                .expect("something was sent to it"),
            from,
            to,
            bell,
            job,
            bytes,
        }
    }

    /// Sends so many bytes with a number.
    fn send_quickly(&mut self, number: u64, length: u64) -> Option<()> {
        let body = self.bytes.claim().slice(0, length);
        self.from
            .send_quickly(&self.place, &words(number), body, length)
    }
}

fn open(job: &str, pid: u32) -> (ShmNal, Bell) {
    let segment = Segment::create(job, NID, pid).expect("shared memory can be had");
    let segment = Arc::new(segment);
    let log = |line: &str| eprintln!("{line}");
    let nal = ShmNal::new(segment.clone(), Costs::Set(EAGER), log);
    (nal, Bell::new(segment))
}

fn words(number: u64) -> [u64; 6] {
    [0, number, 0, 0, 0, 0]
}

fn send(from: &mut ShmNal, to: ProcessId, number: u64) {
    let nothing = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };
    from.send(to, &words(number), nothing).expect("it lives");
}

/// Takes all that was sent: numbers and bodies.
fn receive(to: &mut ShmNal) -> Vec<(u64, Vec<u8>)> {
    let mut received = Vec::new();
    while let Some(arrival) = to.next() {
        let Arrival::Message(origin, words, payload) = arrival else {
            continue;
        };
        let body = match payload {
            Payload::Inline(claim) => contents(claim),
            other => panic!("{other:?} of {words:?}"),
        };
        received.push((words[1], body));
        to.done(origin);
    }
    to.flush();
    received
}

fn contents(claim: Claim) -> Vec<u8> {
    let mut bytes = vec![0; claim.len() as usize];
    claim.read(&mut bytes);
    bytes
}

/// Answers until nothing finds room any more, then as often as `is_enough` wants.
fn answer_until(pair: &mut Pair, is_enough: impl Fn(&ShmNal) -> bool) {
    let sender = pair.from.process();
    while !pair.to.has_queued(sender) || !is_enough(&pair.to) {
        send(&mut pair.to, sender, 0);
    }
}

fn numbers(received: Vec<(u64, Vec<u8>)>) -> Vec<u64> {
    received.into_iter().map(|(number, _)| number).collect()
}

#[test]
fn bodies_of_every_length_arrive_in_order_between_other_messages() {
    let mut pair = Pair::new();
    let inline = INLINE as u64;
    for length in [0, 1, 8, inline, inline + 1, 64, 1000, LONGEST_QUICK] {
        let expected = contents(pair.bytes.claim().slice(0, length));
        pair.send_quickly(1, length).expect("there is room");
        send(&mut pair.from, pair.to.process(), 2);
        pair.send_quickly(3, length).expect("there is room");
        let received = receive(&mut pair.to);
        assert_eq!(
            received,
            [(1, expected.clone()), (2, vec![]), (3, expected)]
        );
    }
}

#[test]
fn nothing_is_sent_while_there_is_no_room_or_something_waits_for_it() {
    let mut pair = Pair::new();
    let mut sent = 0;
    while pair.send_quickly(sent, 8).is_some() {
        sent += 1;
    }
    assert!(sent > 0);
    send(&mut pair.from, pair.to.process(), sent);
    let first = numbers(receive(&mut pair.to));
    assert_eq!(first, (0..sent).collect::<Vec<_>>());
    assert!(
        pair.send_quickly(sent + 1, 8).is_none(),
        "it would overtake what waits"
    );
    assert!(!pair.from.flush(), "there is room for it");
    pair.send_quickly(sent + 1, 8).expect("nothing waits");
    assert_eq!(numbers(receive(&mut pair.to)), [sent, sent + 1]);
}

#[test]
fn a_receiver_that_sleeps_is_rung() {
    let mut pair = Pair::new();
    pair.bell.arm(Sleeper::Helper);
    let before = pair.bell.rings(Sleeper::Helper);
    pair.send_quickly(1, 8).expect("there is room");
    assert!(!pair.bell.is_armed());
    assert_ne!(pair.bell.rings(Sleeper::Helper), before);
    pair.send_quickly(2, 8).expect("there is room");
    assert_eq!(numbers(receive(&mut pair.to)), [1, 2]);
}

#[test]
fn a_receiver_that_has_ended_is_sent_nothing_and_one_in_its_place_what_was_sent_to_that() {
    let pair = Pair::new();
    let (mut from, place, job) = (pair.from, pair.place, pair.job);
    drop((pair.to, pair.bell));
    from.check_peers();
    let nothing = Claim::empty();
    assert!(from.send_quickly(&place, &words(1), nothing, 0).is_none());
    let (mut successor, _) = open(&job, TO);
    assert!(matches!(from.next(), Some(Arrival::Lost(lost)) if lost == successor.process()));
    assert!(
        from.send_quickly(&place, &words(2), nothing, 0).is_none(),
        "it isn't connected"
    );
    send(&mut from, successor.process(), 3);
    let sent = from.send_quickly(&place, &words(4), nothing, 0);
    sent.expect("it has the same name and place");
    assert_eq!(numbers(receive(&mut successor)), [3, 4]);
}

/// The number of the message that is next, if it is taken quickly.
fn next_quickly(to: &mut ShmNal) -> Option<u64> {
    let (_, words, _) = to.peek_quickly(|_| true)?;
    Some(words[1])
}

#[test]
fn a_short_message_stays_the_next_one_until_it_is_done() {
    let mut pair = Pair::new();
    assert_eq!(next_quickly(&mut pair.to), None);
    for (number, length) in [(1, 8), (2, 100), (3, LONGEST_QUICK)] {
        pair.send_quickly(number, length).expect("there is room");
    }
    for (number, length) in [(1, 8), (2, 100), (3, LONGEST_QUICK)] {
        assert!(pair.to.peek_quickly(|_| false).is_none(), "it isn't wanted");
        assert_eq!(next_quickly(&mut pair.to), Some(number));
        let (origin, words, body) = pair.to.peek_quickly(|_| true).expect("it stays");
        assert_eq!((origin.process, words[1]), (pair.from.process(), number));
        assert_eq!(
            contents(body),
            contents(pair.bytes.claim().slice(0, length))
        );
        pair.to.done_quickly();
    }
    assert_eq!(next_quickly(&mut pair.to), None);
}

#[test]
fn a_longer_message_is_left_and_those_behind_it_wait() {
    let mut pair = Pair::new();
    let long = Region::new(4096);
    let outgoing = Outgoing::Copied {
        operand: None,
        pieces: &[long.claim()],
    };
    let to = pair.to.process();
    pair.from.send(to, &words(1), outgoing).expect("it lives");
    pair.send_quickly(2, 8).expect("there is room");
    assert_eq!(next_quickly(&mut pair.to), None);
    assert_eq!(numbers(receive(&mut pair.to)), [1, 2]);
}

#[test]
fn a_sender_of_many_messages_leaves_others_their_turn() {
    let mut pair = Pair::new();
    let (mut other, _) = open(&pair.job, ProcessId::PID_ANY);
    send(&mut other, pair.to.process(), 1000);
    assert_eq!(numbers(receive(&mut pair.to)), [1000], "it is connected");
    for number in 0..100 {
        send(&mut pair.from, pair.to.process(), number);
        send(&mut other, pair.to.process(), 1000 + number);
    }
    let mut received = Vec::new();
    while received.len() < 200 {
        if let Some(number) = next_quickly(&mut pair.to) {
            received.push(number);
            pair.to.done_quickly();
        } else if let Some(Arrival::Message(origin, words, _)) = pair.to.next() {
            received.push(words[1]);
            pair.to.done(origin);
        }
    }
    let first_of_each = [0, 1000].map(|number| received.iter().position(|&seen| seen == number));
    assert!(
        first_of_each.iter().all(|place| place < &Some(50)),
        "{received:?}"
    );
    let of_other = received.iter().filter(|number| **number >= 1000);
    assert!(of_other.copied().eq(1000..1100), "each sender's in order");
}

#[test]
fn a_senders_turn_ends_while_much_is_queued_for_it() {
    let mut pair = Pair::new();
    (1..=3).for_each(|number| send(&mut pair.from, pair.to.process(), number));
    let (origin, words, _) = pair.to.next_inline().expect("one has come");
    assert_eq!(words[1], 1);
    pair.to.done(origin);
    answer_until(&mut pair, |_| true);
    assert!(!pair.to.has_much_queued() && pair.to.next_inline().is_some());
    answer_until(&mut pair, ShmNal::has_much_queued);
    assert!(pair.to.next_inline().is_none() && pair.to.peek_quickly(|_| true).is_none());
    assert!(
        pair.to.take_queued_more() && !pair.to.take_queued_more(),
        "once"
    );
    while pair.to.flush() {
        receive(&mut pair.from);
    }
    assert!(!pair.to.has_much_queued());
    assert_eq!(numbers(receive(&mut pair.to)), [2, 3]);
}

#[test]
fn a_reader_is_waited_for_unless_it_streams() {
    let mut pair = Pair::new();
    let (sender, to) = (pair.from.process(), pair.to.process());
    answer_until(&mut pair, |_| true);
    assert!(pair.to.may_await_reader(sender));
    let long = Region::new(300_000);
    let body = Outgoing::Copied {
        operand: None,
        pieces: &[long.claim()],
    };
    pair.from.send(to, &words(1), body).expect("it lives");
    assert!(!pair.to.may_await_reader(sender));
}
