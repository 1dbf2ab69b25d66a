//! Mutation testing of `core/`: `cargo xtask mutants [--sample K/N] [CRATE...]`.
//!
//! cargo-mutants changes one place of a crate at a time (a comparison, a returned value, an
//! emptied function) and runs the crate's tests. A change that no test notices is missing a
//! test, or makes no difference: then `spec/mutants.toml` lists it with the reason. It takes
//! minutes to an hour a crate, so CI doesn't run it; `--sample 0/8` runs each eighth change,
//! and `1/8` to `7/8` the others.

use std::process::Command;

use serde_json::Value;
use toml::Table;

use crate::report::{Outcome, Report};
use crate::shell::{self, Package, Tree};

/// Mutants that change nothing, each with the reason.
const LIST: &str = "spec/mutants.toml";
/// Of the mutants that compile and aren't listed, so many in a hundred must be noticed.
const WANTED_PERCENT: usize = 95;
/// Seconds that the tests of a mutant may take.
const TIMEOUT: &str = "60";

pub fn run(tree: &Tree, arguments: &[&str], report: &mut Report) {
    let (sample, crates) = match arguments {
        ["--sample", sample, crates @ ..] => (Some(*sample), crates),
        crates => (None, crates),
    };
    let found = report.check("mutants: cargo-mutants", || {
        match shell::find_program("cargo-mutants") {
            Some(_) => Ok(()),
            None => Err("it is missing; cargo install --locked cargo-mutants installs it".into()),
        }
    });
    if !found {
        return;
    }
    for name in crates {
        let is_known = tree.packages.iter().any(|package| is_named(package, name));
        if !is_known {
            report.check(&format!("mutants: {name}"), || {
                Err("no such crate in core/".into())
            });
        }
    }
    for package in tree
        .packages
        .iter()
        .filter(|package| package.folder.starts_with("core/"))
    {
        if crates.is_empty() || crates.iter().any(|name| is_named(package, name)) {
            report.check(&format!("mutants: {}", package.folder), || {
                check(tree, package, sample)
            });
        }
    }
}

fn is_named(package: &Package, name: &str) -> bool {
    package.folder.starts_with("core/") && (package.folder == name || package.name == name)
}

fn check(tree: &Tree, package: &Package, sample: Option<&str>) -> Outcome {
    let listed = read_list(&shell::read(&tree.path(LIST))?)?;
    let out = tree.fresh_folder(&format!("mutants/{}", package.name))?;
    let mut command = command(tree, package);
    if let Some(sample) = sample {
        // Neighbours change the same function: each of them in another sample.
        command.args(["--sharding", "round-robin", "--shard", sample]);
    }
    let status = command.arg("--output").arg(&out).status();
    status.map_err(|e| format!("cargo mutants: {e}"))?;
    let text = shell::read(&out.join("mutants.out/outcomes.json"))?;
    let outcomes: Value = serde_json::from_str(&text).map_err(|e| format!("outcomes.json: {e}"))?;
    judge(&Count::of(&outcomes, &listed))
}

fn command(tree: &Tree, package: &Package) -> Command {
    let mut cargo = tree.cargo();
    let limits = [
        "--timeout",
        TIMEOUT,
        "--jobs",
        "1",
        "--no-times",
        "--colors=never",
    ];
    cargo
        .args(["mutants", "--package", &package.name, "--no-shuffle"])
        .args(limits);
    cargo
}

/// How the mutants of a crate ended.
#[derive(Default)]
struct Count {
    noticed: usize,
    /// Missed, but listed with a reason.
    listed: usize,
    missed: Vec<String>,
}

impl Count {
    fn of(outcomes: &Value, listed: &[String]) -> Count {
        let mut count = Count::default();
        for outcome in outcomes["outcomes"].as_array().into_iter().flatten() {
            let name = outcome["scenario"]["Mutant"]["name"]
                .as_str()
                .unwrap_or_default();
            match outcome["summary"].as_str() {
                Some("CaughtMutant" | "Timeout") => count.noticed += 1,
                Some("MissedMutant") if listed.iter().any(|known| is_same(name, known)) => {
                    count.listed += 1;
                }
                Some("MissedMutant") => count.missed.push(name.into()),
                _ => {}
            }
        }
        count
    }
}

/// Whether a mutant is the listed one. Its name begins with `file:line:column: `, and lines
/// move, so the list gives the file and the change.
fn is_same(name: &str, listed: &str) -> bool {
    let (place, change) = name.split_once(": ").unwrap_or(("", name));
    let file = place.split(':').next().unwrap_or_default();
    listed == format!("{file}: {change}")
}

fn judge(count: &Count) -> Outcome {
    let all = count.noticed + count.missed.len();
    println!(
        "   {} of {all} noticed, {} listed in {LIST}",
        count.noticed, count.listed
    );
    for name in &count.missed {
        println!("   missed: {name}");
    }
    match count.noticed * 100 >= all * WANTED_PERCENT && all > 0 {
        true => Ok(()),
        false => Err(format!(
            "fewer than {WANTED_PERCENT} % of {all} mutants were noticed"
        )),
    }
}

fn read_list(text: &str) -> Result<Vec<String>, String> {
    let table: Table = text.parse().map_err(|e| format!("{LIST}: {e}"))?;
    let reasons = table.iter().map(|(mutant, reason)| match reason.as_str() {
        Some(reason) if !reason.is_empty() => Ok(mutant.clone()),
        _ => Err(format!("{LIST}: \"{mutant}\" has no reason")),
    });
    reasons.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_mutant_is_known_wherever_its_line_moves() {
        let listed = "core/x/src/a.rs: replace < with <= in f";
        assert!(is_same(
            "core/x/src/a.rs:7:3: replace < with <= in f",
            listed
        ));
        assert!(!is_same(
            "core/x/src/b.rs:7:3: replace < with <= in f",
            listed
        ));
    }

    #[test]
    fn one_missed_in_twenty_is_the_most() {
        let count = |noticed, missed| Count {
            noticed,
            listed: 0,
            missed: vec!["x".into(); missed],
        };
        assert!(judge(&count(19, 1)).is_ok());
        assert!(judge(&count(18, 1)).is_err());
        assert!(judge(&count(0, 0)).is_err());
    }
}
