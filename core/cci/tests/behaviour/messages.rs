//! Sends: order, completion, refusals, time.

use crate::rig::{MAX_SEND, Reported, Rig, event};
use lintel_cci::{Attribute, Completion, Event, Notify, Status, Time};

#[test]
fn a_completion_comes_after_the_message_is_in_the_peers_library() {
    for attribute in [Attribute::Ro, Attribute::Ru] {
        let (mut rig, a, b) = Rig::connected(attribute);
        rig.send(0, a, b"one", event(3)).expect("it is open");
        assert_eq!(rig.reported(0), None);
        rig.step();
        assert_eq!(
            rig.reported(1),
            Some(Reported::Received(b, b"one".to_vec()))
        );
        assert_eq!(rig.reported(0), None);
        rig.step();
        assert_eq!(rig.ended(0), [(3, Status::Success)]);
    }
}

#[test]
fn a_message_acknowledges_what_its_sender_has_received() {
    let (mut rig, a, b) = Rig::connected(Attribute::Ro);
    for context in 0..3 {
        rig.send(0, a, b"ping", event(context)).expect("it is open");
        assert_eq!(rig.step_of_batch(), Some(1));
        rig.send(1, b, b"pong", event(context)).expect("it is open");
        assert_eq!(rig.flying(), 1, "no acknowledgement goes beside it");
        assert_eq!(rig.step_of_batch(), Some(0));
        assert_eq!(
            rig.reported_core(0),
            Some(Event::Sent {
                connection: a,
                context,
                status: Status::Success
            })
        );
        let pong = Reported::Received(a, b"pong".to_vec());
        assert_eq!(rig.reported(0), Some(pong));
    }
    rig.finish(1);
    assert_eq!(rig.flying(), 0, "nothing is left to acknowledge");
    rig.finish(0);
    assert_eq!(rig.flying(), 1);
}

#[test]
fn a_connection_acknowledges_before_it_is_dropped() {
    let (mut rig, a, b) = Rig::connected(Attribute::Ro);
    rig.send(0, a, b"last", event(3)).expect("it is open");
    assert_eq!(rig.step_of_batch(), Some(1));
    rig.with(1, |core, wires| core.disconnect(b, wires))
        .expect("it is open");
    rig.run();
    assert_eq!(rig.ended(0), [(3, Status::Success)]);
}

#[test]
fn an_unreliable_send_ends_at_once() {
    let (mut rig, a, b) = Rig::connected(Attribute::Uu);
    rig.send(0, a, b"one", event(3)).expect("it is open");
    assert_eq!(rig.ended(0), [(3, Status::Success)]);
    rig.run();
    assert_eq!(
        rig.reported(1),
        Some(Reported::Received(b, b"one".to_vec()))
    );
}

#[test]
fn an_unreliable_message_without_a_buffer_is_dropped() {
    let (mut rig, a, _) = Rig::connected(Attribute::Uu);
    rig.members[1].core.set_recv_buffers(1).expect("1 will do");
    for _ in 0..3 {
        rig.send(0, a, b"x", event(0)).expect("it is open");
    }
    rig.run();
    assert!(rig.reported(1).is_some() && rig.reported(1).is_none());
}

#[test]
fn an_unreliable_message_to_a_peer_that_lags_behind_is_dropped_and_ends() {
    let (mut rig, a, _) = Rig::connected(Attribute::Uu);
    rig.members[0].wires.is_congested = true;
    rig.send(0, a, b"x", event(3)).expect("it is open");
    assert_eq!(rig.ended(0), [(3, Status::Success)]);
    rig.run();
    assert_eq!(rig.reported(1), None);
}

#[test]
fn a_message_that_is_too_long_is_refused_whatever_the_attribute() {
    for attribute in [Attribute::Ro, Attribute::Ru, Attribute::Uu] {
        let (mut rig, a, _) = Rig::connected(attribute);
        let long = [0; MAX_SEND as usize + 1];
        assert_eq!(rig.send(0, a, &long, event(0)), Err(Status::MessageSize));
        assert_eq!(rig.send(0, a, &long[1..], event(0)), Ok(()));
    }
}

#[test]
fn silent_sends_make_no_event_and_blocking_ones_return_to_their_caller() {
    for attribute in [Attribute::Ro, Attribute::Ru, Attribute::Uu] {
        let (mut rig, a, _) = Rig::connected(attribute);
        let completion = |notify| Completion { context: 5, notify };
        rig.send(0, a, b"x", completion(Notify::Silent))
            .expect("it is open");
        rig.send(0, a, b"x", completion(Notify::Caller))
            .expect("it is open");
        rig.run();
        let returned = Event::Returned {
            caller: 5,
            status: Status::Success,
        };
        assert_eq!(rig.reported_core(0), Some(returned));
        assert_eq!(rig.reported(0), None);
    }
}

#[test]
fn messages_refused_for_lack_of_a_buffer_arrive_once_and_in_order() {
    for attribute in [Attribute::Ro, Attribute::Ru] {
        let (mut rig, a, b) = Rig::connected(attribute);
        rig.members[1].core.set_recv_buffers(4).expect("4 will do");
        for number in 0..100 {
            rig.send(0, a, &[number], event(number.into()))
                .expect("it is open");
        }
        let mut next = 0;
        while next < 100 {
            rig.run();
            let reported = rig.reported(1);
            assert_eq!(reported, Some(Reported::Received(b, vec![next])));
            next += 1;
            rig.give_back(1);
        }
        rig.run();
        assert_eq!(rig.reported(1), None);
        let ended: Vec<_> = (0..100).map(|number| (number, Status::Success)).collect();
        assert_eq!(rig.ended(0), ended);
    }
}

#[test]
fn senders_take_turns_while_buffers_are_short() {
    let mut rig = Rig::new(4);
    let from: Vec<_> = (1..4).map(|it| rig.join(it, 0, Attribute::Ro).0).collect();
    rig.members[0].core.set_recv_buffers(1).expect("1 will do");
    for (member, id) in (1..4).zip(from) {
        for _ in 0..10 {
            rig.send(member, id, b"x", event(0)).expect("it is open");
        }
    }
    let mut turns = Vec::new();
    for _ in 0..30 {
        rig.run();
        match rig.reported(0) {
            Some(Reported::Received(connection, _)) => turns.push(connection),
            other => panic!("expected a message, not {other:?}"),
        }
        rig.give_back(0);
    }
    rig.run();
    assert_eq!(rig.reported(0), None);
    // The first message finds the buffer free. The others of all three have been refused.
    let turn = &turns[1..4];
    assert!(turn[1] != turn[0] && turn[2] != turn[0] && turn[2] != turn[1]);
    assert!(turns[1..28].chunks(3).all(|it| it == turn), "{turns:?}");
    for member in 1..4 {
        assert_eq!(rig.ended(member).len(), 10);
    }
}

#[test]
fn a_receiver_that_was_never_ready_fails_all_ordered_sends_with_rnr() {
    let (mut rig, a, b) = Rig::connected(Attribute::Ro);
    rig.members[1].core.set_recv_buffers(1).expect("1 will do");
    for number in 0..4 {
        rig.send(0, a, &[number], event(number.into()))
            .expect("it is open");
        rig.now = rig.now.after(Time(10));
    }
    rig.run();
    assert_eq!(rig.ended(0), [(0, Status::Success)]);
    rig.pass(64_000_000 - 30);
    let rnr = Status::Rnr;
    assert_eq!(rig.ended(0), [(1, rnr), (2, rnr), (3, rnr)]);
    rig.run();
    assert_eq!(rig.reported(1), Some(Reported::Received(b, vec![0])));
    rig.give_back(1);
    rig.run();
    rig.send(0, a, &[9], event(9)).expect("it is open");
    rig.run();
    assert_eq!(
        rig.reported(1),
        Some(Reported::Received(b, vec![9])),
        "none came late"
    );
    assert_eq!(rig.ended(0), [(9, Status::Success)]);
}

#[test]
fn a_receiver_that_says_nothing_lets_sends_time_out() {
    let (mut rig, a, _) = Rig::connected(Attribute::Ro);
    rig.members[0]
        .core
        .set_connection_send_timeout(a, Time(500))
        .expect("it is open");
    rig.send(0, a, b"x", event(3)).expect("it is open");
    rig.drop_frames_to(1);
    rig.pass(499);
    assert_eq!(rig.reported(0), None);
    rig.pass(1);
    assert_eq!(rig.ended(0), [(3, Status::TimedOut)]);
}

#[test]
fn a_quarter_of_the_window_under_way_is_when_to_look_for_acknowledgements() {
    let (mut rig, a, _) = Rig::connected(Attribute::Ro);
    for context in 0..64 {
        assert!(!rig.with(0, |core, _| core.is_look_due(a)));
        rig.send(0, a, b"more", event(context)).expect("it is open");
    }
    assert!(rig.with(0, |core, _| core.is_look_due(a)));
    rig.run();
    assert!(!rig.with(0, |core, _| core.is_look_due(a)));
}

#[test]
fn operations_beyond_the_send_buffers_are_refused() {
    let (mut rig, a, _) = Rig::connected(Attribute::Ru);
    rig.members[0].core.set_send_buffers(2).expect("2 will do");
    assert_eq!(rig.send(0, a, b"x", event(0)), Ok(()));
    assert_eq!(rig.send(0, a, b"x", event(1)), Ok(()));
    assert_eq!(rig.send(0, a, b"x", event(2)), Err(Status::NoBuffers));
    rig.run();
    assert_eq!(rig.send(0, a, b"x", event(2)), Ok(()));
}

#[test]
fn a_hundred_thousand_pending_sends_all_arrive_in_order() {
    let (mut rig, a, b) = Rig::connected(Attribute::Ro);
    rig.members[0].core.set_send_buffers(100_000).expect("fits");
    rig.members[1].core.set_recv_buffers(24_000).expect("fits");
    for number in 0..100_000u64 {
        rig.send(0, a, &number.to_le_bytes(), event(number))
            .expect("there is room");
    }
    let mut next = 0u64;
    while next < 100_000 {
        rig.run();
        while let Some(reported) = rig.reported(1) {
            assert_eq!(reported, Reported::Received(b, next.to_le_bytes().to_vec()));
            next += 1;
            rig.give_back(1);
        }
    }
    rig.run();
    assert_eq!(rig.ended(0).len(), 100_000);
}

#[test]
fn a_message_that_the_host_has_no_room_for_is_refused_or_dropped() {
    let (mut rig, a, b) = Rig::connected(Attribute::Ro);
    rig.members[1].wires.has_no_room = true;
    rig.send(0, a, b"x", event(3)).expect("it is open");
    rig.run();
    assert_eq!((rig.reported(0), rig.reported(1)), (None, None));
    rig.members[1].wires.has_no_room = false;
    rig.give_back(1);
    rig.run();
    assert_eq!(rig.reported(1), Some(Reported::Received(b, b"x".to_vec())));
    assert_eq!(rig.ended(0), [(3, Status::Success)]);

    let (mut rig, a, _) = Rig::connected(Attribute::Uu);
    rig.members[1].wires.has_no_room = true;
    rig.send(0, a, b"x", event(3)).expect("it is open");
    rig.run();
    assert_eq!(rig.reported(1), None);
    assert_eq!(rig.members[1].core.resources().held, 0);
}

#[test]
fn messages_that_land_later_are_acknowledged_in_order_once_they_have() {
    let (mut rig, a, b) = Rig::connected(Attribute::Ro);
    rig.members[1].core.land_later();
    for context in 0..3 {
        rig.send(0, a, b"x", event(context)).expect("it is open");
    }
    rig.run();
    assert_eq!(rig.ended(0), []);
    let land = |rig: &mut Rig| {
        rig.with(1, |core, wires| {
            core.on_landed(b, wires);
            core.finish(wires);
        });
        rig.run();
    };
    land(&mut rig);
    assert_eq!(rig.ended(0), [(0, Status::Success)]);
    land(&mut rig);
    land(&mut rig);
    assert_eq!(rig.ended(0), [(1, Status::Success), (2, Status::Success)]);
    // Nothing is left that could.
    land(&mut rig);
    assert_eq!(rig.ended(0), []);
}
