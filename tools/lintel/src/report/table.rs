//! Rows as tables for people: one table a benchmark, only columns that say something.

use std::fmt::Write;

use indexmap::IndexSet;

use super::{Noise, Report, Row};
use crate::harness::Shortened;

/// All tables, each under its title, after a line about the machine.
pub fn tables(report: &Report, title: fn(&str) -> &str) -> String {
    let machine = &report.machine;
    let mut out = format!(
        "lintel {} on {} ({}, Linux {}), cores {}\n",
        report.lintel,
        machine.host,
        machine.cpu,
        machine.kernel,
        join(&machine.cores),
    );
    if report.interrupted {
        out.push_str("interrupted: only some of the points were measured\n");
    }
    let network = network(report);
    if !network.is_empty() {
        let _ = writeln!(out, "{network}");
    }
    let mut rows = report.rows.as_slice();
    while let Some(first) = rows.first() {
        let end = rows.iter().position(|row| row.benchmark != first.benchmark);
        let (group, rest) = rows.split_at(end.unwrap_or(rows.len()));
        out.push('\n');
        out.push_str(&table(group, title));
        rows = rest;
    }
    out
}

/// What carried the messages, in one line; empty if all was left to the library.
pub fn network(report: &Report) -> String {
    let nodes = match report.option("nodes").as_str() {
        "" | "1" => None,
        nodes => Some(format!("{nodes} virtual nodes")),
    };
    let variables = report.environment.iter();
    let telling = variables.filter(|(name, _)| !OF_THE_LAUNCHER.contains(&name.as_str()));
    let variables = telling.map(|(name, value)| format!("{name}={value}"));
    let parts: Vec<String> = nodes.into_iter().chain(variables).collect();
    parts.join(", ")
}

/// Variables that every launched job has, or that differ from rank to rank.
const OF_THE_LAUNCHER: [&str; 8] = [
    "LINTEL_JOB",
    "LINTEL_NODES",
    "LINTEL_NODE_RANK",
    "PTL_IFACE",
    "PTL_MY_JID",
    "PTL_MY_RID",
    "PTL_NIDMAP",
    "PTL_PIDMAP",
];

/// `0 B`, `64 B`, `4 KiB`, `1 MiB`, `12345 B`.
pub fn size(bytes: u64) -> String {
    match bytes {
        0 => "0 B".into(),
        b if b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

fn table(rows: &[Row], title: fn(&str) -> &str) -> String {
    let columns = columns(rows);
    let mut lines = vec![columns.iter().map(|c| c.title.clone()).collect::<Vec<_>>()];
    for row in rows {
        lines.push(columns.iter().map(|c| (c.cell)(row)).collect());
    }
    let left: Vec<bool> = columns.iter().map(|column| column.left).collect();
    let title = title(&rows[0].benchmark);
    let mut text = format!("{title}\n{}", aligned(&lines, &left));
    if rows.iter().any(|row| row.shortened.is_some()) {
        text.push_str(BUSY);
    }
    if rows.iter().any(|row| row.noise.is_some()) {
        text.push_str(DISTURBED);
    }
    text
}

/// A point as a line, while others are still being measured.
pub fn line(row: &Row) -> String {
    let mut words = format!("{} {}, {}", row.benchmark, row.variant, size(row.bytes));
    if let Some(times) = row.times {
        let (median, least) = (time(Some(times.median_us)), time(Some(times.min_us)));
        let _ = write!(words, ": median {median} µs, least {least}");
    }
    if let Some(limit) = &row.limit {
        let _ = write!(words, ", {:.2} × {}", limit.ratio, limit.name);
    }
    if let Some(noise) = &row.noise {
        let _ = write!(words, " (disturbed: {})", disturbed(noise));
    }
    words
}

const BUSY: &str = "  the machine was busy: some points ended early, see `measured` and --budget\n";

const DISTURBED: &str = "  other programs, or the machine below (stolen), disturbed some points, see `disturbed`: \
                         repeat them on a quiet machine\n";

/// Lines of cells in columns, of which some begin at the left.
pub(crate) fn aligned(lines: &[Vec<String>], left: &[bool]) -> String {
    let width = |i: usize| lines.iter().map(|l| l[i].chars().count()).max();
    let widths: Vec<usize> = (0..left.len()).map(|i| width(i).unwrap_or(0)).collect();
    let mut out = String::new();
    for line in lines {
        let mut text = String::new();
        for ((cell, width), left) in line.iter().zip(&widths).zip(left) {
            let _ = match left {
                true => write!(text, "  {cell:<width$}"),
                false => write!(text, "  {cell:>width$}"),
            };
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}

struct Column {
    title: String,
    left: bool,
    cell: Box<dyn Fn(&Row) -> String>,
}

fn columns(rows: &[Row]) -> Vec<Column> {
    let mut all = vec![left("", |row| row.variant.clone())];
    all.push(right("size", |row| size(row.bytes)));
    all.push(right("median µs", |row| {
        time(row.times.map(|t| t.median_us))
    }));
    all.push(right("min µs", |row| time(row.times.map(|t| t.min_us))));
    all.push(right("mean µs", |row| time(row.times.map(|t| t.mean_us))));
    all.push(right("p99 µs", |row| time(row.times.map(|t| t.p99_us))));
    all.push(right("GB/s", |row| figure(row.gb_per_s)));
    all.push(right("M msg/s", |row| fixed(row.million_per_s, 2)));
    let names = rows.iter().flat_map(|row| row.figures.keys().cloned());
    for name in names.collect::<IndexSet<String>>() {
        let key = name.clone();
        all.push(right(&name, move |row| {
            figure(row.figures.get(&key).copied())
        }));
    }
    all.push(right("limit µs", |row| {
        time(row.limit.as_ref().map(|limit| limit.median_us))
    }));
    all.push(right("× limit", |row| {
        fixed(row.limit.as_ref().map(|limit| limit.ratio), 2)
    }));
    all.push(left("limit is", |row| {
        let limit = row.limit.as_ref();
        limit.map(|limit| limit.name.clone()).unwrap_or_default()
    }));
    all.push(right("iterations", |row| match row.iterations {
        0 => String::new(),
        n => n.to_string(),
    }));
    all.push(left("measured", |row| {
        row.shortened.as_ref().map(measured).unwrap_or_default()
    }));
    all.push(left("disturbed", |row| {
        row.noise.as_ref().map(disturbed).unwrap_or_default()
    }));
    let is_empty = |cell: String| matches!(cell.as_str(), "" | "0 B");
    all.retain(|column| rows.iter().any(|row| !is_empty((column.cell)(row))));
    all
}

/// How much of a point was measured on a busy machine.
fn measured(part: &Shortened) -> String {
    let Shortened {
        rounds,
        planned_rounds,
        batches,
        planned_batches,
    } = part;
    match rounds < planned_rounds {
        true => format!("{rounds} of {planned_rounds} rounds"),
        false => format!("{} % of the time", 100 * batches / planned_batches.max(&1)),
    }
}

/// For how much of the time a point was disturbed.
fn disturbed(noise: &Noise) -> String {
    let shares = [(noise.stolen, "stolen"), (noise.waited, "waited")];
    let shares = shares.into_iter().filter(|(share, _)| *share >= 0.005);
    let shares = shares.map(|(share, what)| format!("{:.0} % {what}", 100.0 * share));
    shares.collect::<Vec<_>>().join(", ")
}

fn left(title: &str, cell: impl Fn(&Row) -> String + 'static) -> Column {
    column(title, true, cell)
}

fn right(title: &str, cell: impl Fn(&Row) -> String + 'static) -> Column {
    column(title, false, cell)
}

fn column(title: &str, left: bool, cell: impl Fn(&Row) -> String + 'static) -> Column {
    Column {
        title: title.into(),
        left,
        cell: Box::new(cell),
    }
}

fn time(us: Option<f64>) -> String {
    match us {
        None => String::new(),
        Some(us) if us >= 1000.0 => format!("{us:.0}"),
        Some(us) if us >= 100.0 => format!("{us:.1}"),
        Some(us) if us >= 10.0 => format!("{us:.2}"),
        Some(us) => format!("{us:.3}"),
    }
}

fn fixed(value: Option<f64>, digits: usize) -> String {
    value.map(|v| format!("{v:.digits$}")).unwrap_or_default()
}

fn figure(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(v) if v.fract() == 0.0 => format!("{v:.0}"),
        Some(v) if v.abs() < 1.0 => format!("{v:.4}"),
        Some(v) => format!("{v:.2}"),
    }
}

fn join(cores: &[usize]) -> String {
    let cores: Vec<String> = cores.iter().map(usize::to_string).collect();
    cores.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_in_binary_units() {
        let texts: Vec<String> = [0, 64, 4096, 4 << 20, 4097].map(size).into();
        assert_eq!(texts, ["0 B", "64 B", "4 KiB", "4 MiB", "4097 B"]);
    }

    #[test]
    fn columns_without_a_value_are_left_out() {
        let text = table(&[Row::new("put", "eq", 8)], crate::perf::title);
        assert!(text.contains("size") && !text.contains("GB/s"), "{text}");
    }

    #[test]
    fn a_point_that_ended_early_is_marked() {
        let short = |rounds, batches| {
            let mut row = Row::new("put", "eq", 8);
            row.shortened = Some(Shortened {
                rounds,
                planned_rounds: 7,
                batches,
                planned_batches: 200,
            });
            row
        };
        let text = table(&[short(2, 20), short(7, 50)], crate::perf::title);
        assert!(text.contains("2 of 7 rounds"), "{text}");
        assert!(text.contains("25 % of the time"), "{text}");
        assert!(text.ends_with(BUSY), "{text}");
    }

    #[test]
    fn what_carried_the_messages_is_reported_under_the_machine() {
        let mut report = Report::of(vec![Row::new("put", "eq", 8)]);
        assert_eq!(tables(&report, crate::perf::title).lines().nth(1), Some(""));
        report.options = serde_json::json!({"nodes": 2});
        report.environment.insert("PTL_NAL".into(), "udp".into());
        report.environment.insert("PTL_MY_RID".into(), "0".into());
        let text = tables(&report, crate::perf::title);
        assert_eq!(text.lines().nth(1), Some("2 virtual nodes, PTL_NAL=udp"));
    }

    #[test]
    fn a_report_of_connections_reads_as_tables() {
        let row = |model: &str, ratio: f64| {
            let mut row = Row::new("conn-latency", model, 8).with("pairs", 1.0);
            row.times = Some(crate::stats::Times::of(&[2000.0 * ratio]));
            row.iterations = 14;
            row.with("× rc", ratio)
        };
        let mut report = Report::of(vec![row("rc", 1.0), row("xrc", 1.034)]);
        report.options = serde_json::json!({"nodes": 2});
        report.targets = crate::report::connections::judge(&report.rows);
        report.targets.truncate(2);
        let expected = "\
lintel 0.0.0 on host (a processor, Linux 6.1), cores 0, 1
2 virtual nodes

connections, latency: ping-pong of puts, half a round trip
       size  median µs  min µs  mean µs  p99 µs  pairs  × rc  iterations
  rc    8 B      2.000   2.000    2.000   2.000      1     1          14
  xrc   8 B      2.068   2.068    2.068   2.068      1  1.03          14

targets
  XRC to RC, latency to 8 KiB, published 1.034                   ≤ 1.05 ×      1.034    0.98 ×  met
  XRC to RC, one-way bandwidth, published 1                      ≥ 0.95 ×          –         –  not measured
";
        assert_eq!(report.tables(crate::perf::title), expected);
    }
}
