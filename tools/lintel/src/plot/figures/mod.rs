//! Which figures a report makes, and of which rows.

mod collectives;
mod connections;
mod placements;

use std::collections::BTreeMap;

use super::chart::{Figure, Scale, Series, Stroke};
use crate::machine::Machine;
use crate::report::{Report, Row, network};

/// Every sheet that has points, by file name: one figure, or two side by side.
pub fn of(report: &Report) -> Vec<(&'static str, Vec<Figure>)> {
    let Machine { cpu, kernel, .. } = &report.machine;
    let host = match network(report) {
        network if network.is_empty() => format!("{cpu}, Linux {kernel}"),
        network => format!("{cpu}, Linux {kernel}; {network}"),
    };
    let all = [
        ("latency", latency(&report.rows)),
        ("bandwidth", bandwidth(&report.rows)),
        ("ratio", ratio(&report.rows)),
        ("netpipe-latency", netpipe(&report.rows, Quantity::Latency)),
        (
            "netpipe-bandwidth",
            netpipe(&report.rows, Quantity::Bandwidth),
        ),
        ("depth", depth(&report.rows)),
    ];
    let single = all
        .into_iter()
        .chain(connections::all(&report.rows))
        .map(|(name, figure)| (name, vec![figure]));
    let placements = placements::sheet(&report.rows).into();
    single
        .chain([("placements", placements)])
        .chain([("collectives", collectives::sheet(&report.rows))])
        .filter(|(_, figures)| !figures.is_empty() && figures.iter().all(Figure::has_points))
        .map(|(name, figures)| (name, figures.into_iter().map(|f| f.below(&host)).collect()))
        .collect()
}

fn latency(rows: &[Row]) -> Figure {
    let mut figure = Figure::over_size("Latency", "time (µs)", Scale::Log);
    for (name, label) in [
        ("put", "put, half round trip"),
        ("get", "get, round trip"),
        ("bidirectional", "put both ways"),
    ] {
        figure.add(measured(rows, name, label, Quantity::Latency));
    }
    for limit in limits(rows, &["put", "get"], Quantity::Latency) {
        figure.add(limit);
    }
    figure
}

fn bandwidth(rows: &[Row]) -> Figure {
    let mut figure = Figure::over_size("Bandwidth", "bandwidth (GB/s)", Scale::Linear);
    figure.add(variant(
        rows,
        "bandwidth",
        "put",
        "put, streaming",
        Quantity::Bandwidth,
    ));
    figure.add(variant(
        rows,
        "bandwidth",
        "get",
        "get, streaming",
        Quantity::Bandwidth,
    ));
    figure.add(measured(rows, "put", "put, ping-pong", Quantity::Bandwidth));
    figure.add(measured(
        rows,
        "bidirectional",
        "put both ways",
        Quantity::Bandwidth,
    ));
    for limit in limits(rows, &["bandwidth", "put"], Quantity::Bandwidth) {
        figure.add(limit);
    }
    figure
}

fn ratio(rows: &[Row]) -> Figure {
    let title = "Time beside the machine's own limit";
    let mut figure = Figure::over_size(title, "time ÷ time of the limit", Scale::Log);
    figure.add(measured(
        rows,
        "put",
        "put, half round trip",
        Quantity::Ratio,
    ));
    figure.add(measured(rows, "get", "get, round trip", Quantity::Ratio));
    figure.add(variant(
        rows,
        "bandwidth",
        "put",
        "put, streaming",
        Quantity::Ratio,
    ));
    figure.add(variant(
        rows,
        "bandwidth",
        "get",
        "get, streaming",
        Quantity::Ratio,
    ));
    if let Some((low, high)) = figure.span() {
        let label = "limit: a cache line; above 40 B a copy";
        let points = vec![(low, 1.0), (high, 1.0)];
        figure.add(Series::new(label, Stroke::Limit(0), points));
    }
    figure
}

fn netpipe(rows: &[Row], quantity: Quantity) -> Figure {
    let mut figure = match quantity {
        Quantity::Latency => Figure::over_size("NetPIPE: latency", "time (µs)", Scale::Log),
        _ => Figure::over_size("NetPIPE: bandwidth", "bandwidth (GB/s)", Scale::Linear),
    };
    let own = |row: &&Row| row.benchmark == "netpipe";
    let mut groups: BTreeMap<(u64, &str), Vec<(f64, f64)>> = BTreeMap::new();
    for row in rows.iter().filter(own) {
        let offset = row.figures.get("offset B").copied().unwrap_or(0.0) as u64;
        let point = quantity.of(row).map(|y| (place(row.bytes), y));
        groups
            .entry((offset, &row.variant))
            .or_default()
            .extend(point);
    }
    for ((offset, variant), points) in groups {
        let label = format!("{variant}, offset {offset} B");
        figure.add(Series::new(&label, Stroke::Fine, points));
    }
    for limit in limits(rows, &["netpipe"], quantity) {
        figure.add(limit);
    }
    figure
}

fn depth(rows: &[Row]) -> Figure {
    let mut figure = Figure::new(
        "Latency behind long match lists, 8 B put",
        ("entries ahead", Scale::Log),
        ("half round trip (µs)", Scale::Log),
    );
    for name in variants(rows, "depth") {
        let points = rows
            .iter()
            .filter(|row| row.benchmark == "depth" && row.variant == name)
            .filter_map(|row| Some((*row.figures.get("entries ahead")?, row.median_us()?)))
            .collect();
        figure.add(Series::new(name, Stroke::Plain, points));
    }
    figure
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Latency,
    Bandwidth,
    Ratio,
}

impl Quantity {
    fn of(self, row: &Row) -> Option<f64> {
        match self {
            Self::Latency => row.median_us(),
            Self::Bandwidth => row.gb_per_s,
            Self::Ratio => row.limit.as_ref().map(|limit| limit.ratio),
        }
    }

    fn of_limit(self, row: &Row) -> Option<f64> {
        let us = row.limit.as_ref()?.median_us;
        match self {
            Self::Latency => Some(us),
            Self::Bandwidth => Some(row.bytes as f64 / us / 1e3),
            Self::Ratio => Some(1.0),
        }
    }
}

fn measured(rows: &[Row], benchmark: &str, label: &str, quantity: Quantity) -> Series {
    series(rows, label, quantity, |row| row.benchmark == benchmark)
}

fn variant(rows: &[Row], benchmark: &str, name: &str, label: &str, quantity: Quantity) -> Series {
    series(rows, label, quantity, |row| {
        row.benchmark == benchmark && row.variant == name
    })
}

fn series(rows: &[Row], label: &str, quantity: Quantity, keep: impl Fn(&Row) -> bool) -> Series {
    let points = rows
        .iter()
        .filter(|row| keep(row))
        .filter_map(|row| Some((place(row.bytes), quantity.of(row)?)))
        .collect();
    Series::new(label, Stroke::Plain, points)
}

/// The limits of these benchmarks' rows, one series a limit, the first row of a size
/// standing for all. A hand-over says nothing about bandwidth, so only copies do.
fn limits(rows: &[Row], benchmarks: &[&str], quantity: Quantity) -> Vec<Series> {
    let mut groups: BTreeMap<&str, BTreeMap<u64, f64>> = BTreeMap::new();
    let own = |row: &&Row| benchmarks.contains(&row.benchmark.as_str());
    for row in rows.iter().filter(own) {
        let Some(limit) = &row.limit else { continue };
        if quantity == Quantity::Bandwidth && !limit.name.contains("copy") {
            continue;
        }
        if let Some(value) = quantity.of_limit(row) {
            let sizes = groups.entry(&limit.name).or_default();
            sizes.entry(row.bytes).or_insert(value);
        }
    }
    groups
        .into_iter()
        .enumerate()
        .map(|(i, (name, sizes))| {
            let points = sizes.into_iter().map(|(b, y)| (place(b), y)).collect();
            Series::new(&format!("limit: {name}"), Stroke::Limit(i), points)
        })
        .collect()
}

fn variants<'a>(rows: &'a [Row], benchmark: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| row.benchmark == benchmark) {
        if !names.contains(&row.variant.as_str()) {
            names.push(&row.variant);
        }
    }
    names
}

/// Where a size stands on a logarithmic axis: nothing stands half an octave below 1 B.
fn place(bytes: u64) -> f64 {
    (bytes as f64).max(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Times;

    #[test]
    fn limits_become_one_series_each() {
        let row = |bytes, name: &str| {
            let mut row = Row::new("put", "", bytes);
            row.times = Some(Times::of(&[500.0]));
            row.limit = Some(crate::report::Limit {
                name: name.into(),
                median_us: 0.1,
                ratio: 5.0,
            });
            row
        };
        let rows = [row(0, "one line"), row(8, "one line"), row(65536, "copy")];
        assert_eq!(limits(&rows, &["put"], Quantity::Latency).len(), 2);
        assert_eq!(limits(&rows, &["put"], Quantity::Bandwidth).len(), 1);
    }
}
