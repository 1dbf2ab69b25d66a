//! Match entries and lists (section 3.9), and the walk of section 4.2.

use crate::rig::*;
use lintel_engine3::{Dialect, EntrySpec};
use lintel_types::portals3::{Error, Limits, MdOptions, NID_ANY, PID_ANY, Position, Unlink};
use lintel_types::{Handle, PortalIndex, ProcessId};
use lintel_wire::portals3::{Request, Verb};

/// Attaches an entry, and a descriptor whose user_ptr is `name`.
fn place(node: &mut Node, name: u64, place: impl Fn(&mut Node) -> Handle) -> Handle {
    let entry = place(node);
    let mut spec = node
        .reporting(md(1000).only(MdOptions::OP_PUT).threshold(1))
        .unlinking();
    spec.md.user_ptr = name;
    node.interface.descriptor_attach(entry, spec).unwrap();
    entry
}

fn attach(node: &mut Node, name: u64, position: Position) -> Handle {
    place(node, name, |node| {
        let attached = node.interface.entry_attach(PORTAL, entry(), position);
        attached.unwrap()
    })
}

fn insert(node: &mut Node, name: u64, base: Handle, position: Position) -> Handle {
    place(node, name, |node| {
        let inserted = node.interface.entry_insert(base, entry(), position);
        inserted.unwrap()
    })
}

/// The names of the descriptors in the order in which messages reach them.
fn order(node: &mut Node) -> Vec<u64> {
    let mut names = Vec::new();
    while node.take(process(0), &request()).is_some() {
        names.push(node.events()[0].md.user_ptr);
    }
    names
}

#[test]
fn an_entry_is_attached_at_the_head_or_at_the_tail() {
    let mut node = Node::plain();
    attach(&mut node, 2, Position::After);
    attach(&mut node, 3, Position::After);
    attach(&mut node, 1, Position::Before);
    assert_eq!(order(&mut node), [1, 2, 3]);
}

#[test]
fn an_entry_is_inserted_directly_before_or_behind_its_base() {
    let mut node = Node::plain();
    let base = attach(&mut node, 3, Position::After);
    attach(&mut node, 6, Position::After);
    insert(&mut node, 1, base, Position::Before);
    insert(&mut node, 2, base, Position::Before);
    insert(&mut node, 5, base, Position::After);
    insert(&mut node, 4, base, Position::After);
    assert_eq!(order(&mut node), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn an_entry_takes_messages_from_the_process_that_it_names() {
    let me = process(0);
    for (source, taken) in [
        (me, true),
        (ProcessId::new(NID_ANY, me.pid), true),
        (ProcessId::new(me.nid, PID_ANY), true),
        (ANYONE, true),
        (ProcessId::new(me.nid, me.pid + 1), false),
        (ProcessId::new(me.nid + 1, me.pid), false),
        (ProcessId::new(NID_ANY, me.pid + 1), false),
        (ProcessId::new(me.nid + 1, PID_ANY), false),
    ] {
        let mut node = Node::plain();
        let spec = EntrySpec { source, ..entry() };
        node.attach(spec, md(100));
        assert_eq!(node.take(me, &request()).is_some(), taken, "{source:?}");
    }
}

/// Section 3.2.4: `(received ^ match) & ~ignore` is 0.
#[test]
fn bits_match_where_they_are_not_ignored() {
    for (match_bits, ignore_bits, taken) in [
        (7, 0, true),
        (6, 0, false),
        (6, 1, true),
        (0xf0, u64::MAX, true),
        (7 | 1 << 63, 0, false),
        (7 | 1 << 63, 1 << 63, true),
    ] {
        let mut node = Node::plain();
        let spec = EntrySpec {
            match_bits,
            ignore_bits,
            ..entry()
        };
        node.attach(spec, md(100));
        let found = node.take(process(0), &request()).is_some();
        assert_eq!(found, taken, "{match_bits:#x} {ignore_bits:#x}");
    }
}

#[test]
fn an_entry_without_a_descriptor_never_matches() {
    let mut node = Node::plain();
    let bare = node
        .interface
        .entry_attach(PORTAL, entry(), Position::Before);
    assert_eq!(node.take(process(0), &request()), None);
    let spec = node.reporting(md(100));
    assert!(
        node.interface
            .descriptor_attach(bare.unwrap(), spec)
            .is_ok()
    );
    assert!(node.take(process(0), &request()).is_some());
}

#[test]
fn an_entry_has_one_descriptor_at_most() {
    let mut node = Node::plain();
    let (entry, _) = node.attach(entry(), md(100));
    let second = node.interface.descriptor_attach(entry, md(100));
    assert_eq!(second, Err(Error::MeInUse));
}

#[test]
fn a_message_that_an_entry_does_not_take_goes_on_to_the_next() {
    let exchange = MdOptions::OP_PUT | MdOptions::OP_GET;
    for (first, verb) in [
        (md(100).only(MdOptions::OP_GET), Verb::Put),
        (md(100).only(MdOptions::OP_PUT), Verb::Get),
        (md(100).only(MdOptions::OP_PUT), Verb::GetPut),
        (md(100).only(MdOptions::OP_GET), Verb::GetPut),
        (md(7).only(exchange), Verb::Put),
        (md(100).only(exchange).threshold(0), Verb::Put),
        (md(100).only(exchange).max_size(101), Verb::Put),
    ] {
        let mut node = Node::plain();
        node.attach(entry(), first.clone());
        let mut second = md(1000).only(exchange);
        second.md.user_ptr = 2;
        node.attach(entry(), second);
        let request = Request { verb, ..request() };
        assert!(node.take(process(0), &request).is_some());
        assert_eq!(node.events()[0].md.user_ptr, 2, "{:?}", first.md);
    }
}

/// Entries that ignore bits are searched apart from the others.
#[test]
fn an_entry_that_ignores_bits_and_refuses_does_not_hide_a_later_exact_one() {
    let mut node = Node::plain();
    let wildcard = EntrySpec {
        ignore_bits: u64::MAX,
        ..entry()
    };
    node.attach(wildcard, md(4));
    let (_, exact) = node.attach(entry(), md(100));
    assert!(node.take(process(0), &request()).is_some());
    assert_eq!(node.events()[0].md_handle, exact);
}

#[test]
fn attach_any_takes_the_first_index_whose_list_is_empty() {
    let limits = Limits {
        max_pt_index: 2,
        ..Limits::DEFAULT
    };
    let mut node = Node::new(process(0), Dialect::Specification, limits);
    let interface = &mut node.interface;
    interface.entry_attach(1, entry(), Position::After).unwrap();
    let (first, handle) = interface.entry_attach_any(entry()).unwrap();
    assert_eq!(first, PortalIndex(0));
    let (second, _) = interface.entry_attach_any(entry()).unwrap();
    assert_eq!(second, PortalIndex(2));
    assert_eq!(interface.entry_attach_any(entry()), Err(Error::PtFull));
    interface.entry_unlink(handle).unwrap();
    let again = interface.entry_attach_any(entry()).unwrap();
    assert_eq!(again.0, PortalIndex(0));
}

#[test]
fn entries_beyond_the_limits_are_refused() {
    let limits = Limits {
        max_pt_index: 1,
        max_mes: 3,
        max_me_list: 2,
        ..Limits::DEFAULT
    };
    let mut node = Node::new(process(0), Dialect::Specification, limits);
    let mut attach = |portal| {
        let attached = node
            .interface
            .entry_attach(portal, entry(), Position::After);
        attached.map(drop)
    };
    assert_eq!(attach(2), Err(Error::PtIndexInvalid));
    assert_eq!(attach(u32::MAX), Err(Error::PtIndexInvalid));
    assert_eq!((attach(0), attach(0)), (Ok(()), Ok(())));
    assert_eq!(attach(0), Err(Error::MeListTooLong));
    assert_eq!(attach(1), Ok(()));
    assert_eq!(attach(1), Err(Error::NoSpace));
}

#[test]
fn an_entry_unlinks_with_its_descriptor_and_without_an_event() {
    let mut node = Node::plain();
    let (entry, md) = node.attach(entry(), md(100));
    assert_eq!(node.interface.entry_unlink(entry), Ok(()));
    assert_eq!(node.interface.entry_unlink(entry), Err(Error::MeInvalid));
    assert_eq!(node.threshold(md), Err(Error::MdInvalid));
    assert!(node.events().is_empty());
    assert_eq!(node.take(process(0), &request()), None);
}

#[test]
fn an_entry_is_in_use_while_an_operation_is_pending_on_its_descriptor() {
    let mut node = Node::plain();
    let (entry, _) = node.attach(entry(), md(100));
    let landed = node.begin(&request());
    assert_eq!(node.interface.entry_unlink(entry), Err(Error::MeInUse));
    node.on_landed(landed, lintel_types::NiFail::Ok);
    assert_eq!(node.interface.entry_unlink(entry), Ok(()));
}

#[test]
fn entry_and_descriptor_are_attached_in_one_step_or_not_at_all() {
    let mut node = Node::plain();
    let mut attach = |spec| {
        let attached = node
            .interface
            .entry_attach_with(PORTAL, entry(), Position::After, spec);
        attached.map(drop)
    };
    assert_eq!(attach(md(100).threshold(-2)), Err(Error::MdIllegal));
    assert_eq!(attach(md(100)), Ok(()));
    let entries = node.interface.status(lintel_engine3::register::MES + 3);
    assert_eq!(entries, Ok(1));
}

#[test]
fn entry_and_descriptor_are_inserted_in_one_step() {
    let mut node = Node::plain();
    let (base, _) = node.attach(entry(), md(100).threshold(1));
    let mut first = node.reporting(md(100).threshold(1));
    first.md.user_ptr = 1;
    let spec = EntrySpec {
        unlink: Unlink::Unlink,
        ..entry()
    };
    let before = Position::Before;
    let inserted = node.interface.entry_insert_with(base, spec, before, first);
    assert!(inserted.is_ok());
    assert!(node.take(process(0), &request()).is_some());
    assert_eq!(node.events()[0].md.user_ptr, 1);
}

#[test]
fn deep_lists_are_searched_no_longer_than_short_ones() {
    // The wildcard, and the one entry of those bits.
    assert_eq!(looked_at_before_a_wildcard(1), 2);
    assert_eq!(looked_at_before_a_wildcard(10_000), 2);
}

/// Entries that are looked at for a message to the last of so many that are before a wildcard.
fn looked_at_before_a_wildcard(entries: u64) -> u64 {
    let mut node = Node::plain();
    let wildcard = EntrySpec {
        ignore_bits: u64::MAX,
        ..entry()
    };
    let (base, _) = node.attach(wildcard, md(1 << 20));
    for bits in 0..entries {
        let spec = EntrySpec {
            match_bits: bits,
            ..entry()
        };
        let before = Position::Before;
        let inserted = node
            .interface
            .entry_insert_with(base, spec, before, md(100));
        assert!(inserted.is_ok());
    }
    node.interface.take_work();
    let last = Request {
        match_bits: entries - 1,
        ..request()
    };
    assert!(node.take(process(0), &last).is_some());
    node.interface.take_work().walked
}
