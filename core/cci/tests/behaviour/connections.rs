//! Requests, answers, ends and keepalive.

use crate::rig::{Reported, Rig, event, name};
use lintel_cci::{Action, Attribute, Event, Request, Status, Time};

#[test]
fn the_attribute_and_the_data_reach_the_server() {
    for attribute in [Attribute::Ro, Attribute::Ru, Attribute::Uu] {
        let mut rig = Rig::new(2);
        rig.connect(0, 1, attribute, None);
        rig.run();
        match rig.reported(1) {
            Some(Reported::Request(_, asked, data)) => {
                assert_eq!((asked, data.as_slice()), (attribute, b"hello".as_slice()));
            }
            other => panic!("expected a request, not {other:?}"),
        }
    }
}

#[test]
fn a_rejected_request_ends_as_refused_and_a_second_answer_is_invalid() {
    let mut rig = Rig::new(2);
    rig.connect(0, 1, Attribute::Ro, None);
    rig.run();
    let Some(Reported::Request(asked, ..)) = rig.reported(1) else {
        panic!("the request arrives");
    };
    assert_eq!(rig.with(1, |core, wires| core.reject(asked, wires)), Ok(()));
    let again = rig.with(1, |core, wires| core.reject(asked, wires));
    assert_eq!(again, Err(Status::Invalid));
    let accepted = rig.with(1, |core, wires| core.accept(asked, 0, wires));
    assert_eq!(accepted, Err(Status::Invalid));
    rig.run();
    let refused = Event::Connected {
        context: 1,
        result: Err(Status::Refused),
    };
    assert_eq!(rig.reported_core(0), Some(refused));
    assert_eq!(rig.members[0].core.resources().connections, 0);
}

#[test]
fn a_second_accept_is_invalid() {
    let mut rig = Rig::new(2);
    rig.connect(0, 1, Attribute::Ru, None);
    rig.run();
    let Some(Reported::Request(asked, ..)) = rig.reported(1) else {
        panic!("the request arrives");
    };
    let accept = |rig: &mut Rig| rig.with(1, |core, wires| core.accept(asked, 0, wires));
    assert_eq!(accept(&mut rig), Ok(()));
    assert_eq!(accept(&mut rig), Err(Status::Invalid));
}

#[test]
fn a_request_that_nobody_answers_times_out_and_a_late_accept_is_reported() {
    let mut rig = Rig::new(2);
    rig.connect(0, 1, Attribute::Ro, Some(Time(1000)));
    rig.run();
    rig.pass(999);
    assert_eq!(rig.reported(0), None);
    rig.pass(1);
    let late = Event::Connected {
        context: 1,
        result: Err(Status::TimedOut),
    };
    assert_eq!(rig.reported_core(0), Some(late));
    let Some(Reported::Request(asked, ..)) = rig.reported(1) else {
        panic!("the request arrives");
    };
    rig.with(1, |core, wires| core.accept(asked, 5, wires))
        .expect("it wasn't answered");
    rig.run();
    let gone = Event::Accepted {
        context: 5,
        result: Err(Status::Disconnected),
    };
    assert_eq!(rig.reported_core(1), Some(gone));
}

#[test]
fn a_request_to_nobody_is_refused_at_once() {
    let mut rig = Rig::new(2);
    rig.end(1);
    rig.connect(0, 1, Attribute::Ro, None);
    let refused = Event::Connected {
        context: 1,
        result: Err(Status::Refused),
    };
    assert_eq!(rig.reported_core(0), Some(refused));
}

#[test]
fn the_server_is_reported_of_the_connection_before_its_first_message() {
    let mut rig = Rig::new(2);
    let (a, b) = rig.join(0, 1, Attribute::Ro);
    rig.send(0, a, b"x", event(3)).expect("it is open");
    rig.run();
    assert_eq!(rig.reported(1), Some(Reported::Received(b, b"x".to_vec())));
}

#[test]
fn the_peer_of_a_dropped_connection_learns_it_by_its_next_send() {
    let (mut rig, a, b) = Rig::connected(Attribute::Ro);
    rig.with(1, |core, wires| core.disconnect(b, wires))
        .expect("it is open");
    rig.run();
    assert_eq!(rig.reported(0), None, "the peer learns nothing");
    rig.send(0, a, b"x", event(3)).expect("it isn't known yet");
    rig.run();
    assert_eq!(rig.ended(0), [(3, Status::Disconnected)]);
    assert_eq!(rig.send(0, a, b"x", event(4)), Err(Status::Disconnected));
}

/// Sends more than the peer has buffers for, disconnects, and has the peer receive all, `meanwhile` later.
fn disconnect_with_unsent(meanwhile: impl FnOnce(&mut Rig)) {
    let (mut rig, a, b) = Rig::connected(Attribute::Ro);
    rig.members[1].core.set_recv_buffers(1).expect("1 will do");
    for number in 0..3 {
        rig.send(0, a, &[number], event(0)).expect("it is open");
    }
    rig.run();
    rig.with(0, |core, wires| core.disconnect(a, wires))
        .expect("it is open");
    meanwhile(&mut rig);
    for number in 0..3 {
        rig.run();
        assert_eq!(rig.reported(1), Some(Reported::Received(b, vec![number])));
        rig.give_back(1);
    }
    rig.run();
    assert_eq!(rig.members[0].core.resources(), Default::default());
}

#[test]
fn messages_sent_before_a_disconnect_still_arrive() {
    disconnect_with_unsent(|_| ());
}

#[test]
fn keepalive_that_is_set_later_does_not_end_what_a_disconnect_leaves_to_be_sent() {
    for timeout in [0, 10] {
        disconnect_with_unsent(|rig| {
            let now = rig.now;
            rig.members[0].core.set_keepalive(now, Time(timeout));
            rig.pass(1000);
        });
    }
}

#[test]
fn a_lost_process_fails_all_sends_in_order() {
    let (mut rig, a, _) = Rig::connected(Attribute::Ro);
    for number in 0..3 {
        rig.send(0, a, b"x", event(number)).expect("it is open");
    }
    rig.end(1);
    let gone = Status::Disconnected;
    assert_eq!(rig.ended(0), [(0, gone), (1, gone), (2, gone)]);
    assert_eq!(rig.members[0].core.resources().pending, 0);
}

#[test]
fn an_acknowledgement_on_its_way_counts_though_its_sender_has_ended() {
    let (mut rig, a, _) = Rig::connected(Attribute::Ro);
    rig.send(0, a, b"x", event(1)).expect("it is open");
    rig.step();
    rig.cut_off(1);
    rig.send(0, a, b"y", event(2))
        .expect("its end isn't known yet");
    assert_eq!(rig.ended(0), []);
    rig.run();
    assert_eq!(rig.ended(0), [(1, Status::Success)]);
    rig.report_loss(1);
    assert_eq!(rig.ended(0), [(2, Status::Disconnected)]);
}

#[test]
fn a_group_is_joined_without_a_server_and_each_connection_goes_one_way() {
    let mut rig = Rig::new(1);
    let join = |rig: &mut Rig, attribute| {
        let request = Request {
            to: name(8),
            attribute,
            context: 4,
            timeout: None,
        };
        let id = rig.with(0, |core, wires| core.join(request, 50, wires));
        match rig.reported_core(0) {
            Some(Event::Connected { context, result }) => {
                let (connected, info) = result.expect("nobody decides");
                assert_eq!((Ok(connected), context, info.max_send), (id, 4, 50));
                connected
            }
            other => panic!("expected a connection, not {other:?}"),
        }
    };
    let to = join(&mut rig, Attribute::UuMcTx);
    let from = join(&mut rig, Attribute::UuMcRx);
    rig.send(0, to, b"all", event(1)).expect("it sends");
    assert_eq!(rig.ended(0), [(1, Status::Success)]);
    assert_eq!(rig.members[0].wires.groups, [(name(8), b"all".to_vec())]);
    assert_eq!(rig.send(0, from, b"x", event(1)), Err(Status::Invalid));
    let core = &mut rig.members[0].core;
    assert_eq!(core.on_multicast(from, 50), Action::Deliver(from));
    assert_eq!(core.on_multicast(to, 50), Action::Nothing);
}

#[test]
fn a_silent_peer_is_reported_once_and_the_connection_stays() {
    let (mut rig, a, _) = Rig::connected(Attribute::Ro);
    let now = rig.now;
    rig.members[0].core.set_keepalive(now, Time(1000));
    rig.pass(1000);
    rig.run();
    rig.pass(1000);
    assert_eq!(rig.reported(0), None, "the peer has answered the probe");
    for _ in 0..3 {
        rig.drop_frames_to(1);
        rig.pass(1000);
    }
    let silent = Event::KeepaliveTimedOut { connection: a };
    assert_eq!(rig.reported_core(0), Some(silent));
    assert_eq!(rig.reported(0), None);
    assert_eq!(rig.members[0].core.connection_keepalive(a), Ok(Time(0)));
    assert_eq!(rig.send(0, a, b"x", event(0)), Ok(()));
}

#[test]
fn a_frame_of_another_process_touches_no_connection() {
    let (mut rig, a, _) = Rig::connected(Attribute::Ro);
    let mut words = [0; 6];
    words[0] = 13 << 32; // A reset of the connection that is the peer's.
    words[1] = u64::MAX;
    rig.with(0, |core, wires| core.on_message(name(7), &words, 0, wires));
    assert_eq!(rig.send(0, a, b"x", event(0)), Ok(()));
}
