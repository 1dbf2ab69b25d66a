//! Runs the commands of a chapter, in order, in a temporary folder.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::blocks::{self, Block};
use crate::dist;
use crate::report::Outcome;
use crate::shell::{self, Tree};

/// Seconds that one block may take on a loaded machine.
const LIMIT: u64 = 120;

/// Runs the blocks of one chapter.
///
/// # Errors
/// The first block that doesn't do what the book says, with what it printed.
pub fn run(tree: &Tree, chapter: &Path) -> Outcome {
    let folder = tree.fresh_folder(&format!("book/{}", super::stem(chapter)))?;
    let mut shell = Folder {
        folder,
        dist: tree.dist(),
        printed: None,
    };
    for block in blocks::blocks(&blocks::expanded(chapter)?)? {
        let place = format!("{}: line {}", chapter.display(), block.line);
        shell
            .take(&block)
            .map_err(|why| format!("{place}: {why}"))?;
    }
    Ok(())
}

/// Where the commands of a chapter run.
struct Folder {
    folder: PathBuf,
    /// The installed prefix.
    dist: PathBuf,
    /// What the last block printed; none if it was left out.
    printed: Option<String>,
}

impl Folder {
    fn take(&mut self, block: &Block) -> Outcome {
        if let Some(name) = block.value("file") {
            return dist::write(&self.folder.join(name), &block.text);
        }
        match block.language.as_str() {
            "sh" => self.run(block),
            "text" if block.has("output") => self.compare(&block.text),
            "text" => Ok(()),
            other => Err(format!(
                "a block of {other:?} needs a file: {other},file=NAME"
            )),
        }
    }

    fn run(&mut self, block: &Block) -> Outcome {
        self.printed = None;
        let script = self.folder.join(".commands");
        fs::write(&script, &block.text).map_err(|e| e.to_string())?;
        if block.has("elsewhere") {
            return shell::output(Command::new("bash").arg("-n").arg(&script)).map(drop);
        }
        let missing = block.value("needs");
        if let Some(program) = missing.filter(|name| shell::find_program(name).is_none()) {
            println!("   left out without {program}: line {}", block.line);
            return Ok(());
        }
        let log = self.folder.join(".printed");
        let status = self.start(&script, &log)?;
        let printed = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        if status == block.has("fails") {
            let what = match status {
                true => "the commands should have failed",
                false => "the commands failed",
            };
            return Err(format!("{what}; they printed:\n{}", printed.trim_end()));
        }
        self.printed = Some(printed);
        Ok(())
    }

    /// Whether the script succeeds; what it prints goes into `log`.
    fn start(&self, script: &Path, log: &Path) -> Result<bool, String> {
        let log = File::create(log).map_err(|e| e.to_string())?;
        let errors = log.try_clone().map_err(|e| e.to_string())?;
        let mut command = Command::new("timeout");
        command
            .args([
                "--kill-after",
                "5",
                &LIMIT.to_string(),
                "bash",
                "-eu",
                "-o",
                "pipefail",
            ])
            .arg(script)
            .current_dir(&self.folder)
            .stdin(std::process::Stdio::null())
            .stdout(log)
            .stderr(errors);
        self.set_environment(&mut command);
        let began = Instant::now();
        let status = command.status().map_err(|e| e.to_string())?;
        match began.elapsed().as_secs() {
            LIMIT.. => Err(format!("the commands took more than {LIMIT} s")),
            _ => Ok(status.success()),
        }
    }

    /// What a user has set who has followed the chapter on installation.
    fn set_environment(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders = vec![self.dist.join("bin")];
        folders.extend(std::env::split_paths(&path));
        let path = std::env::join_paths(folders).unwrap_or(path);
        let set: [(&str, OsString); 6] = [
            ("PATH", path),
            ("PKG_CONFIG_PATH", self.dist.join("lib/pkgconfig").into()),
            ("CMAKE_PREFIX_PATH", self.dist.clone().into()),
            ("HOME", self.folder.clone().into()),
            // Open MPI starts nothing for root otherwise.
            ("OMPI_ALLOW_RUN_AS_ROOT", "1".into()),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1".into()),
        ];
        command.envs(set);
        let own = |name: &String| name.starts_with("PTL_") || name.starts_with("LINTEL_");
        let inherited = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for name in inherited.filter(own) {
            command.env_remove(name);
        }
        command.env_remove("LD_LIBRARY_PATH");
    }

    fn compare(&self, wanted: &str) -> Outcome {
        let Some(printed) = &self.printed else {
            return Ok(());
        };
        match missing(wanted, printed) {
            None => Ok(()),
            Some(part) => Err(format!(
                "{part:?} isn't in what the commands printed:\n{}",
                printed.trim_end()
            )),
        }
    }
}

/// The first part of a text, between `…` or ends of lines, that doesn't follow the parts
/// before it. Several spaces count as one.
fn missing<'a>(wanted: &'a str, printed: &str) -> Option<&'a str> {
    let plain = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let printed = plain(printed);
    let mut rest = printed.as_str();
    for part in wanted
        .split(['…', '\n'])
        .filter(|part| !part.trim().is_empty())
    {
        let words = plain(part);
        match rest.find(&words) {
            Some(at) => rest = &rest[at + words.len()..],
            None => return Some(part),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_compared_in_order_and_without_what_is_left_open() {
        let printed = "8 B   0.22 µs\nrank 1: hello\n";
        assert_eq!(missing("8 B … µs\nrank 1: hello\n", printed), None);
        assert_eq!(missing("rank 1: …\n8 B\n", printed), Some("8 B"));
        assert_eq!(missing("rank 2\n", printed), Some("rank 2"));
    }
}
