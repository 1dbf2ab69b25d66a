//! The command line.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::error::{During, Error, Result};
use crate::output;
use crate::{compare, doctor, info, perf, plot, sim, timeline, top};

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
    /// Look for what keeps Portals programs from running, or from running fast
    Doctor(doctor::Options),
    /// Show what running processes exchange, like top
    Top(top::Options),
    /// Measure Portals between two pinned processes, and compare it with the machine's own limits
    Perf(Box<perf::Options>),
    /// Remove what killed processes of this user have left in /dev/shm
    Clean,
    /// Show what processes did with messages, and when (PTL_TRACE)
    #[command(subcommand)]
    Trace(timeline::Word),
    /// Draw what `lintel perf --json` wrote, as SVG and PNG
    Plot(PlotOptions),
    /// Compare two reports of `lintel perf --json`: the ratio of each median time
    Compare(compare::Options),
    /// Simulate machines and networks: scenarios, sweeps, and the figures of the papers
    #[command(subcommand)]
    Sim(sim::Word),
}

/// How this program starts itself. These are no words of [`Cli`], so that neither help nor
/// suggestions name them.
#[derive(Debug, Parser)]
struct Internal {
    #[command(subcommand)]
    word: InternalWord,
}

#[derive(Debug, Subcommand)]
enum InternalWord {
    #[command(name = perf::FRESH_PROCESS)]
    PerfFreshProcess(perf::fresh_processes::ProcessArgs),
    #[command(name = perf::peer::PEER)]
    PerfPeer(Box<perf::peer::PeerArgs>),
    #[command(name = perf::RANK)]
    PerfRank(Box<perf::multi_pair::jobs::RankArgs>),
    #[command(name = info::PROBE)]
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

/// Does what the command line asks; an error is printed on standard error and gives exit code
/// 1, or 2 if the usage is wrong. Once nobody reads standard output any more, the command ends
/// silently, as if by SIGPIPE.
pub fn run() -> ExitCode {
    let first = std::env::args_os().nth(1);
    let is_internal = first.is_some_and(|word| INTERNAL.iter().any(|own| word == *own));
    let done = match is_internal {
        true => Internal::parse().dispatch(),
        false => Cli::parse().dispatch(),
    };
    done.unwrap_or_else(|error| match error {
        Error::OutputClosed => ExitCode::from(BY_SIGPIPE),
        error => {
            // Standard error may be closed, too.
            let _ = writeln!(io::stderr(), "lintel: {error}");
            match error {
                Error::Usage(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    })
}

const INTERNAL: [&str; 4] = [
    perf::FRESH_PROCESS,
    perf::peer::PEER,
    perf::RANK,
    info::PROBE,
];
/// What a shell reports of a process that SIGPIPE, signal 13, ended.
const BY_SIGPIPE: u8 = 128 + 13;

impl Cli {
    fn dispatch(self) -> Result<ExitCode> {
        match self.word {
            Word::Info(options) => info::run(&options).map(|()| ExitCode::SUCCESS),
            Word::Doctor(options) => Ok(match doctor::run(&options)? {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }),
            Word::Top(options) => top::run(&options).map(|()| ExitCode::SUCCESS),
            Word::Perf(options) => perf::run(*options),
            Word::Clean => clean().map(|()| ExitCode::SUCCESS),
            Word::Trace(word) => timeline::run(&word).map(|()| ExitCode::SUCCESS),
            Word::Plot(options) => {
                let drawn = plot::run(&options.file, &options.out)?;
                plot::list(&drawn).map(|()| ExitCode::SUCCESS)
            }
            Word::Compare(options) => compare::run(&options).map(|()| ExitCode::SUCCESS),
            Word::Sim(word) => sim::run(&word).map(|()| ExitCode::SUCCESS),
        }
    }
}

fn clean() -> Result<()> {
    let removed = lintel_inspect::clean().during("looking into /dev/shm")?;
    output::print(&format!("{removed} files of killed processes removed\n"))
}

impl Internal {
    fn dispatch(self) -> Result<ExitCode> {
        match self.word {
            InternalWord::PerfFreshProcess(args) => perf::fresh_processes::serve(args)?,
            InternalWord::PerfPeer(args) => perf::peer::serve(*args)?,
            InternalWord::PerfRank(args) => perf::multi_pair::jobs::serve(*args)?,
            InternalWord::ProbeCopy(probe) => info::probe_from_child(probe)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
        Internal::command().debug_assert();
    }

    #[test]
    fn what_this_program_starts_itself_by_is_no_word_of_the_command_line() {
        for word in INTERNAL {
            let refused = Cli::try_parse_from(["lintel", word]).expect_err(word);
            assert_eq!(refused.kind(), clap::error::ErrorKind::InvalidSubcommand);
            assert!(Internal::command().find_subcommand(word).is_some());
        }
        let near = Cli::try_parse_from(["lintel", "prf"]).expect_err("no such word");
        let tip = near.to_string();
        assert!(tip.contains("'perf'") && !tip.contains("perf-"), "{tip}");
    }
}
