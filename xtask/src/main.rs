//! Build, test and check commands; CI runs the same commands as a developer.
//!
//! `cargo xtask` lists the commands. Each command is a module. Each check is a function that
//! returns what is wrong as a sentence, and a [`Report`](report::Report) counts the checks.

#![forbid(unsafe_code)]

mod assault;
mod book;
mod c_tests;
mod container;
mod copied;
mod deb;
mod demo;
mod deny;
mod dependencies;
mod dist;
mod fuzz;
mod header_text;
mod headers;
mod hostile;
mod instructions;
mod layers;
mod licences;
mod loom;
mod man;
mod measures;
mod mutants;
mod netns;
mod networks;
mod options;
mod prerequisites;
mod report;
mod rings;
mod sanitize;
mod shell;
mod slurm;
mod soak;
mod spack;
mod spec;
mod suite;
mod symbols;
mod test_run;
mod vendor;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use assault::Assault;
use networks::Setting;
use report::{Outcome, Report};
use shell::{Arguments, Tree};
use soak::Soak;

const USAGE: &str = "\
cargo xtask COMMAND

  setup               install what the build and the tests need, from Debian's packages (as
                      root; else the command is printed); test does it by itself
  test [--quick]      run the full test suite; --quick skips the release build and
                      the tests that need it
  test [--nal LIST] [--fault WHAT] [--mode MODE]
                      test the library with PTL_NAL, LINTEL_FAULT and PTL_MODE set
                      and jobs spread over two virtual nodes
  demo                run two processes, print latency and bandwidth, draw plots
  ci                  test, the same over every network, attacks, loom models,
                      sanitizers, half a minute of each fuzz target, the demo
  dist --prefix DIR [--libdir DIR] [--destdir DIR]
                      build in release mode; install library, headers, pages, tools;
                      DESTDIR stands before the prefix while a package is made
  deb [--out DIR] [--try]
                      make Debian packages; --try installs them in a fresh Debian,
                      compiles and runs a program there (needs root)
  vendor [--out FILE] [--try]
                      pack the last commit with the sources of all dependencies; --try
                      checks it without network and registry
  container [--try]   build the image of packaging/Containerfile with buildah; --try
                      begins it with a fresh Debian instead of a registry's images,
                      compiles and runs a program in it (needs root)
  spack [--out DIR] [--try]
                      make a repository of recipes for Spack with the vendored sources;
                      --try installs from it, compiles and runs a program

  soak [--minutes M | --seconds S] [--seed N] [--nal LIST] [--fault WHAT]
                      random operations among 8 processes on 2 virtual nodes; each
                      minute one is killed and restarted (60 s)
  soak --api cci [--minutes M | --seconds S] [--seed N] [--nal sm|udp] [--fault WHAT]
                      the same of CCI: messages and remote memory accesses among 3
                      processes over sm, and 3 over UDP with 1 % loss
  assault [--kills N] [--minutes M] [--seed N] [--prefix DIR] [NAME...]
                      attack the installed library in separate namespaces: kills
                      (300), reused process numbers, memory after PtlNIFini, other
                      users' files, full memory, limits; NAME is the beginning of
                      the attacks' names (some need root)
  netns               the soak between two network namespaces that drop 1 % and
                      5 % of datagrams (needs root)
  hostile [--packets N] [--seed N]
                      send random and mutated datagrams to a process (200,000)

  instructions        count the instructions of calls with callgrind and compare them
                      with spec/instructions.toml (needs valgrind)
  layers              check the crates against the table in ARCHITECTURE.md
  words               find retired words (spec/words.toml) in code and prose
  measures [--root DIR]
                      measure lengths, tests, documentation and names of the
                      sources of this tree or another
  mutants [--sample K/N] [CRATE...]
                      check that the tests of core/ detect small changes, or each
                      N-th of them, with cargo-mutants (up to an hour per crate)
  headers             compile each of include/*.h alone as C99, C11 and C++17
  spec                check the functions and options in spec/ against the headers
  symbols             check that libportals.so.4 exports exactly what headers declare
  man                 check that every function and every tool has a man page
  book [CHAPTER]      run the commands and programs of doc/book against the installed
                      library; check that its messages are in the sources; look at
                      its pages in a browser
  book pages          only look at the pages, in headless Chromium
  deny                check licences, sources and duplicates of dependencies against
                      deny.toml; advisories too if cargo-deny and its database exist
  licences            print the licence texts of everything that dist links
  loom                explore all interleavings of the loom models
  sanitize            AddressSanitizer on core/ and the crates that share memory,
                      ThreadSanitizer on the latter
  slurm               yod in the allocations of a Slurm of one node, started here
                      from Debian's packages (needs root)
  c-tests [NAME]      run tests/c against the installed library
  fuzz [SECONDS]      run each fuzz target (default 60 s)
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let tree = match Tree::find() {
        Ok(tree) => tree,
        Err(wrong) => {
            eprintln!("xtask: {wrong}");
            return ExitCode::FAILURE;
        }
    };
    let mut arguments = arguments.iter().map(String::as_str);
    let command = arguments.next().unwrap_or("help");
    let rest: Vec<&str> = arguments.collect();
    let command = match rest.contains(&"--help") {
        true => "help",
        false => command,
    };
    match command {
        "setup" => one("setup", prerequisites::setup),
        "test" => test(&tree, &rest),
        "ci" => suite::ci(&tree),
        "demo" => one("demo", || demo::run(&tree, demo::Length::Full)),
        "dist" => one("dist", || {
            dist::install_all(&tree, &dist::Place::read(&rest)?)
        }),
        "deb" => one("deb", || deb::run(&tree, &rest)),
        "container" => one("container", || container::run(&tree, &rest)),
        "spack" => one("spack", || spack::run(&tree, &rest)),
        "vendor" => one("vendor", || vendor::run(&tree, &rest)),
        "layers" => one("layers", || layers::check(&tree)),
        "deny" => many(|report| deny::run(&tree, report)),
        "licences" => one("licences", || licences::print(&tree)),
        "measures" => one("measures", || measures::print(&root(&tree, &rest)?)),
        "words" => one("words", || words::check(&tree)),
        "mutants" => many(|report| mutants::run(&tree, &rest, report)),
        "headers" => one("headers", || headers::check(&tree)),
        "spec" => one("spec", || spec::check(&tree)),
        "symbols" => one("symbols", || symbols::build_and_check(&tree)),
        "book" => many(|report| book::run(&tree, rest.first().copied(), report)),
        "man" => one("man", || man::build_and_check(&tree)),
        "sanitize" => many(|report| sanitize::run(&tree, sanitize::Length::Full, report)),
        "loom" => one("loom", || loom::run(&tree)),
        "soak" => one("soak", || soak::run(&tree, &Soak::read(&rest)?)),
        "hostile" => one("hostile", || hostile::run(&tree, &rest)),
        "assault" => match Assault::read(&rest) {
            Ok(assault) => many(|report| assault::run(&tree, &assault, report)),
            Err(wrong) => one("assault", || Err(wrong)),
        },
        "instructions" => many(|report| instructions::run(&tree, report)),
        "slurm" => one("slurm", || slurm::run(&tree)),
        "netns" => many(|report| netns::run(&tree, report)),
        "c-tests" => many(|report| c_tests::run(&tree, rest.first().copied(), report)),
        "fuzz" => many(|report| fuzz::run(&tree, seconds(&rest), report)),
        "help" | "--help" | "-h" => {
            print!("{USAGE}");
            ExitCode::SUCCESS
        }
        other => {
            eprint!("xtask: no command '{other}'\n\n{USAGE}");
            ExitCode::FAILURE
        }
    }
}

fn test(tree: &Tree, rest: &[&str]) -> ExitCode {
    match rest {
        [] => return suite::test(tree, false),
        ["--quick"] => return suite::test(tree, true),
        _ => {}
    }
    let words = Arguments::new(rest).and_then(|words| words.only(&["--nal", "--fault", "--mode"]));
    match words.map(|words| Setting::read(&words).unwrap_or_default()) {
        Ok(setting) => suite::test_in(tree, &setting),
        Err(wrong) => one("test", || Err(wrong)),
    }
}

/// Runs a single check and prints what is wrong, without a count.
fn one(name: &str, check: impl FnOnce() -> Outcome) -> ExitCode {
    match check() {
        Ok(()) => ExitCode::SUCCESS,
        Err(wrong) => {
            eprintln!("xtask {name}: {wrong}");
            ExitCode::FAILURE
        }
    }
}

fn many(checks: impl FnOnce(&mut Report)) -> ExitCode {
    let mut report = Report::new();
    checks(&mut report);
    report.finish()
}

/// The tree to look at: this one, or the one that `--root` names.
fn root(tree: &Tree, rest: &[&str]) -> Result<PathBuf, String> {
    let words = Arguments::new(rest)?.only(&["--root"])?;
    Ok(words.get("--root").map_or(tree.root.clone(), PathBuf::from))
}

fn seconds(rest: &[&str]) -> u32 {
    rest.first().and_then(|s| s.parse().ok()).unwrap_or(60)
}
