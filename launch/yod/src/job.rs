//! What to run, and how it went.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fmt::Write as _;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::time::Duration;

use lintel_pmi::server::StuckBarrier;
use serde::{Deserialize, Serialize};
use signal_hook::low_level::signal_name;

use crate::layout::{Map, Nodes};
use crate::plan::{Plan, Scope};

/// A program to be run as a number of ranks.
#[derive(Clone, Debug)]
pub struct Job {
    /// How many; at least 1.
    pub ranks: usize,
    /// What to run, found as a shell finds it.
    pub program: OsString,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// Variables set for every rank beside those that yod sets itself.
    pub env: Vec<(OsString, OsString)>,
    /// The nodes that it runs on; at least one rank each.
    pub nodes: Nodes,
    /// The order in which ranks are given to nodes.
    pub map: Map,
    /// The agent of generic placement; otherwise `lintel-agent`, looked for beside this
    /// binary and in `PATH`. One per node is started where the ranks' `PTL_MODE` is
    /// `generic`.
    pub agent: Option<OsString>,
    /// What starts yod on a host: a program and its arguments, to which the host's name
    /// and the command are added. Empty for ssh.
    pub launch_agent: Vec<OsString>,
    /// yod on other hosts; otherwise the path of this binary.
    pub remote_yod: Option<OsString>,
    /// Where ranks may run.
    pub bind: Bind,
    /// Whether each line of output begins with the rank that wrote it.
    pub label: bool,
    /// How long the job may take.
    pub timeout: Option<Duration>,
    /// Whether the other ranks go on when one fails.
    pub keep_going: bool,
    /// Whether to keep silent about why the job ended.
    pub quiet: bool,
}

/// Where ranks may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
pub enum Bind {
    /// Wherever the system puts them.
    #[default]
    None,
    /// Rank i on core i, modulo the cores that this process may use.
    Core,
}

impl Job {
    /// A job with everything at its default.
    pub fn new(ranks: usize, program: impl Into<OsString>) -> Job {
        Job {
            ranks,
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            nodes: Nodes::Local,
            map: Map::Block,
            agent: None,
            launch_agent: Vec::new(),
            remote_yod: None,
            bind: Bind::None,
            label: false,
            timeout: None,
            keep_going: false,
            quiet: false,
        }
    }

    /// The words before a host's name.
    pub(crate) fn launch_agent(&self) -> Vec<OsString> {
        match self.launch_agent.is_empty() {
            true => SSH.map(OsString::from).to_vec(),
            false => self.launch_agent.clone(),
        }
    }

    /// What would be run: one line of shell per process, by host where there are some.
    ///
    /// # Errors
    /// The job makes no sense.
    pub fn describe(&self) -> Result<String, Error> {
        let plan = Plan::new(self)?;
        let Nodes::Hosts(hosts) = &self.nodes else {
            return plan.describe(Scope::AllNodes);
        };
        let mut text = String::new();
        for (node, host) in hosts.iter().take(plan.layout.addresses.len()).enumerate() {
            let _ = writeln!(text, "# on {} ({})", host.name, host.address);
            text.push_str(&plan.describe(Scope::Node(node))?);
        }
        Ok(text)
    }
}

/// Never asks for a password, and gives up on a host that doesn't answer.
const SSH: [&str; 6] = [
    "ssh",
    "-T",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
];

/// How a job went.
#[derive(Debug)]
pub struct Outcome {
    /// The value of `LINTEL_JOB`.
    pub job: String,
    /// Why the job ended early; `None` when every rank ended well.
    pub cause: Option<Cause>,
    /// From before the first rank's start to after the last one's end.
    pub elapsed: Duration,
    /// One for each rank, by rank.
    pub ranks: Vec<RankOutcome>,
}

/// How a rank went.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct RankOutcome {
    /// Its process.
    pub pid: i32,
    /// How it ended.
    pub end: End,
    /// Processor time in its own code, with that of children it waited for, in
    /// steps of the kernel's clock tick (10 ms as a rule).
    pub user: Duration,
    /// Processor time in the kernel, likewise.
    pub system: Duration,
}

impl RankOutcome {
    /// Of a rank that went out of reach.
    pub(crate) const LOST: RankOutcome = RankOutcome {
        pid: 0,
        end: End::Lost,
        user: Duration::ZERO,
        system: Duration::ZERO,
    };
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// With this exit code.
    Exited(i32),
    /// By the signal of this number.
    Killed(i32),
    /// Not known: its host went out of reach, or could not start it.
    Lost,
}

/// Why a job ended early: the first thing that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A rank failed.
    Rank {
        /// Which.
        rank: usize,
        /// How.
        end: End,
    },
    /// A rank asked for it through PMI.
    Aborted {
        /// Which.
        rank: usize,
        /// The code it wants.
        code: i32,
        /// Its words, possibly none.
        message: String,
    },
    /// A rank does not speak PMI.
    Protocol {
        /// Which.
        rank: usize,
        /// How.
        error: lintel_pmi::server::Violation,
    },
    /// The agent of a node ended before its ranks.
    Agent {
        /// The node.
        address: Ipv4Addr,
        /// How.
        end: End,
    },
    /// A host could start no rank.
    HostFailed {
        /// Its name.
        host: String,
        /// The code that its own launcher would have ended with.
        code: u8,
        /// Why.
        text: String,
    },
    /// A host went out of reach.
    HostLost {
        /// Its name.
        host: String,
        /// Why.
        why: String,
    },
    /// Ranks wait in a barrier for ranks that ended.
    Barrier(StuckBarrier),
    /// The job took longer than this.
    Timeout(Duration),
    /// A signal of this number reached the launcher.
    Interrupted(i32),
    /// Nobody reads the output any more.
    OutputClosed,
}

impl Outcome {
    /// What the launcher should exit with.
    pub fn exit_code(&self) -> u8 {
        self.cause.as_ref().map_or(0, Cause::exit_code)
    }

    /// A table of the times, as text.
    pub fn timing(&self) -> String {
        let mut text = format!("yod: elapsed {:.3} s\n", self.elapsed.as_secs_f64());
        let _ = writeln!(
            text,
            "yod: {:>5} {:>9} {:>9}  ended",
            "rank", "user s", "system s"
        );
        for (rank, outcome) in self.ranks.iter().enumerate() {
            let (user, system) = (outcome.user.as_secs_f64(), outcome.system.as_secs_f64());
            let _ = writeln!(
                text,
                "yod: {rank:>5} {user:>9.2} {system:>9.2}  {}",
                outcome.end
            );
        }
        text
    }
}

impl End {
    /// The code a shell would give.
    pub fn exit_code(self) -> u8 {
        let code = match self {
            End::Exited(code) => code,
            End::Killed(signal) => 128 + signal,
            End::Lost => 1,
        };
        u8::try_from(code).unwrap_or(1)
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            End::Exited(code) => write!(f, "with exit code {code}"),
            End::Killed(signal) => write!(f, "by {}", SignalName(signal)),
            End::Lost => write!(f, "out of reach"),
        }
    }
}

impl Cause {
    /// The code that tells of this cause; 0 only where a rank has ended the job with it,
    /// as OpenSHMEM's `shmem_global_exit(0)` does.
    pub fn exit_code(&self) -> u8 {
        match self {
            Cause::Rank { end, .. } => end.exit_code(),
            Cause::Aborted { code: 0, .. } => 0,
            // Codes are what a process can exit with: one byte. Another code than 0 stays
            // a failure.
            Cause::Aborted { code, .. } => u8::try_from(code & 0xff).unwrap_or(1).max(1),
            Cause::HostFailed { code, .. } => (*code).max(1),
            Cause::Protocol { .. }
            | Cause::Agent { .. }
            | Cause::HostLost { .. }
            | Cause::Barrier(_) => 1,
            Cause::Timeout(_) => 124,
            Cause::Interrupted(signal) => End::Killed(*signal).exit_code(),
            Cause::OutputClosed => End::Killed(SIGPIPE).exit_code(),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Rank { rank, end } => write!(f, "rank {rank} ended {end}"),
            Cause::Aborted {
                rank,
                code,
                message,
            } if message.is_empty() => {
                write!(f, "rank {rank} aborted the job with code {code}")
            }
            Cause::Aborted {
                rank,
                code,
                message,
            } => {
                write!(f, "rank {rank} aborted the job with code {code}: {message}")
            }
            Cause::Protocol { rank, error } => {
                write!(f, "rank {rank} does not speak PMI: {error}")
            }
            Cause::Agent { address, end } => write!(f, "the agent of {address} ended {end}"),
            Cause::HostFailed { host, text, .. } => write!(f, "on host {host}: {text}"),
            Cause::HostLost { host, why } => write!(f, "host {host} is lost: {why}"),
            Cause::Barrier(StuckBarrier { waiting, left }) => write!(
                f,
                "{} in a barrier that {} left without entering",
                ranks(waiting, "waits", "wait"),
                ranks(left, "has", "have")
            ),
            Cause::Timeout(time) => write!(f, "the job took longer than {} s", time.as_secs_f64()),
            Cause::Interrupted(signal) => write!(f, "{} received", SignalName(*signal)),
            Cause::OutputClosed => write!(f, "nobody reads the output any more"),
        }
    }
}

/// Why no job could be run.
#[derive(Debug)]
pub enum Error {
    /// A job of no ranks was asked for.
    NoRanks,
    /// Some nodes would have no rank.
    TooManyNodes {
        /// How many nodes.
        nodes: usize,
        /// How many ranks.
        ranks: usize,
    },
    /// A host that can't be used.
    Host {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// A file of hosts that can't be used.
    HostFile {
        /// Its path.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A variable to be exported that isn't set.
    NotSet(String),
    /// The hosts have not so many slots.
    TooFewSlots {
        /// How many slots.
        slots: usize,
        /// How many ranks.
        ranks: usize,
    },
    /// The launcher's working directory can't be entered on another machine.
    Directory {
        /// Its path.
        directory: OsString,
        /// The system's answer.
        error: io::Error,
    },
    /// There are not so many loopback addresses from there on.
    NoSuchNodes {
        /// How many nodes.
        count: usize,
        /// The address of the first.
        first: Ipv4Addr,
    },
    /// `PTL_IFACE` holds no address, and the agent needs one.
    NoAddress(OsString),
    /// Generic placement needs an agent, and there is none.
    NoAgent,
    /// The agent of this node took too long until it was ready.
    AgentNotReady {
        /// The node.
        address: Ipv4Addr,
    },
    /// The agent of a node ended before the ranks were started.
    AgentEnded {
        /// The node.
        address: Ipv4Addr,
        /// How.
        end: End,
    },
    /// A signal of this number reached the launcher before the ranks were started.
    Interrupted(i32),
    /// The program is not there.
    NotFound {
        /// Its name.
        program: OsString,
        /// Whether the current directory holds a file of that name.
        here: bool,
    },
    /// The program is there and can't be executed.
    NotExecutable(OsString),
    /// The system refused.
    System {
        /// What was tried.
        what: &'static str,
        /// Its answer.
        error: io::Error,
    },
}

impl Error {
    /// What the launcher should exit with: a shell's codes.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::NotFound { .. } => 127,
            Error::NotExecutable(_) => 126,
            Error::Interrupted(signal) => End::Killed(*signal).exit_code(),
            Error::TooManyNodes { .. }
            | Error::Host { .. }
            | Error::HostFile { .. }
            | Error::NotSet(_)
            | Error::TooFewSlots { .. }
            | Error::NoSuchNodes { .. } => 2,
            Error::NoRanks
            | Error::Directory { .. }
            | Error::NoAddress(_)
            | Error::NoAgent
            | Error::AgentNotReady { .. }
            | Error::AgentEnded { .. }
            | Error::System { .. } => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoRanks => write!(f, "a job has at least one rank"),
            Error::TooManyNodes { nodes, ranks } => write!(
                f,
                "{nodes} nodes are too many for {ranks} ranks: each node runs at least one"
            ),
            Error::Host { name, why } => write!(f, "host {name} can't be used: {why}"),
            Error::HostFile { path, why } => write!(f, "{}: {why}", path.display()),
            Error::NotSet(name) => write!(f, "{name} can't be exported: it is not set"),
            Error::TooFewSlots { slots, ranks } => write!(
                f,
                "{ranks} ranks are too many for hosts with {slots} slots in all"
            ),
            Error::Directory { directory, error } => write!(
                f,
                "the directory {} can't be entered: {error}",
                directory.to_string_lossy()
            ),
            Error::NoSuchNodes { count, first } => write!(
                f,
                "there are no {count} nodes from {first} on: \
                 nodes are addresses from 127.0.0.1 to 127.255.255.254"
            ),
            Error::NoAddress(text) => {
                write!(f, "PTL_IFACE={} is no IPv4 address", text.to_string_lossy())
            }
            Error::NoAgent => write!(
                f,
                "generic placement needs lintel-agent, which is neither beside this program \
                 nor in PATH; name it by --agent"
            ),
            Error::AgentNotReady { address } => {
                write!(f, "the agent of {address} was not ready in time")
            }
            Error::AgentEnded { address, end } => {
                write!(
                    f,
                    "the agent of {address} ended {end} before the ranks started"
                )
            }
            Error::Interrupted(signal) => write!(f, "{} received", SignalName(*signal)),
            Error::NotFound {
                program,
                here: false,
            } => write!(f, "{program:?} was not found"),
            Error::NotFound {
                program,
                here: true,
            } => {
                let name = program.to_string_lossy();
                write!(
                    f,
                    "{name:?} is not in PATH; for the one in this directory write ./{name}"
                )
            }
            Error::NotExecutable(program) => write!(f, "{program:?} is not an executable file"),
            Error::System { what, error } => write!(f, "{what} failed: {error}"),
        }
    }
}

impl std::error::Error for Error {}

/// A signal's name and number.
struct SignalName(i32);

impl fmt::Display for SignalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match signal_name(self.0) {
            Some(name) => write!(f, "{name} (signal {})", self.0),
            None => write!(f, "signal {}", self.0),
        }
    }
}

const SIGPIPE: i32 = rustix::process::Signal::PIPE.as_raw();

fn ranks(numbers: &[usize], one: &str, many: &str) -> String {
    const MOST: usize = 8;
    let mut list: Vec<String> = numbers.iter().take(MOST).map(usize::to_string).collect();
    if numbers.len() > MOST {
        list.push(format!("… ({} in all)", numbers.len()));
    }
    match numbers.len() {
        1 => format!("rank {} {one}", list.join(", ")),
        _ => format!("ranks {} {many}", list.join(", ")),
    }
}

pub(crate) fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_shell() {
        let mut job = Job::new(2, "./my prog");
        job.args = vec!["it's".into(), "-x".into()];
        let text = job.describe().unwrap();
        assert_eq!(text.lines().count(), 2);
        assert!(
            text.lines()
                .all(|line| line.ends_with(r"'./my prog' 'it'\''s' -x")),
            "{text}"
        );
        assert!(text.contains("PMI_RANK=1 PMI_SIZE=2"), "{text}");
    }

    #[test]
    fn causes_read_as_sentences() {
        let stuck = StuckBarrier {
            waiting: vec![0, 2],
            left: vec![1],
        };
        assert_eq!(
            Cause::Barrier(stuck).to_string(),
            "ranks 0, 2 wait in a barrier that rank 1 has left without entering"
        );
        let killed = Cause::Rank {
            rank: 3,
            end: End::Killed(11),
        };
        assert_eq!(killed.to_string(), "rank 3 ended by SIGSEGV (signal 11)");
        assert_eq!(killed.exit_code(), 139);
        let abort = |code| Cause::Aborted {
            rank: 0,
            code,
            message: String::new(),
        };
        let codes = [0, 1, 7, 256, -1].map(|code| abort(code).exit_code());
        assert_eq!(codes, [0, 1, 7, 1, 255]);
    }
}
