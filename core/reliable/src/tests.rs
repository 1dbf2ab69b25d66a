//! Endpoints on a wire that does what a test says: what is sent when, to the nanosecond.

mod contradictions;
mod failed_sends;
mod windows;

use crate::congestion::OVERHEAD;
use crate::packet::{Class, Header, Kind};
use crate::pair::Pair;
use crate::receiving::Receiving;
use crate::sending::Sending;
use crate::{Config, Counts, Endpoint, Incarnation, Message, Model, Nanos, PairId, Time, Verdict};
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use lintel_types::ProcessId;

const MAX_DATAGRAM: u32 = 1000;
/// Long enough for what is tested; a timeout is at most a sixteenth of it.
const PEER_TIMEOUT: Duration = Duration::from_secs(16);
const START: Time = Time(1_000_000_000);
/// The round trip of a peer that [`met`] has introduced.
const ROUND_TRIP: Nanos = Nanos::from_millis(1);

/// Two processes to a node.
fn name(number: u32) -> ProcessId {
    ProcessId::new(1 + number / 2, 100 + number % 2)
}

fn endpoint_with(number: u32, peer_timeout: Duration) -> Endpoint<u64> {
    Endpoint::new(Config {
        me: name(number),
        uid: 7,
        incarnation: Incarnation::new(100 + u64::from(number)).expect("it isn't 0"),
        model: Model::Xrc,
        max_datagram: MAX_DATAGRAM,
        recv_window: 1 << 20,
        peer_timeout,
    })
}

fn endpoint(number: u32) -> Endpoint<u64> {
    endpoint_with(number, PEER_TIMEOUT)
}

fn send(from: &mut Endpoint<u64>, now: Time, to: u32, length: u64) -> PairId {
    let message = Message {
        class: Class::Ordered,
        words: [0; 6],
        length,
        memory: length + 1,
        is_awaited: false,
        body: length,
    };
    let sent = from.send(now, name(to), message, false);
    sent.unwrap_or_else(|_| panic!("ordered messages have any length"))
}

/// What may be sent now.
fn sent(from: &mut Endpoint<u64>, now: Time) -> Vec<Header> {
    let mut headers = Vec::new();
    while let Some(transmit) = from.poll_transmit(now) {
        headers.push(transmit.header);
    }
    headers
}

fn is_data(header: &Header) -> bool {
    matches!(header.kind, Kind::Data(_))
}

/// Everything that is sent by the clock up to a time, in milliseconds since `START`.
fn run(endpoint: &mut Endpoint<u64>, until: u64) -> Vec<(u64, Header)> {
    let (mut all, mut turns) = (Vec::new(), 0);
    let end = START.after(Nanos::from_millis(until));
    while endpoint.due() <= end {
        let now = endpoint.due();
        turns += 1;
        assert!(turns < 10_000, "what is due at {now:?} isn't done");
        endpoint.on_timeout(now);
        for header in sent(endpoint, now) {
            all.push((now.since(START).0 / 1_000_000, header));
        }
    }
    all
}

fn times(sent: &[(u64, Header)], of_kind: impl Fn(&Header) -> bool) -> Vec<u64> {
    let meant = sent.iter().filter(|(_, header)| of_kind(header));
    meant.map(|(at, _)| *at).collect()
}

fn pass(headers: &[Header], to: &mut Endpoint<u64>, now: Time) -> Vec<Verdict> {
    headers
        .iter()
        .map(|header| to.on_packet(now, header, true))
        .collect()
}

/// Has two processes exchange a message, each way of which takes half the round trip; it
/// ends at `START`, when nothing is in flight.
fn met_after(one: &mut Endpoint<u64>, other: &mut Endpoint<u64>, to: u32, round_trip: Nanos) {
    let began = Time(START.0 - 2 * round_trip.0);
    send(one, began, to, 10);
    let probe = sent(one, began);
    pass(&probe, other, began);
    let reset = sent(other, began);
    let answered = Time(START.0 - round_trip.0);
    pass(&reset, one, answered);
    let data = sent(one, answered);
    assert_eq!(data.len(), 1);
    assert!(matches!(
        pass(&data, other, answered)[..],
        [Verdict::Deliver(_)]
    ));
    let acks = acknowledge(other, answered);
    pass(&acks, one, START);
    assert!(one.all_delivered());
}

fn met(one: &mut Endpoint<u64>, other: &mut Endpoint<u64>, to: u32) {
    met_after(one, other, to, ROUND_TRIP);
}

/// The delayed acknowledgements of a receiver, now.
fn acknowledge(receiver: &mut Endpoint<u64>, now: Time) -> Vec<Header> {
    receiver.on_timeout(now.after(Nanos::from_millis(1)));
    sent(receiver, now)
}

#[test]
fn a_process_is_probed_ever_more_seldom_until_it_answers() {
    let mut one = endpoint(0);
    send(&mut one, START, 2, 10);
    assert_eq!(sent(&mut one, START).len(), 1, "the first probe");
    let all = run(&mut one, 2000);
    let expected = [
        2, 4, 8, 12, 20, 28, 44, 60, 92, 124, 188, 252, 380, 508, 764, 1020, 1276, 1532, 1788,
    ];
    assert_eq!(times(&all, |h| h.kind == Kind::Probe), expected);
    assert_eq!(all.len(), expected.len(), "and nothing else is sent");
    assert_eq!(one.resources().contexts, 1);
    assert!(!one.has_unsent(), "it waits for nothing but the answer");
}

#[test]
fn a_peer_that_never_answers_is_lost_after_the_set_silence() {
    let mut one = endpoint_with(0, Duration::from_millis(1600));
    let pair = send(&mut one, START, 2, 10);
    sent(&mut one, START);
    run(&mut one, 1599);
    assert_eq!(one.poll_lost_peer(), None);
    assert_eq!((one.outstanding(), one.backlog(name(2))), (1, 11));
    run(&mut one, 1700);
    let lost = one.poll_lost_peer().expect("it is given up");
    assert_eq!((lost.pair, lost.process), (pair, name(2)));
    assert!(lost.was_addressed);
    assert_eq!((one.outstanding(), one.backlog(name(2))), (0, 0));
    assert_eq!(one.take_finished().count(), 1);
    assert_eq!(one.counts().lost_peers, 1);
}

#[test]
fn a_packet_without_an_answer_is_retransmitted_with_backoff() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    send(&mut one, START, 2, 10);
    let first = sent(&mut one, START)[0];
    send(&mut one, START, 2, 20);
    let second = sent(&mut one, START)[0];
    let all = run(&mut one, 3000);
    // Four round trips, doubled each time, seven times at most.
    let expected = [4, 12, 28, 60, 124, 252, 508, 1020, 1532, 2044, 2556];
    assert_eq!(times(&all, is_data), expected);
    assert!(
        all.iter()
            .all(|(_, h)| h.sequence == first.sequence && h.ack_requested)
    );
    assert_eq!(one.counts().retransmitted, expected.len() as u64);
    assert_ne!(second.sequence, first.sequence);
}

#[test]
fn a_timeout_is_at_most_a_sixteenth_of_the_peer_timeout() {
    let mut one = endpoint_with(0, Duration::from_millis(1600));
    let mut other = endpoint(2);
    met(&mut one, &mut other, 2);
    send(&mut one, START, 2, 10);
    sent(&mut one, START);
    let all = run(&mut one, 500);
    assert_eq!(times(&all, is_data), [4, 12, 28, 60, 124, 224, 324, 424]);
    assert_eq!(
        times(&all, |h| h.kind == Kind::Probe),
        [400],
        "a quarter of it"
    );
}

#[test]
fn nothing_new_is_sent_to_a_peer_that_doesnt_answer() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    send(&mut one, START, 2, 10);
    sent(&mut one, START);
    let retransmitted = run(&mut one, 5);
    assert_eq!(times(&retransmitted, is_data), [4]);
    let now = START.after(Nanos::from_millis(5));
    send(&mut one, now, 2, 20);
    assert!(sent(&mut one, now).is_empty(), "it is parked");
    assert!(one.has_unsent() && one.has_queued(name(2)));
    pass(&[retransmitted[0].1], &mut other, now);
    let acks = acknowledge(&mut other, now);
    pass(&acks, &mut one, now);
    assert_eq!(sent(&mut one, now).len(), 1, "it has answered");
    assert!(!one.has_unsent() && !one.has_queued(name(2)));
}

/// How many of ten packets to a peer may be in flight after so many timeouts of one that
/// the peer acknowledges at last; `is_path_alive`: another process of its node was heard.
fn window_after(timeouts: u64, is_path_alive: bool) -> usize {
    let (mut one, mut other, mut third) = (endpoint(0), endpoint(2), endpoint(3));
    met(&mut one, &mut other, 2);
    met(&mut one, &mut third, 3);
    send(&mut one, START, 2, 10);
    sent(&mut one, START);
    let mut last = Vec::new();
    for until in [5, 13].into_iter().take(timeouts as usize) {
        if is_path_alive {
            // At the second timeout that is just as long ago as the timeout takes.
            let now = START.after(Nanos::from_millis(until - 5));
            send(&mut third, now, 0, 10);
            let message = sent(&mut third, now);
            pass(&message, &mut one, now);
        }
        last = run(&mut one, until);
    }
    assert_eq!(one.counts().retransmitted, timeouts);
    let now = START.after(Nanos::from_millis(14));
    let data: Vec<Header> = last.iter().map(|(_, header)| *header).collect();
    pass(&data, &mut other, now);
    let acks = acknowledge(&mut other, now);
    pass(&acks, &mut one, now);
    assert!(one.all_delivered());
    for _ in 0..10 {
        send(&mut one, now, 2, 800);
    }
    sent(&mut one, now).iter().filter(|h| is_data(h)).count()
}

#[test]
fn two_timeouts_on_a_silent_path_shrink_its_window_to_two_packets() {
    assert_eq!(window_after(1, false), 10);
    assert_eq!(window_after(2, false), 2);
    assert_eq!(window_after(2, true), 10, "the path isn't silent");
}

#[test]
fn a_parked_peer_leaves_the_window_to_the_others_of_its_path() {
    let (mut one, mut other, mut third) = (endpoint(0), endpoint(2), endpoint(3));
    met(&mut one, &mut other, 2);
    met(&mut one, &mut third, 3);
    send(&mut one, START, 2, 1 << 20);
    let filling = sent(&mut one, START);
    assert!(filling.len() > 20, "{} packets", filling.len());
    send(&mut one, START, 3, 10);
    assert!(sent(&mut one, START).is_empty(), "the window is full");
    let all = run(&mut one, 5);
    let to_third = |h: &Header| h.destination == name(3) && is_data(h);
    assert_eq!(times(&all, to_third), [4]);
    let to_third = 10 + OVERHEAD;
    assert_eq!(in_flight(&mut one, 2), (0, to_third), "one alone counts");
    // As soon as the other answers, its bytes count again.
    let now = START.after(Nanos::from_millis(5));
    pass(&filling[..3], &mut other, now);
    let acks = acknowledge(&mut other, now);
    pass(&acks, &mut one, now);
    let (counted, all) = in_flight(&mut one, 2);
    assert!(counted > 20 * OVERHEAD);
    assert_eq!(all, counted + to_third);
}

/// Bytes in flight to a process that count, and all that do on its path.
fn in_flight(endpoint: &mut Endpoint<u64>, to: u32) -> (u64, u64) {
    let pair = &endpoint.pairs[endpoint.find(name(to)).expect("it was met")];
    let counted = pair
        .sending()
        .map_or(0, |sending| sending.counted_in_flight());
    let context = pair.context().expect("something is in flight");
    (counted, endpoint.contexts.get(context).in_flight)
}

#[test]
fn on_a_long_path_packets_are_paced() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met_after(&mut one, &mut other, 2, Nanos::from_millis(10));
    send(&mut one, START, 2, 30_000);
    // A packet of 896 bytes takes 117 µs of a round trip; a millisecond's worth is a burst.
    let burst = sent(&mut one, START).len();
    assert_eq!(burst, 9);
    let ahead = one.paced_until.since(START).0;
    assert!((1_000_000..1_120_000).contains(&ahead), "{ahead} ns");
    let all = run(&mut one, 2);
    assert_eq!(times(&all, is_data).len(), burst, "the next burst");
}

#[test]
fn an_acknowledgement_is_delayed_but_not_for_long_and_not_for_many() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    let pair = send(&mut one, START, 2, 10);
    let data = sent(&mut one, START);
    pass(&data, &mut other, START);
    assert!(sent(&mut other, START).is_empty());
    assert_eq!(other.due(), START.after(Nanos::from_micros(250)));
    let early = START.after(Nanos::from_micros(249));
    other.on_timeout(early);
    assert!(sent(&mut other, early).is_empty());
    let due = other.due();
    other.on_timeout(due);
    let acks = sent(&mut other, due);
    assert_eq!(acks.len(), 1);
    assert_eq!(acks[0].kind, Kind::Ack);
    assert_eq!(acks[0].acknowledged, data[0].sequence.wrapping_add(1));
    pass(&acks, &mut one, due);
    assert!(one.all_delivered() && !one.may_coalesce(pair));
    // Thirty-one don't ask for it; the thirty-second is one too many.
    let mut header = data[0];
    header.ack_requested = false;
    for number in 1..=32 {
        header.sequence = header.sequence.wrapping_add(1);
        pass(&[header], &mut other, due);
        assert_eq!(other.has_work(), number == 32, "{number}");
    }
    assert_eq!(sent(&mut other, due).len(), 1);
}

#[test]
fn a_gap_a_duplicate_and_a_request_are_acknowledged_at_once() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    for _ in 0..3 {
        send(&mut one, START, 2, 10);
    }
    let mut data = sent(&mut one, START);
    data.iter_mut().for_each(|h| h.ack_requested = false);
    let verdicts = pass(&data[1..2], &mut other, START);
    assert!(matches!(verdicts[..], [Verdict::Keep(_)]));
    let acks = sent(&mut other, START);
    assert_eq!(
        (acks[0].acknowledged, acks[0].selective),
        (data[0].sequence, 1)
    );
    assert_eq!(pass(&data[1..2], &mut other, START), [Verdict::Drop]);
    assert_eq!(other.counts().duplicates, 1);
    assert_eq!(sent(&mut other, START).len(), 1);
    // The missing one: what was kept behind it is still to be taken, so it is acknowledged at once.
    let Verdict::Deliver(pair) = pass(&data[..1], &mut other, START)[0] else {
        panic!("it is expected");
    };
    assert_eq!(other.expected(pair), data[1].sequence);
    let Kind::Data(fragment) = data[1].kind else {
        panic!("it is data");
    };
    assert_eq!(other.on_early(pair, &fragment), Verdict::Deliver(pair));
    assert_eq!(sent(&mut other, START)[0].acknowledged, data[2].sequence);
    data[2].ack_requested = true;
    pass(&data[2..], &mut other, START);
    assert_eq!(sent(&mut other, START).len(), 1);
}

#[test]
fn work_is_a_pair_to_send_an_acknowledgement_or_a_probe() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    assert!(!one.has_work());
    met(&mut one, &mut other, 2);
    assert!(!sent(&mut one, START).iter().any(is_data) && !one.has_work());
    send(&mut one, START, 2, 10);
    assert!(one.has_work(), "a pair with something to send");
    let mut data = sent(&mut one, START);
    assert!(!one.has_work());
    data[0].ack_requested = true;
    sent(&mut other, START);
    assert!(!other.has_work());
    pass(&data, &mut other, START);
    assert!(other.has_work(), "an acknowledgement");
    sent(&mut other, START);
    assert!(!other.has_work());
    one.on_refused(START, name(2));
    assert!(one.has_work(), "a probe");
}

#[test]
fn an_unreachable_address_loses_a_stranger_at_once_and_a_friend_at_the_second_report() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    one.on_refused(START, name(2));
    assert_eq!((one.resources().pairs, one.poll_lost_peer()), (0, None));
    met(&mut one, &mut other, 2);
    one.on_refused(START, name(2));
    assert_eq!(one.poll_lost_peer(), None);
    let probes = sent(&mut one, START);
    assert_eq!(probes.len(), 1);
    assert_eq!(probes[0].kind, Kind::Probe);
    pass(&probes, &mut other, START);
    let answer = sent(&mut other, START);
    pass(&answer, &mut one, START);
    one.on_refused(START, name(2));
    assert_eq!(one.poll_lost_peer(), None, "it has answered in between");
    one.on_refused(START, name(2));
    assert!(one.poll_lost_peer().is_some());
    // It hears of the loss by its answer; nothing was sent to it since.
    send(&mut one, START, 4, 10);
    one.on_refused(START, name(4));
    assert_eq!(one.poll_lost_peer().map(|lost| lost.process), Some(name(4)));
}

#[test]
fn a_peer_that_only_sends_may_be_refused_too() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    assert!(other.resources().pairs == 1, "it knows its sender");
    other.on_refused(START, name(0));
    assert_eq!(sent(&mut other, START).len(), 1, "a probe");
    other.on_refused(START, name(0));
    let lost = other.poll_lost_peer().expect("it is given up");
    assert!(!lost.was_addressed);
}

#[test]
fn silent_peers_are_probed_for_half_a_second_after_a_caller_asked() {
    let (mut one, mut other) = (endpoint_with(0, Duration::from_millis(400)), endpoint(2));
    met(&mut one, &mut other, 2);
    assert_eq!(run(&mut one, 399), [], "nothing is awaited from it");
    let begin = START.after(Nanos::from_millis(400));
    one.check_peers(begin);
    let all = run(&mut one, 700);
    assert_eq!(times(&all, |h| h.kind == Kind::Probe), [500, 600, 700]);
    let answered = START.after(Nanos::from_millis(700));
    pass(&[all[2].1], &mut other, answered);
    let answer = sent(&mut other, answered);
    pass(&answer, &mut one, answered);
    let all = run(&mut one, 2000);
    assert_eq!(
        times(&all, |h| h.kind == Kind::Probe),
        [800],
        "half a second is over"
    );
    assert_eq!(one.poll_lost_peer(), None);
    // A peer that only sends isn't asked for anything.
    other.check_peers(answered);
    assert_eq!(run(&mut other, 5000), []);
}

#[test]
fn a_peer_that_stays_silent_while_a_caller_asks_is_lost() {
    let (mut one, mut other) = (endpoint_with(0, Duration::from_millis(400)), endpoint(2));
    met(&mut one, &mut other, 2);
    for at in [0, 300] {
        run(&mut one, at);
        one.check_peers(START.after(Nanos::from_millis(at)));
    }
    run(&mut one, 399);
    assert_eq!(one.poll_lost_peer(), None);
    run(&mut one, 400);
    assert!(
        one.poll_lost_peer().is_some(),
        "silence counts from the first time on"
    );
}

/// As is a virtual machine that is copied, with all processes in it.
#[test]
fn a_process_that_was_stopped_asks_its_peers_before_it_gives_them_up() {
    for answers in [true, false] {
        let (mut one, mut other) = (endpoint_with(0, Duration::from_millis(400)), endpoint(2));
        met(&mut one, &mut other, 2);
        send(&mut one, START, 2, 10);
        let data = sent(&mut one, START);
        let awake = START.after(Nanos::from_millis(5000));
        one.on_timeout(awake);
        assert_eq!(one.poll_lost_peer(), None);
        if answers {
            pass(&data, &mut other, awake);
            pass(&acknowledge(&mut other, awake), &mut one, awake);
            run(&mut one, 9000);
            assert_eq!((one.poll_lost_peer(), one.all_delivered()), (None, true));
        } else {
            sent(&mut one, awake);
            run(&mut one, 5299);
            assert_eq!(one.poll_lost_peer(), None);
            run(&mut one, 5300);
            assert!(one.poll_lost_peer().is_some());
        }
    }
}

#[test]
fn the_loss_of_a_peer_takes_all_that_belongs_to_it() {
    let (mut one, mut other, mut third) = (endpoint(0), endpoint(2), endpoint(3));
    met(&mut one, &mut other, 2);
    met(&mut one, &mut third, 3);
    send(&mut one, START, 2, 1 << 20);
    let filling = sent(&mut one, START);
    send(&mut one, START, 2, 10);
    send(&mut one, START, 3, 20);
    assert!(sent(&mut one, START).is_empty());
    assert_eq!((one.outstanding(), one.unsent), (3, 3));
    assert_eq!(one.take_finished().count(), 2, "what was met with");
    assert_eq!(one.backlog(name(2)), (1 << 20) + 1 + 11);
    one.on_refused(START, name(2));
    one.on_refused(START, name(2));
    assert!(one.poll_lost_peer().is_some() && one.poll_lost_peer().is_none());
    assert_eq!((one.outstanding(), one.unsent), (1, 1));
    let given_back: Vec<u64> = one.take_finished().map(|message| message.body).collect();
    assert_eq!(given_back, [1 << 20, 10]);
    let sent = sent(&mut one, START);
    let rest: Vec<&Header> = sent.iter().filter(|h| is_data(h)).collect();
    assert_eq!(rest.len(), 1, "the window is free for the other one");
    assert_eq!(rest[0].destination, name(3));
    // This side goes on in a newer incarnation; what the old one has sent is no one's.
    let pair = one.find(name(2)).expect("it is remembered");
    assert_eq!(
        one.pairs[pair].local(),
        Incarnation::new(101).expect("it isn't 0")
    );
    assert!(filling.iter().all(|h| h.incarnation == 100));
}

#[test]
fn a_lost_peer_neither_sends_nor_acknowledges_any_more() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    send(&mut one, START, 2, 10);
    let mut data = sent(&mut one, START);
    data[0].ack_requested = true;
    pass(&data, &mut other, START);
    assert!(other.has_work());
    send(&mut other, START, 0, 10);
    other.on_refused(START, name(0));
    other.control.clear();
    other.on_refused(START, name(0));
    assert!(
        !other.has_work(),
        "neither an acknowledgement nor a message"
    );
    assert!(other.ready.is_empty() && other.acks.is_empty());
    assert_eq!(other.outstanding(), 0);
}

#[test]
fn a_closing_process_says_so_to_those_who_know_it() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    send(&mut one, START, 4, 10);
    sent(&mut one, START);
    one.close();
    let closing = sent(&mut one, START);
    assert_eq!(closing.len(), 1);
    assert_eq!(
        (closing[0].kind, closing[0].destination),
        (Kind::Close, name(2))
    );
    pass(&closing, &mut other, START);
    assert!(other.poll_lost_peer().is_some());
}

#[test]
fn resources_are_pairs_contexts_and_what_their_queues_hold() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    let empty = one.resources();
    assert_eq!((empty.pairs, empty.contexts, empty.bytes), (0, 0, 0));
    met(&mut one, &mut other, 2);
    let held = one.resources();
    assert_eq!((held.pairs, held.contexts), (1, 1));
    let id = one.find(name(2)).expect("it was met");
    let pair = &one.pairs[id];
    let (sending, receiving) = (pair.sending(), pair.receiving());
    let sending = sending.expect("it has sent").bytes();
    assert!(sending > size_of::<Sending<u64>>() && receiving.is_none());
    let pairs = one.pairs.bytes() - sending;
    assert!(pairs > 0 && pairs % size_of::<Pair<u64>>() == 0);
    let names = held.bytes - one.pairs.bytes() - one.contexts.bytes();
    assert_eq!(names, 3 * 13, "a table for three names");
    // The receiver's side has the other queue, and no context.
    let held = other.resources();
    assert_eq!((held.pairs, held.contexts), (1, 0));
    let id = other.find(name(0)).expect("it was heard");
    assert_eq!(other.pairs[id].queue_bytes(), size_of::<Receiving>());
    // A second at rest, or two, and the queues are gone; then the context is.
    run(&mut one, 999);
    assert!(one.pairs[id].has_queues());
    run(&mut one, 2500);
    assert!(!one.pairs[id].has_queues());
    assert_eq!(one.resources().contexts, 1);
    run(&mut one, 61_000);
    assert_eq!(one.resources().contexts, 0);
    assert_eq!(one.due(), Time::NEVER, "nothing is left to do");
}

#[test]
fn a_pair_in_use_keeps_its_queues() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    let id = send(&mut one, START, 2, 10);
    sent(&mut one, START);
    run(&mut one, 3500);
    assert!(one.pairs[id].has_queues(), "something is in flight");
    assert_eq!(one.outstanding(), 1);
    assert!(one.due() < Time::NEVER);
}

#[test]
fn a_silent_peer_is_waited_for_longer_than_its_path_is_kept() {
    for answers in [true, false] {
        let mut one = endpoint_with(0, Duration::from_secs(1600));
        let mut other = endpoint(2);
        met_after(&mut one, &mut other, 2, Nanos::from_millis(100));
        send(&mut one, START, 2, 10);
        sent(&mut one, START);
        // Between two timeouts of a long path lies more time than a context may be idle.
        let all = run(&mut one, 90_000);
        let expected = [400, 1200, 2800, 6000, 12_400, 25_200, 50_800];
        assert_eq!(times(&all, is_data), expected);
        assert_eq!(one.resources().contexts, 0);
        if answers {
            let (_, header) = *all.iter().rfind(|(_, h)| is_data(h)).expect("as above");
            let late = START.after(Nanos::from_millis(90_000));
            pass(&[header], &mut other, late);
            let acks = acknowledge(&mut other, late);
            pass(&acks, &mut one, late);
            assert!(one.all_delivered(), "an answer that comes late counts");
            assert_eq!(one.counts().contradictory, 0);
        } else {
            let all = run(&mut one, 103_000);
            assert_eq!(times(&all, is_data), [102_000]);
        }
    }
}

#[test]
fn a_recalled_message_that_hasnt_begun_leaves_no_trace() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    for _ in 0..2 {
        send(&mut one, START, 2, 10);
        send(&mut one, START, 4, 20);
    }
    assert_eq!(
        (one.outstanding(), one.unsent, one.awaiting_handshake),
        (4, 4, 2)
    );
    one.recall(|body| *body == 20, || 0);
    assert_eq!(
        (one.outstanding(), one.unsent, one.awaiting_handshake),
        (2, 2, 0)
    );
    assert_eq!((one.backlog(name(4)), one.backlog(name(2))), (0, 22));
    assert!(!one.has_queued(name(4)) && one.has_queued(name(2)));
    let data = sent(&mut one, START);
    assert_eq!(data.iter().filter(|h| is_data(h)).count(), 2);
    one.recall(|body| *body == 10, || 0);
    assert_eq!(
        (one.outstanding(), one.unsent),
        (2, 0),
        "they are in flight"
    );
}

#[test]
fn short_messages_may_coalesce_behind_many_packets_in_flight() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    for number in 0..4 {
        let pair = send(&mut one, START, 2, 10);
        assert!(!one.may_coalesce(pair), "{number} packets are in flight");
        let data = sent(&mut one, START);
        assert_eq!(data[0].ack_requested, number == 3);
    }
    let pair = send(&mut one, START, 2, 8192);
    assert!(one.may_coalesce(pair));
    for _ in 2..32 {
        let pair = send(&mut one, START, 2, 10);
        assert!(one.may_coalesce(pair));
    }
    let pair = send(&mut one, START, 2, 10);
    assert!(!one.may_coalesce(pair), "thirty-two wait");
    sent(&mut one, START);
    for waiting in 1..8 {
        let pair = send(&mut one, START, 2, 8192);
        assert!(one.may_coalesce(pair), "{waiting} wait");
    }
    let pair = send(&mut one, START, 2, 8192);
    assert!(!one.may_coalesce(pair), "they fill a call");
    sent(&mut one, START);
    let pair = send(&mut one, START, 2, 8193);
    assert!(!one.may_coalesce(pair), "it is long");
    assert_eq!(one.process(pair), name(2));
    assert_eq!(one.max_whole(), 872);
}

#[test]
fn an_unordered_message_fits_one_datagram_or_isnt_taken() {
    let mut one = endpoint(0);
    for class in [Class::Reliable, Class::Unreliable] {
        for (length, is_taken) in [(871, true), (872, true), (873, false)] {
            let message = Message {
                class,
                words: [0; 6],
                length,
                memory: 0,
                is_awaited: false,
                body: 0,
            };
            let taken = one.send(START, name(2), message, false);
            assert_eq!(taken.is_ok(), is_taken, "{length} bytes");
        }
    }
    assert!(!one.all_delivered());
    assert_eq!(one.outstanding(), 4);
}

#[test]
fn an_answer_is_held_only_while_a_message_is_arriving() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    let answer = |from: &mut Endpoint<u64>| {
        let message = Message {
            class: Class::Ordered,
            words: [0; 6],
            length: 0,
            memory: 0,
            is_awaited: false,
            body: 0,
        };
        let taken = from.send(START, name(0), message, true);
        assert!(taken.is_ok());
        sent(from, START).iter().filter(|h| is_data(h)).count()
    };
    assert_eq!(answer(&mut other), 1, "nothing is arriving");
    send(&mut one, START, 2, 2000);
    let parts = sent(&mut one, START);
    pass(&parts[..1], &mut other, START);
    assert_eq!(answer(&mut other), 0);
    send(&mut other, START, 0, 10);
    assert_eq!(
        sent(&mut other, START).len(),
        0,
        "what is behind it waits too"
    );
    pass(&parts[1..], &mut other, START);
    let released = sent(&mut other, START);
    assert_eq!(released.iter().filter(|h| is_data(h)).count(), 2);
}

#[test]
fn counts_begin_at_nothing() {
    assert_eq!(endpoint(0).counts(), Counts::default());
    assert_eq!(vec![endpoint(0).due()], [Time::NEVER]);
}

#[test]
fn the_last_packet_of_an_awaited_message_requests_its_acknowledgement() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    for is_awaited in [false, true] {
        let message = Message {
            class: Class::Ordered,
            words: [0; 6],
            length: 2000,
            memory: 0,
            is_awaited,
            body: 2000,
        };
        assert!(one.send(START, name(2), message, false).is_ok());
        let headers = sent(&mut one, START);
        let requests: Vec<bool> = headers.iter().map(|h| h.ack_requested).collect();
        let (last, others) = requests.split_last().expect("it was sent");
        assert_eq!((*last, others.contains(&true)), (is_awaited, false));
        for header in &headers {
            other.on_packet(START, header, true);
        }
        let acknowledgements = sent(&mut other, START);
        assert_eq!(acknowledgements.len(), usize::from(is_awaited));
        // Nothing is in flight behind which messages are coalesced.
        let delayed = acknowledge(&mut other, START);
        pass(&delayed, &mut one, START);
    }
}
