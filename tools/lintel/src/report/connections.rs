//! What a report says about RC and XRC, beside what was published (seed 003).

use super::Row;
use super::names::{BOTH_WAYS, COUNTS, LATENCY, MANY_TO_MANY, MULTI_PAIR, ONE_WAY};
use super::targets::{Bound, Verdict};
use crate::stats::median;

/// XRC beside RC in latency and bandwidth, and the contexts of all models beside the
/// formula.
pub fn judge(rows: &[Row]) -> Vec<Verdict> {
    let latency = Question::new("latency to 8 KiB, published 1.034", LATENCY, 0);
    let mut verdicts = vec![within(
        Bound::AtMost(1.05),
        latency.measure,
        latency.slowness(rows),
    )];
    for question in [
        Question::new("one-way bandwidth, published 1", ONE_WAY, LARGE),
        Question::new("two-way bandwidth, published 1", BOTH_WAYS, LARGE),
        Question::new(
            "multi-pair bandwidth, published the same trend",
            MULTI_PAIR,
            LARGE,
        ),
        Question::new(
            "many-to-many bandwidth, published + 50 MB/s",
            MANY_TO_MANY,
            LARGE,
        ),
    ] {
        let speed = question.slowness(rows).map(|slowness| 1.0 / slowness);
        verdicts.push(within(Bound::AtLeast(0.95), question.measure, speed));
    }
    for model in ["rc", "xrc", "node"] {
        verdicts.push(contexts(rows, model));
    }
    verdicts
}

/// Rows in which XRC and RC differ.
struct Question {
    measure: &'static str,
    benchmark: &'static str,
    least: u64,
}

impl Question {
    fn new(measure: &'static str, benchmark: &'static str, least: u64) -> Self {
        Self {
            measure,
            benchmark,
            least,
        }
    }

    /// The median over sizes of XRC's time to RC's.
    fn slowness(&self, rows: &[Row]) -> Option<f64> {
        let of = |row: &&Row| {
            row.benchmark == self.benchmark && row.variant == "xrc" && row.bytes >= self.least
        };
        let ratio = |row: &Row| row.figures.get("× rc").copied();
        let ratios: Vec<f64> = rows.iter().filter(of).filter_map(ratio).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }
}

fn within(bound: Bound, measure: &str, reached: Option<f64>) -> Verdict {
    let measure = format!("XRC to RC, {measure}");
    Verdict::new(&measure, bound, "×", reached)
}

/// How far the counts are from the formula, a process and a node, the worst.
fn contexts(rows: &[Row], model: &str) -> Verdict {
    let own = |row: &&Row| row.benchmark == COUNTS && row.variant == model;
    let apart = |row: &Row| {
        let figure = |name: &str| row.figures.get(name).copied();
        let process = figure("contexts a process")? - figure("by formula")?;
        let node = figure("contexts a node")? - figure("node by formula")?;
        Some(process.abs().max(node.abs()))
    };
    let reached = rows.iter().filter(own).filter_map(apart).reduce(f64::max);
    let measure = format!(
        "{} contexts counted, apart from the formula",
        model.to_uppercase()
    );
    Verdict::new(&measure, Bound::AtMost(0.0), "", reached)
}

/// Where bandwidth is bandwidth, in bytes.
const LARGE: u64 = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn xrc(benchmark: &str, bytes: u64, ratio: f64) -> Row {
        Row::new(benchmark, "xrc", bytes).with("× rc", ratio)
    }

    #[test]
    fn the_middle_size_speaks_for_latency_and_small_ones_not_for_bandwidth() {
        let rows = [
            xrc(LATENCY, 0, 1.01),
            xrc(LATENCY, 8, 1.03),
            xrc(LATENCY, 8192, 1.9),
            xrc(ONE_WAY, 8, 3.0),
            xrc(ONE_WAY, 1 << 20, 1.0),
        ];
        let verdicts = judge(&rows);
        assert_eq!((verdicts[0].reached, verdicts[0].met), (Some(1.03), true));
        assert_eq!((verdicts[1].reached, verdicts[1].met), (Some(1.0), true));
        assert_eq!(verdicts[2].reached, None);
    }

    #[test]
    fn a_context_too_many_is_reported() {
        let row = Row::new(COUNTS, "rc", 0)
            .with("contexts a process", 5.0)
            .with("by formula", 4.0)
            .with("contexts a node", 16.0)
            .with("node by formula", 16.0);
        let verdict = judge(&[row]).into_iter().find(|v| v.reached.is_some());
        let verdict = verdict.expect("counted");
        assert_eq!((verdict.reached, verdict.met), (Some(1.0), false));
    }
}
