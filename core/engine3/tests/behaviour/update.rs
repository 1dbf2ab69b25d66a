//! PtlMDUpdate and PtlMEMDPost: changes that depend on an event queue (section 3.10).

use crate::rig::*;
use lintel_types::NiFail;
use lintel_types::portals3::{EQ_NONE, Error, MdOptions, Position};
use lintel_types::{Handle, QueueIndex};
use lintel_wire::portals3::Request;

#[test]
fn the_state_of_a_descriptor_has_its_lowered_threshold() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100).threshold(5));
    node.take(process(0), &request());
    let expected = node.reporting(md(100).threshold(4)).md;
    assert_eq!(node.interface.descriptor_state(handle), Ok(expected));
}

#[test]
fn an_update_makes_a_descriptor_active_again_from_its_start() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100).threshold(1));
    node.take(process(0), &request());
    assert_eq!(node.take(process(0), &request()), None);
    let new = node.reporting(md(100).threshold(1));
    assert_eq!(node.update(handle, new, EQ_NONE), Ok(()));
    let place = node.take(process(0), &request()).expect("it is active");
    assert_eq!(place[0], lintel_memory::Ghost::new(BASE, 8));
}

#[test]
fn an_update_waits_for_an_empty_queue() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100));
    node.take(process(0), &request());
    let (queue, new) = (node.queue, node.reporting(md(50)));
    let refused = node.update(handle, new.clone(), queue);
    assert_eq!(refused, Err(Error::MdNoUpdate));
    assert_eq!(
        node.interface.descriptor_state(handle).unwrap().length,
        100,
        "nothing has changed"
    );
    node.events();
    assert_eq!(node.update(handle, new, queue), Ok(()));
    assert_eq!(node.interface.descriptor_state(handle).unwrap().length, 50);
}

#[test]
fn an_update_without_a_test_queue_does_not_look_at_events() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100));
    node.take(process(0), &request());
    assert_eq!(node.update(handle, md(50), EQ_NONE), Ok(()));
}

#[test]
fn an_update_is_refused_while_the_descriptor_is_pending() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100));
    let landed = node.begin(&request());
    let refused = node.update(handle, md(50), EQ_NONE);
    assert_eq!(refused, Err(Error::MdNoUpdate));
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.update(handle, md(50), EQ_NONE), Ok(()));
}

/// The START event is taken, the END event is still to come.
#[test]
fn an_update_is_refused_while_an_event_for_the_test_queue_is_pending() {
    let mut node = Node::plain();
    node.attach(entry(), md(100));
    let other = node.bind(md(100));
    let landed = node.begin(&request());
    node.events();
    let queue = node.queue;
    assert_eq!(node.update(other, md(50), queue), Err(Error::MdNoUpdate));
    node.on_landed(landed, NiFail::Ok);
    node.events();
    assert_eq!(node.update(other, md(50), queue), Ok(()));
}

#[test]
fn the_test_queue_may_be_another_than_the_descriptors() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100));
    node.take(process(0), &request());
    let other = node.interface.queue_alloc().unwrap();
    assert_eq!(node.update(handle, md(50), other), Ok(()));
}

#[test]
fn an_update_with_wrong_arguments_changes_nothing() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100));
    let gone = node.interface.queue_alloc().unwrap();
    node.interface.queue_free(gone).unwrap();
    let mut deaf = md(50);
    deaf.md.queue = gone;
    for (spec, test, error) in [
        (md(50).threshold(-2), EQ_NONE, Error::MdIllegal),
        (deaf, EQ_NONE, Error::EqInvalid),
        (md(50), gone, Error::EqInvalid),
        (md(50), Handle::INVALID, Error::EqInvalid),
    ] {
        assert_eq!(node.update(handle, spec, test), Err(error));
    }
    let none = node.update(Handle::INVALID, md(50), EQ_NONE);
    assert_eq!(none, Err(Error::MdInvalid));
    assert_eq!(node.interface.descriptor_state(handle).unwrap().length, 100);
}

#[test]
fn an_update_may_change_the_queue() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100));
    let other = node.interface.queue_alloc().unwrap();
    let mut new = md(100);
    new.md.queue = other;
    assert_eq!(node.update(handle, new, EQ_NONE), Ok(()));
    node.take(process(0), &request());
    assert!(node.events().is_empty());
    assert_eq!(node.host.events[&QueueIndex(other.index())].len(), 2);
}

#[test]
fn an_armed_descriptor_takes_messages_again() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100).threshold(0));
    assert_eq!(node.take(process(0), &request()), None);
    let armed = node.reporting(md(100).threshold(1));
    assert_eq!(node.update(handle, armed, node.queue), Ok(()));
    assert!(node.take(process(0), &request()).is_some());
}

fn post(node: &mut Node, base: Handle, test: Handle) -> Result<(Handle, Handle), Error> {
    let spec = node.reporting(md(100).with(MdOptions::TRUNCATE));
    let (interface, host) = (&mut node.interface, &mut node.host);
    interface.entry_post(base, entry(), Position::Before, spec, test, host)
}

#[test]
fn a_post_waits_for_an_empty_queue_and_leaves_nothing_behind() {
    let mut node = Node::plain();
    let (base, _) = node.attach(entry(), md(100));
    node.take(process(0), &request());
    let queue = node.queue;
    assert_eq!(post(&mut node, base, queue), Err(Error::MdNoUpdate));
    let entries = node.interface.status(lintel_engine3::register::MES + 3);
    assert_eq!(entries, Ok(1));
    node.events();
    let (_, md) = post(&mut node, base, queue).expect("the queue is empty");
    node.take(
        process(0),
        &Request {
            length: 1,
            ..request()
        },
    );
    assert_eq!(node.events()[0].md_handle, md, "it stands before its base");
}

#[test]
fn a_post_is_refused_while_a_message_is_landing() {
    let mut node = Node::plain();
    let (base, _) = node.attach(entry(), md(100));
    let landed = node.begin(&request());
    node.events();
    let queue = node.queue;
    assert_eq!(post(&mut node, base, queue), Err(Error::MdNoUpdate));
    assert!(post(&mut node, base, EQ_NONE).is_ok());
    node.on_landed(landed, NiFail::Ok);
}

#[test]
fn a_post_beside_no_entry_or_with_no_queue_is_refused() {
    let mut node = Node::plain();
    let (base, _) = node.attach(entry(), md(100));
    let refused = post(&mut node, Handle::INVALID, EQ_NONE);
    assert_eq!(refused, Err(Error::MeInvalid));
    assert_eq!(post(&mut node, base, base), Err(Error::EqInvalid));
}
