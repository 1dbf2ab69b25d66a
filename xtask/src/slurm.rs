//! yod in the allocations of a Slurm that runs on this machine.

use std::process::Command;
use std::time::Duration;

use crate::report::Outcome;
use crate::shell::{self, Tree};
use crate::{c_tests, dist, prerequisites};

const LIMIT: Duration = Duration::from_secs(300);

/// Builds yod and a program, and runs `tests/slurm/allocation.sh` with them.
pub fn run(tree: &Tree) -> Outcome {
    if !prerequisites::is_root() {
        return Err("needs root, for Slurm's daemons".into());
    }
    prerequisites::programs(&prerequisites::SLURM)?;
    dist::run(tree, &tree.dist())?;
    let program = c_tests::readme_program(tree, &tree.dist())?;
    let mut script = Command::new(tree.path("tests/slurm/allocation.sh"));
    script
        .env("YOD", tree.dist().join("bin/yod"))
        .env("PROGRAM", program);
    shell::run_within(&mut script, LIMIT)
}
