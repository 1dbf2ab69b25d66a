//! The one door: whatever CI does, a person does with the same word.
//!
//! `cargo xtask` without a word lists the words. Each word is a module; each
//! check is a function that says what is wrong in a sentence, and a
//! [`Report`](report::Report) counts them.

#![forbid(unsafe_code)]

mod assault;
mod c_tests;
mod demo;
mod deny;
mod dependencies;
mod dist;
mod fuzz;
mod header_text;
mod headers;
mod hostile;
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
mod sanitize;
mod shell;
mod soak;
mod spec;
mod suite;
mod symbols;
mod test_run;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

use assault::Assault;
use networks::Setting;
use report::{Outcome, Report};
use shell::{Tree, Words};
use soak::Soak;

const WORDS: &str = "\
cargo xtask WORD

  test [--quick]      everything that makes this tree trustworthy; --quick leaves
                      out the release build and what runs on it
  test [--nal LIST] [--fault WHAT] [--mode MODE]
                      how the library behaves, with PTL_NAL, LINTEL_FAULT and
                      PTL_MODE set and jobs spread over two virtual nodes
  demo                two processes, the table of latency and bandwidth, the plots
  ci                  test, the same over every network, attacks, the loom models,
                      the sanitizers, a minute of each fuzz target, the demo
  dist --prefix DIR   builds release and installs library, headers, pages, tools

  soak [--minutes M | --seconds S] [--seed N] [--nal LIST] [--fault WHAT]
                      random operations among 8 processes on 2 virtual nodes, one
                      of which is killed and started again each minute (60 s)
  assault [--kills N] [--minutes M] [--seed N] [--prefix DIR] [NAME...]
                      attacks on the installed library in namespaces of their own:
                      kills (300), reused process numbers, memory after PtlNIFini,
                      other users' files, full memory, limits; a NAME may be the
                      beginning of several (some need root)
  netns               the same between two network namespaces, 1 % and 5 % of
                      datagrams dropped (needs root)
  hostile [--packets N] [--seed N]
                      random and mutated datagrams at a process (200,000)

  words               code and prose against the retired words of spec/words.toml
  layers              ARCHITECTURE.md against the crates
  measures [--root DIR]
                      lengths, tests, documentation and names of this tree or another
  mutants [CRATE...]  whether the tests of core/ notice one change at a time, by
                      cargo-mutants (up to an hour a crate)
  headers             include/*.h compile alone as C99, C11 and C++17
  spec                spec/portals4.toml and spec/options.toml against the headers
  symbols             libportals.so.4 exports what the headers declare, no more
  man                 every function and every tool has its page
  deny                licences, sources and duplicates of the crates of others
                      against deny.toml; with cargo-deny and a copy of its database
                      of advisories, those too
  licences            licence texts of what is linked into what dist installs
  loom                the models of the ring and the bell, in every order
  sanitize            AddressSanitizer on core/ and on what shares memory,
                      ThreadSanitizer on the latter
  c-tests [NAME]      tests/c against the installed library
  fuzz [SECONDS]      each fuzz target for a while (default 60 s)
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let tree = match Tree::find() {
        Ok(tree) => tree,
        Err(wrong) => {
            eprintln!("xtask: {wrong}");
            return ExitCode::FAILURE;
        }
    };
    let mut words = words.iter().map(String::as_str);
    let word = words.next().unwrap_or("help");
    let rest: Vec<&str> = words.collect();
    match word {
        "test" => test(&tree, &rest),
        "ci" => suite::ci(&tree),
        "demo" => one("demo", || demo::run(&tree, demo::Length::Full)),
        "dist" => one("dist", || dist::run(&tree, &prefix(&rest)?)),
        "layers" => one("layers", || layers::check(&tree)),
        "deny" => many(|report| deny::run(&tree, report)),
        "licences" => one("licences", || licences::print(&tree)),
        "measures" => one("measures", || measures::print(&root(&tree, &rest)?)),
        "words" => one("words", || words::check(&tree)),
        "mutants" => many(|report| mutants::run(&tree, &rest, report)),
        "headers" => one("headers", || headers::check(&tree)),
        "spec" => one("spec", || spec::check(&tree)),
        "symbols" => one("symbols", || symbols::build_and_check(&tree)),
        "man" => one("man", || man::build_and_check(&tree)),
        "sanitize" => many(|report| sanitize::run(&tree, sanitize::Length::Full, report)),
        "loom" => one("loom", || loom::run(&tree)),
        "soak" => one("soak", || soak::run(&tree, &Soak::read(&rest)?)),
        "hostile" => one("hostile", || hostile::run(&tree, &rest)),
        "assault" => match Assault::read(&rest) {
            Ok(assault) => many(|report| assault::run(&tree, &assault, report)),
            Err(wrong) => one("assault", || Err(wrong)),
        },
        "netns" => many(|report| netns::run(&tree, report)),
        "c-tests" => many(|report| c_tests::run(&tree, rest.first().copied(), report)),
        "fuzz" => many(|report| fuzz::run(&tree, seconds(&rest), report)),
        "help" | "--help" | "-h" => {
            print!("{WORDS}");
            ExitCode::SUCCESS
        }
        other => {
            eprint!("xtask: no word '{other}'\n\n{WORDS}");
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
    let words = Words::new(rest).and_then(|words| words.only(&["--nal", "--fault", "--mode"]));
    match words.map(|words| Setting::read(&words).unwrap_or_default()) {
        Ok(setting) => suite::test_in(tree, &setting),
        Err(wrong) => one("test", || Err(wrong)),
    }
}

/// Runs a single check and says what is wrong, without a count.
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

fn prefix(rest: &[&str]) -> Result<PathBuf, String> {
    match rest {
        ["--prefix", dir] => Ok(PathBuf::from(dir)),
        [joined] if joined.starts_with("--prefix=") => {
            Ok(PathBuf::from(&joined["--prefix=".len()..]))
        }
        _ => Err("say where to: cargo xtask dist --prefix DIR".into()),
    }
}

/// The tree to look at: this one, or the one that `--root` names.
fn root(tree: &Tree, rest: &[&str]) -> Result<PathBuf, String> {
    let words = Words::new(rest)?.only(&["--root"])?;
    Ok(words.get("--root").map_or(tree.root.clone(), PathBuf::from))
}

fn seconds(rest: &[&str]) -> u32 {
    rest.first().and_then(|s| s.parse().ok()).unwrap_or(60)
}
