//! The figures of seed 003, RC beside XRC, and what the connections weigh.

use super::super::chart::{Figure, Scale, Series, Stroke};
use super::place;
use crate::report::Row;
use crate::report::names::{
    BOTH_WAYS, COUNTS, FORMULA, LATENCY, MANY_TO_MANY, MULTI_PAIR, ONE_WAY,
};
use crate::stats::doubling;

/// Each with its file name.
pub fn all(rows: &[Row]) -> Vec<(&'static str, Figure)> {
    vec![
        ("connections-latency", latency(rows)),
        (
            "connections-unidirectional",
            bandwidth(
                rows,
                "Uni-directional bandwidth by connection model",
                ONE_WAY,
            ),
        ),
        (
            "connections-bidirectional",
            bandwidth(
                rows,
                "Bi-directional bandwidth by connection model",
                BOTH_WAYS,
            ),
        ),
        ("connections-multi-pair", multi_pair(rows)),
        (
            "connections-many-to-many",
            bandwidth(rows, "Many-to-many multi-pair bandwidth", MANY_TO_MANY),
        ),
        ("connections-counts", counts(rows)),
        ("connections-contexts", contexts(rows)),
        ("connections-memory", memory(rows)),
    ]
}

fn latency(rows: &[Row]) -> Figure {
    let mut figure = Figure::over_size(
        "Latency by connection model",
        "half round trip (µs)",
        Scale::Linear,
    );
    for (name, stroke) in MODELS {
        let y = |row: &Row| row.median_us();
        figure.add(over_size(rows, LATENCY, name, stroke, y));
    }
    figure
}

fn bandwidth(rows: &[Row], title: &str, benchmark: &str) -> Figure {
    let mut figure = Figure::over_size(title, MB_PER_S, Scale::Linear);
    for (name, stroke) in MODELS {
        figure.add(over_size(rows, benchmark, name, stroke, mb_per_s));
    }
    figure
}

/// A colour for each number of pairs, a dash for each model.
fn multi_pair(rows: &[Row]) -> Figure {
    let mut figure = Figure::over_size("Multi-pair bandwidth", MB_PER_S, Scale::Linear);
    let own = |row: &&Row| row.benchmark == MULTI_PAIR;
    let pairs = |row: &Row| row.figures.get("pairs").copied();
    let most = rows
        .iter()
        .filter(own)
        .filter_map(pairs)
        .fold(0.0, f64::max);
    if most == 0.0 {
        return figure;
    }
    for (dash, (name, _)) in MODELS.into_iter().enumerate() {
        for (colour, count) in doubling(most as usize).into_iter().enumerate() {
            let points = rows
                .iter()
                .filter(own)
                .filter(|row| row.variant == name && pairs(row) == Some(count as f64))
                .filter_map(|row| Some((place(row.bytes), mb_per_s(row)?)))
                .collect();
            let plural = if count == 1 { "" } else { "s" };
            let long = format!("{}, {count} pair{plural}", label(name));
            figure.add(Series::new(&long, Stroke::Styled { colour, dash }, points));
        }
    }
    figure
}

/// As counted, beside the formula.
fn counts(rows: &[Row]) -> Figure {
    let mut figure = Figure::new(
        "Contexts of a process, two nodes",
        ("processes a node", Scale::Linear),
        ("contexts a process", Scale::Linear),
    );
    for (number, (name, stroke)) in MODELS.into_iter().enumerate() {
        let along = |y| over(rows, COUNTS, name, "processes a node", y);
        let counted = along("contexts a process");
        figure.add(Series::new(label(name), stroke, counted));
        let by_formula = format!("{} by formula", label(name));
        let line = Stroke::Limit(number);
        figure.add(Series::new(&by_formula, line, along("by formula")));
    }
    figure
}

fn contexts(rows: &[Row]) -> Figure {
    let mut figure = Figure::new(
        "Contexts of a node of 16 processes, by formula",
        ("processes in all", Scale::Log),
        ("contexts a node", Scale::Log),
    );
    for (name, stroke) in MODELS {
        let points = over(rows, FORMULA, name, "processes", "contexts a node");
        figure.add(Series::new(label(name), stroke, points));
    }
    figure
}

fn memory(rows: &[Row]) -> Figure {
    let mut figure = Figure::new(
        "Memory of connections of a node of 16 processes",
        ("processes in all", Scale::Log),
        ("KiB a node", Scale::Log),
    );
    for (name, stroke) in MODELS {
        let points = over(rows, FORMULA, name, "processes", "KiB a node");
        let sound = points.into_iter().filter(|point| point.1 > 0.0).collect();
        figure.add(Series::new(label(name), stroke, sound));
    }
    figure
}

fn over_size(
    rows: &[Row],
    benchmark: &str,
    variant: &str,
    stroke: Stroke,
    y: impl Fn(&Row) -> Option<f64>,
) -> Series {
    let points = rows
        .iter()
        .filter(|row| row.benchmark == benchmark && row.variant == variant)
        .filter_map(|row| Some((place(row.bytes), y(row)?)))
        .collect();
    Series::new(label(variant), stroke, points)
}

/// One figure of the rows over another one.
fn over(rows: &[Row], benchmark: &str, variant: &str, x: &str, y: &str) -> Vec<(f64, f64)> {
    let figure = |row: &Row, name: &str| row.figures.get(name).copied();
    rows.iter()
        .filter(|row| row.benchmark == benchmark && row.variant == variant)
        .filter_map(|row| Some((figure(row, x)?, figure(row, y)?)))
        .collect()
}

/// As the seed's axes have it, in 10^6 bytes a second.
fn mb_per_s(row: &Row) -> Option<f64> {
    row.gb_per_s.map(|gb| gb * 1e3)
}

fn label(model: &str) -> &str {
    match model {
        "rc" => "RC",
        "xrc" => "XRC",
        "node" => "node to node",
        other => other,
    }
}

const MB_PER_S: &str = "bandwidth (MB/s)";

/// Lines that lie upon each other differ by their dashes.
const MODELS: [(&str, Stroke); 3] = [
    ("rc", Stroke::Styled { colour: 0, dash: 0 }),
    ("xrc", Stroke::Styled { colour: 1, dash: 1 }),
    ("node", Stroke::Styled { colour: 2, dash: 2 }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Times;

    fn row(benchmark: &str, variant: &str, bytes: u64) -> Row {
        let mut row = Row::new(benchmark, variant, bytes);
        row.times = Some(Times::of(&[2000.0]));
        row.with_bandwidth(bytes)
    }

    #[test]
    fn each_figure_of_the_seed_is_drawn_from_its_rows() {
        let mut rows = Vec::new();
        for benchmark in [LATENCY, ONE_WAY, BOTH_WAYS, MANY_TO_MANY] {
            for model in ["rc", "xrc"] {
                rows.extend([8, 8192].map(|bytes| row(benchmark, model, bytes)));
            }
        }
        rows.extend([1.0, 2.0].map(|pairs| row(MULTI_PAIR, "rc", 8).with("pairs", pairs)));
        let drawn: Vec<&str> = all(&rows)
            .into_iter()
            .filter(|(_, figure)| figure.has_points())
            .map(|(name, _)| name)
            .collect();
        assert_eq!(
            drawn,
            [
                "connections-latency",
                "connections-unidirectional",
                "connections-bidirectional",
                "connections-multi-pair",
                "connections-many-to-many",
            ]
        );
    }
}
