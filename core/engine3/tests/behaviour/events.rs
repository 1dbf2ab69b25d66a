//! Events (section 3.11): what they say, their order, link and sequence.

use crate::rig::*;
use lintel_types::portals3::{Event, EventKind, EventKind::*, MdOptions, NI_FAIL, NI_OK};
use lintel_types::{NiFail, QueueIndex};
use lintel_wire::portals3::{Request, Verb};

const START: MdOptions = MdOptions::EVENT_START_DISABLE;
const END: MdOptions = MdOptions::EVENT_END_DISABLE;

/// Kind, link and sequence.
fn numbers(events: &[Event]) -> Vec<(EventKind, u32, u32)> {
    let numbers = events
        .iter()
        .map(|event| (event.kind, event.link, event.sequence));
    numbers.collect()
}

#[test]
fn the_events_of_a_target_say_what_came_and_where_it_went() {
    let mut node = Node::plain();
    let spec = md(12).with(MdOptions::TRUNCATE).threshold(9);
    let (_, handle) = node.attach(entry(), spec);
    node.take(process(3), &request());
    node.events();
    node.take(process(3), &request());
    for (place, event) in node.events().into_iter().enumerate() {
        let state = node.interface.descriptor_state(handle).unwrap();
        assert_eq!(state.threshold, 7);
        let expected = Event {
            initiator: process(3),
            uid: UID,
            jid: JID,
            pt_index: PORTAL,
            match_bits: 7,
            rlength: 8,
            mlength: 4,
            offset: 8,
            hdr_data: 0x99,
            link: 2,
            ni_fail: NI_OK,
            sequence: 2 + place as u32,
            ..Event::new([PutStart, PutEnd][place], handle, state)
        };
        assert_eq!(event, expected);
    }
}

#[test]
fn the_events_of_a_get_have_no_header_data() {
    let mut node = Node::plain();
    node.attach(entry(), md(100));
    let get = Request {
        verb: Verb::Get,
        ..request()
    };
    node.take(process(0), &get);
    assert!(node.events().iter().all(|event| event.hdr_data == 0));
}

#[test]
fn the_events_of_an_initiator_say_what_went_and_who_answered() {
    let mut wire = Wire::of(2);
    wire.node(1)
        .attach(entry(), md(1000).with(MdOptions::MANAGE_REMOTE));
    let md = wire.node(0).bind(md(100));
    let transfer = lintel_engine3::Transfer {
        source_offset: 30,
        length: Some(20),
        remote_offset: 500,
        ..acked_put(md, process(1))
    };
    wire.run(0, &transfer);
    let events = wire.node(0).events();
    assert_eq!(events.len(), 3);
    for event in &events {
        assert_eq!((event.uid, event.jid, event.pt_index), (UID, JID, PORTAL));
        assert_eq!((event.match_bits, event.md_handle), (7, md));
        assert_eq!((event.rlength, event.mlength), (20, 20));
    }
    let seen: Vec<_> = events.iter().map(|e| (e.initiator, e.offset)).collect();
    let expected = [(process(0), 30), (process(0), 30), (process(1), 500)];
    assert_eq!(seen, expected);
}

/// Clients compare the two, or take 0 for "dropped".
#[test]
fn an_acknowledgement_reports_as_requested_what_was_moved() {
    let mut wire = Wire::of(2);
    wire.node(1)
        .attach(entry(), md(40).with(MdOptions::TRUNCATE));
    let md = wire.node(0).bind(md(100));
    wire.run(0, &acked_put(md, process(1)));
    let ack = &wire.node(0).events()[2];
    assert_eq!((ack.kind, ack.rlength, ack.mlength), (Ack, 40, 40));
}

#[test]
fn an_end_is_linked_to_its_start_though_others_overtake_it() {
    let mut node = Node::plain();
    node.attach(entry(), md(100).threshold(2).unlinking());
    let first = node.begin(&request());
    let second = node.begin(&request());
    node.on_landed(second, NiFail::Ok);
    node.on_landed(first, NiFail::Ok);
    let expected = [
        (PutStart, 0, 0),
        (PutStart, 1, 1),
        (PutEnd, 1, 2),
        (PutEnd, 0, 3),
        (Unlink, 3, 4),
    ];
    assert_eq!(numbers(&node.events()), expected);
}

#[test]
fn without_start_events_an_end_is_linked_to_itself() {
    let mut node = Node::plain();
    node.attach(entry(), md(100).with(START).threshold(2).unlinking());
    node.take(process(0), &request());
    node.take(process(0), &request());
    let expected = [(PutEnd, 0, 0), (PutEnd, 1, 1), (Unlink, 1, 2)];
    assert_eq!(numbers(&node.events()), expected);
}

#[test]
fn without_end_events_an_unlinking_is_linked_to_the_start() {
    let mut node = Node::plain();
    node.attach(entry(), md(100).with(END).threshold(2).unlinking());
    node.take(process(0), &request());
    node.take(process(0), &request());
    let expected = [(PutStart, 0, 0), (PutStart, 1, 1), (Unlink, 1, 2)];
    assert_eq!(numbers(&node.events()), expected);
}

#[test]
fn each_queue_counts_its_own_events() {
    let mut node = Node::plain();
    let other = node.interface.queue_alloc().unwrap();
    let mut spec = md(100).threshold(1).unlinking();
    spec.md.queue = other;
    let after = lintel_types::portals3::Position::After;
    let attached = node
        .interface
        .entry_attach_with(PORTAL, entry(), after, spec);
    attached.unwrap();
    node.attach(entry(), md(100));
    node.take(process(0), &request());
    node.take(process(0), &request());
    let there = &node.host.events[&QueueIndex(other.index())];
    let expected = [(PutStart, 0, 0), (PutEnd, 0, 1), (Unlink, 1, 2)];
    assert_eq!(numbers(there), expected);
    assert_eq!(numbers(&node.events()), [(PutStart, 0, 0), (PutEnd, 0, 1)]);
}

#[test]
fn options_disable_the_halves_of_pairs_but_no_acknowledgement() {
    for (options, expected) in [
        (START, vec![SendEnd, Ack]),
        (END, vec![SendStart, Ack]),
        (START | END, vec![Ack]),
    ] {
        let mut wire = Wire::of(2);
        wire.node(1).attach(entry(), md(1000).with(options));
        let md = wire.node(0).bind(md(8).with(options));
        wire.run(0, &acked_put(md, process(1)));
        assert_eq!(wire.node(0).kinds(), expected);
        assert_eq!(wire.node(1).kinds().len(), expected.len() - 1);
    }
}

#[test]
fn a_failure_after_the_start_shows_in_the_end() {
    let mut wire = Wire::of(2);
    wire.landing = NiFail::Segv;
    wire.node(1).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(8));
    wire.run(0, &acked_put(md, process(1)));
    let events = wire.node(1).events();
    let seen: Vec<_> = events
        .iter()
        .map(|e| (e.kind, e.ni_fail, e.mlength))
        .collect();
    assert_eq!(seen, [(PutStart, NI_OK, 8), (PutEnd, NI_FAIL, 0)]);
    let ack = &wire.node(0).events()[2];
    assert_eq!((ack.kind, ack.ni_fail, ack.mlength), (Ack, NI_FAIL, 0));
}

#[test]
fn a_reply_that_cannot_be_moved_fails_at_its_end() {
    let mut wire = Wire::of(2);
    wire.reply_outcome = NiFail::Segv;
    wire.node(1).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(8));
    wire.run(0, &get(md, process(1)));
    let events = wire.node(0).events();
    let seen: Vec<_> = events
        .iter()
        .map(|e| (e.kind, e.ni_fail, e.mlength))
        .collect();
    assert_eq!(seen, [(ReplyStart, NI_OK, 8), (ReplyEnd, NI_FAIL, 0)]);
}
