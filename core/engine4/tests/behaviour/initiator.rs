//! Operations from their start to their end.

use crate::rig::*;
use lintel_engine4::{Backlog, Deferred, DescriptorSpec, EntrySpec, Transfer};
use lintel_memory::{Buffer, Ghost};
use lintel_types::{
    AckRequest, CountingEvent, Error, EventKind, Handle, InterfaceNumber, Limits, List, MdOptions,
    MeOptions, NiFail, Operation, ProcessId, PtOptions,
};
use lintel_wire::{Response, Verb};

const QUIET: MeOptions = MeOptions::OP_PUT
    .union(MeOptions::OP_GET)
    .union(MeOptions::EVENT_LINK_DISABLE);

/// Two nodes; an entry for bits 7 at the second one's portal 0.
fn pair() -> Wire {
    pair_with(QUIET)
}

fn pair_with(options: MeOptions) -> Wire {
    let mut wire = Wire::of(2, MATCHING);
    let portal = wire.node(1).portal(PtOptions::empty());
    wire.node(1).append(
        EntrySpec {
            options,
            ..entry(portal)
        },
        List::Priority,
    );
    wire
}

/// A descriptor with a queue and a counter.
fn bind(node: &mut Node, options: MdOptions) -> (Handle, Handle) {
    let (queue, counter) = (node.queue, node.counter());
    (
        node.bind(DescriptorSpec {
            queue,
            counter,
            options,
            ..descriptor()
        }),
        counter,
    )
}

fn with_ack(ack: AckRequest, transfer: Transfer) -> Transfer {
    Transfer { ack, ..transfer }
}

#[test]
fn a_put_goes_all_the_way_and_comes_back() {
    let mut wire = pair();
    let source = wire.node(0).descriptor();
    let transfer = Transfer {
        source_offset: 16,
        ..put(source, process(1), 0)
    };
    wire.node(0)
        .start(&with_ack(AckRequest::Full, transfer))
        .unwrap();
    wire.deliver();
    assert_eq!(wire.node(0).kinds(), [EventKind::Send, EventKind::Ack]);
    assert_eq!(wire.node(1).kinds(), [EventKind::Put]);
    assert_eq!(wire.moved[0].source, [Ghost::new(0x1010, 8)]);
    assert_eq!(wire.moved[0].target, [Ghost::new(BASE, 8)]);
    assert_eq!(wire.node(0).interface.operations_under_way(), 0);
}

#[test]
fn a_put_to_self_is_a_put_like_any_other() {
    let mut wire = pair();
    let source = wire.node(1).descriptor();
    wire.node(1)
        .start(&with_ack(AckRequest::Full, put(source, process(1), 0)))
        .unwrap();
    wire.deliver();
    assert_eq!(
        wire.node(1).kinds(),
        [EventKind::Send, EventKind::Put, EventKind::Ack]
    );
}

#[test]
fn a_get_fills_its_sink_with_what_there_is() {
    let mut wire = pair();
    let sink = wire.node(0).descriptor();
    let transfer = Transfer {
        length: 64,
        remote_offset: 960,
        ..get(sink, process(1), 0)
    };
    wire.node(0).start(&transfer).unwrap();
    wire.deliver();
    let reply = wire.node(0).events()[0];
    assert_eq!(
        (reply.kind, reply.rlength, reply.mlength),
        (EventKind::Reply, 64, 40)
    );
    assert_eq!((reply.remote_offset, reply.user_ptr), (960, 0xdef));
    assert_eq!(wire.node(1).kinds(), [EventKind::Get]);
}

#[test]
fn a_fetch_reports_send_at_its_source_and_reply_at_its_sink() {
    let mut wire = pair();
    let (source, sent) = bind(wire.node(0), MdOptions::EVENT_CT_SEND);
    let (sink, replied) = bind(wire.node(0), MdOptions::EVENT_CT_REPLY);
    let transfer = atomic(source, process(1), 0);
    wire.node(0)
        .start(&Transfer {
            verb: Verb::FetchAtomic,
            sink,
            ..transfer
        })
        .unwrap();
    wire.deliver();
    assert_eq!(wire.node(0).kinds(), [EventKind::Send, EventKind::Reply]);
    assert_eq!(
        (wire.node(0).count(sent), wire.node(0).count(replied)),
        ((1, 0), (1, 0))
    );
}

#[test]
fn a_swap_carries_its_operand() {
    let mut wire = pair();
    let (source, sink) = (wire.node(0).descriptor(), wire.node(0).descriptor());
    let operand = [7; 32];
    let transfer = Transfer {
        verb: Verb::Swap,
        operation: Operation::CswapEq,
        sink,
        operand,
        ..atomic(source, process(1), 0)
    };
    wire.node(0).start(&transfer).unwrap();
    assert_eq!(wire.node(0).host.sent[0].operand, Some(operand));
}

#[test]
fn an_acknowledgement_is_reported_by_its_kind() {
    use AckRequest::*;
    for (ack, kinds, count) in [
        (None, vec![EventKind::Send], (0, 0)),
        (Full, vec![EventKind::Send, EventKind::Ack], (1, 0)),
        (Counting, vec![EventKind::Send], (1, 0)),
        (OperationCompleted, vec![EventKind::Send], (1, 0)),
    ] {
        let mut wire = pair();
        let (source, counter) = bind(wire.node(0), MdOptions::EVENT_CT_ACK);
        wire.node(0)
            .start(&with_ack(ack, put(source, process(1), 0)))
            .unwrap();
        wire.deliver();
        assert_eq!(wire.node(0).kinds(), kinds, "{ack:?}");
        assert_eq!(wire.node(0).count(counter), count, "{ack:?}");
    }
}

#[test]
fn a_refusal_is_reported_by_the_kind_of_acknowledgement() {
    use AckRequest::*;
    for (ack, acks, count) in [
        (None, vec![], (0, 0)),
        (Full, vec![NiFail::Dropped], (0, 1)),
        (Counting, vec![], (0, 1)),
        (OperationCompleted, vec![], (1, 0)),
    ] {
        let mut wire = pair();
        let disabled = MdOptions::EVENT_SUCCESS_DISABLE | MdOptions::EVENT_SEND_DISABLE;
        let (source, counter) = bind(wire.node(0), MdOptions::EVENT_CT_ACK | disabled);
        let transfer = Transfer {
            match_bits: 8,
            ..put(source, process(1), 0)
        };
        wire.node(0).start(&with_ack(ack, transfer)).unwrap();
        wire.deliver();
        let fails: Vec<_> = wire
            .node(0)
            .events()
            .iter()
            .map(|event| event.ni_fail)
            .collect();
        assert_eq!(
            fails, acks,
            "{ack:?}: failures are reported though successes aren't"
        );
        assert_eq!(wire.node(0).count(counter), count, "{ack:?}");
    }
}

#[test]
fn options_silence_the_events_that_they_name() {
    for (options, kinds) in [
        (MdOptions::empty(), vec![EventKind::Send, EventKind::Ack]),
        (MdOptions::EVENT_SEND_DISABLE, vec![EventKind::Ack]),
        (MdOptions::EVENT_SUCCESS_DISABLE, vec![]),
    ] {
        let mut wire = pair();
        let (source, _) = bind(wire.node(0), options);
        wire.node(0)
            .start(&with_ack(AckRequest::Full, put(source, process(1), 0)))
            .unwrap();
        wire.deliver();
        assert_eq!(wire.node(0).kinds(), kinds, "{options:#x}");
    }
}

#[test]
fn success_disabled_silences_replies_but_not_failed_ones() {
    let mut wire = pair();
    let (sink, _) = bind(wire.node(0), MdOptions::EVENT_SUCCESS_DISABLE);
    wire.node(0).start(&get(sink, process(1), 0)).unwrap();
    wire.deliver();
    assert_eq!(wire.node(0).kinds(), []);
    wire.node(0)
        .start(&Transfer {
            match_bits: 8,
            ..get(sink, process(1), 0)
        })
        .unwrap();
    wire.deliver();
    let reply = wire.node(0).events()[0];
    assert_eq!(
        (reply.kind, reply.ni_fail, reply.mlength),
        (EventKind::Reply, NiFail::Dropped, 0)
    );
}

#[test]
fn a_reply_that_cannot_be_put_in_place_has_failed() {
    let mut wire = pair();
    let (sink, counter) = bind(wire.node(0), MdOptions::EVENT_CT_REPLY);
    wire.reply_outcome = NiFail::Segv;
    wire.node(0).start(&get(sink, process(1), 0)).unwrap();
    wire.deliver();
    assert_eq!(wire.node(0).events()[0].ni_fail, NiFail::Segv);
    assert_eq!(wire.node(0).count(counter), (0, 1));
}

#[test]
fn counters_count_bytes_where_bytes_are_counted() {
    let bytes = MdOptions::EVENT_CT_BYTES;
    let mut wire = pair();
    let all = MdOptions::EVENT_CT_SEND | MdOptions::EVENT_CT_ACK | bytes;
    let (source, counter) = bind(wire.node(0), all);
    let transfer = Transfer {
        length: 100,
        remote_offset: 970,
        ..put(source, process(1), 0)
    };
    wire.node(0)
        .start(&with_ack(AckRequest::Counting, transfer))
        .unwrap();
    assert_eq!(wire.node(0).count(counter), (100, 0));
    wire.deliver();
    assert_eq!(wire.node(0).count(counter), (130, 0), "30 were not cut");
    let (sink, replied) = bind(wire.node(0), MdOptions::EVENT_CT_REPLY | bytes);
    wire.node(0)
        .start(&Transfer {
            remote_offset: 995,
            ..get(sink, process(1), 0)
        })
        .unwrap();
    wire.deliver();
    assert_eq!(wire.node(0).count(replied), (5, 0));
}

#[test]
fn completion_counts_one_though_bytes_are_counted() {
    let mut wire = pair();
    let (source, counter) = bind(
        wire.node(0),
        MdOptions::EVENT_CT_ACK | MdOptions::EVENT_CT_BYTES,
    );
    wire.node(0)
        .start(&with_ack(
            AckRequest::OperationCompleted,
            put(source, process(1), 0),
        ))
        .unwrap();
    wire.deliver();
    assert_eq!(wire.node(0).count(counter), (1, 0));
}

#[test]
fn an_acknowledgement_that_nothing_would_count_is_not_waited_for() {
    let mut wire = pair();
    let (source, counter) = bind(wire.node(0), MdOptions::EVENT_CT_SEND);
    for ack in [AckRequest::Counting, AckRequest::OperationCompleted] {
        wire.node(0)
            .start(&with_ack(ack, put(source, process(1), 0)))
            .unwrap();
        assert_eq!(wire.node(0).interface.operations_under_way(), 0, "{ack:?}");
    }
    assert_eq!(wire.node(0).count(counter), (2, 0));
    assert_eq!(wire.node(0).interface.descriptor_release(source), Ok(()));
}

#[test]
fn an_entry_that_acknowledges_nothing_is_never_heard_of() {
    let mut wire = pair_with(QUIET | MeOptions::ACK_DISABLE);
    let (source, counter) = bind(wire.node(0), MdOptions::EVENT_CT_ACK);
    wire.node(0)
        .start(&with_ack(AckRequest::Full, put(source, process(1), 0)))
        .unwrap();
    wire.deliver();
    assert_eq!(wire.node(0).kinds(), [EventKind::Send]);
    assert_eq!(wire.node(0).count(counter), (0, 0));
    assert_eq!(wire.node(0).interface.operations_under_way(), 0);
}

#[test]
fn a_referenced_body_is_free_only_when_its_response_comes() {
    for (ack, kinds) in [
        (AckRequest::None, vec![EventKind::Send]),
        (AckRequest::Full, vec![EventKind::Send, EventKind::Ack]),
    ] {
        let mut wire = pair();
        let source = wire.node(0).descriptor();
        let transfer = Transfer {
            length: EAGER + 1,
            ..put(source, process(1), 0)
        };
        wire.node(0).start(&with_ack(ack, transfer)).unwrap();
        assert!(wire.node(0).host.sent[0].request.referenced);
        assert_eq!(wire.node(0).kinds(), []);
        assert_eq!(
            wire.node(0).interface.descriptor_release(source),
            Err(Error::InUse)
        );
        wire.deliver();
        assert_eq!(wire.node(0).kinds(), kinds);
        assert_eq!(wire.node(0).interface.descriptor_release(source), Ok(()));
    }
}

#[test]
fn a_referenced_body_of_a_refused_put_was_sent_nevertheless() {
    let mut wire = pair();
    let source = wire.node(0).descriptor();
    let transfer = Transfer {
        length: 1000,
        match_bits: 8,
        ..put(source, process(1), 0)
    };
    wire.node(0).start(&transfer).unwrap();
    wire.deliver();
    let send = wire.node(0).events()[0];
    assert_eq!(
        (send.kind, send.ni_fail, send.mlength),
        (EventKind::Send, NiFail::Ok, 1000)
    );
}

#[test]
fn an_unreachable_target_fails_the_send_and_whatever_else_was_awaited() {
    use EventKind::*;
    for (length, ack, kinds, count) in [
        (8, AckRequest::None, vec![Send], (0, 1)),
        (8, AckRequest::Full, vec![Send, Ack], (0, 2)),
        (8, AckRequest::Counting, vec![Send], (0, 2)),
        (1000, AckRequest::None, vec![Send], (0, 1)),
        (1000, AckRequest::Full, vec![Send, Ack], (0, 2)),
    ] {
        let mut wire = pair();
        let options = MdOptions::EVENT_CT_SEND | MdOptions::EVENT_CT_ACK;
        let (source, counter) = bind(wire.node(0), options);
        wire.node(0).host.unreachable.insert(process(5));
        let transfer = Transfer {
            length,
            ..put(source, process(5), 0)
        };
        wire.node(0).start(&with_ack(ack, transfer)).unwrap();
        let events = wire.node(0).events();
        assert!(
            events
                .iter()
                .all(|event| event.ni_fail == NiFail::Undeliverable)
        );
        let posted: Vec<_> = events.iter().map(|event| event.kind).collect();
        assert_eq!(
            (posted, wire.node(0).count(counter)),
            (kinds, count),
            "{length} {ack:?}"
        );
        assert_eq!(wire.node(0).interface.descriptor_release(source), Ok(()));
    }
}

#[test]
fn an_unreachable_target_fails_a_get_and_both_ends_of_a_fetch() {
    let mut wire = pair();
    let (source, sink) = (wire.node(0).descriptor(), wire.node(0).descriptor());
    wire.node(0).host.unreachable.insert(process(5));
    wire.node(0).start(&get(sink, process(5), 0)).unwrap();
    assert_eq!(wire.node(0).kinds(), [EventKind::Reply]);
    let fetch = Transfer {
        verb: Verb::FetchAtomic,
        sink,
        ..atomic(source, process(5), 0)
    };
    wire.node(0).start(&fetch).unwrap();
    let events = wire.node(0).events();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.ni_fail))
        .collect();
    let failed = NiFail::Undeliverable;
    assert_eq!(
        kinds,
        [(EventKind::Send, failed), (EventKind::Reply, failed)]
    );
}

#[test]
fn an_operation_reported_undeliverable_fails_and_frees_its_descriptor() {
    let mut wire = pair();
    let source = wire.node(0).descriptor();
    for _ in 0..2 {
        wire.node(0)
            .start(&with_ack(AckRequest::Full, put(source, process(1), 0)))
            .unwrap();
    }
    let token = wire.node(0).host.sent[0].request.token;
    wire.node(0).events();
    let node = wire.node(0);
    node.interface.on_undeliverable(token, &mut node.host);
    let events = node.events();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].kind, events[0].ni_fail, events[0].mlength),
        (EventKind::Ack, NiFail::Undeliverable, 0)
    );
    assert_eq!(node.interface.operations_under_way(), 1);
    node.interface.on_undeliverable(token, &mut node.host);
    assert!(node.events().is_empty(), "a token is good once");
    let other = node.host.sent[1].request.token;
    node.interface.on_undeliverable(other, &mut node.host);
    assert_eq!(node.interface.descriptor_release(source), Ok(()));
}

#[test]
fn an_undeliverable_operation_fires_what_waits_for_its_failure() {
    let mut wire = pair();
    let (source, counter) = bind(wire.node(0), MdOptions::EVENT_CT_ACK);
    let fired = wire.node(0).counter();
    let node = wire.node(0);
    let one = CountingEvent {
        success: 1,
        failure: 0,
    };
    node.interface
        .trigger(Deferred::Increment(fired, one), counter, 1, &mut node.host)
        .unwrap();
    node.start(&with_ack(AckRequest::Counting, put(source, process(1), 0)))
        .unwrap();
    let token = node.host.sent[0].request.token;
    node.interface.on_undeliverable(token, &mut node.host);
    assert_eq!((node.count(counter), node.count(fired)), ((0, 1), (1, 0)));
}

#[test]
fn a_lost_target_fails_everything_on_its_way_there_and_nothing_else() {
    let mut wire = pair();
    let source = wire.node(0).descriptor();
    for target in [process(4), process(1), process(4)] {
        wire.node(0)
            .start(&with_ack(AckRequest::Full, put(source, target, 0)))
            .unwrap();
    }
    assert_eq!(wire.node(0).events().len(), 3, "sent");
    let node = wire.node(0);
    node.interface.on_target_lost(process(4), &mut node.host);
    let fails: Vec<_> = wire
        .node(0)
        .events()
        .iter()
        .map(|e| (e.kind, e.ni_fail))
        .collect();
    assert_eq!(fails, [(EventKind::Ack, NiFail::Undeliverable); 2]);
    let awaited: Vec<_> = wire.node(0).interface.awaited_targets().collect();
    assert_eq!(awaited, [process(1)]);
}

#[test]
fn a_response_to_nothing_or_a_second_one_is_ignored() {
    let mut wire = pair();
    let source = wire.node(0).descriptor();
    wire.node(0)
        .start(&with_ack(AckRequest::Full, put(source, process(1), 0)))
        .unwrap();
    let token = wire.node(0).host.sent[0].request.token;
    let response = response_to(token, false);
    for token in [0, u32::MAX, token ^ 1, token ^ 0x1_0000] {
        assert!(
            wire.node(0)
                .on_response(&Response { token, ..response })
                .is_none()
        );
    }
    assert_eq!(wire.node(0).kinds(), [EventKind::Send]);
    wire.node(0).on_response(&response);
    wire.node(0).on_response(&response);
    assert_eq!(wire.node(0).kinds(), [EventKind::Ack]);
}

#[test]
fn a_reply_in_place_needs_no_filling() {
    let mut wire = pair();
    let sink = wire.node(0).descriptor();
    wire.node(0).start(&get(sink, process(1), 0)).unwrap();
    let token = wire.node(0).host.sent[0].request.token;
    let response = Response {
        reply: true,
        interface: InterfaceNumber::new(true, false),
        placed: true,
        silent: false,
        token,
        mlength: 8,
        offset: 0,
        list: List::Overflow,
        fail: NiFail::Ok,
    };
    assert!(wire.node(0).on_response(&response).is_none());
    let reply = wire.node(0).events()[0];
    assert_eq!(
        (reply.kind, reply.list, reply.mlength),
        (EventKind::Reply, List::Overflow, 8)
    );
}

#[test]
fn a_target_cannot_claim_more_bytes_than_were_asked_for() {
    for placed in [false, true] {
        let mut wire = pair();
        let (sink, counter) = bind(
            wire.node(0),
            MdOptions::EVENT_CT_REPLY | MdOptions::EVENT_CT_BYTES,
        );
        wire.node(0).start(&get(sink, process(1), 0)).unwrap();
        let token = wire.node(0).host.sent[0].request.token;
        let (interface, silent, offset, list) =
            (InterfaceNumber::new(true, false), false, 0, List::Priority);
        let fail = NiFail::Ok;
        let mlength = 1 << 40;
        let response = Response {
            reply: true,
            interface,
            placed,
            silent,
            token,
            mlength,
            offset,
            list,
            fail,
        };
        if let Some((pieces, pending)) = wire.node(0).on_response(&response) {
            assert_eq!(pieces.length(), 8);
            let node = wire.node(0);
            node.interface
                .on_filled(pending, NiFail::Ok, &mut node.host);
        }
        assert_eq!(wire.node(0).events()[0].mlength, 8);
        assert_eq!(wire.node(0).count(counter), (8, 0));
    }
}

#[test]
fn transfers_that_cannot_be_meant_are_refused_and_leave_no_trace() {
    let mut wire = pair();
    let source = wire.node(0).descriptor();
    let mute = wire.node(0).bind(descriptor());
    let good = put(source, process(1), 0);
    let sum = atomic(source, process(1), 0);
    let fetch = Transfer {
        verb: Verb::FetchAtomic,
        sink: mute,
        ..sum.clone()
    };
    let swap = Transfer {
        verb: Verb::Swap,
        operation: Operation::Swap,
        ..fetch.clone()
    };
    let any = ProcessId::NID_ANY;
    for (name, transfer) in [
        (
            "end beyond",
            Transfer {
                source_offset: 4089,
                ..good.clone()
            },
        ),
        (
            "offset beyond",
            Transfer {
                source_offset: u64::MAX,
                ..good.clone()
            },
        ),
        (
            "portal",
            Transfer {
                portal: 65536,
                ..good.clone()
            },
        ),
        (
            "any node",
            Transfer {
                target: ProcessId::new(any, 100),
                ..good.clone()
            },
        ),
        (
            "any process",
            Transfer {
                target: ProcessId::new(1, any),
                ..good.clone()
            },
        ),
        (
            "descriptor",
            Transfer {
                source: Handle::INVALID,
                ..good.clone()
            },
        ),
        (
            "ack without queue",
            with_ack(AckRequest::Full, put(mute, process(1), 0)),
        ),
        (
            "ack without counter",
            with_ack(AckRequest::Counting, good.clone()),
        ),
        (
            "sink of a get",
            Transfer {
                sink_offset: 4096,
                ..get(source, process(1), 0)
            },
        ),
        (
            "part of an element",
            Transfer {
                length: 12,
                ..sum.clone()
            },
        ),
        (
            "swap as atomic",
            Transfer {
                operation: Operation::Swap,
                ..sum.clone()
            },
        ),
        (
            "sum as swap",
            Transfer {
                operation: Operation::Sum,
                ..swap.clone()
            },
        ),
        (
            "two conditional elements",
            Transfer {
                operation: Operation::CswapEq,
                length: 16,
                ..swap.clone()
            },
        ),
        (
            "no sink",
            Transfer {
                sink: Handle::INVALID,
                ..swap.clone()
            },
        ),
    ] {
        assert_eq!(
            wire.node(0).start(&transfer),
            Err(Error::ArgInvalid),
            "{name}"
        );
    }
    assert!(wire.node(0).host.sent.is_empty() && wire.node(0).kinds().is_empty());
    for transfer in [good, sum, fetch, swap] {
        assert_eq!(wire.node(0).start(&transfer), Ok(()));
    }
}

#[test]
fn atomics_beyond_their_size_are_refused() {
    let mut wire = pair();
    let buffer = Buffer::Contiguous(Ghost::new(0, u64::MAX));
    let source = wire.node(0).bind(DescriptorSpec {
        buffer,
        ..descriptor()
    });
    let most = Limits::DEFAULT.max_atomic_size;
    let sum = atomic(source, process(1), 0);
    assert_eq!(
        wire.node(0).start(&Transfer {
            length: most,
            ..sum.clone()
        }),
        Ok(())
    );
    let refused = wire.node(0).start(&Transfer {
        length: most + 8,
        ..sum
    });
    assert_eq!(refused, Err(Error::ArgInvalid));
    let most = Limits::DEFAULT.max_msg_size;
    let refused = wire.node(0).start(&Transfer {
        length: most + 1,
        ..put(source, process(1), 0)
    });
    assert_eq!(refused, Err(Error::ArgInvalid));
}

#[test]
fn an_unreliable_descriptor_has_no_full_acknowledgement() {
    let mut wire = pair();
    let (source, _) = bind(wire.node(0), MdOptions::UNRELIABLE);
    let good = put(source, process(1), 0);
    let refused = wire
        .node(0)
        .start(&with_ack(AckRequest::Full, good.clone()));
    assert_eq!(refused, Err(Error::ArgInvalid));
    assert_eq!(
        wire.node(0).start(&with_ack(AckRequest::Counting, good)),
        Ok(())
    );
}

#[test]
fn a_rank_goes_to_the_process_that_the_map_names() {
    let mut wire = Wire::of(2, LOGICAL);
    let portal = wire.node(1).portal(PtOptions::empty());
    wire.node(1)
        .append(entry_for_rank(portal, 0), List::Priority);
    let source = wire.node(0).descriptor();
    let transfer = put(source, ProcessId::from_rank(1), portal);
    wire.node(0)
        .start(&with_ack(AckRequest::Full, transfer.clone()))
        .unwrap();
    wire.deliver();
    let event = wire.node(1).events()[1];
    assert_eq!(
        (event.kind, event.initiator),
        (EventKind::Put, ProcessId::from_rank(0))
    );
    let nobody = Transfer {
        target: ProcessId::from_rank(2),
        ..transfer
    };
    assert_eq!(wire.node(0).start(&nobody), Err(Error::ArgInvalid));
}

#[test]
fn a_map_is_set_once_by_one_of_its_own() {
    let mut node = Node::new(process(1), LOGICAL, Limits::DEFAULT);
    assert_eq!(node.interface.map(), Err(Error::ArgInvalid));
    assert_eq!(
        node.interface.set_map(&[process(0)]),
        Err(Error::ArgInvalid)
    );
    assert_eq!(node.interface.set_map(&[]), Err(Error::ArgInvalid));
    assert_eq!(node.interface.id().rank(), ProcessId::RANK_ANY);
    assert_eq!(node.interface.set_map(&[process(0), process(1)]), Ok(()));
    assert_eq!(node.interface.set_map(&[process(1)]), Err(Error::Ignored));
    assert_eq!(node.interface.map(), Ok(&[process(0), process(1)][..]));
    assert_eq!(
        (node.interface.id().rank(), node.interface.physical_id()),
        (1, process(1))
    );
}

#[test]
fn a_physical_interface_has_no_map() {
    let mut node = Node::new(process(0), MATCHING, Limits::DEFAULT);
    assert_eq!(
        node.interface.set_map(&[process(0)]),
        Err(Error::ArgInvalid)
    );
    assert_eq!(node.interface.map(), Err(Error::ArgInvalid));
    assert_eq!(node.interface.id(), process(0));
}

#[test]
fn a_logical_interface_without_a_map_reaches_nobody() {
    let mut node = Node::new(process(0), LOGICAL, Limits::DEFAULT);
    let source = node.descriptor();
    let refused = node.start(&put(source, ProcessId::from_rank(0), 0));
    assert_eq!(refused, Err(Error::ArgInvalid));
}

#[test]
fn descriptors_may_lie_in_pieces() {
    let mut wire = pair();
    let buffer = Buffer::vector(vec![Ghost::new(100, 6), Ghost::new(200, 6)]);
    let source = wire.node(0).bind(DescriptorSpec {
        buffer,
        ..descriptor()
    });
    wire.node(0)
        .start(&Transfer {
            source_offset: 3,
            ..put(source, process(1), 0)
        })
        .unwrap();
    wire.deliver();
    assert_eq!(
        wire.moved[0].source,
        [Ghost::new(103, 3), Ghost::new(200, 5)]
    );
}

#[test]
fn a_short_put_to_a_process_that_is_behind_stays_in_its_place_until_it_is_answered() {
    let mut wire = pair();
    let source = wire.node(0).descriptor();
    wire.node(0).host.backlogs.insert(process(1), Backlog::High);
    wire.node(0).start(&put(source, process(1), 0)).unwrap();
    assert!(wire.node(0).host.sent[0].request.referenced);
    assert!(wire.node(0).events().is_empty(), "it is still needed");
    assert_eq!(wire.node(0).interface.loans(), 1);
    wire.deliver();
    assert_eq!(wire.node(0).kinds(), [EventKind::Send]);
    assert_eq!(wire.node(0).interface.loans(), 0);
}

#[test]
fn volatile_memory_is_copied_however_far_the_target_is_behind() {
    let mut wire = pair();
    let (source, _) = bind(wire.node(0), MdOptions::VOLATILE);
    wire.node(0).host.backlogs.insert(process(1), Backlog::High);
    wire.node(0).start(&put(source, process(1), 0)).unwrap();
    assert!(!wire.node(0).host.sent[0].request.referenced);
    assert_eq!(wire.node(0).kinds(), [EventKind::Send], "it is free");
}

#[test]
fn nothing_is_sent_to_a_process_whose_backlog_is_full_and_others_are_reached() {
    let mut wire = Wire::of(3, MATCHING);
    let source = wire.node(0).descriptor();
    wire.node(0).host.backlogs.insert(process(1), Backlog::Full);
    let refused = wire.node(0).start(&put(source, process(1), 0));
    assert_eq!(refused, Err(Error::NoSpace));
    assert!(wire.node(0).host.sent.is_empty());
    wire.node(0).start(&put(source, process(2), 0)).unwrap();
    assert_eq!(wire.node(0).host.sent.len(), 1);
}

#[test]
fn a_late_answer_to_an_earlier_interface_is_none_to_the_next_one() {
    let mut wire = pair();
    let source = wire.node(0).descriptor();
    let long = Transfer {
        length: EAGER + 1,
        ..put(source, process(1), 0)
    };
    wire.node(0).start(&long).unwrap();
    let late = wire.node(0).host.sent[0].request.token;
    let mut next = Node::new(process(0), MATCHING, Limits::DEFAULT);
    let tokens = wire.node(0).interface.next_tokens();
    next.interface.begin_with(tokens);
    let source = next.descriptor();
    next.start(&Transfer {
        length: EAGER + 1,
        ..put(source, process(1), 0)
    })
    .unwrap();
    assert_ne!(next.host.sent[0].request.token, late);
    let answer = Response {
        reply: false,
        interface: InterfaceNumber::new(false, false),
        placed: false,
        silent: false,
        token: late,
        mlength: EAGER + 1,
        offset: 0,
        list: List::Priority,
        fail: NiFail::Ok,
    };
    let taken = next.interface.on_response(&answer, &mut next.host);
    assert!(taken.is_none() && next.events().is_empty());
    assert_eq!(next.interface.loans(), 1, "it still awaits its own");
}
