//! Many messages and connections, and a network that loses datagrams.

use crate::rig::{bytes, join, number, open, own_sm, poll, send, wait};
use lintel_cci_endpoint::{Attribute, Device, EndpointOption, Event, MessageFlags, Status};
use lintel_claim::Claim;
use std::net::Ipv4Addr;
use std::time::Instant;

#[test]
fn twenty_four_thousand_messages_are_held_and_given_back_in_any_order() {
    const HELD: u32 = 24_000;
    let device = own_sm("held");
    let (a, b) = (open(&device), open(&device));
    let (from, _) = join(&a, &b, Attribute::Ro);
    let (mut sent, mut held) = (0, Vec::new());
    wait("room for all", || {
        while sent < HELD && send(&a, from, sent).is_ok() {
            sent += 1;
        }
        poll(&a);
        while let Some(Event::Received { message, .. }) = poll(&b) {
            assert_eq!(number(&message), held.len() as u32);
            held.push(message);
        }
        (held.len() == HELD as usize).then_some(())
    });
    assert_eq!(b.resources().held, HELD);
    for (at, message) in held.iter().enumerate() {
        assert_eq!(number(message), at as u32, "it stays as it was");
    }
    while let Some(message) = held.pop() {
        b.return_message(message);
    }
    assert_eq!(b.resources().held, 0);
}

#[test]
fn ten_thousand_connections_of_an_endpoint_carry_messages_and_leave_nothing() {
    const CONNECTIONS: usize = 10_000;
    let device = own_sm("many");
    let (a, b) = (open(&device), open(&device));
    let uri = b.uri();
    let (mut asked, mut from, mut to) = (0, Vec::new(), Vec::new());
    wait("connections", || {
        // Requests hold buffers until they are returned: not all of them at once.
        while asked < CONNECTIONS && asked - to.len() < 1000 {
            a.connect(&uri, Claim::empty(), Attribute::Ru, 0, None)
                .expect("there is room");
            asked += 1;
        }
        while let Some(event) = poll(&b) {
            match event {
                Event::Request {
                    connection, data, ..
                } => {
                    b.accept(connection, 0).expect("it wasn't answered");
                    b.return_request(data);
                }
                Event::Accepted { result, .. } => to.push(result.expect("accepted").0),
                other => panic!("expected a request, not {other:?}"),
            }
        }
        while let Some(Event::Connected { result, .. }) = poll(&a) {
            from.push(result.expect("accepted").0);
        }
        (from.len() == CONNECTIONS && to.len() == CONNECTIONS).then_some(())
    });
    assert_eq!(b.resources().connections, CONNECTIONS);
    for (at, connection) in from.iter().enumerate() {
        send(&a, *connection, at as u32).expect("there is room");
    }
    let mut seen = vec![false; CONNECTIONS];
    for _ in 0..CONNECTIONS {
        let message = wait("message", || match (poll(&b), poll(&a)) {
            (Some(Event::Received { message, .. }), _) => Some(message),
            _ => None,
        });
        let at = number(&message) as usize;
        assert!(!std::mem::replace(&mut seen[at], true), "{at} comes once");
        b.return_message(message);
    }
    wait("end of all sends", || {
        poll(&a);
        (a.resources().pending == 0).then_some(())
    });
    for (end, connections) in [(&a, from), (&b, to)] {
        for connection in connections {
            end.disconnect(connection).expect("it is open");
        }
        assert_eq!(end.resources().connections, 0);
    }
}

/// Sends a hundred thousand messages at once while one datagram in a hundred is lost.
fn send_under_loss(attribute: Attribute) {
    const COUNT: u32 = 100_000;
    let mut device = Device::at_address(Ipv4Addr::LOCALHOST);
    device.faults = Some("loss=0.01,seed=7".parse().expect("these are faults"));
    let (a, b) = (open(&device), open(&device));
    a.set_option(EndpointOption::SendBuffers, COUNT)
        .expect("any count will do");
    let (from, to) = join(&a, &b, attribute);
    let started = Instant::now();
    for number in 0..COUNT {
        let region = bytes(&number.to_le_bytes());
        a.send(
            from,
            &[region.claim()],
            number.into(),
            MessageFlags::default(),
        )
        .expect("there are buffers for all");
    }
    let (mut received, mut ended) = (0, 0);
    wait("end of all sends", || {
        while let Some(event) = poll(&b) {
            let Event::Received {
                connection,
                message,
            } = event
            else {
                panic!("expected a message, not {event:?}");
            };
            assert_eq!((connection, number(&message)), (to, received));
            b.return_message(message);
            received += 1;
        }
        while let Some(event) = poll(&a) {
            let Event::Sent {
                context, status, ..
            } = event
            else {
                panic!("expected an end, not {event:?}");
            };
            assert_eq!((context, status), (ended.into(), Status::Success));
            ended += 1;
        }
        (received == COUNT && ended == COUNT).then_some(())
    });
    println!("{attribute:?}: {:?}", started.elapsed());
    assert_eq!(a.resources().pending, 0);
}

#[test]
fn a_hundred_thousand_ordered_sends_arrive_once_and_in_order_under_loss() {
    send_under_loss(Attribute::Ro);
}

#[test]
fn a_hundred_thousand_unordered_sends_arrive_once_under_loss() {
    send_under_loss(Attribute::Ru);
}

#[test]
fn unreliable_messages_to_a_peer_that_lags_behind_take_bounded_memory() {
    let device = own_sm("lag");
    let (a, b) = (open(&device), open(&device));
    b.set_option(EndpointOption::RecvBuffers, 10)
        .expect("any count will do");
    let (from, _) = join(&a, &b, Attribute::Uu);
    for number in 0..200_000 {
        send(&a, from, number).expect("unreliable sends are always taken");
    }
    assert!(a.bytes() < 8 << 20, "{} bytes", a.bytes());
    assert!(b.resources().held <= 10);
}

/// With a send for each completion, the queue of events is never empty.
#[test]
fn a_sender_that_always_finds_completions_hears_its_peer() {
    const IN_FLIGHT: u32 = 32;
    const ANSWER_AFTER: u32 = 1000;
    let device = own_sm("hears");
    let (a, b) = (open(&device), open(&device));
    let (from, to) = join(&a, &b, Attribute::Uu);
    let send_next = |number: u32| {
        let (region, flags) = (bytes(&number.to_le_bytes()), MessageFlags::default());
        a.send(from, &[region.claim()], number.into(), flags)
            .expect("unreliable sends are always taken");
    };
    (0..IN_FLIGHT).for_each(send_next);
    let mut sent = IN_FLIGHT;
    wait("message of the peer", || {
        match poll(&a).expect("there is always a completion") {
            Event::Sent { .. } => send_next(sent),
            _ => return Some(()),
        }
        sent += 1;
        if sent == ANSWER_AFTER {
            send(&b, to, 7).expect("there is room");
        }
        None
    });
    let later = sent - ANSWER_AFTER;
    assert!(later < 1000, "{later} completions came first");
}
