//! A process that was started, with the processes that it starts itself.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, waitid};

use crate::group::{Group, field, fields_of};
use crate::outcome::{End, RankOutcome};

/// A process in a group of its own that dies with this one. It stays a zombie until
/// [`Process::reap`], so that its number, which names its group too, can't be given
/// to another.
pub(crate) struct Process {
    child: Child,
    pid: Pid,
    group: Group,
    /// Readable once the process has ended.
    pub(crate) exit: OwnedFd,
    reaped: bool,
}

impl Process {
    /// Starts what [`tied_command`](crate::tied::tied_command) made.
    ///
    /// # Errors
    /// A system call failed.
    pub(crate) fn start(command: &mut Command) -> io::Result<Process> {
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        let exit = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Process {
            child,
            pid,
            group: Group::of(pid),
            exit,
            reaped: false,
        })
    }

    /// The process group: the process and what it started.
    pub(crate) fn group(&self) -> Group {
        self.group
    }

    /// The writing end of its standard input, if that is a pipe; `None` from the second call on.
    pub(crate) fn take_input(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    pub(crate) fn take_output(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    pub(crate) fn take_errors(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Sends `signal` to the process and all that it started.
    pub(crate) fn signal(&self, signal: Signal) {
        self.group.signal(signal);
    }

    /// How the process ended, once it has, without reaping it.
    pub(crate) fn ended(&self) -> Option<RankOutcome> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        let status = waitid(WaitId::Pid(self.pid), options).ok()??;
        let end = match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => End::Exited(code),
            (None, signal) => End::Killed(signal.unwrap_or(0)),
        };
        let pid = self.pid.as_raw_nonzero().get();
        let (user, system) = processor_time(pid).unwrap_or_default();
        Some(RankOutcome {
            pid,
            end,
            user,
            system,
        })
    }

    /// Kills whatever is left, and reaps it.
    pub(crate) fn reap(&mut self) {
        if !self.reaped {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
            self.reaped = true;
        }
    }
}

impl Drop for Process {
    /// No process outlives its owner, not even after an error.
    fn drop(&mut self) {
        self.reap();
    }
}

/// User and system time of an ended, unreaped process and the children it waited for.
fn processor_time(pid: i32) -> Option<(Duration, Duration)> {
    let fields = fields_of(&pid.to_string())?;
    let ticks = |number| field::<u64>(&fields, number);
    let second = rustix::param::clock_ticks_per_second().max(1);
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / second);
    // proc(5): 14 utime, 15 stime, 16 cutime, 17 cstime.
    Some((time(ticks(14)? + ticks(16)?), time(ticks(15)? + ticks(17)?)))
}
