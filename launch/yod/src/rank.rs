//! One rank: how it is started, and what the launcher holds of it.

use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use rustix::fs::{Access, access};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, kill_process_group, pidfd_open, waitid,
};
use rustix::thread::sched_getaffinity;

use crate::helper::EXEC_RANK;
use crate::job::{Bind, End, Error, Job, RankOutcome};
use crate::output::Lines;

/// The running binary, also when its file was replaced meanwhile.
pub(crate) const THIS_BINARY: &str = "/proc/self/exe";

/// A started rank. Its process stays a zombie until [`Rank::reap`], so that its
/// number, which names its process group too, can't be given to another.
pub(crate) struct Rank {
    child: Child,
    pid: Pid,
    /// Readable once the process has ended.
    pub(crate) exit: OwnedFd,
    /// The launcher's end of the PMI connection, while it is open.
    pub(crate) pmi: Option<UnixStream>,
    /// Answers that the connection did not take yet.
    pub(crate) pmi_held: Vec<u8>,
    pub(crate) stdout: Stream,
    pub(crate) stderr: Stream,
    /// How the process ended, once it has.
    pub(crate) outcome: Option<RankOutcome>,
}

/// One of a rank's output streams.
pub(crate) struct Stream {
    /// While a process holds the other end.
    pub(crate) pipe: Option<OwnedFd>,
    pub(crate) lines: Lines,
}

impl Rank {
    /// Starts rank `rank` of `job` as part of the job named `id`.
    pub(crate) fn start(job: &Job, rank: usize, id: &str) -> io::Result<Rank> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        // The rank alone inherits its end: it is closed below, before another starts.
        fcntl_setfd(&theirs, FdFlags::empty())?;
        let mut command = command_of(job, rank, id, &theirs);
        let mut child = command.spawn()?;
        drop(theirs);
        let pid = Pid::from_child(&child);
        let exit = pidfd_open(pid, PidfdFlags::empty())?;
        let lines = || Lines::new(rank, job.ranks, job.label);
        let stdout = child.stdout.take().map(OwnedFd::from);
        let stderr = child.stderr.take().map(OwnedFd::from);
        Ok(Rank {
            child,
            pid,
            exit,
            pmi: Some(ours),
            pmi_held: Vec::new(),
            stdout: Stream {
                pipe: stdout,
                lines: lines(),
            },
            stderr: Stream {
                pipe: stderr,
                lines: lines(),
            },
            outcome: None,
        })
    }

    /// The rank's process group: the rank and what it started.
    pub(crate) fn group(&self) -> Pid {
        self.pid
    }

    /// The pipe to the rank's standard input, where there is one; once.
    pub(crate) fn take_input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Sends `signal` to the rank and all that it started.
    pub(crate) fn signal(&self, signal: Signal) {
        // A group whose processes have all ended needs no signal.
        let _ = kill_process_group(self.pid, signal);
    }

    /// Learns how the process ended, without reaping it.
    pub(crate) fn on_exit(&mut self) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let Ok(Some(status)) = waitid(WaitId::Pid(self.pid), options) else {
            return;
        };
        let end = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => End::Exited(code),
            (None, signal) => End::Killed(signal.unwrap_or(0)),
        };
        let pid = self.pid.as_raw_nonzero().get();
        let (user, system) = processor_time(pid).unwrap_or_default();
        self.outcome = Some(RankOutcome {
            pid,
            end,
            user,
            system,
        });
    }

    /// Ends whatever is left of the rank and gives its number back.
    pub(crate) fn reap(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for Rank {
    /// Nothing of a rank outlives the launcher's interest, not even after an error.
    fn drop(&mut self) {
        if self.outcome.is_none() {
            self.reap();
        }
    }
}

/// The variables of PMI-1 that are known before the rank starts.
pub(crate) fn numbers(rank: usize, ranks: usize) -> impl Iterator<Item = (OsString, OsString)> {
    // The last two are what MPICH's hydra sets beside PMI-1's own.
    [
        ("PMI_RANK", rank),
        ("PMI_SIZE", ranks),
        ("MPI_LOCALRANKID", rank),
        ("MPI_LOCALNRANKS", ranks),
    ]
    .into_iter()
    .map(|(name, number)| (name.into(), number.to_string().into()))
}

/// The core that `rank` is bound to.
pub(crate) fn core_of(job: &Job, rank: usize) -> Option<usize> {
    if job.bind == Bind::None {
        return None;
    }
    let allowed = sched_getaffinity(None).ok()?;
    let cores: Vec<usize> = (0..rustix::thread::CpuSet::MAX_CPU)
        .filter(|&core| allowed.is_set(core))
        .collect();
    cores.get(rank % cores.len().max(1)).copied()
}

/// Looks for the program before any rank starts: one clear message, not N.
///
/// # Errors
/// [`Error::NotFound`] and [`Error::NotExecutable`].
pub(crate) fn find(program: &OsStr) -> Result<(), Error> {
    let path = Path::new(program);
    if path.components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        return match (is_executable(path), path.exists()) {
            (true, _) => Ok(()),
            (false, true) => Err(Error::NotExecutable(program.into())),
            (false, false) => Err(Error::NotFound {
                program: program.into(),
                here: false,
            }),
        };
    }
    let search = std::env::var_os("PATH").unwrap_or_else(|| "/bin:/usr/bin".into());
    let mut places = std::env::split_paths(&search).map(|place: PathBuf| place.join(path));
    if places.any(|place| is_executable(&place)) {
        return Ok(());
    }
    Err(Error::NotFound {
        program: program.into(),
        here: is_executable(path),
    })
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

fn command_of(job: &Job, rank: usize, id: &str, socket: &UnixStream) -> Command {
    let core = core_of(job, rank).map_or("-".into(), |core| core.to_string());
    let launcher = getpid().as_raw_nonzero().to_string();
    let mut command = Command::new(THIS_BINARY);
    command
        .arg0("yod-rank")
        .args([EXEC_RANK, &launcher, &rank.to_string(), &core]);
    command.arg(&job.program).args(&job.args);
    for (name, _) in std::env::vars_os() {
        if of_another_launcher(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    command.envs(job.env.iter().map(|(name, value)| (name, value)));
    command.envs(numbers(rank, job.ranks));
    command
        .env("PMI_FD", socket.as_raw_fd().to_string())
        .env("LINTEL_JOB", id);
    command
        .stdin(input_of(rank))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.process_group(0);
    command
}

/// A launcher around this one must not be taken for the rank's own.
fn of_another_launcher(name: &str) -> bool {
    ["PMI_", "PMIX_", "OMPI_COMM_WORLD_", "HYDI_"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Rank 0 inherits standard input. A terminal's it gets through a pipe: the
/// kernel stops a process outside the foreground group that reads a terminal.
fn input_of(rank: usize) -> Stdio {
    match rank {
        0 if io::stdin().is_terminal() => Stdio::piped(),
        0 => Stdio::inherit(),
        _ => Stdio::null(),
    }
}

/// User and system time of an ended, unreaped process and the children it waited for.
fn processor_time(pid: i32) -> Option<(Duration, Duration)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the command in parentheses and may hold anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let second = rustix::param::clock_ticks_per_second().max(1);
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / second);
    // proc(5): 14 utime, 15 stime, 16 cutime, 17 cstime.
    Some((time(ticks(14)? + ticks(16)?), time(ticks(15)? + ticks(17)?)))
}
