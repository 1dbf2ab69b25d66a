//! `lintel compare`: two reports of `lintel perf --json` beside each other, as a table and as a plot.
//!
//! Rows are paired by benchmark, variant and size. The
//! runs were made at different times, perhaps on different machines: the ratio of their medians
//! includes that.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::output;
use crate::plot;
use crate::plot::chart::{Figure, Scale, Series, Stroke};
use crate::report::{Report, Row, aligned, table_size};

/// Options of `lintel compare`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// The report to compare with
    before: PathBuf,

    /// The report that is compared
    after: PathBuf,

    /// Draw the ratios over the sizes, as SVG and PNG
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
}

/// Prints the table, and draws the plot if asked for.
///
/// # Errors
/// A file that isn't a report, reports without a row in common, a directory that can't be
/// written.
pub fn run(options: &Options) -> Result<()> {
    let before = Report::read(&options.before)?;
    let after = Report::read(&options.after)?;
    let pairs = pairs(&before, &after);
    if pairs.is_empty() {
        return Err(Error::Usage(format!(
            "{} and {} have no timed row in common",
            options.before.display(),
            options.after.display()
        )));
    }
    let mut text = heading(&before, &options.before) + &heading(&after, &options.after);
    text.push_str(&table(&pairs));
    let only = before.rows.len() + after.rows.len() - 2 * pairs.len();
    if only > 0 {
        text.push_str(&format!(
            "  {only} rows without a time or a partner left out\n"
        ));
    }
    output::print(&text)?;
    match &options.plots {
        None => Ok(()),
        Some(directory) => plot::list(&plot::write("compare", &[figure(&pairs)], directory)?),
    }
}

/// A row of each report, of the same benchmark, variant and size.
struct Pair<'a> {
    before: &'a Row,
    after: &'a Row,
    /// The median time after to that before: below 1 is faster.
    ratio: f64,
}

fn pairs<'a>(before: &'a Report, after: &'a Report) -> Vec<Pair<'a>> {
    let same = |a: &Row, b: &Row| {
        (&a.benchmark, &a.variant, a.bytes) == (&b.benchmark, &b.variant, b.bytes)
    };
    let partner = |row: &Row| before.rows.iter().find(|earlier| same(earlier, row));
    let pair = |row: &'a Row| {
        let earlier = partner(row)?;
        let ratio = row.median_us()? / earlier.median_us()?;
        ratio.is_finite().then_some(Pair {
            before: earlier,
            after: row,
            ratio,
        })
    };
    after.rows.iter().filter_map(pair).collect()
}

fn heading(report: &Report, file: &Path) -> String {
    let machine = &report.machine;
    format!(
        "{}: lintel {}, {}, Linux {}, cores {:?}\n",
        file.display(),
        report.lintel,
        machine.cpu,
        machine.kernel,
        machine.cores
    )
}

fn table(pairs: &[Pair<'_>]) -> String {
    let titles = ["", "", "size", "before, µs", "after, µs", "after / before"];
    let mut lines = vec![titles.map(String::from).to_vec()];
    for pair in pairs {
        let median = |row: &Row| {
            row.median_us()
                .map_or(String::new(), |us| format!("{us:.3}"))
        };
        lines.push(vec![
            pair.after.benchmark.clone(),
            pair.after.variant.clone(),
            table_size(pair.after.bytes),
            median(pair.before),
            median(pair.after),
            format!("{:.2}", pair.ratio),
        ]);
    }
    aligned(&lines, &[true, true, false, false, false, false])
}

/// The ratio over the size, a line for each benchmark and variant.
fn figure(pairs: &[Pair<'_>]) -> Figure {
    let mut figure = Figure::over_size("After to before", "ratio of median times", Scale::Linear);
    let mut labels: Vec<String> = Vec::new();
    for pair in pairs {
        let label = label(pair.after);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    for (number, name) in labels.iter().enumerate() {
        let own = pairs.iter().filter(|pair| label(pair.after) == *name);
        let points = own.map(|pair| (pair.after.bytes as f64, pair.ratio));
        let stroke = Stroke::Styled {
            colour: number,
            dash: number % 3,
        };
        figure.add(Series::new(name, stroke, points.collect()));
    }
    figure
}

fn label(row: &Row) -> String {
    match row.variant.as_str() {
        "" => row.benchmark.clone(),
        variant => format!("{}, {variant}", row.benchmark),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Times;

    fn row(benchmark: &str, bytes: u64, median_us: f64) -> Row {
        Row {
            times: Some(Times::of(&[median_us * 1000.0])),
            ..Row::new(benchmark, "", bytes)
        }
    }

    #[test]
    fn rows_of_the_same_benchmark_and_size_make_a_ratio_and_others_none() {
        let before = Report::of(vec![row("put", 8, 0.2), row("put", 64, 0.4)]);
        let after = Report::of(vec![row("put", 64, 0.2), row("get", 8, 1.0)]);
        let pairs = pairs(&before, &after);
        assert_eq!(pairs.len(), 1);
        assert_eq!((pairs[0].after.bytes, pairs[0].ratio), (64, 0.5));
        let table = table(&pairs);
        assert!(table.contains("64 B") && table.contains("0.50"), "{table}");
    }
}
