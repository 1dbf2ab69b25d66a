//! The source tree, and the programs that work on it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::copied::pass_through;
use crate::report::Outcome;

/// Where the sources are and where cargo builds.
pub struct Tree {
    pub root: PathBuf,
    pub target: PathBuf,
    pub packages: Vec<Package>,
}

/// One crate of the workspace as `cargo metadata` describes it.
pub struct Package {
    pub name: String,
    /// The crate's folder, relative to the root: `core/types`.
    pub folder: String,
    /// Root source files of its libraries and programs.
    pub roots: Vec<PathBuf>,
    /// Other workspace crates it needs, tests excluded.
    pub needs: Vec<String>,
    /// Other workspace crates that only its tests need.
    pub tests_need: Vec<String>,
}

impl Tree {
    /// Asks cargo; xtask always runs through `cargo run`, which sets `CARGO`.
    pub fn find() -> Result<Tree, String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .ok_or("xtask has no parent folder")?
            .to_path_buf();
        let text = output(
            cargo(&root)
                .args(["metadata", "--no-deps", "--format-version", "1"])
                .stderr(Stdio::inherit()),
        )?;
        let metadata: Value =
            serde_json::from_str(&text).map_err(|e| format!("cargo metadata: {e}"))?;
        let target = metadata["target_directory"]
            .as_str()
            .ok_or("cargo metadata names no target_directory")?
            .into();
        let packages = list(&metadata["packages"])
            .iter()
            .map(|package| Package::read(package, &root))
            .collect();
        Ok(Tree {
            root,
            target,
            packages,
        })
    }

    pub fn cargo(&self) -> Command {
        cargo(&self.root)
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The version of all packages.
    pub fn version(&self) -> Result<String, String> {
        let text = read(&self.path("Cargo.toml"))?;
        let table: toml::Table = text.parse().map_err(|e| format!("Cargo.toml: {e}"))?;
        let version = table["workspace"]["package"]["version"].as_str();
        version
            .map(String::from)
            .ok_or("Cargo.toml has no version".into())
    }

    /// Where `test` and `demo` install to.
    pub fn dist(&self) -> PathBuf {
        self.target.join("dist")
    }

    pub fn has_package(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package.name == name)
    }

    /// The folder of a crate under `target`, made anew.
    pub fn fresh_folder(&self, name: &str) -> Result<PathBuf, String> {
        let folder = self.target.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        }
        std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        Ok(folder)
    }
}

impl Package {
    fn read(package: &Value, root: &Path) -> Package {
        let manifest = PathBuf::from(text(&package["manifest_path"]));
        let folder = manifest.parent().unwrap_or(root);
        let folder = folder.strip_prefix(root).unwrap_or(folder);
        let roots = list(&package["targets"])
            .iter()
            .filter(|target| {
                list(&target["kind"]).iter().any(|kind| {
                    !matches!(text(kind), "test" | "bench" | "example" | "custom-build")
                })
            })
            .map(|target| PathBuf::from(text(&target["src_path"])))
            .collect();
        let arrows = |tests: bool| {
            list(&package["dependencies"])
                .iter()
                .filter(|arrow| arrow["path"].is_string())
                .filter(|arrow| (text(&arrow["kind"]) == "dev") == tests)
                .map(|arrow| text(&arrow["name"]).to_string())
                .collect()
        };
        Package {
            name: text(&package["name"]).into(),
            folder: folder.display().to_string(),
            roots,
            needs: arrows(false),
            tests_need: arrows(true),
        }
    }
}

fn cargo(root: &Path) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(root);
    command
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Options after a command: names that begin with `--`, each with a value as the next
/// argument or after a `=`.
pub struct Arguments(Vec<(String, String)>);

impl Arguments {
    pub fn new(words: &[&str]) -> Result<Arguments, String> {
        let mut read = Vec::new();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (name, joined) = match word.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (*word, None),
            };
            let value = joined.or_else(|| words.next().copied());
            match value {
                Some(value) if name.starts_with("--") => read.push((name.into(), value.into())),
                Some(_) => return Err(format!("'{word}' is not an option with a value")),
                None => return Err(format!("{name} needs a value")),
            }
        }
        Ok(Arguments(read))
    }

    /// The value of an option, if it was given.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Refuses options that aren't among `names`.
    pub fn only(self, names: &[&str]) -> Result<Arguments, String> {
        match self
            .0
            .iter()
            .find(|(name, _)| !names.contains(&name.as_str()))
        {
            Some((name, _)) => Err(format!(
                "unknown option {name}; the options are {}",
                names.join(", ")
            )),
            None => Ok(self),
        }
    }
}

/// Runs a command whose output goes to the terminal.
pub fn run(command: &mut Command) -> Outcome {
    let status = command
        .status()
        .map_err(|e| format!("{}: {e}", show(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} ended with {status}", show(command)))
    }
}

/// Runs a command and returns its standard output. If it fails, its standard error becomes
/// part of the error.
pub fn output(command: &mut Command) -> Result<String, String> {
    let done = command
        .output()
        .map_err(|e| format!("{}: {e}", show(command)))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(format!(
        "{} ended with {}\n{}",
        show(command),
        done.status,
        String::from_utf8_lossy(&done.stderr).trim_end()
    ))
}

/// Runs a command that must end within `limit`, and ends it otherwise.
pub fn run_within(command: &mut Command, limit: Duration) -> Outcome {
    let mut child = command
        .spawn()
        .map_err(|e| format!("{}: {e}", show(command)))?;
    wait(&mut child, &show(command), Some(limit))
}

/// Lines that [`run_quoting`] repeats.
const QUOTED: usize = 40;

/// As [`run_within`]; an error repeats the end of what the command wrote to stderr, since
/// nobody scrolls back through a long run.
pub fn run_quoting(command: &mut Command, limit: Duration) -> Outcome {
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{}: {e}", show(command)))?;
    let stderr = pass_through(child.stderr.take(), std::io::stderr());
    let outcome = wait(&mut child, &show(command), Some(limit));
    let stderr = stderr.lines();
    outcome.map_err(|wrong| {
        let last = &stderr[stderr.len().saturating_sub(QUOTED)..];
        [&[wrong], last].concat().join("\n        ")
    })
}

/// Waits for a child, and ends it if it is still running after `limit`.
pub fn wait(child: &mut Child, name: &str, limit: Option<Duration>) -> Outcome {
    let until = limit.map(|limit| Instant::now() + limit);
    loop {
        match child.try_wait().map_err(|e| e.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("{name} ended with {status}")),
            None if until.is_some_and(|until| Instant::now() >= until) => break,
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    end(child);
    let limit = limit.unwrap_or_default().as_secs();
    Err(format!("{name} did not end within {limit} s"))
}

/// Asks first, so that a launcher ends its own children, then insists.
pub fn end(child: &mut Child) {
    let id = child.id().to_string();
    let asked = Command::new("kill").args(["-TERM", &id]).status();
    if asked.is_ok_and(|status| status.success()) {
        let until = Instant::now() + Duration::from_secs(5);
        while Instant::now() < until {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    // A child that ended in between needs no more.
    let _ = child.kill();
    let _ = child.wait();
}

/// Finds a program on `PATH`.
pub fn find_program(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

pub fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// The files of a folder with one extension, in name order.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == extension))
        .collect();
    found.sort();
    found
}

/// A folder and all folders below it, without what was built and what is hidden.
pub fn source_folders(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![root.to_path_buf()];
    let mut at = 0;
    while let Some(folder) = found.get(at) {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.map(|entry| entry.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            path.is_dir() && name != "target" && !name.starts_with('.')
        });
        let folders: Vec<PathBuf> = folders.collect();
        found.extend(folders);
        at += 1;
    }
    found.sort();
    found
}

/// The files of a folder and of all folders in it.
pub fn files_below(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = files(folder, extension);
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(files_below(&entry.path(), extension));
        }
    }
    found
}

/// A command as a person would type it, without the program's folder.
pub fn show(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let mut words = vec![
        program
            .file_name()
            .unwrap_or(program.as_os_str())
            .to_string_lossy()
            .into_owned(),
    ];
    words.extend(command.get_args().map(|a| a.to_string_lossy().into_owned()));
    words.join(" ")
}
