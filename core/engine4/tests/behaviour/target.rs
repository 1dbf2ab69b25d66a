//! Where a message lands, and which events it posts at the target.

use crate::rig::*;
use lintel_engine4::{Deferred, EntrySpec};
use lintel_memory::{Buffer, Ghost};
use lintel_types::{
    CountingEvent, Datatype, EventKind, List, MeOptions, NiFail, Operation, PortalIndex, PtOptions,
};
use lintel_wire::{Request, Verb};

fn target() -> (Node, PortalIndex) {
    let mut wire = Wire::of(1, MATCHING);
    let portal = wire.node(0).portal(PtOptions::empty());
    (wire.nodes.remove(0), portal)
}

const PUT: MeOptions = MeOptions::OP_PUT;
const BOTH: MeOptions = MeOptions::OP_PUT.union(MeOptions::OP_GET);

#[test]
fn a_put_event_reports_everything_about_its_message() {
    let (mut node, portal) = target();
    node.append(entry(portal), List::Priority);
    let message = Request {
        length: 2000,
        remote_offset: 900,
        ..request(portal)
    };
    let outcome = node.take(process(1), &message);
    let event = node.events()[1];
    assert_eq!((event.kind, event.list), (EventKind::Put, List::Priority));
    assert_eq!(
        (event.rlength, event.mlength, event.remote_offset),
        (2000, 100, 900)
    );
    assert_eq!(
        (event.start, event.user_ptr, event.hdr_data),
        (BASE + 900, 0xabc, 0x99)
    );
    assert_eq!(
        (event.initiator, event.uid, event.match_bits),
        (process(1), UID, 7)
    );
    assert_eq!(outcome.pieces, [Ghost::new(BASE + 900, 100)]);
}

#[test]
fn a_message_beyond_the_entry_is_cut_to_nothing() {
    let (mut node, portal) = target();
    node.append(entry(portal), List::Priority);
    for remote_offset in [1000, 1001, u64::MAX] {
        let message = Request {
            remote_offset,
            ..request(portal)
        };
        let outcome = node.take(process(1), &message);
        assert_eq!(
            outcome.response.map(|r| (r.fail, r.mlength)),
            Some((NiFail::Ok, 0))
        );
        assert_eq!(
            outcome
                .pieces
                .iter()
                .map(|piece| lintel_memory::Span::length(*piece))
                .sum::<u64>(),
            0
        );
    }
}

#[test]
fn a_vector_is_one_region_across_its_joints() {
    let (mut node, portal) = target();
    let buffer = Buffer::vector(vec![Ghost::new(100, 10), Ghost::new(500, 10)]);
    node.append(
        EntrySpec {
            buffer,
            ..entry(portal)
        },
        List::Priority,
    );
    let outcome = node.take(
        process(1),
        &Request {
            length: 99,
            remote_offset: 6,
            ..request(portal)
        },
    );
    assert_eq!(outcome.pieces, [Ghost::new(106, 4), Ghost::new(500, 10)]);
    assert_eq!(node.events()[1].start, 106);
}

#[test]
fn a_message_without_bytes_reports_where_in_a_vector_they_would_have_gone() {
    let (mut node, portal) = target();
    let buffer = Buffer::vector(vec![Ghost::new(100, 10), Ghost::new(500, 10)]);
    node.append(
        EntrySpec {
            buffer,
            ..entry(portal)
        },
        List::Priority,
    );
    node.take(
        process(1),
        &Request {
            length: 0,
            remote_offset: 13,
            ..request(portal)
        },
    );
    assert_eq!(node.events()[1].start, 503);
}

#[test]
fn memory_from_address_zero_upwards_is_an_entry_like_any_other() {
    let (mut node, portal) = target();
    let buffer = Buffer::Contiguous(Ghost::new(0, u64::MAX));
    node.append(
        EntrySpec {
            buffer,
            ..entry(portal)
        },
        List::Priority,
    );
    node.take(
        process(1),
        &Request {
            remote_offset: 0,
            ..request(portal)
        },
    );
    node.take(
        process(1),
        &Request {
            remote_offset: 0xdead_0000,
            ..request(portal)
        },
    );
    let starts: Vec<u64> = node.events()[1..].iter().map(|event| event.start).collect();
    assert_eq!(starts, [0, 0xdead_0000]);
}

#[test]
fn a_locally_managed_entry_lays_messages_end_to_end() {
    let (mut node, portal) = target();
    let spec = EntrySpec {
        options: PUT | MeOptions::MANAGE_LOCAL,
        ..entry(portal)
    };
    node.append(spec, List::Priority);
    for length in [10, 0, 20] {
        node.take(
            process(1),
            &Request {
                length,
                remote_offset: 77,
                ..request(portal)
            },
        );
    }
    let events = node.events();
    let seen: Vec<_> = events[1..]
        .iter()
        .map(|e| (e.start - BASE, e.remote_offset))
        .collect();
    assert_eq!(seen, [(0, 77), (10, 77), (10, 77)]);
}

#[test]
fn the_acknowledgement_of_a_locally_managed_entry_reports_the_offset_used() {
    let (mut node, portal) = target();
    let spec = EntrySpec {
        options: PUT | MeOptions::MANAGE_LOCAL,
        ..entry(portal)
    };
    node.append(spec, List::Priority);
    node.take(
        process(1),
        &Request {
            length: 30,
            ..request(portal)
        },
    );
    let outcome = node.take(
        process(1),
        &Request {
            remote_offset: 5,
            ..request(portal)
        },
    );
    assert_eq!(outcome.response.map(|response| response.offset), Some(30));
}

#[test]
fn an_entry_with_less_than_min_free_left_unlinks_itself() {
    let (mut node, portal) = target();
    let options = PUT | MeOptions::MANAGE_LOCAL;
    let spec = EntrySpec {
        options,
        min_free: 100,
        buffer: bytes(200),
        ..entry(portal)
    };
    let handle = node.append(spec, List::Priority);
    node.take(
        process(1),
        &Request {
            length: 100,
            ..request(portal)
        },
    );
    assert_eq!(
        node.kinds(),
        [EventKind::Link, EventKind::Put],
        "100 left is not less than 100"
    );
    node.take(
        process(1),
        &Request {
            length: 1,
            ..request(portal)
        },
    );
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::AutoUnlink]);
    assert_eq!(
        node.interface.unlink(handle),
        Err(lintel_types::Error::ArgInvalid)
    );
}

#[test]
fn without_min_free_a_full_entry_stays_linked() {
    let (mut node, portal) = target();
    let options = PUT | MeOptions::MANAGE_LOCAL;
    node.append(
        EntrySpec {
            options,
            buffer: bytes(8),
            ..entry(portal)
        },
        List::Priority,
    );
    node.take(process(1), &request(portal));
    let outcome = node.take(process(1), &request(portal));
    assert_eq!(
        outcome.response.map(|r| (r.fail, r.mlength)),
        Some((NiFail::Ok, 0))
    );
}

#[test]
fn a_use_once_entry_takes_one_message() {
    let (mut node, portal) = target();
    let spec = EntrySpec {
        options: PUT | MeOptions::USE_ONCE,
        ..entry(portal)
    };
    node.append(spec, List::Priority);
    assert_eq!(node.take(process(1), &request(portal)).fail, None);
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::Dropped)
    );
    assert_eq!(
        node.kinds(),
        [EventKind::Link, EventKind::Put, EventKind::AutoUnlink]
    );
}

#[test]
fn a_use_once_entry_is_taken_from_the_moment_a_message_is_accepted() {
    let (mut node, portal) = target();
    let spec = EntrySpec {
        options: PUT | MeOptions::USE_ONCE,
        ..entry(portal)
    };
    let handle = node.append(spec, List::Priority);
    let landed = node.begin(process(1), &request(portal));
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::Dropped)
    );
    assert_eq!(
        node.interface.unlink(handle),
        Err(lintel_types::Error::InUse)
    );
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(
        node.interface.unlink(handle),
        Err(lintel_types::Error::ArgInvalid)
    );
}

#[test]
fn an_entry_goes_with_its_last_message_whichever_lands_last() {
    let (mut node, portal) = target();
    let options = PUT | MeOptions::MANAGE_LOCAL;
    let spec = EntrySpec {
        options,
        min_free: 100,
        buffer: bytes(200),
        ..entry(portal)
    };
    let handle = node.append(spec, List::Priority);
    let earlier = node.begin(
        process(1),
        &Request {
            length: 50,
            ..request(portal)
        },
    );
    let last = node.begin(
        process(1),
        &Request {
            length: 100,
            ..request(portal)
        },
    );
    node.on_landed(last, NiFail::Ok);
    assert_eq!(
        node.interface.unlink(handle),
        Err(lintel_types::Error::InUse)
    );
    node.on_landed(earlier, NiFail::Ok);
    assert_eq!(
        node.interface.unlink(handle),
        Err(lintel_types::Error::ArgInvalid),
        "it is gone"
    );
}

#[test]
fn a_failed_landing_is_reported_with_its_reason_and_no_bytes() {
    let (mut node, portal) = target();
    let options = PUT | MeOptions::EVENT_SUCCESS_DISABLE;
    node.append(
        EntrySpec {
            options,
            ..entry(portal)
        },
        List::Priority,
    );
    let landed = node.begin(process(1), &request(portal));
    assert_eq!(
        landed.response(NiFail::Segv).map(|r| (r.fail, r.mlength)),
        Some((NiFail::Segv, 0))
    );
    node.on_landed(landed, NiFail::Segv);
    let event = node.events()[1];
    assert_eq!(
        (event.kind, event.ni_fail, event.mlength),
        (EventKind::Put, NiFail::Segv, 0)
    );
}

#[test]
fn options_silence_the_events_that_they_name() {
    let once = PUT | MeOptions::USE_ONCE;
    for (options, kinds) in [
        (
            MeOptions::empty(),
            vec![EventKind::Link, EventKind::Put, EventKind::AutoUnlink],
        ),
        (
            MeOptions::EVENT_LINK_DISABLE,
            vec![EventKind::Put, EventKind::AutoUnlink],
        ),
        (
            MeOptions::EVENT_COMM_DISABLE,
            vec![EventKind::Link, EventKind::AutoUnlink],
        ),
        (
            MeOptions::EVENT_SUCCESS_DISABLE,
            vec![EventKind::Link, EventKind::AutoUnlink],
        ),
        (
            MeOptions::EVENT_UNLINK_DISABLE,
            vec![EventKind::Link, EventKind::Put],
        ),
        (
            MeOptions::EVENT_OVER_DISABLE,
            vec![EventKind::Link, EventKind::Put, EventKind::AutoUnlink],
        ),
    ] {
        let (mut node, portal) = target();
        node.append(
            EntrySpec {
                options: once | options,
                ..entry(portal)
            },
            List::Priority,
        );
        node.take(process(1), &request(portal));
        assert_eq!(node.kinds(), kinds, "{options:#x}");
    }
}

#[test]
fn communication_disabled_silences_failures_too() {
    let (mut node, portal) = target();
    let options = PUT | MeOptions::EVENT_COMM_DISABLE;
    node.append(
        EntrySpec {
            options,
            ..entry(portal)
        },
        List::Priority,
    );
    let landed = node.begin(process(1), &request(portal));
    node.on_landed(landed, NiFail::Segv);
    assert_eq!(node.kinds(), [EventKind::Link]);
}

#[test]
fn a_counter_counts_messages_or_bytes_and_failures_as_one() {
    for (options, success) in [(MeOptions::empty(), 2), (MeOptions::EVENT_CT_BYTES, 16)] {
        let (mut node, portal) = target();
        let counter = node.counter();
        let options = PUT | MeOptions::EVENT_CT_COMM | options;
        node.append(
            EntrySpec {
                options,
                counter,
                ..entry(portal)
            },
            List::Priority,
        );
        node.take(process(1), &request(portal));
        node.take(process(1), &request(portal));
        let landed = node.begin(process(1), &request(portal));
        node.on_landed(landed, NiFail::Segv);
        assert_eq!(node.count(counter), (success, 1));
    }
}

#[test]
fn a_counter_is_looked_at_only_where_an_option_asks_for_counts() {
    let (mut node, portal) = target();
    let counter = lintel_types::Handle(0);
    node.append(
        EntrySpec {
            counter,
            ..entry(portal)
        },
        List::Priority,
    );
    let options = PUT | MeOptions::EVENT_CT_COMM;
    let spec = EntrySpec {
        counter,
        options,
        ..entry(portal)
    };
    let refused = node.interface.append(&spec, List::Priority, &mut node.host);
    assert_eq!(refused, Err(lintel_types::Error::ArgInvalid));
}

#[test]
fn every_verb_has_its_event() {
    for (verb, kind) in [
        (Verb::Put, EventKind::Put),
        (Verb::Get, EventKind::Get),
        (Verb::Atomic, EventKind::Atomic),
        (Verb::FetchAtomic, EventKind::FetchAtomic),
        (Verb::Swap, EventKind::FetchAtomic),
    ] {
        let (mut node, portal) = target();
        node.append(
            EntrySpec {
                options: BOTH,
                ..entry(portal)
            },
            List::Priority,
        );
        node.take(
            process(1),
            &Request {
                verb,
                datatype: Datatype::Int64,
                operation: Operation::Swap,
                ..request(portal)
            },
        );
        let event = node.events()[1];
        assert_eq!(
            (event.kind, event.operation, event.datatype),
            (kind, Operation::Swap as u8, Datatype::Int64 as u8)
        );
    }
}

#[test]
fn an_atomic_touches_whole_elements_only() {
    let (mut node, portal) = target();
    node.append(
        EntrySpec {
            buffer: bytes(30),
            ..entry(portal)
        },
        List::Priority,
    );
    let message = Request {
        verb: Verb::Atomic,
        datatype: Datatype::Int64,
        length: 32,
        ..request(portal)
    };
    assert_eq!(
        node.take(process(1), &message).response.map(|r| r.mlength),
        Some(24)
    );
}

#[test]
fn a_conditional_swap_touches_one_element_or_none() {
    let (mut node, portal) = target();
    node.append(
        EntrySpec {
            buffer: bytes(12),
            ..entry(portal)
        },
        List::Priority,
    );
    let message = Request {
        verb: Verb::Swap,
        operation: Operation::CswapEq,
        datatype: Datatype::Int64,
        length: 8,
        ..request(portal)
    };
    assert_eq!(
        node.take(process(1), &message).response.map(|r| r.mlength),
        Some(8)
    );
    let message = Request {
        remote_offset: 8,
        ..message
    };
    assert_eq!(
        node.take(process(1), &message).response.map(|r| r.mlength),
        Some(0)
    );
}

#[test]
fn no_answer_leaves_for_a_message_that_awaits_none() {
    let (mut node, portal) = target();
    let message = Request {
        token: 0,
        ..request(portal)
    };
    assert_eq!(node.take(process(1), &message).response, None);
    node.append(entry(portal), List::Priority);
    assert_eq!(node.take(process(1), &message).response, None);
}

#[test]
fn a_request_for_no_portal_is_dropped_and_counted() {
    let (mut node, portal) = target();
    for portal in [portal.0 + 1, 255, 256, 65535].map(PortalIndex) {
        assert_eq!(
            node.take(process(1), &request(portal)).fail,
            Some(NiFail::Dropped)
        );
    }
    assert_eq!(node.interface.registers().drops, 4);
}

#[test]
fn an_entry_that_is_landed_in_cannot_be_unlinked() {
    let (mut node, portal) = target();
    let handle = node.append(entry(portal), List::Priority);
    let landed = node.begin(process(1), &request(portal));
    assert_eq!(
        node.interface.unlink(handle),
        Err(lintel_types::Error::InUse)
    );
    assert_eq!(
        node.interface.portal_free(portal),
        Err(lintel_types::Error::PtInUse)
    );
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.interface.unlink(handle), Ok(()));
    assert_eq!(
        node.kinds(),
        [EventKind::Link, EventKind::Put],
        "unlinking by hand posts no event"
    );
}

/// Whether a put lands behind one that is landing in an entry with that counter.
fn lands_behind(node: &mut Node, first: &Request, second: &Request) -> bool {
    let before = node.begin(process(1), first);
    let accepted = node
        .interface
        .accept_behind(&before, process(1), UID, second);
    let lands = accepted.is_some();
    if let Some(accepted) = accepted {
        let interface = &mut node.interface;
        let (_, behind) = interface.begin_landing(accepted, process(1), UID, second);
        node.on_landed(before, NiFail::Ok);
        node.on_landed(behind, NiFail::Ok);
    } else {
        node.on_landed(before, NiFail::Ok);
    }
    lands
}

#[test]
fn a_put_lands_behind_one_that_is_landing_unless_that_may_change_where() {
    let (mut node, portal) = target();
    let controlled = node.portal(PtOptions::FLOWCTRL);
    let counter = node.counter();
    let options = PUT | MeOptions::EVENT_CT_COMM;
    let counting = |portal| EntrySpec {
        counter,
        options,
        ..entry(portal)
    };
    node.append(counting(portal), List::Priority);
    node.append(counting(controlled), List::Priority);
    node.events();
    let put = request(portal);
    assert!(lands_behind(&mut node, &put, &put));
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::Put]);
    let other_bits = Request {
        match_bits: 8,
        ..put
    };
    assert!(!lands_behind(&mut node, &put, &other_bits), "no entry");
    let get = Request {
        verb: Verb::Get,
        ..put
    };
    assert!(!lands_behind(&mut node, &put, &get), "it isn't permitted");
    let other_portal = request(controlled);
    assert!(!lands_behind(&mut node, &put, &other_portal), "reserves");
    let by = CountingEvent {
        success: 1,
        failure: 0,
    };
    let increment = Deferred::Increment(counter, by);
    let triggered = node
        .interface
        .trigger(increment, counter, 1000, &mut node.host);
    triggered.unwrap();
    assert!(!lands_behind(&mut node, &put, &put), "it may trigger");
}

#[test]
fn a_put_behind_one_that_uses_an_entry_once_lands_in_the_next_entry() {
    let (mut node, portal) = target();
    for user_ptr in [1, 2] {
        let once = EntrySpec {
            options: PUT | MeOptions::USE_ONCE,
            user_ptr,
            ..entry(portal)
        };
        node.append(once, List::Priority);
    }
    node.events();
    let put = request(portal);
    assert!(lands_behind(&mut node, &put, &put));
    let events = node.events();
    let seen: Vec<_> = events.iter().map(|e| (e.kind, e.user_ptr)).collect();
    let expected = [
        (EventKind::Put, 1),
        (EventKind::AutoUnlink, 1),
        (EventKind::Put, 2),
        (EventKind::AutoUnlink, 2),
    ];
    assert_eq!(seen, expected);
}
