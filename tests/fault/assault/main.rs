//! `fault-assault`: attacks on an installed library, each in namespaces of its own.
//!
//! ```text
//!   attack      the table: name, what it does, what it needs, over what
//!   sandbox     namespaces, a /dev/shm of its own, copies of programs and libraries
//!   peer        a process that executes commands (tests/c/assault/peer.c)
//!   kills, reuse, foreign, …     the attacks
//! ```
//!
//! `fault-assault list` prints name, needs, whether it is part of CI, and a description,
//! separated by tabs. `fault-assault able NAME` ends with 77 and the reason where it can't run
//! here. `fault-assault run NAME --prefix DIR --programs DIR` runs one; it
//! ends with 0 where nothing could be harmed.
//! `cargo xtask assault` builds what it needs and calls it.
#![forbid(unsafe_code)]

mod abandoned;
mod attack;
mod backlog;
mod closed;
mod floods;
mod foreign;
mod kills;
mod limits;
mod mixes;
mod peer;
mod replay;
mod reuse;
mod sandbox;
mod secret;
mod shrunk;
mod space;

use attack::ATTACKS;
use lintel_fault::random::Random;
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit code for what can't run here.
const NOT_APPLICABLE: u8 = 77;

/// What the command line says.
pub struct Options {
    /// Where the library is installed.
    prefix: PathBuf,
    /// Where the compiled programs of `tests/c/assault` are.
    programs: PathBuf,
    /// How many processes to kill.
    kills: u64,
    /// How long attacks go on that have no end of their own.
    minutes: Option<u64>,
    seed: Option<u64>,
    /// As little as still shows the harm: for CI.
    short: bool,
}

impl Options {
    fn read(words: &[String]) -> Result<Options, String> {
        let mut options = Options {
            prefix: PathBuf::new(),
            programs: PathBuf::new(),
            kills: KILLS,
            minutes: None,
            seed: None,
            short: false,
        };
        for pair in words.chunks(2) {
            let [name, value] = pair else {
                return Err(format!("{} wants a value", pair[0]));
            };
            let number = || value.parse().map_err(|_| format!("{name} wants a number"));
            match name.as_str() {
                "--prefix" => options.prefix = value.into(),
                "--programs" => options.programs = value.into(),
                "--kills" => options.kills = number()?,
                "--minutes" => options.minutes = Some(number()?),
                "--seed" => options.seed = Some(number()?),
                "--short" => options.short = value == "yes",
                other => return Err(format!("no option {other}")),
            }
        }
        Ok(options)
    }

    /// Seconds of an attack that has no end of its own.
    fn seconds(&self, else_so_many: u64) -> u64 {
        let otherwise = if self.short {
            else_so_many / 2
        } else {
            else_so_many
        };
        self.minutes.map_or(otherwise, |minutes| minutes * 60)
    }

    /// Random numbers of the seed that was asked for.
    fn random(&self) -> Random {
        self.seed.map_or_else(Random::from_env, Random::new)
    }
}

/// Kills by each attack that kills, unless the command line says otherwise.
const KILLS: u64 = 100;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (word, rest) = match words.split_first() {
        Some((word, rest)) => (word.as_str(), rest),
        None => ("help", &[][..]),
    };
    match (word, rest) {
        ("list", []) => {
            list();
            ExitCode::SUCCESS
        }
        ("able" | "run" | "inside", [name, options @ ..]) => start(word, name, options),
        _ => {
            eprintln!("fault-assault list | able NAME | run NAME --prefix DIR --programs DIR");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    for attack in ATTACKS {
        let when = if attack.short { "ci" } else { "by word" };
        println!(
            "{}\t{}\t{when}\t{}",
            attack.name,
            attack.needs.label(),
            attack.about
        );
    }
}

fn start(word: &str, name: &str, words: &[String]) -> ExitCode {
    let Some(attack) = ATTACKS.iter().find(|attack| attack.name == name) else {
        eprintln!("fault-assault: no attack {name}");
        return ExitCode::FAILURE;
    };
    if word != "inside" {
        if let Err(why) = sandbox::able(attack.needs) {
            eprintln!("{why}");
            return ExitCode::from(NOT_APPLICABLE);
        }
    }
    let ended = Options::read(words).and_then(|options| match word {
        "able" => Ok(()),
        "run" => sandbox::enter(attack, words, attack.limit(&options)),
        _ => sandbox::prepare(&options).and_then(|()| (attack.run)(&options)),
    });
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{name}: {why}");
            ExitCode::FAILURE
        }
    }
}
