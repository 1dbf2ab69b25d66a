//! The table of attacks.

use crate::sandbox::Outcome;
use crate::{Options, abandoned, backlog, closed, floods, foreign, kills, limits, mixes};
use crate::{replay, reuse, secret, shrunk, space};
use std::time::Duration;

/// What an attack can't do without.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Namespaces: root, or a system where users may make user namespaces.
    Namespaces,
    /// Root: processes of several users.
    Root,
}

impl Needs {
    /// The word of the printed table.
    pub fn label(self) -> &'static str {
        match self {
            Needs::Namespaces => "namespaces",
            Needs::Root => "root",
        }
    }
}

/// What carries the messages of an attack's processes, and where their engines are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Over {
    /// Processes of one node, over shared memory.
    Shm,
    /// Datagrams between two nodes.
    Udp,
    /// The agent of one node.
    Generic,
    /// The agents of two nodes.
    GenericNodes,
}

impl Over {
    /// The variables by which [`lintel_fault::job::Job`] knows.
    pub fn environment(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Over::Shm => &[],
            Over::Udp => &[("PTL_NAL", "udp"), ("LINTEL_TEST_NODES", "2")],
            Over::Generic => &[("PTL_MODE", "generic")],
            Over::GenericNodes => &[("PTL_MODE", "generic"), ("LINTEL_TEST_NODES", "2")],
        }
    }
}

/// One attack of the table.
pub struct Attack {
    /// The name on the command line.
    pub name: &'static str,
    /// What the attack does, in one line, for the printed table.
    pub about: &'static str,
    /// The networks that it makes sense over.
    pub over: Over,
    /// The privileges that it needs.
    pub needs: Needs,
    /// Part of `cargo xtask ci`.
    pub short: bool,
    /// Carries it out; an error says what was harmed.
    pub run: fn(&Options) -> Outcome,
}

impl Attack {
    /// How long it may take before it counts as hanging.
    pub fn limit(&self, options: &Options) -> Duration {
        // A kill with its checks takes a fifth of a second on two cores, and ten times
        // as much on busy ones.
        let kills = Duration::from_secs(2 * options.kills);
        LIMIT + kills + Duration::from_secs(options.seconds(0))
    }
}

const LIMIT: Duration = Duration::from_secs(180);

type Run = fn(&Options) -> Outcome;

const fn attack(name: &'static str, over: Over, run: Run, about: &'static str) -> Attack {
    Attack {
        name,
        about,
        over,
        needs: Needs::Namespaces,
        short: true,
        run,
    }
}

const fn as_root(attack: Attack) -> Attack {
    Attack {
        needs: Needs::Root,
        ..attack
    }
}

const fn by_word(attack: Attack) -> Attack {
    Attack {
        short: false,
        ..attack
    }
}

use Over::{Generic, GenericNodes, Shm, Udp};

/// Every attack, in the order in which they run.
#[rustfmt::skip]
pub static ATTACKS: &[Attack] = &[
    attack("kills-shm", Shm, kills::at_random,
        "processes are killed at random moments; every answer is checked"),
    attack("kills-udp", Udp, kills::at_random, "the same between nodes"),
    attack("kills-generic", GenericNodes, kills::at_random, "the same among clients of agents"),
    attack("kills-at-start", Shm, kills::at_start, "processes are killed within 6 ms of their start"),
    attack("reused-pid-put", Shm, reuse::put,
        "a sender dies, a stranger gets its process number, the receiver goes on"),
    attack("reused-pid-get", Shm, reuse::get, "the same, and the stranger's memory must not be written"),
    attack("reused-pid-exec", Shm, reuse::exec, "a sender becomes another program by exec"),
    attack("reused-pid-generic-put", Generic, reuse::put_through_agent,
        "as reused-pid-put, while the agent is stopped"),
    attack("reused-pid-generic-get", Generic, reuse::get_through_agent,
        "as reused-pid-get, while the agent is stopped"),
    attack("closed-put-shm", Shm, closed::put, "memory reused after PtlNIFini amid a put is sent to nobody"),
    attack("closed-put-udp", Udp, closed::put, "the same between nodes"),
    attack("closed-put-generic", Generic, closed::put, "the same for clients of an agent"),
    attack("closed-get-shm", Shm, closed::get, "memory reused after PtlNIFini amid a get isn't written"),
    attack("closed-get-udp", Udp, closed::get, "the same between nodes"),
    attack("closed-get-generic", Generic, closed::get, "the same for clients of an agent"),
    attack("closed-target-shm", Shm, closed::target,
        "memory reused after PtlNIFini amid an arriving stream isn't written"),
    attack("closed-target-udp", Udp, closed::target, "the same between nodes"),
    attack("closed-target-generic", Generic, closed::target, "the same for clients of an agent"),
    attack("shrunk-shm", Shm, shrunk::all, "files of the job in /dev/shm are truncated; nobody dies of SIGBUS"),
    attack("shrunk-generic", Generic, shrunk::all, "the same for clients of an agent"),
    attack("full-shm", Shm, space::full, "a /dev/shm of 4 to 600 KiB; nobody dies of SIGBUS"),
    attack("full-generic", Generic, space::full, "the same for clients of an agent"),
    attack("filled-shm", Shm, space::filled, "/dev/shm is filled between PtlNIInit and the first put"),
    attack("filled-generic", Generic, space::filled, "the same for clients of an agent"),
    attack("backlog-shm", Shm, backlog::sender, "20,000 puts of 60 kB to a stopped peer: memory is bounded"),
    attack("backlog-udp", Udp, backlog::sender, "the same between nodes"),
    attack("backlog-generic", Generic, backlog::sender, "the same for clients of an agent"),
    by_word(attack("backlog-agent", Generic, backlog::agent,
        "a client closes amid 60 MB puts to a stopped peer, four times: the agent's memory is bounded")),
    attack("replay-udp", Udp, replay::new_life, "datagrams to a dead server are sent to its successor"),
    attack("floods-shm", Shm, floods::all, "300,000 messages that nothing takes"),
    attack("floods-generic", Generic, floods::all, "the same for clients of an agent"),
    attack("limit-threads", Udp, limits::threads, "no second thread: failing PtlNIInit leaks nothing"),
    attack("limit-descriptors", Shm, limits::descriptors, "ulimit -n 4 to 12"),
    attack("limit-descriptors-generic", Generic, limits::descriptors, "the same for clients of an agent"),
    attack("limit-file-size", Shm, limits::file_size, "ulimit -f 0 to 32 MiB"),
    attack("limit-memory", Shm, limits::memory, "ulimit -v 16 to 512 MiB"),
    attack("limit-umask", Shm, limits::umask, "umask 0777 and 0277"),
    attack("no-proc", Shm, limits::no_proc, "neither /proc nor /sys"),
    attack("calls-shm", Shm, mixes::calls, "threads call everything on shared, freed, foreign handles"),
    attack("calls-generic", Generic, mixes::calls, "the same for clients of an agent"),
    attack("cycles-shm", Shm, mixes::cycles, "threads call while another opens and closes the interface"),
    attack("cycles-generic", Generic, mixes::cycles, "the same for clients of an agent"),
    attack("threads-shm", Shm, mixes::threads, "threads share an interface, a queue and a counter"),
    attack("launcher-killed", Shm, abandoned::launcher, "kill -9 of yod: its ranks end, nothing is left"),
    attack("agent-killed", Generic, abandoned::agent, "kill -9 of the agent: its clients get an error"),
    attack("secret-generic", Generic, secret::of_generic_ranks, "ranks of a generic job don't have its secret"),
    attack("secret-visible", Shm, secret::on_command_lines, "no command line shows a job's secret"),
    as_root(attack("planted-names", Shm, foreign::planted,
        "links, FIFOs, files and folders of another user at the job's names")),
    as_root(attack("planted-names-agent", Shm, foreign::planted_for_agent, "the same at the agent's names")),
    as_root(attack("planted-lock", Udp, foreign::locked, "another user holds the lock of the paths file")),
    as_root(attack("squatter", Shm, foreign::squatter, "another user takes a name of the job, and truncates")),
];
