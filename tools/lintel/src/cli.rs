//! The command line.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::error::{Error, Result};
use crate::{info, perf, plot, sim};

/// Information, measurement and plots of Portals on this machine
#[derive(Debug, Parser)]
#[command(name = "lintel", version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    word: Word,
}

#[derive(Debug, Subcommand)]
enum Word {
    /// Show interfaces, limits, networks and environment variables
    Info(info::Options),
    /// Measure Portals between two pinned processes, and compare it with the machine's own limits
    Perf(Box<perf::Options>),
    /// Draw what `lintel perf --json` wrote, as SVG and PNG
    Plot(PlotOptions),
    /// Simulate machines and networks: scenarios, sweeps, and the figures of the papers
    #[command(subcommand)]
    Sim(sim::Word),
    #[command(name = perf::FRESH_PROCESS, hide = true)]
    PerfFreshProcess(perf::fresh_processes::ProcessArgs),
    #[command(name = perf::RANK, hide = true)]
    PerfRank(Box<perf::multi_pair::jobs::RankArgs>),
    #[command(name = info::PROBE, hide = true)]
    ProbeCopy(info::Probe),
}

/// What `lintel plot` takes.
#[derive(Debug, clap::Args)]
pub struct PlotOptions {
    /// A report of `lintel perf --json`
    file: PathBuf,

    /// Directory for the plots; created if missing
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
}

/// The command line's description, for man pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

impl Cli {
    /// Does what was asked; an error is printed on standard error and gives exit code 1, or 2 if the usage is wrong.
    pub fn run(self) -> ExitCode {
        match self.dispatch() {
            Ok(code) => code,
            Err(error) => {
                eprintln!("lintel: {error}");
                match error {
                    Error::Usage(_) => ExitCode::from(2),
                    _ => ExitCode::FAILURE,
                }
            }
        }
    }

    fn dispatch(self) -> Result<ExitCode> {
        match self.word {
            Word::Info(options) => info::run(&options).map(|()| ExitCode::SUCCESS),
            Word::Perf(options) => perf::run(*options),
            Word::Plot(options) => {
                let drawn = plot::run(&options.file, &options.out)?;
                for path in drawn {
                    println!("{}", path.display());
                }
                Ok(ExitCode::SUCCESS)
            }
            Word::Sim(word) => sim::run(&word).map(|()| ExitCode::SUCCESS),
            Word::PerfFreshProcess(args) => {
                perf::fresh_processes::serve(args).map(|()| ExitCode::SUCCESS)
            }
            Word::PerfRank(args) => {
                perf::multi_pair::jobs::serve(*args).map(|()| ExitCode::SUCCESS)
            }
            Word::ProbeCopy(probe) => info::probe_from_child(probe).map(|()| ExitCode::SUCCESS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }
}
