//! Jobs of one test each, and the workers in them.

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
/// Any secret will do among the processes of a test.
const SECRET: &str = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7";
/// The agent of generic placement, in the folder of the worker.
const AGENT: &str = "lintel-agent";
/// Part of the names of files that an agent keeps for itself.
const AGENT_MARK: &str = ".agent";
/// Milliseconds after which a silent peer is dead, unless the environment says otherwise.
const PEER_TIMEOUT: &str = "4000";

/// Processes that see each other. Dropping it removes what a failed test leaves behind.
pub struct Job {
    name: String,
    count: u32,
    network: Option<&'static str>,
    program: PathBuf,
    places: Places,
    /// By node, the command that starts a worker, before its own words.
    node_commands: BTreeMap<u32, Vec<String>>,
    user: Option<u32>,
    /// By node; started before the first worker if the environment asks for generic
    /// placement.
    agents: OnceLock<Vec<Worker>>,
}

impl Job {
    /// A job with a name of its own; `program` is the worker.
    pub fn new(program: &str) -> Job {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Job {
            name: format!("fault{}x{count}", std::process::id()),
            count,
            network: None,
            program: program.into(),
            places: Places::of_job(count),
            node_commands: BTreeMap::new(),
            user: None,
            agents: OnceLock::new(),
        }
    }

    /// As [`new`](Self::new), over that network between two nodes, whatever the environment
    /// says.
    pub fn over(program: &str, network: &'static str) -> Job {
        let mut job = Job::new(program);
        job.places = Places::unique(job.count, 2);
        job.network = Some(network);
        job
    }

    /// Changes the worker to another program, with an agent in the same folder.
    pub fn set_program(&mut self, program: &Path) {
        self.program = program.to_owned();
    }

    /// Changes the places of its processes.
    pub fn set_places(&mut self, places: Places) {
        self.places = places;
    }

    /// Starts the workers of a node by this command from now on, such as
    /// `ip netns exec NAME`.
    pub fn set_node_command(&mut self, node: u32, command: Vec<String>) {
        self.node_commands.insert(node, command);
    }

    /// Starts processes as another user from now on; only the superuser may.
    pub fn set_user(&mut self, user: u32) {
        self.user = Some(user);
    }

    /// The name of the job, the value of `LINTEL_JOB`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The places of its processes.
    pub fn places(&self) -> Places {
        self.places
    }

    /// The command of a worker, for [`Worker::start`]. The second word is the number of the
    /// worker, or of one on the same node.
    pub fn command(&self, words: &[&str]) -> Command {
        self.agents.get_or_init(|| self.start_agents());
        let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let mut command = self.command_on(self.places.node(number), &self.program);
        command.args(words);
        self.places.export(&mut command, number);
        command
    }

    /// The command of a program of this job on a node.
    fn command_on(&self, node: u32, program: &Path) -> Command {
        let mut command = match self.node_commands.get(&node) {
            Some(node_commands) => {
                let mut command = Command::new(&node_commands[0]);
                command.args(&node_commands[1..]).arg(program);
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

    /// The process identifier of a node's agent, in generic placement.
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

    /// Starts a worker; the words are those of [`command`](Self::command).
    pub fn start(&self, words: &[&str]) -> Worker {
        Worker::start(self.command(words))
    }

    /// Names of the files that its workers have in `/dev/shm`.
    pub fn shared_memory_names(&self) -> Vec<String> {
        let mut names = self.all_names();
        names.retain(|name| !name.contains(AGENT_MARK));
        names
    }

    fn all_names(&self) -> Vec<String> {
        let prefix = format!("lintel-{}-", self.name);
        let entries = std::fs::read_dir(SHARED_MEMORY).expect("there is /dev/shm");
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(&prefix))
            .collect()
    }

    /// The file in `/dev/shm` by which a process is found.
    pub fn segment(&self, number: u32) -> PathBuf {
        let ProcessId { nid, pid } = self.places.process(number);
        PathBuf::from(SHARED_MEMORY).join(format!("lintel-{}-{nid:x}-{pid}", self.name))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for agent in self.agents.take().into_iter().flatten() {
            agent.terminate();
        }
        for name in self.all_names() {
            let _ = std::fs::remove_file(PathBuf::from(SHARED_MEMORY).join(name));
        }
    }
}
