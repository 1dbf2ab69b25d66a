//! Runs every fuzz target for a while, as many at a time as there are processors.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use crate::report::{Outcome, Report};
use crate::shell::{self, Tree};

pub fn run(tree: &Tree, seconds: u32, report: &mut Report) {
    let targets = targets(tree);
    if targets.is_empty() {
        println!("── fuzz: no targets");
        return;
    }
    if !report.check("cargo-fuzz is here", || ensure_tool(tree)) {
        return;
    }
    let folders: BTreeSet<&Path> = targets.iter().map(|(folder, _)| folder.as_path()).collect();
    let build = |folder: &&Path| shell::run(&mut cargo_fuzz(tree, "build", folder));
    if !report.check("fuzz targets", || folders.iter().try_for_each(build)) {
        return;
    }
    let at_once = std::thread::available_parallelism().map_or(1, Into::into);
    for targets in targets.chunks(at_once) {
        let ended: Vec<(Duration, Outcome)> = std::thread::scope(|scope| {
            let running: Vec<_> = targets
                .iter()
                .map(|(folder, target)| scope.spawn(|| fuzz(tree, folder, target, seconds)))
                .collect();
            let end = |thread: ScopedJoinHandle<'_, _>| thread.join().expect("it doesn't panic");
            running.into_iter().map(end).collect()
        });
        for ((_, target), (took, outcome)) in targets.iter().zip(ended) {
            report.note(&format!("fuzz {target}, {seconds} s"), took, outcome);
        }
    }
}

/// Each `fuzz/fuzz_targets/NAME.rs`, of the whole tree or of one crate.
fn targets(tree: &Tree) -> Vec<(PathBuf, String)> {
    let crates = tree.packages.iter().map(|p| tree.path(&p.folder));
    std::iter::once(tree.root.clone())
        .chain(crates)
        .map(|folder| folder.join("fuzz"))
        .filter(|folder| folder.join("Cargo.toml").is_file())
        .flat_map(|folder| {
            shell::files(&folder.join("fuzz_targets"), "rs")
                .into_iter()
                .filter_map(move |file| Some((folder.clone(), stem(&file)?)))
        })
        .collect()
}

fn stem(file: &Path) -> Option<String> {
    Some(file.file_stem()?.to_str()?.to_string())
}

fn ensure_tool(tree: &Tree) -> Outcome {
    if shell::output(tree.cargo().args(["fuzz", "--version"])).is_ok() {
        return Ok(());
    }
    shell::run(
        tree.cargo()
            .args(["install", "--quiet", "--locked", "cargo-fuzz"]),
    )
}

/// Runs a target. What it prints, a line for each input that reaches new code, is kept until it has
/// ended: others run beside it.
fn fuzz(tree: &Tree, folder: &Path, target: &str, seconds: u32) -> (Duration, Outcome) {
    let began = Instant::now();
    let mut run = cargo_fuzz(tree, "run", folder);
    run.arg(target)
        .arg("--")
        .arg(format!("-max_total_time={seconds}"))
        .arg("-print_final_stats=1");
    let outcome = match run.output() {
        Err(error) => Err(format!("{}: {error}", shell::show(&run))),
        Ok(done) => {
            println!(
                "── fuzz {target}\n{}",
                String::from_utf8_lossy(&done.stderr)
            );
            match done.status.success() {
                true => Ok(()),
                false => Err(format!("{} ended with {}", shell::show(&run), done.status)),
            }
        }
    };
    (began.elapsed(), outcome)
}

fn cargo_fuzz(tree: &Tree, command: &str, folder: &Path) -> Command {
    let mut cargo = tree.cargo();
    cargo
        // Coverage instrumentation is unstable; this lets the pinned stable compiler do it, so that
        // no nightly is needed.
        .env("RUSTC_BOOTSTRAP", "1")
        .args(["fuzz", command, "--fuzz-dir"])
        .arg(folder)
        .arg("--target-dir")
        .arg(tree.target.join("fuzz"));
    cargo
}
