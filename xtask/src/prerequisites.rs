//! What the machine must have: looked for, installed where that is allowed,
//! otherwise named with the command that installs it.

use std::path::Path;
use std::process::Command;

use crate::report::Outcome;
use crate::shell::{self, Tree};

/// A program, or the path of a file; what needs it; and the Debian packages that have it.
type Need = (&'static str, &'static str, &'static str);

/// Enough to build and to run the demo.
pub const BUILD: [Need; 1] = [("cc", "linking", "gcc libc6-dev")];

/// Enough for every check.
pub const TEST: [Need; 5] = [
    ("cc", "linking, C tests", "gcc libc6-dev"),
    ("c++", "the headers as C++", "g++"),
    ("nm", "exported symbols", "binutils"),
    ("readelf", "exported symbols", "binutils"),
    ("pkg-config", "C tests", "pkg-config"),
];

/// What `PTL_NAL=ofi` needs beyond the library.
pub const LIBFABRIC: [Need; 1] = [("fi_info", "PTL_NAL=ofi", "libfabric-bin libfabric1")];

/// Without these, some tests are skipped with a message.
pub const WANTED: [Need; 7] = [
    LIBFABRIC[0],
    (
        "/usr/include/rdma/fabric.h",
        "libfabric's layouts",
        "libfabric-dev",
    ),
    ("mpiexec.hydra", "ranks under hydra", "mpich"),
    ("mpirun.openmpi", "ranks under mpirun", "openmpi-bin"),
    ("valgrind", "instructions per call", "valgrind"),
    ("tshark", "captured messages", "tshark"),
    ("chromium", "the book's pages", "chromium"),
];

/// Enough for two network namespaces with a filter between them.
pub const NAMESPACES: [Need; 2] = [
    ("ip", "network namespaces", "iproute2"),
    ("nft", "dropping packets", "nftables"),
];

/// Enough for a Slurm of one node.
pub const SLURM: [Need; 4] = [
    ("slurmctld", "Slurm's controller", "slurmctld"),
    ("slurmd", "Slurm's node", "slurmd"),
    ("salloc", "allocations", "slurm-client"),
    ("munged", "authentication within Slurm", "munge"),
];

/// `cargo xtask setup`: installs all that the build and the tests need, and prints what stays
/// missing of what only some tests need.
pub fn setup() -> Outcome {
    programs(&BUILD)?;
    programs(&TEST)?;
    wanted(&WANTED);
    Ok(())
}

/// Looks for each program and installs what is missing where it may.
pub fn programs(needs: &[Need]) -> Outcome {
    let missing = missing(needs);
    if missing.is_empty() {
        return Ok(());
    }
    let packages = packages(&missing);
    if is_root() && shell::find_program("apt-get").is_some() {
        println!("   installing {}", packages.join(" "));
        install(&packages)?;
    }
    named(needs)
}

/// Looks for each program, and names what is missing with the command that installs it.
pub fn named(needs: &[Need]) -> Outcome {
    match missing(needs).as_slice() {
        [] => Ok(()),
        missing => Err(missing_text(missing)),
    }
}

/// As [`programs`], for optional programs: prints which are missing.
pub fn wanted(needs: &[Need]) {
    if let Err(wrong) = programs(needs) {
        println!("   some tests will be skipped: {wrong}");
    }
}

fn missing_text(missing: &[Need]) -> String {
    let each = missing
        .iter()
        .map(|(name, why, _)| format!("{name} ({why})"));
    let each: Vec<String> = each.collect();
    let packages = packages(missing).join(" ");
    format!(
        "missing: {}; on Debian: sudo apt-get install -y {packages}",
        each.join(", ")
    )
}

/// Formatter and linter come with most toolchains; rustup adds them to a
/// minimal one.
pub fn components(tree: &Tree) -> Outcome {
    for (word, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let found = shell::output(tree.cargo().args([word, "--version"])).is_ok();
        if found {
            continue;
        }
        println!("   adding {component}");
        let add = ["component", "add", component];
        shell::run(Command::new("rustup").args(add).current_dir(&tree.root)).map_err(|e| {
            format!("{component} is missing ({e}); install it: rustup component add {component}")
        })?;
    }
    Ok(())
}

fn missing(needs: &[Need]) -> Vec<Need> {
    needs
        .iter()
        .filter(|(program, _, _)| shell::find_program(program).is_none())
        .copied()
        .collect()
}

fn packages(needs: &[Need]) -> Vec<&'static str> {
    let mut packages: Vec<&str> = needs
        .iter()
        .flat_map(|(_, _, packages)| packages.split(' '))
        .collect();
    packages.sort_unstable();
    packages.dedup();
    packages
}

fn install(packages: &[&str]) -> Outcome {
    let apt = |words: &[&str]| {
        shell::run(
            Command::new("apt-get")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .args(["-qq", "-y", "--no-install-recommends"])
                .args(words),
        )
    };
    let install: Vec<&str> = [&["install"], packages].concat();
    // A fresh machine often has no package lists, and old ones name files
    // that are gone.
    apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install)))
}

/// Whether this process may do everything.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(Path::new("/proc/self")).is_ok_and(|me| me.uid() == 0)
}
