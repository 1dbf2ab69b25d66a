//! The environment variables that a user meets.

use lintel_runtime::{LAUNCHERS_SETTINGS, SETTINGS, Setting};
use serde::Serialize;

/// A variable with the value that it has now.
#[derive(Clone, Debug, Serialize)]
pub struct Current {
    /// Its name.
    pub name: &'static str,
    /// What holds where it isn't set, in words.
    pub default: &'static str,
    /// What it takes, as the end of a sentence.
    pub values: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Its value in this process; a secret isn't shown.
    pub value: Option<String>,
}

/// Variables that libptlcoll reads.
const OF_COLLECTIVES: [Setting; 3] = [
    Setting {
        name: "PTLCOLL_PROGRESS",
        default: "none",
        values: "offloaded, host",
        meaning: "what performs the steps of libptlcoll's operations: the Portals library, or \
                  the calling thread; unset, blocking operations share memory if all ranks run \
                  on one node, and the library performs the others",
    },
    Setting {
        name: "PTLCOLL_CREATE_TIMEOUT",
        default: "600000",
        values: "1 to 4294967295",
        meaning: "milliseconds that ptlcoll_group_create waits for a process that exists, but \
                  doesn't create the group",
    },
    Setting {
        name: "PTLCOLL_EAGER",
        default: "measured",
        values: "0 to 18446744073709551615",
        meaning: "bytes of a rank up to which long operations of two ranks, gathers and scatters are \
                  copied through shared memory; longer ones, from 8 KiB on, are copied once, straight \
                  from the memory of who gives them",
    },
];

/// Variables that a launcher sets.
const FROM_LAUNCHERS: [Setting; 6] = [
    Setting {
        name: "PMI_FD",
        default: "none",
        values: "a descriptor",
        meaning: "socket of the process management interface (PMI-1)",
    },
    Setting {
        name: "PMI_RANK",
        default: "none",
        values: "a number",
        meaning: "number of this process in its job",
    },
    Setting {
        name: "PMI_SIZE",
        default: "none",
        values: "a number",
        meaning: "processes in this job",
    },
    Setting {
        name: "LINTEL_PMI",
        default: "what the environment says",
        values: "pmi1, pmi2, pmix, none",
        meaning: "the protocol by which ranks of libportals_job, lintel and Rust programs \
                  exchange addresses",
    },
    Setting {
        name: "LINTEL_NODES",
        default: "none",
        values: "a number",
        meaning: "nodes of this job",
    },
    Setting {
        name: "LINTEL_NODE_RANK",
        default: "none",
        values: "a number",
        meaning: "number of this process's node in its job",
    },
];

/// All of them, as they are set in this process: those that the libraries read, then
/// those of launchers.
pub fn current() -> Vec<Current> {
    let libraries = SETTINGS.iter().chain(&OF_COLLECTIVES);
    let launchers = FROM_LAUNCHERS.iter().chain(&LAUNCHERS_SETTINGS);
    libraries.chain(launchers).map(look).collect()
}

fn look(setting: &Setting) -> Current {
    Current {
        name: setting.name,
        default: setting.default,
        values: setting.values,
        meaning: setting.meaning,
        value: value(setting.name),
    }
}

/// A secret is only said to be there.
fn value(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    match name {
        "LINTEL_SECRET" => Some("(not shown)".into()),
        _ => Some(value.to_string_lossy().into()),
    }
}
