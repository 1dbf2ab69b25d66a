//! What the recall of a lease promises: memory isn't accessed any more, and everything else
//! goes on.

use crate::Member;
use crate::rig::{Rig, lease, number_of, pattern, region_of, words};
use lintel_claim::{Lease, Lent, Region};
use lintel_nal::{Arrival, MoveError, Nal, Origin, Outgoing, Payload};
use lintel_types::ProcessId;
use std::time::{Duration, Instant};

const LONG: u64 = 1 << 20;
/// What recalled memory holds, which is used for other things.
const REUSED: u8 = 0xee;
/// How long a recall may take among members that all take part.
const LIMIT: Duration = Duration::from_secs(10);

/// Recalls a lease until it is unused. The others take part: one may have to report that
/// it reads no further.
fn recall<N: Nal>(rig: &mut Rig<N>, at: usize, lease: &Lease) {
    let until = Instant::now() + LIMIT;
    lease.revoke();
    while !rig.nal(at).recall(lease) {
        assert!(Instant::now() < until, "the recall doesn't end");
        for member in &mut rig.members {
            member.nal.flush();
        }
        std::thread::yield_now();
    }
    assert_eq!(lease.outstanding(), 0, "a loan is still held");
}

fn fill(region: &Region, byte: u8) {
    region.write(0, &vec![byte; region.len() as usize]);
}

/// A message whose memory was recalled before it arrived is delivered as it was, or
/// not at all, or as broken: never with bytes written later.
pub fn recalled_memory_is_read_no_more<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    check_recall(join, |nal, name, memory| {
        let sent = nal.send(name, &words(1), Outgoing::LentToRead(memory));
        sent.expect("the peer is there");
        true
    });
}

/// The same of memory whose return would be reported.
pub fn recalled_memory_without_an_answer_is_read_no_more<N: Nal>(
    join: impl Fn(usize) -> Vec<Member<N>>,
) {
    check_recall(join, |nal, name, memory| {
        let sent = nal.send_lent(name, &words(1), memory, 9);
        sent.expect("the peer is there")
    });
}

/// Recalls memory that `send` lends; it returns whether it does.
fn check_recall<N: Nal>(
    join: impl Fn(usize) -> Vec<Member<N>>,
    send: impl FnOnce(&mut N, ProcessId, Lent<'_>) -> bool,
) {
    let (mut rig, from, to) = Rig::pair(join);
    if from == to {
        return; // Nothing is under way between two calls.
    }
    // After this the receiver has reported whether it can move lent bytes.
    rig.send_copied(from, to, 0, b"first");
    rig.receive(to, 5);
    let (lease, bytes) = (Lease::new(), pattern(1, LONG));
    let (lent, place) = (region_of(&bytes), Region::new(LONG));
    let memory = [lent.claim()];
    let name = rig.name(to);
    if !send(rig.nal(from), name, lease.lend(&memory)) {
        return; // It was better copied.
    }
    recall(&mut rig, from, &lease);
    fill(&lent, REUSED);
    rig.send_copied(from, to, 2, b"next");
    let mut awaited = None;
    loop {
        match rig.arrival(to) {
            Arrival::Message(origin, words, payload) => match number_of(&words) {
                1 => take_whole_or_not(&mut rig, to, origin, payload, &place, &mut awaited),
                other => {
                    assert_eq!(other, 2, "in the order of sending");
                    rig.nal(to).done(origin);
                    break;
                }
            },
            Arrival::Streamed(_) => {
                awaited = None;
                let mut arrived = vec![0; LONG as usize];
                place.read(0, &mut arrived);
                assert!(arrived == bytes, "what arrived whole is what was sent");
            }
            Arrival::Broken(_) => awaited = None,
            Arrival::Returned(_) | Arrival::Moved(..) => {}
            Arrival::Lost(process) => panic!("{process:?} is alive"),
        }
    }
    assert_eq!(awaited, None, "a stream has neither ended nor broken");
}

fn take_whole_or_not<N: Nal>(
    rig: &mut Rig<N>,
    at: usize,
    origin: Origin,
    payload: Payload,
    place: &Region,
    awaited: &mut Option<u64>,
) {
    match payload {
        Payload::Lent(loan) => {
            let fetched = rig.nal(at).fetch(origin, &loan, &[place.claim()]);
            assert_eq!(fetched, Err(MoveError::Unavailable), "it was recalled");
        }
        Payload::Streamed(length) => {
            let place = [place.claim()];
            let loan = lease().lend(&place).keep();
            rig.nal(at).receive_into(origin, loan);
            *awaited = Some(length);
        }
        Payload::Inline(_) => panic!("so many bytes aren't inline"),
        Payload::Placed => panic!("there is no direct entry"),
    }
    rig.nal(at).done(origin);
}

/// Memory that a peer was to fill stays as it is once it was recalled.
pub fn a_recalled_place_is_filled_no_more<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let (mut rig, from, to) = Rig::pair(join);
    if from == to {
        return;
    }
    rig.send_copied(from, to, 0, b"first");
    rig.receive(to, 5);
    let (lease, place) = (Lease::new(), Region::new(LONG));
    let memory = [place.claim()];
    rig.send(from, to, 1, Outgoing::LentToFill(lease.lend(&memory)));
    let (origin, _, payload) = rig.message(to);
    recall(&mut rig, from, &lease);
    fill(&place, REUSED);
    if let Payload::Lent(loan) = payload {
        let filling = region_of(&pattern(1, LONG));
        let placed = rig.nal(to).fill(origin, &[filling.claim()], &loan);
        assert_eq!(placed, Err(MoveError::Unavailable), "it was recalled");
    }
    rig.nal(to).done(origin);
    assert_untouched(&place);
}

/// A stream into memory that was recalled goes on, but not into it; later messages arrive.
pub fn a_stream_into_recalled_memory_goes_into_nothing<N: Nal>(
    join: impl Fn(usize) -> Vec<Member<N>>,
) {
    let (mut rig, from, to) = Rig::pair(join);
    let bytes = pattern(1, LONG);
    let (lent, place) = (region_of(&bytes), Region::new(LONG));
    let memory = [lent.claim()];
    let whole = lease().lend(&memory);
    rig.send(from, to, 1, Outgoing::LentToRead(whole));
    let (origin, _, payload) = rig.message(to);
    let Payload::Streamed(_) = payload else {
        return; // It is fetched at once.
    };
    let (lease, memory) = (Lease::new(), [place.claim()]);
    let loan = lease.lend(&memory).keep();
    rig.nal(to).receive_into(origin, loan);
    rig.nal(to).done(origin);
    recall(&mut rig, to, &lease);
    fill(&place, REUSED);
    rig.send_copied(from, to, 2, b"next");
    match rig.arrival(to) {
        Arrival::Streamed(whole) | Arrival::Broken(whole) => assert_eq!(whole, origin),
        other => panic!("expected the end of the stream, not {other:?}"),
    }
    assert_untouched(&place);
    assert_eq!(rig.receive(to, 4).number, 2);
    rig.assert_silence();
}

/// What is lent under another lease arrives whole, in order.
pub fn a_recall_leaves_other_leases_alone<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let (mut rig, from, to) = Rig::pair(join);
    if from == to {
        return;
    }
    let (recalled, kept) = (Lease::new(), Lease::new());
    let (taken, stays) = (region_of(&pattern(1, LONG)), region_of(&pattern(2, LONG)));
    let (first, second) = ([taken.claim()], [stays.claim()]);
    rig.send(from, to, 1, Outgoing::LentToRead(recalled.lend(&first)));
    rig.send(from, to, 2, Outgoing::LentToRead(kept.lend(&second)));
    recall(&mut rig, from, &recalled);
    fill(&taken, REUSED);
    let place = Region::new(LONG);
    let mut awaited = None;
    loop {
        match rig.arrival(to) {
            Arrival::Message(origin, words, payload) => match number_of(&words) {
                1 => take_whole_or_not(&mut rig, to, origin, payload, &place, &mut awaited),
                _ => {
                    let place = [place.claim()];
                    assert_eq!(rig.move_into(to, origin, payload, &place), LONG);
                    break;
                }
            },
            Arrival::Streamed(_) | Arrival::Broken(_) => awaited = None,
            Arrival::Returned(_) | Arrival::Moved(..) => {}
            Arrival::Lost(process) => panic!("{process:?} is alive"),
        }
    }
    assert_eq!(awaited, None, "a stream has neither ended nor broken");
    let mut arrived = vec![0; LONG as usize];
    place.read(0, &mut arrived);
    assert!(arrived == pattern(2, LONG));
    rig.assert_silence();
}

fn assert_untouched(region: &Region) {
    let mut bytes = vec![0; region.len() as usize];
    region.read(0, &mut bytes);
    let touched = bytes.iter().position(|byte| *byte != REUSED);
    assert_eq!(touched, None, "recalled memory has changed there");
}
