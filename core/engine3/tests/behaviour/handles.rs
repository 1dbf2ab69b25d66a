//! Handles (sections 3.2.2, 3.14): stale and foreign ones, and event queues.

use crate::rig::*;
use lintel_engine3::{Dialect, Interface};
use lintel_memory::Ghost;
use lintel_types::portals3::{EQ_NONE, Error, HANDLE_NONE, Limits};
use lintel_types::{Handle, InterfaceNumber, Kind, NiFail};

#[test]
fn live_handles_are_of_this_interface() {
    let mut node = Node::plain();
    let (entry, md) = node.attach(entry(), md(100));
    for handle in [node.queue, entry, md] {
        assert_eq!(node.interface.check_live(handle), Ok(()));
    }
    for handle in [EQ_NONE, HANDLE_NONE, Handle::INVALID, Handle(0), Handle(3)] {
        let refused = node.interface.check_live(handle);
        assert_eq!(refused, Err(Error::HandleInvalid), "{handle:?}");
    }
}

#[test]
fn a_handle_of_one_kind_is_none_of_another() {
    let mut node = Node::plain();
    let (entry, md) = node.attach(entry(), md(100));
    assert_eq!(node.interface.entry_unlink(md), Err(Error::MeInvalid));
    assert_eq!(node.unlink(entry), Err(Error::MdInvalid));
    assert_eq!(node.interface.queue_free(md), Err(Error::EqInvalid));
}

#[test]
fn a_handle_is_stale_once_its_object_is_gone() {
    let mut node = Node::plain();
    let first = node.bind(md(100));
    assert_eq!(node.unlink(first), Ok(()));
    let second = node.bind(md(100));
    assert_eq!(first.index(), second.index());
    assert_eq!(node.unlink(first), Err(Error::MdInvalid));
    assert_eq!(node.unlink(second), Ok(()));
}

#[test]
fn a_handle_of_an_earlier_or_another_interface_is_stale() {
    let mut earlier = Node::plain();
    let handle = earlier.bind(md(100));
    let base = config(process(0), Dialect::Specification, Limits::DEFAULT);
    let next = lintel_engine3::Config {
        generation: base.generation + 1,
        ..base
    };
    let other = lintel_engine3::Config {
        number: InterfaceNumber::from_bits(1),
        ..base
    };
    for config in [next, other] {
        let mut interface: Interface<Ghost> = Interface::new(config);
        interface.descriptor_bind(md(100)).unwrap();
        assert_eq!(interface.check_live(handle), Err(Error::HandleInvalid));
    }
}

#[test]
fn generations_wrap_without_reaching_the_reserved_handles() {
    let last = lintel_engine3::Config {
        generation: Handle::GENERATIONS - 1,
        ..config(process(0), Dialect::Specification, Limits::DEFAULT)
    };
    let mut interface: Interface<Ghost> = Interface::new(last);
    let mut host = Recorder::default();
    for round in 0..3 {
        let md = interface.descriptor_bind(md(1)).unwrap();
        let expected = [Handle::GENERATIONS - 1, 0, 1][round];
        assert_eq!(md.generation(), expected);
        assert_eq!(interface.check_live(md), Ok(()));
        assert_eq!(interface.descriptor_unlink(md, &mut host), Ok(()));
        assert_eq!(interface.check_live(md), Err(Error::HandleInvalid));
    }
}

#[test]
fn the_generation_of_the_reserved_handles_names_nothing() {
    let mut node = Node::plain();
    let md = node.bind(md(100));
    let reserved = Handle::new(
        Kind::MemoryDescriptor,
        node.interface.number(),
        Handle::GENERATIONS,
        md.index(),
    );
    let first = md.generation();
    assert!(first > 0, "else it would name no slot anyway");
    assert_eq!(node.unlink(reserved), Err(Error::MdInvalid));
}

#[test]
fn queues_beyond_the_limit_are_refused() {
    let limits = Limits {
        max_eqs: 2,
        ..Limits::DEFAULT
    };
    let mut node = Node::new(process(0), Dialect::Specification, limits);
    let second = node.interface.queue_alloc().unwrap();
    assert_eq!(node.interface.queue_alloc(), Err(Error::NoSpace));
    assert_eq!(node.interface.queue_free(second), Ok(()));
    assert!(node.interface.queue_alloc().is_ok());
}

#[test]
fn a_descriptor_whose_queue_is_freed_works_on_without_events() {
    let mut node = Node::plain();
    let (_, md) = node.attach(entry(), md(100));
    let landed = node.begin(&request());
    let queue = node.queue;
    assert_eq!(node.interface.queue_free(queue), Ok(()));
    assert_eq!(node.interface.queue_free(queue), Err(Error::EqInvalid));
    node.events();
    let next = node.interface.queue_alloc().unwrap();
    assert_eq!(next.index(), queue.index());
    node.on_landed(landed, NiFail::Ok);
    assert!(node.take(process(0), &request()).is_some());
    assert!(node.events().is_empty(), "nor in the queue that followed");
    assert_eq!(node.unlink(md), Ok(()));
}

#[test]
fn an_interface_says_who_it_is() {
    let mut node = Node::plain();
    let interface = &mut node.interface;
    assert_eq!((interface.id(), interface.uid()), (process(1), UID));
    assert_eq!(interface.number(), InterfaceNumber::from_bits(2));
    assert_eq!(interface.jid(), JID);
    interface.set_jid(5);
    assert_eq!(interface.jid(), 5);
}
