//! What the tests of whole jobs share: launchers that are run, read and signalled.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead, BufReader, Read};
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

pub const PROBE: &str = env!("CARGO_BIN_EXE_yod-probe");
pub const PATIENCE: Duration = Duration::from_secs(60);
/// What a launcher that is to end may take for that: its ranks have five seconds.
const GRACE: Duration = Duration::from_secs(10);

pub fn yod(args: &[&str]) -> Command {
    let mut command = program(env!("CARGO_BIN_EXE_yod"));
    command.args(args);
    command
}

/// A program with its streams piped and with the default actions for signals: what starts
/// the tests may ignore interrupts, as a shell does for what it runs in the background.
pub fn program(path: &str) -> Command {
    let mut command = Command::new("env");
    command
        .args(["--default-signal=INT,QUIT,HUP,TERM", path])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs to the end: exit code, standard output, standard error.
pub fn run(args: &[&str]) -> (i32, String, String) {
    read(output_of(yod(args).spawn().unwrap()))
}

/// Reads both streams to their ends, and waits.
pub fn output_of(mut child: Child) -> Output {
    let streams = (child.stdout.take(), child.stderr.take());
    within_patience(child, move |child| {
        let (out, err) = streams;
        let err = std::thread::spawn(move || whole(err));
        let stdout = whole(out);
        Output {
            status: child.wait().unwrap(),
            stdout,
            stderr: err.join().unwrap(),
        }
    })
}

fn whole(stream: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(mut stream) = stream {
        stream.read_to_end(&mut bytes).unwrap();
    }
    bytes
}

pub fn read(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// Does `work`, which waits for the launcher's end. One that doesn't end in time is ended.
pub fn within_patience<T: Send + 'static>(
    child: impl Into<Launcher>,
    work: impl FnOnce(&mut Child) -> T + Send + 'static,
) -> T {
    let mut launcher = child.into();
    let pid = Pid::from_child(&launcher);
    let (done, end) = mpsc::channel();
    std::thread::spawn(move || {
        let result = work(&mut launcher);
        drop(launcher);
        done.send(result)
    });
    end.recv_timeout(PATIENCE).unwrap_or_else(|_| {
        let _ = kill_process(pid, Signal::TERM);
        panic!("the launcher ends in time")
    })
}

/// A launcher's process. A test that fails while it runs asks it to end, with its job.
pub struct Launcher(Child);

impl From<Child> for Launcher {
    fn from(child: Child) -> Launcher {
        Launcher(child)
    }
}

impl Deref for Launcher {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Launcher {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        let runs = |child: &mut Child| matches!(child.try_wait(), Ok(None));
        if !runs(&mut self.0) {
            return;
        }
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let end = Instant::now() + GRACE;
        while runs(&mut self.0) && Instant::now() < end {
            std::thread::yield_now();
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A running launcher whose lines are read one by one.
pub struct Running {
    pub child: Launcher,
    pub stdout: BufReader<std::process::ChildStdout>,
    pub stderr: BufReader<std::process::ChildStderr>,
    /// Dropped with the rest: the watchdog then knows that the test reads no more.
    _reading: mpsc::Sender<()>,
}

impl Running {
    pub fn start(args: &[&str]) -> Running {
        Running::of(&mut yod(args))
    }

    pub fn of(command: &mut Command) -> Running {
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Running {
            _reading: watchdog(&child),
            child: child.into(),
            stdout,
            stderr,
        }
    }

    pub fn lines(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| line_of(&mut self.stdout)).collect()
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// What is left of both streams, and the end.
    pub fn finish(mut self) -> (ExitStatus, String, String) {
        within_patience(self.child, move |child| {
            let (mut out, mut err) = (String::new(), String::new());
            self.stdout.read_to_string(&mut out).unwrap();
            self.stderr.read_to_string(&mut err).unwrap();
            (child.wait().unwrap(), out, err)
        })
    }
}

/// Asks a launcher to end if the test reads from it for longer than all waits may take, so
/// that a read of a line that never comes ends in a failure.
fn watchdog(child: &Child) -> mpsc::Sender<()> {
    let (reading, ended) = mpsc::channel();
    let pid = Pid::from_child(child);
    std::thread::spawn(move || {
        if ended.recv_timeout(2 * PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            let _ = kill_process(pid, Signal::TERM);
        }
    });
    reading
}

pub fn line_of(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line.trim_end().to_string()
}

/// Waits until `condition` holds.
pub fn eventually(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}

/// Whether a process runs; one that ended and waits to be reaped doesn't.
pub fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some(None | Some('Z' | 'X')))
}

/// The command lines of all processes that hold `word`.
pub fn command_lines_with(word: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.map(|entry| std::fs::read(entry.path().join("cmdline")));
    let lines = lines.map(|bytes| String::from_utf8_lossy(&bytes.unwrap_or_default()).into());
    lines.filter(|line: &String| line.contains(word)).collect()
}

/// The system's names of the children of a process, without path and arguments.
pub fn names_of_children(pid: u32) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let names = processes.filter_map(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // Number (name) state parent.
        let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
        let parent = rest.split(' ').nth(1)?;
        (parent == pid.to_string()).then(|| name.to_owned())
    });
    names.collect()
}

pub fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

/// A stand-in for the agent: writes a line for each step to the file `log`.
pub fn agent(directory: &Path, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join("agent");
    let log = directory.join("log");
    let text = format!("#!/bin/sh\nlog={}\n{script}\n", log.display());
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().into()
}

/// A directory of this test alone, gone at its end.
pub struct Scratch(pub std::path::PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let place = format!("yod-{name}-{}", std::process::id());
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(place);
        std::fs::create_dir_all(&place).unwrap();
        Scratch(place)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub const GOOD_AGENT: &str = "trap 'echo gone $2 >> $log; exit 0' TERM; \
     read secret; echo come $* ${#secret} ${#LINTEL_SECRET} >> $log; echo ready; \
     while :; do sleep 1000 & wait $!; done";
