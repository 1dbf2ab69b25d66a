//! The tables of the studies: what an 8-byte all-reduce takes by number of nodes.
//!
//! `cargo run --release -p lintel-sim-triggered --example curves [--csv] [NODES_LOG2 [OPERATIONS]]`
//!
//! Without noise, up to 2^NODES_LOG2 nodes (12), for the model's three timing sets,
//! in nanoseconds. With noise, set 1, 64 to 4096 nodes, OPERATIONS (1000) a point, in
//! microseconds.
#![forbid(unsafe_code)]

use lintel_sim_kernel::Duration;
use lintel_sim_node::NoiseParameters;
use lintel_sim_triggered::curves::{self, ALGORITHMS, Point, Spread, WITH_NOISE};
use lintel_sim_triggered::{Algorithm, ConfigError, NOISES};

struct Options {
    csv: bool,
    nodes_log2: u32,
    operations: u32,
}

fn options() -> Result<Options, std::num::ParseIntError> {
    let (flags, numbers): (Vec<_>, Vec<_>) = std::env::args()
        .skip(1)
        .partition(|argument| argument == "--csv");
    let number = |place: usize, default| numbers.get(place).map_or(Ok(default), |n| n.parse());
    Ok(Options {
        csv: !flags.is_empty(),
        nodes_log2: number(0, 12)?,
        operations: number(1, 1_000)?,
    })
}

fn us(took: Duration) -> f64 {
    took.as_ps() as f64 / 1e6
}

fn undisturbed(options: &Options, set: u8, algorithm: Algorithm) -> Result<(), ConfigError> {
    let points = (6..=options.nodes_log2).map(|n| curves::undisturbed(set, algorithm, n));
    let points = points.collect::<Result<Vec<Point>, ConfigError>>()?;
    if options.csv {
        points.iter().for_each(|point| println!("{}", point.csv()));
        return Ok(());
    }
    let ns = |point: &Point| format!("{:>7}", point.took.max.as_ps() / 1_000);
    let row: String = points.iter().map(ns).collect();
    println!("{:<28}{row}", algorithm.to_string());
    Ok(())
}

fn disturbed(
    options: &Options,
    noise: NoiseParameters,
    algorithm: Algorithm,
) -> Result<(), ConfigError> {
    for nodes_log2 in [6, 8, 10, 12] {
        let point = curves::disturbed(1, algorithm, nodes_log2, noise, options.operations)?;
        if options.csv {
            println!("{}", point.csv());
            continue;
        }
        let Spread {
            min,
            mean,
            median,
            percentile_99,
            max,
        } = point.took;
        println!(
            "{:<28}{:>6} mean {:7.1}, least {:6.1}, median {:7.1}, 99 % {:7.1}, longest {:7.1}",
            algorithm.to_string(),
            point.nodes,
            us(mean),
            us(min),
            us(median),
            us(percentile_99),
            us(max),
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = options()?;
    if options.csv {
        println!("{}", Point::CSV_HEADER);
    }
    for set in 1..=3 {
        if !options.csv {
            let nodes: String = (6..=options.nodes_log2)
                .map(|n| format!("{:>7}", 1u64 << n))
                .collect();
            println!("\n{:<28}{nodes}", format!("set {set}, ns"));
        }
        for algorithm in ALGORITHMS {
            undisturbed(&options, set, algorithm)?;
        }
    }
    for noise in NOISES {
        if !options.csv {
            println!(
                "\nset 1, noise of {} each {}, us",
                noise.length, noise.interval
            );
        }
        for algorithm in WITH_NOISE {
            disturbed(&options, noise, algorithm)?;
        }
    }
    Ok(())
}
