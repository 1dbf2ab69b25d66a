//! Which responses an operation awaits.

use crate::rig::*;
use lintel_engine4::Transfer;
use lintel_types::{AckRequest, Error, EventKind, NiFail};
use lintel_wire::Response;

#[test]
fn a_response_of_another_process_or_kind_is_not_awaited() {
    let mut wire = Wire::of(2, MATCHING);
    let (md, sink) = (wire.node(0).descriptor(), wire.node(0).descriptor());
    let put = Transfer {
        ack: AckRequest::Full,
        ..put(md, process(1), 0)
    };
    wire.node(0).start(&put).unwrap();
    wire.node(0).start(&get(sink, process(1), 0)).unwrap();
    let tokens: Vec<u32> = (wire.node(0).host.sent.iter())
        .map(|sent| sent.request.token)
        .collect();
    for (token, is_get) in [(tokens[0], false), (tokens[1], true)] {
        let right = response_to(token, is_get);
        let wrong = response_to(token, !is_get);
        let Node {
            interface, host, ..
        } = wire.node(0);
        assert!(interface.awaits(process(1), &right));
        assert!(!interface.awaits(process(2), &right));
        assert!(!interface.awaits(process(1), &wrong));
        assert!(!interface.deliver_acknowledgement(process(2), &right, host));
        assert!(!interface.deliver_reply(process(2), &right, |_, _| NiFail::Ok, host));
        assert!(interface.on_response(&wrong, host).is_none());
    }
    assert_eq!(wire.node(0).kinds(), [EventKind::Send]);
    assert_eq!(wire.node(0).interface.operations_under_way(), 2);
}

#[test]
fn a_reply_that_is_being_moved_has_no_second_one() {
    let mut wire = Wire::of(2, MATCHING);
    let sink = wire.node(0).descriptor();
    wire.node(0).start(&get(sink, process(1), 0)).unwrap();
    let token = wire.node(0).host.sent[0].request.token;
    let reply = response_to(token, true);
    let (_, pending) = wire.node(0).on_response(&reply).expect("it is awaited");
    let placed = Response {
        placed: true,
        ..reply
    };
    for second in [reply, placed] {
        assert!(wire.node(0).on_response(&second).is_none());
        let Node {
            interface, host, ..
        } = wire.node(0);
        assert!(!interface.awaits(process(1), &second));
        assert!(!interface.deliver_reply(process(1), &second, |_, _| NiFail::Ok, host));
    }
    let Node {
        interface, host, ..
    } = wire.node(0);
    assert_eq!(interface.descriptor_release(sink), Err(Error::InUse));
    interface.on_filled(pending, NiFail::Ok, host);
    assert_eq!(wire.node(0).kinds(), [EventKind::Reply]);
}
