//! `fault-hostile`: random and mutated datagrams at the port of a process that goes on
//! exchanging messages with its peer.
//!
//! ```text
//!   recordings: what a peer of the right key, and one of a wrong key, really send
//!        │
//!   attacker ──random, mutated, replayed──▶ victim ◀──messages in order──▶ peer
//!                                             └── counts, and holds no more than before
//! ```
//!
//! Every datagram is counted once: by the victim under what is wrong with it, or by the
//! system as one for which the socket had no room. No message of the peer is lost,
//! doubled, changed or out of order, no peer is declared dead, and the victim holds
//! what it held before: contexts, pairs, sockets, and bytes but for a queue or two.
//!
//! `fault-hostile [--packets N] [--seed N]`
#![forbid(unsafe_code)]

mod attacker;
mod recordings;
mod traffic;

use attacker::Attacker;
use lintel_fault::places::Places;
use lintel_fault::random::Random;
use lintel_nal_udp::{Config, DatagramCounts, Model, Resources, UdpNal};
use lintel_types::ProcessId;
use recordings::Recordings;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use traffic::Traffic;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match Options::read(&words).and_then(|options| run(&options)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fault-hostile: {why}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    packets: u64,
    seed: Option<u64>,
}

impl Options {
    fn read(words: &[String]) -> Result<Options, String> {
        let mut options = Options {
            packets: 200_000,
            seed: None,
        };
        for pair in words.chunks(2) {
            let number = pair.get(1).and_then(|word| word.parse().ok());
            let number: u64 = number.ok_or(format!("{} wants a number", pair[0]))?;
            match pair[0].as_str() {
                "--packets" => options.packets = number,
                "--seed" => options.seed = Some(number),
                other => return Err(format!("no option {other}; --packets and --seed are")),
            }
        }
        Ok(options)
    }
}

/// The processes of the job, by their parts in the attack.
struct Processes {
    victim: ProcessId,
    peer: ProcessId,
    outsider: ProcessId,
}

/// The key of the job, which the attacker lacks.
const KEY: [u8; 32] = [0x5e; 32];
/// The key of another job, which fails authentication.
const OTHER_KEY: [u8; 32] = [0x0e; 32];

/// Opens a NAL as that process, within this test program.
fn open(process: ProcessId, key: [u8; 32]) -> Result<UdpNal, String> {
    UdpNal::open(Config {
        nid: process.nid,
        port: u16::try_from(process.pid).ok(),
        key,
        uid: 1000,
        model: Model::Xrc,
        peer_timeout: Duration::from_secs(20),
        faults: None,
        log: |words| eprintln!("{words}"),
        job: "hostile",
    })
    .map_err(|why| why.to_string())
}

fn run(options: &Options) -> Result<(), String> {
    let seed = options.seed;
    let seed = seed.unwrap_or_else(|| Random::from_env().number() >> 16);
    println!("seed {seed}");
    let places = Places::unique(0, 3);
    let processes = Processes {
        victim: places.process(0),
        peer: places.process(1),
        outsider: places.process(2),
    };
    let recordings = Recordings::record(&processes)?;
    let mut traffic = Traffic::open(&processes)?;
    let attack = attack(options.packets, seed, recordings, &processes, &mut traffic);
    attack.map_err(|why| format!("{why}\nrepeat the same packets with --seed {seed}"))
}

/// An empty queue may have grown by some entries; no buffer is as small, bytes.
const MAX_GROWTH: u64 = 4 << 10;
/// Datagrams between two polls of the victim: together they fit its socket buffer.
const BURST: u64 = 24;

fn attack(
    packets: u64,
    seed: u64,
    recordings: Recordings,
    processes: &Processes,
    traffic: &mut Traffic,
) -> Result<(), String> {
    let mut attacker = Attacker::new(processes, recordings, seed)?;
    traffic.drain()?;
    let (before, held) = (traffic.victim.counts(), traffic.victim.resources());
    let began = Instant::now();
    let mut sent = 0;
    while sent < packets {
        let until = packets.min(sent + BURST);
        while sent < until {
            sent += attacker.send(until - sent)?;
        }
        traffic.step()?;
    }
    traffic.drain()?;
    let dropped = attacker.dropped_by_system()?;
    let seconds = began.elapsed().as_secs_f64();
    let now = traffic.victim.counts();
    report(packets, seconds, &before, &now, dropped, traffic.received);
    let counted = now.hostile() - before.hostile();
    if counted + dropped != packets {
        return Err(format!(
            "of {packets} datagrams {counted} were counted, {dropped} dropped"
        ));
    }
    let holds = traffic.victim.resources();
    let same = Resources {
        bytes: held.bytes,
        ..holds
    };
    if same != held || holds.bytes > held.bytes + MAX_GROWTH {
        return Err(format!("the victim held {held:?}, and now {holds:?}"));
    }
    Ok(())
}

fn report(
    packets: u64,
    seconds: f64,
    before: &DatagramCounts,
    now: &DatagramCounts,
    dropped: u64,
    received: u64,
) {
    println!("{packets} datagrams in {seconds:.1} s, meanwhile {received} messages of the peer");
    for (name, before, now) in [
        ("forged", before.forged, now.forged),
        ("malformed", before.malformed, now.malformed),
        ("damaged", before.damaged, now.damaged),
        ("misdirected", before.misdirected, now.misdirected),
        ("stale", before.stale, now.stale),
    ] {
        println!("{name:>12} {}", now - before);
    }
    println!("{:>12} {dropped} by the system", "dropped");
    let accepted = now.accepted - before.accepted;
    println!("{:>12} {accepted} of the peer's", "accepted");
}
