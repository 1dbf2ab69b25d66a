//! Searching the unexpected messages.

use crate::rig::*;
use lintel_engine4::{EntrySpec, SearchOp};
use lintel_memory::Ghost;
use lintel_types::{EventKind, List, MeOptions, NiFail, PortalIndex, PtOptions};
use lintel_wire::Request;

const QUIET: MeOptions = MeOptions::OP_PUT
    .union(MeOptions::EVENT_LINK_DISABLE)
    .union(MeOptions::EVENT_UNLINK_DISABLE);

/// A target that holds `count` unexpected messages of 8 bytes, with data 1, 2, …
fn target(count: u64) -> (Node, PortalIndex) {
    let mut wire = Wire::of(1, MATCHING);
    let mut node = wire.nodes.remove(0);
    let portal = node.portal(PtOptions::empty());
    node.append(
        EntrySpec {
            options: QUIET,
            ..entry(portal)
        },
        List::Overflow,
    );
    for hdr_data in 1..=count {
        node.take(
            process(1),
            &Request {
                hdr_data,
                ..request(portal)
            },
        );
    }
    node.events();
    (node, portal)
}

fn search(node: &mut Node, spec: EntrySpec<Ghost>, op: SearchOp) {
    node.interface.search(spec, op, &mut node.host).unwrap();
}

fn spec(portal: PortalIndex, options: MeOptions) -> EntrySpec<Ghost> {
    EntrySpec {
        options: QUIET | options,
        ..entry(portal)
    }
}

#[test]
fn a_search_shows_every_message_in_order_and_leaves_it() {
    let (mut node, portal) = target(3);
    for _ in 0..2 {
        search(&mut node, spec(portal, MeOptions::empty()), SearchOp::Only);
        let seen: Vec<_> = node
            .events()
            .iter()
            .map(|e| (e.kind, e.hdr_data, e.ni_fail))
            .collect();
        let wanted = [1, 2, 3].map(|data| (EventKind::Search, data, NiFail::Ok));
        assert_eq!(seen, wanted);
    }
}

#[test]
fn a_search_once_shows_the_first_message() {
    let (mut node, portal) = target(3);
    search(&mut node, spec(portal, MeOptions::USE_ONCE), SearchOp::Only);
    assert_eq!(
        node.events().iter().map(|e| e.hdr_data).collect::<Vec<_>>(),
        [1]
    );
}

#[test]
fn a_search_in_vain_says_so() {
    for op in [SearchOp::Only, SearchOp::Delete] {
        let (mut node, portal) = target(1);
        search(
            &mut node,
            EntrySpec {
                match_bits: 8,
                ..spec(portal, MeOptions::empty())
            },
            op,
        );
        let event = node.events()[0];
        assert_eq!(
            (event.kind, event.ni_fail),
            (EventKind::Search, NiFail::NoMatch)
        );
        assert_eq!((event.user_ptr, event.pt_index), (0xabc, portal.into()));
    }
}

#[test]
fn a_search_that_deletes_hands_the_messages_out() {
    let (mut node, portal) = target(3);
    search(
        &mut node,
        spec(portal, MeOptions::USE_ONCE),
        SearchOp::Delete,
    );
    search(
        &mut node,
        spec(portal, MeOptions::empty()),
        SearchOp::Delete,
    );
    search(
        &mut node,
        spec(portal, MeOptions::empty()),
        SearchOp::Delete,
    );
    let seen: Vec<_> = node.events().iter().map(|e| (e.kind, e.hdr_data)).collect();
    let over = EventKind::PutOverflow;
    assert_eq!(
        seen,
        [(over, 1), (over, 2), (over, 3), (EventKind::Search, 0)]
    );
}

#[test]
fn searches_count_what_is_found_and_the_end_of_the_list_as_a_failure() {
    let count = MeOptions::EVENT_CT_OVERFLOW;
    let (bytes, once) = (MeOptions::EVENT_CT_BYTES, MeOptions::USE_ONCE);
    for op in [SearchOp::Only, SearchOp::Delete] {
        for (messages, options, counted) in [
            (3, count, (3, 1)),
            (3, count | bytes, (24, 1)),
            (3, count | once, (1, 0)),
            (0, count, (0, 1)),
            (0, count | once, (0, 1)),
            (3, MeOptions::EVENT_CT_COMM, (0, 0)),
        ] {
            let (mut node, portal) = target(messages);
            let counter = node.counter();
            search(
                &mut node,
                EntrySpec {
                    counter,
                    ..spec(portal, options)
                },
                op,
            );
            assert_eq!(
                node.count(counter),
                counted,
                "{op:?} {messages} {options:#x}"
            );
        }
    }
}

#[test]
fn a_search_with_communication_disabled_is_silent() {
    let (mut node, portal) = target(1);
    search(
        &mut node,
        spec(portal, MeOptions::EVENT_COMM_DISABLE),
        SearchOp::Only,
    );
    let nothing = EntrySpec {
        match_bits: 8,
        ..spec(portal, MeOptions::EVENT_COMM_DISABLE)
    };
    search(&mut node, nothing, SearchOp::Only);
    assert_eq!(node.kinds(), []);
}

#[test]
fn a_message_deleted_while_it_lands_is_reported_when_it_has_landed() {
    let (mut node, portal) = target(0);
    let landed = node.begin(process(1), &request(portal));
    search(
        &mut node,
        spec(portal, MeOptions::empty()),
        SearchOp::Delete,
    );
    assert_eq!(node.kinds(), []);
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::PutOverflow]);
}

#[test]
fn a_search_never_links() {
    let (mut node, portal) = target(0);
    search(
        &mut node,
        spec(portal, MeOptions::empty()),
        SearchOp::Delete,
    );
    node.events();
    node.take(process(1), &request(portal));
    assert_eq!(node.events()[0].list, List::Overflow);
}

#[test]
fn a_search_of_many_messages_looks_at_each_once() {
    let (mut node, portal) = target(10_000);
    node.interface.take_work();
    search(
        &mut node,
        EntrySpec {
            ignore_bits: 1,
            ..spec(portal, MeOptions::empty())
        },
        SearchOp::Only,
    );
    assert_eq!(node.events().len(), 10_000);
    assert_eq!(node.interface.take_work().walked, 10_000);
}
