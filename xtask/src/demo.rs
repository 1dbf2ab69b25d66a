//! Two processes, the table, the plots.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::dist;
use crate::networks::Setting;
use crate::report::Outcome;
use crate::shell::{self, Tree};

/// How long to measure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// What the README shows.
    Full,
    /// The same path, with few repetitions: it works, its figures are noise.
    Smoke,
}

/// Longer than the measurements take on two busy cores: each of about sixty points has a
/// budget of two seconds, and may exceed it by one batch of each of its two workloads.
const LIMIT: Duration = Duration::from_secs(1800);

pub fn run(tree: &Tree, length: Length) -> Outcome {
    println!("building (the first time takes a few minutes) …");
    dist::run(tree, &tree.dist())?;
    let out = tree.fresh_folder("demo")?;
    measure(&tree.dist(), &out, length)?;
    let plots = plots(&out);
    if plots.is_empty() {
        return Err(format!("no plot in {}", out.display()));
    }
    println!("\nPlots:");
    for plot in plots {
        println!("  {}", plot.display());
    }
    println!("Figures: {}", out.join("perf.json").display());
    Ok(())
}

/// The measurements of the demo with few repetitions, in a setting, on `target/dist`.
pub fn smoke_in(tree: &Tree, setting: &Setting) -> Outcome {
    let mut perf = perf(&tree.dist(), Length::Smoke);
    if setting.has_nodes() {
        perf.args(["--nodes", "2"]);
    }
    setting.apply_to(&mut perf);
    shell::run_within(&mut perf, LIMIT)
}

fn perf(dist: &Path, length: Length) -> Command {
    let mut perf = Command::new(dist.join("bin/lintel"));
    perf.args(["perf", "put", "get", "bandwidth", "rate", "atomics"]);
    if length == Length::Smoke {
        perf.args(["--time", "20", "--rounds", "3", "--sizes", "8,4K,1M"]);
    }
    perf
}

fn measure(dist: &Path, out: &Path, length: Length) -> Outcome {
    let json = out.join("perf.json");
    shell::run_within(perf(dist, length).arg("--json").arg(&json), LIMIT)?;
    shell::output(
        Command::new(dist.join("bin/lintel"))
            .arg("plot")
            .arg(&json)
            .arg("--out")
            .arg(out),
    )
    .map(drop)
}

fn plots(out: &Path) -> Vec<PathBuf> {
    [shell::files(out, "svg"), shell::files(out, "png")].concat()
}
