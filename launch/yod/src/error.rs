//! Why no job could be run.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

use crate::outcome::{End, SignalName};

/// Why no job could be run.
#[derive(Debug)]
pub enum Error {
    /// The job has no ranks.
    NoRanks,
    /// Some nodes would have no rank.
    TooManyNodes {
        /// The number of nodes asked for.
        nodes: usize,
        /// The number of ranks, which is smaller.
        ranks: usize,
    },
    /// A host that can't be used.
    Host {
        /// The host as the user wrote it.
        name: String,
        /// The reason, as the end of a sentence.
        why: String,
    },
    /// A file of hosts that can't be used.
    HostFile {
        /// The path as the user wrote it.
        path: PathBuf,
        /// The reason, with the line number if a line is wrong.
        why: String,
    },
    /// An allocation of a batch system that isn't understood.
    Allocation {
        /// The variable that describes it.
        name: &'static str,
        /// The reason.
        why: String,
    },
    /// A variable to be exported that isn't set.
    NotSet(String),
    /// The hosts have fewer slots than the job has ranks.
    TooFewSlots {
        /// The sum of all hosts' slots.
        slots: usize,
        /// The number of ranks, which is larger.
        ranks: usize,
    },
    /// The launcher's working directory can't be entered on another machine.
    Directory {
        /// The directory in which yod was started.
        directory: OsString,
        /// The reason that the system gave.
        error: io::Error,
    },
    /// Fewer loopback addresses follow the first one than there are nodes.
    NoSuchNodes {
        /// The number of nodes asked for.
        count: usize,
        /// The address of the first.
        first: Ipv4Addr,
    },
    /// Messages between nodes would have no network: `--nal shm` alone.
    NoNetwork {
        /// The number of nodes.
        nodes: usize,
    },
    /// `PTL_IFACE` isn't an address, and the agent needs one.
    NoAddress(OsString),
    /// Generic placement needs an agent, and none was found.
    NoAgent,
    /// The agent of this node wasn't ready in time.
    AgentNotReady {
        /// The address of the agent's node.
        address: Ipv4Addr,
    },
    /// The agent of a node ended before the ranks were started.
    AgentEnded {
        /// The address of the agent's node.
        address: Ipv4Addr,
        /// How the agent's process ended.
        end: End,
    },
    /// The agent that `--agent` names can't be run.
    Agent(Box<Error>),
    /// `--bind` is followed by a list of cores.
    BindList(String),
    /// A signal of this number reached the launcher before the ranks were started.
    Interrupted(i32),
    /// The program doesn't exist.
    NotFound {
        /// The program as the user wrote it.
        program: OsString,
        /// Whether the current directory holds a file of that name.
        here: bool,
    },
    /// The program exists and can't be executed.
    NotExecutable(OsString),
    /// A system call failed.
    System {
        /// What yod was doing, as the subject of a sentence: "starting a rank".
        what: &'static str,
        /// The reason that the system gave.
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
            Error::Agent(why) => why.exit_code(),
            Error::TooManyNodes { .. }
            | Error::Host { .. }
            | Error::HostFile { .. }
            | Error::Allocation { .. }
            | Error::NotSet(_)
            | Error::BindList(_)
            | Error::TooFewSlots { .. }
            | Error::NoNetwork { .. }
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
            Error::Allocation { name, why } => write!(
                f,
                "the batch system's {name}: {why}; name hosts by --hosts, or start on this \
                 machine by --no-allocation"
            ),
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
            Error::NoSuchNodes { count, first } => {
                write!(f, "there are no {count} nodes from {first} on: {NODES}")
            }
            Error::NoNetwork { nodes } => write!(
                f,
                "{nodes} nodes need a network between them: --nal shm has none, --nal shm,udp has"
            ),
            Error::NoAddress(text) => {
                write!(f, "PTL_IFACE={} is no IPv4 address", text.to_string_lossy())
            }
            Error::NoAgent => f.write_str(NO_AGENT),
            Error::AgentNotReady { address } => {
                write!(f, "the agent of {address} was not ready in time")
            }
            Error::AgentEnded { address, end } => {
                write!(f, "the agent of {address} ended {end} {TOO_EARLY}")
            }
            Error::Agent(why) => write!(f, "--agent names a program that can't be run: {why}"),
            Error::BindList(cores) => write!(
                f,
                "--bind takes none or core, and no list: bind ranks to these cores in turn by \
                 taskset -c {cores} yod --bind"
            ),
            Error::Interrupted(signal) => write!(f, "{} received", SignalName(*signal)),
            Error::NotFound { program, here } => not_found(f, program, *here),
            Error::NotExecutable(program) => write!(f, "{program:?} is not an executable file"),
            Error::System { what, error } => write!(f, "{what} failed: {error}"),
        }
    }
}

const TOO_EARLY: &str = "before the ranks started";
const NO_AGENT: &str = "generic placement needs lintel-agent, which is neither beside this \
                        program nor in PATH; name it by --agent";
const NODES: &str = "nodes are addresses from 127.0.0.1 to 127.255.255.254";

fn not_found(f: &mut fmt::Formatter<'_>, program: &OsStr, here: bool) -> fmt::Result {
    if !here {
        return write!(f, "{program:?} was not found");
    }
    let name = program.to_string_lossy();
    write!(
        f,
        "{name:?} is not in PATH; for the one in this directory write ./{name}"
    )
}

impl std::error::Error for Error {}
