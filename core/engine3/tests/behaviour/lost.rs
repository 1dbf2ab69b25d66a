//! Targets that can't be reached: what is reported at the initiator.

use crate::rig::*;
use lintel_engine3::Transfer;
use lintel_types::portals3::{EventKind, EventKind::*, NI_FAIL, NI_OK};
use lintel_types::{Handle, NiFail};
use lintel_wire::portals3::Response;

fn outcomes(node: &mut Node) -> Vec<(EventKind, u32)> {
    let events = node.events();
    events
        .iter()
        .map(|event| (event.kind, event.ni_fail))
        .collect()
}

/// Starts a transfer whose target has no route; returns what is reported.
fn unroutable(length: u64, of: impl Fn(Handle) -> Transfer) -> Vec<(EventKind, u32)> {
    let mut node = Node::plain();
    node.host.unreachable.insert(process(0));
    let handle = node.bind(md(length).threshold(9));
    node.start(&of(handle)).unwrap();
    assert_eq!(node.interface.operations_under_way(), 0);
    assert_eq!(node.interface.loans(), 0);
    let outcomes = outcomes(&mut node);
    assert_eq!(node.unlink(handle), Ok(()));
    outcomes
}

const FAILED_SEND: [(EventKind, u32); 2] = [(SendStart, NI_OK), (SendEnd, NI_FAIL)];
const FAILED_REPLY: [(EventKind, u32); 2] = [(ReplyStart, NI_OK), (ReplyEnd, NI_FAIL)];

#[test]
fn a_put_to_nowhere_fails_at_the_end_of_sending() {
    for length in [8, EAGER + 1] {
        let to = process(0);
        assert_eq!(unroutable(length, |md| put(md, to)), FAILED_SEND);
        assert_eq!(unroutable(length, |md| acked_put(md, to)), FAILED_SEND);
    }
}

#[test]
fn a_get_from_nowhere_fails_at_the_end_of_its_reply() {
    for length in [8, EAGER + 1] {
        let outcome = unroutable(length, |md| get(md, process(0)));
        assert_eq!(outcome, FAILED_REPLY);
    }
}

#[test]
fn an_exchange_with_nowhere_fails_on_both_sides() {
    let outcome = unroutable(8, |md| getput(md, md, process(0)));
    assert_eq!(outcome, [FAILED_SEND, FAILED_REPLY].concat());
}

#[test]
fn what_is_under_way_to_a_lost_target_fails_and_nothing_else() {
    let mut node = Node::plain();
    let (short, long) = (node.bind(md(8)), node.bind(md(EAGER + 1)));
    node.start(&acked_put(short, process(0))).unwrap();
    node.start(&acked_put(long, process(0))).unwrap();
    node.start(&get(short, process(0))).unwrap();
    node.start(&get(short, process(2))).unwrap();
    node.events();
    node.interface.on_target_lost(process(0), &mut node.host);
    let expected = [
        (Ack, NI_FAIL),
        (SendEnd, NI_FAIL),
        (Ack, NI_FAIL),
        (ReplyStart, NI_OK),
        (ReplyEnd, NI_FAIL),
    ];
    assert_eq!(outcomes(&mut node), expected);
    let awaited: Vec<_> = node.interface.awaited_targets().collect();
    assert_eq!(awaited, [process(2)]);
    assert_eq!(node.unlink(long), Ok(()));
}

#[test]
fn what_is_under_way_to_a_process_that_never_was_is_dropped() {
    let mut node = Node::plain();
    let md = node.bind(md(8));
    node.start(&acked_put(md, process(0))).unwrap();
    node.start(&get(md, process(0))).unwrap();
    node.events();
    node.interface.on_target_absent(process(0), &mut node.host);
    assert!(node.events().is_empty());
    assert_eq!(node.interface.operations_under_way(), 0);
    assert_eq!(node.unlink(md), Ok(()));
}

#[test]
fn a_reply_that_was_being_moved_fails_at_its_end() {
    let mut node = Node::plain();
    let md = node.bind(md(8));
    node.start(&get(md, process(0))).unwrap();
    let reply = Response {
        reply: true,
        interface: request().interface,
        placed: false,
        silent: false,
        token: node.host.sent[0].request.token,
        mlength: 8,
        offset: 0,
        fail: NiFail::Ok,
    };
    let (_, pending) = node.on_response(&reply).expect("it is awaited");
    node.interface.on_target_lost(process(0), &mut node.host);
    assert_eq!(outcomes(&mut node), FAILED_REPLY);
    node.on_filled(pending, NiFail::Ok);
    assert!(node.events().is_empty());
    assert_eq!(node.unlink(md), Ok(()));
}

#[test]
fn one_operation_can_be_undeliverable() {
    let mut node = Node::plain();
    let md = node.bind(md(8));
    node.start(&get(md, process(0))).unwrap();
    node.start(&get(md, process(0))).unwrap();
    let token = node.host.sent[0].request.token;
    for _ in 0..2 {
        node.interface.on_undeliverable(token, &mut node.host);
    }
    assert_eq!(outcomes(&mut node), FAILED_REPLY);
    assert_eq!(node.interface.operations_under_way(), 1);
}

#[test]
fn an_interface_that_follows_another_takes_no_response_to_it() {
    let mut earlier = Node::plain();
    let handle = earlier.bind(md(8));
    earlier.start(&get(handle, process(0))).unwrap();
    let old = earlier.host.sent[0].request.token;
    let mut next = Node::plain();
    next.interface.begin_with(earlier.interface.next_tokens());
    let handle = next.bind(md(8));
    next.start(&get(handle, process(0))).unwrap();
    assert_ne!(next.host.sent[0].request.token, old);
    next.interface.on_undeliverable(old, &mut next.host);
    assert!(next.events().is_empty());
}
