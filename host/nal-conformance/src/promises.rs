//! Promises about messages.

use crate::rig::{Member, Rig, SIZES, copied, lease, number_of, pattern, region_of, words};
use lintel_claim::{Lease, Region, copy_vectored};
use lintel_nal::{Arrival, Nal, Outgoing, Payload};
use lintel_wire::OPERAND_BYTES;

/// Of every size, long and short mixed, as [`Nal::send`] promises.
pub fn copies_arrive_in_the_order_of_sending<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let (mut rig, from, to) = Rig::pair(join);
    let size = |number: u64| SIZES[(number * 7 % 15) as usize];
    for batch in 0..20 {
        let numbers = batch * 15..(batch + 1) * 15;
        for number in numbers.clone() {
            rig.send_copied(from, to, number, &pattern(number, size(number)));
        }
        for number in numbers {
            let received = rig.receive(to, size(number));
            assert_eq!(received.number, number);
            assert_eq!(received.origin.process, rig.name(from));
            assert!(received.bytes == pattern(number, size(number)));
        }
    }
    rig.assert_silence();
}

/// From no byte to a MiB, and the sender may overwrite them at once.
pub fn copies_of_every_size_arrive_whole<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let (mut rig, from, to) = Rig::pair(join);
    for size in SIZES {
        rig.send_copied(from, to, size, &pattern(size, size));
        let received = rig.receive(to, size);
        assert!(received.bytes == pattern(size, size), "{size} bytes");
    }
    rig.assert_silence();
}

/// Several pieces, some of them empty, arrive one behind the other.
pub fn pieces_arrive_as_one<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let (mut rig, from, to) = Rig::pair(join);
    for size in SIZES {
        let bytes = pattern(size, size);
        let (head, tail) = bytes.split_at(bytes.len() / 3);
        let (head, empty, tail) = (region_of(head), Region::new(0), region_of(tail));
        let pieces = [head.claim(), empty.claim(), tail.claim()];
        rig.send(from, to, size, copied(&pieces));
        assert!(rig.receive(to, size).bytes == bytes, "{size} bytes");
        rig.send(from, to, size, Outgoing::LentToRead(lease().lend(&pieces)));
        assert!(rig.receive(to, size).bytes == bytes, "{size} bytes lent");
    }
    rig.assert_silence();
}

/// An operand is the first [`OPERAND_BYTES`] bytes of the message.
pub fn an_operand_goes_first<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let (mut rig, from, to) = Rig::pair(join);
    let ahead = OPERAND_BYTES as u64;
    for size in [0, 1, 8, 32, 4096, 8192] {
        let whole = pattern(size, ahead + size);
        let (operand, bytes) = whole.split_at(OPERAND_BYTES);
        let region = region_of(bytes);
        let body = Outgoing::Copied {
            operand: Some(operand.try_into().expect("it was cut to that length")),
            pieces: &[region.claim()],
        };
        rig.send(from, to, size, body);
        assert!(rig.receive(to, ahead + size).bytes == whole, "{size} bytes");
    }
    rig.assert_silence();
}

/// [`Nal::next`] may be called repeatedly; [`Nal::done`] moves on by one message.
pub fn a_message_stays_the_next_one_until_done<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let (mut rig, from, to) = Rig::pair(join);
    for number in 0..3 {
        rig.send_copied(from, to, number, &pattern(number, 100));
    }
    for number in 0..3 {
        let (origin, first, _) = rig.message(to);
        for _ in 0..3 {
            match rig.nal(to).next() {
                Some(Arrival::Message(again, words, Payload::Inline(claim))) => {
                    let mut bytes = [0; 100];
                    assert_eq!(claim.read(&mut bytes), 100);
                    assert_eq!((again, number_of(&words)), (origin, first));
                    assert_eq!(bytes[..], pattern(number, 100));
                }
                other => panic!("expected the same message, not {other:?}"),
            }
        }
        assert_eq!(first, number);
        rig.nal(to).done(origin);
    }
    rig.assert_silence();
}

/// Lent to read: fetched, or streamed, but never changed on the sender's side.
pub fn lent_bytes_arrive_where_they_are_wanted<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let (mut rig, from, to) = Rig::pair(join);
    for size in SIZES {
        let (bytes, place) = (pattern(size, size), Region::new(size));
        let lent = region_of(&bytes);
        rig.send(
            from,
            to,
            size,
            Outgoing::LentToRead(lease().lend(&[lent.claim()])),
        );
        // Scattered to where the receiver wants it.
        let (head, tail) = (size / 2, size - size / 2);
        let pieces = [
            place.claim().slice(tail, head),
            place.claim().slice(0, tail),
        ];
        let (origin, number, payload) = rig.message(to);
        assert_eq!(number, size);
        assert_eq!(rig.move_into(to, origin, payload, &pieces), size);
        let mut arrived = vec![0; size as usize];
        place.read(tail, &mut arrived[..head as usize]);
        place.read(0, &mut arrived[head as usize..]);
        assert!(arrived == bytes, "{size} bytes");
    }
    rig.assert_silence();
}

/// If a NAL shows lent bodies behind the next one, all of them can be fetched at once.
pub fn lent_bodies_behind_one_another_are_fetched_together<N: Nal>(
    join: impl Fn(usize) -> Vec<Member<N>>,
) {
    const SIZE: u64 = 9000;
    const COUNT: u64 = 5;
    let (mut rig, from, to) = Rig::pair(join);
    let lent: Vec<Region> = (0..COUNT).map(|n| region_of(&pattern(n, SIZE))).collect();
    let mut next = 0;
    for (number, body) in (0..).zip(&lent) {
        let piece = [body.claim()];
        let body = Outgoing::LentToRead(lease().lend(&piece));
        rig.send(from, to, number, body);
    }
    rig.send_copied(from, to, COUNT, b"last");
    while next < COUNT {
        let (origin, number, payload) = rig.message(to);
        assert_eq!(number, next);
        let Payload::Lent(mut loans) = payload else {
            let place = Region::new(SIZE);
            rig.move_into(to, origin, payload, &[place.claim()]);
            next += 1;
            continue;
        };
        let mut messages = 1;
        let behind = |rig: &mut Rig<N>, places: u32| {
            let bytes = u64::from(places) * SIZE;
            rig.nal(to).lent_behind(origin, places, bytes)
        };
        while let Some((words, loan)) = behind(&mut rig, messages) {
            assert_eq!(number_of(&words), next + u64::from(messages));
            assert_eq!(loan.key, loans.key);
            let mut spans = std::mem::take(&mut loans.spans).into_vec();
            spans.extend(loan.spans.into_vec());
            loans.spans = spans.into_iter().collect();
            messages += 1;
        }
        assert!(next + u64::from(messages) <= COUNT, "the last isn't lent");
        let place = Region::new(u64::from(messages) * SIZE);
        let fetched = rig.nal(to).fetch(origin, &loans, &[place.claim()]);
        assert_eq!(fetched, Ok(u64::from(messages) * SIZE));
        rig.nal(to).done_lent(origin, messages);
        for at in 0..u64::from(messages) {
            let mut arrived = vec![0; SIZE as usize];
            place.read(at * SIZE, &mut arrived);
            assert!(arrived == pattern(next + at, SIZE), "body {}", next + at);
        }
        next += u64::from(messages);
    }
    assert_eq!(rig.receive(to, 4).number, COUNT);
    rig.assert_silence();
}

/// What doesn't fit is dropped, and nothing else is.
pub fn a_place_that_is_too_small_takes_the_beginning<N: Nal>(
    join: impl Fn(usize) -> Vec<Member<N>>,
) {
    let (mut rig, from, to) = Rig::pair(join);
    let (bytes, size) = (pattern(9, 100_000), 100_000);
    let lent = region_of(&bytes);
    for room in [0, 1, 8192, 99_999] {
        let place = region_of(&vec![0xaa; size]);
        rig.send(
            from,
            to,
            room,
            Outgoing::LentToRead(lease().lend(&[lent.claim()])),
        );
        rig.send_copied(from, to, room + 1, b"next");
        let (origin, _, payload) = rig.message(to);
        let narrow = place.claim().slice(0, room);
        assert_eq!(rig.move_into(to, origin, payload, &[narrow]), room);
        let mut arrived = vec![0; size];
        place.read(0, &mut arrived);
        let (within, beyond) = arrived.split_at(room as usize);
        assert!(within == &bytes[..room as usize], "{room} bytes of room");
        assert!(beyond.iter().all(|byte| *byte == 0xaa), "nothing beyond");
        assert_eq!(rig.receive(to, 4).number, room + 1);
    }
    rig.assert_silence();
}

/// Lent to fill: the receiver fills it, or learns that it has to send.
pub fn lent_places_are_filled<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    let (mut rig, from, to) = Rig::pair(join);
    for size in SIZES {
        let (place, bytes) = (Region::new(size), pattern(size, size));
        rig.send(
            from,
            to,
            size,
            Outgoing::LentToFill(lease().lend(&[place.claim()])),
        );
        let (origin, number, payload) = rig.message(to);
        assert_eq!(number, size);
        let filling = region_of(&bytes);
        match payload {
            Payload::Lent(loan) => {
                let placed = rig.nal(to).fill(origin, &[filling.claim()], &loan);
                rig.nal(to).done(origin);
                assert_eq!(placed, Ok(size));
            }
            Payload::Inline(nothing) => {
                assert!(nothing.is_empty());
                rig.nal(to).done(origin);
                rig.send(to, from, size + 1, copied(&[filling.claim()]));
                let answer = rig.receive(from, size);
                copy_vectored(&[region_of(&answer.bytes).claim()], &[place.claim()]);
            }
            other => panic!("no bytes were sent, but {other:?} arrived"),
        }
        let mut arrived = vec![0; size as usize];
        place.read(0, &mut arrived);
        assert!(arrived == bytes, "{size} bytes");
    }
    rig.assert_silence();
}

/// More than any network holds: [`Nal::send`] doesn't block, and [`Nal::flush`] reports
/// when all is on its way.
pub fn what_finds_no_room_waits_in_order<N: Nal>(join: impl Fn(usize) -> Vec<Member<N>>) {
    const COUNT: u64 = 3000;
    let (mut rig, from, to) = Rig::pair(join);
    let size = |number: u64| [4000, 8, 20_000, 0][(number % 4) as usize];
    for number in 0..COUNT {
        rig.send_copied(from, to, number, &pattern(number, size(number)));
    }
    let networked = rig.members.len() > 1;
    assert_eq!(rig.nal(from).flush(), networked, "no process has received");
    let (receiver, sender) = (rig.name(to), rig.name(from));
    assert_eq!(rig.nal(from).has_queued(receiver), networked);
    assert!(!rig.nal(from).has_queued(sender), "nothing was sent there");
    for number in 0..COUNT {
        let received = rig.receive(to, size(number));
        assert_eq!(received.number, number);
        assert!(received.bytes == pattern(number, size(number)));
    }
    assert!(!rig.nal(from).flush(), "everything has arrived");
    rig.assert_silence();
}

/// What is lent without an answer arrives whole, and its return is reported once; then it isn't
/// held any more.
pub fn what_was_lent_is_returned_once_it_has_arrived<N: Nal>(
    join: impl Fn(usize) -> Vec<Member<N>>,
) {
    let (mut rig, from, to) = Rig::pair(join);
    for size in SIZES {
        let (lease, name, bytes) = (Lease::new(), rig.name(to), pattern(size, size));
        let lent = region_of(&bytes);
        let pieces = [lent.claim()];
        let sent = rig
            .nal(from)
            .send_lent(name, &words(size), lease.lend(&pieces), 7 * size);
        if sent != Ok(true) {
            continue; // It was better copied.
        }
        assert!(rig.receive(to, size).bytes == bytes, "{size} bytes");
        match rig.arrival(from) {
            Arrival::Returned(number) => assert_eq!(number, 7 * size),
            other => panic!("expected the return, not {other:?}"),
        }
        assert_eq!(lease.outstanding(), 0);
    }
    rig.assert_silence();
}
