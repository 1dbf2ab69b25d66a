//! Processor time that a message takes, beside bare UDP sockets, both ends in one thread:
//!
//! ```sh
//! cargo run --release -p lintel-nal-udp --example datagram_cost
//! ```
//!
//! With `long` only long messages are measured. It counts no waiting, so that it is steady on a busy machine too; caches are warmer
//! than between two processors. Medians of rounds in which both take turns.

use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_udp::{Config, Model, UdpNal};
use nix::sys::socket::{setsockopt, sockopt};
use nix::time::{ClockId, clock_gettime};
use std::net::UdpSocket;
use std::time::Duration;

/// Under which everything is lent.
static LEASE: std::sync::LazyLock<Lease> = std::sync::LazyLock::new(Lease::new);

const ROUNDS: usize = 21;
const MESSAGES: u32 = 2000;
const LONG: u64 = 1 << 20;
const LONG_MESSAGES: u32 = 20;

fn main() {
    let (bare_one, bare_other) = (bare(), bare());
    bare_one
        .connect(bare_other.local_addr().expect("bound"))
        .expect("loopback");
    let (mut one, mut other) = (nal(0x7f00_0001), nal(0x7f00_0002));
    let only_long = std::env::args().any(|argument| argument == "long");
    for size in [8, 1024, 16 << 10].into_iter().filter(|_| !only_long) {
        row(
            &format!("{size} B, us a message"),
            || bare_messages(&bare_one, &bare_other, size),
            || nal_messages(&mut one, &mut other, size as u64),
        );
    }
    if !only_long {
        row(
            "8 B in a row, us a message",
            || bare_messages(&bare_one, &bare_other, 8),
            || nal_row(&mut one, &mut other),
        );
    }
    setsockopt(&bare_one, sockopt::UdpGsoSegment, &8832).expect("the kernel knows GSO");
    setsockopt(&bare_other, sockopt::UdpGroSegment, &true).expect("the kernel knows GRO");
    row(
        "1 MiB, us a message",
        || bare_stream(&bare_one, &bare_other),
        || nal_stream(&mut one, &mut other),
    );
}

fn row(name: &str, mut bare: impl FnMut() -> f64, mut nal: impl FnMut() -> f64) {
    let (mut bares, mut nals) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bares.push(bare());
        nals.push(nal());
    }
    let middle = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[ROUNDS / 2]
    };
    let (bare, nal) = (middle(&mut bares), middle(&mut nals));
    println!(
        "{name:24} bare {bare:8.3}  NAL {nal:8.3}  ratio {:.2}",
        nal / bare
    );
}

/// Microseconds of processor time that each of so many runs takes.
fn timed(count: u32, mut run: impl FnMut()) -> f64 {
    let clock = || {
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("there is one");
        Duration::from(time).as_secs_f64() * 1e6
    };
    let began = clock();
    (0..count).for_each(|_| run());
    (clock() - began) / f64::from(count)
}

fn bare() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    socket.set_nonblocking(true).expect("it is a socket");
    setsockopt(&socket, sockopt::RcvBuf, &(4 << 20)).expect("it is a socket");
    socket
}

fn bare_messages(one: &UdpSocket, other: &UdpSocket, size: usize) -> f64 {
    let (bytes, mut into) = (vec![1; size], vec![0; 1 << 16]);
    timed(MESSAGES, || {
        one.send(&bytes).expect("loopback");
        other.recv(&mut into).expect("loopback");
    })
}

fn bare_stream(one: &UdpSocket, other: &UdpSocket) -> f64 {
    let (bytes, mut into) = (vec![1; LONG as usize], vec![0; LONG as usize]);
    timed(LONG_MESSAGES, || {
        for part in bytes.chunks(61_824) {
            one.send(part).expect("loopback");
        }
        let mut at = 0;
        while at < LONG as usize {
            at += other.recv(&mut into[at..]).expect("loopback");
        }
    })
}

fn nal(nid: u32) -> UdpNal {
    UdpNal::open(Config {
        nid,
        port: None,
        key: [1; 32],
        uid: 0,
        model: Model::Xrc,
        peer_timeout: Duration::from_secs(10),
        faults: None,
        log: |words| eprintln!("{words}"),
        job: "cost",
    })
    .expect("loopback")
}

fn arrival(at: &mut UdpNal, from: &mut UdpNal) -> Arrival {
    loop {
        if let Some(arrival) = at.next() {
            return arrival;
        }
        at.flush();
        from.flush();
    }
}

/// There and back, so that acknowledgements ride along.
fn nal_messages(one: &mut UdpNal, other: &mut UdpNal, size: u64) -> f64 {
    let region = Region::new(size);
    let trip = |from: &mut UdpNal, to: &mut UdpNal| {
        let body = Outgoing::Copied {
            operand: None,
            pieces: &[region.claim()],
        };
        from.send(to.process(), &[0; 6], body).expect("it is there");
        match arrival(to, from) {
            Arrival::Message(origin, _, Payload::Inline(_)) => to.done(origin),
            other => panic!("expected a message, not {other:?}"),
        }
    };
    let both = timed(MESSAGES / 2, || {
        trip(one, other);
        trip(other, one);
    });
    both / 2.0
}

/// Many messages one way, more than the window lets go at once.
fn nal_row(one: &mut UdpNal, other: &mut UdpNal) -> f64 {
    let region = Region::new(8);
    let body = Outgoing::Copied {
        operand: None,
        pieces: &[region.claim()],
    };
    let all = timed(1, || {
        for _ in 0..10 * MESSAGES {
            one.send(other.process(), &[0; 6], body)
                .expect("it is there");
        }
        for _ in 0..10 * MESSAGES {
            match arrival(other, one) {
                Arrival::Message(origin, _, Payload::Inline(_)) => other.done(origin),
                other => panic!("expected a message, not {other:?}"),
            }
        }
    });
    all / f64::from(10 * MESSAGES)
}

fn nal_stream(one: &mut UdpNal, other: &mut UdpNal) -> f64 {
    let (region, place) = (Region::new(LONG), Region::new(LONG));
    region.write(0, &vec![1; LONG as usize]);
    let pieces = [region.claim()];
    timed(LONG_MESSAGES, || {
        one.send(
            other.process(),
            &[0; 6],
            Outgoing::LentToRead(LEASE.lend(&pieces)),
        )
        .expect("it is there");
        match arrival(other, one) {
            Arrival::Message(origin, _, Payload::Streamed(_)) => {
                other.receive_into(origin, LEASE.lend(&[place.claim()]).keep());
                other.done(origin);
            }
            other => panic!("expected a message, not {other:?}"),
        }
        match arrival(other, one) {
            Arrival::Streamed(_) => {}
            other => panic!("the message was to end, not {other:?}"),
        }
    })
}
