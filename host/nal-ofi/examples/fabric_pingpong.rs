//! Half a round trip of this NAL, beside that of libfabric's own `fi_pingpong`, over
//! one provider in one run.
//!
//! ```text
//! cargo run --release -p lintel-nal-ofi --example fabric_pingpong -- 'tcp;ofi_rxm' 20000 8 1024
//! ```
//!
//! Provider, round trips, sizes. Prints a line a size: bytes, microseconds of each,
//! their ratio; of five pairs of runs, each with its own processes, the median.

use lintel_claim::{Lease, Region};
use lintel_nal::{Arrival, Nal, Outgoing, Payload, Wake};
use lintel_nal_ofi::{Config, OfiNal};
use lintel_types::ProcessId;
use lintel_wire::WORDS;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Under which everything is lent.
static LEASE: std::sync::LazyLock<Lease> = std::sync::LazyLock::new(Lease::new);

const NID: u32 = 0x7f00_0001;
/// Runs of each of the two that are compared, in turns.
const RUNS: usize = 5;
/// How long a partner is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// Rounds before time is taken, as many as `fi_pingpong` makes.
const WARM_UP: u32 = 10;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["echo", provider, job] => echo(provider, job),
        ["ping", provider, job, pid, rounds, size] => {
            let pid = pid.parse().expect("a process identifier");
            let rounds = rounds.parse().expect("a number of rounds");
            let size = size.parse().expect("a number of bytes");
            println!("{}", ping(provider, job, pid, rounds, size));
        }
        [provider, rounds, sizes @ ..] if !sizes.is_empty() => {
            for size in sizes {
                compare(provider, rounds, size);
            }
        }
        _ => eprintln!("pingpong PROVIDER ROUNDS SIZE…"),
    }
}

fn compare(provider: &str, rounds: &str, size: &str) {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        ours.push(run_ours(provider, rounds, size, run));
        theirs.extend(run_theirs(provider, rounds, size));
    }
    let ratios = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs);
    let ratio = median(ratios.collect());
    println!(
        "{provider} {size} B: {:.2} us, fi_pingpong {:.2} us, ratio {ratio:.2}",
        median(ours),
        median(theirs),
    );
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn run_ours(provider: &str, rounds: &str, size: &str, run: usize) -> f64 {
    let job = format!("pingpong-{}-{run}", std::process::id());
    let own = std::env::current_exe().expect("a program knows its path");
    let mut partner = Command::new(&own)
        .args(["echo", provider, &job])
        .stdout(Stdio::piped())
        .spawn()
        .expect("a second process");
    let pid = first_line(&mut partner);
    let output = Command::new("taskset")
        .args(["-c", "0"])
        .arg(&own)
        .args(["ping", provider, &job, &pid, rounds, size])
        .output()
        .expect("a first process");
    partner
        .wait()
        .expect("the second process ends with the first");
    let output = String::from_utf8_lossy(&output.stdout);
    output.trim().parse().expect("it prints a number")
}

fn first_line(child: &mut Child) -> String {
    let output = child.stdout.take().expect("its output is ours");
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .expect("it prints its name");
    line.trim().to_owned()
}

/// The last column but one of the line of figures.
fn run_theirs(provider: &str, rounds: &str, size: &str) -> Option<f64> {
    let common = ["-p", provider, "-e", "rdm", "-I", rounds, "-S", size];
    let start = |core: &str, more: &[&str]| {
        let mut command = Command::new("taskset");
        command
            .args(["-c", core, "fi_pingpong"])
            .args(common)
            .args(more);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()
    };
    let mut server = start("1", &[])?;
    std::thread::sleep(Duration::from_millis(500)); // It doesn't say when it is ready.
    let output = start("0", &["127.0.0.1"])?.wait_with_output().ok()?;
    server.wait().ok()?;
    let output = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut columns = output.lines().last()?.split_whitespace().rev();
    columns.nth(1)?.parse().ok()
}

fn open(provider: &str, job: &str) -> OfiNal {
    let config = Config {
        nid: NID,
        port: None,
        provider: Some(provider.to_owned()),
        key: [1; 32],
        uid: 0,
        model_is_xrc: false,
        peer_timeout: Duration::from_secs(10),
        job,
        log: |words| eprintln!("{words}"),
    };
    OfiNal::open(config).unwrap_or_else(|error| panic!("{error}"))
}

fn echo(provider: &str, job: &str) {
    let own = std::process::id().to_string();
    let _ = Command::new("taskset")
        .args(["-p", "-c", "1", &own])
        .stdout(Stdio::null())
        .status();
    let mut nal = open(provider, job);
    println!("{}", nal.process().pid);
    let place = Region::new(1 << 24);
    while let Some((from, length)) = receive(&mut nal, &place) {
        let pieces = [place.claim().slice(0, length)];
        let body = Outgoing::LentToRead(LEASE.lend(&pieces));
        if nal.send(from, &[0; WORDS], body).is_err() {
            return;
        }
    }
}

fn ping(provider: &str, job: &str, pid: u32, rounds: u32, size: u64) -> f64 {
    let mut nal = open(provider, job);
    let place = Region::new(size.max(1));
    let pieces = [place.claim().slice(0, size)];
    let to = ProcessId::new(NID, pid);
    let mut round = || {
        let sent = nal.send(to, &[0; WORDS], Outgoing::LentToRead(LEASE.lend(&pieces)));
        sent.expect("the partner is there");
        receive(&mut nal, &place).expect("the partner answers");
    };
    for _ in 0..WARM_UP {
        round();
    }
    let start = Instant::now();
    for _ in 0..rounds {
        round();
    }
    start.elapsed().as_secs_f64() * 1e6 / f64::from(rounds) / 2.0
}

/// The next message, brought to its place; nothing once the partner has ended, or
/// hasn't come for long.
fn receive(nal: &mut OfiNal, place: &Region) -> Option<(ProcessId, u64)> {
    let mut came = None;
    let mut since = None;
    // A look at the clock costs little beside one at the network, yet not nothing.
    for look in 0u32.. {
        if look % 1024 == 1023 {
            nal.check_peers();
            let now = Instant::now();
            if now - *since.get_or_insert(now) > PATIENCE {
                break;
            }
        }
        match nal.next() {
            Some(Arrival::Message(origin, _, Payload::Inline(claim))) => {
                lintel_claim::copy(claim, place.claim());
                nal.done(origin);
                return Some((origin.process, claim.len()));
            }
            Some(Arrival::Message(origin, _, Payload::Streamed(length))) => {
                nal.receive_into(origin, LEASE.lend(&[place.claim()]).keep());
                nal.done(origin);
                came = Some((origin.process, length));
            }
            Some(Arrival::Streamed(_)) => return came,
            Some(_) => return None,
            None => {
                nal.flush();
            }
        }
    }
    None
}
