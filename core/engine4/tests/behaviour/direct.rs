//! Direct entries: which qualify, and how an operation on one is reported.

use crate::rig::*;
use lintel_engine4::{Deferred, DescriptorSpec, EntrySpec, Transfer};
use lintel_memory::{Buffer, Ghost, Span};
use lintel_types::{
    AckRequest, CounterIndex, CountingEvent, Event, EventKind, Handle, Limits, List, MdOptions,
    MeOptions, NiOptions, Operation, PortalIndex, ProcessId, PtOptions,
};
use lintel_wire::Verb;

fn node(options: NiOptions) -> Node {
    Node::new(process(0), options, Limits::DEFAULT)
}

/// An entry that neither posts nor counts.
fn silent(portal: PortalIndex) -> EntrySpec<Ghost> {
    let spec = entry(portal);
    EntrySpec {
        options: spec.options | MeOptions::EVENT_COMM_DISABLE,
        ..spec
    }
}

fn is_direct(node: &Node, entry: Handle) -> bool {
    node.interface.direct_entry(entry).is_some()
}

#[test]
fn an_entry_that_leaves_no_trace_but_its_bytes_is_direct() {
    for kind in [MATCHING, NON_MATCHING, LOGICAL] {
        let mut node = node(kind);
        let portal = node.portal(PtOptions::empty());
        let source = match kind == LOGICAL {
            true => ProcessId::from_rank(ProcessId::RANK_ANY),
            false => silent(portal).source,
        };
        let spec = EntrySpec {
            source,
            ..silent(portal)
        };
        let entry = node.append(spec, List::Priority);
        let direct = node.interface.direct_entry(entry).expect("it qualifies");
        assert_eq!((direct.span.address(), direct.span.length()), (BASE, 1000));
        assert!(direct.takes_puts && direct.takes_gets);
        let ignored = if kind == NON_MATCHING { u64::MAX } else { 0 };
        assert_eq!(direct.ignore_bits, ignored);
    }
}

#[test]
fn an_entry_that_restricts_or_moves_is_not_direct() {
    let mut node = node(MATCHING);
    let portal = node.portal(PtOptions::empty());
    let quiet = silent(portal);
    let with = |options: MeOptions| EntrySpec {
        options: quiet.options | options,
        ..quiet.clone()
    };
    let pieces = vec![Ghost::new(BASE, 8), Ghost::new(BASE + 64, 8)];
    let others = [
        with(MeOptions::USE_ONCE),
        with(MeOptions::MANAGE_LOCAL),
        with(MeOptions::ACK_DISABLE),
        EntrySpec {
            uid: UID + 1,
            ..quiet.clone()
        },
        EntrySpec {
            source: process(1),
            ..quiet.clone()
        },
        EntrySpec {
            buffer: Buffer::vector(pieces),
            ..quiet.clone()
        },
    ];
    for spec in others {
        let entry = node.append(spec.clone(), List::Priority);
        assert!(!is_direct(&node, entry), "{spec:?}");
        node.interface.unlink(entry).unwrap();
    }
    let overflow = node.append(quiet.clone(), List::Overflow);
    assert!(!is_direct(&node, overflow));
    let entry = node.append(quiet, List::Priority);
    assert!(is_direct(&node, entry));
    node.interface.unlink(entry).unwrap();
    assert!(!is_direct(&node, entry), "the handle is stale");
}

#[test]
fn an_entry_that_posts_is_direct_unless_it_counts_too() {
    let mut node = node(MATCHING);
    let counter = node.counter();
    let portal = node.portal(PtOptions::empty());
    let mut posts = |counter, options| {
        let spec = entry(portal);
        let options = spec.options | options;
        let spec = EntrySpec {
            counter,
            options,
            ..spec
        };
        let entry = node.append(spec, List::Priority);
        let direct = node.interface.direct_entry(entry);
        node.interface.unlink(entry).unwrap();
        direct.map(|direct| direct.posts)
    };
    let (counts, silent) = (MeOptions::EVENT_CT_COMM, MeOptions::EVENT_SUCCESS_DISABLE);
    assert_eq!(posts(Handle::CT_NONE, MeOptions::empty()), Some(true));
    assert_eq!(posts(counter, MeOptions::empty()), Some(true));
    assert_eq!(posts(counter, counts), None);
    assert_eq!(posts(counter, counts | silent), Some(false));
    assert_eq!(posts(Handle::CT_NONE, silent), Some(false));
}

#[test]
fn an_entry_that_counts_is_direct_unless_that_triggers_something() {
    let mut node = node(MATCHING);
    let counter = node.counter();
    let portal = node.portal(PtOptions::empty());
    let quiet = silent(portal);
    for (more, by_bytes) in [
        (MeOptions::empty(), false),
        (MeOptions::EVENT_CT_BYTES, true),
    ] {
        let spec = EntrySpec {
            counter,
            options: quiet.options | MeOptions::EVENT_CT_COMM | more,
            ..quiet.clone()
        };
        let entry = node.append(spec, List::Priority);
        let direct = node.interface.direct_entry(entry).expect("it qualifies");
        let expected = (CounterIndex(counter.index()), by_bytes);
        assert_eq!(direct.counter, Some(expected));
        let before = node.count(counter).0;
        assert!(node.interface.count_direct(entry, 5, &mut node.host));
        assert_eq!(node.count(counter), (before + 5, 0));
        let by = CountingEvent {
            success: 1,
            failure: 0,
        };
        let increment = Deferred::Increment(counter, by);
        let trigger = |node: &mut Node| {
            let threshold = before + 6;
            node.interface
                .trigger(increment, counter, threshold, &mut node.host)
        };
        trigger(&mut node).unwrap();
        assert!(!is_direct(&node, entry));
        assert!(node.interface.count_direct(entry, 1, &mut node.host));
        assert_eq!(node.count(counter), (before + 7, 0), "it was triggered");
        assert!(is_direct(&node, entry));
        node.interface.unlink(entry).unwrap();
        assert!(!node.interface.count_direct(entry, 1, &mut node.host));
    }
}

#[test]
fn an_entry_of_a_disabled_or_flow_controlled_portal_is_not_direct() {
    let mut node = node(MATCHING);
    let controlled = node.portal(PtOptions::FLOWCTRL);
    let entry = node.append(silent(controlled), List::Priority);
    assert!(!is_direct(&node, entry));
    let portal = node.portal(PtOptions::empty());
    let entry = node.append(silent(portal), List::Priority);
    node.interface.portal_disable(portal).unwrap();
    assert!(!is_direct(&node, entry));
    node.interface.portal_enable(portal).unwrap();
    assert!(is_direct(&node, entry));
}

#[test]
fn only_the_first_entry_that_matches_is_direct() {
    let mut list = node(NON_MATCHING);
    let portal = list.portal(PtOptions::empty());
    let [first, second] = [0; 2].map(|_| list.append(silent(portal), List::Priority));
    assert!(is_direct(&list, first) && !is_direct(&list, second));
    let all: Vec<Handle> = list.interface.entries_of(portal).collect();
    assert_eq!(all, [first, second]);
    list.interface.unlink(first).unwrap();
    assert!(is_direct(&list, second));

    let mut matching = node(MATCHING);
    let portal = matching.portal(PtOptions::empty());
    let bits = |match_bits, ignore_bits| EntrySpec {
        match_bits,
        ignore_bits,
        ..silent(portal)
    };
    let seven = matching.append(bits(7, 0), List::Priority);
    let eight = matching.append(bits(8, 0), List::Priority);
    let again = matching.append(bits(7, 0), List::Priority);
    let any = matching.append(bits(0, u64::MAX), List::Priority);
    let behind = matching.append(bits(9, 0), List::Priority);
    let direct = [seven, eight, again, any, behind].map(|entry| is_direct(&matching, entry));
    assert_eq!(direct, [true, true, false, false, false]);
}

/// What the initiator of a transfer sees: events, and its counter.
fn reports(transfer: &Transfer, options: MdOptions, is_direct: bool) -> (Vec<Event>, (u64, u64)) {
    let mut wire = Wire::of(2, MATCHING);
    let portal = wire.node(1).portal(PtOptions::empty());
    wire.node(1).append(silent(portal), List::Priority);
    let node = wire.node(0);
    let counter = node.counter();
    let queue = node.queue;
    let handle = node.bind(DescriptorSpec {
        queue,
        counter,
        options,
        ..descriptor()
    });
    let named = |end: Handle| if end == Handle::INVALID { end } else { handle };
    let transfer = Transfer {
        source: named(transfer.source),
        sink: named(transfer.sink),
        ..transfer.clone()
    };
    if is_direct {
        node.host.direct.insert(process(1));
    }
    node.start(&transfer).unwrap();
    assert_eq!(node.host.sent.is_empty(), is_direct);
    assert_eq!(node.host.carried.len(), usize::from(is_direct));
    wire.deliver();
    let node = wire.node(0);
    assert_eq!(node.interface.operations_under_way(), 0);
    (node.events(), node.count(counter))
}

#[test]
fn an_operation_on_a_direct_entry_is_reported_as_any_other() {
    let used = Handle(1);
    let fetch = Transfer {
        verb: Verb::FetchAtomic,
        sink: used,
        sink_offset: 64,
        ..atomic(used, process(1), 0)
    };
    let swap = Transfer {
        verb: Verb::Swap,
        operation: Operation::CswapEq,
        ..fetch.clone()
    };
    let transfers = [
        put(used, process(1), 0),
        get(used, process(1), 0),
        atomic(used, process(1), 0),
        fetch,
        swap,
    ];
    let acks = [
        AckRequest::None,
        AckRequest::Full,
        AckRequest::Counting,
        AckRequest::OperationCompleted,
    ];
    let counts = MdOptions::EVENT_CT_SEND | MdOptions::EVENT_CT_ACK | MdOptions::EVENT_CT_REPLY;
    let all_options = [
        MdOptions::empty(),
        counts,
        counts | MdOptions::EVENT_CT_BYTES,
        counts | MdOptions::EVENT_SUCCESS_DISABLE,
        MdOptions::EVENT_SEND_DISABLE,
    ];
    for transfer in transfers {
        for ack in acks {
            let is_acked = matches!(transfer.verb, Verb::Put | Verb::Atomic);
            let transfer = Transfer {
                ack: if is_acked { ack } else { AckRequest::None },
                remote_offset: 24,
                ..transfer.clone()
            };
            for options in all_options {
                let sent = reports(&transfer, options, false);
                let carried = reports(&transfer, options, true);
                assert_eq!(carried, sent, "{transfer:?} {options:?}");
            }
        }
    }
}

#[test]
fn the_host_gets_the_memory_of_both_ends() {
    let mut wire = Wire::of(2, MATCHING);
    let node = wire.node(0);
    node.host.direct.insert(process(1));
    let (source, sink) = (node.descriptor(), node.descriptor());
    let transfer = Transfer {
        verb: Verb::FetchAtomic,
        sink,
        sink_offset: 64,
        source_offset: 8,
        ..atomic(source, process(1), 0)
    };
    node.start(&transfer).unwrap();
    let (carried, from, to) = &node.host.carried[0];
    assert_eq!(carried.verb, Verb::FetchAtomic);
    assert_eq!(from, &[Ghost::new(0x1008, 8)]);
    assert_eq!(to, &[Ghost::new(0x1040, 8)]);
}

#[test]
fn an_operation_on_an_own_direct_entry_is_counted_at_both_ends() {
    let mut node = node(MATCHING);
    let (arrived, ended) = (node.counter(), node.counter());
    let source = node.bind(DescriptorSpec {
        counter: ended,
        options: MdOptions::EVENT_CT_ACK,
        ..descriptor()
    });
    node.host.direct.insert(node.id);
    node.host.own_count = Some((CounterIndex(arrived.index()), 8));
    let by = CountingEvent {
        success: 1,
        failure: 0,
    };
    let increment = Deferred::Increment(ended, by);
    let triggered = node
        .interface
        .trigger(increment, arrived, 8, &mut node.host);
    triggered.unwrap();
    let transfer = Transfer {
        ack: AckRequest::Counting,
        ..put(source, node.id, 0)
    };
    node.start(&transfer).unwrap();
    assert_eq!(node.count(arrived), (8, 0));
    assert_eq!(node.count(ended), (2, 0), "it was triggered, too");
}

/// Options of a descriptor by which successful operations are counted.
const COUNTED: [MdOptions; 4] = [
    MdOptions::EVENT_CT_SEND,
    MdOptions::EVENT_CT_ACK,
    MdOptions::EVENT_CT_REPLY,
    MdOptions::EVENT_CT_BYTES,
];

#[test]
fn a_prepared_operation_is_counted_like_any_other() {
    let acks = [
        AckRequest::None,
        AckRequest::Counting,
        AckRequest::OperationCompleted,
    ];
    for bits in 0..1 << COUNTED.len() {
        let chosen = COUNTED.iter().enumerate();
        let chosen = chosen.filter(|(bit, _)| bits >> bit & 1 == 1);
        let options = chosen.fold(MdOptions::empty(), |all, (_, option)| all | *option);
        for (ack, verb) in acks.into_iter().flat_map(|ack| {
            [Verb::Put, Verb::Get, Verb::Atomic, Verb::FetchAtomic].map(|verb| (ack, verb))
        }) {
            let mut node = node(MATCHING);
            let counter = node.counter();
            let descriptor = node.bind(DescriptorSpec {
                counter,
                options,
                ..descriptor()
            });
            node.host.direct.insert(process(1));
            let fetches = matches!(verb, Verb::Get | Verb::FetchAtomic);
            let transfer = Transfer {
                verb,
                source: if verb == Verb::Get {
                    Handle::INVALID
                } else {
                    descriptor
                },
                sink: if fetches { descriptor } else { Handle::INVALID },
                ack: if fetches { AckRequest::None } else { ack },
                ..atomic(descriptor, process(1), 0)
            };
            node.start(&transfer).unwrap();
            assert_eq!(node.host.carried.len(), 1);
            let once = node.count(counter);
            let prepared = node
                .interface
                .prepare(&transfer)
                .expect("it is only counted");
            assert_eq!(prepared.target, process(1));
            node.interface
                .count_prepared(&prepared.counts, transfer.length, &mut node.host);
            assert_eq!(
                node.count(counter),
                (2 * once.0, 0),
                "{options:?} {ack:?} {verb:?}"
            );
            assert_eq!(prepared.counts.is_any(), once.0 > 0);
            assert_eq!(prepared.counts.first_by(transfer.length), once.0);
            let [first, second] = prepared.counts.counters();
            assert!(first.is_some() == (once.0 > 0) && second.is_none());
        }
    }
}

#[test]
fn a_counter_for_which_something_waits_is_not_added_to_by_the_host() {
    let mut node = node(MATCHING);
    let [counter, other] = [0; 2].map(|_| node.counter());
    let descriptor = node.bind(DescriptorSpec {
        counter,
        options: MdOptions::EVENT_CT_SEND,
        ..descriptor()
    });
    let prepared = node.interface.prepare(&put(descriptor, process(1), 0));
    let counts = prepared.expect("it is only counted").counts;
    assert!(node.interface.first_successes(&counts).is_some());
    let by = CountingEvent {
        success: 3,
        failure: 0,
    };
    // The last one is reached as well as the first.
    for threshold in [5, u64::MAX] {
        let waiting = Deferred::Increment(other, by);
        let (interface, host) = (&mut node.interface, &mut node.host);
        interface
            .trigger(waiting, counter, threshold, host)
            .unwrap();
        assert!(interface.first_successes(&counts).is_none());
        let success = threshold;
        let value = CountingEvent {
            success,
            failure: 0,
        };
        interface.counter_set(counter, value, host).unwrap();
        assert!(interface.first_successes(&counts).is_some());
    }
    assert_eq!(node.count(other), (6, 0));
}

#[test]
fn an_operation_that_posts_or_is_wrong_is_not_prepared() {
    let mut node = node(MATCHING);
    let queue = node.queue;
    let posting = node.bind(DescriptorSpec {
        queue,
        ..descriptor()
    });
    let silent = node.bind(descriptor());
    let is_prepared = |transfer: &Transfer| node.interface.prepare(transfer).is_some();
    assert!(is_prepared(&put(silent, process(1), 0)));
    assert!(!is_prepared(&put(posting, process(1), 0)));
    assert!(!is_prepared(&Transfer {
        portal: u32::MAX,
        ..put(silent, process(1), 0)
    }));
    assert!(!is_prepared(&Transfer {
        source_offset: u64::MAX,
        ..put(silent, process(1), 0)
    }));
}

#[test]
fn what_was_prepared_ends_with_its_descriptor_and_counter() {
    let mut node = node(MATCHING);
    let counter = node.counter();
    let [one, other] = [0, 0].map(|_| {
        node.bind(DescriptorSpec {
            counter,
            options: MdOptions::EVENT_CT_ACK,
            ..descriptor()
        })
    });
    let prepare = |node: &Node| {
        let prepared = node.interface.prepare(&put(one, process(1), 0));
        prepared.expect("it is only counted").counts
    };
    let first = prepare(&node);
    assert!(node.interface.is_prepared(&first));
    node.interface.descriptor_release(other).unwrap();
    assert!(!node.interface.is_prepared(&first));
    let second = prepare(&node);
    node.interface.counter_free(counter).unwrap();
    assert!(!node.interface.is_prepared(&second));
    assert!(node.interface.is_prepared(&prepare(&node)));
}

#[test]
fn events_of_operations_on_direct_entries_stay_behind_those_of_operations_sent_before() {
    let mut wire = Wire::of(2, MATCHING);
    let portal = wire.node(1).portal(PtOptions::default());
    wire.node(1).append(silent(portal), List::Priority);
    let queue = wire.node(0).queue;
    let posting = wire.node(0).bind(DescriptorSpec {
        queue,
        options: MdOptions::EVENT_SEND_DISABLE,
        ..descriptor()
    });
    let put = Transfer {
        ack: AckRequest::Full,
        ..put(posting, process(1), portal)
    };
    let get = get(posting, process(1), portal);
    wire.node(0).start(&put).unwrap();
    // From now on its host could.
    wire.node(0).host.direct.insert(process(1));
    for transfer in [&put, &get] {
        wire.node(0).start(transfer).unwrap();
        assert!(wire.node(0).host.carried.is_empty());
    }
    let unseen = Transfer {
        sink: wire.node(0).bind(descriptor()),
        ..get.clone()
    };
    wire.node(0).start(&unseen).unwrap();
    assert_eq!(wire.node(0).host.carried.len(), 1, "it posts nothing");
    wire.deliver();
    let (ack, reply) = (EventKind::Ack, EventKind::Reply);
    assert_eq!(wire.node(0).kinds(), [ack, ack, reply]);
    for transfer in [&get, &put] {
        wire.node(0).start(transfer).unwrap();
    }
    assert_eq!(wire.node(0).host.carried.len(), 3, "nothing is under way");
    assert_eq!(wire.node(0).kinds(), [reply, ack]);
}
