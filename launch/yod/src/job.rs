//! What to run, where, and how.

use std::ffi::OsString;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::layout::{Map, Nodes};

/// A program to be run as a number of ranks.
#[derive(Clone, Debug)]
pub struct Job {
    /// The number of ranks; at least 1.
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
    /// binary and in `PATH`. One per node is started if the ranks' `PTL_MODE` is
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
    /// After how long the ranks are asked what they wait for, if the job still runs.
    pub dump_after: Option<Duration>,
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
            dump_after: None,
            keep_going: false,
            quiet: false,
        }
    }

    /// The program that reaches a host, with its arguments before the host's name.
    pub(crate) fn launch_agent(&self) -> Vec<OsString> {
        match self.launch_agent.is_empty() {
            true => SSH.map(OsString::from).to_vec(),
            false => self.launch_agent.clone(),
        }
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
