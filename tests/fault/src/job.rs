//! A job of its own for each test, and the workers in it.

pub use crate::worker::{PATIENCE, Worker};

use crate::places::Places;
use lintel_types::ProcessId;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const SHARED_MEMORY: &str = "/dev/shm";
/// Any secret will do among processes that are started here.
const SECRET: &str = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7";
/// Has the engines of generic placement; lies beside the worker.
const AGENT: &str = "lintel-agent";
/// In the name of what is the agent's own.
const AGENTS_OWN: &str = ".agent";
/// Milliseconds after which a peer that is silent is dead, where the test doesn't say.
const PEER_TIMEOUT: &str = "4000";

/// Processes that see each other. What a failing test leaves is removed.
pub struct Job {
    name: String,
    count: u32,
    network: Option<&'static str>,
    program: PathBuf,
    places: Places,
    /// By node, the words before a worker's own.
    within: BTreeMap<u32, Vec<String>>,
    user: Option<u32>,
    /// By node, where the environment asks for generic placement; started before the
    /// first worker.
    agents: OnceLock<Vec<Worker>>,
}

impl Job {
    /// A job that no other has the name of; `program` is the worker.
    pub fn new(program: &str) -> Job {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Job {
            name: format!("fault{}x{count}", std::process::id()),
            count,
            network: None,
            program: program.into(),
            places: Places::of_job(count),
            within: BTreeMap::new(),
            user: None,
            agents: OnceLock::new(),
        }
    }

    /// As [`new`](Self::new), over that network between two nodes, whatever the
    /// environment asks for.
    pub fn over(program: &str, network: &'static str) -> Job {
        let mut job = Job::new(program);
        job.places = Places::apart(job.count, 2);
        job.network = Some(network);
        job
    }

    /// From now on another program is the worker, and an agent lies beside it.
    pub fn run(&mut self, program: &Path) {
        self.program = program.to_owned();
    }

    /// From now on its processes are there.
    pub fn place(&mut self, places: Places) {
        self.places = places;
    }

    /// From now on workers on that node are started by this command, as
    /// `ip netns exec NAME`.
    pub fn enter(&mut self, node: u32, command: Vec<String>) {
        self.within.insert(node, command);
    }

    /// From now on its processes are another user's; only the superuser may say so.
    pub fn belong_to(&mut self, user: u32) {
        self.user = Some(user);
    }

    /// Its name, the value of `LINTEL_JOB`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its processes are.
    pub fn places(&self) -> Places {
        self.places
    }

    /// A worker, to be started with [`Worker::start`]. The second word is its number,
    /// or that of one beside which it is.
    pub fn command(&self, words: &[&str]) -> Command {
        self.agents.get_or_init(|| self.start_agents());
        let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let mut command = self.command_on(self.places.node(number), &self.program);
        command.args(words);
        self.places.tell(&mut command, number);
        command
    }

    /// A program of this job, on a node.
    fn command_on(&self, node: u32, program: &Path) -> Command {
        let mut command = match self.within.get(&node) {
            Some(within) => {
                let mut command = Command::new(&within[0]);
                command.args(&within[1..]).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.env("LINTEL_JOB", &self.name);
        command.env("LINTEL_SECRET", SECRET);
        if std::env::var_os("PTL_PEER_TIMEOUT").is_none() {
            command.env("PTL_PEER_TIMEOUT", PEER_TIMEOUT);
        }
        if let Some(network) = self.network {
            command.env("PTL_NAL", network);
        }
        if let Some(user) = self.user {
            command.uid(user).gid(user).current_dir("/");
        }
        command
    }

    /// The system's number of the agent of a node, in generic placement.
    pub fn agent(&self, node: u32) -> Option<u32> {
        let agents = self.agents.get_or_init(|| self.start_agents());
        agents.get(node as usize).map(Worker::id)
    }

    fn start_agents(&self) -> Vec<Worker> {
        if std::env::var_os("PTL_MODE").is_none_or(|mode| mode != "generic") {
            return Vec::new();
        }
        let program = self.program.with_file_name(AGENT);
        let start = |node| {
            let address = Ipv4Addr::from(self.places.process(node).nid).to_string();
            let mut command = self.command_on(node, &program);
            command.args(["--iface", &address]);
            let mut agent = Worker::start(command);
            agent.expect("ready");
            agent
        };
        (0..self.places.nodes()).map(start).collect()
    }

    /// Starts a worker.
    pub fn start(&self, words: &[&str]) -> Worker {
        Worker::start(self.command(words))
    }

    /// Names of what its workers have in shared memory.
    pub fn leftovers(&self) -> Vec<String> {
        let mut names = self.names();
        names.retain(|name| !name.contains(AGENTS_OWN));
        names
    }

    fn names(&self) -> Vec<String> {
        let prefix = format!("lintel-{}-", self.name);
        let entries = std::fs::read_dir(SHARED_MEMORY).expect("there is /dev/shm");
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(&prefix))
            .collect()
    }

    /// The file of a process.
    pub fn segment(&self, number: u32) -> PathBuf {
        let ProcessId { nid, pid } = self.places.process(number);
        PathBuf::from(SHARED_MEMORY).join(format!("lintel-{}-{nid:x}-{pid}", self.name))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for agent in self.agents.take().into_iter().flatten() {
            agent.end();
        }
        for name in self.names() {
            let _ = std::fs::remove_file(PathBuf::from(SHARED_MEMORY).join(name));
        }
    }
}
