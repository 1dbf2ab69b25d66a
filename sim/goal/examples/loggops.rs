//! A schedule in the LogGOPS model: how long it takes, and how fast the simulation runs.
//!
//! `cargo run --release -p lintel-sim-goal --example loggops -- run FILE [L o g G O S]`
//! `cargo run --release -p lintel-sim-goal --example loggops -- write PATTERN RANKS`
//!
//! `run` prints the ends as LogGOPSim does; without the six numbers they are its
//! defaults. `write` writes a schedule that both read: `doubling` (8-byte all-reduce),
//! `tree`, `halo` (ten times 4 KB to six neighbours; RANKS is a cube), `incast`,
//! `alltoall`. Beside LogGOPSim (github.com/spcl/LogGOPSim):
//!
//! ```text
//! … write doubling 32768 > f.goal
//! … run f.goal
//! txt2bin -i f.goal -o f.bin && LogGOPSim -f f.bin -b
//! ```
//!
//! An event of LogGOPSim is an operation or a message; the rate of both programs is
//! printed in those.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fs;

use lintel_collectives::{Algorithm, Collective, Shape, Tree};
use lintel_sim_goal::{Goal, Hosts, LogGp, Machine, patterns};
use lintel_sim_kernel::{Duration, Simulation};

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["write", pattern, ranks] => write(pattern, ranks.parse()?),
        ["run", file] => run(file, [2_500, 1_500, 1_000, 6, 0, 65_535]),
        ["run", file, ref numbers @ ..] if numbers.len() == 6 => {
            let mut parameters = [0; 6];
            for (parameter, number) in parameters.iter_mut().zip(numbers) {
                *parameter = number.parse()?;
            }
            run(file, parameters)
        }
        _ => Err("run FILE [L o g G O S], or write PATTERN RANKS".into()),
    }
}

fn write(pattern: &str, ranks: u32) -> Result<(), Box<dyn Error>> {
    let shape = Shape { ranks, bytes: 8 };
    let goal = match pattern {
        "doubling" => {
            let doubling = Collective::allreduce(shape, Algorithm::RecursiveDoubling)?;
            Goal::of_collective(&doubling, 1)
        }
        "tree" => {
            let tree = Collective::allreduce(shape, Algorithm::Tree(Tree::KNomial(8)))?;
            Goal::of_collective(&tree, 1)
        }
        "halo" => {
            let side = f64::from(ranks).cbrt().round() as u32;
            patterns::halo([side; 3], 4_096, 100, 10)
        }
        "incast" => patterns::incast(ranks, 1, 8),
        "alltoall" => patterns::all_to_all(ranks, 64),
        other => return Err(format!("no pattern {other}").into()),
    };
    print!("{goal}");
    Ok(())
}

fn run(
    file: &str,
    [l, o, g, per_byte, overhead_per_byte, s]: [u64; 6],
) -> Result<(), Box<dyn Error>> {
    let begin = processor_seconds();
    let goal = Goal::parse(&fs::read_to_string(file)?)?;
    let hosts = Hosts {
        overhead: Duration::from_ns(o),
        overhead_per_byte: Duration::from_ns(overhead_per_byte),
        gap: Duration::from_ns(g),
        eager: s,
    };
    let wire = LogGp::new(Duration::from_ns(l)).per_byte(Duration::from_ns(per_byte));
    let mut simulation = Simulation::new(Machine::new(goal.compile()?, hosts, wire));
    drop(goal);
    let built = processor_seconds();
    simulation.world.start(&mut simulation.events);
    simulation.run();
    let took = processor_seconds() - built;
    let machine = &simulation.world;
    if let Some(unfinished) = machine.unfinished() {
        return Err(unfinished.into());
    }
    let ends = machine.ends();
    if ends.len() <= 16 {
        for (rank, end) in ends.iter().enumerate() {
            println!("Host {rank}: {}", end.as_ps() / 1_000);
        }
    }
    let events = machine.operations() as u64 + machine.sent();
    println!(
        "end {} ns; {events} operations and messages, {:.2} M/s ({:.2} M kernel events, {:.2} M/s); {:.2} s to read, {took:.2} s to run; trace hash {:016x}",
        machine.end().as_ps() / 1_000,
        events as f64 / took / 1e6,
        simulation.events.executed() as f64 / 1e6,
        simulation.events.executed() as f64 / took / 1e6,
        built - begin,
        simulation.events.trace_hash(),
    );
    Ok(())
}

/// Time that this process spent computing; others on the machine don't count.
fn processor_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = stat.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    ns.unwrap_or(0.0) / 1e9
}
