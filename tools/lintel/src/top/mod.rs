//! `lintel top`: what running processes exchange, again and again.
//!
//! Each look asks the processes' helpers, as `lintel info --queues` does, so it costs a process
//! some ten microseconds and nothing between looks.

mod metrics;
mod table;

use std::io::IsTerminal;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use console::Term;
use lintel_inspect::Process;

use crate::error::{During, Result};
use crate::output;

/// Options of `lintel top`.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Only processes of this job, as LINTEL_JOB names it
    #[arg(long, value_name = "JOB")]
    job: Option<String>,

    /// Time between looks: 500ms, 2s, or a number of seconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_time)]
    every: Duration,

    /// Print one table, and end
    #[arg(long, conflicts_with_all = ["csv", "openmetrics"])]
    once: bool,

    /// Write a line for each process and look, as CSV, until interrupted
    #[arg(long)]
    csv: bool,

    /// Write the counters once in OpenMetrics' format, for Prometheus and others
    #[arg(long, conflicts_with = "csv")]
    openmetrics: bool,

    /// End after so many looks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    looks: Option<u64>,
}

/// Shows processes until interrupted, or as long as was asked for.
///
/// # Errors
/// Processes can't be asked, or nobody reads the output any more.
pub fn run(options: &Options) -> Result<()> {
    match (options.csv, options.openmetrics) {
        (true, _) => write_csv(options),
        (_, true) => output::print(&metrics::open_metrics(&look(options)?.processes)),
        _ => show(options),
    }
}

/// All processes at one moment.
struct Look {
    at: Instant,
    processes: Vec<Process>,
}

fn look(options: &Options) -> Result<Look> {
    let processes = lintel_inspect::look(options.job.as_deref());
    Ok(Look {
        processes: processes.during("asking processes for their state")?,
        at: Instant::now(),
    })
}

/// Tables, each in the place of the one before it where that is a terminal.
fn show(options: &Options) -> Result<()> {
    let is_live = std::io::stdout().is_terminal() && !options.once;
    let looks = match is_live {
        true => options.looks.unwrap_or(u64::MAX),
        false => options.looks.unwrap_or(1),
    };
    let mut before = look(options)?;
    for _ in 0..looks {
        std::thread::sleep(options.every);
        let now = look(options)?;
        let table = table::of(&before.processes, &now.processes, now.at - before.at);
        if is_live {
            // A terminal that can't be cleared shows one table below the other.
            let _ = Term::stdout().clear_screen();
        }
        output::print(&table)?;
        before = now;
    }
    Ok(())
}

fn write_csv(options: &Options) -> Result<()> {
    output::print(&metrics::csv_header())?;
    for done in 1..=options.looks.unwrap_or(u64::MAX) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let time = time.map_or(0.0, |time| time.as_secs_f64());
        output::print(&metrics::csv_lines(time, &look(options)?.processes))?;
        if options.looks != Some(done) {
            std::thread::sleep(options.every);
        }
    }
    Ok(())
}

fn parse_time(text: &str) -> std::result::Result<Duration, String> {
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 0.001),
        (None, Some(number)) => (number, 1.0),
        (None, None) => (text, 1.0),
    };
    let seconds = number.parse::<f64>().map(|number| number * unit);
    match seconds {
        Ok(seconds) if (0.01..=86_400.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("a time is 500ms, 2s, or a number of seconds, at least 10ms".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_unit_or_are_seconds() {
        for (text, milliseconds) in [("500ms", 500), ("2s", 2000), ("0.25", 250), ("1", 1000)] {
            assert_eq!(parse_time(text), Ok(Duration::from_millis(milliseconds)));
        }
        for text in ["", "s", "0", "-1s", "1m", "nan"] {
            assert!(parse_time(text).is_err(), "{text:?}");
        }
    }
}
