//! What goes when (sections 3.9, 3.10): PTL_UNLINK and PTL_RETAIN of entries and descriptors.

use crate::rig::*;
use lintel_engine3::EntrySpec;
use lintel_types::NiFail;
use lintel_types::portals3::{Error, EventKind::*, MdOptions, Unlink};
use lintel_wire::portals3::Request;

fn going() -> EntrySpec {
    EntrySpec {
        unlink: Unlink::Unlink,
        ..entry()
    }
}

#[test]
fn a_descriptor_with_unlink_goes_with_its_last_operation() {
    let mut node = Node::plain();
    let (_, md) = node.attach(entry(), md(100).threshold(1).unlinking());
    assert!(node.take(process(0), &request()).is_some());
    assert_eq!(node.threshold(md), Err(Error::MdInvalid));
    let events = node.events();
    let kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [PutStart, PutEnd, Unlink]);
    let last = &events[2];
    assert_eq!((last.md_handle, last.md.user_ptr), (md, 0xabc));
}

#[test]
fn a_descriptor_with_unlink_goes_once_its_space_is_used_up() {
    let mut node = Node::plain();
    let (_, md) = node.attach(entry(), md(100).max_size(95).unlinking());
    assert!(node.take(process(0), &request()).is_some());
    assert_eq!(node.threshold(md), Err(Error::MdInvalid));
    assert_eq!(node.kinds(), [PutStart, PutEnd, Unlink]);
}

#[test]
fn a_descriptor_goes_only_when_nothing_is_pending() {
    let mut node = Node::plain();
    let (_, md) = node.attach(entry(), md(100).threshold(2).unlinking());
    let first = node.begin(&request());
    let second = node.begin(&request());
    node.on_landed(second, NiFail::Ok);
    assert_eq!(node.threshold(md), Ok(0));
    assert_eq!(node.kinds(), [PutStart, PutStart, PutEnd]);
    node.on_landed(first, NiFail::Ok);
    assert_eq!(node.threshold(md), Err(Error::MdInvalid));
    assert_eq!(node.kinds(), [PutEnd, Unlink]);
}

#[test]
fn an_entry_with_unlink_goes_with_its_descriptor_and_another_stays_empty() {
    for (spec, left) in [(going(), Err(Error::MeInvalid)), (entry(), Ok(()))] {
        let mut node = Node::plain();
        let (entry, _) = node.attach(spec, md(100).threshold(1).unlinking());
        assert!(node.take(process(0), &request()).is_some());
        let again = node.interface.descriptor_attach(entry, md(100)).map(drop);
        assert_eq!(again, left);
    }
}

#[test]
fn an_entry_stays_with_a_descriptor_that_is_retained() {
    let mut node = Node::plain();
    let (entry, md) = node.attach(going(), md(100).threshold(1));
    assert!(node.take(process(0), &request()).is_some());
    assert_eq!(node.threshold(md), Ok(0));
    assert_eq!(node.kinds(), [PutStart, PutEnd]);
    assert_eq!(node.interface.entry_unlink(entry), Ok(()));
}

#[test]
fn unlinking_a_descriptor_by_hand_posts_no_event_and_takes_its_entry_along() {
    for (spec, left) in [(going(), Err(Error::MeInvalid)), (entry(), Ok(()))] {
        let mut node = Node::plain();
        let (entry, md) = node.attach(spec, md(100));
        assert_eq!(node.unlink(md), Ok(()));
        assert_eq!(node.unlink(md), Err(Error::MdInvalid));
        assert!(node.events().is_empty());
        assert_eq!(node.interface.entry_unlink(entry), left);
    }
}

/// Clients unlink a descriptor on its END event at once.
#[test]
fn a_descriptor_is_in_use_until_its_end_event() {
    let mut node = Node::plain();
    let (_, md) = node.attach(entry(), md(100));
    let landed = node.begin(&request());
    assert_eq!(node.unlink(md), Err(Error::MdInUse));
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.kinds(), [PutStart, PutEnd]);
    assert_eq!(node.unlink(md), Ok(()));
}

#[test]
fn a_descriptor_without_a_queue_goes_without_an_event() {
    let mut node = Node::plain();
    let (_, handle) = node.attach(entry(), md(100).unlinking());
    let silent = md(100).threshold(1);
    assert_eq!(node.update(handle, silent, node.queue), Ok(()));
    assert!(node.take(process(0), &request()).is_some());
    assert!(node.events().is_empty());
    assert_eq!(node.threshold(handle), Err(Error::MdInvalid));
}

#[test]
fn an_unlink_event_comes_although_start_and_end_are_disabled() {
    let quiet = MdOptions::EVENT_START_DISABLE | MdOptions::EVENT_END_DISABLE;
    let mut node = Node::plain();
    node.attach(entry(), md(100).with(quiet).threshold(1).unlinking());
    assert!(node.take(process(0), &request()).is_some());
    assert_eq!(node.kinds(), [Unlink]);
}

#[test]
fn a_failed_landing_unlinks_as_well() {
    let mut node = Node::plain();
    node.attach(entry(), md(100).threshold(1).unlinking());
    let landed = node.begin(&Request {
        length: 3,
        ..request()
    });
    node.on_landed(landed, NiFail::Segv);
    assert_eq!(node.kinds(), [PutStart, PutEnd, Unlink]);
}
