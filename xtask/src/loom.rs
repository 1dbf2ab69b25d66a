//! Explores every order of the lock-free protocols that loom's models state.

use crate::report::Outcome;
use crate::shell::{self, Tree};

pub fn run(tree: &Tree) -> Outcome {
    shell::run(
        tree.cargo()
            .env("RUSTFLAGS", "--cfg loom")
            .args(["test", "--release", "--test", "loom"])
            .args(["--package", "lintel-ring", "--package", "lintel-presence"])
            .args(["--package", "lintel-bridge", "--package", "lintel-direct"])
            .args(["--package", "lintel-lock", "--package", "lintel-group"])
            .arg("--target-dir")
            .arg(tree.target.join("loom")),
    )
}
