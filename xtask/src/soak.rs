//! Random operations among processes that are killed and come back.

use std::process::Command;
use std::time::Duration;

use crate::networks::Setting;
use crate::report::Outcome;
use crate::shell::{self, Arguments, Tree};

/// The network of a run for which none is named.
const NAL: &str = "udp";
const FAULT: &str = "loss=0.01,seed=7";

/// Beyond its own time: starting, ending, and what a stuck operation may take.
const MORE: Duration = Duration::from_secs(180);

/// How long, and over what.
pub struct Soak {
    seconds: u64,
    seed: Option<String>,
    over: Over,
}

/// The interface, and its network.
enum Over {
    Portals(Setting),
    /// `--nal` and `--fault`, if they were given; otherwise all transports.
    Cci(Vec<String>),
}

impl Soak {
    /// The form for CI: two kills in a minute.
    pub fn short() -> Soak {
        Soak {
            seconds: 60,
            seed: None,
            over: Over::Portals(Setting::over(NAL, Some(FAULT))),
        }
    }

    /// As [`short`](Self::short), of CCI.
    pub fn short_of_cci() -> Soak {
        Soak {
            over: Over::Cci(Vec::new()),
            ..Soak::short()
        }
    }

    /// Reads `--api`, `--minutes`, `--seconds`, `--seed`, and what a setting has.
    pub fn read(words: &[&str]) -> Result<Soak, String> {
        let words = Arguments::new(words)?.only(&[
            "--api",
            "--minutes",
            "--seconds",
            "--seed",
            "--nal",
            "--fault",
            "--mode",
        ])?;
        let number = |name: &str| match words.get(name).map(str::parse::<u64>) {
            Some(Ok(number)) => Ok(Some(number)),
            Some(Err(_)) => Err(format!("{name} wants a number")),
            None => Ok(None),
        };
        let seconds = number("--seconds")?.or(number("--minutes")?.map(|minutes| minutes * 60));
        let short = Soak::short();
        let over = match words.get("--api") {
            Some("cci") => Over::Cci(given(&words, &["--nal", "--fault"])),
            Some("portals4") | None => Setting::read(&words).map_or(short.over, Over::Portals),
            Some(other) => return Err(format!("--api takes portals4 or cci, not {other}")),
        };
        Ok(Soak {
            seconds: seconds.unwrap_or(short.seconds),
            seed: words.get("--seed").map(String::from),
            over,
        })
    }

    /// One kill a minute, and at least two.
    fn kills(&self) -> u64 {
        (self.seconds / 60).max(2)
    }
}

/// Runs the soak and reports the seed that repeats it.
pub fn run(tree: &Tree, soak: &Soak) -> Outcome {
    let mut program = match &soak.over {
        Over::Portals(setting) => {
            let mut program = program(tree, "fault-soak")?;
            program.args(["--nodes", if setting.has_nodes() { "2" } else { "1" }]);
            setting.apply_to(&mut program);
            println!("   {setting}");
            program
        }
        Over::Cci(words) => {
            let mut program = program(tree, "fault-cci-soak")?;
            program.args(words);
            println!("   CCI {}", words.join(" "));
            program
        }
    };
    let (seconds, kills) = (soak.seconds.to_string(), soak.kills().to_string());
    program.args(["--seconds", &seconds, "--kills", &kills]);
    if let Some(seed) = &soak.seed {
        program.args(["--seed", seed]);
    }
    println!("   {} s, {kills} kills", soak.seconds);
    let limit = Duration::from_secs(soak.seconds) + MORE;
    shell::run_quoting(&mut program, limit).map_err(|wrong| {
        let seconds = soak.seconds;
        format!(
            "{wrong}\n        again: cargo xtask soak --seconds {seconds} --seed N, N as printed above"
        )
    })
}

/// Those of the options that were given, with their values.
fn given(words: &Arguments, options: &[&str]) -> Vec<String> {
    let value = |name: &&str| Some([(*name).to_owned(), words.get(name)?.to_owned()]);
    options.iter().filter_map(value).flatten().collect()
}

/// How programs of the crate that breaks things are built.
const PROFILE: &str = "fault";

/// A program of the crate that breaks things, built afresh.
pub fn program(tree: &Tree, name: &str) -> Result<Command, String> {
    let build = ["build", "--quiet", "--profile", PROFILE];
    shell::run(tree.cargo().args(build).args(["--package", "lintel-fault"]))?;
    Ok(Command::new(tree.target.join(PROFILE).join(name)))
}
