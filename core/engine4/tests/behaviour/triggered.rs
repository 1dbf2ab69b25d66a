//! Operations that wait for counters.

use crate::rig::*;
use lintel_engine4::{Deferred, DescriptorSpec, EntrySpec};
use lintel_types::{
    AckRequest, CountingEvent, Error, EventKind, Handle, InterfaceNumber, Limits, List, MdOptions,
    MeOptions, PtOptions,
};
use lintel_wire::{Request, Response};

const ONE: CountingEvent = CountingEvent {
    success: 1,
    failure: 0,
};

fn node() -> Node {
    Wire::of(1, MATCHING).nodes.remove(0)
}

fn trigger(
    node: &mut Node,
    operation: Deferred<lintel_memory::Ghost>,
    counter: Handle,
    threshold: u64,
) -> Result<(), Error> {
    node.interface
        .trigger(operation, counter, threshold, &mut node.host)
}

fn inc(node: &mut Node, counter: Handle, success: u64, failure: u64) {
    let by = CountingEvent { success, failure };
    node.interface
        .counter_inc(counter, by, &mut node.host)
        .unwrap();
}

#[test]
fn an_operation_waits_for_its_threshold() {
    let mut node = node();
    let (trigger_on, counted) = (node.counter(), node.counter());
    trigger(&mut node, Deferred::Increment(counted, ONE), trigger_on, 3).unwrap();
    inc(&mut node, trigger_on, 2, 0);
    assert_eq!(node.count(counted), (0, 0));
    inc(&mut node, trigger_on, 1, 0);
    assert_eq!(node.count(counted), (1, 0));
    inc(&mut node, trigger_on, 1, 0);
    assert_eq!(node.count(counted), (1, 0), "it fires once");
}

#[test]
fn failures_count_towards_a_threshold() {
    let mut node = node();
    let (trigger_on, counted) = (node.counter(), node.counter());
    trigger(&mut node, Deferred::Increment(counted, ONE), trigger_on, 3).unwrap();
    inc(&mut node, trigger_on, 1, 2);
    assert_eq!(node.count(counted), (1, 0));
}

#[test]
fn a_threshold_already_reached_fires_at_once() {
    let mut node = node();
    let (trigger_on, counted) = (node.counter(), node.counter());
    trigger(&mut node, Deferred::Increment(counted, ONE), trigger_on, 0).unwrap();
    inc(&mut node, trigger_on, 5, 0);
    trigger(&mut node, Deferred::Increment(counted, ONE), trigger_on, 5).unwrap();
    assert_eq!(node.count(counted), (2, 0));
}

#[test]
fn a_counter_that_is_set_fires_too() {
    let mut node = node();
    let (trigger_on, counted) = (node.counter(), node.counter());
    let value = CountingEvent {
        success: 7,
        failure: 1,
    };
    trigger(&mut node, Deferred::Set(counted, value), trigger_on, 8).unwrap();
    node.interface
        .counter_set(trigger_on, value, &mut node.host)
        .unwrap();
    assert_eq!(node.count(counted), (7, 1));
}

#[test]
fn operations_at_one_threshold_fire_in_posting_order_and_lower_thresholds_first() {
    let mut node = node();
    let counter = node.counter();
    let source = node.descriptor();
    for (user_ptr, threshold) in [(5, 3), (1, 1), (3, 2), (4, 2), (2, 1)] {
        let transfer = lintel_engine4::Transfer {
            user_ptr,
            ..put(source, process(0), 0)
        };
        let operation = Deferred::Transfer(Box::new(transfer));
        trigger(&mut node, operation, counter, threshold).unwrap();
    }
    inc(&mut node, counter, 3, 0);
    let order: Vec<u64> = node.events().iter().map(|event| event.user_ptr).collect();
    assert_eq!(order, [1, 2, 3, 4, 5]);
}

#[test]
fn a_triggered_put_goes_all_the_way() {
    let mut wire = Wire::of(2, MATCHING);
    let portal = wire.node(1).portal(PtOptions::empty());
    wire.node(1).append(entry(portal), List::Priority);
    let (source, counter) = (wire.node(0).descriptor(), wire.node(0).counter());
    let transfer = put(source, process(1), portal);
    trigger(
        wire.node(0),
        Deferred::Transfer(Box::new(transfer)),
        counter,
        1,
    )
    .unwrap();
    wire.deliver();
    assert_eq!(wire.node(1).kinds(), [EventKind::Link]);
    inc(wire.node(0), counter, 1, 0);
    wire.deliver();
    assert_eq!(wire.node(1).kinds(), [EventKind::Put]);
}

#[test]
fn a_put_that_lands_releases_the_next() {
    let mut wire = Wire::of(3, MATCHING);
    for index in [1, 2] {
        let portal = wire.node(index).portal(PtOptions::empty());
        let counter = wire.node(index).counter();
        let options = MeOptions::OP_PUT | MeOptions::EVENT_CT_COMM;
        wire.node(index).append(
            EntrySpec {
                options,
                counter,
                ..entry(portal)
            },
            List::Priority,
        );
        let source = wire.node(index).bind(descriptor());
        let onwards = Box::new(put(source, process((index + 1) % 3), 0));
        trigger(wire.node(index), Deferred::Transfer(onwards), counter, 1).unwrap();
    }
    let portal = wire.node(0).portal(PtOptions::empty());
    wire.node(0).append(entry(portal), List::Priority);
    let source = wire.node(0).bind(descriptor());
    wire.node(0).start(&put(source, process(1), 0)).unwrap();
    wire.deliver();
    assert_eq!(
        wire.node(0).kinds(),
        [EventKind::Link, EventKind::Put],
        "round the ring"
    );
}

#[test]
fn a_chain_of_a_hundred_thousand_needs_no_stack() {
    let limits = Limits {
        max_triggered_ops: 1 << 20,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let counter = node.counter();
    for threshold in 1..=100_000 {
        trigger(
            &mut node,
            Deferred::Increment(counter, ONE),
            counter,
            threshold,
        )
        .unwrap();
    }
    inc(&mut node, counter, 1, 0);
    assert_eq!(node.count(counter), (100_001, 0));
}

#[test]
fn a_chain_of_undeliverable_puts_needs_no_stack() {
    for ack in [AckRequest::None, AckRequest::Counting] {
        let limits = Limits {
            max_triggered_ops: 1 << 20,
            ..Limits::DEFAULT
        };
        let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
        node.host.unreachable.insert(process(5));
        let counter = node.counter();
        let options = MdOptions::EVENT_CT_SEND;
        let source = node.bind(DescriptorSpec {
            counter,
            options,
            ..descriptor()
        });
        let transfer = lintel_engine4::Transfer {
            ack,
            ..put(source, process(5), 0)
        };
        for threshold in 1..=100_000 {
            let operation = Deferred::Transfer(Box::new(transfer.clone()));
            trigger(&mut node, operation, counter, threshold).unwrap();
        }
        inc(&mut node, counter, 1, 0);
        assert_eq!(node.count(counter), (1, 100_000));
    }
}

#[test]
fn a_counter_may_trigger_itself() {
    let mut node = node();
    let counter = node.counter();
    let reset = Deferred::Set(counter, CountingEvent::default());
    trigger(&mut node, reset, counter, 2).unwrap();
    trigger(&mut node, Deferred::Increment(counter, ONE), counter, 2).unwrap();
    inc(&mut node, counter, 2, 0);
    assert_eq!(node.count(counter), (1, 0), "reset, then raised");
}

#[test]
fn what_is_cancelled_never_fires() {
    let mut node = node();
    let (counter, counted) = (node.counter(), node.counter());
    trigger(&mut node, Deferred::Increment(counted, ONE), counter, 1).unwrap();
    node.interface.cancel_triggered(counter).unwrap();
    inc(&mut node, counter, 1, 0);
    assert_eq!(node.count(counted), (0, 0));
    trigger(&mut node, Deferred::Increment(counted, ONE), counter, 2).unwrap();
    inc(&mut node, counter, 1, 0);
    assert_eq!(node.count(counted), (1, 0), "the counter works on");
}

#[test]
fn operations_beyond_the_limit_are_refused_until_one_has_fired_or_is_cancelled() {
    let limits = Limits {
        max_triggered_ops: 2,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let (one, two) = (node.counter(), node.counter());
    let operation = || Deferred::Increment(two, ONE);
    trigger(&mut node, operation(), one, 1).unwrap();
    trigger(&mut node, operation(), two, 100).unwrap();
    assert_eq!(trigger(&mut node, operation(), one, 0), Err(Error::NoSpace));
    inc(&mut node, one, 1, 0);
    assert_eq!(trigger(&mut node, operation(), one, 2), Ok(()));
    node.interface.counter_free(two).unwrap();
    assert_eq!(
        trigger(&mut node, Deferred::Increment(one, ONE), one, 3),
        Ok(())
    );
}

#[test]
fn a_triggered_operation_is_checked_when_it_is_posted() {
    let mut node = node();
    let counter = node.counter();
    let bad = Box::new(put(Handle::INVALID, process(0), 0));
    assert_eq!(
        trigger(&mut node, Deferred::Transfer(bad), counter, 1),
        Err(Error::ArgInvalid)
    );
    let bad = Deferred::Increment(Handle::CT_NONE, ONE);
    assert_eq!(trigger(&mut node, bad, counter, 1), Err(Error::ArgInvalid));
    let bad = Deferred::Unlink(Handle::INVALID);
    assert_eq!(trigger(&mut node, bad, counter, 1), Err(Error::ArgInvalid));
    let good = Deferred::Increment(counter, ONE);
    assert_eq!(
        trigger(&mut node, good, Handle::CT_NONE, 1),
        Err(Error::ArgInvalid)
    );
}

#[test]
fn an_operation_whose_objects_are_gone_is_dropped() {
    let mut node = node();
    let (counter, gone) = (node.counter(), node.counter());
    let source = node.descriptor();
    let transfer = Box::new(put(source, process(0), 0));
    trigger(&mut node, Deferred::Transfer(transfer), counter, 1).unwrap();
    trigger(&mut node, Deferred::Increment(gone, ONE), counter, 1).unwrap();
    node.interface.descriptor_release(source).unwrap();
    node.interface.counter_free(gone).unwrap();
    let other = node.counter();
    inc(&mut node, counter, 1, 0);
    assert!(node.host.sent.is_empty());
    assert_eq!(
        node.count(other),
        (0, 0),
        "it has the slot of the one that is gone"
    );
}

#[test]
fn a_triggered_append_is_linked_when_its_counter_says_so() {
    let mut node = node();
    let (portal, counter) = (node.portal(PtOptions::empty()), node.counter());
    let spec = EntrySpec {
        match_bits: 9,
        ..entry(portal)
    };
    let handle = node
        .interface
        .trigger_append(spec, List::Priority, counter, 1, &mut node.host)
        .unwrap();
    assert!(
        node.take(
            process(1),
            &Request {
                match_bits: 9,
                ..request(portal)
            }
        )
        .fail
        .is_some()
    );
    inc(&mut node, counter, 1, 0);
    assert_eq!(node.kinds(), [EventKind::Link]);
    assert_eq!(
        node.take(
            process(1),
            &Request {
                match_bits: 9,
                ..request(portal)
            }
        )
        .fail,
        None
    );
    trigger(&mut node, Deferred::Unlink(handle), counter, 2).unwrap();
    inc(&mut node, counter, 1, 0);
    assert_eq!(node.interface.unlink(handle), Err(Error::ArgInvalid));
}

#[test]
fn a_triggered_list_entry_is_linked_too() {
    let mut node = Wire::of(1, NON_MATCHING).nodes.remove(0);
    let (portal, counter) = (node.portal(PtOptions::empty()), node.counter());
    node.interface
        .trigger_append(entry(portal), List::Priority, counter, 1, &mut node.host)
        .unwrap();
    inc(&mut node, counter, 1, 0);
    assert_eq!(
        node.take(
            process(1),
            &Request {
                interface: InterfaceNumber::new(false, false),
                ..request(portal)
            }
        )
        .fail,
        None
    );
}

#[test]
fn an_append_that_is_cancelled_gives_its_entry_back() {
    let limits = Limits {
        max_entries: 1,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let (portal, counter) = (node.portal(PtOptions::empty()), node.counter());
    let appended = node
        .interface
        .trigger_append(entry(portal), List::Priority, counter, 1, &mut node.host)
        .unwrap();
    let refused = node
        .interface
        .append(&entry(portal), List::Priority, &mut node.host);
    assert_eq!(refused, Err(Error::NoSpace));
    node.interface.cancel_triggered(counter).unwrap();
    assert_eq!(node.interface.unlink(appended), Err(Error::ArgInvalid));
    node.append(entry(portal), List::Priority);
}

#[test]
fn cancelling_an_append_spares_the_entry_that_took_its_place() {
    let mut node = node();
    let (portal, counter) = (node.portal(PtOptions::empty()), node.counter());
    let waiting = node
        .interface
        .trigger_append(entry(portal), List::Priority, counter, 1, &mut node.host)
        .unwrap();
    node.interface.unlink(waiting).unwrap();
    let other = node.append(entry(portal), List::Priority);
    assert_eq!(other.index(), waiting.index());
    node.interface.cancel_triggered(counter).unwrap();
    assert_eq!(node.take(process(1), &request(portal)).fail, None);
    assert_eq!(node.interface.unlink(other), Ok(()));
}

#[test]
fn an_append_beyond_the_limit_of_operations_holds_no_entry() {
    let limits = Limits {
        max_triggered_ops: 1,
        max_entries: 2,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let (portal, counter) = (node.portal(PtOptions::empty()), node.counter());
    for wanted in [Ok(()), Err(Error::NoSpace), Err(Error::NoSpace)] {
        let appended = node.interface.trigger_append(
            entry(portal),
            List::Priority,
            counter,
            1,
            &mut node.host,
        );
        assert_eq!(appended.map(drop), wanted);
    }
    node.append(entry(portal), List::Priority);
}

/// A token names one of 65,535 operations.
#[test]
fn operations_beyond_those_that_can_be_under_way_begin_once_others_have_ended() {
    const COUNT: usize = 65_540;
    let limits = Limits {
        max_triggered_ops: 100_000,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let (sink, counter) = (node.descriptor(), node.counter());
    for _ in 0..COUNT {
        let get = Deferred::Transfer(Box::new(get(sink, process(1), 0)));
        trigger(&mut node, get, counter, 1).unwrap();
    }
    inc(&mut node, counter, 1, 0);
    assert_eq!(node.host.sent.len(), 65_535);
    while let Some(sent) = node.host.sent.pop_front() {
        node.on_response(&Response {
            placed: true,
            ..response_to(sent.request.token, true)
        });
    }
    assert_eq!(node.kinds().len(), COUNT);
}
