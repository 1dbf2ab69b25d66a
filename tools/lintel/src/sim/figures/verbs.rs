//! Figures and points of the study of XRC. Its model is calibrated to the study's own
//! points and predicts none of them: what it shows is how they hang together.

use lintel_sim_kernel::Bytes;
use lintel_sim_seastar::figures::{How, Published};
use lintel_sim_verbs::counts::Job;
use lintel_sim_verbs::measure::{Pattern, bandwidth, latency};
use lintel_sim_verbs::{Transport, table};

use super::{Compared, Curve, Drawing, Mark, Sheet};
use crate::error::Result;
use crate::plot::chart::Scale;

/// Each with its name.
pub fn figures() -> Vec<Drawing> {
    let streams = |name, title, pattern, published| Drawing {
        name,
        title,
        draw: Box::new(move || Ok(rates(pattern, published))),
    };
    vec![
        Drawing {
            name: "seed-003-latency",
            title: "RC and XRC: latency",
            draw: Box::new(|| Ok(times())),
        },
        streams(
            "seed-003-uni",
            "RC and XRC: uni-directional bandwidth",
            Pattern::Pairs(1),
            Some(1402.0),
        ),
        streams(
            "seed-003-bi",
            "RC and XRC: bi-directional bandwidth",
            Pattern::BothWays,
            Some(2722.0),
        ),
        streams(
            "seed-003-pairs",
            "RC and XRC: eight pairs",
            Pattern::Pairs(8),
            None,
        ),
        streams(
            "seed-003-many",
            "RC and XRC: many-to-many, eight processes a node",
            Pattern::ManyToMany(8),
            None,
        ),
        Drawing {
            name: "seed-003-memory",
            title: "Memory of a process for connections, eight processes a node",
            draw: Box::new(|| Ok(memory())),
        },
    ]
}

/// The points that the study published.
pub fn points() -> Result<Vec<Compared>> {
    let rows = table().into_iter().map(|row| Compared {
        source: row.source.into(),
        what: row.what.into(),
        unit: row.unit.into(),
        published: row.published.to_string(),
        simulated: row.simulated,
        difference: Published::Value(row.published).off(row.simulated),
        how: match row.fitted {
            true => How::Calibrated,
            false => How::Set,
        },
        is_close: Published::Value(row.published)
            .difference(row.simulated)
            .abs()
            <= 0.1,
        cause: row.why.into(),
    });
    Ok(rows.collect())
}

fn times() -> Sheet {
    let sizes = [
        1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192,
    ];
    let us = |transport, bytes| latency(transport, Bytes(bytes)).as_ps() as f64 / 1e6;
    Sheet {
        x: ("message size (bytes)", Scale::Sizes),
        y: ("half a round trip (µs)".into(), Scale::Log),
        curves: CONNECTED
            .map(|transport| curve(transport, &sizes, us))
            .into(),
        undrawn: Vec::new(),
        published: CONNECTED_LATENCY
            .map(|(curve, y)| Mark { curve, x: 1.0, y })
            .into(),
        reference: "published",
    }
}

fn rates(pattern: Pattern, published: Option<f64>) -> Sheet {
    let sizes = [64, 512, 4096, 32_768, LONG];
    let rate = |transport, bytes| bandwidth(transport, pattern, Bytes(bytes)).megabytes_per_second;
    Sheet {
        x: ("message size (bytes)", Scale::Sizes),
        y: ("bandwidth (MB/s)".into(), Scale::Linear),
        curves: CONNECTED
            .map(|transport| curve(transport, &sizes, rate))
            .into(),
        undrawn: Vec::new(),
        // Both are said to reach it.
        published: published
            .into_iter()
            .flat_map(|y| {
                [0, 1].map(|curve| Mark {
                    curve,
                    x: LONG as f64,
                    y,
                })
            })
            .collect(),
        reference: "published",
    }
}

fn memory() -> Sheet {
    let sizes = [16, 64, 256, 1024, 4096, 16_384, 65_536];
    let mebibytes = |transport, processes| {
        let memory = Job::new(processes, 8).memory(transport);
        memory.0 as f64 / f64::from(1 << 20)
    };
    Sheet {
        x: ("processes", Scale::Powers),
        y: ("MiB a process".into(), Scale::Log),
        curves: Transport::ALL
            .map(|transport| curve(transport, &sizes, mebibytes))
            .into(),
        undrawn: Vec::new(),
        published: Vec::new(),
        reference: "published",
    }
}

fn curve(transport: Transport, sizes: &[u64], y: impl Fn(Transport, u64) -> f64) -> Curve {
    Curve {
        label: transport.name().into(),
        // Sizes are far below what a float holds exactly.
        points: sizes.iter().map(|&x| (x as f64, y(transport, x))).collect(),
    }
}

/// Published microseconds of a byte, by place among the curves.
const CONNECTED_LATENCY: [(usize, f64); 2] = [(0, 1.49), (1, 1.54)];
const CONNECTED: [Transport; 2] = [Transport::Rc, Transport::Xrc];
/// The size of a large message, in bytes.
const LONG: u64 = 256 << 10;
