//! Two large all-reduces: how long a simulation of them takes, and in what memory.
//!
//! `cargo run --release -p lintel-sim-triggered --example scale [OPERATIONS]`
//!
//! - 32,768 nodes, recursive doubling by hosts, once, each packet over each link.
//! - 65,536 nodes, an 8-nomial tree by interfaces, with noise of 25 µs each
//!   millisecond, 1000 times, by the coarse model.
//!
//! Prints what the operations took, and seconds of processor time.
#![forbid(unsafe_code)]

use std::fs;

use lintel_collectives::Tree;
use lintel_sim_kernel::{Duration, Samples};
use lintel_sim_triggered::{Algorithm, By, Case, Entry, NOISES, Timing, cube};

const HOSTS: Case = Case {
    timing: Timing::SET_1,
    sides: cube(15),
    algorithm: Algorithm::new(By::Hosts, None),
    noise: None,
    entry: Entry::Undisturbed,
    seed: 1,
};

const INTERFACES: Case = Case {
    sides: cube(16),
    algorithm: Algorithm::new(By::Interfaces, Some(Tree::KNomial(8))),
    noise: Some(NOISES[1]),
    ..HOSTS
};

/// Time that this process spent computing; others on the machine don't count.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|n| n.parse().ok());
    ns.unwrap_or(0.0) / 1e9
}

/// The most memory that this process had, as the system words it.
fn most_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.unwrap_or("unknown").trim().to_string()
}

fn print(case: &Case, begin: f64, mut samples: Samples) {
    let us = |took: Option<Duration>| took.map_or(0.0, |took| took.as_ps() as f64 / 1e6);
    println!(
        "{} nodes, {}, {} operations: mean {:.3}, median {:.3}, 99 % {:.3}, longest {:.3} us",
        case.nodes(),
        case.algorithm,
        samples.len(),
        us(samples.mean()),
        us(samples.permille(500)),
        us(samples.permille(990)),
        us(samples.max()),
    );
    let seconds = processor_seconds() - begin;
    println!(
        "  {seconds:.2} s, {} of memory at most so far",
        most_memory()
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let operations = std::env::args().nth(1).map_or(Ok(1_000), |n| n.parse())?;
    let begin = processor_seconds();
    print(&HOSTS, begin, HOSTS.measure(1)?);
    let begin = processor_seconds();
    print(&INTERFACES, begin, INTERFACES.measure_coarse(operations)?);
    Ok(())
}
