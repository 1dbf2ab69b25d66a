//! Puts that land like earlier ones, and what ends that.

use crate::rig::*;
use lintel_engine4::{EntrySpec, PreparedLanding};
use lintel_memory::Ghost;
use lintel_types::{AckRequest, Handle, List, MeOptions, PortalIndex, PtOptions};
use lintel_wire::Request;

/// A target with an entry, and what was found for the first put there.
struct Target {
    node: Node,
    portal: PortalIndex,
    entry: Handle,
    counter: Handle,
    first: PreparedLanding<Ghost>,
}

impl Target {
    fn new(options: MeOptions) -> Target {
        let (mut node, portal) = node();
        let counter = node.counter();
        let entry = node.append(
            EntrySpec {
                options,
                counter,
                ..entry(portal)
            },
            List::Priority,
        );
        let first = prepare(&node, &put_to(portal)).expect("nothing about the entry varies");
        node.events();
        Target {
            node,
            portal,
            entry,
            counter,
            first,
        }
    }

    /// Where a put lands, if it does as the first one.
    fn land(&mut self, put: &Request) -> Option<Ghost> {
        let mut place = None;
        let interface = &mut self.node.interface;
        interface.repeat_landing(&self.first, put, |span| place = Some(span))?;
        place
    }
}

fn node() -> (Node, PortalIndex) {
    let mut wire = Wire::of(1, MATCHING);
    let portal = wire.node(0).portal(PtOptions::empty());
    (wire.nodes.remove(0), portal)
}

/// A put of 8 bytes that wants no acknowledgement.
fn put_to(portal: PortalIndex) -> Request {
    Request {
        ack: AckRequest::None,
        token: 0,
        ..request(portal)
    }
}

fn prepare(node: &Node, put: &Request) -> Option<PreparedLanding<Ghost>> {
    node.interface.prepare_landing(process(1), UID, put)
}

const PUT: MeOptions = MeOptions::OP_PUT;

#[test]
fn its_event_says_what_that_of_any_put_says() {
    let mut target = Target::new(PUT);
    let put = Request {
        remote_offset: 100,
        hdr_data: 5,
        ..put_to(target.portal)
    };
    let repeated = target
        .node
        .interface
        .repeat_landing(&target.first, &put, |_| ());
    target.node.take(process(1), &put);
    assert_eq!(repeated.as_slice(), target.node.events());
}

#[test]
fn an_entry_in_front_of_others_takes_them_until_it_is_unlinked() {
    let mut target = Target::new(PUT);
    let put = put_to(target.portal);
    let behind = EntrySpec {
        buffer: bytes(500),
        ..entry(target.portal)
    };
    target.node.append(behind, List::Priority);
    assert_eq!(target.land(&put), Some(Ghost::new(BASE, 8)));
    target.node.interface.unlink(target.entry).unwrap();
    assert_eq!(target.land(&put), None, "the other entry takes it now");
}

/// A short put may be for an entry that a longer one has passed.
#[test]
fn nothing_is_prepared_behind_an_entry_that_takes_some_lengths_alone() {
    let (mut node, portal) = node();
    let in_front = EntrySpec {
        options: PUT | MeOptions::NO_TRUNCATE,
        buffer: bytes(20),
        ..entry(portal)
    };
    node.append(in_front, List::Priority);
    node.append(entry(portal), List::Priority);
    let long = Request {
        length: 60,
        ..put_to(portal)
    };
    assert!(prepare(&node, &long).is_none());
}

#[test]
fn none_lands_once_the_portal_table_entry_is_disabled_or_another_is_in_its_place() {
    let mut target = Target::new(PUT);
    let (put, portal) = (put_to(target.portal), target.portal);
    assert!(target.land(&put).is_some());
    target.node.interface.portal_disable(portal).unwrap();
    assert_eq!(target.land(&put), None, "disabled");
    target.node.interface.portal_enable(portal).unwrap();
    target.first = prepare(&target.node, &put).expect("it is as before");
    assert!(target.land(&put).is_some());
    target.node.interface.unlink(target.entry).unwrap();
    target.node.interface.portal_free(portal).unwrap();
    assert_eq!(target.land(&put), None, "freed");
    assert_eq!(target.node.portal(PtOptions::empty()), portal);
    target.node.append(entry(portal), List::Priority);
    assert_eq!(target.land(&put), None, "another entry in its place");
}

#[test]
fn none_lands_beyond_the_end_of_the_entry() {
    let mut target = Target::new(PUT);
    for (remote_offset, length) in [(993, 8), (0, 1001), (u64::MAX, 8)] {
        let put = Request {
            remote_offset,
            length,
            ..put_to(target.portal)
        };
        assert_eq!(target.land(&put), None, "{length} bytes at {remote_offset}");
    }
    let last = Request {
        remote_offset: 992,
        ..put_to(target.portal)
    };
    assert_eq!(target.land(&last), Some(Ghost::new(BASE + 992, 8)));
}

#[test]
fn nothing_is_prepared_where_each_put_has_to_be_looked_at() {
    for options in [
        PUT | MeOptions::USE_ONCE,
        PUT | MeOptions::MANAGE_LOCAL,
        PUT | MeOptions::NO_TRUNCATE,
        MeOptions::OP_GET,
    ] {
        let (mut node, portal) = node();
        let spec = EntrySpec {
            options,
            ..entry(portal)
        };
        node.append(spec, List::Priority);
        assert!(prepare(&node, &put_to(portal)).is_none(), "{options:?}");
    }
    let target = Target::new(PUT);
    let acknowledged = request(target.portal);
    assert!(prepare(&target.node, &acknowledged).is_none());
    let mut overflow = node();
    overflow.0.append(entry(overflow.1), List::Overflow);
    assert!(prepare(&overflow.0, &put_to(overflow.1)).is_none());
}

#[test]
fn what_reports_it_follows_the_options_of_its_entry() {
    let events = Target::new(PUT);
    assert!(events.first.queue().is_some() && !events.first.counts().is_any());
    let counted = Target::new(PUT | MeOptions::EVENT_CT_COMM | MeOptions::EVENT_SUCCESS_DISABLE);
    assert!(counted.first.queue().is_none());
    assert_eq!(counted.first.counts().first_by(8), 1);
    let bytes = MeOptions::EVENT_CT_COMM | MeOptions::EVENT_CT_BYTES;
    let counted = Target::new(PUT | bytes | MeOptions::EVENT_COMM_DISABLE);
    assert_eq!(counted.first.counts().first_by(8), 8);
}

#[test]
fn none_lands_once_its_queue_or_counter_has_ended_and_another_takes_the_slot() {
    for counts in [false, true] {
        let mut target = Target::new(PUT | MeOptions::EVENT_CT_COMM);
        let put = put_to(target.portal);
        assert!(target.land(&put).is_some());
        let (queue, counter) = (target.node.queue, target.counter);
        match counts {
            true => target.node.interface.counter_free(counter).unwrap(),
            false => target.node.interface.queue_free(queue).unwrap(),
        }
        assert_eq!(target.land(&put), None);
    }
}
