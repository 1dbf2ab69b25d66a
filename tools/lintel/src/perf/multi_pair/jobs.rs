//! Jobs of this program's own ranks, started one after the other, whose rows come back
//! through a file in memory.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use clap::ValueEnum;
use lintel_pmi::client::Client;
use rustix::fs::{MemfdFlags, memfd_create};

use crate::error::{During, Error, Result};
use crate::perf::options::Options;
use crate::perf::{collectives, connections, multi_pair, paths, placements, session};
use crate::report::Row;

/// What the ranks of a job do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Task {
    /// The figures of `connections`
    Figures,
    /// Contexts and memory at some number of processes
    Counts,
    /// The sweep of `placements`
    Placement,
    /// The points of `paths`
    Paths,
    /// The points of `collectives`
    Collectives,
    /// An all-reduce of 8 B
    Allreduce,
}

/// What the hidden command takes: the task, then all options of `lintel perf`.
#[derive(Clone, Debug, clap::Args)]
pub struct RankArgs {
    #[arg(value_enum)]
    task: Task,
    #[arg(long)]
    rows: PathBuf,
    #[command(flatten)]
    options: Options,
}

/// A job to be started.
pub struct Job {
    /// What its ranks do.
    pub task: Task,
    /// The number of ranks; at least 2.
    pub ranks: usize,
    /// Variables of every rank.
    pub variables: Vec<(OsString, OsString)>,
}

impl Job {
    /// Runs it and gives its rows.
    ///
    /// # Errors
    /// It couldn't be started, or a rank failed.
    pub fn run(self, options: &Options) -> Result<Vec<Row>> {
        let rows = RowsFile::new(&[])?;
        let mut job = self.into_job(&rows)?;
        options.network.apply(&mut job);
        let outcome = yod::run(&job)
            .map_err(|error| Error::Usage(format!("starting {} ranks: {error}", job.ranks)))?;
        if let Some(cause) = outcome.cause {
            return Err(Error::Wrong(format!("the job ended early: {cause}")));
        }
        RowsFile::read(&rows.place())
    }

    fn into_job(self, rows: &RowsFile) -> Result<yod::Job> {
        let program = std::env::current_exe().during("finding this program")?;
        let mut job = yod::Job::new(self.ranks, program);
        let task = self.task.to_possible_value().expect("no task is hidden");
        let place = rows.place();
        job.args = [crate::perf::RANK, task.get_name(), "--rows", &place]
            .map(OsString::from)
            .into();
        // What follows `lintel perf`.
        job.args.extend(std::env::args_os().skip(2));
        job.env = self.variables;
        job.env.extend(session::terminal_hint());
        Ok(job)
    }
}

/// Rows in a file in memory, which processes that this one starts can open.
pub struct RowsFile(File);

impl RowsFile {
    /// Holding these rows.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new(rows: &[Row]) -> Result<Self> {
        let file = memfd_create("lintel-rows", MemfdFlags::CLOEXEC).map(File::from);
        let mut file = file.during("making a file in memory")?;
        let text = serde_json::to_string(rows).expect("rows are plain data");
        file.write_all(text.as_bytes()).during("writing rows")?;
        Ok(Self(file))
    }

    /// The path by which processes of this user open it while this process has it.
    pub fn place(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// The rows behind a path.
    ///
    /// # Errors
    /// It can't be read, or holds something else.
    pub fn read(place: &str) -> Result<Vec<Row>> {
        let text = fs::read_to_string(place).during("reading rows")?;
        serde_json::from_str(&text)
            .map_err(|error| Error::Wrong(format!("there are no rows: {error}")))
    }
}

/// The hidden command, in each rank.
///
/// # Errors
/// What the system, the launcher or Portals refused.
pub fn serve(args: RankArgs) -> Result<()> {
    let options = crate::perf::complete(args.options)?;
    let rank = std::env::var("PMI_RANK").ok();
    let rank = rank.and_then(|rank| rank.parse().ok()).unwrap_or(0);
    let variable = match args.task {
        Task::Figures => Some(connections::variable_of(rank, &options)),
        Task::Paths => paths::variable_of(rank),
        _ => None,
    };
    if let Some((name, value)) = variable {
        multi_pair::restart_with(name, &value)?;
    }
    let client = Client::from_env()
        .map_err(|error| Error::Usage(format!("the launcher's environment: {error}")))?;
    let Some(mut client) = client else {
        return Err(Error::Usage(
            "this command is a rank's, started by another".into(),
        ));
    };
    let rows = match args.task {
        Task::Figures => connections::figures(&mut client, &options)?,
        Task::Counts => connections::counts(&mut client, &options)?,
        Task::Placement => placements::sweep(&mut client, &options)?,
        Task::Paths => paths::figures(&mut client, &options)?,
        Task::Collectives => collectives::figures(&mut client, &options)?,
        Task::Allreduce => collectives::allreduce(&mut client, &options)?,
    };
    if client.rank() == 0 {
        let text = serde_json::to_string(&rows).expect("rows are plain data");
        fs::write(&args.rows, text).during("handing rows to the starter")?;
    }
    client
        .finalize()
        .map_err(|error| Error::Usage(format!("leaving the launcher: {error}")))
}
