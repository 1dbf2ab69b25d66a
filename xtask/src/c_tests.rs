//! Compiles `tests/c/*.c` as a user would, and starts them with yod.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::report::{Outcome, Report};
use crate::shell::{self, Tree};

/// Longer than any of them takes on a loaded machine; the programs' own waits
/// are shorter, so that a lost message is told by the program that missed it.
const LIMIT: Duration = Duration::from_secs(90);

/// How a program gets at the library.
#[derive(Clone, Copy)]
enum Link {
    Shared,
    Static,
    /// Not at all: the program loads it.
    Loaded,
}

/// Runs every program, or the one that is named, against `target/dist`.
pub fn run(tree: &Tree, only: Option<&str>, report: &mut Report) {
    let dist = tree.dist();
    for source in shell::files(&tree.path("tests/c"), "c") {
        let name = stem(&source);
        if only.is_some_and(|only| only != name) {
            continue;
        }
        let link = if name.starts_with("dlopen") {
            Link::Loaded
        } else {
            Link::Shared
        };
        report.check(&format!("C: {name}"), || {
            compile_and_start(tree, &dist, &source, link)
        });
        if name == "put_pingpong" {
            report.check(&format!("C: {name}, linked statically"), || {
                compile_and_start(tree, &dist, &source, Link::Static)
            });
        }
    }
    if only.is_none() {
        report.check("C: the example of README.md", || {
            readme_example(tree, &dist)
        });
    }
}

fn compile_and_start(tree: &Tree, dist: &Path, source: &Path, link: Link) -> Outcome {
    let program = compile(tree, dist, source, link)?;
    start(dist, &program)
}

fn compile(tree: &Tree, dist: &Path, source: &Path, link: Link) -> Result<PathBuf, String> {
    let folder = tree.target.join("c-tests");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let suffix = if matches!(link, Link::Static) {
        "-static"
    } else {
        ""
    };
    let program = folder.join(format!("{}{suffix}", stem(source)));
    let flags = |words: &[&str]| pkg_config(dist, words);
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .arg("-o")
        .arg(&program)
        .arg(source)
        .args(flags(&["--cflags"])?);
    match link {
        Link::Shared => cc.args(flags(&["--libs"])?),
        Link::Static => cc.args(static_flags(&flags(&["--static", "--libs"])?)),
        Link::Loaded => cc.arg("-ldl"),
    };
    shell::output(&mut cc)?;
    Ok(program)
}

/// pkg-config names libraries the same either way; the archive's exact file
/// name is what tells the linker not to take the shared one.
fn static_flags(flags: &[String]) -> Vec<String> {
    flags
        .iter()
        .map(|flag| match flag.as_str() {
            "-lportals" => "-l:libportals.a".into(),
            other => other.into(),
        })
        .collect()
}

fn pkg_config(dist: &Path, words: &[&str]) -> Result<Vec<String>, String> {
    let flags = shell::output(
        Command::new("pkg-config")
            .env("PKG_CONFIG_PATH", dist.join("lib/pkgconfig"))
            .args(words)
            .arg("portals4"),
    )?;
    Ok(flags.split_whitespace().map(String::from).collect())
}

fn start(dist: &Path, program: &Path) -> Outcome {
    let mut yod = Command::new(dist.join("bin/yod"));
    yod.args(["-n", "2"])
        .arg(program)
        .env("LD_LIBRARY_PATH", dist.join("lib"));
    shell::run_within(&mut yod, LIMIT)
}

/// The program that README.md shows does what README.md says.
fn readme_example(tree: &Tree, dist: &Path) -> Outcome {
    let text = shell::read(&tree.path("README.md"))?;
    let body = text
        .split_once("```c\n")
        .and_then(|(_, rest)| rest.split_once("```"))
        .ok_or("README.md shows no C program")?
        .0;
    let folder = tree.target.join("c-tests");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    let source = folder.join("hello.c");
    std::fs::write(&source, body).map_err(|e| e.to_string())?;
    let program = compile(tree, dist, &source, Link::Shared)?;
    let env: HashMap<&str, PathBuf> = HashMap::from([("LD_LIBRARY_PATH", dist.join("lib"))]);
    let said = shell::output(
        Command::new(dist.join("bin/yod"))
            .args(["-n", "2"])
            .arg(program)
            .envs(env),
    )?;
    match said.matches("hello, portals").count() {
        2 => Ok(()),
        _ => Err(format!("two ranks should have greeted: {said:?}")),
    }
}

fn stem(source: &Path) -> String {
    let stem = source.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
