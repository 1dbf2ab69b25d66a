//! The environment variables that a user meets.

use lintel_runtime::{SETTINGS, Setting};
use serde::Serialize;

/// A variable with the value that it has now.
#[derive(Clone, Debug, Serialize)]
pub struct Current {
    pub name: &'static str,
    pub default: &'static str,
    pub values: &'static str,
    pub meaning: &'static str,
    pub effective: bool,
    pub value: Option<String>,
}

/// Variables that are documented but not read by this version of the library.
const TO_COME: [Setting; 1] = [Setting {
    name: "PTL_CONN",
    default: "rc",
    values: "rc, xrc, node",
    meaning: "contexts between nodes",
}];

/// Variables that a launcher sets.
const FROM_LAUNCHERS: [Setting; 3] = [
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
];

/// All of them, as they are set in this process: those that the library reads, those
/// of launchers, those to come.
pub fn current() -> Vec<Current> {
    let read = SETTINGS.iter().chain(&FROM_LAUNCHERS);
    let effective = read.map(|setting| look(setting, true));
    let to_come = TO_COME.iter().map(|setting| look(setting, false));
    effective.chain(to_come).collect()
}

fn look(setting: &Setting, effective: bool) -> Current {
    Current {
        name: setting.name,
        default: setting.default,
        values: setting.values,
        meaning: setting.meaning,
        // One value is no choice.
        effective: effective && setting.name != "PTL_MODE",
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
