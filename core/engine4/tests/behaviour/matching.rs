//! Which entry a message finds.

use crate::rig::*;
use lintel_engine4::EntrySpec;
use lintel_types::{
    Datatype, InterfaceNumber, List, MeOptions, NiFail, NiOptions, PortalIndex, ProcessId,
    PtOptions, UID_ANY,
};
use lintel_wire::Request;

/// A lone target with one portal table entry.
fn target(options: NiOptions) -> (Node, PortalIndex) {
    let mut wire = Wire::of(1, options);
    let portal = wire.node(0).portal(PtOptions::empty());
    (wire.nodes.remove(0), portal)
}

fn user_ptrs(node: &mut Node) -> Vec<u64> {
    node.events().iter().map(|event| event.user_ptr).collect()
}

const QUIET: MeOptions = MeOptions::OP_PUT
    .union(MeOptions::EVENT_LINK_DISABLE)
    .union(MeOptions::EVENT_UNLINK_DISABLE);

#[test]
fn bits_that_differ_are_dropped_and_counted() {
    let (mut node, portal) = target(MATCHING);
    node.append(entry(portal), List::Priority);
    let outcome = node.take(
        process(1),
        &Request {
            match_bits: 6,
            ..request(portal)
        },
    );
    assert_eq!(outcome.fail, Some(NiFail::Dropped));
    assert_eq!(node.interface.registers().drops, 1);
}

#[test]
fn ignored_bits_do_not_matter() {
    let (mut node, portal) = target(MATCHING);
    node.append(
        EntrySpec {
            ignore_bits: 0xf,
            ..entry(portal)
        },
        List::Priority,
    );
    assert_eq!(
        node.take(
            process(1),
            &Request {
                match_bits: 0xc,
                ..request(portal)
            }
        )
        .fail,
        None
    );
    let outcome = node.take(
        process(1),
        &Request {
            match_bits: 0x1c,
            ..request(portal)
        },
    );
    assert_eq!(outcome.fail, Some(NiFail::Dropped));
}

#[test]
fn the_entry_posted_first_wins_whether_it_names_its_bits_or_ignores_some() {
    let (mut node, portal) = target(MATCHING);
    let once = QUIET | MeOptions::USE_ONCE;
    for (user_ptr, ignore_bits) in [(1, 0), (2, u64::MAX), (3, 0), (4, 1), (5, 0)] {
        let spec = EntrySpec {
            user_ptr,
            ignore_bits,
            options: once,
            ..entry(portal)
        };
        node.append(spec, List::Priority);
    }
    for _ in 0..5 {
        node.take(process(1), &request(portal));
    }
    assert_eq!(user_ptrs(&mut node), [1, 2, 3, 4, 5]);
}

#[test]
fn the_priority_list_comes_before_the_overflow_list() {
    let (mut node, portal) = target(MATCHING);
    node.append(
        EntrySpec {
            user_ptr: 1,
            options: QUIET,
            ..entry(portal)
        },
        List::Overflow,
    );
    node.append(
        EntrySpec {
            user_ptr: 2,
            options: QUIET,
            ..entry(portal)
        },
        List::Priority,
    );
    node.take(process(1), &request(portal));
    let events = node.events();
    assert_eq!((events[0].user_ptr, events[0].list), (2, List::Priority));
}

#[test]
fn a_list_entry_takes_any_bits() {
    let (mut node, portal) = target(NON_MATCHING);
    node.append(
        EntrySpec {
            match_bits: 1,
            ..entry(portal)
        },
        List::Priority,
    );
    let message = Request {
        interface: InterfaceNumber::new(false, false),
        match_bits: u64::MAX,
        ..request(portal)
    };
    assert_eq!(node.take(process(1), &message).fail, None);
}

#[test]
fn match_entry_options_are_refused_for_list_entries() {
    let (mut node, portal) = target(NON_MATCHING);
    let spec = EntrySpec {
        options: MeOptions::MANAGE_LOCAL,
        ..entry(portal)
    };
    let refused = node.interface.append(&spec, List::Priority, &mut node.host);
    assert_eq!(refused, Err(lintel_types::Error::ArgInvalid));
    assert_eq!(node.kinds(), []);
}

#[test]
fn a_physical_source_may_leave_node_or_process_open() {
    for (nid, pid, taken) in [
        (2, 100, true),
        (ProcessId::NID_ANY, 100, true),
        (2, ProcessId::PID_ANY, true),
        (ProcessId::NID_ANY, 101, false),
        (3, ProcessId::PID_ANY, false),
    ] {
        let (mut node, portal) = target(MATCHING);
        node.append(
            EntrySpec {
                source: ProcessId::new(nid, pid),
                ..entry(portal)
            },
            List::Priority,
        );
        let outcome = node.take(process(1), &request(portal));
        assert_eq!(outcome.fail.is_none(), taken, "{nid} {pid}");
    }
}

#[test]
fn a_logical_source_is_a_rank_whatever_process_it_is() {
    for (wanted, taken) in [(3, true), (4, false), (ProcessId::RANK_ANY, true)] {
        let (mut node, portal) = target(LOGICAL);
        node.append(entry_for_rank(portal, wanted), List::Priority);
        let message = Request {
            interface: InterfaceNumber::new(true, true),
            rank: 3,
            ..request(portal)
        };
        assert_eq!(
            node.take(process(9), &message).fail.is_none(),
            taken,
            "{wanted}"
        );
        if taken {
            let initiator = node.events().last().map(|event| event.initiator);
            assert_eq!(initiator, Some(ProcessId::from_rank(3)));
        }
    }
}

#[test]
fn a_message_that_would_be_cut_passes_by_an_entry_without_truncation() {
    let (mut node, portal) = target(MATCHING);
    let strict = QUIET | MeOptions::NO_TRUNCATE;
    node.append(
        EntrySpec {
            user_ptr: 1,
            buffer: bytes(16),
            options: strict,
            ..entry(portal)
        },
        List::Priority,
    );
    node.append(
        EntrySpec {
            user_ptr: 2,
            options: QUIET,
            ..entry(portal)
        },
        List::Priority,
    );
    for (length, remote_offset) in [(16, 0), (8, 8), (8, 9), (17, 0), (1, u64::MAX)] {
        node.take(
            process(1),
            &Request {
                length,
                remote_offset,
                ..request(portal)
            },
        );
    }
    assert_eq!(user_ptrs(&mut node), [1, 1, 2, 2, 2]);
}

#[test]
fn a_locally_managed_entry_without_truncation_asks_for_what_is_left() {
    let (mut node, portal) = target(MATCHING);
    let strict = QUIET | MeOptions::NO_TRUNCATE | MeOptions::MANAGE_LOCAL;
    node.append(
        EntrySpec {
            buffer: bytes(16),
            options: strict,
            ..entry(portal)
        },
        List::Priority,
    );
    let message = Request {
        remote_offset: 1 << 40,
        length: 10,
        ..request(portal)
    };
    assert_eq!(node.take(process(1), &message).fail, None);
    assert_eq!(node.take(process(1), &message).fail, Some(NiFail::Dropped));
    assert_eq!(
        node.take(
            process(1),
            &Request {
                length: 6,
                ..message
            }
        )
        .fail,
        None
    );
}

#[test]
fn a_foreign_user_is_refused_and_counted_apart_from_drops() {
    let (mut node, portal) = target(MATCHING);
    node.append(
        EntrySpec {
            uid: UID + 1,
            ..entry(portal)
        },
        List::Priority,
    );
    let outcome = node.take(process(1), &request(portal));
    assert_eq!(outcome.fail, Some(NiFail::PermViolation));
    let registers = node.interface.registers();
    assert_eq!((registers.permission_violations, registers.drops), (1, 0));
}

#[test]
fn the_first_entry_that_matches_decides_on_permission_though_a_later_one_would_allow() {
    let (mut node, portal) = target(MATCHING);
    node.append(
        EntrySpec {
            uid: UID + 1,
            ..entry(portal)
        },
        List::Priority,
    );
    node.append(
        EntrySpec {
            uid: UID_ANY,
            ..entry(portal)
        },
        List::Priority,
    );
    assert_eq!(
        node.take(process(1), &request(portal)).fail,
        Some(NiFail::PermViolation)
    );
}

#[test]
fn each_operation_needs_its_permission() {
    use lintel_wire::Verb::*;
    let (put, get) = (MeOptions::OP_PUT, MeOptions::OP_GET);
    for (verb, allowed) in [
        (Put, vec![put, put | get]),
        (Atomic, vec![put, put | get]),
        (Get, vec![get, put | get]),
        (FetchAtomic, vec![put | get]),
        (Swap, vec![put | get]),
    ] {
        for options in [MeOptions::empty(), put, get, put | get] {
            let (mut node, portal) = target(MATCHING);
            node.append(
                EntrySpec {
                    options,
                    ..entry(portal)
                },
                List::Priority,
            );
            let outcome = node.take(
                process(1),
                &Request {
                    verb,
                    datatype: Datatype::Int64,
                    ..request(portal)
                },
            );
            let wanted = (!allowed.contains(&options)).then_some(NiFail::OpViolation);
            assert_eq!(outcome.fail, wanted, "{verb:?} {options:#x}");
            let violations = node.interface.registers().operation_violations;
            assert_eq!(violations, wanted.is_some() as i32);
        }
    }
}

#[test]
fn ten_thousand_other_entries_are_not_looked_at() {
    // Of MPI's receives each ignores the bits that name a protocol.
    for ignore_bits in [0, 3 << 60] {
        let (mut node, portal) = target(MATCHING);
        let quiet = EntrySpec {
            options: QUIET,
            ignore_bits,
            ..entry(portal)
        };
        for match_bits in 1000..11000 {
            let other = EntrySpec {
                match_bits,
                ..quiet.clone()
            };
            node.append(other, List::Priority);
        }
        node.append(quiet, List::Priority);
        node.interface.take_work();
        node.take(process(1), &request(portal));
        assert!(node.interface.take_work().walked < 32);
    }
}
