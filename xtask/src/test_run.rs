//! Runs `cargo test` and names the tests that failed.
//!
//! What the tests print passes through. A run of the whole suite prints more than anyone
//! scrolls back, so the reason of a failed check repeats each failed test with the end of
//! what it printed.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::copied::pass_through;
use crate::report::Outcome;
use crate::shell;

/// Lines repeated of what a failed test printed.
const LINES_PER_TEST: usize = 25;

/// Runs a `cargo test` command, which must end within `limit` if there is one.
pub fn run(cargo: &mut Command, limit: Option<Duration>) -> Outcome {
    cargo.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = cargo.spawn().map_err(|e| format!("cargo test: {e}"))?;
    let stdout = pass_through(child.stdout.take(), std::io::stdout());
    let stderr = pass_through(child.stderr.take(), std::io::stderr());
    let outcome = shell::wait(&mut child, &shell::show(cargo), limit);
    let (stdout, stderr) = (stdout.lines(), stderr.lines());
    outcome.map_err(|wrong| {
        let parts = [vec![wrong], failed_targets(&stderr), failed_tests(&stdout)];
        parts.concat().join("\n        ")
    })
}

/// Cargo's own account: which test programs failed, and of which signal one died.
fn failed_targets(stderr: &[String]) -> Vec<String> {
    let wanted = |line: &&String| {
        let line = line.trim_start();
        line.starts_with("`-p ")
            || line.starts_with("process didn't exit")
            || line.starts_with("error")
    };
    stderr
        .iter()
        .filter(wanted)
        .map(|line| line.trim().to_string())
        .collect()
}

/// The blocks that follow `---- NAME stdout ----`, each cut to its last lines.
fn failed_tests(stdout: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let mut lines = stdout.iter().peekable();
    while let Some(line) = lines.next() {
        let Some(name) = line
            .strip_prefix("---- ")
            .and_then(|l| l.strip_suffix(" stdout ----"))
        else {
            continue;
        };
        let mut block = Vec::new();
        while let Some(line) =
            lines.next_if(|line| !line.starts_with("---- ") && *line != "failures:")
        {
            block.push(line.as_str());
        }
        let cut = block.len().saturating_sub(LINES_PER_TEST);
        found.push(format!("test {name}:"));
        let kept = block[cut..].iter().filter(|line| !line.is_empty());
        found.extend(kept.map(|line| format!("    {line}")));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_named_with_what_they_printed() {
        let text = "\
test one ... ok
test two ... FAILED

failures:

---- two stdout ----

thread 'two' panicked at x.rs:1:
left is not right

failures:
    two

test result: FAILED. 1 passed; 1 failed";
        let lines: Vec<String> = text.lines().map(String::from).collect();
        let found = failed_tests(&lines);
        assert_eq!(
            found,
            [
                "test two:",
                "    thread 'two' panicked at x.rs:1:",
                "    left is not right"
            ]
        );
    }

    #[test]
    fn a_process_that_is_left_behind_does_not_hold_up_the_report() {
        let mut left = Command::new("sh");
        left.args(["-c", "sleep 60 & echo $!; exit 1"]);
        let mut child = left
            .stdout(Stdio::piped())
            .spawn()
            .expect("there is a shell");
        let stdout = pass_through(child.stdout.take(), std::io::sink());
        assert!(child.wait().is_ok_and(|status| !status.success()));
        let sleeper = stdout.lines().remove(0);
        let ended = Command::new("kill").arg(&sleeper).status();
        assert!(ended.is_ok_and(|status| status.success()), "it still ran");
    }

    #[test]
    fn a_test_program_that_died_of_a_signal_is_named() {
        let text = "\
   Compiling x
error: test failed, to rerun pass `-p x --test y`

Caused by:
  process didn't exit successfully: `y` (signal: 11, SIGSEGV: invalid memory reference)
error: 1 target failed:
    `-p x --test y`";
        let lines: Vec<String> = text.lines().map(String::from).collect();
        let found = failed_targets(&lines);
        assert_eq!(found.len(), 4);
        assert!(found[1].contains("SIGSEGV"));
    }
}
