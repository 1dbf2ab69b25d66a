//! Where Cray's dialect differs from the specification's.

use crate::rig::*;
use lintel_types::portals3::{EventKind::*, MdOptions};

const AUTO: MdOptions = MdOptions::EVENT_AUTO_UNLINK_ENABLE;
const MANUAL: MdOptions = MdOptions::EVENT_MANUAL_UNLINK_ENABLE;

#[test]
fn crays_descriptors_report_their_unlinking_only_if_asked_to() {
    for (options, expected) in [
        (MdOptions::empty(), vec![PutStart, PutEnd]),
        (MANUAL, vec![PutStart, PutEnd]),
        (AUTO, vec![PutStart, PutEnd, Unlink]),
    ] {
        let mut wire = Wire::cray(1);
        let spec = md(100).with(options).threshold(1).unlinking();
        wire.node(0).attach(entry(), spec);
        wire.node(0).take(process(0), &request());
        assert_eq!(wire.node(0).kinds(), expected);
    }
}

#[test]
fn the_specifications_descriptors_report_their_unlinking_whatever_they_ask() {
    for options in [MdOptions::empty(), MANUAL, AUTO] {
        let mut node = Node::plain();
        node.attach(entry(), md(100).with(options).threshold(1).unlinking());
        node.take(process(0), &request());
        assert_eq!(node.kinds(), [PutStart, PutEnd, Unlink]);
    }
}

#[test]
fn unlinking_by_hand_is_reported_in_crays_dialect_if_asked_for() {
    for (options, expected) in [
        (MdOptions::empty(), vec![]),
        (AUTO, vec![]),
        (MANUAL, vec![Unlink]),
    ] {
        let mut wire = Wire::cray(1);
        let (_, handle) = wire.node(0).attach(entry(), md(100).with(options));
        assert_eq!(wire.node(0).unlink(handle), Ok(()));
        let events = wire.node(0).events();
        let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, expected);
        for event in events {
            assert_eq!((event.md_handle, event.initiator), (handle, process(0)));
            assert_eq!(event.link, event.sequence);
        }
    }
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100).with(MANUAL));
    assert_eq!(node.unlink(handle), Ok(()));
    assert!(node.events().is_empty(), "in the specification's never");
}

#[test]
fn crays_gets_count_and_post_events_when_they_are_sent_too() {
    let mut wire = Wire::cray(2);
    wire.node(1).attach(entry(), md(1000));
    let spec = md(8).with(AUTO).threshold(2).unlinking();
    let md = wire.node(0).bind(spec);
    wire.node(0).start(&get(md, process(1))).unwrap();
    assert_eq!(wire.node(0).threshold(md), Ok(1));
    assert_eq!(wire.node(0).kinds(), [SendStart, SendEnd]);
    wire.deliver();
    assert_eq!(wire.node(0).kinds(), [ReplyStart, ReplyEnd, Unlink]);
}

#[test]
fn crays_get_with_a_threshold_of_1_loses_its_reply() {
    let mut wire = Wire::cray(2);
    wire.node(1).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(8).with(AUTO).threshold(1).unlinking());
    wire.run(0, &get(md, process(1)));
    assert_eq!(wire.node(0).kinds(), [SendStart, SendEnd, Unlink]);
    assert_eq!(wire.node(0).drops(), 1);
}
