//! Process groups after their leaders ended: what may still be killed, and what has ended.
//!
//! A group's number is that of the process that leads it, and the system gives it to
//! another process once neither the leader nor a member is left. So a group is named by
//! its leader's start as well.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// A group that this program has started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    number: Pid,
    /// When its leader started, in clock ticks since boot; `None` if the
    /// system doesn't report it.
    started: Option<u64>,
}

impl Group {
    /// The group that `leader` leads, which has not been reaped yet.
    pub(crate) fn of(leader: Pid) -> Group {
        let started = Stat::read(&leader.to_string()).map(|stat| stat.started);
        Group {
            number: leader,
            started,
        }
    }

    /// Sends `signal` to all that is left of it.
    pub(crate) fn signal(self, signal: Signal) {
        // A group whose processes have all ended needs no signal.
        let _ = kill_process_group(self.number, signal);
    }

    /// Whether the number was given to another process. It is not while a member is left,
    /// though the leader has ended.
    pub(crate) fn is_reused(self) -> bool {
        let found = Stat::read(&self.number.to_string()).map(|stat| stat.started);
        matches!((found, self.started), (Some(found), Some(started)) if found != started)
    }
}

/// Two words, for the watchdog.
impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.started {
            Some(started) => write!(f, "{} {started}", self.number),
            None => write!(f, "{} -", self.number),
        }
    }
}

impl FromStr for Group {
    type Err = ();

    fn from_str(words: &str) -> Result<Group, ()> {
        let (number, started) = words.split_once(' ').ok_or(())?;
        let number = pid(number.parse().ok()).ok_or(())?;
        let started = started.parse().ok();
        Ok(Group { number, started })
    }
}

/// Waits until nothing of `groups` runs, which were all killed: a killed process needs a
/// moment to end. A zombie counts as ended, since nothing may ever reap it. False if something
/// still runs after `patience`.
pub(crate) fn wait_until_gone(groups: &[Group], patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while any_runs(groups) {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}

fn any_runs(groups: &[Group]) -> bool {
    let numbers = groups.iter().map(|group| group.number);
    let left: Vec<Pid> = numbers
        .filter(|&number| test_kill_process_group(number).is_ok())
        .collect();
    if left.is_empty() {
        return false;
    }
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return true;
    };
    let mut processes = entries
        .flatten()
        .filter_map(|entry| Stat::read(entry.file_name().to_str()?));
    processes.any(|process| process.runs() && left.contains(&process.group))
}

/// Fields of a process that proc_pid_stat(5) describes.
struct Stat {
    state: char,
    group: Pid,
    threads: u64,
    started: u64,
}

impl Stat {
    /// `None` if there is no such process, or no /proc.
    fn read(process: &str) -> Option<Stat> {
        process.parse::<u32>().ok()?;
        let fields = fields_of(process)?;
        Some(Stat {
            state: field(&fields, 3)?,
            group: pid(field(&fields, 5))?,
            threads: field(&fields, 20)?,
            started: field(&fields, 22)?,
        })
    }

    /// Whether it runs code. The first thread of a process may have ended before others.
    fn runs(&self) -> bool {
        !matches!(self.state, 'Z' | 'X') || self.threads > 1
    }
}

/// `None` if the number is no process's: the kernel's own have group 0, and one that is
/// just exiting has -1.
fn pid(number: Option<i32>) -> Option<Pid> {
    Pid::from_raw(number.filter(|&number| number > 0)?)
}

/// The words of `/proc/PROCESS/stat` from the third field on.
pub(crate) fn fields_of(process: &str) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is the command in parentheses and may hold anything.
    let fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some(fields.map(String::from).collect())
}

/// A field by its number in the manual.
pub(crate) fn field<T: FromStr>(fields: &[String], number: usize) -> Option<T> {
    fields.get(number - 3)?.parse().ok()
}

/// How long ranks have to end after a signal before the next, harder one.
pub const GRACE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    /// A process that leads a group and waits.
    fn leader() -> (Child, Group) {
        let mut command = Command::new("sleep");
        let child = command.arg("1000").process_group(0).spawn().unwrap();
        let group = Group::of(Pid::from_child(&child));
        (child, group)
    }

    #[test]
    fn a_zombie_counts_as_gone() {
        let (mut child, group) = leader();
        group.signal(Signal::KILL);
        let gone = wait_until_gone(&[group], PATIENCE);
        let status = child.wait().unwrap();
        assert_eq!((gone, status.signal()), (true, Some(9)));
    }

    #[test]
    fn what_runs_is_waited_for() {
        let (mut child, group) = leader();
        assert!(!wait_until_gone(&[group], Duration::from_millis(20)));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(wait_until_gone(&[group], PATIENCE));
    }

    #[test]
    fn a_number_that_names_a_later_process_is_noticed() {
        let (mut child, group) = leader();
        let earlier = Group {
            started: group.started.map(|ticks| ticks - 1),
            ..group
        };
        let found = [group, earlier].map(Group::is_reused);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(found, [false, true]);
        assert!(!group.is_reused(), "no process has the number");
    }

    #[test]
    fn a_group_is_read_as_it_was_written() {
        let number = Pid::from_raw(17).unwrap();
        for started in [Some(4), None] {
            let group = Group { number, started };
            assert_eq!(group.to_string().parse(), Ok(group));
        }
        for words in ["", "x 1", "-3 1", "0 1", "17"] {
            assert_eq!(words.parse::<Group>(), Err(()), "{words:?}");
        }
    }
}
