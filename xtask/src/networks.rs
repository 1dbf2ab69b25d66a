//! The library's behaviour over a network, with faults, in a placement: the same
//! tests, which learn the setting from their environment.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::report::{Outcome, Report};
use crate::shell::{self, Arguments, Tree};
use crate::{c_tests, demo, dist, prerequisites, test_run};

/// The crates whose tests call the library.
const PACKAGES: [&str; 4] = ["portals", "portals4-c", "lintel-runtime", "lintel-fault"];

/// Longer than the tests take on two slow cores where a part of all is sent twice.
const LIMIT: Duration = Duration::from_secs(900);

/// Tests in a module, and C programs, of this prefix and a setting's word make
/// sense in such a setting alone.
const ONLY: &str = "only_";

/// What carries the messages, how well, and where the engines are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// The value of `PTL_NAL`, if the setting has one.
    nal: Option<String>,
    /// The value of `LINTEL_FAULT`, if the setting has one.
    fault: Option<String>,
    /// The value of `PTL_MODE`, if the setting has one.
    mode: Option<String>,
}

/// What CI goes through beside the defaults.
pub fn matrix() -> [Setting; 4] {
    let generic = Setting {
        mode: Some("generic".into()),
        ..Setting::default()
    };
    [
        Setting::over("udp", None),
        Setting::over("udp", Some(FAULTS)),
        Setting::over("ofi", None),
        generic,
    ]
}

/// What a bad network does to datagrams.
const FAULTS: &str = "loss=0.01,duplicate=0.01,reorder=0.01,seed=7";

/// Installs anew, then runs all tests of the library's behaviour.
pub fn install_and_run(tree: &Tree, setting: &Setting, report: &mut Report) {
    if report.check("dist", || dist::run(tree, &tree.dist())) {
        run(tree, setting, report);
    }
}

/// All tests of the library's behaviour: the Rust tests, the C programs,
/// a short measurement, the last two on `target/dist`.
pub fn run(tree: &Tree, setting: &Setting, report: &mut Report) {
    let mut others = BTreeSet::new();
    let able = report.check(&format!("{setting}: which tests apply"), || {
        setting.check_prerequisites()?;
        others = tests(tree)?;
        others.retain(|name| !setting.suits(name));
        Ok(())
    });
    if !able {
        return;
    }
    for name in &others {
        report.not_applicable(&format!("{setting}: {name}"));
    }
    report.check(&format!("{setting}: Rust tests"), || {
        rust_tests(tree, setting, &others)
    });
    c_tests::run_in(tree, setting, None, report);
    report.check(&format!("{setting}: lintel perf"), || {
        demo::smoke_in(tree, setting)
    });
}

/// The names of all tests.
fn tests(tree: &Tree) -> Result<BTreeSet<String>, String> {
    let listing = shell::output(cargo_test(tree).args(["--quiet", "--", "--list"]))?;
    let names = listing
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    Ok(names.map(String::from).collect())
}

fn rust_tests(tree: &Tree, setting: &Setting, others: &BTreeSet<String>) -> Outcome {
    let mut cargo = cargo_test(tree);
    cargo.args(["--quiet", "--no-fail-fast", "--"]);
    for name in others {
        cargo.args(["--skip", name]);
    }
    setting.apply_to(&mut cargo);
    let agent = match setting.is("generic") {
        true => Some(Agent::start(tree, &mut cargo, setting)?),
        false => None,
    };
    let done = test_run::run(&mut cargo, Some(LIMIT));
    drop(agent);
    done
}

/// The agent of the processes that tests are; jobs of several have their own.
struct Agent(Child);

impl Agent {
    /// Starts an agent, and sets the environment by which the command finds it.
    fn start(tree: &Tree, tests: &mut Command, setting: &Setting) -> Result<Agent, String> {
        shell::run(tree.cargo().args(["build", "--quiet", "--package", AGENT]))?;
        let mut command = Command::new(tree.target.join("debug").join(AGENT));
        command
            .args(["--iface", "127.0.0.1"])
            .stdout(Stdio::piped());
        setting.apply_to(&mut command);
        let job = format!("xtask{}", std::process::id());
        for command in [&mut command, tests] {
            command.env("LINTEL_JOB", &job).env("LINTEL_SECRET", SECRET);
        }
        let failed = |why: std::io::Error| format!("{AGENT}: {why}");
        let mut agent = Agent(command.spawn().map_err(failed)?);
        let mut said = String::new();
        if let Some(output) = agent.0.stdout.take() {
            BufReader::new(output)
                .read_line(&mut said)
                .map_err(failed)?;
        }
        match said.trim() {
            "ready" => Ok(agent),
            other => Err(format!("{AGENT} says {other:?} instead of being ready")),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        shell::end(&mut self.0);
    }
}

const AGENT: &str = "lintel-agent";
/// Any will do among processes that are started here.
const SECRET: &str = "7a57e57a57e57a57e57a57e57a57e57a57e57a57e57a57e57a57e57a57e57a57";

fn cargo_test(tree: &Tree) -> Command {
    let mut cargo = tree.cargo();
    cargo.arg("test");
    for package in PACKAGES {
        cargo.args(["--package", package]);
    }
    cargo
}

impl Setting {
    /// Over a network, with faults or without.
    pub fn over(nal: &str, fault: Option<&str>) -> Setting {
        Setting {
            nal: Some(nal.into()),
            fault: fault.map(String::from),
            mode: None,
        }
    }

    /// Reads `--nal`, `--fault` and `--mode`; `None` where there is none of them.
    pub fn read(words: &Arguments) -> Option<Setting> {
        let word = |name| words.get(name).map(String::from);
        let setting = Setting {
            nal: word("--nal"),
            fault: word("--fault"),
            mode: word("--mode"),
        };
        (setting != Setting::default()).then_some(setting)
    }

    fn check_prerequisites(&self) -> Outcome {
        match self.is("ofi") {
            true => prerequisites::programs(&prerequisites::LIBFABRIC),
            false => Ok(()),
        }
    }

    /// Sets a command's environment.
    pub fn apply_to(&self, command: &mut Command) {
        let variables = [
            ("PTL_NAL", &self.nal),
            ("LINTEL_FAULT", &self.fault),
            ("PTL_MODE", &self.mode),
        ];
        for (name, value) in variables {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        if self.has_nodes() {
            command.env("LINTEL_TEST_NODES", "2");
        }
        // Of a few minutes for all settings; a person may want more.
        if std::env::var_os(ROUNDS).is_none() {
            command.env(ROUNDS, "6");
        }
        // The one that needs no hardware, unless a person says otherwise.
        if self.is("ofi") && std::env::var_os("PTL_OFI_PROVIDER").is_none() {
            command.env("PTL_OFI_PROVIDER", "tcp");
        }
    }

    /// Whether jobs of several processes are spread over virtual nodes.
    pub fn has_nodes(&self) -> bool {
        *self != Setting::default() && !(self.is("shm") && self.nal.is_some())
    }

    /// Whether a test of that name, or a program, makes sense here.
    pub fn suits(&self, name: &str) -> bool {
        let parts = name.split("::").filter_map(|part| part.strip_prefix(ONLY));
        let mut wanted = parts.map(|part| part.split('_').next().unwrap_or(part));
        wanted.all(|word| self.is(word))
    }

    fn is(&self, word: &str) -> bool {
        let nal = self.nal.as_deref().unwrap_or("shm");
        let mode = self.mode.as_deref().unwrap_or("accelerated");
        nal.split(',').any(|n| n == word) || mode == word
    }
}

/// How often the tests that kill processes do so.
const ROUNDS: &str = "LINTEL_TEST_ROUNDS";

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.mode, &self.nal, &self.fault];
        let parts: Vec<&str> = parts.iter().filter_map(|part| part.as_deref()).collect();
        match parts.as_slice() {
            [] => f.write_str("defaults"),
            parts => f.write_str(&parts.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Option<Setting> {
        Setting::read(&Arguments::new(words).expect("they are understood"))
    }

    #[test]
    fn a_setting_is_read_and_named() {
        let words = ["--nal", "udp", "--fault=loss=0.01", "--mode", "generic"];
        let setting = read(&words).expect("there is one");
        assert_eq!(setting.to_string(), "generic, udp, loss=0.01");
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn a_test_says_by_its_name_where_it_makes_sense() {
        let (udp, shm) = (Setting::over("udp", None), Setting::default());
        let both = Setting::over("shm,udp", None);
        for (name, suited) in [
            ("puts_arrive", [&udp, &shm, &both].as_slice()),
            ("only_shm::a_lane_is_garbled", &[&shm, &both]),
            ("kills::only_udp::it_is_heard", &[&udp, &both]),
            ("only_udp_endpoints", &[&udp, &both]),
            ("only_generic::only_udp::agents_meet", &[]),
        ] {
            for setting in [&udp, &shm, &both] {
                let expected = suited.contains(&setting);
                assert_eq!(setting.suits(name), expected, "{name} in {setting}");
            }
        }
    }
}
