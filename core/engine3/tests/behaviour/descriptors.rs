//! Memory descriptors as targets (section 3.10): space, offsets, threshold, what is refused.

use crate::rig::*;
use lintel_engine3::{Dialect, Landing};
use lintel_memory::Ghost;
use lintel_types::portals3::{Error, Limits, MdOptions, THRESHOLD_INFINITE};
use lintel_types::{Handle, InterfaceNumber, Kind, NiFail};
use lintel_wire::portals3::{Request, Verb};

fn put_of(length: u64) -> Request {
    Request {
        length,
        ..request()
    }
}

fn put_at(remote_offset: u64, length: u64) -> Request {
    Request {
        remote_offset,
        ..put_of(length)
    }
}

/// Where the bytes of requests go, one after another.
fn places(
    spec: lintel_engine3::DescriptorSpec<Ghost>,
    requests: &[Request],
) -> Vec<Option<Vec<Ghost>>> {
    let mut node = Node::plain();
    node.attach(entry(), spec);
    let taken = requests
        .iter()
        .map(|request| node.take(process(0), request));
    taken.collect()
}

fn at(offset: u64, length: u64) -> Option<Vec<Ghost>> {
    Some(vec![Ghost::new(BASE + offset, length)])
}

#[test]
fn the_local_offset_grows_by_what_each_operation_moves() {
    let get = Request {
        verb: Verb::Get,
        ..put_of(20)
    };
    let found = places(md(100), &[put_at(50, 10), get, put_of(70), put_of(1)]);
    assert_eq!(found, [at(0, 10), at(10, 20), at(30, 70), None]);
}

#[test]
fn the_initiator_chooses_the_offset_of_a_remotely_managed_descriptor() {
    let spec = md(100).with(MdOptions::MANAGE_REMOTE);
    let requests = [
        put_at(50, 10),
        put_at(0, 100),
        put_at(100, 0),
        put_at(91, 10),
    ];
    let found = places(spec, &requests);
    assert_eq!(found, [at(50, 10), at(0, 100), at(100, 0), None]);
}

#[test]
fn what_is_too_long_is_cut_if_the_descriptor_truncates() {
    let spec = md(100).with(MdOptions::TRUNCATE);
    let found = places(spec, &[put_of(90), put_of(90), put_of(90)]);
    assert_eq!(found, [at(0, 90), at(90, 10), at(100, 0)]);
    let remote = md(100).with(MdOptions::TRUNCATE | MdOptions::MANAGE_REMOTE);
    let requests = [
        put_at(95, 10),
        put_at(100, 10),
        put_at(101, 0),
        put_at(101, 1),
    ];
    let found = places(remote, &requests);
    assert_eq!(found, [at(95, 5), at(100, 0), None, None]);
}

#[test]
fn an_offset_whose_sum_with_the_length_overflows_never_fits() {
    for options in [MdOptions::empty(), MdOptions::TRUNCATE] {
        let spec = md(100).with(MdOptions::MANAGE_REMOTE | options);
        let found = places(spec, &[put_at(u64::MAX, 1), put_at(u64::MAX - 5, 6)]);
        assert_eq!(found, [None, None]);
    }
}

#[test]
fn offsets_run_over_the_concatenated_pieces_of_a_vector() {
    let found = places(vector(&[10, 0, 20]), &[put_of(5), put_of(20), put_of(6)]);
    let across = vec![Ghost::new(BASE + 5, 5), Ghost::new(BASE + (2 << 20), 15)];
    assert_eq!(found, [at(0, 5), Some(across), None]);
}

#[test]
fn an_empty_descriptor_takes_empty_messages() {
    let mut spec = md(0);
    spec.md.start = 0;
    let found = places(spec, &[put_of(0), put_of(1)]);
    assert_eq!(found[0].as_ref().map(Vec::len), Some(1));
    assert_eq!(found[1], None);
}

#[test]
fn a_threshold_counts_operations_until_the_descriptor_is_inactive() {
    let mut node = Node::plain();
    let (_, md) = node.attach(entry(), md(100).threshold(2));
    for left in [1, 0] {
        assert!(node.take(process(0), &request()).is_some());
        assert_eq!(node.threshold(md), Ok(left));
    }
    assert_eq!(node.take(process(0), &request()), None);
    assert_eq!(node.threshold(md), Ok(0), "PTL_RETAIN: it stays");
}

#[test]
fn an_operation_counts_when_it_begins() {
    let mut node = Node::plain();
    let (_, md) = node.attach(entry(), md(100).threshold(1));
    let landed = node.begin(&request());
    assert_eq!(node.threshold(md), Ok(0));
    assert_eq!(node.take(process(0), &request()), None);
    node.on_landed(landed, NiFail::Ok);
}

#[test]
fn an_infinite_threshold_is_never_reached() {
    let mut node = Node::plain();
    let (_, md) = node.attach(entry(), md(100).with(MdOptions::MANAGE_REMOTE));
    for _ in 0..10 {
        assert!(node.take(process(0), &request()).is_some());
    }
    assert_eq!(node.threshold(md), Ok(THRESHOLD_INFINITE));
}

#[test]
fn a_threshold_of_0_makes_a_descriptor_inactive_without_unlinking_it() {
    let mut node = Node::plain();
    let (_, md) = node.attach(entry(), md(100).threshold(0).unlinking());
    assert_eq!(node.take(process(0), &request()), None);
    assert_eq!(node.threshold(md), Ok(0));
}

#[test]
fn a_descriptor_with_less_than_max_size_left_is_inactive() {
    let found = places(md(100).max_size(50), &[put_of(50), put_of(1), put_of(0)]);
    assert_eq!(found, [at(0, 50), at(50, 1), None]);
}

#[test]
fn max_size_is_ignored_without_its_option_and_with_a_remote_offset() {
    let mut unasked = md(100);
    unasked.md.max_size = 1000;
    assert_eq!(places(unasked, &[put_of(100)]), [at(0, 100)]);
    let remote = md(100).max_size(1000).with(MdOptions::MANAGE_REMOTE);
    assert_eq!(places(remote, &[put_of(100)]), [at(0, 100)]);
}

#[test]
fn an_exchange_is_no_longer_than_the_limit_of_its_target() {
    let mut node = Node::plain();
    node.attach(entry(), md(1000));
    let mut exchange = Request {
        verb: Verb::GetPut,
        ..put_of(64)
    };
    assert!(node.take(process(0), &exchange).is_some());
    exchange.length = 65;
    assert_eq!(node.take(process(0), &exchange), None);
}

#[test]
fn a_put_is_acknowledged_if_asked_for_and_not_disabled() {
    for (ack, options, acknowledged) in [
        (true, MdOptions::empty(), true),
        (false, MdOptions::empty(), false),
        (true, MdOptions::ACK_DISABLE, false),
        (
            true,
            MdOptions::EVENT_START_DISABLE | MdOptions::EVENT_END_DISABLE,
            true,
        ),
    ] {
        let mut node = Node::plain();
        node.attach(entry(), md(100).with(options));
        let landed = node.begin(&Request { ack, ..request() });
        let response = landed.response(NiFail::Ok).expect("a token is given");
        assert_eq!(response.silent, !acknowledged, "{ack} {options:?}");
        assert_eq!((response.mlength, response.reply), (8, false));
        node.on_landed(landed, NiFail::Ok);
    }
}

#[test]
fn a_get_is_answered_whatever_the_descriptor_says_of_acknowledgements() {
    let mut node = Node::plain();
    node.attach(entry(), md(100).with(MdOptions::ACK_DISABLE));
    let get = Request {
        verb: Verb::Get,
        ack: false,
        ..request()
    };
    let Landing::Accepted(_, landed) = node.on_request(process(0), &get) else {
        panic!("the entry takes it");
    };
    let response = landed.response(NiFail::Ok).expect("a token is given");
    assert!(response.reply && !response.silent);
    node.on_landed(landed, NiFail::Ok);
}

#[test]
fn a_descriptor_that_contradicts_the_rules_is_illegal() {
    let iovecs = Limits {
        max_md_iovecs: 2,
        ..Limits::DEFAULT
    };
    let mut node = Node::new(process(0), Dialect::Specification, iovecs);
    let mut lengthened = md(100);
    lengthened.md.length = 101;
    let mut nowhere = md(100);
    nowhere.md.start = 0;
    let mut foreign = md(100);
    let elsewhere = InterfaceNumber::from_bits(1);
    foreign.md.queue = Handle::new(Kind::EventQueue, elsewhere, 5, 0);
    for (spec, fault) in [
        (md(100).with(MdOptions::from(0x8000)), "an unknown option"),
        (md(100).threshold(-2), "a negative threshold"),
        (vector(&[1, 2, 3]), "too long a vector"),
        (md(100).with(MdOptions::IOVEC), "a vector that isn't one"),
        (
            vector(&[1]).only(MdOptions::OP_PUT),
            "an unannounced vector",
        ),
        (lengthened, "less memory than it says"),
        (nowhere, "no memory"),
        (foreign, "a queue of another interface"),
    ] {
        let bound = node.interface.descriptor_bind(spec);
        assert_eq!(bound, Err(Error::MdIllegal), "{fault}");
    }
    assert!(node.interface.descriptor_bind(vector(&[1, 2])).is_ok());
    let all = md(100).only(MdOptions::all() - MdOptions::IOVEC);
    assert!(node.interface.descriptor_bind(all).is_ok());
}

#[test]
fn a_descriptor_for_a_queue_that_is_gone_is_refused() {
    let mut node = Node::plain();
    let spec = node.reporting(md(100));
    let queue = node.queue;
    node.interface.queue_free(queue).unwrap();
    let bound = node.interface.descriptor_bind(spec);
    assert_eq!(bound, Err(Error::EqInvalid));
}

#[test]
fn descriptors_beyond_the_limit_are_refused() {
    let limits = Limits {
        max_mds: 1,
        ..Limits::DEFAULT
    };
    let mut node = Node::new(process(0), Dialect::Specification, limits);
    let first = node.bind(md(100));
    assert_eq!(node.interface.descriptor_bind(md(100)), Err(Error::NoSpace));
    assert_eq!(node.unlink(first), Ok(()));
    assert!(node.interface.descriptor_bind(md(100)).is_ok());
}

#[test]
fn memory_as_long_as_an_address_space_may_have_holes() {
    for (length, accessible) in [((1 << 46) - 1, true), (1 << 46, false)] {
        let mut node = Node::plain();
        node.attach(entry(), md(length));
        let landed = node.begin(&request());
        assert_eq!(landed.is_accessible(), accessible);
        node.on_landed(landed, NiFail::Ok);
    }
}
