//! Promises about peers.

use crate::rig::{Member, Rig, lease, number_of, pattern, region_of, words};
use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload};
use lintel_types::ProcessId;

/// No process has that name: sending is an error, or a loss is reported once, and no more.
pub fn an_absent_process_is_unreachable_and_nothing_is_sent<N: Nal>(
    join: impl Fn(usize) -> Vec<Member<N>>,
) {
    let (mut rig, from, to) = Rig::pair(join);
    let absent = ProcessId::new(rig.name(from).nid, 60_001);
    rig.assert_unreachable(from, absent);
    rig.assert_silence();
    rig.send_copied(from, to, 2, b"existing");
    assert_eq!(rig.receive(to, 8).number, 2);
}

/// Two senders, one of which has sent much before: the other has its turn.
pub fn no_sender_is_starved_by_a_busy_one<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    const MANY: u64 = 2000;
    const FEW: u64 = 50;
    let Some(mut rig) = Rig::of(join, 3) else {
        return;
    };
    for number in 0..MANY {
        rig.send_copied(0, 2, number, b"busy");
    }
    for number in 0..FEW {
        rig.send_copied(1, 2, number, b"calm");
    }
    let calm = rig.name(1);
    let (mut taken, mut of_calm) = (0, 0);
    while of_calm < FEW {
        let received = rig.receive(2, 4);
        taken += 1;
        if received.origin.process == calm {
            assert_eq!(received.number, of_calm);
            of_calm += 1;
        }
    }
    assert!(taken < MANY / 2, "{FEW} messages arrived after {taken}");
    for _ in taken..MANY + FEW {
        rig.receive(2, 4);
    }
    rig.assert_silence();
}

/// Streams that arrive interleaved from several senders end up in their own places.
pub fn streams_of_two_senders_dont_mix<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    const SIZE: u64 = 300_000;
    let Some(mut rig) = Rig::of(join, 3) else {
        return;
    };
    let lent = [0, 1].map(|sender| region_of(&pattern(sender, SIZE)));
    let places = [Region::new(SIZE), Region::new(SIZE)];
    for (sender, lent) in lent.iter().enumerate() {
        let body = [lent.claim()];
        rig.send(
            sender,
            2,
            sender as u64,
            Outgoing::LentToRead(lease().lend(&body)),
        );
    }
    let mut missing = 2;
    while missing > 0 {
        match rig.arrival(2) {
            Arrival::Message(origin, words, payload) => {
                let place = places[number_of(&words) as usize].claim();
                match payload {
                    Payload::Streamed(length) => {
                        assert_eq!(length, SIZE);
                        rig.nal(2)
                            .receive_into(origin, lease().lend(&[place]).keep());
                        rig.nal(2).done(origin);
                    }
                    other => {
                        rig.move_into(2, origin, other, &[place]);
                        missing -= 1;
                    }
                }
            }
            Arrival::Streamed(_) => missing -= 1,
            Arrival::Lost(process) => panic!("{process:?} is alive"),
            Arrival::Returned(number) => panic!("{number} was not lent"),
            Arrival::Moved(origin, _) => panic!("{origin:?} was granted nothing"),
            Arrival::Broken(origin) => panic!("nothing of {origin:?} was a stream"),
        }
    }
    for (sender, place) in places.iter().enumerate() {
        let mut arrived = vec![0; SIZE as usize];
        place.read(0, &mut arrived);
        assert!(arrived == pattern(sender as u64, SIZE), "sender {sender}");
    }
    rig.assert_silence();
}

/// A message that was accepted and is on its way isn't lost if its sender ends.
pub fn messages_of_an_ended_sender_still_arrive<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let Some(mut rig) = Rig::of(join, 2) else {
        return;
    };
    for number in 0..3 {
        rig.send_copied(1, 0, number, &pattern(number, 50));
    }
    assert!(!rig.nal(1).flush(), "three short messages find room");
    rig.settle(1);
    rig.members.pop();
    rig.nal(0).check_peers();
    for number in 0..3 {
        let received = rig.receive(0, 50);
        assert_eq!(received.number, number);
        assert!(received.bytes == pattern(number, 50));
    }
}

/// [`Arrival::Lost`] is reported once; after that no process has the name.
pub fn a_lost_peer_is_reported_once_and_is_unreachable<N: Nal>(
    join: impl Fn(usize) -> Vec<Member<N>>,
) {
    let Some(mut rig) = Rig::of(join, 3) else {
        return;
    };
    let lost = rig.name(2);
    rig.send_copied(0, 2, 0, b"unread");
    rig.members.pop();
    match rig.arrival_after_loss(0) {
        Arrival::Lost(process) => assert_eq!(process, lost),
        other => panic!("expected the loss, not {other:?}"),
    }
    rig.nal(0).check_peers();
    rig.assert_silence();
    rig.assert_unreachable(0, lost);
    rig.send_copied(0, 1, 2, b"others live");
    assert_eq!(rig.receive(1, 11).number, 2);
}

/// A receiver that waits for the rest of a stream learns that it is broken, even if it never
/// sent to that peer itself.
pub fn a_stream_of_a_lost_sender_is_reported_as_broken<N: Nal>(
    join: impl Fn(usize) -> Vec<Member<N>>,
) {
    let Some(mut rig) = Rig::of(join, 2) else {
        return;
    };
    let place = Region::new(1 << 20);
    let lent = region_of(&pattern(1, 1 << 20));
    rig.send(1, 0, 1, Outgoing::LentToRead(lease().lend(&[lent.claim()])));
    let (origin, _, payload) = rig.message(0);
    let Payload::Streamed(_) = payload else {
        return; // It is fetched at once, so there is nothing to wait for.
    };
    rig.nal(0)
        .receive_into(origin, lease().lend(&[place.claim()]).keep());
    rig.nal(0).done(origin);
    rig.members.pop();
    match rig.arrival_after_loss(0) {
        Arrival::Broken(stream) => assert_eq!(stream, origin),
        other => panic!("expected the end of the stream, not {other:?}"),
    }
    rig.assert_silence();
}

/// What was lent without an answer to a process that ends is returned, too.
pub fn what_was_lent_to_a_lost_peer_is_returned<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let Some(mut rig) = Rig::of(join, 2) else {
        return;
    };
    let (lease, lent, name) = (Lease::new(), Region::new(1 << 20), rig.name(1));
    rig.send_copied(1, 0, 1, b"hello");
    rig.receive(0, 5);
    let pieces = [lent.claim()];
    let sent = rig
        .nal(0)
        .send_lent(name, &words(2), lease.lend(&pieces), 3);
    if sent != Ok(true) {
        return; // It was better copied.
    }
    rig.members.pop();
    let (mut returned, mut lost) = (0, 0);
    while (returned, lost) != (1, 1) {
        match rig.arrival_after_loss(0) {
            Arrival::Returned(3) => returned += 1,
            Arrival::Lost(process) if process == name => lost += 1,
            other => panic!("expected the return and the loss, not {other:?}"),
        }
    }
    assert_eq!(lease.outstanding(), 0);
    rig.assert_silence();
}
