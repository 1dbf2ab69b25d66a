//! A process that a test talks to in lines.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest that a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A running worker; it is killed when this is dropped.
pub struct Worker {
    child: Child,
    lines: Receiver<String>,
    complaints: Arc<Mutex<String>>,
}

impl Worker {
    /// Starts it with pipes.
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
        let complaints = Arc::new(Mutex::new(String::new()));
        let (told, stderr) = (
            complaints.clone(),
            child.stderr.take().expect("it is piped"),
        );
        std::thread::spawn(move || {
            let mut stderr = BufReader::new(stderr);
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut bytes) {
                let words = String::from_utf8_lossy(&bytes[..count]);
                told.lock().expect("nobody panics").push_str(&words);
            }
        });
        Worker {
            child,
            lines,
            complaints,
        }
    }

    /// The system's number of the process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The next line.
    ///
    /// # Panics
    /// Where none comes in time.
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => line,
            Err(why) => {
                // Its last words may still be on their way.
                std::thread::sleep(Duration::from_millis(200));
                let status = self.child.try_wait();
                panic!(
                    "no line from worker {} ({why}, {status:?}); it said: {}",
                    self.id(),
                    self.complaints()
                );
            }
        }
    }

    /// The next line, where there is one already.
    pub fn line_if_any(&mut self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// How it ended, where it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The rest of the next line, which must begin with `start`.
    ///
    /// # Panics
    /// Where it doesn't, or doesn't come.
    pub fn expect(&mut self, start: &str) -> String {
        let line = self.line();
        match line.strip_prefix(start) {
            Some(rest) => rest.trim().to_owned(),
            None => panic!(
                "worker {} said {line:?}, not {start:?}; and: {}",
                self.id(),
                self.complaints()
            ),
        }
    }

    /// Says a line to it.
    pub fn say(&mut self, words: &str) {
        let stdin = self.child.stdin.as_mut().expect("it is piped");
        // A worker that has ended is noticed by who waits for its answer.
        let _ = writeln!(stdin, "{words}");
    }

    /// What it has written to standard error so far.
    pub fn complaints(&self) -> String {
        self.complaints.lock().expect("nobody panics").clone()
    }

    /// Waits until it has complained in these words.
    ///
    /// # Panics
    /// Where it doesn't in time.
    pub fn hear(&self, words: &str) {
        let until = Instant::now() + PATIENCE;
        while !self.complaints().contains(words) {
            assert!(
                Instant::now() < until,
                "worker {} doesn't say {words:?} but: {}",
                self.id(),
                self.complaints()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// SIGSTOP: it does nothing any more, and is there.
    ///
    /// # Panics
    /// Where it still runs after a while.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let until = Instant::now() + PATIENCE;
        while !self.has_stopped() {
            assert!(Instant::now() < until, "worker {} runs on", self.id());
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

    /// SIGCONT: it goes on.
    pub fn go_on(&self) {
        self.signal(libc::SIGCONT);
    }

    /// SIGTERM, and waits for the end; SIGKILL where that doesn't come.
    pub fn end(mut self) {
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

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Waits for the end.
    ///
    /// # Panics
    /// Where it doesn't come in time.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                return status;
            }
            assert!(
                Instant::now() < until,
                "worker {} doesn't end; it said: {}",
                self.id(),
                self.complaints()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for the end, which must be a success.
    ///
    /// # Panics
    /// Where it is none.
    pub fn succeed(&mut self) {
        let status = self.wait();
        assert!(
            status.success(),
            "worker {} ended with {status}; it said: {}",
            self.id(),
            self.complaints()
        );
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("worker {} had said: {}", self.id(), self.complaints());
        }
    }
}
