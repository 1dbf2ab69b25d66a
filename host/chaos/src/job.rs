//! A job of its own for each test, and the workers in it.

use crate::places::Places;
use lintel_types::ProcessId;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The longest that a test waits for anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

const SHARED_MEMORY: &str = "/dev/shm";
/// Any secret will do among processes that are started here.
const SECRET: &str = "5ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7e75ec7";
/// Milliseconds after which a peer that is silent is dead, where the test doesn't say.
const PEER_TIMEOUT: &str = "4000";

/// Processes that see each other. What a failing test leaves is removed.
pub struct Job {
    name: String,
    count: u32,
    network: Option<&'static str>,
    program: PathBuf,
    places: Places,
    /// By node, the words before a worker's own.
    within: BTreeMap<u32, Vec<String>>,
}

impl Job {
    /// A job that no other has the name of; `program` is the worker.
    pub fn new(program: &str) -> Job {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Job {
            name: format!("chaos{}x{count}", std::process::id()),
            count,
            network: None,
            program: program.into(),
            places: Places::of_job(count),
            within: BTreeMap::new(),
        }
    }

    /// As [`new`](Self::new), over that network between two nodes, whatever the
    /// environment asks for.
    pub fn over(program: &str, network: &'static str) -> Job {
        let mut job = Job::new(program);
        job.places = Places::apart(job.count, 2);
        job.network = Some(network);
        job
    }

    /// From now on another program is the worker.
    pub fn run(&mut self, program: &Path) {
        self.program = program.to_owned();
    }

    /// From now on its processes are there.
    pub fn place(&mut self, places: Places) {
        self.places = places;
    }

    /// From now on workers on that node are started by this command, as
    /// `ip netns exec NAME`.
    pub fn enter(&mut self, node: u32, command: Vec<String>) {
        self.within.insert(node, command);
    }

    /// Its name, the value of `LINTEL_JOB`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its processes are.
    pub fn places(&self) -> Places {
        self.places
    }

    /// A worker, to be started with [`Worker::start`]. The second word is its number,
    /// or that of one beside which it is.
    pub fn command(&self, words: &[&str]) -> Command {
        let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        let mut command = match self.within.get(&self.places.node(number)) {
            Some(within) => {
                let mut command = Command::new(&within[0]);
                command.args(&within[1..]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(words).env("LINTEL_JOB", &self.name);
        command.env("LINTEL_SECRET", SECRET);
        if std::env::var_os("PTL_PEER_TIMEOUT").is_none() {
            command.env("PTL_PEER_TIMEOUT", PEER_TIMEOUT);
        }
        if let Some(network) = self.network {
            command.env("PTL_NAL", network);
        }
        self.places.tell(&mut command, number);
        command
    }

    /// Starts a worker.
    pub fn start(&self, words: &[&str]) -> Worker {
        Worker::start(self.command(words))
    }

    /// Names of what stands in shared memory.
    pub fn leftovers(&self) -> Vec<String> {
        let prefix = format!("lintel-{}-", self.name);
        let entries = std::fs::read_dir(SHARED_MEMORY).expect("there is /dev/shm");
        entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.starts_with(&prefix))
            .collect()
    }

    /// The file of a process.
    pub fn segment(&self, number: u32) -> PathBuf {
        let ProcessId { nid, pid } = self.places.process(number);
        PathBuf::from(SHARED_MEMORY).join(format!("lintel-{}-{nid:x}-{pid}", self.name))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for name in self.leftovers() {
            let _ = std::fs::remove_file(PathBuf::from(SHARED_MEMORY).join(name));
        }
    }
}

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

    fn signal(&self, signal: i32) {
        let id = i32::try_from(self.id()).expect("numbers of processes are small");
        // SAFETY: kill takes numbers; the process is our child, not waited for.
        let sent = unsafe { libc::kill(id, signal) };
        assert_eq!(sent, 0, "worker {id} is there");
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
    }
}
