//! Access control (sections 2.3, 3.12) and the first checks of section 4.2.

use crate::rig::*;
use lintel_engine3::{AccessEntry, Dialect, Landing};
use lintel_types::portals3::{Error, Limits, NID_ANY, PID_ANY};
use lintel_types::{NiFail, PortalIndex, ProcessId};
use lintel_wire::portals3::Request;

const OPEN: AccessEntry = AccessEntry::OPEN;

/// A node with an entry for all, whose access entry 1 is replaced.
fn node(entry_1: AccessEntry) -> Node {
    let mut node = Node::plain();
    node.attach(entry(), md(100));
    assert_eq!(node.interface.access_entry(1, entry_1), Ok(()));
    node
}

fn through(access: u16) -> Request {
    Request {
        access,
        ..request()
    }
}

#[test]
fn each_entry_of_the_access_table_is_open_at_first() {
    let mut node = Node::plain();
    node.attach(entry(), md(1000));
    for access in 0..8 {
        assert!(node.take(process(0), &through(access)).is_some());
    }
    assert_eq!(node.drops(), 0);
}

#[test]
fn an_access_entry_admits_the_process_user_job_and_index_that_it_names() {
    let me = process(0);
    let fits = AccessEntry {
        process: me,
        uid: UID,
        jid: JID,
        portal: PORTAL,
    };
    for (entry, admitted) in [
        (fits, true),
        (OPEN, true),
        (
            AccessEntry {
                process: ProcessId::new(NID_ANY, me.pid),
                ..fits
            },
            true,
        ),
        (
            AccessEntry {
                process: ProcessId::new(me.nid, PID_ANY),
                ..fits
            },
            true,
        ),
        (
            AccessEntry {
                process: ProcessId::new(me.nid + 1, PID_ANY),
                ..fits
            },
            false,
        ),
        (
            AccessEntry {
                process: ProcessId::new(NID_ANY, me.pid + 1),
                ..fits
            },
            false,
        ),
        (
            AccessEntry {
                uid: UID + 1,
                ..fits
            },
            false,
        ),
        (
            AccessEntry {
                jid: JID + 1,
                ..fits
            },
            false,
        ),
        (
            AccessEntry {
                portal: PORTAL + 1,
                ..fits
            },
            false,
        ),
    ] {
        let mut node = node(entry);
        let taken = node.take(me, &through(1));
        assert_eq!(taken.is_some(), admitted, "{entry:?}");
        assert_eq!(node.drops(), u64::from(!admitted));
    }
}

#[test]
fn the_initiator_chooses_the_access_entry() {
    let closed = AccessEntry { uid: 1, ..OPEN };
    let mut node = node(closed);
    assert_eq!(node.take(process(0), &through(1)), None);
    assert!(node.take(process(0), &through(0)).is_some());
}

/// Section 2.2, figure 2.5; the first index beyond a table is one of them.
#[test]
fn indices_beyond_their_tables_drop_the_message() {
    let mut node = node(OPEN);
    let Limits {
        max_pt_index,
        max_ac_index,
        ..
    } = *node.interface.limits();
    for (portal, access) in [
        (max_pt_index as u16 + 1, 0),
        (u16::MAX, 0),
        (PORTAL as u16, max_ac_index as u16 + 1),
        (PORTAL as u16, u16::MAX),
    ] {
        let request = Request {
            portal: PortalIndex(portal),
            ..through(access)
        };
        assert_eq!(node.take(process(0), &request), None);
    }
    assert_eq!(node.drops(), 4);
}

#[test]
fn an_access_entry_beyond_its_table_or_for_an_index_beyond_the_other_is_refused() {
    let limits = Limits {
        max_pt_index: 5,
        max_ac_index: 2,
        ..Limits::DEFAULT
    };
    let mut node = Node::new(process(0), Dialect::Specification, limits);
    let mut set = |index, portal| {
        let entry = AccessEntry { portal, ..OPEN };
        node.interface.access_entry(index, entry)
    };
    assert_eq!(set(2, 5), Ok(()));
    assert_eq!(set(3, 5), Err(Error::AcIndexInvalid));
    assert_eq!(set(u32::MAX, 5), Err(Error::AcIndexInvalid));
    assert_eq!(set(2, 6), Err(Error::PtIndexInvalid));
    assert_eq!(set(2, u32::MAX), Ok(()), "PTL_PT_INDEX_ANY");
}

#[test]
fn a_dropped_message_ends_the_operation_at_an_initiator_that_waits() {
    let mut node = Node::plain();
    let Landing::Refused(Some(response)) = node.on_request(process(0), &request()) else {
        panic!("nothing matches");
    };
    assert_eq!((response.token, response.fail), (1, NiFail::Dropped));
    let unawaited = Request {
        token: 0,
        ..request()
    };
    assert!(matches!(
        node.on_request(process(0), &unawaited),
        Landing::Refused(None)
    ));
}
