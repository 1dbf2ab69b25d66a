//! Handles that name nothing.

use crate::rig::*;
use lintel_engine4::{Deferred, DescriptorSpec, EntrySpec, SearchOp};
use lintel_memory::{Buffer, Ghost};
use lintel_types::{CountingEvent, Error, Handle, Kind, Limits, List, MeOptions, PtOptions};

fn node() -> Node {
    Wire::of(1, MATCHING).nodes.remove(0)
}

const BAD: Error = Error::ArgInvalid;

/// What no live object answers to: a freed handle, the other kinds, another
/// interface, another generation, an index beyond, and the reserved ones.
fn strangers(good: Handle, freed: Handle) -> Vec<Handle> {
    let mut all = vec![freed, Handle::INVALID, Handle(0), Handle(good.0 ^ 1 << 27)];
    all.extend([
        Handle(good.0 ^ 1 << 16),
        Handle(good.0 | 0x7ff << 16),
        Handle(good.0 | 0xffff),
    ]);
    all.extend((1..8).map(|kind| Handle(good.0 ^ kind << 29)));
    all
}

#[test]
fn a_descriptor_that_is_not_live_is_refused() {
    let mut node = node();
    let freed = node.descriptor();
    node.interface.descriptor_release(freed).unwrap();
    let good = node.descriptor();
    for stranger in strangers(good, freed) {
        assert_eq!(
            node.interface.descriptor_release(stranger),
            Err(BAD),
            "{stranger:?}"
        );
        assert_eq!(node.start(&put(stranger, process(0), 0)), Err(BAD));
        assert_eq!(node.start(&get(stranger, process(0), 0)), Err(BAD));
    }
    assert!(node.host.sent.is_empty());
    assert_eq!(node.start(&put(good, process(0), 0)), Ok(()));
}

#[test]
fn a_counter_that_is_not_live_is_refused() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    let freed = node.counter();
    node.interface.counter_free(freed).unwrap();
    let good = node.counter();
    let one = CountingEvent {
        success: 1,
        failure: 0,
    };
    for stranger in strangers(good, freed) {
        assert_eq!(
            node.interface.counter_free(stranger),
            Err(BAD),
            "{stranger:?}"
        );
        assert_eq!(node.interface.counter_value(stranger), Err(BAD));
        assert_eq!(node.interface.cancel_triggered(stranger), Err(BAD));
        assert_eq!(
            node.interface.counter_inc(stranger, one, &mut node.host),
            Err(BAD)
        );
        assert_eq!(
            node.interface.counter_set(stranger, one, &mut node.host),
            Err(BAD)
        );
        let operation = Deferred::Increment(good, one);
        assert_eq!(
            node.interface
                .trigger(operation, stranger, 0, &mut node.host),
            Err(BAD)
        );
        let operation = Deferred::Increment(stranger, one);
        assert_eq!(
            node.interface.trigger(operation, good, 0, &mut node.host),
            Err(BAD)
        );
        let spec = DescriptorSpec {
            counter: stranger,
            ..descriptor()
        };
        assert_eq!(node.interface.descriptor_bind(spec), Err(BAD));
        let options = MeOptions::EVENT_CT_COMM;
        let spec = EntrySpec {
            counter: stranger,
            options,
            ..entry(portal)
        };
        let refused = node.interface.append(&spec, List::Priority, &mut node.host);
        assert_eq!(refused, Err(BAD));
        assert_eq!(
            node.interface.search(spec, SearchOp::Only, &mut node.host),
            Err(BAD)
        );
        let refused = node.interface.trigger_append(
            entry(portal),
            List::Priority,
            stranger,
            0,
            &mut node.host,
        );
        assert_eq!(refused, Err(BAD));
    }
    assert_eq!(node.count(good), (0, 0));
    assert_eq!(node.kinds(), []);
}

#[test]
fn a_queue_that_is_not_live_is_refused() {
    let mut node = node();
    let freed = node.interface.queue_alloc(1).unwrap();
    node.interface.queue_free(freed).unwrap();
    let good = node.interface.queue_alloc(1).unwrap();
    for stranger in strangers(good, freed) {
        assert_eq!(
            node.interface.queue_free(stranger),
            Err(BAD),
            "{stranger:?}"
        );
        let spec = DescriptorSpec {
            queue: stranger,
            ..descriptor()
        };
        assert_eq!(node.interface.descriptor_bind(spec), Err(BAD));
        assert_eq!(
            node.interface.portal_alloc(PtOptions::empty(), stranger, 0),
            Err(BAD)
        );
    }
    assert_eq!(node.interface.queue_free(good), Ok(()));
}

#[test]
fn an_entry_that_is_not_live_is_refused() {
    for options in [MATCHING, NON_MATCHING] {
        let mut node = Wire::of(1, options).nodes.remove(0);
        let (portal, counter) = (node.portal(PtOptions::empty()), node.counter());
        let freed = node.append(entry(portal), List::Priority);
        node.interface.unlink(freed).unwrap();
        let good = node.append(entry(portal), List::Priority);
        for stranger in strangers(good, freed) {
            assert_eq!(node.interface.unlink(stranger), Err(BAD), "{stranger:?}");
            let operation = Deferred::Unlink(stranger);
            assert_eq!(
                node.interface
                    .trigger(operation, counter, 0, &mut node.host),
                Err(BAD)
            );
        }
        assert_eq!(node.interface.unlink(good), Ok(()));
    }
}

#[test]
fn entries_are_named_by_the_kind_of_their_interface() {
    for (options, kind) in [
        (MATCHING, Kind::MatchEntry),
        (NON_MATCHING, Kind::ListEntry),
    ] {
        let mut node = Wire::of(1, options).nodes.remove(0);
        let portal = node.portal(PtOptions::empty());
        assert_eq!(
            node.append(entry(portal), List::Priority).kind(),
            Some(kind)
        );
    }
}

#[test]
fn unknown_options_are_refused() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    for bit in 20..32 {
        let spec = EntrySpec {
            options: (1 << bit).into(),
            ..entry(portal)
        };
        let refused = node.interface.append(&spec, List::Priority, &mut node.host);
        assert_eq!(refused, Err(BAD));
        assert_eq!(
            node.interface.search(spec, SearchOp::Only, &mut node.host),
            Err(BAD)
        );
    }
    for bit in (9..14).chain(15..32) {
        let spec = DescriptorSpec {
            options: (1 << bit).into(),
            ..descriptor()
        };
        assert_eq!(node.interface.descriptor_bind(spec), Err(BAD));
    }
}

#[test]
fn too_long_a_vector_is_refused() {
    let limits = Limits {
        max_iovecs: 2,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let portal = node.portal(PtOptions::empty());
    for (pieces, wanted) in [(2, Ok(())), (3, Err(BAD))] {
        let buffer = Buffer::vector(vec![Ghost::new(1, 1); pieces]);
        let spec = DescriptorSpec {
            buffer: buffer.clone(),
            ..descriptor()
        };
        assert_eq!(node.interface.descriptor_bind(spec).map(drop), wanted);
        let spec = EntrySpec {
            buffer,
            ..entry(portal)
        };
        let appended = node.interface.append(&spec, List::Priority, &mut node.host);
        assert_eq!(appended.map(drop), wanted);
    }
}

#[test]
fn objects_beyond_their_limit_are_refused_until_one_goes() {
    let limits = Limits {
        max_mds: 1,
        max_cts: 1,
        max_eqs: 1,
        ..Limits::DEFAULT
    };
    let mut node = Wire::with_limits(1, MATCHING, limits).nodes.remove(0);
    let (md, ct) = (node.bind(descriptor()), node.counter());
    assert_eq!(
        node.interface.descriptor_bind(descriptor()),
        Err(Error::NoSpace)
    );
    assert_eq!(
        node.interface.counter_alloc(&mut node.host),
        Err(Error::NoSpace)
    );
    assert_eq!(node.interface.queue_alloc(1), Err(Error::NoSpace));
    node.interface.descriptor_release(md).unwrap();
    node.interface.counter_free(ct).unwrap();
    node.bind(descriptor());
    node.counter();
}

#[test]
fn handles_of_an_earlier_interface_in_the_same_place_are_stale() {
    for generation in [0, 1, 2046, 2047, 5000, u16::MAX] {
        let config = |generation| lintel_engine4::Config {
            options: MATCHING,
            limits: Limits::DEFAULT,
            process: process(0),
            uid: UID,
            eager: EAGER,
            generation,
        };
        let mut earlier = lintel_engine4::Interface::<Ghost>::new(config(generation));
        let mut later = lintel_engine4::Interface::<Ghost>::new(config(generation.wrapping_add(1)));
        let old = earlier.descriptor_bind(descriptor()).unwrap();
        let new = later.descriptor_bind(descriptor()).unwrap();
        assert_eq!(later.descriptor_release(old), Err(BAD), "{generation}");
        assert_eq!(later.descriptor_release(new), Ok(()));
    }
}

#[test]
fn a_handle_is_stale_through_all_generations_of_its_slot() {
    let mut node = node();
    let first = node.bind(descriptor());
    node.interface.descriptor_release(first).unwrap();
    for _ in 1..Handle::GENERATIONS {
        let handle = node.bind(descriptor());
        assert!(handle != first && handle.generation() != 0x7ff);
        assert_eq!(node.interface.descriptor_release(first), Err(BAD));
        node.interface.descriptor_release(handle).unwrap();
    }
}

#[test]
fn the_reserved_generation_names_nothing_in_any_generation_of_a_slot() {
    let mut node = node();
    for _ in 0..Handle::GENERATIONS {
        let handle = node.bind(descriptor());
        let forged = Handle(handle.0 | 0x7ff << 16);
        assert_eq!(node.interface.descriptor_release(forged), Err(BAD));
        node.interface.descriptor_release(handle).unwrap();
    }
}
