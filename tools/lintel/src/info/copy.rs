//! Whether cross-memory attach works here: a child tries to read its parent, which is
//! what two ranks of a job are to each other, or less.

use std::fs;
use std::process::{Command, Stdio};

use crate::error::Result;
use crate::raw::Region;

/// The hidden command that the child runs.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Probe {
    pid: u32,
    address: u64,
}

/// The hidden subcommand that probes from a child process.
pub const NAME: &str = "probe-copy";

/// What was found, in one sentence part, with the reason when it doesn't work.
pub fn probe() -> String {
    match try_child() {
        Ok(None) => "large messages by cross-memory attach".into(),
        Ok(Some(refusal)) => format!(
            "no cross-memory attach ({refusal}{}), so large messages are copied twice",
            reason()
        ),
        Err(error) => format!("cross-memory attach could not be tried ({error})"),
    }
}

/// Why cross-memory attach doesn't work here, and what would allow it; `None` if it works.
pub fn refusal() -> Option<String> {
    match try_child() {
        Ok(refusal) => refusal.map(|refusal| format!("{refusal}{}", reason())),
        Err(error) => Some(error.to_string()),
    }
}

/// The child's side.
///
/// # Errors
/// Why the copy was refused.
pub fn probe_from_child(probe: Probe) -> Result<()> {
    use crate::error::During;
    let landing = Region::private(64).during("allocating")?;
    landing
        .read_process(probe.pid, probe.address, 64)
        .during("process_vm_readv")
}

fn try_child() -> std::io::Result<Option<String>> {
    let source = Region::private(64)?;
    let output = Command::new(std::env::current_exe()?)
        .arg(NAME)
        .arg(std::process::id().to_string())
        .arg(source.address().to_string())
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(None);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().trim_start_matches("lintel: ");
    Ok(Some(said.to_owned()))
}

fn reason() -> String {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").unwrap_or_default();
    match scope.trim() {
        "" | "0" => "; a container's system call filter may forbid it".into(),
        scope => format!("; kernel.yama.ptrace_scope is {scope}, 0 would allow it"),
    }
}
