//! The watchdog of a job: a small process that outlives a killed launcher just long
//! enough to end every process of the job and to remove its shared memory.
//!
//! The launcher writes `files NAME` first, `group N START` for each rank's process group
//! and `done` at the end; an end of input without `done` means that the launcher died. The
//! job's name is on no command line, where other users would read it: a user who knows it
//! before the first rank starts can create files of that name.

use std::ffi::{CStr, OsStr};
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio, exit};
use std::time::Duration;

use rustix::process::Signal;
use rustix::thread::set_name;

use crate::group::{Group, wait_until_gone};
use crate::stale_segments::{self, SHARED_MEMORY};
use crate::tied::THIS_BINARY;

/// The launcher's end of the watchdog.
pub(crate) struct Watchdog {
    child: Child,
    input: ChildStdin,
}

impl Watchdog {
    /// Starts the watchdog of the job or part of a job whose files bear the name `id`.
    pub(crate) fn start(id: &str) -> io::Result<Watchdog> {
        let mut child = Command::new(THIS_BINARY)
            .arg0(OsStr::from_bytes(NAME.to_bytes()))
            .arg(GUARD)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let mut input = child.stdin.take().expect("its input was asked for");
        writeln!(input, "{FILES}{id}")?;
        Ok(Watchdog { child, input })
    }

    /// Names a process group to be ended.
    pub(crate) fn on_group(&mut self, group: Group) {
        // A watchdog that has died can't be notified; the ranks still die with their launcher.
        let _ = writeln!(self.input, "{GROUP}{group}");
    }

    /// Ends the watchdog without further action, and waits for it.
    pub(crate) fn dismiss(mut self) {
        let _ = writeln!(self.input, "{DONE}");
        drop(self.input);
        let _ = self.child.wait();
    }
}

/// Runs the watchdog's process until its launcher dismisses it or dies.
pub(crate) fn watch() -> ! {
    // It has the name of the link by which it was started; only `ps` and its like look at it.
    let _ = set_name(NAME);
    let mut groups: Vec<Group> = Vec::new();
    let mut files = None;
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if line == DONE {
            exit(0);
        }
        if let Some(name) = line.strip_prefix(FILES) {
            files = Some(name.to_owned());
        }
        let group = line.strip_prefix(GROUP);
        groups.extend(group.and_then(|words| words.parse::<Group>().ok()));
    }
    groups.retain(|group| !group.is_reused());
    for group in &groups {
        group.signal(Signal::KILL);
    }
    wait_until_gone(&groups, EXIT_TIMEOUT);
    if let Some(name) = files {
        let _ = stale_segments::remove(Path::new(SHARED_MEMORY), &name);
    }
    exit(0);
}

/// What the system and the command line call its process.
const NAME: &CStr = c"yod-guard";
/// The only argument of a watchdog.
pub(crate) const GUARD: &str = "--guard-job";
const FILES: &str = "files ";
const GROUP: &str = "group ";
const DONE: &str = "done";
/// How long killed processes may take to end: one may be held up in the kernel.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
