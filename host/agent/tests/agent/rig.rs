//! An agent, and processes with and without engines of their own.

use crate::client;
use lintel_fault::job::{Job, PATIENCE, Worker};
use lintel_fault::places::network;
use lintel_types::ProcessId;
use std::net::Ipv4Addr;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longer than it takes a client to notice that its agent has gone.
const SOON: Duration = Duration::from_millis(1);

/// A job on one node, with an agent.
pub struct Rig {
    pub job: Job,
    pub agent: Worker,
}

impl Rig {
    /// Starts the agent.
    pub fn new() -> Rig {
        let client = std::env::current_exe().expect("a test has a file");
        let job = Job::new(client.to_str().expect("a path of words"));
        let agent = start_agent(&job);
        let mut rig = Rig { job, agent };
        rig.agent.expect("ready");
        rig
    }

    /// A process whose engine the agent has.
    pub fn generic(&self, number: u32) -> Worker {
        ready(self.client(number, "generic"))
    }

    /// A process with an engine of its own.
    pub fn accelerated(&self, number: u32) -> Worker {
        ready(self.client(number, "accelerated"))
    }

    /// As the two above, not awaited.
    pub fn client(&self, number: u32, mode: &str) -> Worker {
        client_of(&self.job, number, mode)
    }

    /// Another agent of the same job and node.
    pub fn second_agent(&self) -> Worker {
        start_agent(&self.job)
    }

    /// Kills the agent, and starts another.
    pub fn replace_agent(&mut self) {
        self.agent.kill();
        self.agent = start_agent(&self.job);
        self.agent.expect("ready");
    }

    /// The nid of the node.
    pub fn nid(&self) -> u32 {
        self.process(0).nid
    }

    pub fn process(&self, number: u32) -> ProcessId {
        self.job.places().process(number)
    }

    /// Resident memory of the agent, kibibytes.
    pub fn agent_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.agent.id()));
        let status = status.expect("the agent lives");
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number
            .and_then(|n| n.parse().ok())
            .expect("Linux reports it")
    }

    /// Threads and open files of the agent.
    pub fn agent_holds(&self) -> (usize, usize) {
        let count = |what| {
            let entries = std::fs::read_dir(format!("/proc/{}/{what}", self.agent.id()));
            entries.expect("the agent lives").count()
        };
        (count("task"), count("fd"))
    }
}

/// Starts a client of a job.
pub fn client_of(job: &Job, number: u32, mode: &str) -> Worker {
    Worker::start(client_command(job, number, mode))
}

/// A client to be started.
pub fn client_command(job: &Job, number: u32, mode: &str) -> Command {
    let mut command = job.command(&client::ARGUMENTS);
    command.env(client::NUMBER, number.to_string());
    command.env("PTL_MODE", mode).env("PTL_NAL", network());
    command
}

fn start_agent(job: &Job) -> Worker {
    let mut agent = Worker::start(agent_command(job));
    agent.send(&secret_of(job));
    agent
}

/// The secret that a job's processes have in their environment.
pub fn secret_of(job: &Job) -> String {
    let command = job.command(&[]);
    let mut variables = command.get_envs();
    let secret = variables.find_map(|(name, value)| value.filter(|_| name == "LINTEL_SECRET"));
    let secret = secret.and_then(|secret| secret.to_str());
    secret.expect("it is hexadecimal digits").into()
}

/// An agent of the job's first node. It wants the secret on its standard input.
pub fn agent_command(job: &Job) -> Command {
    let address = Ipv4Addr::from(job.places().process(0).nid);
    let mut agent = Command::new(env!("CARGO_BIN_EXE_lintel-agent"));
    for (name, value) in job.command(&[]).get_envs() {
        agent.env(name, value.unwrap_or_default());
    }
    agent.env("PTL_NAL", network()).env_remove("LINTEL_SECRET");
    agent.args(["--iface", &address.to_string(), "--secret-stdin"]);
    agent
}

/// What a client says first, after what its test harness does.
pub fn first_word(client: &mut Worker) -> String {
    loop {
        let line = client.line();
        if line.starts_with("ready") || line.starts_with("refused") {
            return line;
        }
    }
}

fn ready(mut client: Worker) -> Worker {
    assert_eq!(first_word(&mut client), "ready", "{}", client.stderr());
    client
}

/// Says a line to a client, and expects an answer.
pub fn request(client: &mut Worker, words: &str, answer: &str) {
    client.send(words);
    let line = client.line();
    assert_eq!(line, answer, "to {words:?}; it said: {}", client.stderr());
}

/// Waits until something holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "in vain: {what}");
        std::thread::sleep(SOON);
    }
}
