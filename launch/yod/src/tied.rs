//! Processes that die with their launcher: the command that starts one, and what it does
//! before it becomes its program.
//!
//! A rank must ask the kernel to end it with its launcher. Only the rank itself
//! can, and only before it becomes its program; doing it in a process of its own
//! rather than between fork and exec needs no unsafe code.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::process::{Command, exit};

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};
use rustix::thread::{CpuSet, sched_setaffinity};

/// A command that becomes `program`, tied to this process and bound to `core` if
/// there is one. `name` is what messages call it.
pub(crate) fn tied_command(name: &str, program: &OsStr, core: Option<usize>) -> Command {
    let core = core.map_or("-".into(), |core| core.to_string());
    let launcher = getpid().as_raw_nonzero().to_string();
    let mut command = Command::new(THIS_BINARY);
    command
        .arg0("yod-rank")
        .args([EXEC_TIED, &launcher, name, &core])
        .arg(program)
        .process_group(0);
    command
}

pub(crate) fn become_tied(args: Vec<OsString>) -> ! {
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

/// The first argument of a process that becomes a rank or an agent. Behind it: the
/// launcher's process id, what messages call the process, the core or `-`, the program and
/// its arguments.
pub(crate) const EXEC_TIED: &str = "--exec-tied";
/// The running binary, even if its file was replaced meanwhile.
pub(crate) const THIS_BINARY: &str = "/proc/self/exe";
