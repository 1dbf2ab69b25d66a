//! Tests under AddressSanitizer and ThreadSanitizer, which also runs programs of several threads.
//!
//! The pinned compiler is made to do what only a nightly one offers, as for fuzzing. Each
//! sanitizer builds into a folder of its own. The standard library isn't instrumented:
//! what ThreadSanitizer can't know of it stands in `thread-sanitizer.supp`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dependencies;
use crate::report::{Outcome, Report};
use crate::shell::{self, Tree};
use crate::test_run;

/// Crates that touch memory by address, or that threads and processes share.
const SHARED: [&str; 7] = [
    "lintel-lock",
    "lintel-ring",
    "lintel-claim",
    "lintel-bridge",
    "lintel-presence",
    "lintel-nal-shm",
    "lintel-runtime",
];

/// Those that do neither; their tests take several minutes.
const PLAIN: [&str; 11] = [
    "lintel-types",
    "lintel-memory",
    "lintel-wire",
    "lintel-tables",
    "lintel-collectives",
    "lintel-session",
    "lintel-progress",
    "lintel-engine4",
    "lintel-engine3",
    "lintel-cci",
    "lintel-reliable",
];

/// Programs whose threads share an interface.
const PROGRAMS: [&str; 4] = ["--package", "lintel-fault", "--test", "threads"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sanitizer {
    Address,
    Thread,
}

/// Which crates a run covers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// Those that share memory: for CI.
    Short,
    /// All of `core/` too.
    Full,
}

/// Runs both, where the toolchain has what they need.
pub fn run(tree: &Tree, length: Length, report: &mut Report) {
    for sanitizer in [Sanitizer::Address, Sanitizer::Thread] {
        let name = format!("sanitize: {}", sanitizer.name());
        match runtime(sanitizer) {
            Ok(_) => {
                report.check(&name, || test(tree, sanitizer, length));
            }
            Err(why) => report.not_applicable(&format!("{name}: {why}")),
        }
    }
}

impl Sanitizer {
    fn name(self) -> &'static str {
        match self {
            Sanitizer::Address => "AddressSanitizer",
            Sanitizer::Thread => "ThreadSanitizer",
        }
    }

    /// As the compiler calls it.
    fn word(self) -> &'static str {
        match self {
            Sanitizer::Address => "address",
            Sanitizer::Thread => "thread",
        }
    }

    /// Of the name of its run-time library.
    fn suffix(self) -> &'static str {
        match self {
            Sanitizer::Address => "_rt.asan.a",
            Sanitizer::Thread => "_rt.tsan.a",
        }
    }
}

/// The library that sanitized programs are linked with: not every toolchain has it.
fn runtime(sanitizer: Sanitizer) -> Result<PathBuf, String> {
    let mut rustc = Command::new(dependencies::rustc());
    let said = shell::output(rustc.args(["--print", "target-libdir"]))?;
    let folder = Path::new(said.trim());
    let entries =
        std::fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    let is_it = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(sanitizer.suffix())
    };
    paths
        .find(is_it)
        .ok_or("the toolchain has no run-time library for it on this platform".into())
}

fn test(tree: &Tree, sanitizer: Sanitizer, length: Length) -> Outcome {
    let mut cargo = instrumented(tree, sanitizer)?;
    cargo.arg("--tests");
    for package in SHARED {
        cargo.args(["--package", package]);
    }
    // Threads share nothing in these.
    if length == Length::Full && sanitizer == Sanitizer::Address {
        for package in PLAIN {
            cargo.args(["--package", package]);
        }
    }
    test_run::run(&mut cargo, None)?;
    match sanitizer {
        Sanitizer::Address => Ok(()),
        Sanitizer::Thread => {
            let mut cargo = instrumented(tree, sanitizer)?;
            test_run::run(cargo.args(PROGRAMS), None)
        }
    }
}

/// `cargo test` under a sanitizer.
fn instrumented(tree: &Tree, sanitizer: Sanitizer) -> Result<Command, String> {
    let word = sanitizer.word();
    let mut cargo = tree.cargo();
    cargo
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", flags(word))
        .env("TSAN_OPTIONS", options(tree))
        // Suppressions name functions by their paths, which line tables alone don't have.
        .env("CARGO_PROFILE_DEV_DEBUG", "full")
        .env("RUST_TEST_THREADS", threads(sanitizer))
        // Build scripts and macros run on this machine, and aren't what is looked at.
        .args(["test", "--quiet", "--no-fail-fast", "--target"])
        .arg(dependencies::platform()?)
        .arg("--target-dir")
        .arg(tree.target.join("sanitize").join(word));
    Ok(cargo)
}

/// One under ThreadSanitizer: two tests that use the same memory, one after the other, have
/// an order by a mutex that it doesn't see.
fn threads(sanitizer: Sanitizer) -> &'static str {
    match sanitizer {
        Sanitizer::Address => "2",
        Sanitizer::Thread => "1",
    }
}

/// The standard library isn't built with the sanitizer, and may be linked all the same.
fn flags(word: &str) -> String {
    format!("-Zsanitizer={word} -Cunsafe-allow-abi-mismatch=sanitizer")
}

fn options(tree: &Tree) -> String {
    let file = tree.path("xtask/thread-sanitizer.supp");
    format!("suppressions={}", file.display())
}
