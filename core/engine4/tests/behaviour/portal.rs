//! The portal table and flow control.

use crate::rig::*;
use lintel_engine4::EntrySpec;
use lintel_types::{
    CountingEvent, Error, EventKind, Handle, Limits, List, MeOptions, NiFail, PT_ANY, PortalIndex,
    PtOptions, QueueIndex,
};
use lintel_wire::Request;

fn node() -> Node {
    Wire::of(1, MATCHING).nodes.remove(0)
}

const QUIET: MeOptions = MeOptions::OP_PUT
    .union(MeOptions::EVENT_LINK_DISABLE)
    .union(MeOptions::EVENT_UNLINK_DISABLE);

#[test]
fn portals_are_given_out_from_the_first_free_one() {
    let mut node = node();
    let none = Handle::EQ_NONE;
    assert_eq!(
        node.interface.portal_alloc(PtOptions::empty(), none, 1),
        Ok(PortalIndex(1))
    );
    assert_eq!(
        node.interface
            .portal_alloc(PtOptions::empty(), none, PT_ANY),
        Ok(PortalIndex(0))
    );
    assert_eq!(
        node.interface
            .portal_alloc(PtOptions::empty(), none, PT_ANY),
        Ok(PortalIndex(2))
    );
    assert_eq!(node.interface.portal_free(PortalIndex(0)), Ok(()));
    assert_eq!(
        node.interface
            .portal_alloc(PtOptions::empty(), none, PT_ANY),
        Ok(PortalIndex(0))
    );
}

#[test]
fn a_portal_that_cannot_be_meant_is_refused_by_reason() {
    let limits = Limits {
        max_pt_index: 1,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let (queue, none) = (node.queue, Handle::EQ_NONE);
    let mut alloc = |options, queue, index| node.interface.portal_alloc(options, queue, index);
    assert_eq!(alloc(PtOptions::empty(), none, 2), Err(Error::ArgInvalid));
    assert_eq!(
        alloc(PtOptions::from(1 << 5), none, 0),
        Err(Error::ArgInvalid)
    );
    assert_eq!(
        alloc(PtOptions::empty(), Handle::INVALID, 0),
        Err(Error::ArgInvalid)
    );
    assert_eq!(alloc(PtOptions::FLOWCTRL, none, 0), Err(Error::PtEqNeeded));
    assert_eq!(alloc(PtOptions::FLOWCTRL, queue, 0), Ok(PortalIndex(0)));
    assert_eq!(alloc(PtOptions::empty(), none, 0), Err(Error::PtInUse));
    assert_eq!(alloc(PtOptions::empty(), none, 1), Ok(PortalIndex(1)));
    assert_eq!(alloc(PtOptions::empty(), none, PT_ANY), Err(Error::PtFull));
}

#[test]
fn a_portal_with_entries_is_in_use() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    for list in [List::Priority, List::Overflow] {
        let handle = node.append(entry(portal), list);
        assert_eq!(node.interface.portal_free(portal), Err(Error::PtInUse));
        node.interface.unlink(handle).unwrap();
    }
    assert_eq!(node.interface.portal_free(portal), Ok(()));
    assert_eq!(node.interface.portal_free(portal), Err(Error::ArgInvalid));
}

#[test]
fn a_portal_that_is_not_allocated_can_be_neither_enabled_nor_disabled() {
    let mut node = node();
    for portal in [0, 255, 256, u16::MAX].map(PortalIndex) {
        assert_eq!(node.interface.portal_enable(portal), Err(Error::ArgInvalid));
        assert_eq!(
            node.interface.portal_disable(portal),
            Err(Error::ArgInvalid)
        );
        assert_eq!(node.interface.portal_free(portal), Err(Error::ArgInvalid));
        let refused = node
            .interface
            .append(&entry(portal), List::Priority, &mut node.host);
        assert_eq!(refused, Err(Error::ArgInvalid));
    }
}

#[test]
fn a_disabled_portal_refuses_until_it_is_enabled() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    node.append(
        EntrySpec {
            options: QUIET,
            ..entry(portal)
        },
        List::Priority,
    );
    assert_eq!(node.interface.portal_disable(portal), Ok(true));
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::PtDisabled)
    );
    assert_eq!(node.interface.registers().drops, 1);
    node.interface.portal_enable(portal).unwrap();
    assert_eq!(node.take(process(1), &request(portal)).fail, None);
    assert_eq!(
        node.kinds(),
        [EventKind::Put],
        "disabling by hand posts no event"
    );
}

#[test]
fn a_portal_may_be_born_disabled() {
    let mut node = node();
    let portal = node.portal(PtOptions::ALLOC_DISABLED);
    node.append(entry(portal), List::Priority);
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::PtDisabled)
    );
    node.interface.portal_enable(portal).unwrap();
    assert_eq!(node.take(process(1), &request(portal)).fail, None);
}

#[test]
fn disabling_is_complete_once_nothing_lands_any_more() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    node.append(entry(portal), List::Priority);
    let landed = node.begin(process(1), &request(portal));
    assert_eq!(node.interface.portal_disable(portal), Ok(false));
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.interface.portal_disable(portal), Ok(true));
}

#[test]
fn without_flow_control_a_message_for_nobody_disables_nothing() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::Dropped)
    );
    node.append(entry(portal), List::Priority);
    assert_eq!(node.take(process(1), &request(portal)).fail, None);
}

#[test]
fn with_flow_control_a_message_for_nobody_disables_the_portal_and_is_reported_once() {
    let mut node = node();
    let portal = node.portal(PtOptions::FLOWCTRL);
    for _ in 0..3 {
        assert_eq!(
            node.take(process(1), &request(portal)).fail,
            Some(NiFail::PtDisabled)
        );
    }
    let events = node.events();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].kind, events[0].pt_index),
        (EventKind::PtDisabled, portal.into())
    );
    assert_eq!(events[0].ni_fail, NiFail::PtDisabled);
    node.append(
        EntrySpec {
            options: QUIET,
            ..entry(portal)
        },
        List::Priority,
    );
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::PtDisabled)
    );
    node.interface.portal_enable(portal).unwrap();
    assert_eq!(node.take(process(1), &request(portal)).fail, None);
    node.take(
        process(1),
        &Request {
            match_bits: 8,
            ..request(portal)
        },
    );
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::PtDisabled]);
}

#[test]
fn flow_control_sets_in_where_headers_run_out() {
    let limits = Limits {
        max_unexpected_headers: 1,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let portal = node.portal(PtOptions::FLOWCTRL);
    node.append(
        EntrySpec {
            options: QUIET,
            ..entry(portal)
        },
        List::Overflow,
    );
    node.take(process(1), &request(portal));
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::PtDisabled)
    );
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::PtDisabled]);
}

#[test]
fn flow_control_sets_in_while_the_queue_still_can_tell_of_it() {
    let mut node = node();
    let portal = node.portal(PtOptions::FLOWCTRL);
    node.host.capacity.insert(QueueIndex(node.queue.index()), 4);
    node.append(
        EntrySpec {
            options: QUIET,
            ..entry(portal)
        },
        List::Priority,
    );
    let fails: Vec<_> = (0..5)
        .map(|_| node.take(process(1), &request(portal)).fail)
        .collect();
    let disabled = Some(NiFail::PtDisabled);
    assert_eq!(fails, [None, None, None, disabled, disabled]);
    let put = EventKind::Put;
    assert_eq!(
        node.kinds(),
        [put, put, put, EventKind::PtDisabled],
        "four events fit"
    );
}

#[test]
fn each_portal_with_flow_control_has_an_event_reserved() {
    let mut node = node();
    let portals = [0; 3].map(|_| node.portal(PtOptions::FLOWCTRL));
    node.host.capacity.insert(QueueIndex(node.queue.index()), 4);
    node.append(
        EntrySpec {
            options: QUIET,
            ..entry(portals[0])
        },
        List::Priority,
    );
    assert_eq!(node.take(process(1), &request(portals[0])).fail, None);
    for portal in portals {
        let outcome = node.take(process(1), &request(portal));
        assert_eq!(outcome.fail, Some(NiFail::PtDisabled));
    }
    assert_eq!(node.events().len(), 4, "four events fit");
}

#[test]
fn messages_that_land_count_as_events_to_come() {
    let mut node = node();
    let portal = node.portal(PtOptions::FLOWCTRL);
    node.host.capacity.insert(QueueIndex(node.queue.index()), 3);
    node.append(
        EntrySpec {
            options: QUIET,
            ..entry(portal)
        },
        List::Priority,
    );
    let first = node.begin(process(1), &request(portal));
    let second = node.begin(process(1), &request(portal));
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::PtDisabled)
    );
    node.on_landed(first, NiFail::Ok);
    node.on_landed(second, NiFail::Ok);
    assert_eq!(
        node.kinds(),
        [EventKind::Put, EventKind::Put, EventKind::PtDisabled]
    );
}

#[test]
fn an_entry_that_will_unlink_needs_room_for_two_events() {
    let mut node = node();
    let portal = node.portal(PtOptions::FLOWCTRL);
    node.host.capacity.insert(QueueIndex(node.queue.index()), 2);
    let once = MeOptions::OP_PUT | MeOptions::EVENT_LINK_DISABLE | MeOptions::USE_ONCE;
    node.append(
        EntrySpec {
            options: once,
            ..entry(portal)
        },
        List::Priority,
    );
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::PtDisabled)
    );
    assert_eq!(node.kinds(), [EventKind::PtDisabled]);
}

/// Puts to an entry that is used once each, as for receives of MPI that are posted ahead.
#[test]
fn flow_control_lets_puts_land_in_one_step_while_the_queue_has_room() {
    let mut node = node();
    let portal = node.portal(PtOptions::FLOWCTRL);
    node.host.capacity.insert(QueueIndex(node.queue.index()), 4);
    let silent = MeOptions::EVENT_LINK_DISABLE | MeOptions::EVENT_UNLINK_DISABLE;
    let once = MeOptions::OP_PUT | MeOptions::USE_ONCE | silent;
    let receive = EntrySpec {
        options: once,
        ..entry(portal)
    };
    let put = request(portal);
    for _ in 0..4 {
        node.append(receive.clone(), List::Priority);
    }
    for _ in 0..3 {
        let delivered = node.deliver(process(1), &put, NiFail::Ok);
        assert!(delivered.is_some());
    }
    let delivered = node.deliver(process(1), &put, NiFail::Ok);
    assert!(delivered.is_none(), "the last slot is for what reports it");
    let refused = node.take(process(1), &put).fail;
    assert_eq!(refused, Some(NiFail::PtDisabled));
    let arrived = EventKind::Put;
    assert_eq!(
        node.kinds(),
        [arrived, arrived, arrived, EventKind::PtDisabled]
    );
    node.interface.portal_enable(portal).unwrap();
    let delivered = node.deliver(process(1), &put, NiFail::Ok);
    assert!(delivered.is_some(), "the fourth entry was kept");
    assert_eq!(node.kinds(), [arrived]);
}

#[test]
fn disabling_is_reported_only_after_what_was_landing() {
    let mut node = node();
    let portal = node.portal(PtOptions::FLOWCTRL);
    node.append(
        EntrySpec {
            options: QUIET,
            ..entry(portal)
        },
        List::Priority,
    );
    let landed = node.begin(process(1), &request(portal));
    node.take(
        process(1),
        &Request {
            match_bits: 8,
            ..request(portal)
        },
    );
    assert_eq!(node.kinds(), []);
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.kinds(), [EventKind::Put, EventKind::PtDisabled]);
}

#[test]
fn a_portal_enabled_before_its_disabling_was_reported_is_never_reported() {
    let mut node = node();
    let portal = node.portal(PtOptions::FLOWCTRL);
    node.append(
        EntrySpec {
            options: QUIET,
            ..entry(portal)
        },
        List::Priority,
    );
    let landed = node.begin(process(1), &request(portal));
    node.take(
        process(1),
        &Request {
            match_bits: 8,
            ..request(portal)
        },
    );
    node.interface.portal_enable(portal).unwrap();
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.kinds(), [EventKind::Put]);
}

#[test]
fn violations_leave_a_flow_controlled_portal_enabled() {
    let mut node = node();
    let portal = node.portal(PtOptions::FLOWCTRL);
    node.append(
        EntrySpec {
            options: MeOptions::OP_GET,
            ..entry(portal)
        },
        List::Priority,
    );
    for _ in 0..2 {
        assert_eq!(
            node.take(process(1), &request(portal)).fail,
            Some(NiFail::OpViolation)
        );
    }
}

#[test]
fn entries_beyond_the_limits_are_refused_and_change_nothing() {
    let limits = Limits {
        max_entries: 3,
        max_list_size: 2,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let portal = node.portal(PtOptions::empty());
    node.append(entry(portal), List::Priority);
    let second = node.append(entry(portal), List::Priority);
    let refused = node
        .interface
        .append(&entry(portal), List::Priority, &mut node.host);
    assert_eq!(refused, Err(Error::ListTooLong));
    node.append(entry(portal), List::Overflow);
    let refused = node
        .interface
        .append(&entry(portal), List::Overflow, &mut node.host);
    assert_eq!(refused, Err(Error::NoSpace));
    assert_eq!(node.kinds(), [EventKind::Link; 3]);
    node.interface.unlink(second).unwrap();
    node.append(entry(portal), List::Overflow);
}

/// A message to the overflow list, that its entry is unlinked, that the header is received, and that
/// the memory is free.
#[test]
fn flow_control_leaves_room_for_all_that_a_message_to_the_overflow_list_may_cause() {
    for (headers, most) in [(true, 4), (false, 3)] {
        let mut node = node();
        let queue = QueueIndex(node.queue.index());
        let portal = node.portal(PtOptions::FLOWCTRL);
        let mut options = MeOptions::OP_PUT | MeOptions::EVENT_LINK_DISABLE | MeOptions::USE_ONCE;
        if !headers {
            options |= MeOptions::UNEXPECTED_HDR_DISABLE;
        }
        let spec = EntrySpec {
            options,
            ..entry(portal)
        };
        node.append(spec.clone(), List::Overflow);
        // One is for the disabling.
        node.host.capacity.insert(queue, most);
        let taken = node.take(process(1), &request(portal));
        let refused = taken.response.map(|response| response.fail);
        assert_eq!(refused, Some(NiFail::PtDisabled));
        node.interface.portal_enable(portal).unwrap();
        node.events();
        node.host.capacity.insert(queue, most + 1);
        let landed = node.begin(process(1), &request(portal));
        let receiver = EntrySpec {
            options: options | MeOptions::EVENT_UNLINK_DISABLE,
            ..spec
        };
        node.append(receiver, List::Priority);
        node.on_landed(landed, NiFail::Ok);
        assert_eq!(node.kinds().len(), most);
    }
}

#[test]
fn an_entry_that_was_to_be_linked_is_not_linked_to_another_portal_table_entry() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    let counter = node.counter();
    let (interface, host) = (&mut node.interface, &mut node.host);
    let spec = entry(portal);
    let appended = interface.trigger_append(spec, List::Priority, counter, 1, host);
    assert!(appended.is_ok());
    assert_eq!(interface.portal_free(portal), Ok(()));
    assert_eq!(node.portal(PtOptions::empty()), portal);
    let one = CountingEvent {
        success: 1,
        failure: 0,
    };
    let (interface, host) = (&mut node.interface, &mut node.host);
    interface.counter_inc(counter, one, host).unwrap();
    assert_eq!(node.kinds(), []);
    assert_eq!(
        node.interface.portal_free(portal),
        Ok(()),
        "it has no entry"
    );
}
