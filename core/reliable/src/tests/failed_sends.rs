//! Datagrams that the system didn't take.

use super::*;

#[test]
fn a_datagram_that_did_not_leave_is_sent_at_once() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    for _ in 0..3 {
        send(&mut one, START, 2, 10);
    }
    let data = sent(&mut one, START);
    assert_eq!(data.len(), 3);
    let cost = 10 + OVERHEAD;
    assert_eq!(in_flight(&mut one, 2), (3 * cost, 3 * cost));
    one.on_send_failed(&data[1]);
    one.on_send_failed(&data[1]);
    assert_eq!(in_flight(&mut one, 2), (2 * cost, 2 * cost));
    let again = sent(&mut one, START);
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].sequence, data[1].sequence);
    assert_eq!(one.counts().retransmitted, 1);
    assert_eq!(in_flight(&mut one, 2), (3 * cost, 3 * cost));
}

#[test]
fn an_unreliable_message_that_did_not_leave_is_not_sent() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    send(&mut one, START, 2, 10);
    let reliable = sent(&mut one, START);
    let message = Message {
        class: Class::Unreliable,
        words: [0; 6],
        length: 10,
        memory: 0,
        is_awaited: false,
        body: 0,
    };
    assert!(one.send(START, name(2), message, false).is_ok());
    let unreliable = sent(&mut one, START);
    // Its number may be that of a packet in flight, which has nothing to do with it.
    let header = Header {
        sequence: reliable[0].sequence,
        ..unreliable[0]
    };
    one.on_send_failed(&header);
    assert!(sent(&mut one, START).is_empty());
    assert_eq!(one.counts().retransmitted, 0);
}

#[test]
fn an_acknowledgement_that_did_not_leave_loses_no_packet() {
    let (mut one, mut other) = (endpoint(0), endpoint(2));
    met(&mut one, &mut other, 2);
    send(&mut one, START, 2, 10);
    let data = sent(&mut one, START);
    let header = Header {
        kind: Kind::Ack,
        ..data[0]
    };
    one.on_send_failed(&header);
    assert!(sent(&mut one, START).is_empty());
}
