//! Lent memory that is taken back: not a byte of it is read or written afterwards.

use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_udp::{Config, Model, UdpNal};
use std::time::{Duration, Instant};

const NODE: u32 = 0x7f00_0001;
const SIZE: u64 = 16 << 20;
const BEFORE: u8 = 0x11;
const AFTER: u8 = 0xee;
/// Longer than anything here takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(20);

/// Two processes on two nodes, on a good network or one with these faults.
fn two(faults: &str) -> (UdpNal, UdpNal) {
    let open = |number: u32| {
        let faults = format!("{faults},seed={}", number + 1);
        UdpNal::open(Config {
            nid: NODE + number,
            port: None,
            key: [5; 32],
            uid: 77,
            model: Model::Xrc,
            peer_timeout: LIMIT,
            faults: Some(faults.parse().expect("the faults are sound")),
            log: |words| eprintln!("{words}"),
            job: "recall",
        })
        .expect("there is a loopback interface")
    };
    (open(0), open(1))
}

fn filled(length: u64, with: u8) -> Region {
    let region = Region::new(length);
    region.write(0, &vec![with; length as usize]);
    region
}

fn bytes(region: &Region) -> Vec<u8> {
    let mut bytes = vec![0; region.len() as usize];
    region.read(0, &mut bytes);
    bytes
}

fn send_short(from: &mut UdpNal, to: &UdpNal, number: u64) {
    let body = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };
    from.send(to.process(), &[number; 6], body)
        .expect("there is a way");
}

fn lend(from: &mut UdpNal, to: &UdpNal, number: u64, memory: &Region, lease: &Lease) {
    let body = [memory.claim()];
    let body = Outgoing::LentToRead(lease.lend(&body));
    from.send(to.process(), &[number; 6], body)
        .expect("there is a way");
}

/// The next arrival at `at`, while the other does what it must.
fn arrival(at: &mut UdpNal, other: &mut UdpNal) -> Arrival {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(arrival) = at.next() {
            return arrival;
        }
        at.flush();
        other.flush();
        assert!(other.next().is_none(), "nothing is sent there");
        assert!(Instant::now() < until, "nothing arrives");
    }
}

/// The announced stream is received into memory of that lease, until a part is there.
fn begin_stream(at: &mut UdpNal, other: &mut UdpNal, place: &Region, lease: &Lease) {
    let Arrival::Message(origin, _, Payload::Streamed(SIZE)) = arrival(at, other) else {
        panic!("expected a long message");
    };
    at.receive_into(origin, lease.lend(&[place.claim()]).keep());
    at.done(origin);
    let until = Instant::now() + LIMIT;
    let part = place.claim().slice(1 << 20, 1);
    let mut seen = [0];
    while seen == [0] {
        assert!(at.next().is_none(), "the stream isn't over");
        at.flush();
        other.flush();
        part.read(&mut seen);
        assert!(Instant::now() < until, "no part arrives");
    }
}

#[test]
fn a_body_that_is_recalled_while_it_is_sent_is_broken_and_never_read_again() {
    for faults in ["loss=0", "loss=0.1,duplicate=0.1,reorder=0.1"] {
        let (mut from, mut to) = two(faults);
        let (memory, place) = (filled(SIZE, BEFORE), Region::new(SIZE));
        let (lease, other) = (Lease::new(), Lease::new());
        lend(&mut from, &to, 1, &memory, &lease);
        begin_stream(&mut to, &mut from, &place, &other);
        send_short(&mut from, &to, 2);
        assert!(from.recall(&lease), "nothing is to be waited for");
        assert_eq!(lease.outstanding(), 0);
        memory.write(0, &vec![AFTER; SIZE as usize]);
        send_short(&mut from, &to, 3);
        let broken = arrival(&mut to, &mut from);
        assert!(matches!(broken, Arrival::Broken(_)), "{broken:?}");
        for number in [2, 3] {
            let next = arrival(&mut to, &mut from);
            let Arrival::Message(origin, words, _) = next else {
                panic!("expected a message, not {next:?}");
            };
            to.done(origin);
            assert_eq!(words[0], number, "later messages arrive in order");
        }
        assert!(!bytes(&place).contains(&AFTER), "{faults}");
        assert_eq!(other.outstanding(), 0, "the broken stream needs no place");
    }
}

#[test]
fn short_bodies_that_are_recalled_arrive_as_they_were_or_not_at_all() {
    const COUNT: u64 = 200;
    let (mut from, mut to) = two("loss=0.3");
    let memories: Vec<Region> = (0..COUNT).map(|_| filled(20_000, BEFORE)).collect();
    let lease = Lease::new();
    for (number, memory) in (0..).zip(&memories) {
        lend(&mut from, &to, number, memory, &lease);
    }
    let mut whole = 0;
    let mut last = None;
    while last != Some(COUNT) {
        match arrival(&mut to, &mut from) {
            Arrival::Message(origin, words, Payload::Inline(payload)) => {
                let mut bytes = vec![0; payload.len() as usize];
                payload.read(&mut bytes);
                assert!(!bytes.contains(&AFTER), "message {}", words[0]);
                assert!(last < Some(words[0]), "in order");
                last = Some(words[0]);
                to.done(origin);
            }
            other => panic!("expected a message, not {other:?}"),
        }
        whole += 1;
        if whole == 10 {
            from.recall(&lease);
            assert_eq!(lease.outstanding(), 0);
            for memory in &memories {
                memory.write(0, &[AFTER; 20_000]);
            }
            send_short(&mut from, &to, COUNT);
        }
    }
    assert!(whole < COUNT, "{whole} of them were on their way");
}

#[test]
fn a_stream_into_memory_that_is_recalled_goes_on_into_nothing() {
    for faults in ["loss=0", "loss=0.1,duplicate=0.1,reorder=0.1"] {
        let (mut from, mut to) = two(faults);
        let (memory, place) = (filled(SIZE, BEFORE), Region::new(SIZE));
        let (lease, other) = (Lease::new(), Lease::new());
        lend(&mut from, &to, 1, &memory, &other);
        begin_stream(&mut to, &mut from, &place, &lease);
        assert!(to.recall(&lease), "nothing is to be waited for");
        assert_eq!(lease.outstanding(), 0);
        place.write(0, &vec![AFTER; SIZE as usize]);
        send_short(&mut from, &to, 2);
        let whole = arrival(&mut to, &mut from);
        assert!(matches!(whole, Arrival::Streamed(_)), "{whole:?}");
        let next = arrival(&mut to, &mut from);
        assert!(matches!(next, Arrival::Message(_, [2, ..], _)), "{next:?}");
        assert!(!bytes(&place).contains(&BEFORE), "{faults}");
    }
}

#[test]
fn what_is_recalled_before_it_was_looked_at_is_never_seen() {
    let (mut from, mut to) = two("loss=0");
    let memory = filled(SIZE, BEFORE);
    let lease = Lease::new();
    lend(&mut from, &to, 1, &memory, &lease);
    from.recall(&lease);
    assert_eq!((lease.outstanding(), from.backlog(to.process())), (0, 0));
    assert!(from.all_delivered());
    send_short(&mut from, &to, 2);
    let next = arrival(&mut to, &mut from);
    assert!(matches!(next, Arrival::Message(_, [2, ..], _)), "{next:?}");
}
