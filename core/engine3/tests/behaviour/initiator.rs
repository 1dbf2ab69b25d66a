//! Data movement (section 3.13) at the initiator: what is sent, from where, and what counts.

use crate::rig::*;
use lintel_engine3::{Backlog, Config, Dialect, Transfer};
use lintel_memory::Ghost;
use lintel_types::portals3::{Error, EventKind::*, Limits, MdOptions, NID_ANY, PID_ANY};
use lintel_types::{Handle, NiFail, ProcessId};
use lintel_wire::MAX_LENGTH;
use lintel_wire::portals3::{Request, Response, Verb};

const TO: usize = 1;

/// Two nodes; node 1 has an entry over 1000 bytes, and node 0 a descriptor over 100.
fn wire() -> (Wire, Handle) {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(100));
    (wire, md)
}

#[test]
fn a_put_sends_all_of_its_descriptor_and_what_the_call_says() {
    let (mut wire, md) = wire();
    let transfer = Transfer {
        access: 3,
        match_bits: 0x55,
        remote_offset: 9,
        hdr_data: 10,
        ..acked_put(md, process(TO))
    };
    wire.node(0).start(&transfer).unwrap();
    let sent = wire.node(0).host.sent.pop_front().unwrap();
    let expected = Request {
        access: 3,
        match_bits: 0x55,
        remote_offset: 9,
        hdr_data: 10,
        length: 100,
        token: sent.request.token,
        ..request()
    };
    assert_eq!((sent.to, sent.request), (process(TO), expected));
    assert_ne!(sent.request.token, 0);
    assert_eq!(sent.pieces, [Ghost::new(BASE, 100)]);
}

#[test]
fn a_put_without_acknowledgement_awaits_no_response() {
    let (mut wire, md) = wire();
    wire.node(0).start(&put(md, process(TO))).unwrap();
    let sent = &wire.node(0).host.sent[0].request;
    assert_eq!((sent.token, sent.ack), (0, false));
    assert_eq!(wire.node(0).interface.operations_under_way(), 0);
}

#[test]
fn a_region_is_a_part_of_the_descriptor() {
    let (mut wire, md) = wire();
    let region = |offset, length| Transfer {
        source_offset: offset,
        length: Some(length),
        ..put(md, process(TO))
    };
    for (offset, length, outcome) in [
        (0, 100, Ok(())),
        (40, 60, Ok(())),
        (100, 0, Ok(())),
        (40, 61, Err(Error::MdIllegal)),
        (101, 0, Err(Error::MdIllegal)),
        (u64::MAX, 2, Err(Error::MdIllegal)),
        (2, u64::MAX, Err(Error::MdIllegal)),
    ] {
        assert_eq!(wire.node(0).start(&region(offset, length)), outcome);
    }
    assert_eq!(
        wire.node(0).host.sent[1].pieces,
        [Ghost::new(BASE + 40, 60)]
    );
}

#[test]
fn a_get_asks_for_all_of_its_descriptor_and_lands_there() {
    let (mut wire, md) = wire();
    wire.run(0, &get(md, process(TO)));
    assert_eq!(wire.moved[0].request.length, 100);
    assert_eq!(wire.moved[0].sink, [Ghost::new(BASE, 100)]);
    assert_eq!(wire.node(0).kinds(), [ReplyStart, ReplyEnd]);
    assert_eq!(wire.node(TO).kinds(), [GetStart, GetEnd]);
}

#[test]
fn a_get_of_a_region_lands_in_the_region() {
    let (mut wire, md) = wire();
    let transfer = Transfer {
        sink_offset: 30,
        length: Some(20),
        ..get(md, process(TO))
    };
    wire.run(0, &transfer);
    assert_eq!(wire.moved[0].sink, [Ghost::new(BASE + 30, 20)]);
    let reply = &wire.node(0).events()[1];
    assert_eq!((reply.rlength, reply.mlength, reply.offset), (20, 20, 30));
}

#[test]
fn a_get_that_the_target_cuts_fills_what_was_moved() {
    let mut wire = Wire::of(2);
    wire.node(TO)
        .attach(entry(), md(40).with(MdOptions::TRUNCATE));
    let md = wire.node(0).bind(md(100));
    wire.run(0, &get(md, process(TO)));
    assert_eq!(wire.moved[0].sink, [Ghost::new(BASE, 40)]);
    let reply = &wire.node(0).events()[1];
    assert_eq!((reply.rlength, reply.mlength), (100, 40));
}

#[test]
fn an_exchange_sends_its_source_and_returns_to_its_sink() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(100));
    let mut elsewhere = md(8);
    elsewhere.md.user_ptr = 2;
    let (source, sink) = (wire.node(0).bind(md(8)), wire.node(0).bind(elsewhere));
    wire.run(0, &getput(sink, source, process(TO)));
    assert_eq!(wire.node(TO).kinds(), [GetPutStart, GetPutEnd]);
    let events = wire.node(0).events();
    let seen: Vec<_> = events.iter().map(|e| (e.kind, e.md_handle)).collect();
    let expected = [
        (SendStart, source),
        (SendEnd, source),
        (ReplyStart, sink),
        (ReplyEnd, sink),
    ];
    assert_eq!(seen, expected);
    assert_eq!(wire.moved[0].sink, [Ghost::new(BASE, 8)]);
}

#[test]
fn the_earlier_bytes_of_an_exchange_are_cut_to_its_sink() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(100));
    let (source, sink) = (wire.node(0).bind(md(8)), wire.node(0).bind(md(5)));
    wire.run(0, &getput(sink, source, process(TO)));
    assert_eq!(wire.moved[0].target, [Ghost::new(BASE, 8)]);
    assert_eq!(wire.moved[0].sink, [Ghost::new(BASE, 5)]);
}

#[test]
fn an_exchange_longer_than_the_limit_is_illegal() {
    let mut node = Node::plain();
    let (short, long) = (node.bind(md(64)), node.bind(md(65)));
    let to = process(TO);
    assert_eq!(node.start(&getput(short, long, to)), Err(Error::MdIllegal));
    assert_eq!(node.start(&getput(long, short, to)), Err(Error::MdIllegal));
    assert_eq!(node.start(&getput(short, short, to)), Ok(()));
    let region = Transfer {
        length: Some(64),
        ..getput(long, long, to)
    };
    assert_eq!(node.start(&region), Ok(()));
}

#[test]
fn a_message_longer_than_a_header_can_say_is_illegal() {
    let mut node = Node::plain();
    let longest = node.bind(md(MAX_LENGTH));
    let longer = node.bind(md(MAX_LENGTH + 1));
    assert_eq!(node.start(&put(longest, process(TO))), Ok(()));
    let refused = node.start(&put(longer, process(TO)));
    assert_eq!(refused, Err(Error::MdIllegal));
    assert_eq!(node.start(&get(longer, process(TO))), refused);
}

#[test]
fn a_wildcard_is_no_target() {
    let (mut wire, md) = wire();
    for target in [
        ANYONE,
        ProcessId::new(NID_ANY, 1),
        ProcessId::new(1, PID_ANY),
    ] {
        let refused = wire.node(0).start(&put(md, target));
        assert_eq!(refused, Err(Error::ProcessInvalid));
    }
}

#[test]
fn an_index_that_no_message_carries_is_refused() {
    let (mut wire, md) = wire();
    let portal = Transfer {
        portal: 0x1_0000,
        ..put(md, process(TO))
    };
    let access = Transfer {
        access: 0x1_0000,
        ..put(md, process(TO))
    };
    assert_eq!(wire.node(0).start(&portal), Err(Error::PtIndexInvalid));
    assert_eq!(wire.node(0).start(&access), Err(Error::AcIndexInvalid));
}

#[test]
fn an_inactive_descriptor_is_no_source_and_no_sink() {
    let mut node = Node::plain();
    let (to, spent) = (process(TO), node.bind(md(8).threshold(0)));
    let filled = node.bind(md(8).max_size(9));
    let good = node.bind(md(8));
    for transfer in [
        put(spent, to),
        get(spent, to),
        getput(spent, good, to),
        getput(good, spent, to),
        put(filled, to),
        put(Handle::INVALID, to),
    ] {
        assert_eq!(node.start(&transfer), Err(Error::MdInvalid));
    }
    assert!(node.host.sent.is_empty() && node.events().is_empty());
    assert_eq!(node.interface.operations_under_way(), 0);
}

#[test]
fn a_put_counts_when_it_is_sent_and_when_it_is_acknowledged() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(8).threshold(5));
    wire.run(0, &put(md, process(TO)));
    assert_eq!(wire.node(0).threshold(md), Ok(4));
    wire.run(0, &acked_put(md, process(TO)));
    assert_eq!(wire.node(0).threshold(md), Ok(2));
    assert_eq!(
        wire.node(0).kinds(),
        [SendStart, SendEnd, SendStart, SendEnd, Ack]
    );
}

#[test]
fn an_acknowledgement_to_an_inactive_descriptor_is_dropped() {
    for retained in [true, false] {
        let mut wire = Wire::of(2);
        wire.node(TO).attach(entry(), md(1000));
        let once = md(8).threshold(1);
        let once = if retained { once } else { once.unlinking() };
        let md = wire.node(0).bind(once);
        wire.run(0, &acked_put(md, process(TO)));
        let kinds = wire.node(0).kinds();
        assert_eq!(kinds[..2], [SendStart, SendEnd]);
        assert_eq!(kinds.len(), if retained { 2 } else { 3 });
        assert_eq!(wire.node(0).drops(), 1);
    }
}

/// The descriptor may go while the acknowledgement is on its way.
#[test]
fn an_acknowledgement_does_not_come_to_another_descriptor_in_the_same_place() {
    let (mut wire, md_0) = wire();
    wire.node(0).start(&acked_put(md_0, process(TO))).unwrap();
    wire.node(0).events();
    assert_eq!(wire.node(0).unlink(md_0), Ok(()));
    let later = wire.node(0).bind(md(8));
    assert_eq!(later.index(), md_0.index());
    wire.deliver();
    assert!(wire.node(0).events().is_empty());
    assert_eq!(wire.node(0).drops(), 1);
}

#[test]
fn an_acknowledgement_counts_without_an_event_queue() {
    let (mut wire, _) = wire();
    let silent = wire.node(0).interface.descriptor_bind(md(8).threshold(2));
    let silent = silent.unwrap();
    wire.run(0, &acked_put(silent, process(TO)));
    assert_eq!(wire.node(0).threshold(silent), Ok(0));
}

#[test]
fn a_get_counts_when_its_reply_comes() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(8).threshold(2).unlinking());
    wire.node(0).start(&get(md, process(TO))).unwrap();
    assert_eq!(wire.node(0).threshold(md), Ok(2));
    wire.deliver();
    assert_eq!(wire.node(0).threshold(md), Ok(1));
    wire.run(0, &get(md, process(TO)));
    assert_eq!(
        wire.node(0).kinds(),
        [ReplyStart, ReplyEnd, ReplyStart, ReplyEnd, Unlink]
    );
}

#[test]
fn a_reply_to_an_inactive_descriptor_is_dropped() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(8).threshold(1).unlinking());
    for _ in 0..2 {
        wire.node(0).start(&get(md, process(TO))).unwrap();
    }
    wire.step(0);
    assert_eq!(wire.node(0).kinds(), [ReplyStart, ReplyEnd]);
    wire.step(0);
    assert_eq!(
        wire.node(0).kinds(),
        [Unlink],
        "nothing is pending any more"
    );
    assert_eq!(wire.node(0).drops(), 1);
    assert_eq!(wire.node(0).threshold(md), Err(Error::MdInvalid));
}

#[test]
fn an_exchange_counts_at_both_descriptors() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(1000));
    let source = wire.node(0).bind(md(8).threshold(3));
    let sink = wire.node(0).bind(md(8).threshold(3));
    wire.run(0, &getput(sink, source, process(TO)));
    let node = wire.node(0);
    assert_eq!(
        (node.threshold(source), node.threshold(sink)),
        (Ok(2), Ok(2))
    );
}

#[test]
fn a_descriptor_is_in_use_until_the_reply() {
    let (mut wire, md) = wire();
    wire.node(0).start(&get(md, process(TO))).unwrap();
    assert_eq!(wire.node(0).unlink(md), Err(Error::MdInUse));
    wire.deliver();
    assert_eq!(wire.node(0).unlink(md), Ok(()));
}

#[test]
fn a_short_put_leaves_its_descriptor_free_at_once() {
    let (mut wire, md) = wire();
    wire.node(0).start(&acked_put(md, process(TO))).unwrap();
    assert_eq!(wire.node(0).kinds(), [SendStart, SendEnd]);
    assert_eq!(wire.node(0).unlink(md), Ok(()));
}

#[test]
fn a_long_put_is_lent_until_the_response() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(10_000));
    let md = wire.node(0).bind(md(EAGER + 1));
    wire.node(0).start(&put(md, process(TO))).unwrap();
    assert!(wire.node(0).host.sent[0].request.referenced);
    assert_eq!(wire.node(0).kinds(), [SendStart]);
    assert_eq!(wire.node(0).unlink(md), Err(Error::MdInUse));
    assert_eq!(wire.node(0).interface.loans(), 1);
    wire.deliver();
    assert_eq!(
        wire.node(0).kinds(),
        [SendEnd],
        "no acknowledgement was due"
    );
    assert_eq!(wire.node(0).unlink(md), Ok(()));
    assert_eq!(wire.node(0).interface.loans(), 0);
}

#[test]
fn a_long_put_ends_sending_before_it_is_acknowledged() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(10_000));
    let md = wire.node(0).bind(md(EAGER + 1));
    wire.run(0, &acked_put(md, process(TO)));
    assert_eq!(wire.node(0).kinds(), [SendStart, SendEnd, Ack]);
}

#[test]
fn a_long_put_that_is_dropped_has_been_sent_all_the_same() {
    let mut wire = Wire::of(2);
    let md = wire.node(0).bind(md(EAGER + 1));
    wire.run(0, &acked_put(md, process(TO)));
    let events = wire.node(0).events();
    let seen: Vec<_> = events.iter().map(|e| (e.kind, e.ni_fail)).collect();
    assert_eq!(seen, [(SendStart, 0), (SendEnd, 0)]);
    assert_eq!(wire.node(TO).drops(), 1);
    assert_eq!(wire.node(0).interface.operations_under_way(), 0);
}

#[test]
fn a_dropped_get_ends_without_an_event() {
    let mut wire = Wire::of(2);
    let md = wire.node(0).bind(md(8).threshold(1));
    wire.run(0, &get(md, process(TO)));
    assert!(wire.node(0).events().is_empty());
    assert_eq!(wire.node(0).threshold(md), Ok(1));
    assert_eq!(wire.node(0).unlink(md), Ok(()));
}

#[test]
fn a_backlog_makes_bodies_stay_in_place_and_then_refuses_operations() {
    let (mut wire, md_0) = wire();
    let node = wire.node(0);
    let empty = node.bind(md(0));
    node.host.backlogs.insert(process(TO), Backlog::High);
    node.start(&put(md_0, process(TO))).unwrap();
    node.start(&put(empty, process(TO))).unwrap();
    let referenced: Vec<_> = node
        .host
        .sent
        .iter()
        .map(|s| s.request.referenced)
        .collect();
    assert_eq!(referenced, [true, false]);
    node.host.backlogs.insert(process(TO), Backlog::Full);
    node.events();
    assert_eq!(node.start(&put(md_0, process(TO))), Err(Error::NoSpace));
    assert!(node.events().is_empty());
}

#[test]
fn bodies_that_the_host_lends_stay_in_place_but_for_those_of_exchanges() {
    let limits = Limits {
        max_getput_md: 4000,
        ..Limits::DEFAULT
    };
    let mut node = Node::of(Config {
        eager: 4000,
        ..config(process(0), Dialect::Specification, limits)
    });
    node.host.lends_from = Some(3000);
    let lengths = [100, 2999, 3000];
    let mds = lengths.map(|length| node.bind(md(length)));
    for md in mds {
        node.start(&put(md, process(TO))).unwrap();
        node.start(&get(md, process(TO))).unwrap();
    }
    node.start(&getput(mds[2], mds[2], process(TO))).unwrap();
    let sent = node.host.sent.iter();
    let referenced: Vec<_> = sent.map(|s| s.request.referenced).collect();
    let expected = [false, false, false, false, true, true, false];
    assert_eq!(referenced, expected);
}

#[test]
fn a_process_sends_to_itself() {
    let mut wire = Wire::of(1);
    wire.node(0).attach(entry(), md(1000));
    let md = wire.node(0).bind(md(8));
    wire.run(0, &acked_put(md, process(0)));
    assert_eq!(
        wire.node(0).kinds(),
        [SendStart, SendEnd, PutStart, PutEnd, Ack]
    );
}

#[test]
fn a_target_descriptor_is_also_a_source() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(1000));
    let (_, md) = wire.node(0).attach(entry(), md(8).threshold(2).unlinking());
    wire.run(0, &put(md, process(TO)));
    wire.node(0).take(process(TO), &request());
    assert_eq!(
        wire.node(0).kinds(),
        [SendStart, SendEnd, PutStart, PutEnd, Unlink]
    );
}

#[test]
fn sending_does_not_move_the_local_offset() {
    let mut wire = Wire::of(2);
    wire.node(TO).attach(entry(), md(1000));
    let (_, md) = wire.node(0).attach(entry(), md(100));
    wire.run(0, &put(md, process(TO)));
    let place = wire.node(0).take(process(TO), &request());
    assert_eq!(place, Some(vec![Ghost::new(BASE, 8)]));
}

#[test]
fn a_response_that_answers_no_operation_is_dropped() {
    let (mut wire, md) = wire();
    wire.node(0).start(&get(md, process(TO))).unwrap();
    let node = wire.node(0);
    let token = node.host.sent[0].request.token;
    let reply = Response {
        reply: true,
        interface: request().interface,
        placed: false,
        silent: false,
        token,
        mlength: 100,
        offset: 0,
        fail: NiFail::Ok,
    };
    for wrong in [
        Response { token: 0, ..reply },
        Response {
            token: token + 1,
            ..reply
        },
        Response {
            token: token + 0x1_0000,
            ..reply
        },
        Response {
            reply: false,
            ..reply
        },
    ] {
        assert!(!node.interface.awaits(process(TO), &wrong));
        assert!(node.on_response(&wrong).is_none());
    }
    assert!(!node.interface.awaits(process(TO + 1), &reply));
    assert!(node.interface.awaits(process(TO), &reply));
    let (_, pending) = node.on_response(&reply).expect("it is awaited");
    assert!(node.on_response(&reply).is_none(), "the second of its kind");
    node.on_filled(pending, NiFail::Ok);
    assert_eq!(node.kinds(), [ReplyStart, ReplyEnd]);
    assert_eq!(node.drops(), 5);
}

#[test]
fn a_placed_reply_begins_and_ends_at_once() {
    let mut node = Node::plain();
    let md = node.bind(md(8));
    node.start(&get(md, process(TO))).unwrap();
    let reply = Response {
        reply: true,
        interface: request().interface,
        placed: true,
        silent: false,
        token: node.host.sent[0].request.token,
        mlength: 9,
        offset: 0,
        fail: NiFail::Ok,
    };
    assert!(node.on_response(&reply).is_none());
    let events = node.events();
    assert_eq!((events[0].kind, events[1].kind), (ReplyStart, ReplyEnd));
    assert_eq!(events[1].mlength, 8, "no more than was asked for");
}

#[test]
fn no_more_operations_are_started_than_have_tokens() {
    let mut node = Node::new(process(0), Dialect::Specification, Limits::DEFAULT);
    let md = node.bind(md(0));
    let transfer = Transfer {
        verb: Verb::Get,
        sink: md,
        ..put(Handle::INVALID, process(TO))
    };
    for _ in 0..u16::MAX {
        assert_eq!(node.start(&transfer), Ok(()));
    }
    assert_eq!(node.start(&transfer), Err(Error::NoSpace));
    assert_eq!(
        node.start(&put(md, process(TO))),
        Ok(()),
        "it needs no token"
    );
}
