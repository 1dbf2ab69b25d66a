//! `lintel sim`: simulated machines and networks.
//!
//! ```text
//!   run ──▶ lintel-sim-scenario: points ──▶ SimulationProgress ──▶ Results ──▶ table, JSON, CSV, plots
//!                                   └─ spans ──▶ trace (Perfetto)
//!   figures ──▶ lintel-sim-*: the papers' figures ──▶ plots, one table
//! ```
//!
//! What is simulated is others' business; this gives it files, a progress bar and
//! pictures. Only the elapsed time differs between runs.

mod figures;
mod list;
mod progress;
mod results;
mod trace;

use std::fs;
use std::path::{Path, PathBuf};

use lintel_sim_scenario::{Point, Scenario};

use crate::error::{During, Error, Result};
use crate::output;
use crate::plot;
use crate::report::write_to;
use progress::SimulationProgress;
use results::{Entry, Results};
use trace::Trace;

/// What `lintel sim` does.
#[derive(Debug, clap::Subcommand)]
pub enum Word {
    /// Run a scenario: one simulation, or one for each combination of its lists
    #[command(visible_alias = "sweep")]
    Run(RunOptions),
    /// List the models, workloads, profiles and figures
    List,
    /// Draw one figure of the papers and print its points
    Figure {
        /// Name of the figure, as `lintel sim list` shows it
        name: String,
        /// Directory and format of the output.
        #[command(flatten)]
        options: FigureOptions,
    },
    /// Draw every figure of the papers; print published, simulated and difference, and
    /// leave plots, tables and figures.md, which shows them
    Figures(FigureOptions),
}

/// What `lintel sim run` takes.
#[derive(Debug, clap::Args)]
pub struct RunOptions {
    /// The scenario, a TOML file; examples/scenarios has some
    file: PathBuf,

    /// Only this point of a sweep, from 1
    #[arg(long, value_name = "N")]
    point: Option<usize>,

    /// Write results as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<String>,

    /// Write results as CSV, a line a point; `-` is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<String>,

    /// Draw the scenario's plot into this folder, as SVG and PNG
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,

    /// Write what hosts, firmware, engines and links do when, for ui.perfetto.dev; of one point
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
}

/// Options of `lintel sim figure` and `lintel sim figures`.
#[derive(Debug, clap::Args)]
pub struct FigureOptions {
    /// Directory for plots and tables; created if missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,

    /// Write the table as CSV; `-` is standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<String>,
}

/// Does what was asked.
///
/// # Errors
/// A scenario that is faulty or can't be run, files that can't be read or written.
pub fn run(word: &Word) -> Result<()> {
    match word {
        Word::Run(options) => scenario(options),
        Word::List => output::print(&list::text()),
        Word::Figure { name, options } => figures::one(name, &options.out, options.csv.as_deref()),
        Word::Figures(options) => figures::all(&options.out, options.csv.as_deref()),
    }
}

fn scenario(options: &RunOptions) -> Result<()> {
    let file = &options.file;
    let name = file.display().to_string();
    let text = fs::read_to_string(file).during(format!("reading {name}"))?;
    let scenario = Scenario::parse(&name, &text).map_err(|m| Error::Usage(m.to_string()))?;
    let points = chosen(&scenario, options)?;
    let mut results = Results::new(&name, &scenario.about);
    let progress = SimulationProgress::new(points.len());
    let mut spans = 0;
    for point in points {
        let simulated = simulate(point, options, &progress);
        let (entry, traced) = simulated.map_err(|error| at(error, &name, point))?;
        results.entries.push(entry);
        spans += traced;
    }
    progress.finish();
    let is_printed = deliver(&results, &scenario, options)?;
    if let (Some(trace), true) = (&options.trace, is_printed) {
        let place = trace.display();
        output::print(&format!("{place}: {spans} spans, for ui.perfetto.dev\n"))?;
    }
    Ok(())
}

/// The points that are asked for.
fn chosen<'a>(scenario: &'a Scenario, options: &RunOptions) -> Result<&'a [Point]> {
    let points = scenario.points.as_slice();
    let count = points.len();
    let chosen = match options.point {
        None => points,
        Some(n) if (1..=count).contains(&n) => &points[n - 1..n],
        Some(n) => {
            let what = format!("--point is {n}; the scenario has points 1 to {count}");
            return Err(Error::Usage(what));
        }
    };
    match (&options.trace, chosen.len()) {
        (Some(_), 2..) => Err(Error::Usage(format!(
            "--trace takes one point, and the scenario has {count}: choose by --point"
        ))),
        _ => Ok(chosen),
    }
}

/// What went wrong, with the point at which it did.
fn at(error: Error, name: &str, point: &Point) -> Error {
    let varied = point
        .varied
        .iter()
        .map(|(path, value)| format!(" {path} = {value},"));
    let varied: String = varied.collect();
    let place = match varied.strip_suffix(',') {
        Some(varied) => format!("{name}, at{varied}"),
        None => name.into(),
    };
    match error {
        Error::Usage(what) => Error::Usage(format!("{place}: {what}")),
        Error::Wrong(what) => Error::Wrong(format!("{place}: {what}")),
        other => other,
    }
}

/// What a point found, and how many spans its trace has.
fn simulate(
    point: &Point,
    options: &RunOptions,
    progress: &SimulationProgress,
) -> Result<(Entry, u64)> {
    let beside = options.file.parent().unwrap_or(Path::new("."));
    let text = match point.file().map(|file| beside.join(file)) {
        Some(path) => {
            let read = fs::read_to_string(&path);
            Some(read.during(format!("reading workload.file, {}", path.display()))?)
        }
        None => None,
    };
    let trace = options.trace.as_deref().map(Trace::create).transpose()?;
    let observer = trace.as_ref().map(Trace::observer);
    let run = point.prepare(text.as_deref(), observer);
    let mut run = run.map_err(Error::Usage)?;
    let seconds = progress.through(run.as_mut());
    let outcome = run.finish().map_err(Error::Wrong)?;
    let spans = trace.map(Trace::finish).transpose()?;
    Ok((Entry::new(point, &outcome, seconds), spans.unwrap_or(0)))
}

/// Returns whether tables were printed: standard output was free.
fn deliver(results: &Results, scenario: &Scenario, options: &RunOptions) -> Result<bool> {
    if let Some(place) = &options.json {
        write_to(place, results.json().as_bytes())?;
    }
    if let Some(place) = &options.csv {
        write_to(place, &results.csv())?;
    }
    let mut drawn = Vec::new();
    if let Some(directory) = &options.plots {
        let plan = match &scenario.plot {
            Some(plan) => plan,
            None => &results.default_plot()?,
        };
        results.check(plan)?;
        let name = options.file.file_stem().unwrap_or_default();
        let figure = results.figure(plan);
        drawn = plot::write(&name.to_string_lossy(), &[figure], directory)?;
    }
    let taken = |place: &Option<String>| place.as_deref() == Some("-");
    if taken(&options.json) || taken(&options.csv) {
        return Ok(false);
    }
    output::print(&results.table())?;
    plot::list(&drawn)?;
    Ok(true)
}
