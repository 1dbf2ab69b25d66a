//! The environment variables that a user meets.

use lintel_cci_endpoint::VARIABLES as OF_CCI;
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
const FROM_LAUNCHERS: [Setting; 13] = [
    of_launcher(
        "PMI_FD",
        "a descriptor",
        "socket of the launcher's process management interface (PMI-1 or PMI-2)",
    ),
    of_launcher("PMI_RANK", "a number", "number of this process in its job"),
    of_launcher("PMI_SIZE", "a number", "processes in this job"),
    of_launcher(
        "PMI_PORT",
        "host:port",
        "where the launcher listens, if there is no PMI_FD",
    ),
    of_launcher(
        "PMI_ID",
        "a number",
        "what this process calls itself there; the launcher answers with rank and size",
    ),
    of_launcher("PMI_JOBID", "a text", "name of the job in PMI-2"),
    of_launcher(
        "PMIX_NAMESPACE",
        "a text",
        "name of the job in PMIx, which is used if this and PMIX_RANK are set",
    ),
    of_launcher(
        "PMIX_RANK",
        "a number",
        "number of this process in its job in PMIx",
    ),
    of_launcher(
        "MPI_LOCALRANKID",
        "a number",
        "number of this process among those of its node, if the launcher doesn't answer that",
    ),
    of_launcher(
        "MPI_LOCALNRANKS",
        "a number",
        "processes of this job on its node",
    ),
    Setting {
        name: "LINTEL_PMI",
        default: "what the environment says",
        values: "pmi1, pmi2, pmix, none",
        meaning: "the protocol by which ranks of libportals_job, lintel and Rust programs \
                  exchange addresses",
    },
    of_launcher("LINTEL_NODES", "a number", "nodes of this job"),
    of_launcher(
        "LINTEL_NODE_RANK",
        "a number",
        "number of this process's node in its job",
    ),
];

const fn of_launcher(name: &'static str, values: &'static str, meaning: &'static str) -> Setting {
    Setting {
        name,
        default: "none",
        values,
        meaning,
    }
}

/// All of them, as they are set in this process: those that the libraries read, then
/// those of launchers.
pub fn current() -> Vec<Current> {
    let libraries = SETTINGS.iter().chain(&OF_COLLECTIVES).chain(&OF_CCI);
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

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = include_str!("../../../../README.md");

    #[test]
    fn the_table_of_the_readme_has_each_variable_and_no_other() {
        let (_, table) = README
            .split_once("<!-- environment:begin -->")
            .expect("it begins");
        let (table, _) = table
            .split_once("<!-- environment:end -->")
            .expect("it ends");
        let rows = table.lines().filter_map(|row| row.strip_prefix("| `"));
        let cells = rows.filter_map(|row| row.split(" |").next());
        let mut listed: Vec<&str> = cells
            .flat_map(|cell| cell.split(", "))
            .map(|name| name.trim_matches('`'))
            .collect();
        let mut known: Vec<&str> = current().iter().map(|variable| variable.name).collect();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }
}
