//! The project's performance targets, held against a report.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

use super::Row;
use super::names::{
    ACKNOWLEDGED_TO_WAKE, BARE_PING_PONG, BARE_STREAM, CROSS_MEMORY_COPY, DELIVERED_TO_WAKE,
    ONE_CORE, TWO_LINES,
};

/// A target and what a run reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What is asked for.
    pub measure: String,
    /// The bound, with its unit.
    pub target: String,
    /// What was measured; `None` when the run didn't.
    pub reached: Option<f64>,
    /// Whether it is within the bound.
    pub met: bool,
    /// How far beyond the bound it is: above 1 it is missed by that factor. `None` without a
    /// measurement, and where a bound of 0 gives none.
    #[serde(default)]
    pub ratio: Option<f64>,
}

impl Verdict {
    /// Judges `reached` by a bound.
    pub fn new(measure: &str, bound: Bound, unit: &str, reached: Option<f64>) -> Self {
        let reached = reached.filter(|value| value.is_finite());
        let (sign, limit) = match bound {
            Bound::AtMost(limit) => ('≤', limit),
            Bound::AtLeast(limit) => ('≥', limit),
        };
        let ratio = |value: f64| match bound {
            Bound::AtMost(limit) => value / limit,
            Bound::AtLeast(limit) => limit / value,
        };
        Self {
            measure: measure.into(),
            target: format!("{sign} {limit} {unit}").trim_end().into(),
            reached,
            met: reached.is_some_and(|value| match bound {
                Bound::AtMost(limit) => value <= limit,
                Bound::AtLeast(limit) => value >= limit,
            }),
            ratio: reached.map(ratio).filter(|ratio| ratio.is_finite()),
        }
    }
}

/// Judges by `rows` every target of shared memory, or of the network between nodes.
pub fn judge(rows: &[Row], is_crossed: bool) -> Vec<Verdict> {
    let targets: &[&[Target]] = match is_crossed {
        true => &[OVER_NETWORK, ANYWHERE],
        false => &[IN_SHARED_MEMORY, ANYWHERE],
    };
    let all = targets.iter().flat_map(|targets| targets.iter());
    all.map(|target| target.judge(rows)).collect()
}

/// The verdicts for people.
pub fn table(verdicts: &[Verdict]) -> String {
    let mut out = String::from("targets\n");
    for verdict in verdicts {
        let reached = match verdict.reached {
            Some(value) => format!("{value:.3}"),
            None => "–".into(),
        };
        let met = match (verdict.reached, verdict.met) {
            (None, _) => "not measured",
            (_, true) => "met",
            (_, false) => "missed",
        };
        let ratio = match verdict.ratio {
            Some(ratio) => format!("{ratio:.2} ×"),
            None => "–".into(),
        };
        let (measure, target) = (&verdict.measure, &verdict.target);
        let _ = writeln!(
            out,
            "  {measure:<58} {target:>12} {reached:>10} {ratio:>9}  {met}"
        );
    }
    out
}

struct Target {
    measure: &'static str,
    bound: Bound,
    unit: &'static str,
    value: fn(&[Row]) -> Option<f64>,
}

/// What a value is held against.
#[derive(Clone, Copy)]
pub enum Bound {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
}

impl Target {
    fn judge(&self, rows: &[Row]) -> Verdict {
        Verdict::new(self.measure, self.bound, self.unit, (self.value)(rows))
    }
}

const fn at_most(
    measure: &'static str,
    bound: f64,
    unit: &'static str,
    value: fn(&[Row]) -> Option<f64>,
) -> Target {
    let bound = Bound::AtMost(bound);
    Target {
        measure,
        bound,
        unit,
        value,
    }
}

const fn at_least(
    measure: &'static str,
    bound: f64,
    unit: &'static str,
    value: fn(&[Row]) -> Option<f64>,
) -> Target {
    let bound = Bound::AtLeast(bound);
    Target {
        measure,
        bound,
        unit,
        value,
    }
}

const OVER_NETWORK: &[Target] = &[
    at_most(
        "8 B put, event-driven, to a bare UDP ping-pong",
        1.25,
        "×",
        |rows| {
            let put = find(rows, "small", "put, PtlEQGet", 8)?;
            ratio_to(put, BARE_PING_PONG)
        },
    ),
    at_least(
        "1 MiB puts, of a bare GSO and GRO stream",
        80.0,
        "%",
        |rows| {
            let put = find(rows, "bandwidth", "put", 1 << 20)?;
            Some(100.0 / ratio_to(put, BARE_STREAM)?)
        },
    ),
];

const IN_SHARED_MEMORY: &[Target] = &[
    at_most(
        "8 B put, event-driven, to two cache lines handed over",
        1.3,
        "×",
        |rows| figure(find(rows, "small", "put, PtlEQGet", 8)?, TWO_LINES),
    ),
    at_most("8 B put, PtlCTWait and PtlEQGet apart", 15.0, "%", |rows| {
        let ratio = figure(find(rows, "small", "put, PtlCTWait", 8)?, "× put")?;
        Some((ratio - 1.0).abs() * 100.0)
    }),
    at_least(
        "8 B puts streaming, counted at the target",
        20.0,
        "M/s",
        |rows| find(rows, "rate", "counted at the target", 8)?.million_per_s,
    ),
    at_least(
        "8 B puts streaming, an event each at the target",
        15.0,
        "M/s",
        |rows| find(rows, "rate", "events at the target", 8)?.million_per_s,
    ),
    at_least(
        "put bandwidth, 64 KiB up, worst, of a bare copy",
        95.0,
        "%",
        |rows| worst_share_of_copy(rows, "put"),
    ),
    at_least(
        "get bandwidth, 64 KiB up, worst, of a bare copy",
        95.0,
        "%",
        |rows| worst_share_of_copy(rows, "get"),
    ),
    at_most("8 B get, target polling, to a put", 2.2, "×", |rows| {
        figure(find(rows, "small", "get", 8)?, "× put")
    }),
    at_most(
        "8 B fetch-atomic, target polling, to a put",
        2.2,
        "×",
        |rows| figure(find(rows, "small", "fetch-atomic", 8)?, "× put"),
    ),
    at_most(
        "8 B put, target computing: delivered, to a bare wake",
        1.0,
        "×",
        |rows| figure(find(rows, "delay", "put", 8)?, DELIVERED_TO_WAKE),
    ),
    at_most(
        "8 B put, target computing: acknowledged, to a bare wake",
        1.5,
        "×",
        |rows| completed_to_wake(rows, "put"),
    ),
    at_most(
        "8 B get, target computing: reply, to a bare wake",
        1.5,
        "×",
        |rows| completed_to_wake(rows, "get"),
    ),
    at_most(
        "8 B put on a counted entry: acknowledged, to a bare wake",
        1.5,
        "×",
        |rows| completed_to_wake(rows, "put, counted"),
    ),
    at_most(
        "8 B get on a counted entry: reply, to a bare wake",
        1.5,
        "×",
        |rows| completed_to_wake(rows, "get, counted"),
    ),
    at_most(
        "8 B fetch-atomic, target computing: reply, to a bare wake",
        1.5,
        "×",
        |rows| completed_to_wake(rows, "fetch-atomic"),
    ),
    at_most(
        "the same, 99 of 100 are no slower, worst",
        100.0,
        "µs",
        |rows| most(rows, "delay", |row| Some(row.times?.p99_us)),
    ),
    at_least("overlap, 4 MiB, either side, worst", 95.0, "%", |rows| {
        least(rows, "overlap", |row| overlap(row, 4 << 20, false))
    }),
    at_least("overlap, 64 KiB, either side, worst", 60.0, "%", |rows| {
        least(rows, "overlap", |row| overlap(row, 64 << 10, false))
    }),
    at_least("the same, 4 MiB, counted", 95.0, "%", |rows| {
        least(rows, "overlap", |row| overlap(row, 4 << 20, true))
    }),
    at_least("the same, 64 KiB, counted", 60.0, "%", |rows| {
        least(rows, "overlap", |row| overlap(row, 64 << 10, true))
    }),
    at_most(
        "two ranks on one core, 8 B put, calls that wait, worst",
        5.0,
        "µs",
        |rows| {
            most(rows, ONE_CORE, |row| {
                row.median_us().filter(|_| row.variant != "PtlEQGet")
            })
        },
    ),
    at_most(
        "latency behind 10,000 exact entries, to one",
        1.3,
        "×",
        |rows| figure(at_depth(rows, "exact entries")?, "× depth 1"),
    ),
    at_most(
        "10,000 entries, 1,000 wildcards, to their naive walk",
        2.0,
        "×",
        |rows| {
            let row = at_depth(rows, "one in ten a wildcard")?;
            Some(figure(row, "added µs")? / figure(row, "naive walk of the wildcards µs")?)
        },
    ),
    at_least("RandomAccess, two processes", 0.05, "GUPS", |rows| {
        most(rows, "gups", |row| figure(row, "GUPS"))
    }),
    at_most(
        "get 8 B on a direct entry, target computing",
        0.15,
        "µs",
        |rows| find(rows, "direct", "get", 8)?.median_us(),
    ),
    at_most(
        "fetch-add 8 B on a direct entry, target computing",
        0.15,
        "µs",
        |rows| find(rows, "direct", "fetch-atomic", 8)?.median_us(),
    ),
];

const ANYWHERE: &[Target] = &[
    at_most("memory of an interface", 8192.0, "KiB", |rows| {
        least(rows, "memory", |row| figure(row, "interface KiB"))
    }),
    at_most("memory of each further peer", 64.0, "KiB", |rows| {
        least(rows, "memory", |row| figure(row, "each further peer KiB"))
    }),
    at_most(
        "PtlNIInit to the first message, cold",
        5000.0,
        "µs",
        |rows| least(rows, "startup", Row::median_us),
    ),
    at_most("idle process, interface open", 0.05, "%", |rows| {
        least(rows, "idle", |row| figure(row, "processor %"))
    }),
];

fn find<'a>(rows: &'a [Row], benchmark: &str, variant: &str, bytes: u64) -> Option<&'a Row> {
    rows.iter()
        .find(|row| row.benchmark == benchmark && row.variant == variant && row.bytes == bytes)
}

fn at_depth<'a>(rows: &'a [Row], variant: &str) -> Option<&'a Row> {
    rows.iter().find(|row| {
        row.benchmark == "depth"
            && row.variant == variant
            && figure(row, "entries ahead") == Some(10_000.0)
    })
}

fn worst_share_of_copy(rows: &[Row], variant: &str) -> Option<f64> {
    least(rows, "bandwidth", |row| {
        let counts = row.variant == variant && row.bytes >= 64 << 10;
        let limit = row
            .limit
            .as_ref()
            .filter(|l| counts && l.name == CROSS_MEMORY_COPY)?;
        Some(100.0 / limit.ratio)
    })
}

fn least(rows: &[Row], benchmark: &str, value: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    rows.iter()
        .filter(|row| row.benchmark == benchmark)
        .filter_map(value)
        .reduce(f64::min)
}

fn most(rows: &[Row], benchmark: &str, value: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    rows.iter()
        .filter(|row| row.benchmark == benchmark)
        .filter_map(value)
        .reduce(f64::max)
}

fn overlap(row: &Row, bytes: u64, is_counted: bool) -> Option<f64> {
    let is_it = row.bytes == bytes && row.variant.ends_with("counted") == is_counted;
    figure(row, "overlap %").filter(|_| is_it)
}

fn completed_to_wake(rows: &[Row], variant: &str) -> Option<f64> {
    figure(find(rows, "delay", variant, 8)?, ACKNOWLEDGED_TO_WAKE)
}

fn figure(row: &Row, name: &str) -> Option<f64> {
    row.figures.get(name).copied()
}

fn ratio_to(row: &Row, limit: &str) -> Option<f64> {
    row.limit
        .as_ref()
        .filter(|found| found.name == limit)
        .map(|found| found.ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Limit;

    #[test]
    fn a_target_without_its_row_is_not_met() {
        let all = [false, true].map(|is_crossed| judge(&[], is_crossed));
        assert!(all.iter().flatten().all(|v| !v.met && v.reached.is_none()));
    }

    #[test]
    fn a_put_is_held_against_bare_datagrams_between_nodes_only() {
        let mut row = Row::new("small", "put, PtlEQGet", 8);
        row.limit = Some(Limit {
            name: BARE_PING_PONG.into(),
            median_us: 2.0,
            ratio: 1.2,
        });
        let verdict = &judge(&[row.clone()], true)[0];
        assert_eq!((verdict.reached, verdict.met), (Some(1.2), true));
        row.limit.as_mut().expect("set above").name = "one line, one way".into();
        assert_eq!(judge(&[row], true)[0].reached, None);
    }

    #[test]
    fn a_missed_target_is_reported_with_the_factor() {
        let mut row = Row::new("rate", "counted at the target", 8);
        row.million_per_s = Some(10.0);
        let verdicts = judge(&[row], false);
        let verdict = verdicts.iter().find(|v| v.reached.is_some());
        assert_eq!(verdict.expect("judged").ratio, Some(2.0));
        let text = table(&verdicts);
        let line = text.lines().find(|line| line.contains("10.000"));
        let line = line.expect("shown").split_whitespace().collect::<Vec<_>>();
        assert!(
            line.ends_with(&["10.000", "2.00", "×", "missed"]),
            "{line:?}"
        );
    }

    #[test]
    fn a_rate_above_its_bound_is_met() {
        let mut row = Row::new("rate", "counted at the target", 8);
        row.million_per_s = Some(21.0);
        let met = judge(&[row], false).into_iter().filter(|v| v.met).count();
        assert_eq!(met, 1);
    }
}
