//! A child process that a test drives by lines on stdin and stdout.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest that a test waits for one line or for the end of a process.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running worker, killed when this is dropped.
pub struct Worker {
    child: Child,
    lines: Receiver<String>,
    stderr: Arc<Mutex<String>>,
}

impl Worker {
    /// Starts the command with stdin, stdout and stderr piped.
    pub fn start(mut command: Command) -> Worker {
        let piped = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = piped.spawn().expect("the worker starts");
        let (sender, lines) = channel();
        let stdout = child.stdout.take().expect("it is piped");
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let stderr = Arc::new(Mutex::new(String::new()));
        let (shared, pipe) = (stderr.clone(), child.stderr.take().expect("it is piped"));
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut bytes) {
                let words = String::from_utf8_lossy(&bytes[..count]);
                shared.lock().expect("nobody panics").push_str(&words);
            }
        });
        Worker {
            child,
            lines,
            stderr,
        }
    }

    /// The process identifier of the operating system.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line of stdout.
    ///
    /// # Panics
    /// If no line arrives within [`PATIENCE`].
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(why) => {
                // The last lines of stderr may still be in the pipe.
                std::thread::sleep(Duration::from_millis(200));
                let status = self.child.try_wait();
                panic!(
                    "no line from worker {} ({why}, {status:?}); stderr: {}",
                    self.id(),
                    self.stderr()
                );
            }
        }
    }

    /// The next line of stdout, if it has arrived already.
    pub fn try_line(&mut self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// The exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The rest of the next line, which must begin with `start`.
    ///
    /// # Panics
    /// If it doesn't, or no line arrives within [`PATIENCE`].
    pub fn expect(&mut self, start: &str) -> String {
        let line = self.line();
        match line.strip_prefix(start) {
            Some(rest) => rest.trim().to_owned(),
            None => panic!(
                "worker {} wrote {line:?}, not {start:?}; stderr: {}",
                self.id(),
                self.stderr()
            ),
        }
    }

    /// Writes a line to its stdin.
    pub fn send(&mut self, words: &str) {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        // A test that waits for the reply notices a worker that has ended.
        let _ = writeln!(stdin, "{words}");
    }

    /// What the process has written to stderr so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("nobody panics").clone()
    }

    /// Waits until its stderr contains these words.
    ///
    /// # Panics
    /// If it doesn't within [`PATIENCE`].
    pub fn await_stderr(&self, words: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.stderr().contains(words) {
            assert!(
                Instant::now() < until,
                "worker {} doesn't write {words:?}; stderr: {}",
                self.id(),
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops the process by SIGSTOP, and waits until all its threads have stopped.
    ///
    /// # Panics
    /// If one still runs after [`PATIENCE`].
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let until = Instant::now() + PATIENCE;
        while !self.has_stopped() {
            assert!(Instant::now() < until, "worker {} still runs", self.id());
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn has_stopped(&self) -> bool {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id()));
        let stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit(") ").next();
            state.is_some_and(|state| state.starts_with('T'))
        };
        tasks.expect("it runs").flatten().all(stopped)
    }

    /// Resumes a stopped process by SIGCONT.
    pub fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    /// Ends the process by SIGTERM, or by SIGKILL if that takes longer than [`PATIENCE`].
    pub fn terminate(mut self) {
        self.signal(libc::SIGTERM);
        let until = Instant::now() + PATIENCE;
        while self.ended().is_none() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn signal(&self, signal: i32) {
        let id = i32::try_from(self.id()).expect("numbers of processes are small");
        // SAFETY: kill takes numbers; the process is our child, not waited for.
        let sent = unsafe { libc::kill(id, signal) };
        debug_assert_eq!(sent, 0, "worker {id} is there");
    }

    /// Kills the process by SIGKILL, and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    /// If it still runs after [`PATIENCE`].
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return status;
            }
            assert!(
                Instant::now() < until,
                "worker {} doesn't end; stderr: {}",
                self.id(),
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for the end of the process, which must be a success.
    ///
    /// # Panics
    /// If its exit status isn't 0, or it still runs after [`PATIENCE`].
    pub fn succeed(&mut self) {
        let status = self.wait();
        assert!(
            status.success(),
            "worker {} ended with {status}; stderr: {}",
            self.id(),
            self.stderr()
        );
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("worker {} left on stderr: {}", self.id(), self.stderr());
        }
    }
}
