//! The guard of a job: a small process that outlives a killed launcher just long
//! enough to end every process of the job and to remove its shared memory.
//!
//! The launcher writes `group N` for each rank's process group and `done` at the
//! end; an end of input without `done` means that the launcher died.

use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio, exit};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::helper::GUARD;
use crate::leftovers::{self, SHARED_MEMORY};
use crate::process::{THIS_BINARY, wait_until_gone};

/// The launcher's end of the guard.
pub(crate) struct Guard {
    child: Child,
    input: ChildStdin,
}

impl Guard {
    /// Starts the guard of the job or part of a job whose files bear the name `id`.
    pub(crate) fn start(id: &str) -> io::Result<Guard> {
        let mut child = Command::new(THIS_BINARY)
            .arg0("yod-guard")
            .args([GUARD, id])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let input = child.stdin.take().expect("its input was asked for");
        Ok(Guard { child, input })
    }

    /// Names a process group to be ended.
    pub(crate) fn on_group(&mut self, group: Pid) {
        // A guard that is gone can't be told; the kernel's tie still ends the ranks.
        let _ = writeln!(self.input, "group {}", group.as_raw_nonzero());
    }

    /// Tells the guard that the job ended in order, and waits for it.
    pub(crate) fn dismiss(mut self) {
        let _ = writeln!(self.input, "done");
        drop(self.input);
        let _ = self.child.wait();
    }
}

/// The guard's life.
pub(crate) fn watch(id: Option<OsString>) -> ! {
    let mut groups = Vec::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if line == "done" {
            exit(0);
        }
        let number = line
            .strip_prefix("group ")
            .and_then(|number| number.parse().ok());
        groups.extend(number.and_then(Pid::from_raw));
    }
    for &group in &groups {
        let _ = kill_process_group(group, Signal::KILL);
    }
    wait_until_gone(&groups, Duration::from_secs(2));
    if let Some(id) = id {
        let _ = leftovers::remove(Path::new(SHARED_MEMORY), &id.to_string_lossy());
    }
    exit(0);
}
