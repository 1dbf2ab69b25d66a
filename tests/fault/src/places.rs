//! Where the processes of a job are, by the network that the environment asks for.

use lintel_types::ProcessId;
use std::net::Ipv4Addr;
use std::process::Command;

/// Tells a worker of its job's places.
const VARIABLE: &str = "LINTEL_TEST_PLACES";
/// The node where everything is that needs no network.
const NODE: u32 = 0x7f00_0001;
/// Names of processes are small numbers, ports of everybody's begin here.
const FIRST_PORT: u32 = 20_000;

/// The processes of a job are numbered; process `n` is on node `n % nodes`.
///
/// Over shared memory alone the number is the pid. Where pids are ports, which all
/// programs of the machine share, each job has loopback addresses of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Places {
    first: u32,
    nodes: u32,
    base: u32,
}

impl Places {
    /// For the `count`th job of this process, by `PTL_NAL` and `LINTEL_TEST_NODES`.
    pub fn of_job(count: u32) -> Places {
        let nodes = std::env::var("LINTEL_TEST_NODES").ok();
        let nodes = nodes.and_then(|nodes| nodes.parse().ok()).unwrap_or(1);
        match nodes == 1 && network() == "shm" {
            true => Places {
                first: NODE,
                nodes,
                base: 0,
            },
            false => Places::apart(count, nodes),
        }
    }

    /// On `nodes` addresses that no other job has, which runs now and counts alike.
    pub fn apart(count: u32, nodes: u32) -> Places {
        let process = std::process::id() % 128;
        Places {
            first: NODE + ((64 + process) << 16) + ((count % 256) << 8),
            nodes,
            base: FIRST_PORT,
        }
    }

    /// On these nodes, with pids from `base` on.
    pub fn at(first: Ipv4Addr, nodes: u32, base: u32) -> Places {
        let first = first.into();
        Places { first, nodes, base }
    }

    /// Those that the driver names.
    ///
    /// # Panics
    /// Where it names none that make sense.
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

    /// How many nodes there are.
    pub fn nodes(self) -> u32 {
        self.nodes
    }

    /// Which of the nodes a process is on.
    pub fn node(self, number: u32) -> u32 {
        number % self.nodes
    }

    /// The process of that number.
    pub fn process(self, number: u32) -> ProcessId {
        ProcessId::new(self.first + self.node(number), self.base + number)
    }

    /// The number of that process.
    pub fn number(self, process: ProcessId) -> u32 {
        process.pid - self.base
    }

    /// Tells a worker of them, and of the node that it is on.
    pub fn tell(self, command: &mut Command, number: u32) {
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

/// What carries messages between the workers, the value of `PTL_NAL`.
pub fn network() -> String {
    let asked = std::env::var("PTL_NAL").unwrap_or_default();
    if asked.is_empty() {
        "shm".into()
    } else {
        asked
    }
}
