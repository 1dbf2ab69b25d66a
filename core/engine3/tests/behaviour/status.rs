//! Status registers (section 3.2.7), and the counts of work.

use crate::rig::*;
use lintel_engine3::{Work, register};
use lintel_types::NiFail;
use lintel_types::portals3::Error;
use lintel_wire::portals3::Request;

fn read(node: &Node, register: u32) -> u64 {
    let value = node.interface.status(register);
    value.expect("it is a register")
}

#[test]
fn dropped_messages_and_their_bytes_are_counted() {
    let mut node = Node::plain();
    for length in [5, 6] {
        let request = Request {
            length,
            ..request()
        };
        assert_eq!(node.take(process(0), &request), None);
    }
    assert_eq!(read(&node, register::DROP_COUNT), 2);
    assert_eq!(read(&node, register::DROP_LENGTH), 11);
    assert_eq!(read(&node, register::RECV_COUNT), 0);
}

#[test]
fn messages_and_their_bytes_are_counted_at_both_ends() {
    let mut wire = Wire::of(2);
    wire.node(1).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(8));
    wire.run(0, &put(md, process(1)));
    wire.run(0, &get(md, process(1)));
    let sent = [register::SEND_COUNT, register::SEND_LENGTH];
    assert_eq!(sent.map(|register| read(&wire.nodes[0], register)), [2, 16]);
    let received = [register::RECV_COUNT, register::RECV_LENGTH];
    assert_eq!(
        received.map(|register| read(&wire.nodes[1], register)),
        [2, 16]
    );
}

/// Ever, gone, most, now.
fn gauge(node: &Node, first: u32) -> [u64; 4] {
    [0, 1, 2, 3].map(|which| read(node, first + which))
}

#[test]
fn objects_are_counted_from_their_beginning_to_their_end() {
    let mut node = Node::plain();
    let (first, _) = node.attach(entry(), md(100));
    node.attach(entry(), md(100).threshold(1).unlinking());
    node.bind(md(100));
    assert_eq!(node.interface.entry_unlink(first), Ok(()));
    assert!(node.take(process(0), &request()).is_some());
    assert_eq!(gauge(&node, register::MES), [2, 1, 2, 1]);
    assert_eq!(gauge(&node, register::MDS), [3, 2, 3, 1]);
    let queue = node.queue;
    assert_eq!(node.interface.queue_free(queue), Ok(()));
    assert_eq!(gauge(&node, register::EQS), [1, 1, 1, 0]);
}

#[test]
fn messages_under_way_are_counted_at_both_ends() {
    let mut node = Node::plain();
    node.attach(entry(), md(100));
    let landed = node.begin(&request());
    assert_eq!(gauge(&node, register::MSGS), [1, 0, 1, 1]);
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(gauge(&node, register::MSGS), [1, 1, 1, 0]);
    let md = node.bind(md(8));
    node.start(&get(md, process(0))).unwrap();
    assert_eq!(gauge(&node, register::MSGS), [2, 1, 1, 1]);
    node.interface.on_target_lost(process(0), &mut node.host);
    assert_eq!(gauge(&node, register::MSGS), [2, 2, 1, 0]);
}

#[test]
fn match_lists_have_their_length_and_greatest_length() {
    let mut node = Node::plain();
    let (first, _) = node.attach(entry(), md(100));
    node.attach(entry(), md(100));
    assert_eq!(node.interface.entry_unlink(first), Ok(()));
    let of = |register, portal: u32| register | portal << 16;
    assert_eq!(read(&node, of(register::MLIST_LEN, PORTAL)), 1);
    assert_eq!(read(&node, of(register::MLIST_MAX, PORTAL)), 2);
    assert_eq!(read(&node, of(register::MLIST_LEN, 63)), 0);
    assert_eq!(read(&node, of(register::MLIST_MAX, 63)), 0);
    assert_eq!(read(&node, register::PTLS_MAX), 64);
    assert_eq!(read(&node, register::PTLS_CUR), 1);
    let beyond = node.interface.status(of(register::MLIST_LEN, 64));
    assert_eq!(beyond, Err(Error::SrIndexInvalid));
}

/// `portals3.h` writes them down once more.
#[test]
fn the_registers_of_match_lists_have_the_numbers_of_the_header() {
    assert_eq!(register::MLIST_LEN, 0x8000_000f);
    assert_eq!(register::MLIST_MAX, 0x8000_000e);
}

#[test]
fn a_number_that_is_no_register_is_refused() {
    let node = Node::plain();
    for number in [24, 29, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        let read = node.interface.status(number);
        assert_eq!(read, Err(Error::SrIndexInvalid), "{number:#x}");
    }
}

#[test]
fn work_is_counted_once() {
    let mut wire = Wire::of(2);
    wire.node(1).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(8));
    wire.run(0, &acked_put(md, process(1)));
    let initiator = Work {
        responses: 1,
        events: 3,
        ..Work::default()
    };
    let target = Work {
        walked: 1,
        requests: 1,
        events: 2,
        ..Work::default()
    };
    assert_eq!(wire.node(0).interface.take_work(), initiator);
    assert_eq!(wire.node(1).interface.take_work(), target);
    assert_eq!(wire.node(1).interface.take_work(), Work::default());
}
