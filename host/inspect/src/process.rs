//! A running process with what it has answered.

use lintel_presence::{Answer, ProcessStats, remove_all_stale, snapshots};
use lintel_snapshot::Snapshot;
use lintel_types::ProcessId;
use serde::Serialize;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

/// How long processes are waited for.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// A live process that has interfaces open, or an endpoint of CCI.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Process {
    /// The value of `LINTEL_JOB`.
    pub job: String,
    /// Its node's address.
    pub address: Ipv4Addr,
    /// Its node and process identifiers.
    pub process: ProcessId,
    /// The system's number of the process that its engine lives in.
    pub os_process: i32,
    /// The program's name to the system.
    pub program: Option<String>,
    /// Its rank, as its launcher or its map of ranks says.
    pub rank: Option<u32>,
    /// Whether a signal or debugger has stopped it.
    pub stopped: bool,
    /// What its interfaces hold; nothing if it didn't answer in time.
    pub snapshot: Option<Snapshot>,
}

/// Asks all processes of `job`, or of all jobs, on this machine; by job and rank, or where
/// that isn't known by node and pid. Waits for answers no longer than [`PATIENCE`].
///
/// # Errors
/// The directory of shared memory can't be read.
pub fn look(job: Option<&str>) -> io::Result<Vec<Process>> {
    let answers = snapshots(job, PATIENCE)?;
    let mut processes: Vec<Process> = answers.into_iter().map(Process::from).collect();
    processes.sort_by(|one, other| one.order().cmp(&other.order()));
    Ok(processes)
}

/// Removes what killed processes of this user have left in shared memory, of all jobs. Returns
/// how many files there were.
///
/// # Errors
/// The directory of shared memory can't be read.
pub fn clean() -> io::Result<usize> {
    remove_all_stale()
}

impl From<Answer> for Process {
    fn from(answer: Answer) -> Process {
        let ProcessStats {
            job,
            process,
            os_process,
            ..
        } = answer.process;
        let snapshot = answer.snapshot.as_deref().and_then(Snapshot::from_bytes);
        let of_map = snapshot.iter().flat_map(|snapshot| &snapshot.interfaces);
        let of_map = of_map.filter_map(|interface| interface.rank).next();
        Process {
            job,
            address: process.nid.into(),
            process,
            os_process,
            program: program(os_process),
            rank: rank_in_environment(os_process).or(of_map),
            stopped: is_stopped(os_process),
            snapshot,
        }
    }
}

impl Process {
    fn order(&self) -> (&str, u32, ProcessId) {
        let rank = self.rank.unwrap_or(u32::MAX);
        (&self.job, rank, self.process)
    }

    /// `rank 1` where the rank is known, the Portals address otherwise.
    pub fn name(&self) -> String {
        match self.rank {
            Some(rank) => format!("rank {rank}"),
            None => self.process.to_string(),
        }
    }
}

/// The variables that launchers give a rank in.
const RANKS: [&str; 4] = [
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
];

fn rank_in_environment(os_process: i32) -> Option<u32> {
    let environment = std::fs::read(format!("/proc/{os_process}/environ")).ok()?;
    rank_in(&environment)
}

fn rank_in(environment: &[u8]) -> Option<u32> {
    let value_of = |name: &str| {
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables.find_map(|v| v.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        std::str::from_utf8(value).ok()?.parse().ok()
    };
    RANKS.into_iter().find_map(value_of)
}

fn program(os_process: i32) -> Option<String> {
    let name = std::fs::read_to_string(format!("/proc/{os_process}/comm")).ok()?;
    let printable = |c: char| if c.is_control() { '?' } else { c };
    Some(name.trim_end().chars().map(printable).collect())
}

fn is_stopped(os_process: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{os_process}/stat"));
    stat.is_ok_and(|stat| matches!(state_in(&stat), Some('T' | 't')))
}

/// The state in a line of `/proc/PID/stat`; it follows the name, which may contain anything.
fn state_in(stat: &str) -> Option<char> {
    stat.rsplit_once(") ")?.1.chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_is_the_first_launchers_that_names_one() {
        let rank = |environment: &str| rank_in(environment.replace(' ', "\0").as_bytes());
        assert_eq!(rank("HOME=/ PMI_RANK=3 SLURM_PROCID=1"), Some(3));
        assert_eq!(rank("SLURM_PROCID=1"), Some(1));
        assert_eq!(rank("PMI_RANKS=7 PMIX_RANK=x"), None);
        assert_eq!(rank(""), None);
    }

    #[test]
    fn a_state_is_found_behind_any_name() {
        assert_eq!(state_in("12 (a) T (b) S 1 2"), Some('S'));
        assert_eq!(state_in("12 (a)"), None);
    }
}
