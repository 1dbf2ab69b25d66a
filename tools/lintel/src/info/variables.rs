//! The environment variables that a user meets.

use serde::Serialize;

/// A variable, as documented.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it does, with the values it takes.
    pub meaning: &'static str,
    /// Whether this version heeds it.
    pub effective: bool,
}

/// A variable with the value that it has now.
#[derive(Clone, Debug, Serialize)]
pub struct Current {
    pub name: &'static str,
    pub default: &'static str,
    pub meaning: &'static str,
    pub effective: bool,
    pub value: Option<String>,
}

/// All of them.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "PTL_NAL",
        default: "default shm",
        meaning: "networks to use: shm; udp, ofi and sim are to come",
        effective: true,
    },
    Variable {
        name: "PTL_IFACE",
        default: "default 0",
        meaning: "interface that PTL_IFACE_DEFAULT stands for, by number",
        effective: true,
    },
    Variable {
        name: "PTL_LOG",
        default: "default warn",
        meaning: "what the library tells on standard error: off, error, warn, info, debug, trace",
        effective: true,
    },
    Variable {
        name: "PTL_MODE",
        default: "default accelerated",
        meaning: "where the engine runs: accelerated (in the process) or generic (in the node's agent)",
        effective: false,
    },
    Variable {
        name: "PTL_CONN",
        default: "default rc",
        meaning: "contexts between nodes: rc, xrc, node",
        effective: false,
    },
    Variable {
        name: "LINTEL_JOB",
        default: "given by yod",
        meaning: "name of the job, by which yod clears away what a crashed job left",
        effective: true,
    },
    Variable {
        name: "PMI_FD",
        default: "given by the launcher",
        meaning: "socket of the process management interface (PMI-1); a program without it is alone",
        effective: true,
    },
    Variable {
        name: "PMI_RANK",
        default: "given by the launcher",
        meaning: "number of this process in its job",
        effective: true,
    },
    Variable {
        name: "PMI_SIZE",
        default: "given by the launcher",
        meaning: "number of processes in this job",
        effective: true,
    },
];

/// All of them, as they are set in this process.
pub fn current() -> Vec<Current> {
    let look = |variable: &Variable| Current {
        name: variable.name,
        default: variable.default,
        meaning: variable.meaning,
        effective: variable.effective,
        value: std::env::var_os(variable.name).map(|value| value.to_string_lossy().into()),
    };
    VARIABLES.iter().map(look).collect()
}
