//! What this NAL takes beside bare UDP sockets, in one run:
//!
//! ```sh
//! cargo run --release -p lintel-nal-udp --example datagram_pingpong
//! ```
//!
//! Two threads, each on a processor of its own; many short rounds in which the bare
//! sockets and the NAL take turns. On a machine that does something else as well, the
//! tenth best round says more than the median.

use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_udp::{Config, Model, UdpNal};
use lintel_types::ProcessId;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::socket::{setsockopt, sockopt};
use nix::unistd::Pid;
use std::net::UdpSocket;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Under which everything is lent.
static LEASE: std::sync::LazyLock<Lease> = std::sync::LazyLock::new(Lease::new);

const ROUNDS: usize = 20;
const TRIPS: u32 = 400;
const STREAMED: u64 = 16 << 20;
const MESSAGE: u64 = 1 << 20;
/// Messages of a stream before it is measured: a window begins small.
const WARM: u64 = 4;
const MESSAGES: u32 = 5000;
/// Bytes that a bare stream may have under way, so that none are dropped.
const WINDOW: u64 = 512 << 10;

fn main() {
    let mut table: Vec<(&str, Vec<f64>)> = Vec::new();
    let mut note = |name: &'static str, value: f64| match table.iter_mut().find(|t| t.0 == name) {
        Some(row) => row.1.push(value),
        None => table.push((name, vec![value])),
    };
    for _ in 0..ROUNDS {
        note("bare 8 B, us", bare_trips(8));
        note("NAL 8 B, us", nal_trips(8));
        note("bare 1 KiB, us", bare_trips(1024));
        note("NAL 1 KiB, us", nal_trips(1024));
        note("bare GSO stream, GB/s", bare_stream(61_824, Some(1472)));
        note(
            "bare GSO stream of 8832 B, GB/s",
            bare_stream(61_824, Some(8832)),
        );
        note("bare 60 KiB stream, GB/s", bare_stream(61_440, None));
        note("NAL 1 MiB lent, GB/s", nal_stream());
        note("NAL 8 B copied, M/s", nal_rate());
    }
    println!("{:34} {:>8} {:>8}", "", "median", "best 10%");
    for (name, values) in &mut table {
        values.sort_by(f64::total_cmp);
        let best = match name.ends_with("us") {
            true => ROUNDS / 10,
            false => ROUNDS - 1 - ROUNDS / 10,
        };
        println!("{name:34} {:8.3} {:8.3}", values[ROUNDS / 2], values[best]);
    }
}

fn pin(processor: usize) {
    let mut set = CpuSet::new();
    let _ = set.set(processor);
    let _ = sched_setaffinity(Pid::from_raw(0), &set);
}

/// Runs one side on each processor; gives what the near one gives.
fn side_by_side<R>(far: impl FnOnce() + Send, near: impl FnOnce() -> R) -> R {
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        // A thread inherits where it may run.
        pin(1);
        scope.spawn(|| {
            ready.wait();
            far();
        });
        pin(0);
        ready.wait();
        near()
    })
}

fn pair_of_sockets() -> (UdpSocket, UdpSocket) {
    let (one, other) = (bare(), bare());
    one.connect(other.local_addr().expect("bound"))
        .expect("loopback");
    other
        .connect(one.local_addr().expect("bound"))
        .expect("loopback");
    (one, other)
}

fn bare() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback");
    socket.set_nonblocking(true).expect("it is a socket");
    setsockopt(&socket, sockopt::RcvBuf, &(4 << 20)).expect("it is a socket");
    socket
}

fn receive(socket: &UdpSocket, into: &mut [u8]) -> usize {
    loop {
        if let Ok(count) = socket.recv(into) {
            return count;
        }
    }
}

/// Half a round trip, microseconds.
fn bare_trips(size: usize) -> f64 {
    let (one, other) = pair_of_sockets();
    let bytes = vec![1; size];
    side_by_side(
        || {
            let mut into = vec![0; 2048];
            for _ in 0..TRIPS {
                receive(&other, &mut into);
                other.send(&bytes).expect("loopback");
            }
        },
        || {
            let mut into = vec![0; 2048];
            let began = Instant::now();
            for _ in 0..TRIPS {
                one.send(&bytes).expect("loopback");
                receive(&one, &mut into);
            }
            began.elapsed().as_secs_f64() * 1e6 / f64::from(TRIPS) / 2.0
        },
    )
}

/// Throughput of bare sockets in GB/s, for datagrams of `size` bytes.
fn bare_stream(size: usize, segment: Option<i32>) -> f64 {
    let (one, other) = pair_of_sockets();
    if let Some(segment) = segment {
        setsockopt(&one, sockopt::UdpGsoSegment, &segment).expect("the kernel knows GSO");
        setsockopt(&other, sockopt::UdpGroSegment, &true).expect("the kernel knows GRO");
    }
    let (got, over) = (AtomicU64::new(0), AtomicBool::new(false));
    side_by_side(
        || {
            // A MiB is received to where it belongs, as by the NAL.
            let mut into = vec![1; MESSAGE as usize + (1 << 17)];
            let mut at = 0;
            while !over.load(Ordering::Relaxed) {
                if let Ok(count) = other.recv(&mut into[at..]) {
                    at = (at + count) % MESSAGE as usize;
                    got.fetch_add(count as u64, Ordering::Relaxed);
                }
            }
        },
        || {
            let bytes = vec![1; MESSAGE as usize + size];
            let (began, mut sent) = (Instant::now(), 0);
            while got.load(Ordering::Relaxed) < STREAMED {
                if sent - got.load(Ordering::Relaxed) < WINDOW {
                    let from = &bytes[(sent % MESSAGE) as usize..][..size];
                    sent += one.send(from).map_or(0, |count| count as u64);
                }
                assert!(
                    began.elapsed() < Duration::from_secs(60),
                    "something was dropped"
                );
            }
            over.store(true, Ordering::Relaxed);
            STREAMED as f64 / began.elapsed().as_secs_f64() / 1e9
        },
    )
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
        job: "pingpong",
    })
    .expect("loopback")
}

fn arrival(nal: &mut UdpNal) -> Arrival {
    loop {
        if let Some(arrival) = nal.next() {
            return arrival;
        }
        nal.flush();
    }
}

fn take(nal: &mut UdpNal) {
    match arrival(nal) {
        Arrival::Message(origin, _, Payload::Inline(_)) => nal.done(origin),
        other => panic!("expected a message, not {other:?}"),
    }
}

fn send(nal: &mut UdpNal, to: ProcessId, region: &Region) {
    let body = Outgoing::Copied {
        operand: None,
        pieces: &[region.claim()],
    };
    nal.send(to, &[0; 6], body).expect("the peer is there");
}

/// Sends nothing more, but acknowledges until the other side has all it waits for.
fn linger(nal: &mut UdpNal, over: &AtomicBool) {
    while !over.load(Ordering::Acquire) {
        let _ = nal.next();
        nal.flush();
    }
}

/// Until neither expects anything from the other, so that neither lingers.
fn part(mut one: UdpNal, mut other: UdpNal) {
    while !(one.all_delivered() && other.all_delivered()) {
        one.flush();
        other.flush();
    }
}

fn nal_trips(size: u64) -> f64 {
    let (mut one, mut other) = (nal(0x7f00_0001), nal(0x7f00_0002));
    let (here, there) = (one.process(), other.process());
    let over = AtomicBool::new(false);
    let taken = side_by_side(
        || {
            let region = Region::new(size);
            for _ in 0..TRIPS {
                take(&mut other);
                send(&mut other, here, &region);
            }
            linger(&mut other, &over);
        },
        || {
            let region = Region::new(size);
            let began = Instant::now();
            for _ in 0..TRIPS {
                send(&mut one, there, &region);
                take(&mut one);
            }
            let taken = began.elapsed();
            over.store(true, Ordering::Release);
            taken
        },
    );
    part(one, other);
    taken.as_secs_f64() * 1e6 / f64::from(TRIPS) / 2.0
}

fn nal_stream() -> f64 {
    let (mut one, mut other) = (nal(0x7f00_0001), nal(0x7f00_0002));
    let there = other.process();
    let over = AtomicBool::new(false);
    let count = STREAMED / MESSAGE;
    side_by_side(
        || {
            let place = Region::new(MESSAGE);
            for _ in 0..WARM + count {
                match arrival(&mut other) {
                    Arrival::Message(origin, _, Payload::Streamed(_)) => {
                        other.receive_into(origin, LEASE.lend(&[place.claim()]).keep());
                        other.done(origin);
                    }
                    other => panic!("expected a message, not {other:?}"),
                }
                match arrival(&mut other) {
                    Arrival::Streamed(_) => {}
                    other => panic!("the message was to end, not {other:?}"),
                }
            }
            linger(&mut other, &over);
        },
        || {
            let region = Region::new(MESSAGE);
            region.write(0, &vec![1; MESSAGE as usize]);
            let pieces = [region.claim()];
            let mut run = |count| {
                for _ in 0..count {
                    one.send(there, &[0; 6], Outgoing::LentToRead(LEASE.lend(&pieces)))
                        .expect("the peer is there");
                    while one.flush() {}
                }
                while !one.all_delivered() {
                    one.flush();
                }
            };
            run(WARM);
            let began = Instant::now();
            run(count);
            let taken = began.elapsed();
            over.store(true, Ordering::Release);
            if std::env::var_os("TROUBLES").is_some() {
                eprintln!("{:?}", one.counts());
            }
            STREAMED as f64 / taken.as_secs_f64() / 1e9
        },
    )
}

/// Datagram rate, millions a second.
fn nal_rate() -> f64 {
    let (mut one, mut other) = (nal(0x7f00_0001), nal(0x7f00_0002));
    let there = other.process();
    let over = AtomicBool::new(false);
    side_by_side(
        || {
            for _ in 0..MESSAGES {
                take(&mut other);
            }
            linger(&mut other, &over);
        },
        || {
            let region = Region::new(8);
            let began = Instant::now();
            for number in 0..MESSAGES {
                send(&mut one, there, &region);
                if number % 64 == 0 {
                    while one.flush() {}
                }
            }
            while !one.all_delivered() {
                one.flush();
            }
            let taken = began.elapsed();
            over.store(true, Ordering::Release);
            f64::from(MESSAGES) / taken.as_secs_f64() / 1e6
        },
    )
}
