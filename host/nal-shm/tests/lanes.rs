//! Lanes, streams, loans and successors, between NALs of one process and, if one has to
//! die, of two.

use lintel_claim::{Claim, Lease, Region};
use lintel_nal::{Arrival, Moved, Nal, Outgoing, Parts, Payload, Wake};
use lintel_nal_shm::ShmNal;
use lintel_nal_shm::layout::{MOVED_OFFSET, lane_offset, ring_offset};
use lintel_presence::Segment;
use lintel_ring::{Lookout, MAX_PAYLOAD, SLOTS};
use lintel_types::ProcessId;
use lintel_wire::Words;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const NID: u32 = 0x7f00_0001;
const NOTHING: Outgoing<'_> = Outgoing::Copied {
    operand: None,
    pieces: &[],
};

/// A job that no other test has.
fn job() -> String {
    static JOBS: AtomicU32 = AtomicU32::new(0);
    let number = JOBS.fetch_add(1, Ordering::Relaxed);
    format!("lanes-{}-{number}", std::process::id())
}

fn open(job: &str, pid: u32) -> ShmNal {
    ShmNal::open(job, NID, pid, |words| eprintln!("{words}")).expect("the name is free")
}

/// The process with that identifier.
fn name(pid: u32) -> ProcessId {
    ProcessId::new(NID, pid)
}

/// The header of a numbered message: the ring and the NAL use the first word.
fn words(number: u64) -> Words {
    [0, number, 0, 0, 0, 0]
}

fn send(nal: &mut ShmNal, to: u32, number: u64) {
    nal.send(name(to), &words(number), NOTHING)
        .expect("the peer is there");
}

fn send_copy(nal: &mut ShmNal, to: u32, number: u64, bytes: &Region) {
    let pieces = [bytes.claim()];
    let body = Outgoing::Copied {
        operand: None,
        pieces: &pieces,
    };
    nal.send(name(to), &words(number), body)
        .expect("the peer is there");
}

/// What has arrived so far, in order: numbers of messages, and losses.
#[derive(PartialEq, Eq, Debug)]
enum Seen {
    Message(u64),
    Lost(ProcessId),
}

/// Reads until nothing more is there.
fn drain(nal: &mut ShmNal) -> Vec<Seen> {
    let mut seen = Vec::new();
    while let Some(arrival) = nal.next() {
        seen.push(match arrival {
            Arrival::Message(origin, words, _) => {
                nal.done(origin);
                Seen::Message(words[1])
            }
            Arrival::Lost(process) => Seen::Lost(process),
            other => panic!("expected a message, not {other:?}"),
        });
    }
    seen
}

fn messages(numbers: impl IntoIterator<Item = u64>) -> Vec<Seen> {
    numbers.into_iter().map(Seen::Message).collect()
}

/// A region whose bytes differ from place to place.
fn pattern(bytes: u64) -> Region {
    let region = Region::new(bytes);
    let numbers: Vec<u8> = (0..bytes).map(|at| (at * 7 + at / 256) as u8).collect();
    region.write(0, &numbers);
    region
}

fn bytes_of(claim: Claim) -> Vec<u8> {
    let mut bytes = vec![0; claim.len() as usize];
    claim.read(&mut bytes);
    bytes
}

/// Receives one streamed message into a region while `also` does its part.
fn receive_stream(nal: &mut ShmNal, lease: &Lease, mut also: impl FnMut()) -> Region {
    let until = Instant::now() + Duration::from_secs(10);
    let mut place = None;
    loop {
        match nal.next() {
            Some(Arrival::Message(origin, _, Payload::Streamed(length))) => {
                let region = Region::new(length);
                nal.receive_into(origin, lease.lend(&[region.claim()]).keep());
                nal.done(origin);
                place = Some(region);
            }
            Some(Arrival::Streamed(_)) => return place.expect("it was announced"),
            Some(other) => panic!("expected a stream, not {other:?}"),
            None => also(),
        }
        assert!(Instant::now() < until, "the stream doesn't end");
    }
}

#[test]
fn each_sender_has_a_lane_of_its_own_and_a_full_one_holds_up_nobody_else() {
    let job = job();
    let (mut to, mut busy, mut other) = (open(&job, 1), open(&job, 2), open(&job, 3));
    let count = SLOTS as u64 * 2;
    for number in 0..count {
        send(&mut busy, 1, number);
    }
    assert!(busy.has_queued(name(1)) && busy.backlog(name(1)) > 0);
    send(&mut other, 1, 1000);
    assert!(!other.has_queued(name(1)) && other.backlog(name(1)) == 0);
    let mut seen = drain(&mut to);
    assert_eq!(to.resources().lanes, 2);
    while busy.flush() {
        seen.extend(drain(&mut to));
    }
    seen.extend(drain(&mut to));
    assert!(seen.contains(&Seen::Message(1000)));
    seen.retain(|seen| *seen != Seen::Message(1000));
    assert_eq!(seen, messages(0..count), "in order");
    assert_eq!(busy.backlog(name(1)), 0);
}

#[test]
fn a_look_that_finds_nothing_leaves_the_turn_with_the_last_sender() {
    let job = job();
    let mut to = open(&job, 1);
    let mut senders: Vec<ShmNal> = (2..7).map(|pid| open(&job, pid)).collect();
    for sender in &mut senders {
        send(sender, 1, 0);
    }
    assert_eq!(drain(&mut to), messages([0; 5]));
    for (round, sender) in senders.iter_mut().enumerate() {
        send(sender, 1, 1);
        assert_eq!(drain(&mut to), messages([1]), "sender {round}");
        for look in 0..7 {
            assert!(to.next().is_none());
            send(sender, 1, 2);
            let found = to.next_inline();
            let (origin, words, _) = found.expect("the sender of the last message has sent more");
            to.done(origin);
            assert_eq!(words[1], 2, "sender {round}, look {look}");
        }
    }
}

/// The next message, if it is one that the quick ways find.
fn take_inline(nal: &mut ShmNal) -> Option<u64> {
    let (origin, words, _) = nal.next_inline()?;
    nal.done(origin);
    Some(words[1])
}

#[test]
fn a_look_that_finds_a_message_gives_the_turn_to_its_sender() {
    let job = job();
    let mut to = open(&job, 1);
    let lookout = Lookout::new();
    let mut senders: Vec<ShmNal> = (2..32).map(|pid| open(&job, pid)).collect();
    for sender in &mut senders {
        send(sender, 1, 0);
    }
    assert_eq!(drain(&mut to), messages([0; 30]));
    for round in 0..90 {
        to.watch(&lookout, 16);
        assert!(lookout.is_quiet() && lookout.take_found().is_none());
        send(&mut senders[round * 7 % 30], 1, 1);
        let looks = (0..100).take_while(|_| lookout.is_quiet()).count();
        let found = lookout.take_found();
        let found = found.unwrap_or_else(|| panic!("nothing after {looks} looks"));
        to.turn_to(found);
        assert_eq!(take_inline(&mut to), Some(1), "round {round}");
        assert!(take_inline(&mut to).is_none() && to.next().is_none());
    }
}

#[test]
fn senders_that_take_turns_hold_up_no_other() {
    for busy in [2, 5, 20] {
        let job = job();
        let mut to = open(&job, 1);
        let lookout = Lookout::new();
        let mut senders: Vec<ShmNal> = (2..=busy + 2).map(|pid| open(&job, pid)).collect();
        for sender in &mut senders {
            send(sender, 1, 0);
        }
        assert_eq!(drain(&mut to).len(), senders.len());
        let mut rare = senders.pop().expect("the last one");
        send(&mut senders[1], 1, 0);
        assert_eq!(drain(&mut to).len(), 1, "it had the last turn");
        send(&mut rare, 1, 1);
        // Each look finds a message of another busy one than the last.
        let mut polls = 0;
        send(&mut senders[0], 1, 0);
        while !has_taken(&mut to, &lookout, 1) {
            polls += 1;
            send(&mut senders[polls % busy as usize], 1, 0);
            assert!(polls < 200, "{busy} busy senders");
        }
    }
}

/// A look and a poll of a caller: whether that takes the message with this number.
fn has_taken(to: &mut ShmNal, lookout: &Lookout, number: u64) -> bool {
    to.watch(lookout, 16);
    if !lookout.is_quiet() {
        if let Some(found) = lookout.take_found() {
            to.turn_to(found);
        }
    }
    let mut seen = Vec::new();
    while let Some(number) = take_inline(to) {
        seen.push(number);
    }
    if seen.is_empty() {
        if let Some(Arrival::Message(origin, words, _)) = to.next() {
            to.done(origin);
            seen.push(words[1]);
        }
    }
    seen.contains(&number)
}

#[test]
fn a_sender_keeps_its_turn_while_it_has_messages() {
    let job = job();
    let (mut to, mut one, mut other) = (open(&job, 1), open(&job, 2), open(&job, 3));
    send(&mut one, 1, 0);
    send(&mut other, 1, 0);
    assert_eq!(drain(&mut to), messages([0, 0]));
    for number in [1, 2] {
        send(&mut one, 1, number);
        send(&mut other, 1, 10 + number);
    }
    let first = take_inline(&mut to);
    let expected = match first {
        Some(1) => [2, 11, 12],
        _ => [12, 1, 2],
    };
    // Of either lane, and of one that there isn't.
    for lane in 0..3 {
        to.turn_to(lane);
    }
    assert_eq!(drain(&mut to), messages(expected));
}

#[test]
fn bodies_of_more_senders_than_have_wide_rings_arrive_whole() {
    const BODIES: u64 = 60;
    let job = job();
    let mut target = open(&job, 1);
    let mut senders: Vec<ShmNal> = (100..170).map(|pid| open(&job, pid)).collect();
    let bytes = pattern(1000);
    for number in 0..BODIES {
        for sender in &mut senders {
            send_copy(sender, 1, number, &bytes);
        }
    }
    let until = Instant::now() + Duration::from_secs(20);
    let mut next = vec![0; senders.len()];
    while next.iter().any(|next| *next < BODIES) {
        match target.next() {
            Some(Arrival::Message(origin, words, Payload::Inline(body))) => {
                let next = &mut next[origin.process.pid as usize - 100];
                assert_eq!((words[1], bytes_of(body)), (*next, bytes_of(bytes.claim())));
                *next += 1;
                target.done(origin);
            }
            Some(other) => panic!("expected a message, not {other:?}"),
            None => {
                assert!(Instant::now() < until, "some are missing: {next:?}");
                for sender in &mut senders {
                    sender.flush();
                }
            }
        }
    }
}

#[test]
fn a_lane_of_an_ended_sender_is_read_out_and_then_free_for_the_next() {
    let job = job();
    let mut to = open(&job, 1);
    for round in 0..3 {
        let mut from = open(&job, 2);
        for number in 0..5 {
            send(&mut from, 1, round * 10 + number);
        }
        drop(from);
        assert_eq!(drain(&mut to), messages(round * 10..round * 10 + 5));
        to.check_peers();
        assert_eq!(to.connections(), (0, 0));
    }
}

#[test]
fn a_record_at_every_place_of_the_ring_arrives_whole() {
    let job = job();
    let (mut to, mut from) = (open(&job, 1), open(&job, 2));
    for number in 0..SLOTS as u64 * 3 {
        // Steps that don't divide the ring, so that records end at each line and wrap.
        let length = number * 67 % (MAX_PAYLOAD as u64 + 1);
        let bytes = pattern(length);
        send_copy(&mut from, 1, number, &bytes);
        match to.next() {
            Some(Arrival::Message(origin, words, Payload::Inline(payload))) => {
                assert_eq!((words[1], payload.len()), (number, length));
                assert_eq!(bytes_of(payload), bytes_of(bytes.claim()));
                to.done(origin);
            }
            other => panic!("expected message {number}, not {other:?}"),
        }
    }
}

#[test]
fn two_processes_that_stream_to_each_other_both_get_all() {
    let job = job();
    let (mut one, mut other) = (open(&job, 1), open(&job, 2));
    let (long, lease) = (pattern(300_000), Lease::new());
    send_copy(&mut one, 2, 1, &long);
    send_copy(&mut other, 1, 2, &long);
    assert!(one.has_queued(name(2)) && other.has_queued(name(1)));
    let arrived = receive_stream(&mut one, &lease, || {
        other.flush();
    });
    assert_eq!(bytes_of(arrived.claim()), bytes_of(long.claim()));
    let arrived = receive_stream(&mut other, &lease, || {
        one.flush();
    });
    assert_eq!(bytes_of(arrived.claim()), bytes_of(long.claim()));
    assert_eq!(
        lease.outstanding(),
        0,
        "a place is given back with its stream"
    );
}

#[test]
fn a_message_behind_a_stream_comes_after_it() {
    let job = job();
    let (mut to, mut from) = (open(&job, 1), open(&job, 2));
    let (long, lease) = (pattern(200_000), Lease::new());
    send_copy(&mut from, 1, 1, &long);
    send(&mut from, 1, 2);
    let arrived = receive_stream(&mut to, &lease, || {
        from.flush();
    });
    assert_eq!(bytes_of(arrived.claim()), bytes_of(long.claim()));
    from.flush();
    assert_eq!(drain(&mut to), messages([2]));
}

#[test]
fn a_loan_in_more_pieces_than_a_record_names_is_streamed_or_left_to_the_receiver() {
    let job = job();
    let (mut to, mut from) = (open(&job, 1), open(&job, 2));
    let (memory, lease) = (pattern(6000), Lease::new());
    let pieces: Vec<Claim> = (0..600).map(|n| memory.claim().slice(n * 10, 10)).collect();
    send(&mut from, 1, 0);
    assert_eq!(
        drain(&mut to),
        messages([0]),
        "and now each knows the other"
    );
    from.send(
        name(1),
        &words(1),
        Outgoing::LentToRead(lease.lend(&pieces)),
    )
    .expect("the peer is there");
    let arrived = receive_stream(&mut to, &lease, || {
        from.flush();
    });
    assert_eq!(bytes_of(arrived.claim()), bytes_of(memory.claim()));
    from.send(
        name(1),
        &words(2),
        Outgoing::LentToFill(lease.lend(&pieces)),
    )
    .expect("the peer is there");
    assert!(matches!(
        to.next(),
        Some(Arrival::Message(_, _, Payload::Inline(nothing))) if nothing.is_empty()
    ));
}

#[test]
fn a_loan_waits_in_order_until_the_peer_has_looked_at_the_lane() {
    let job = job();
    let (mut to, mut from) = (open(&job, 1), open(&job, 2));
    let (memory, lease) = (pattern(100_000), Lease::new());
    let pieces = [memory.claim()];
    from.send(
        name(1),
        &words(1),
        Outgoing::LentToRead(lease.lend(&pieces)),
    )
    .expect("the peer is there");
    send(&mut from, 1, 2);
    assert!(
        from.has_queued(name(1)),
        "it isn't known what the peer can reach"
    );
    assert_eq!(lease.outstanding(), 1);
    assert!(to.next().is_none());
    from.flush();
    match to.next() {
        Some(Arrival::Message(origin, words, Payload::Lent(loan))) => {
            assert_eq!(words[1], 1);
            let place = Region::new(100_000);
            assert_eq!(to.fetch(origin, &loan, &[place.claim()]), Ok(100_000));
            assert_eq!(bytes_of(place.claim()), bytes_of(memory.claim()));
            to.done(origin);
            assert_eq!(drain(&mut to), messages([2]));
        }
        // The system forbids cross-memory copies.
        Some(Arrival::Message(_, _, Payload::Streamed(100_000))) => {}
        other => panic!("expected a loan, not {other:?}"),
    }
}

#[test]
fn a_successors_messages_come_after_its_predecessors_and_after_its_loss() {
    let job = job();
    let (mut to, mut first) = (open(&job, 1), open(&job, 2));
    send(&mut first, 1, 1);
    assert_eq!(drain(&mut to), messages([1]));
    send(&mut to, 2, 9);
    send(&mut first, 1, 2);
    send(&mut first, 1, 3);
    drop(first);
    let mut second = open(&job, 2);
    send(&mut second, 1, 4);
    let lost = Seen::Lost(name(2));
    let wanted = [Seen::Message(2), Seen::Message(3), lost, Seen::Message(4)];
    assert_eq!(drain(&mut to), wanted);
    assert_eq!(
        drain(&mut second),
        [],
        "what the first was sent isn't for the second"
    );
    send(&mut to, 2, 10);
    assert_eq!(drain(&mut second), messages([10]));
}

#[test]
fn what_a_peer_sent_before_its_end_is_read_before_its_loss() {
    let job = job();
    let (mut to, mut first) = (open(&job, 1), open(&job, 2));
    send(&mut first, 1, 1);
    assert_eq!(drain(&mut to), messages([1]));
    send(&mut to, 2, 9);
    send(&mut first, 1, 2);
    drop(first);
    to.check_peers();
    assert_eq!(drain(&mut to), messages([2]));
    to.check_peers();
    assert_eq!(drain(&mut to), [Seen::Lost(name(2))]);
}

#[test]
fn a_successor_is_reached_only_once_its_predecessors_messages_are_read() {
    let job = job();
    let (mut to, mut first) = (open(&job, 1), open(&job, 2));
    send(&mut first, 1, 1);
    drop(first);
    let mut second = open(&job, 2);
    assert!(
        to.send(name(2), &words(9), NOTHING).is_err(),
        "an answer to the first"
    );
    assert_eq!(drain(&mut to), messages([1]));
    to.check_peers();
    send(&mut to, 2, 10);
    assert_eq!(drain(&mut second), messages([10]));
}

/// A sender that is killed in its first message has a lane, and no record there.
#[test]
fn a_predecessor_that_left_nothing_to_be_read_holds_up_no_successor() {
    let job = job();
    let (mut to, mut first) = (open(&job, 1), open(&job, 2));
    send(&mut first, 1, 1);
    write_record(&job, 0, 0);
    drop(first);
    let mut second = open(&job, 2);
    send(&mut second, 1, 2);
    // Nobody would look again.
    assert_eq!(drain(&mut to), messages([2]));
}

/// Writes the first word of a record of one line in the first lane of process 1.
fn write_record(job: &str, record: usize, commit: u64) {
    let segment = Segment::open(job, name(1)).expect("it is alive");
    let at = ring_offset(0) + 64 * record;
    // SAFETY: the first lines of the first ring lie in the segment, aligned.
    let word = unsafe { AtomicU64::from_ptr(segment.start().add(at).cast()) };
    word.store(commit, Ordering::Release);
}

/// Writes nonsense into the second record of the first lane of process 1.
fn write_nonsense(job: &str) {
    write_record(job, 1, u64::MAX);
}

#[test]
fn a_sender_that_writes_nonsense_is_quarantined_alone() {
    let job = job();
    let (mut to, mut wrong, mut right) = (open(&job, 1), open(&job, 2), open(&job, 3));
    send(&mut wrong, 1, 1);
    send(&mut right, 1, 2);
    assert_eq!(drain(&mut to).len(), 2);
    send(&mut to, 2, 9);
    write_nonsense(&job);
    send(&mut right, 1, 3);
    let seen = drain(&mut to);
    assert!(seen.contains(&Seen::Lost(name(2))) && seen.contains(&Seen::Message(3)));
    assert_eq!(to.diagnostics().corrupt_lanes, 1);
    assert!(
        to.send(name(2), &words(10), NOTHING).is_err(),
        "it answers nothing"
    );
    drop(wrong);
    let mut next = open(&job, 2);
    send(&mut next, 1, 4);
    to.check_peers();
    assert_eq!(
        drain(&mut to),
        messages([4]),
        "another process of that name is heard"
    );
}

/// Writes a word of the entry of the first lane of process 1.
fn write_first_lane(job: &str, offset: usize, value: u32) {
    let segment = Segment::open(job, name(1)).expect("it is alive");
    let at = lane_offset(0) + offset;
    // SAFETY: a lane's entry lies in the segment, and its words are aligned.
    let word = unsafe { AtomicU32::from_ptr(segment.start().add(at).cast()) };
    word.store(value, Ordering::Release);
}

/// Writes the state of a lane that no sender has into the first lane of process 1, as only its
/// receiver may.
fn free_first_lane(job: &str) {
    write_first_lane(job, 0, 0);
}

#[test]
fn a_sender_that_claims_to_have_moved_a_body_before_it_was_granted_is_quarantined() {
    const GRANTS: u32 = 3;
    let job = job();
    let (mut to, mut from) = (open(&job, 1), open(&job, 2));
    send(&mut to, 2, 9);
    for grant in 1..=GRANTS {
        send(&mut from, 1, 1);
        let Some(Arrival::Message(origin, ..)) = to.next() else {
            panic!("grant {grant}: nothing has arrived");
        };
        let parts = Parts {
            bytes: 4096,
            is_joint: false,
        };
        assert_eq!(to.begin_parts(origin, parts, 1 << 20), None);
        to.leave_to(origin);
        assert_eq!(drain(&mut to), [], "grant {grant}: it isn't moved");
        if grant < GRANTS {
            from.note_moved(name(1), Moved::Whole);
            assert!(matches!(to.next(), Some(Arrival::Moved(_, true))));
            to.done(origin);
        }
    }
    for behind in 1..GRANTS {
        write_first_lane(&job, MOVED_OFFSET, (GRANTS - behind) << 1 | 1);
        assert_eq!(
            drain(&mut to),
            [],
            "it hasn't read that grants were revoked"
        );
    }
    write_first_lane(&job, MOVED_OFFSET, (GRANTS + 1) << 1 | 1);
    assert_eq!(drain(&mut to), [Seen::Lost(name(2))]);
    assert_eq!(to.diagnostics().corrupt_lanes, 1);
}

#[test]
fn a_lane_that_its_sender_freed_itself_stays_with_its_successor() {
    for noticed in [false, true] {
        let job = job();
        let (mut to, mut wrong) = (open(&job, 1), open(&job, 2));
        send(&mut wrong, 1, 1);
        assert_eq!(drain(&mut to), messages([1]));
        if noticed {
            write_nonsense(&job);
            assert_eq!(drain(&mut to), []);
            assert_eq!(to.diagnostics().corrupt_lanes, 1);
        }
        drop(wrong);
        free_first_lane(&job);
        let mut next = open(&job, 2);
        // Before and after the receiver learns that the lane has another sender.
        for number in [2, 3] {
            send(&mut next, 1, number);
            to.check_peers();
            assert_eq!(drain(&mut to), messages([number]), "noticed: {noticed}");
        }
        send(&mut to, 2, 9);
        assert_eq!(drain(&mut next), messages([9]));
    }
}

/// The job that this test's child takes part in.
const CHILD: &str = "LANES_CHILD_JOB";

#[test]
fn a_killed_peer_is_lost_once_and_its_segment_is_removed() {
    if let Ok(job) = std::env::var(CHILD) {
        let mut child = open(&job, 2);
        send(&mut child, 1, 1);
        println!("sent");
        // Until it is killed, or its parent ends.
        let _ = std::io::stdin().read(&mut [0]);
        return;
    }
    let job = job();
    let mut to = open(&job, 1);
    let test = "a_killed_peer_is_lost_once_and_its_segment_is_removed";
    let program = std::env::current_exe().expect("a test is a program");
    let mut child = Command::new(program)
        .args([test, "--exact", "--nocapture"])
        .env(CHILD, &job)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("it can be started");
    let until = Instant::now() + Duration::from_secs(30);
    while drain(&mut to).is_empty() {
        assert!(Instant::now() < until, "the child sends nothing");
        std::thread::yield_now();
    }
    send(&mut to, 2, 9);
    child.kill().expect("it is alive");
    child.wait().expect("it was killed");
    to.check_peers();
    assert_eq!(drain(&mut to), [Seen::Lost(name(2))]);
    assert!(to.send(name(2), &words(10), NOTHING).is_err());
    assert_eq!(drain(&mut to), [], "a loss is reported once");
    assert!(Segment::open(&job, name(2)).is_err());
    let left = format!("/dev/shm/lintel-{job}-{NID:x}-2");
    assert!(
        !std::path::Path::new(&left).exists(),
        "the finder removes what is stale"
    );
}
