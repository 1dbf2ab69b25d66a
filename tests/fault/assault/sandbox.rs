//! Where an attack runs: in mount, process, network and IPC namespaces of its own, with
//! a `/dev/shm` of its own, from which nothing can escape and in which nothing is left.
//!
//! ```text
//!   fault-assault run NAME                    as the user
//!     └── unshare … sh                        process 1: takes in orphans
//!           └── fault-assault inside NAME     mounts, copies programs, attacks
//! ```
//!
//! A user who isn't root also gets a user namespace, and is the only user in it.

use crate::Options;
use crate::attack::{Attack, Needs};
use lintel_fault::worker::Worker;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What an attack says, when it fails, of what went wrong.
pub type Outcome = Result<(), String>;

const SHARED_MEMORY: &str = "/dev/shm";
/// Programs and libraries of the sandbox, readable by every user in it.
const PLACE: &str = "/mnt";
/// Far more than any attack needs that isn't about its end.
const SHARED_MEMORY_SIZE: &str = "size=4g,mode=1777";

/// Whether this process is the superuser, or the one of its user namespace.
pub fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|me| me.uid() == 0)
}

/// Whether processes of several users can be started: not in a user namespace that has
/// but one.
pub fn has_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let count = map.split_whitespace().nth(2);
    is_root() && count.and_then(|count| count.parse().ok()) > Some(1_u64)
}

fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "--pid", "--net", "--ipc", "--mount-proc"]);
    command.args(["--fork", "--kill-child=SIGKILL"]);
    command
}

/// Whether an attack that needs this can run here.
pub fn able(needs: Needs) -> Outcome {
    if needs == Needs::Root && !has_users() {
        return Err("needs root, for processes of several users".into());
    }
    let tried = unshare().arg("true").stdin(Stdio::null()).output();
    match tried {
        Ok(done) if done.status.success() => Ok(()),
        Ok(done) => Err(format!(
            "no namespaces here: {}",
            String::from_utf8_lossy(&done.stderr).trim()
        )),
        Err(why) => Err(format!(
            "unshare: {why}; on Debian: sudo apt-get install -y util-linux"
        )),
    }
}

/// Runs `fault-assault inside …` with the same words, in namespaces.
pub fn enter(attack: &Attack, words: &[String], limit: Duration) -> Outcome {
    let me = std::env::current_exe().map_err(|why| why.to_string())?;
    let mut command = unshare();
    command.args(["sh", "-c", "\"$@\"; exit $?", "sh"]);
    command.arg(me).args(["inside", attack.name]).args(words);
    command.stdin(Stdio::null());
    for name in [
        "PTL_NAL",
        "PTL_MODE",
        "PTL_IFACE",
        "PTL_CONN",
        "LINTEL_FAULT",
    ] {
        command.env_remove(name);
    }
    // Where there is no /proc the loader knows no other way.
    command.env("LD_LIBRARY_PATH", "/mnt/lib");
    command.envs(attack.over.environment().iter().copied());
    let mut child = command.spawn().map_err(|why| format!("unshare: {why}"))?;
    let until = Instant::now() + limit;
    while Instant::now() < until {
        match child.try_wait().map_err(|why| why.to_string())? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(format!("it ended with {status}")),
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    // With it go all processes of its namespace.
    let _ = child.kill();
    let _ = child.wait();
    Err(format!("it didn't end within {} s", limit.as_secs()))
}

/// Inside: mounts, copies what attacks start, brings the network up.
pub fn prepare(options: &Options) -> Outcome {
    // Through a file system over which another one is mounted then, so that what is
    // to be copied may be anywhere.
    mount(SHARED_MEMORY, "mode=0755")?;
    let (bin, lib) = ("/dev/shm/bin", "/dev/shm/lib");
    for folder in [bin, lib] {
        std::fs::create_dir(folder).map_err(|why| format!("{folder}: {why}"))?;
    }
    copy(&options.prefix.join("bin"), bin)?;
    copy(&options.programs, bin)?;
    copy(&options.prefix.join("lib"), lib)?;
    let me = std::env::current_exe().map_err(|why| why.to_string())?;
    let worker = me.with_file_name("fault-worker");
    run(Command::new("cp").arg(worker).arg(bin))?;
    run(Command::new("mount").args(["--bind", SHARED_MEMORY, PLACE]))?;
    mount(SHARED_MEMORY, SHARED_MEMORY_SIZE)?;
    run(Command::new(program("wire")).arg("up"))
}

/// Copies the files of a folder, links as what they point to.
fn copy(from: &Path, to: &str) -> Outcome {
    let entries = std::fs::read_dir(from).map_err(|why| format!("{}: {why}", from.display()))?;
    let files = entries.flatten().map(|entry| entry.path());
    let files: Vec<PathBuf> = files.filter(|path| path.is_file()).collect();
    run(Command::new("cp").arg("-L").args(files).arg(to))
}

fn mount(at: &str, options: &str) -> Outcome {
    run(Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs", at]))
}

/// A program of the sandbox.
pub fn program(name: &str) -> PathBuf {
    Path::new(PLACE).join("bin").join(name)
}

/// A folder of a user's, that nobody else may look into.
pub fn home(name: &str, user: u32) -> Result<PathBuf, String> {
    let path = Path::new(PLACE).join(name);
    std::fs::create_dir_all(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    let private = Permissions::from_mode(0o700);
    std::fs::set_permissions(&path, private).map_err(|why| why.to_string())?;
    std::os::unix::fs::chown(&path, Some(user), Some(user)).map_err(|why| why.to_string())?;
    Ok(path)
}

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> Outcome {
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|why| format!("{command:?}: {why}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(format!(
            "{command:?}: {}: {}",
            done.status,
            String::from_utf8_lossy(&done.stderr).trim()
        )),
    }
}

/// A file system mounted over another one until this is dropped.
pub struct Mounted(&'static str);

impl Mounted {
    /// A `/dev/shm` of so many KiB.
    pub fn shared_memory_of(kib: u32) -> Result<Mounted, String> {
        mount(SHARED_MEMORY, &format!("size={kib}k,mode=1777"))?;
        Ok(Mounted(SHARED_MEMORY))
    }

    /// Nothing at all at that place.
    pub fn nothing_at(place: &'static str) -> Result<Mounted, String> {
        mount(place, "size=4k,mode=0755")?;
        Ok(Mounted(place))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a process that is just being killed may still be in it.
        let _ = run(Command::new("umount").args(["--lazy", self.0]));
    }
}

/// Names in `/dev/shm`, and in the places of segments without a name.
pub fn in_shared_memory() -> Vec<String> {
    let entries = std::fs::read_dir(SHARED_MEMORY).into_iter().flatten();
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| name.starts_with("lintel-")).collect()
}

/// Resident memory of a process, KiB.
pub fn resident(process: u32) -> Result<u64, String> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).map_err(|why| format!("{path}: {why}"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|rest| rest.trim().split(' ').next()?.parse().ok());
    number.ok_or(format!("{path} shows no VmRSS"))
}

/// Fails where a signal ended a process that is over, as SIGBUS would.
pub fn not_ended_by_signal(who: &str, worker: &mut Worker) -> Outcome {
    use std::os::unix::process::ExitStatusExt;
    match worker.ended().and_then(|status| status.signal()) {
        Some(signal) => Err(format!(
            "signal {signal} ended {who}; it had said: {}",
            worker.stderr()
        )),
        None => Ok(()),
    }
}
