//! Nodes and pids of the processes of a job, for the network that the environment names.

use lintel_types::ProcessId;
use std::net::Ipv4Addr;
use std::process::Command;

/// The environment variable in which a worker finds the places: `FIRST:NODES:BASE`.
const VARIABLE: &str = "LINTEL_TEST_PLACES";
/// The node of all processes if no network is needed: 127.0.0.1.
const NODE: u32 = 0x7f00_0001;
/// Numbers of processes are small; over IP, their ports begin here.
const FIRST_PORT: u32 = 20_000;

/// The processes of a job are numbered from 0; process `n` is on node `n % nodes`.
///
/// Over shared memory alone the number is the pid. If pids are ports, which all programs of
/// the machine share, each job has loopback addresses of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    first: u32,
    nodes: u32,
    base: u32,
}

impl Places {
    /// The places of the `count`th job of this process, by `PTL_NAL` and `LINTEL_TEST_NODES`.
    pub fn of_job(count: u32) -> Places {
        let nodes = std::env::var("LINTEL_TEST_NODES").ok();
        let nodes = nodes.and_then(|nodes| nodes.parse().ok()).unwrap_or(1);
        match nodes == 1 && network() == "shm" {
            true => Places {
                first: NODE,
                nodes,
                base: 0,
            },
            false => Places::unique(count, nodes),
        }
    }

    /// Places on `nodes` loopback addresses that no other running job uses.
    pub fn unique(count: u32, nodes: u32) -> Places {
        let process = std::process::id() % 128;
        Places {
            first: NODE + ((64 + process) << 16) + ((count % 256) << 8),
            nodes,
            base: FIRST_PORT,
        }
    }

    /// Places on the nodes from `first` on, with pids from `base` on.
    pub fn at(first: Ipv4Addr, nodes: u32, base: u32) -> Places {
        let first = first.into();
        Places { first, nodes, base }
    }

    /// The places that the driver has exported; one node without a network if there are none.
    ///
    /// # Panics
    /// If the variable isn't `FIRST:NODES:BASE`.
    pub fn from_env() -> Places {
        let Ok(text) = std::env::var(VARIABLE) else {
            return Places {
                first: NODE,
                nodes: 1,
                base: 0,
            };
        };
        let numbers: Vec<u32> = text
            .split(':')
            .map(|word| word.parse().expect("a number"))
            .collect();
        match numbers[..] {
            [first, nodes, base] => Places { first, nodes, base },
            _ => panic!("{VARIABLE}={text} isn't FIRST:NODES:BASE"),
        }
    }

    /// The number of nodes, at least 1.
    pub fn nodes(self) -> u32 {
        self.nodes
    }

    /// The node of a process, from 0 on.
    pub fn node(self, number: u32) -> u32 {
        number % self.nodes
    }

    /// The Portals name of the process of that number.
    pub fn process(self, number: u32) -> ProcessId {
        ProcessId::new(self.first + self.node(number), self.base + number)
    }

    /// The number of the process of that Portals name.
    pub fn number(self, process: ProcessId) -> u32 {
        process.pid - self.base
    }

    /// Exports the places to a worker, and the interface of its node if there is a network.
    pub fn export(self, command: &mut Command, number: u32) {
        let Places { first, nodes, base } = self;
        command.env(VARIABLE, format!("{first}:{nodes}:{base}"));
        if self.base != 0 {
            command.env(
                "PTL_IFACE",
                Ipv4Addr::from(self.process(number).nid).to_string(),
            );
        }
    }
}

/// The network between the workers: the value of `PTL_NAL`, or `shm`.
pub fn network() -> String {
    let asked = std::env::var("PTL_NAL").unwrap_or_default();
    if asked.is_empty() {
        "shm".into()
    } else {
        asked
    }
}
