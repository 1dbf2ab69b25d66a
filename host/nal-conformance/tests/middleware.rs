//! What middleware adds to a NAL; the suite shows that it loses nothing.

use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, MoveError, Nal, Outgoing, Payload, Trace, Unreachable};
use lintel_nal_conformance::Fault;
use lintel_nal_shm::ShmNal;
use lintel_types::{AckRequest, Datatype, InterfaceNumber, Operation, PortalIndex, ProcessId};
use lintel_wire::{Request, Verb, Words};

const NOTHING: Outgoing<'static> = Outgoing::Copied {
    operand: None,
    pieces: &[],
};

/// The lease of everything lent here.
static LEASE: std::sync::LazyLock<Lease> = std::sync::LazyLock::new(Lease::new);

fn pair(test: &str) -> (ShmNal, ShmNal) {
    let job = format!("middleware-{test}-{}", std::process::id());
    let open = |pid| ShmNal::open(&job, 1, pid, |words| eprintln!("{words}"));
    let opened = (open(1), open(2));
    let (Ok(one), Ok(other)) = opened else {
        panic!("shared memory can be had");
    };
    (one, other)
}

fn words() -> Words {
    let request = Request {
        verb: Verb::Get,
        interface: InterfaceNumber::new(true, false),
        ack: AckRequest::None,
        referenced: false,
        portal: PortalIndex(5),
        token: 1,
        rank: 0,
        length: 0,
        operation: Operation::Min,
        datatype: Datatype::Int8,
        match_bits: 0,
        remote_offset: 0,
        hdr_data: 0,
    };
    request.to_words()
}

#[test]
fn a_peer_that_is_cut_off_is_lost_once_and_unreachable_and_its_messages_are_dropped() {
    let (one, mut other) = pair("cut");
    let (here, there) = (one.process(), other.process());
    let mut one = Fault::new(one);
    one.send(there, &words(), NOTHING)
        .expect("no peer is cut off");
    other
        .send(here, &words(), NOTHING)
        .expect("it knows of no fault");
    one.cut_off(there);
    assert!(matches!(one.next(), Some(Arrival::Lost(process)) if process == there));
    assert!(one.next().is_none(), "its message is dropped");
    assert_eq!(one.send(there, &words(), NOTHING), Err(Unreachable));
}

#[test]
fn what_a_cut_off_peer_has_lent_cant_be_moved() {
    let (one, mut other) = pair("lent");
    let (here, there) = (one.process(), other.process());
    let mut one = Fault::new(one);
    let (lent, place) = (Region::new(100_000), Region::new(100_000));
    let memory = [lent.claim()];
    let body = Outgoing::LentToRead(LEASE.lend(&memory));
    other
        .send(here, &words(), body)
        .expect("no peer is cut off");
    let Some(Arrival::Message(origin, _, Payload::Lent(loan))) = one.next() else {
        return; // The system forbids it, so there is nothing to cut.
    };
    one.cut_off(there);
    let pieces = [place.claim()];
    assert_eq!(
        one.fetch(origin, &loan, &pieces),
        Err(MoveError::Unavailable)
    );
    assert_eq!(
        one.fill(origin, &pieces, &loan),
        Err(MoveError::Unavailable)
    );
}

#[test]
fn each_message_is_logged_in_a_line() {
    let (one, mut other) = pair("trace");
    let (here, there) = (one.process(), other.process());
    let mut lines = Vec::new();
    let mut one = Trace::new(one, |line: String| lines.push(line));
    one.send(there, &words(), NOTHING).expect("it is there");
    let absent = ProcessId::new(1, 3);
    one.send(absent, &words(), NOTHING).expect_err("it isn't");
    other.send(here, &words(), NOTHING).expect("it is there");
    match one.next() {
        Some(Arrival::Message(origin, ..)) => one.done(origin),
        other => panic!("expected a message, not {other:?}"),
    }
    drop(one);
    let [sent, failed, received] = lines.as_slice() else {
        panic!("expected three lines: {lines:?}");
    };
    assert!(sent.starts_with("to 0.0.0.1/2 GET"), "{sent}");
    assert!(failed.starts_with("unreachable 0.0.0.1/3"), "{failed}");
    assert!(received.starts_with("from 0.0.0.1/2"), "{received}");
}
