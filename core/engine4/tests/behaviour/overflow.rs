//! Messages that come before anyone asks for them.

use crate::rig::*;
use lintel_engine4::EntrySpec;
use lintel_types::{
    Datatype, Error, EventKind, Limits, List, MeOptions, NiFail, PortalIndex, PtOptions,
};
use lintel_wire::{Request, Verb};

fn target_with(limits: Limits) -> (Node, PortalIndex) {
    let mut wire = Wire::with_limits(1, MATCHING, limits);
    let portal = wire.node(0).portal(PtOptions::empty());
    (wire.nodes.remove(0), portal)
}

fn target() -> (Node, PortalIndex) {
    target_with(Limits::DEFAULT)
}

const QUIET: MeOptions = MeOptions::OP_PUT
    .union(MeOptions::OP_GET)
    .union(MeOptions::EVENT_LINK_DISABLE);

/// A spec whose entry posts events of messages only.
fn quiet(portal: PortalIndex) -> EntrySpec<lintel_memory::Ghost> {
    EntrySpec {
        options: QUIET,
        ..entry(portal)
    }
}

#[test]
fn an_unexpected_message_is_handed_to_the_next_entry_that_matches() {
    let (mut node, portal) = target();
    node.append(quiet(portal), List::Overflow);
    node.take(process(1), &request(portal));
    node.append(
        EntrySpec {
            user_ptr: 2,
            match_bits: 8,
            ..quiet(portal)
        },
        List::Priority,
    );
    assert_eq!(node.kinds(), [EventKind::Put]);
    let once = QUIET | MeOptions::USE_ONCE;
    node.append(
        EntrySpec {
            user_ptr: 3,
            options: once,
            ..quiet(portal)
        },
        List::Priority,
    );
    let events = node.events();
    assert_eq!(
        (events[0].kind, events[0].user_ptr),
        (EventKind::PutOverflow, 3)
    );
    assert_eq!((events[0].start, events[0].list), (BASE, List::Overflow));
    assert_eq!(
        events[1].kind,
        EventKind::AutoUnlink,
        "it was used and never linked"
    );
}

#[test]
fn unexpected_messages_are_handed_out_in_order_of_arrival() {
    let (mut node, portal) = target();
    let spec = EntrySpec {
        options: QUIET | MeOptions::MANAGE_LOCAL,
        ..quiet(portal)
    };
    node.append(
        EntrySpec {
            ignore_bits: u64::MAX,
            ..spec
        },
        List::Overflow,
    );
    for (hdr_data, match_bits) in [(1, 7), (2, 6), (3, 7), (4, 5)] {
        node.take(
            process(1),
            &Request {
                hdr_data,
                match_bits,
                ..request(portal)
            },
        );
    }
    node.events();
    node.append(quiet(portal), List::Priority);
    node.append(
        EntrySpec {
            ignore_bits: 3,
            ..quiet(portal)
        },
        List::Priority,
    );
    let seen: Vec<u64> = node.events().iter().map(|event| event.hdr_data).collect();
    assert_eq!(seen, [1, 3, 2, 4]);
}

#[test]
fn an_entry_that_stays_takes_every_unexpected_message_and_is_linked() {
    let (mut node, portal) = target();
    node.append(quiet(portal), List::Overflow);
    node.take(process(1), &request(portal));
    node.take(process(1), &request(portal));
    node.events();
    node.append(entry(portal), List::Priority);
    let wanted = [
        EventKind::PutOverflow,
        EventKind::PutOverflow,
        EventKind::Link,
    ];
    assert_eq!(node.kinds(), wanted);
}

#[test]
fn an_overflow_entry_takes_no_unexpected_messages() {
    let (mut node, portal) = target();
    node.append(quiet(portal), List::Overflow);
    node.take(process(1), &request(portal));
    node.events();
    node.append(quiet(portal), List::Overflow);
    assert_eq!(node.kinds(), []);
}

#[test]
fn a_message_claimed_while_it_lands_is_reported_when_it_has_landed() {
    let (mut node, portal) = target();
    node.append(quiet(portal), List::Overflow);
    let landed = node.begin(process(1), &request(portal));
    let once = QUIET | MeOptions::USE_ONCE | MeOptions::EVENT_UNLINK_DISABLE;
    node.append(
        EntrySpec {
            user_ptr: 3,
            options: once,
            ..quiet(portal)
        },
        List::Priority,
    );
    assert_eq!(node.kinds(), []);
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::PutOverflow]);
}

#[test]
fn a_message_that_failed_to_land_fails_for_its_claimant() {
    let (mut node, portal) = target();
    let counter = node.counter();
    node.append(quiet(portal), List::Overflow);
    let landed = node.begin(process(1), &request(portal));
    node.on_landed(landed, NiFail::Segv);
    node.events();
    let options = QUIET | MeOptions::EVENT_CT_OVERFLOW;
    node.append(
        EntrySpec {
            counter,
            options,
            ..quiet(portal)
        },
        List::Priority,
    );
    assert_eq!(node.events()[0].ni_fail, NiFail::Segv);
    assert_eq!(node.count(counter), (0, 1));
}

#[test]
fn headers_beyond_the_limit_are_dropped_until_one_is_claimed() {
    let (mut node, portal) = target_with(Limits {
        max_unexpected_headers: 2,
        ..Limits::DEFAULT
    });
    node.append(quiet(portal), List::Overflow);
    assert_eq!(node.take(process(1), &request(portal)).fail, None);
    assert_eq!(node.take(process(1), &request(portal)).fail, None);
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::Dropped)
    );
    let once = QUIET | MeOptions::USE_ONCE;
    node.append(
        EntrySpec {
            options: once,
            ..quiet(portal)
        },
        List::Priority,
    );
    assert_eq!(node.take(process(1), &request(portal)).fail, None);
}

#[test]
fn an_entry_without_headers_needs_none_and_hands_nothing_out() {
    let (mut node, portal) = target_with(Limits {
        max_unexpected_headers: 1,
        ..Limits::DEFAULT
    });
    let options = QUIET | MeOptions::UNEXPECTED_HDR_DISABLE;
    node.append(
        EntrySpec {
            options,
            ..quiet(portal)
        },
        List::Overflow,
    );
    for _ in 0..3 {
        assert_eq!(node.take(process(1), &request(portal)).fail, None);
    }
    assert_eq!(node.kinds(), [EventKind::Put; 3]);
    node.append(quiet(portal), List::Priority);
    assert_eq!(node.kinds(), []);
}

#[test]
fn a_full_overflow_entry_unlinks_and_is_free_once_its_messages_are_claimed() {
    let (mut node, portal) = target();
    let options = QUIET | MeOptions::MANAGE_LOCAL;
    let spec = EntrySpec {
        options,
        min_free: 8,
        buffer: bytes(20),
        ..quiet(portal)
    };
    let handle = node.append(spec, List::Overflow);
    node.take(process(1), &request(portal));
    node.take(process(1), &request(portal));
    assert_eq!(
        node.kinds(),
        [EventKind::Put, EventKind::Put, EventKind::AutoUnlink]
    );
    assert_eq!(node.interface.unlink(handle), Err(Error::InUse));
    node.append(quiet(portal), List::Priority);
    let wanted = [
        EventKind::PutOverflow,
        EventKind::PutOverflow,
        EventKind::AutoFree,
    ];
    assert_eq!(node.kinds(), wanted);
    assert_eq!(node.interface.unlink(handle), Err(Error::ArgInvalid));
}

#[test]
fn without_headers_a_full_overflow_entry_is_free_with_its_last_message() {
    let (mut node, portal) = target();
    let options = QUIET | MeOptions::MANAGE_LOCAL | MeOptions::UNEXPECTED_HDR_DISABLE;
    let spec = EntrySpec {
        options,
        min_free: 8,
        buffer: bytes(20),
        ..quiet(portal)
    };
    node.append(spec, List::Overflow);
    let first = node.begin(process(1), &request(portal));
    let second = node.begin(process(1), &request(portal));
    node.on_landed(second, NiFail::Ok);
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::AutoUnlink]);
    node.on_landed(first, NiFail::Ok);
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::AutoFree]);
}

#[test]
fn an_overflow_entry_with_unclaimed_messages_cannot_be_unlinked() {
    let (mut node, portal) = target();
    let handle = node.append(quiet(portal), List::Overflow);
    node.take(process(1), &request(portal));
    assert_eq!(node.interface.unlink(handle), Err(Error::InUse));
    let options = QUIET | MeOptions::USE_ONCE;
    node.append(
        EntrySpec {
            options,
            ..quiet(portal)
        },
        List::Priority,
    );
    assert_eq!(node.interface.unlink(handle), Ok(()));
}

#[test]
fn overflow_events_and_counts_are_chosen_apart() {
    for (options, events, count) in [
        (MeOptions::EVENT_OVER_DISABLE, 0, 0),
        (MeOptions::EVENT_CT_OVERFLOW, 2, 2),
        (
            MeOptions::EVENT_CT_OVERFLOW | MeOptions::EVENT_CT_BYTES,
            2,
            16,
        ),
        (
            MeOptions::EVENT_CT_OVERFLOW | MeOptions::EVENT_OVER_DISABLE,
            0,
            2,
        ),
        (
            MeOptions::EVENT_CT_COMM | MeOptions::EVENT_COMM_DISABLE,
            2,
            0,
        ),
    ] {
        let (mut node, portal) = target();
        let counter = node.counter();
        node.append(quiet(portal), List::Overflow);
        node.take(process(1), &request(portal));
        node.take(process(1), &request(portal));
        node.events();
        let options = QUIET | options;
        node.append(
            EntrySpec {
                options,
                counter,
                ..quiet(portal)
            },
            List::Priority,
        );
        assert_eq!(node.events().len(), events, "{options:#x}");
        assert_eq!(node.count(counter), (count, 0), "{options:#x}");
    }
}

#[test]
fn every_verb_has_its_overflow_event() {
    for (verb, kind) in [
        (Verb::Put, EventKind::PutOverflow),
        (Verb::Get, EventKind::GetOverflow),
        (Verb::Atomic, EventKind::AtomicOverflow),
        (Verb::FetchAtomic, EventKind::FetchAtomicOverflow),
        (Verb::Swap, EventKind::FetchAtomicOverflow),
    ] {
        let (mut node, portal) = target();
        node.append(quiet(portal), List::Overflow);
        node.take(
            process(1),
            &Request {
                verb,
                datatype: Datatype::Int64,
                ..request(portal)
            },
        );
        node.events();
        node.append(quiet(portal), List::Priority);
        assert_eq!(node.kinds(), [kind]);
    }
}

#[test]
fn unexpected_lengths_move_a_local_offset_where_the_entry_asks_for_it() {
    let (mut node, portal) = target();
    node.append(
        EntrySpec {
            buffer: bytes(4),
            ..quiet(portal)
        },
        List::Overflow,
    );
    node.take(
        process(1),
        &Request {
            length: 10,
            ..request(portal)
        },
    );
    let local = QUIET | MeOptions::MANAGE_LOCAL;
    for (options, start) in [(local | MeOptions::LOCAL_INC_UH_RLENGTH, 10), (local, 0)] {
        let handle = node.append(
            EntrySpec {
                options,
                ..quiet(portal)
            },
            List::Priority,
        );
        node.events();
        node.take(process(1), &request(portal));
        assert_eq!(node.events()[0].start, BASE + start);
        node.interface.unlink(handle).unwrap();
        node.take(
            process(1),
            &Request {
                length: 10,
                ..request(portal)
            },
        );
    }
}

#[test]
fn unexpected_lengths_may_use_an_entry_up() {
    let (mut node, portal) = target();
    node.append(quiet(portal), List::Overflow);
    for _ in 0..3 {
        node.take(
            process(1),
            &Request {
                length: 400,
                ..request(portal)
            },
        );
    }
    node.events();
    let options = QUIET | MeOptions::MANAGE_LOCAL | MeOptions::LOCAL_INC_UH_RLENGTH;
    let spec = EntrySpec {
        options,
        min_free: 300,
        ..quiet(portal)
    };
    node.append(spec, List::Priority);
    let wanted = [
        EventKind::PutOverflow,
        EventKind::PutOverflow,
        EventKind::AutoUnlink,
    ];
    assert_eq!(node.kinds(), wanted, "the third waits for someone else");
    node.append(quiet(portal), List::Priority);
    assert_eq!(node.kinds(), [EventKind::PutOverflow]);
}

#[test]
fn unexpected_messages_leave_an_entry_alone_that_counts_only_what_lands() {
    let (mut node, portal) = target();
    node.append(quiet(portal), List::Overflow);
    node.take(process(1), &request(portal));
    node.events();
    let options = MeOptions::OP_PUT | MeOptions::MANAGE_LOCAL;
    let spec = EntrySpec {
        options,
        min_free: 2000,
        ..quiet(portal)
    };
    node.append(spec, List::Priority);
    assert_eq!(node.kinds(), [EventKind::PutOverflow, EventKind::Link]);
}

#[test]
fn an_entry_without_truncation_passes_by_longer_unexpected_messages() {
    let (mut node, portal) = target();
    node.append(quiet(portal), List::Overflow);
    node.take(
        process(1),
        &Request {
            length: 9,
            ..request(portal)
        },
    );
    node.take(
        process(1),
        &Request {
            length: 8,
            ..request(portal)
        },
    );
    node.events();
    let options = QUIET | MeOptions::NO_TRUNCATE;
    node.append(
        EntrySpec {
            options,
            buffer: bytes(8),
            ..quiet(portal)
        },
        List::Priority,
    );
    assert_eq!(
        node.events()
            .iter()
            .map(|event| event.rlength)
            .collect::<Vec<_>>(),
        [8]
    );
}

#[test]
fn freeing_a_portal_forgets_its_unexpected_messages() {
    let (mut node, portal) = target_with(Limits {
        max_unexpected_headers: 1,
        ..Limits::DEFAULT
    });
    let options = QUIET | MeOptions::USE_ONCE;
    node.append(
        EntrySpec {
            options,
            ..quiet(portal)
        },
        List::Overflow,
    );
    node.take(process(1), &request(portal));
    assert_eq!(node.interface.portal_free(portal), Ok(()));
    assert_eq!(node.portal(PtOptions::empty()), portal);
    node.append(quiet(portal), List::Overflow);
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        None,
        "the header is free again"
    );
}

#[test]
fn a_counter_that_has_ended_counts_no_message_claimed_while_it_lands() {
    let (mut node, portal) = target();
    node.append(quiet(portal), List::Overflow);
    let landed = node.begin(process(1), &request(portal));
    let counter = node.counter();
    node.append(
        EntrySpec {
            options: QUIET | MeOptions::USE_ONCE | MeOptions::EVENT_CT_OVERFLOW,
            counter,
            ..quiet(portal)
        },
        List::Priority,
    );
    node.interface.counter_free(counter).unwrap();
    let next = node.counter();
    assert_eq!(next.index(), counter.index(), "it takes the place");
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.count(next), (0, 0));
}

/// Its memory is the program's again once it is unlinked.
#[test]
fn an_entry_of_the_priority_list_reports_its_unlinking_behind_all_that_land_in_it() {
    let (mut node, portal) = target();
    node.append(
        EntrySpec {
            options: QUIET | MeOptions::MANAGE_LOCAL,
            min_free: 990,
            ..quiet(portal)
        },
        List::Priority,
    );
    let of = |length| Request {
        length,
        ..request(portal)
    };
    let first = node.begin(process(1), &of(8));
    let last = node.begin(process(2), &of(8));
    node.on_landed(last, NiFail::Ok);
    assert_eq!(node.kinds(), [EventKind::Put]);
    node.on_landed(first, NiFail::Ok);
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::AutoUnlink]);
}
