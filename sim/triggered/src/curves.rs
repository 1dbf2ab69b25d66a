//! Tables of cases: what an all-reduce takes by number of nodes.
//!
//! With noise that takes 2.5 % of each host, in microseconds: mean, 99th percentile and
//! longest of 1000 operations (`cargo run --release -p lintel-sim-triggered --example
//! curves 6 1000`, seed 1, set 1).
//!
//! | noise | algorithm | 64 nodes | 256 | 1024 | 4096 |
//! | --- | --- | --- | --- | --- | --- |
//! | 25 µs, 1 kHz | host recursive doubling | 15, 50, 55 | 38, 70, 83 | 64, 83, 94 | 83, 105, 108 |
//! | | host 8-nomial tree | 14, 49, 55 | 30, 59, 78 | 47, 82, 88 | 70, 99, 122 |
//! | | triggered recursive doubling | 11, 49, 53 | 28, 55, 55 | 45, 56, 57 | 57, 58, 58 |
//! | | triggered 8-nomial tree | 11, 47, 53 | 25, 55, 55 | 40, 57, 57 | 54, 59, 59 |
//! | 2.5 ms, 10 Hz | host recursive doubling | 17, 6, 4160 | 71, 2508, 4723 | 322, 4965, 7980 | 1646, 7032, 8534 |
//! | | host 8-nomial tree | 17, 6, 4157 | 71, 2507, 4722 | 273, 2511, 7416 | 1087, 6348, 7416 |
//! | | triggered recursive doubling | 16, 4, 4157 | 44, 2502, 4681 | 191, 3173, 4998 | 850, 4995, 5007 |
//! | | triggered 8-nomial tree | 13, 4, 4157 | 42, 2501, 4681 | 177, 2507, 4998 | 788, 4988, 5006 |
//!
//! Offloaded operations stay below two noises and what they take undisturbed, one while
//! the host posts and one while it wakes up; hosts hand a third and a fourth on. 250 ns
//! at 100 kHz add a microsecond at most.

use std::fmt;

use lintel_collectives::Tree;
use lintel_sim_kernel::{Duration, Samples};
use lintel_sim_node::NoiseParameters;

use crate::measure::{Algorithm, By, Case, ConfigError, Entry, cube};
use crate::timing::Timing;

/// The algorithms of the published model.
pub const ALGORITHMS: [Algorithm; 7] = [
    Algorithm::new(By::Hosts, None),
    Algorithm::new(By::Interfaces, None),
    Algorithm::new(By::Hosts, Some(Tree::KNomial(4))),
    Algorithm::new(By::Interfaces, Some(Tree::KNomial(4))),
    Algorithm::new(By::Hosts, Some(Tree::KNomial(8))),
    Algorithm::new(By::Interfaces, Some(Tree::KNomial(8))),
    Algorithm::new(By::Hosts, Some(Tree::KNomial(2))),
];

/// Those that are measured with noise.
pub const WITH_NOISE: [Algorithm; 4] = [ALGORITHMS[0], ALGORITHMS[4], ALGORITHMS[1], ALGORITHMS[5]];

/// The four settings of the study's slides: latency and message rate, whose inverse is the
/// host's work for a command. The later code, whose sets give the rest, has no set of 1000 ns
/// and 5 million messages a second, and 75 ns a command in set 1.
pub const SETTINGS: [(&str, Timing); 4] = [
    ("500 ns, 10 M/s", with_command(Timing::SET_1, 100)),
    ("1000 ns, 5 M/s", with_command(Timing::SET_2, 200)),
    ("1000 ns, 10 M/s", with_command(Timing::SET_2, 100)),
    ("1500 ns, 5 M/s", with_command(Timing::SET_3, 200)),
];

/// A set in which a command that is written alone costs the host so many nanoseconds.
const fn with_command(set: Timing, ns: u64) -> Timing {
    Timing {
        write: Duration::from_ns(ns / 2),
        fence: Duration::from_ns(ns / 2),
        ..set
    }
}

/// One operation without noise on a machine of any constants: until the last host has ended.
///
/// # Errors
///
/// As [`Case::measure`].
pub fn with_timing(
    timing: Timing,
    algorithm: Algorithm,
    nodes_log2: u32,
) -> Result<Duration, ConfigError> {
    let case = Case {
        timing,
        sides: cube(nodes_log2),
        algorithm,
        noise: None,
        entry: Entry::Undisturbed,
        seed: 1,
    };
    let samples = case.measure(1)?;
    Ok(samples.max().unwrap_or_default())
}

/// One point of a curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Point {
    /// The timing set, 1 to 3.
    pub set: u8,
    /// The operation's tree, and what executes it.
    pub algorithm: Algorithm,
    /// How many nodes there were.
    pub nodes: u32,
    /// What disturbed the hosts.
    pub noise: Option<NoiseParameters>,
    /// How many operations were measured.
    pub operations: u32,
    /// What they took, until the last host had ended.
    pub took: Spread,
}

/// How long operations took.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spread {
    /// Duration of the shortest operation.
    pub min: Duration,
    /// The mean, rounded down to the picosecond.
    pub mean: Duration,
    /// Half of them no longer.
    pub median: Duration,
    /// 99 in 100 no longer.
    pub percentile_99: Duration,
    /// Duration of the longest operation.
    pub max: Duration,
}

/// One operation without noise, each packet over each link.
///
/// # Errors
///
/// If there is no such set, or as [`Case::measure`].
pub fn undisturbed(set: u8, algorithm: Algorithm, nodes_log2: u32) -> Result<Point, ConfigError> {
    let case = case(set, algorithm, nodes_log2, None)?;
    let samples = case.measure(1)?;
    Ok(point(set, &case, samples))
}

/// Operations with noise, by the coarse model.
///
/// # Errors
///
/// As [`undisturbed`].
pub fn disturbed(
    set: u8,
    algorithm: Algorithm,
    nodes_log2: u32,
    noise: NoiseParameters,
    operations: u32,
) -> Result<Point, ConfigError> {
    let case = case(set, algorithm, nodes_log2, Some(noise))?;
    let samples = case.measure_coarse(operations)?;
    Ok(point(set, &case, samples))
}

fn case(
    set: u8,
    algorithm: Algorithm,
    nodes_log2: u32,
    noise: Option<NoiseParameters>,
) -> Result<Case, ConfigError> {
    Ok(Case {
        timing: Timing::set(set).ok_or(ConfigError::no_set(set))?,
        sides: cube(nodes_log2),
        algorithm,
        noise,
        entry: Entry::Undisturbed,
        seed: 1,
    })
}

fn point(set: u8, case: &Case, mut samples: Samples) -> Point {
    let or_none = |took: Option<Duration>| took.unwrap_or_default();
    Point {
        set,
        algorithm: case.algorithm,
        nodes: case.nodes(),
        noise: case.noise,
        operations: samples.len() as u32,
        took: Spread {
            min: or_none(samples.min()),
            mean: or_none(samples.mean()),
            median: or_none(samples.permille(500)),
            percentile_99: or_none(samples.permille(990)),
            max: or_none(samples.max()),
        },
    }
}

impl Point {
    /// The names of what [`Point::csv`] gives.
    pub const CSV_HEADER: &str = "set,algorithm,nodes,noise_ns,interval_ns,operations,\
        min_ns,mean_ns,median_ns,p99_ns,max_ns";

    /// As a line of comma-separated values.
    pub fn csv(&self) -> String {
        let ns = |d: Duration| d.as_ps() as f64 / 1e3;
        let noise =
            |part: fn(NoiseParameters) -> Duration| ns(self.noise.map_or(Duration::ZERO, part));
        let Spread {
            min,
            mean,
            median,
            percentile_99,
            max,
        } = self.took;
        let took = [min, mean, median, percentile_99, max].map(|d| ns(d).to_string());
        format!(
            "{},{},{},{},{},{},{}",
            self.set,
            self.algorithm,
            self.nodes,
            noise(|noise| noise.length),
            noise(|noise| noise.interval),
            self.operations,
            took.join(","),
        )
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match self.by {
            By::Hosts => "host",
            By::Interfaces => "triggered",
        };
        match self.tree {
            None => write!(f, "{by} recursive doubling"),
            Some(Tree::KNomial(base)) => write!(f, "{by} {base}-nomial tree"),
            Some(Tree::KAry(arity)) => write!(f, "{by} {arity}-ary tree"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Order;

    #[test]
    fn a_command_costs_the_inverse_of_the_message_rate() {
        let of = |(_, timing): (&str, Timing)| timing.command();
        let [fast, slow] = [100, 200].map(Duration::from_ns);
        assert_eq!(SETTINGS.map(of), [fast, slow, fast, slow]);
    }

    #[test]
    fn the_width_of_a_tree_has_a_best_value_which_the_interface_moves_up() {
        let took = |by, width| {
            let algorithm = Algorithm::new(by, Some(Tree::KNomial(width)));
            with_timing(Timing::SET_1, algorithm, 10).expect("a torus")
        };
        let widths = [2, 4, 8, 16, 32, 64];
        let best = |by| widths.into_iter().min_by_key(|&width| took(by, width));
        let (hosts, triggered) = (best(By::Hosts), best(By::Interfaces));
        assert!(hosts < triggered, "{hosts:?} {triggered:?}");
        assert!(
            Some(2) < hosts && triggered < Some(64),
            "{hosts:?} {triggered:?}"
        );
    }

    #[test]
    fn an_operation_that_goes_to_the_far_ones_first_ends_sooner() {
        for nodes_log2 in [9, 10, 12] {
            for by in [By::Hosts, By::Interfaces] {
                let took = |order| {
                    let algorithm = Algorithm::new(by, Some(Tree::KNomial(8))).in_order(order);
                    with_timing(Timing::SET_1, algorithm, nodes_log2).expect("a torus")
                };
                let (far, near) = (took(Order::FarFirst), took(Order::NearFirst));
                assert!(far < near, "{nodes_log2} {by:?}: {far:?} {near:?}");
            }
        }
    }
}
