//! Runs every fuzz target for a while.

use std::path::{Path, PathBuf};

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
    for (folder, target) in targets {
        report.check(&format!("fuzz {target}, {seconds} s"), || {
            fuzz(tree, &folder, &target, seconds)
        });
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

fn fuzz(tree: &Tree, folder: &Path, target: &str, seconds: u32) -> Outcome {
    shell::run(
        tree.cargo()
            // Coverage instrumentation is unstable; this lets the pinned
            // stable compiler do it, so that no nightly is needed.
            .env("RUSTC_BOOTSTRAP", "1")
            .args(["fuzz", "run", "--fuzz-dir"])
            .arg(folder)
            .args(["--target-dir"])
            .arg(tree.target.join("fuzz"))
            .arg(target)
            .arg("--")
            .arg(format!("-max_total_time={seconds}"))
            .arg("-print_final_stats=1"),
    )
}
