//! `lintel perf`: Portals measured beside the machine's own limits.
//!
//! ```text
//!   lintel perf ──launches── rank 0 ─┬─ Session ── one module a benchmark
//!                            rank 1 ─┘      └── harness: turns, batches, ratios
//! ```
//!
//! Without `PMI_FD` it starts two copies of itself; with it, it is one of them, and
//! `yod -n 2 lintel perf` or `mpiexec -n 2 lintel perf` works as well. With `--listen` and `--peer`
//! ([`peer`]) the two need no launcher.

mod asleep;
mod atomics;
pub mod baseline;
mod benchmarks;
mod cci;
pub mod collectives;
pub mod connections;
mod delay;
mod depth;
mod direct;
mod endpoint;
mod endpoint3;
pub mod fresh_processes;
mod gups;
mod idle;
mod limits;
pub mod multi_pair;
mod netpipe;
pub mod network;
mod noise;
mod one_core;
mod options;
mod overlap;
mod partial;
pub mod paths;
pub mod peer;
mod pingpong;
pub mod placements;
pub mod session;
mod side;
mod small;
mod stream;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use lintel_pmi::client::Client;

pub use benchmarks::{Benchmark, title};
pub use options::{Api, Options, Wait};

use benchmarks::{Group, Run};

use crate::error::{During, Error, Result};
use crate::machine::{self, Machine};
use crate::output;
use crate::plot;
use crate::raw::Ticket;
use crate::report::targets::{self, Verdict};
use crate::report::{Report, Row};
use crate::team::{Team, WORDS, WaitMode};
use multi_pair::jobs::{Job, RowsFile, Task};
use session::Session;

/// The hidden command by which measurements start fresh processes.
pub const FRESH_PROCESS: &str = "perf-member";
/// The hidden command of ranks that are more than two.
pub const RANK: &str = "perf-crowd";

/// Runs the command, in the launching process or in a rank.
///
/// # Errors
/// What the system, the launcher or Portals refused.
pub fn run(options: Options) -> Result<ExitCode> {
    if let Some(jobs) = options.jobs() {
        (jobs.check)(&options)?;
    }
    if options.listen || options.peer.is_some() {
        return peer::run(&complete(options)?);
    }
    let options = complete(options)?;
    let client = Client::from_env()
        .map_err(|error| Error::Usage(format!("the launcher's environment: {error}")))?;
    match (client, options.jobs()) {
        (None, Some(jobs)) => (jobs.launch)(&options),
        (None, None) => launch(&options),
        (Some(client), _) => {
            options.check_in_rank(std::env::var_os(ROWS).is_some())?;
            options.network.check_environment()?;
            rank(client, options).map(|()| ExitCode::SUCCESS)
        }
    }
}

/// Fills in what depends on the machine and on the benchmark.
fn complete(mut options: Options) -> Result<Options> {
    if options.cores.is_empty() {
        let allowed = machine::allowed_cores()?;
        options.cores = allowed.iter().copied().cycle().take(2).collect();
    }
    options.complete()?;
    match options.cores.len() {
        2 => Ok(options),
        n => Err(Error::Usage(format!("--cores takes two cores, not {n}"))),
    }
}

/// Starts two copies of this program with these arguments.
fn launch(options: &Options) -> Result<ExitCode> {
    let program = std::env::current_exe().during("finding this program")?;
    let mut job = yod::Job::new(RANKS, program);
    job.args = std::env::args_os().skip(1).collect();
    job.env.extend(session::terminal_hint());
    options.network.apply(&mut job);
    // Kept until the job has ended.
    let before = match options.measures_crowds() {
        true => Some(RowsFile::new(&crowded(options)?)?),
        false => None,
    };
    let place = before
        .as_ref()
        .map(|rows| (ROWS.into(), rows.place().into()));
    job.env.extend(place);
    let outcome =
        yod::run(&job).map_err(|error| Error::Usage(format!("starting two ranks: {error}")))?;
    Ok(ExitCode::from(outcome.exit_code()))
}

/// All-reduces of more ranks than there may be cores, which jobs of their own measure.
fn crowded(options: &Options) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for ranks in CROWDS {
        let job = Job {
            task: Task::Allreduce,
            ranks,
            variables: Vec::new(),
        };
        rows.extend(job.run(options)?);
    }
    Ok(rows)
}

/// One of the two.
fn rank(mut client: Client, options: Options) -> Result<()> {
    if client.size() != RANKS {
        return Err(Error::Usage(format!(
            "lintel perf runs as two ranks, not {}",
            client.size()
        )));
    }
    let rank = client.rank();
    take_part(options, rank, || form_team(&mut client, WaitMode::Spin))?;
    client
        .finalize()
        .map_err(|error| Error::Usage(format!("leaving the launcher: {error}")))
}

/// Measures as one of two, and reports as rank 0.
fn take_part(mut options: Options, rank: usize, form: impl FnOnce() -> Result<Team>) -> Result<()> {
    let mut start = Start::now(&options);
    machine::pin(options.cores[rank])?;
    let team = form()?;
    options.cores = exchange_cores(&team, options.cores[rank])?;
    start.machine.cores = options.cores.clone();
    let selected = options.selected();
    let points = selected.iter().map(|benchmark| benchmark.points(&options));
    let mut session = Session::new(team, options.clone(), points.sum());
    if session.team.leads() {
        let (start, options) = (start.clone(), options.clone());
        partial::on_interrupt(session.rows(), move |rows| {
            deliver_interrupted(start, &options, rows);
        })?;
    }
    let shared = match options.cores[..] {
        [one, other] if one == other && !session.team.is_remote() => Some(one),
        _ => None,
    };
    if let Some(one) = shared {
        session.note(&format!(
            "both ranks are pinned to core {one}, and take turns"
        ))?;
    }
    for benchmark in selected {
        session.begin(benchmark.points(&options));
        one(&mut session, benchmark)?;
    }
    let leads = session.team.leads();
    let mut rows = session.into_rows();
    if leads {
        if let Ok(place) = std::env::var(ROWS) {
            rows.extend(RowsFile::read(&place)?);
        }
        let verdicts = match options.asks_for(Group::Targets) {
            true => targets::judge(&rows, options.network.is_crossed()),
            false => Vec::new(),
        };
        let report = start.report(&options, rows, verdicts);
        deliver(&report, &options)?;
    }
    Ok(())
}

fn one(session: &mut Session, benchmark: Benchmark) -> Result<()> {
    match benchmark.run {
        Run::Group(_) => Ok(()),
        Run::InSession(run, _) => run(session),
        Run::InJobs(_) => Err(options::starts_own_ranks(benchmark.name)),
    }
}

/// The core that each rank is pinned to: another launcher may have given each its own, and
/// then neither knows the other's.
fn exchange_cores(team: &Team, own: usize) -> Result<Vec<usize>> {
    let mut words = [0; WORDS];
    words[0] = own as u64;
    let all = team.exchange(words)?;
    Ok(all.iter().map(|words| words[0] as usize).collect())
}

/// Rank 0's memory, found through the launcher's key-value store.
fn form_team(client: &mut Client, mode: WaitMode) -> Result<Team> {
    let failed = |error: Box<dyn std::error::Error>| Error::Usage(error.to_string());
    let (rank, size) = (client.rank(), client.size());
    let created = match rank {
        0 => Some(Team::create(size, mode)?),
        _ => None,
    };
    match (
        pass_ticket(client, created.as_ref()).map_err(failed)?,
        created,
    ) {
        (_, Some(team)) => Ok(team),
        (ticket, None) => Team::join(ticket, rank, size, mode),
    }
}

/// The ticket of rank 0's team, in every rank.
fn pass_ticket(
    client: &mut Client,
    created: Option<&Team>,
) -> std::result::Result<Ticket, Box<dyn std::error::Error>> {
    if let Some(team) = created {
        let ticket = team.ticket();
        client.put(TICKET, &format!("{}:{}", ticket.pid, ticket.fd))?;
    }
    client.barrier()?;
    let text = client.get(TICKET)?.ok_or("rank 0 published no ticket")?;
    let (pid, fd) = text.split_once(':').ok_or("rank 0's ticket is garbled")?;
    Ok(Ticket {
        pid: pid.parse()?,
        fd: fd.parse()?,
    })
}

/// The rows that an interrupted run has measured.
fn deliver_interrupted(start: Start, options: &Options, rows: Vec<Row>) {
    let mut report = start.report(options, rows, Vec::new());
    report.interrupted = true;
    if let Err(error) = deliver(&report, options) {
        eprintln!("lintel: {error}");
    }
}

/// When and where a run began.
#[derive(Clone)]
struct Start {
    time: SystemTime,
    machine: Machine,
}

impl Start {
    /// Before this process is bound to a core, which would hide the others.
    fn now(options: &Options) -> Self {
        Self {
            time: SystemTime::now(),
            machine: Machine::here(options.cores.clone()),
        }
    }

    fn report(self, options: &Options, rows: Vec<Row>, targets: Vec<Verdict>) -> Report {
        let since = self.time.duration_since(UNIX_EPOCH);
        Report {
            schema: 1,
            lintel: env!("CARGO_PKG_VERSION").into(),
            started: since.map_or(0, |since| since.as_secs()),
            command: std::env::args().collect(),
            options: serde_json::to_value(options).expect("options are plain data"),
            machine: self.machine,
            environment: environment(options),
            targets,
            interrupted: false,
            rows,
        }
    }
}

/// Writes and draws what was asked for; the tables unless something else goes to
/// standard output.
fn deliver(report: &Report, options: &Options) -> Result<()> {
    if let Some(place) = &options.json {
        report.write_json(place)?;
    }
    if let Some(place) = &options.csv {
        report.write_csv(place)?;
    }
    let drawn = match &options.plots {
        Some(directory) => plot::draw(report, directory)?,
        None => Vec::new(),
    };
    let taken = |place: &Option<String>| place.as_deref() == Some("-");
    if taken(&options.json) || taken(&options.csv) {
        return Ok(());
    }
    output::print(&report.tables(title))?;
    plot::list(&drawn)
}

/// The variables that change what Portals does; without the job's secret.
fn environment(options: &Options) -> BTreeMap<String, String> {
    let given = options.network.given().into_iter();
    std::env::vars()
        .chain(given.map(|(name, value)| (name.to_owned(), value)))
        .filter(|(name, _)| name.starts_with("PTL_") || name.starts_with("LINTEL_"))
        .filter(|(name, _)| !OWN_VARIABLES.contains(&name.as_str()))
        .collect()
}

const RANKS: usize = 2;
/// Ranks of the all-reduces among the targets' rows.
const CROWDS: [usize; 3] = [4, 8, 16];
/// Where the launching process has left rows that it measured before.
const ROWS: &str = "LINTEL_PERF_ROWS";
/// Variables of one run, and the job's secret.
const OWN_VARIABLES: [&str; 3] = [session::TERMINAL_HINT, ROWS, "LINTEL_SECRET"];
const TICKET: &str = "lintel-perf-team";
