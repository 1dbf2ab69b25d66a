//! Rows as comma-separated values, one header for all benchmarks.

use indexmap::IndexSet;

use super::{Report, Row};

/// A header and one line a row; a figure that a row doesn't have stays empty.
pub fn lines(report: &Report) -> Vec<u8> {
    let rows = &report.rows;
    let network = NETWORK.map(|name| report.option(name));
    let figures: IndexSet<&String> = rows.iter().flat_map(|row| row.figures.keys()).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let header = HEADER
        .into_iter()
        .chain(NETWORK)
        .chain(figures.iter().map(|name| name.as_str()));
    writer.write_record(header).expect("memory takes it");
    for row in rows {
        let own = figures
            .iter()
            .map(|name| text(row.figures.get(*name).copied()));
        let record = fixed_fields(row).into_iter().chain(network.clone());
        let record = record.chain(own);
        writer.write_record(record).expect("memory takes it");
    }
    writer.into_inner().expect("memory takes it")
}

const HEADER: [&str; 17] = [
    "benchmark",
    "variant",
    "bytes",
    "median_us",
    "min_us",
    "mean_us",
    "p99_us",
    "iterations",
    "gb_per_s",
    "million_per_s",
    "limit",
    "limit_median_us",
    "ratio_to_limit",
    "rounds",
    "planned_rounds",
    "stolen",
    "waited",
];

/// Options that name the transport of the messages.
const NETWORK: [&str; 4] = ["nodes", "nal", "mode", "conn"];

fn fixed_fields(row: &Row) -> [String; 17] {
    let limit = row.limit.as_ref();
    let short = row.shortened;
    [
        row.benchmark.clone(),
        row.variant.clone(),
        row.bytes.to_string(),
        text(row.times.map(|t| t.median_us)),
        text(row.times.map(|t| t.min_us)),
        text(row.times.map(|t| t.mean_us)),
        text(row.times.map(|t| t.p99_us)),
        row.iterations.to_string(),
        text(row.gb_per_s),
        text(row.million_per_s),
        limit.map(|l| l.name.clone()).unwrap_or_default(),
        text(limit.map(|l| l.median_us)),
        text(limit.map(|l| l.ratio)),
        short.map(|s| s.rounds.to_string()).unwrap_or_default(),
        short
            .map(|s| s.planned_rounds.to_string())
            .unwrap_or_default(),
        text(row.noise.map(|noise| noise.stolen)),
        text(row.noise.map(|noise| noise.waited)),
    ]
}

fn text(value: Option<f64>) -> String {
    value.map(|value| format!("{value:.6}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_as_many_fields_as_the_header() {
        let rows = [
            Row::new("put", "eq, spinning", 8),
            Row::new("delay", "", 8).with("evented %", 100.0),
        ];
        let mut report = Report::of(rows.into());
        report.options = serde_json::json!({"nodes": 2, "nal": "udp", "mode": null});
        let text = String::from_utf8(lines(&report)).expect("text");
        assert!(text.contains(",2,udp,,,"), "{text}");
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert_eq!(reader.records().filter(|r| r.is_ok()).count(), 2);
    }
}
