//! An archive of the sources with all dependencies, which builds without a network.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::report::Outcome;
use crate::shell::{self, Arguments, Tree};

/// Has cargo take dependencies from the archive.
const VENDORED: &str = "\
[source.crates-io]
replace-with = \"vendored\"

[source.vendored]
directory = \"vendor\"
";

/// `cargo xtask vendor [--out FILE] [--try]`.
pub fn run(tree: &Tree, words: &[&str]) -> Outcome {
    let is_tried = words.contains(&"--try");
    let rest: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| *word != "--try")
        .collect();
    let options = Arguments::new(&rest)?.only(&["--out"])?;
    let name = format!("lintel-{}", tree.version()?);
    let default = tree.target.join(format!("vendor/{name}-vendored.tar.gz"));
    let out = options.get("--out").map_or(default, PathBuf::from);
    archive(tree, &out)?;
    println!("   {}", out.display());
    match is_tried {
        true => try_offline(tree, &out, &name),
        false => Ok(()),
    }
}

/// Makes the archive.
pub fn archive(tree: &Tree, out: &Path) -> Outcome {
    let name = format!("lintel-{}", tree.version()?);
    let folder = tree.fresh_folder("vendor/sources")?;
    sources(tree, &folder.join(&name))?;
    pack(tree, &folder, &name, out)
}

/// Puts the last commit and the sources of all dependencies into a folder.
pub fn sources(tree: &Tree, to: &Path) -> Outcome {
    export(tree, to)?;
    add_dependencies(tree, to)
}

/// The files of the last commit.
fn export(tree: &Tree, to: &Path) -> Outcome {
    std::fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    let mut git = Command::new("git");
    git.args(["archive", "--format=tar", "HEAD"])
        .current_dir(&tree.root);
    let mut git = git
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("git: {e}"))?;
    let archive = git.stdout.take().ok_or("git has no output")?;
    let unpacked = shell::run(Command::new("tar").arg("-x").current_dir(to).stdin(archive));
    let exported = git.wait().map_err(|e| format!("git: {e}"))?;
    match exported.success() {
        true => unpacked,
        false => Err("git archive failed: this needs a clone of the repository".into()),
    }
}

/// Puts the sources of all dependencies into `vendor`, and has cargo look there.
fn add_dependencies(tree: &Tree, sources: &Path) -> Outcome {
    let mut cargo = tree.cargo();
    cargo.args([
        "vendor",
        "--locked",
        "--quiet",
        "--versioned-dirs",
        "vendor",
    ]);
    shell::run(cargo.current_dir(sources).stdout(Stdio::null()))?;
    let config = sources.join(".cargo/config.toml");
    let text = format!("{}\n{VENDORED}", shell::read(&config)?);
    std::fs::write(&config, text).map_err(|e| format!("{}: {e}", config.display()))
}

/// The same commit gives the same archive.
fn pack(tree: &Tree, folder: &Path, name: &str, out: &Path) -> Outcome {
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%cI"])
        .current_dir(&tree.root);
    let time = shell::output(&mut git)?;
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .arg(format!("--mtime={}", time.trim()))
        .args(["--use-compress-program=gzip -n", "-cf"])
        .arg(out)
        .arg("-C")
        .arg(folder)
        .arg(name);
    shell::run(&mut tar)
}

/// Checks the library's crate with nothing but the archive and the toolchain.
fn try_offline(tree: &Tree, archive: &Path, name: &str) -> Outcome {
    let folder = tree.fresh_folder("vendor/try")?;
    shell::run(
        Command::new("tar")
            .arg("-xf")
            .arg(archive)
            .arg("-C")
            .arg(&folder),
    )?;
    let mut cargo = tree.cargo();
    cargo
        .args([
            "check",
            "--offline",
            "--locked",
            "--quiet",
            "--package",
            "portals4-c",
        ])
        .current_dir(folder.join(name))
        .env("CARGO_HOME", folder.join("home"))
        .env("CARGO_TARGET_DIR", folder.join("target"));
    shell::run(&mut cargo)
}
