//! The last value that is allowed and the first that isn't, and what is freed beside what stays.

use crate::rig::*;
use lintel_engine4::{Backlog, DescriptorSpec, EntrySpec, SearchOp, Transfer, Work, number};
use lintel_types::{
    AckRequest, CountingEvent, Datatype, Error, EventKind, Handle, Limits, List, MdOptions,
    MeOptions, NiFail, NiOptions, Operation, ProcessId, PtOptions, QueueIndex,
};
use lintel_wire::{Request, Verb};

const BAD: Error = Error::ArgInvalid;

/// Puts are accepted, and nothing is posted when the entry is linked.
const QUIET: MeOptions = MeOptions::OP_PUT.union(MeOptions::EVENT_LINK_DISABLE);

fn node() -> Node {
    Wire::of(1, MATCHING).nodes.remove(0)
}

#[test]
fn an_interface_has_the_number_of_its_options_and_the_user_of_its_process() {
    let logical_list = NiOptions::NO_MATCHING | NiOptions::LOGICAL;
    for options in [MATCHING, NON_MATCHING, LOGICAL, logical_list] {
        let node = Node::new(process(0), options, Limits::DEFAULT);
        assert_eq!(node.interface.number(), number(options));
        assert_eq!(node.interface.uid(), UID);
    }
}

#[test]
fn a_live_object_has_a_live_handle_until_it_is_freed() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    let (md, ct, eq) = (node.descriptor(), node.counter(), node.queue);
    let me = node.append(entry(portal), List::Priority);
    for live in [md, ct, eq, me] {
        assert_eq!(node.interface.check_live(live), Ok(()));
    }
    node.interface.descriptor_release(md).unwrap();
    node.interface.counter_free(ct).unwrap();
    node.interface.unlink(me).unwrap();
    for gone in [md, ct, me, Handle::INVALID] {
        assert_eq!(node.interface.check_live(gone), Err(BAD), "{gone:?}");
    }
}

#[test]
fn a_queue_that_is_freed_leaves_the_other_queues_users_alone() {
    let mut node = node();
    let other = node.interface.queue_alloc(8).unwrap();
    let portal = node.portal(PtOptions::empty());
    let source = node.descriptor();
    let quiet = EntrySpec {
        options: QUIET,
        ..entry(portal)
    };
    node.append(quiet, List::Priority);
    node.interface.queue_free(other).unwrap();
    node.start(&put(source, process(0), portal)).unwrap();
    node.take(process(0), &request(portal));
    assert_eq!(node.kinds(), [EventKind::Send, EventKind::Put]);
    node.interface.queue_free(node.queue).unwrap();
    node.start(&put(source, process(0), portal)).unwrap();
    node.take(process(0), &request(portal));
    assert!(node.events().is_empty());
}

#[test]
fn a_counter_that_is_freed_leaves_the_other_counters_users_alone() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    let (counter, other) = (node.counter(), node.counter());
    let source = node.bind(DescriptorSpec {
        counter,
        options: MdOptions::EVENT_CT_SEND,
        ..descriptor()
    });
    let counting = EntrySpec {
        counter,
        options: QUIET | MeOptions::EVENT_CT_COMM,
        ..entry(portal)
    };
    node.append(counting, List::Priority);
    node.interface.counter_free(other).unwrap();
    node.start(&put(source, process(0), portal)).unwrap();
    node.take(process(0), &request(portal));
    assert_eq!(node.count(counter), (2, 0));
    node.interface.counter_free(counter).unwrap();
    // A counter that takes the slot counts nothing of it.
    let next = node.counter();
    node.start(&put(source, process(0), portal)).unwrap();
    node.take(process(0), &request(portal));
    assert_eq!(node.count(next), (0, 0));
}

#[test]
fn each_event_count_request_and_response_is_work() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    let counter = node.counter();
    let source = node.descriptor();
    let quiet = EntrySpec {
        options: QUIET,
        ..entry(portal)
    };
    node.append(quiet, List::Priority);
    node.interface.take_work();
    let one = CountingEvent {
        success: 1,
        failure: 0,
    };
    for _ in 0..2 {
        node.interface
            .counter_inc(counter, one, &mut node.host)
            .unwrap();
        let acknowledged = Transfer {
            ack: AckRequest::Full,
            ..put(source, process(0), portal)
        };
        node.start(&acknowledged).unwrap();
        let sent = node.host.sent.pop_back().unwrap();
        let outcome = node.take(process(0), &sent.request);
        node.on_response(&outcome.response.unwrap());
    }
    let work = node.interface.take_work();
    assert_eq!((work.counts, work.requests, work.responses), (2, 2, 2));
    assert_eq!(work.events, 6, "sent, put and acknowledged, twice");
    assert_eq!(node.interface.take_work(), Work::default());
}

/// Whether flow control lets a message to such an entry in while the queue has two slots left,
/// of which one is kept for the event that reports flow control.
fn one_event_suffices(options: MeOptions, min_free: u64) -> bool {
    let mut node = node();
    let portal = node.portal(PtOptions::FLOWCTRL);
    let queue = QueueIndex(node.queue.index());
    node.host.capacity.insert(queue, 2);
    let spec = EntrySpec {
        options: QUIET | options,
        min_free,
        ..entry(portal)
    };
    node.append(spec, List::Priority);
    node.take(process(0), &request(portal)).fail != Some(NiFail::PtDisabled)
}

#[test]
fn flow_control_keeps_a_slot_for_an_entry_that_may_unlink_and_reports_it() {
    let (local, quiet) = (MeOptions::MANAGE_LOCAL, MeOptions::EVENT_UNLINK_DISABLE);
    assert!(one_event_suffices(MeOptions::empty(), 0));
    assert!(one_event_suffices(MeOptions::empty(), 1), "it is unused");
    assert!(one_event_suffices(local, 0), "it never unlinks");
    assert!(!one_event_suffices(local, 1));
    assert!(!one_event_suffices(local, 2));
    assert!(one_event_suffices(local | quiet, 1));
    assert!(!one_event_suffices(MeOptions::USE_ONCE, 0));
    assert!(one_event_suffices(MeOptions::USE_ONCE | quiet, 0));
}

#[test]
fn a_list_entry_takes_messages_from_everywhere_whatever_source_it_names() {
    let logical = NiOptions::NO_MATCHING | NiOptions::LOGICAL;
    for (options, from) in [(NON_MATCHING, process(3)), (logical, process(0))] {
        let mut node = Wire::of(1, options).nodes.remove(0);
        let portal = node.portal(PtOptions::empty());
        let spec = EntrySpec {
            source: ProcessId::new(77, 78),
            ..entry(portal)
        };
        node.append(spec, List::Priority);
        let arrived = Request {
            interface: number(options),
            rank: 0,
            ..request(portal)
        };
        let outcome = node.take(from, &arrived);
        assert_eq!(outcome.fail, None, "{options:?}");
    }
}

#[test]
fn a_transfer_is_made_with_its_source_or_else_its_sink() {
    let (source, sink) = (Handle(3), Handle(4));
    assert_eq!(put(source, process(0), 0).md(), source);
    assert_eq!(get(sink, process(0), 0).md(), sink);
    let both = Transfer {
        sink,
        ..put(source, process(0), 0)
    };
    assert_eq!(both.md(), source);
}

#[test]
fn a_message_is_as_long_as_the_limit_and_no_longer() {
    let limits = Limits {
        max_msg_size: 5000,
        ..Limits::DEFAULT
    };
    let put_of = |length| Transfer {
        length,
        ..put(Handle(0), process(0), 0)
    };
    // More than an atomic may have.
    assert_eq!(put_of(5000).check_alone(&limits), Ok(()));
    assert_eq!(put_of(5001).check_alone(&limits), Err(BAD));
}

#[test]
fn an_atomic_is_as_long_as_the_limit_of_its_call() {
    let limits = Limits {
        max_atomic_size: 32,
        max_fetch_atomic_size: 16,
        ..Limits::DEFAULT
    };
    let longest = |verb, operation| {
        let fits = |length: &u64| {
            let transfer = Transfer {
                verb,
                operation,
                datatype: Datatype::Int64,
                length: *length,
                ..put(Handle(0), process(0), 0)
            };
            transfer.check_alone(&limits).is_ok()
        };
        (0..64).rev().find(fits)
    };
    assert_eq!(longest(Verb::Atomic, Operation::Sum), Some(32));
    assert_eq!(longest(Verb::FetchAtomic, Operation::Sum), Some(16));
    assert_eq!(longest(Verb::Swap, Operation::Swap), Some(16));
    assert_eq!(longest(Verb::Swap, Operation::CswapEq), Some(8));
    assert_eq!(longest(Verb::Swap, Operation::Sum), None);
    assert_eq!(longest(Verb::Atomic, Operation::Swap), None);
}

#[test]
fn a_transfer_reaches_the_end_of_its_descriptor_and_no_further() {
    let mut node = node();
    let source = node.descriptor();
    let at = |source_offset| Transfer {
        source_offset,
        ..put(source, process(0), 0)
    };
    assert_eq!(node.start(&at(4096 - 8)), Ok(()));
    assert_eq!(node.start(&at(4096 - 7)), Err(BAD));
    assert_eq!(node.start(&at(u64::MAX)), Err(BAD));
}

#[test]
fn a_body_stays_in_its_place_if_it_is_longer_than_the_eager_limit() {
    let mut node = node();
    let source = node.descriptor();
    for (length, stays) in [(EAGER, false), (EAGER + 1, true)] {
        let transfer = Transfer {
            length,
            ..put(source, process(0), 0)
        };
        node.start(&transfer).unwrap();
        let sent = node.host.sent.pop_back().unwrap();
        assert_eq!(sent.request.referenced, stays, "{length} bytes");
    }
    node.host.backlogs.insert(process(0), Backlog::High);
    let empty = Transfer {
        length: 0,
        ..put(source, process(0), 0)
    };
    node.start(&empty).unwrap();
    let sent = node.host.sent.pop_back().unwrap();
    assert!(!sent.request.referenced, "there is nothing to lend");
}

#[test]
fn an_operation_beyond_the_last_token_lends_nothing() {
    let mut node = node();
    let source = node.descriptor();
    let long = Transfer {
        length: EAGER + 1,
        ..put(source, process(0), 0)
    };
    let mut started = 0;
    let refused = loop {
        match node.start(&long) {
            Ok(()) => started += 1,
            Err(refused) => break refused,
        }
        node.host.sent.clear();
    };
    assert_eq!(refused, Error::NoSpace);
    assert_eq!(node.interface.loans(), started);
}

#[test]
fn a_queue_knows_how_many_entries_with_flow_control_report_to_it() {
    let mut node = node();
    let other = node.interface.queue_alloc(8).unwrap();
    let count = |node: &Node, queue: Handle| {
        node.interface
            .flow_controlled_portals(QueueIndex(queue.index()))
    };
    assert_eq!(count(&node, node.queue), 0);
    node.portal(PtOptions::FLOWCTRL);
    node.portal(PtOptions::empty());
    node.portal(PtOptions::FLOWCTRL);
    assert_eq!(count(&node, node.queue), 2);
    assert_eq!(count(&node, other), 0);
}

/// Whether an entry of so many bytes takes an unexpected message of 8 bytes at offset 4; a
/// search for such an entry must find the same.
fn takes_header(length: u64, options: MeOptions) -> bool {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    let overflow = EntrySpec {
        options: QUIET,
        ..entry(portal)
    };
    node.append(overflow, List::Overflow);
    let arrived = Request {
        remote_offset: 4,
        ..request(portal)
    };
    let response = node.take(process(1), &arrived).response.unwrap();
    assert_eq!(response.list, List::Overflow);
    assert_eq!(node.kinds(), [EventKind::Put]);
    let late = EntrySpec {
        buffer: bytes(length),
        options: QUIET | options,
        ..entry(portal)
    };
    let searched = node
        .interface
        .search(late.clone(), SearchOp::Only, &mut node.host);
    assert_eq!(searched, Ok(()));
    let is_found = node.events()[0].ni_fail == NiFail::Ok;
    node.append(late, List::Priority);
    let is_taken = node.kinds().contains(&EventKind::PutOverflow);
    assert_eq!(is_found, is_taken, "{length} bytes, {options:?}");
    is_taken
}

#[test]
fn an_unexpected_message_goes_to_an_entry_that_it_fits_or_that_truncates() {
    let local = MeOptions::MANAGE_LOCAL;
    assert!(takes_header(2, MeOptions::empty()));
    assert!(takes_header(12, MeOptions::NO_TRUNCATE));
    assert!(!takes_header(11, MeOptions::NO_TRUNCATE));
    assert!(takes_header(8, MeOptions::NO_TRUNCATE | local));
    assert!(!takes_header(7, MeOptions::NO_TRUNCATE | local));
}

#[test]
fn a_portal_table_entry_is_freed_once_no_message_lands() {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    let once = EntrySpec {
        options: QUIET | MeOptions::USE_ONCE,
        ..entry(portal)
    };
    node.append(once, List::Priority);
    let landed = node.begin(process(1), &request(portal));
    assert_eq!(node.interface.portal_free(portal), Err(Error::PtInUse));
    node.on_landed(landed, NiFail::Ok);
    assert_eq!(node.interface.portal_free(portal), Ok(()));
}

#[test]
fn only_an_entry_over_all_memory_may_name_unmapped_addresses() {
    let most = 1 << 46;
    let cases = [
        (8, MeOptions::empty(), true),
        (most - 1, MeOptions::empty(), true),
        (most, MeOptions::empty(), false),
        (most + 1, MeOptions::empty(), false),
        (most, MeOptions::IS_ACCESSIBLE, true),
    ];
    for (length, options, is_accessible) in cases {
        let mut node = node();
        let portal = node.portal(PtOptions::empty());
        let spec = EntrySpec {
            buffer: bytes(length),
            options: QUIET | options,
            ..entry(portal)
        };
        node.append(spec, List::Priority);
        let landed = node.begin(process(1), &request(portal));
        assert_eq!(landed.is_accessible(), is_accessible, "{length} bytes");
        assert_eq!(landed.mlength(), 8);
    }
}

#[test]
fn only_the_response_to_a_put_without_acknowledgement_is_silent() {
    let cases = [
        (Verb::Put, AckRequest::None, true),
        (Verb::Put, AckRequest::Full, false),
        (Verb::Get, AckRequest::None, false),
    ];
    for (verb, ack, is_silent) in cases {
        let mut node = node();
        let portal = node.portal(PtOptions::empty());
        node.append(entry(portal), List::Priority);
        let arrived = Request {
            verb,
            ack,
            ..request(portal)
        };
        let response = node.take(process(1), &arrived).response.unwrap();
        assert_eq!(response.silent, is_silent, "{verb:?} {ack:?}");
    }
}

#[test]
fn each_entry_and_each_header_that_is_looked_at_is_work() {
    for list in [List::Priority, List::Overflow] {
        let mut node = node();
        let portal = node.portal(PtOptions::empty());
        let quiet = EntrySpec {
            options: QUIET,
            ..entry(portal)
        };
        node.append(quiet.clone(), list);
        node.interface.take_work();
        node.take(process(1), &request(portal));
        assert_eq!(node.interface.take_work().walked, 1, "{list:?}");
        node.append(quiet, List::Priority);
        let headers = u64::from(list == List::Overflow);
        assert_eq!(node.interface.take_work().walked, headers, "{list:?}");
    }
}

/// Bytes that an atomic of 64-bit integers moves to an entry.
fn moved(verb: Verb, operation: Operation, length: u64, entry_length: u64) -> u64 {
    let mut node = node();
    let portal = node.portal(PtOptions::empty());
    let spec = EntrySpec {
        buffer: bytes(entry_length),
        ..entry(portal)
    };
    node.append(spec, List::Priority);
    let arrived = Request {
        verb,
        operation,
        length,
        datatype: Datatype::Int64,
        ..request(portal)
    };
    node.take(process(1), &arrived).response.unwrap().mlength
}

#[test]
fn atomics_move_whole_elements_and_conditional_swaps_one() {
    assert_eq!(moved(Verb::FetchAtomic, Operation::Sum, 24, 1000), 24);
    assert_eq!(moved(Verb::FetchAtomic, Operation::Sum, 24, 23), 16);
    assert_eq!(moved(Verb::Swap, Operation::Swap, 16, 1000), 16);
    assert_eq!(moved(Verb::Swap, Operation::Swap, 16, 15), 8);
    assert_eq!(moved(Verb::Swap, Operation::CswapEq, 8, 1000), 8);
    assert_eq!(moved(Verb::Swap, Operation::CswapEq, 8, 7), 0);
    assert_eq!(moved(Verb::Put, Operation::Min, 24, 23), 23);
}
