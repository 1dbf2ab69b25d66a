//! The processes that a launcher starts as copies of itself: a rank or an
//! agent before it becomes its program, the job's watchdog, and the keeper of ranks on
//! another machine.
//!
//! A rank must ask the kernel to end it with its launcher. Only the rank itself
//! can, and only before it becomes its program; doing it in a process of its own
//! rather than between fork and exec needs no unsafe code.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::{remote_launcher, watchdog};

/// Call it first in `main` of any binary that calls [`crate::run`]; it returns
/// at once, except in the helper processes that `run` starts, where it never does.
pub fn become_helper_if_asked() {
    let mut args = std::env::args_os().skip(1);
    match args.next() {
        Some(word) if word == EXEC_TIED => become_tied(args.collect()),
        Some(word) if word == GUARD => watchdog::watch(),
        Some(word) if word == REMOTE => remote_launcher::run(),
        _ => {}
    }
}

/// The first argument of a rank or agent to be. After it: the launcher's process id,
/// what messages call the process, the core or `-`, the program and its arguments.
pub(crate) const EXEC_TIED: &str = "--exec-tied";
/// The only argument of yod on another machine.
pub(crate) const REMOTE: &str = "--remote";
/// The only argument of a watchdog.
pub(crate) const GUARD: &str = "--guard-job";

fn become_tied(args: Vec<OsString>) -> ! {
    let [launcher, name, core, program, args @ ..] = &args[..] else {
        eprintln!("yod: {EXEC_TIED} is yod's own");
        exit(2);
    };
    let name = name.to_string_lossy();
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        eprintln!("yod: {name} can't be tied to its launcher: {error}");
        exit(1);
    }
    // The launcher may have died before the request took hold.
    let parent = getppid()
        .map(Pid::as_raw_nonzero)
        .map_or(0, |pid| pid.get());
    if launcher.to_string_lossy() != parent.to_string() {
        exit(1);
    }
    if let Ok(core) = core.to_string_lossy().parse() {
        let mut cores = CpuSet::new();
        cores.set(core);
        if let Err(error) = sched_setaffinity(None, &cores) {
            eprintln!("yod: {name} can't be bound to core {core}: {error}");
        }
    }
    let error = Command::new(program).args(args).exec();
    eprintln!("yod: {name} can't run {program:?}: {error}");
    exit(126);
}
