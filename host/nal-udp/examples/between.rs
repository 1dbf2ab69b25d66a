//! Latency and bandwidth between two machines, or two network namespaces:
//!
//! ```sh
//! between serve 10.9.0.2 7000                  # there
//! between measure 10.9.0.1 10.9.0.2 7000       # here; ends both
//! ```

use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_udp::{Config, Model, UdpNal};
use lintel_types::ProcessId;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

/// Under which everything is lent.
static LEASE: std::sync::LazyLock<Lease> = std::sync::LazyLock::new(Lease::new);

const TRIPS: u64 = 20_000;
const LONG: u64 = 1 << 20;
const LONG_MESSAGES: u64 = 512;
const OVER: u64 = u64::MAX;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", here, port] => serve(open(here, port.parse().ok())),
        ["measure", here, there, port] => {
            let nid = there.parse::<Ipv4Addr>().expect("an address").into();
            let to = ProcessId::new(nid, port.parse().expect("a port"));
            measure(open(here, None), to);
        }
        _ => eprintln!("between serve ADDRESS PORT | between measure HERE THERE PORT"),
    }
}

fn open(address: &str, port: Option<u16>) -> UdpNal {
    let faults = std::env::var("LINTEL_FAULT").ok();
    UdpNal::open(Config {
        nid: address.parse::<Ipv4Addr>().expect("an address").into(),
        port,
        key: [1; 32],
        uid: 0,
        model: Model::Xrc,
        peer_timeout: Duration::from_secs(10),
        faults: faults.map(|text| text.parse().expect("faults")),
        log: |words| eprintln!("{words}"),
        job: "between",
    })
    .unwrap_or_else(|error| panic!("{error}"))
}

fn arrival(nal: &mut UdpNal) -> Arrival {
    loop {
        if let Some(arrival) = nal.next() {
            return arrival;
        }
        nal.flush();
    }
}

/// Answers each message with an empty one.
fn serve(mut nal: UdpNal) {
    let place = Region::new(LONG);
    loop {
        match arrival(&mut nal) {
            Arrival::Message(origin, words, Payload::Streamed(_)) => {
                nal.receive_into(origin, LEASE.lend(&[place.claim()]).keep());
                nal.done(origin);
                while !matches!(arrival(&mut nal), Arrival::Streamed(_)) {}
                answer(&mut nal, origin.process, words[0]);
            }
            Arrival::Message(origin, words, _) => {
                nal.done(origin);
                answer(&mut nal, origin.process, words[0]);
                if words[0] == OVER {
                    break;
                }
            }
            _ => break,
        }
    }
    println!("there: {:?}", nal.counts());
}

fn answer(nal: &mut UdpNal, to: ProcessId, number: u64) {
    let nothing = Outgoing::Copied {
        operand: None,
        pieces: &[],
    };
    nal.send(to, &[number; 6], nothing).expect("it is there");
}

fn take(nal: &mut UdpNal) {
    match arrival(nal) {
        Arrival::Message(origin, ..) => nal.done(origin),
        other => panic!("expected an answer, not {other:?}"),
    }
}

fn measure(mut nal: UdpNal, to: ProcessId) {
    let began = Instant::now();
    for number in 0..TRIPS {
        answer(&mut nal, to, number);
        take(&mut nal);
    }
    let half = began.elapsed().as_secs_f64() * 1e6 / TRIPS as f64 / 2.0;
    println!("half a round trip {half:.2} us");

    let region = Region::new(LONG);
    region.write(0, &vec![1; LONG as usize]);
    let pieces = [region.claim()];
    let began = Instant::now();
    for number in 0..LONG_MESSAGES {
        let body = Outgoing::LentToRead(LEASE.lend(&pieces));
        nal.send(to, &[number; 6], body).expect("it is there");
        if number >= 4 {
            take(&mut nal); // A few under way.
        }
    }
    (0..4).for_each(|_| take(&mut nal));
    let rate = (LONG_MESSAGES * LONG) as f64 / began.elapsed().as_secs_f64() / 1e9;
    println!("1 MiB messages {rate:.3} GB/s");
    answer(&mut nal, to, OVER);
    take(&mut nal);
    println!("here: {:?}", nal.counts());
}
