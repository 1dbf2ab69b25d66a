//! Figures and points of the first studies of triggered operations.

use lintel_collectives::Tree;
use lintel_sim_kernel::Duration;
use lintel_sim_seastar::figures::{How, Published};
use lintel_sim_triggered::curves::Spread;
use lintel_sim_triggered::{Algorithm, By, NOISES, Order, Timing, curves};

use super::{Compared, Curve, Drawing, Mark, Sheet};
use crate::error::{Error, Result};
use crate::plot::chart::Scale;

/// Each with its name.
pub fn figures() -> Vec<Drawing> {
    let undisturbed = |name, title, set| Drawing {
        name,
        title,
        draw: Box::new(move || without_noise(set)),
    };
    let disturbed = |name, title, noise| Drawing {
        name,
        title,
        draw: Box::new(move || with_noise(noise)),
    };
    vec![
        undisturbed(
            "triggered-500",
            "All-reduce of 8 bytes, timing set 1 (a put takes 683 ns)",
            1,
        ),
        undisturbed(
            "triggered-1000",
            "All-reduce of 8 bytes, timing set 2 (a put takes 1308 ns)",
            2,
        ),
        undisturbed(
            "triggered-1500",
            "All-reduce of 8 bytes, timing set 3 (a put takes 1758 ns)",
            3,
        ),
        Drawing {
            name: "triggered-settings",
            title: "All-reduce of 8 bytes, recursive doubling, by latency and message rate",
            draw: Box::new(by_setting),
        },
        Drawing {
            name: "triggered-width",
            title: "All-reduce of 8 bytes along k-nomial trees, 1024 nodes, timing set 1",
            draw: Box::new(by_width),
        },
        Drawing {
            name: "triggered-order",
            title: "All-reduce along 8-nomial trees, timing set 1: far nodes first, or last",
            draw: Box::new(by_order),
        },
        disturbed(
            "noise-100khz",
            "All-reduce, noise of 250 ns at 100 kHz: mean of 1000",
            0,
        ),
        disturbed(
            "noise-1khz",
            "All-reduce, noise of 25 µs at 1 kHz: mean of 1000",
            1,
        ),
        Drawing {
            name: "noise-1khz-longest",
            title: "All-reduce, noise of 25 µs at 1 kHz: the longest of 1000",
            draw: Box::new(longest_with_noise),
        },
        disturbed(
            "noise-10hz",
            "All-reduce, noise of 2.5 ms at 10 Hz: mean of 1000",
            2,
        ),
    ]
}

/// What the public simulator says, and what this one says.
pub fn points() -> Result<Vec<Compared>> {
    let mut points = Vec::new();
    for (set, algorithm, nodes_log2, published) in PUBLIC {
        let algorithm = curves::ALGORITHMS[algorithm];
        let took = point(set, algorithm, nodes_log2)?;
        points.push(Compared {
            source: format!("portals4_sm, set {set}"),
            what: format!("{}, {} nodes", name(algorithm), 1 << nodes_log2),
            unit: "ns".into(),
            published: published.to_string(),
            simulated: took,
            difference: Published::Value(published).off(took),
            how: How::Regenerated,
            is_close: Published::Value(published).difference(took).abs() <= 0.1,
            cause: String::new(),
        });
    }
    points.extend(gains()?);
    Ok(points)
}

/// What offload gains: S2 says twice as fast, "versus idealized host implementation".
fn gains() -> Result<Vec<Compared>> {
    let [host, triggered, _, _, host_8, triggered_8, host_2] = curves::ALGORITHMS;
    let pairs = [
        (host, triggered),
        (host_8, triggered_8),
        (host_2, triggered_8),
    ];
    let mut points = Vec::new();
    for set in 1..=3 {
        for (slow, fast) in pairs {
            let gain = point(set, slow, GAIN_LOG2)? / point(set, fast, GAIN_LOG2)?;
            let reference = Published::Value(2.0);
            points.push(Compared {
                source: format!("S2, set {set}"),
                what: format!(
                    "{} nodes: {} over {}",
                    1 << GAIN_LOG2,
                    name(slow),
                    name(fast)
                ),
                unit: String::new(),
                published: "2".into(),
                simulated: gain,
                difference: reference.off(gain),
                how: How::Depends,
                is_close: reference.difference(gain).abs() <= 0.1,
                cause: "S2 states neither the algorithms nor the number of nodes".into(),
            });
        }
    }
    Ok(points)
}

/// The four pairs of latency and message rate of S2's table.
fn by_setting() -> Result<Sheet> {
    let mut all = Vec::new();
    for (setting, timing) in curves::SETTINGS {
        for algorithm in &curves::ALGORITHMS[..2] {
            let mut points = Vec::new();
            for nodes_log2 in MOST_LOG2 {
                let took = took(timing, *algorithm, nodes_log2)?;
                points.push((f64::from(1 << nodes_log2), took));
            }
            let by = match algorithm.by {
                By::Hosts => "hosts",
                By::Interfaces => "triggered",
            };
            all.push(Curve {
                label: format!("{setting}, {by}"),
                points,
            });
        }
    }
    Ok(plain(("nodes", Scale::Powers), all))
}

/// S2: k-nomial trees are better, but the work at the root limits k.
fn by_width() -> Result<Sheet> {
    let mut all = Vec::new();
    for (label, by) in [("hosts", By::Hosts), ("triggered", By::Interfaces)] {
        let mut points = Vec::new();
        for width in [2, 4, 8, 16, 32, 64] {
            let algorithm = Algorithm::new(by, Some(Tree::KNomial(width)));
            let took = took(Timing::SET_1, algorithm, GAIN_LOG2)?;
            points.push((f64::from(width), took));
        }
        all.push(Curve {
            label: label.into(),
            points,
        });
    }
    Ok(plain(("k", Scale::Powers), all))
}

/// S2: the host's gap between two commands is a hop's time, so send the far away ones first.
fn by_order() -> Result<Sheet> {
    let mut all = Vec::new();
    for (label, by, order) in [
        ("hosts, far first", By::Hosts, Order::FarFirst),
        ("hosts, near first", By::Hosts, Order::NearFirst),
        ("triggered, far first", By::Interfaces, Order::FarFirst),
        ("triggered, near first", By::Interfaces, Order::NearFirst),
    ] {
        let algorithm = Algorithm::new(by, Some(Tree::KNomial(8))).in_order(order);
        let mut points = Vec::new();
        for nodes_log2 in MOST_LOG2 {
            let took = took(Timing::SET_1, algorithm, nodes_log2)?;
            points.push((f64::from(1 << nodes_log2), took));
        }
        all.push(Curve {
            label: label.into(),
            points,
        });
    }
    Ok(plain(("nodes", Scale::Powers), all))
}

/// Microseconds until the last host has ended.
fn took(timing: Timing, algorithm: Algorithm, nodes_log2: u32) -> Result<f64> {
    let took = curves::with_timing(timing, algorithm, nodes_log2);
    let took = took.map_err(|mistake| Error::Wrong(mistake.to_string()))?;
    Ok(took.as_ps() as f64 / 1e6)
}

/// Curves without points to compare with.
fn plain(x: (&'static str, Scale), curves: Vec<Curve>) -> Sheet {
    Sheet {
        x,
        y: ("until the last host has ended (µs)".into(), Scale::Linear),
        curves,
        undrawn: Vec::new(),
        published: Vec::new(),
        reference: "published",
    }
}

fn without_noise(set: u8) -> Result<Sheet> {
    let mut all = Vec::new();
    for algorithm in curves::ALGORITHMS {
        let mut points = Vec::new();
        for nodes_log2 in MOST_LOG2 {
            let took = point(set, algorithm, nodes_log2)?;
            points.push((f64::from(1 << nodes_log2), took / 1e3));
        }
        all.push(Curve {
            label: name(algorithm),
            points,
        });
    }
    let published = PUBLIC.iter().filter(|point| point.0 == set);
    Ok(Sheet {
        x: ("nodes", Scale::Powers),
        y: ("until the last host has ended (µs)".into(), Scale::Linear),
        curves: all,
        undrawn: Vec::new(),
        published: published
            .map(|&(_, curve, nodes_log2, ns)| Mark {
                curve,
                x: f64::from(1 << nodes_log2),
                y: ns / 1e3,
            })
            .collect(),
        reference: "public code",
    })
}

/// The means, and for tables some percentiles.
fn with_noise(noise: usize) -> Result<Sheet> {
    let (mut means, mut others) = (Vec::new(), Vec::new());
    for algorithm in curves::WITH_NOISE {
        let mut spreads = Vec::new();
        for nodes_log2 in (6..=12).step_by(2) {
            let noise = NOISES[noise];
            let point = curves::disturbed(1, algorithm, nodes_log2, noise, OPERATIONS);
            let point = point.map_err(|mistake| Error::Wrong(mistake.to_string()))?;
            spreads.push((f64::from(1 << nodes_log2), point.took));
        }
        let curve = |what: &str, of: fn(&Spread) -> Duration| Curve {
            label: format!("{}{what}", name(algorithm)),
            points: spreads
                .iter()
                .map(|(nodes, spread)| (*nodes, of(spread).as_ps() as f64 / 1e6))
                .collect(),
        };
        means.push(curve("", |spread| spread.mean));
        others.push(curve(", median", |spread| spread.median));
        others.push(curve(", 99th percentile", |spread| spread.percentile_99));
        others.push(curve(LONGEST, |spread| spread.max));
    }
    Ok(Sheet {
        x: ("nodes", Scale::Powers),
        y: ("until the last host has ended (µs)".into(), Scale::Linear),
        curves: means,
        undrawn: others,
        published: Vec::new(),
        reference: "published",
    })
}

/// S2: with noise of 25 µs hosts' latency grows with the nodes, and interfaces' levels off. Their
/// means still grow at 4096 nodes; it is the longest that level off.
fn longest_with_noise() -> Result<Sheet> {
    let mut sheet = with_noise(1)?;
    sheet.undrawn.retain(|curve| curve.label.ends_with(LONGEST));
    sheet.curves = std::mem::take(&mut sheet.undrawn);
    for curve in &mut sheet.curves {
        curve.label.truncate(curve.label.len() - LONGEST.len());
    }
    Ok(sheet)
}

/// The simulated duration of a collective operation, in nanoseconds.
fn point(set: u8, algorithm: Algorithm, nodes_log2: u32) -> Result<f64> {
    let point = curves::undisturbed(set, algorithm, nodes_log2);
    let point = point.map_err(|mistake| Error::Wrong(mistake.to_string()))?;
    Ok(point.took.max.as_ps() as f64 / 1e3)
}

fn name(algorithm: Algorithm) -> String {
    let by = match algorithm.by {
        By::Hosts => "hosts",
        By::Interfaces => "triggered",
    };
    match algorithm.tree {
        None => format!("{by}, recursive doubling"),
        Some(Tree::KNomial(k)) => format!("{by}, {k}-nomial tree"),
        Some(tree) => format!("{by}, {tree:?}"),
    }
}

/// Nodes on which gains and widths are compared: 1024.
const GAIN_LOG2: u32 = 10;
/// Nodes of a curve without noise.
const MOST_LOG2: std::ops::RangeInclusive<u32> = 6..=12;
/// What ends the label of a curve of the longest operations.
const LONGEST: &str = ", longest";
/// Operations of a point with noise.
const OPERATIONS: u32 = 1_000;

/// Timing set, algorithm (its place in `curves::ALGORITHMS`), nodes (log2), nanoseconds:
/// runs of the public simulator's code. All of its plain numbers are in the tests of
/// `lintel-sim-triggered`.
const PUBLIC: [(u8, usize, u32, f64); 12] = [
    (1, 0, 6, 5_528.0),
    (1, 1, 6, 4_215.0),
    (1, 0, 10, 9_920.0),
    (1, 1, 10, 6_935.0),
    (1, 5, 9, 5_902.0),
    (1, 0, 12, 12_476.0),
    (1, 1, 12, 8_655.0),
    (1, 5, 12, 9_536.0),
    (2, 0, 10, 16_921.0),
    (2, 1, 10, 11_835.0),
    (3, 0, 10, 22_661.0),
    (3, 1, 10, 14_692.0),
];
