//! Accepts clients, starts a session for each, and ends it when the client does.
//!
//! One thread polls the signals, the listener, and two descriptors per client: its socket,
//! and the descriptor of its process (`pidfd_open`).

use crate::Options;
use crate::lock::Lock;
use crate::secret;
use lintel_bridge::{ClientSocket, Listener, SharedRegion};
use lintel_private_file::Refusal;
use lintel_runtime::{Level, Session, SettingError, Settings, log};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, getrlimit, pidfd_open, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::low_level::pipe;
use std::fmt;
use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long one poll lasts while sessions are closing, ns.
const CLOSING_INTERVAL: i64 = 10_000_000;
/// How long one poll lasts otherwise, ns: a session that has ended is noticed by then.
const IDLE_INTERVAL: i64 = 500_000_000;
/// How long sessions have to end once the agent ends.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Why the agent couldn't start.
#[derive(Debug)]
pub enum OpenError {
    /// An environment variable has an invalid value.
    Setting(SettingError),
    /// Standard input holds no secret, and why.
    Secret(String),
    /// The agent can't use its lock file, and why.
    File(PathBuf, Refusal),
    /// Another agent serves this job and node.
    Running {
        /// `LINTEL_JOB` of both agents.
        job: String,
        /// Node identifier of both agents.
        nid: u32,
    },
    /// A system call failed.
    System(io::Error),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Setting(error) => error.fmt(f),
            OpenError::Secret(why) => write!(
                f,
                "--secret-stdin reads the job's secret from standard input, one line of 64 \
                 hexadecimal digits: {why}"
            ),
            OpenError::File(path, refusal) => write!(f, "{}: {refusal}", path.display()),
            OpenError::Running { job, nid } => write!(
                f,
                "job {job} has an agent on node {} already: use that one, or end it by SIGTERM",
                Ipv4Addr::from(*nid)
            ),
            OpenError::System(error) => write!(f, "a system call failed: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        OpenError::System(error)
    }
}

/// The agent of one job on one node.
pub struct Agent {
    // Dropped in this order: the listener before the sessions, the lock last.
    listener: Listener,
    clients: Vec<ClientConn>,
    /// Sessions of closed clients; each ends by itself.
    closing: Vec<Session>,
    /// Readable once a signal ends the agent.
    signals: UnixStream,
    settings: Settings,
    _lock: Lock,
}

/// A client that the listener has accepted.
struct ClientConn {
    socket: ClientSocket,
    /// Readable once the process has ended. The socket alone doesn't say so: a child of
    /// the client may have inherited it.
    ended: OwnedFd,
    /// `None` until the client has sent its hello.
    session: Option<Session>,
}

/// What one poll reports of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ClientEvent {
    Idle,
    Readable,
    Closed,
}

/// What one poll reports.
struct Ready {
    /// A signal ends the agent.
    signal: bool,
    /// A client connects to the listener.
    listener: bool,
    /// One for each client, in the order of [`Agent::clients`].
    clients: Vec<ClientEvent>,
}

impl Agent {
    /// Takes the lock of the job's node and listens for clients.
    ///
    /// Handles the signals that end the agent before it creates a file, so that it removes
    /// its files however early a signal arrives. From then on each wait includes the signals.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(options: &Options) -> Result<Agent, OpenError> {
        let settings = match options.iface {
            Some(address) => Settings::of_node(address),
            None => Settings::from_env(),
        };
        let mut settings = settings.map_err(OpenError::Setting)?;
        if options.secret_stdin {
            let secret = secret::read(io::stdin().lock()).map_err(OpenError::Secret)?;
            settings.secret = Some(secret);
        }
        raise_file_limit();
        let signals = signals()?;
        let (job, nid) = (settings.job.clone(), settings.nid);
        let lock = Lock::path(&lintel_bridge::path(&job, nid));
        let lock = Lock::take(lock.clone()).map_err(|refusal| OpenError::File(lock, refusal))?;
        let Some(lock) = lock else {
            return Err(OpenError::Running { job, nid });
        };
        Ok(Agent {
            listener: Listener::open(&job, nid)?,
            clients: Vec::new(),
            closing: Vec::new(),
            signals,
            settings,
            _lock: lock,
        })
    }

    /// Writes the line `ready` once `output` is writable, unless a signal ends the agent
    /// before.
    ///
    /// # Errors
    /// The error of `poll`, or of writing to `output`.
    pub fn announce(&self, output: &mut (impl Write + AsFd)) -> io::Result<()> {
        loop {
            let mut ends = [
                PollFd::new(&self.signals, PollFlags::IN),
                PollFd::from_borrowed_fd(output.as_fd(), PollFlags::OUT),
            ];
            match poll(&mut ends, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            if ends[0].revents().is_empty() {
                writeln!(output, "ready")?;
                output.flush()?;
            }
            return Ok(());
        }
    }

    /// Serves clients until a signal ends the agent.
    ///
    /// # Errors
    /// The error of `poll`.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            let ready = self.poll_events()?;
            if ready.signal {
                return Ok(());
            }
            self.closing.retain(|session| !session.is_over());
            self.closing.iter().for_each(Session::end);
            self.on_client_events(&ready.clients);
            if ready.listener {
                self.accept_client();
            }
        }
    }

    /// Waits until a signal, a connecting client, or a client's event; at most for one
    /// interval.
    fn poll_events(&self) -> io::Result<Ready> {
        let fixed = [self.signals.as_fd(), self.listener.as_fd()];
        let clients = self.clients.iter().flat_map(ClientConn::descriptors);
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut ends: Vec<PollFd<'_>> = fixed.into_iter().chain(clients).map(readable).collect();
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: if self.closing.is_empty() {
                IDLE_INTERVAL
            } else {
                CLOSING_INTERVAL
            },
        };
        match poll(&mut ends, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = |end: &PollFd<'_>| !end.revents().is_empty();
        let clients = ends[fixed.len()..].chunks_exact(2).zip(&self.clients);
        let events = clients.map(|(ends, client)| {
            let failed = client.session.as_ref().is_some_and(Session::is_over);
            match (happened(&ends[0]), happened(&ends[1]) || failed) {
                (_, true) => ClientEvent::Closed,
                (true, _) => ClientEvent::Readable,
                _ => ClientEvent::Idle,
            }
        });
        Ok(Ready {
            signal: happened(&ends[0]),
            listener: happened(&ends[1]),
            clients: events.collect(),
        })
    }

    fn on_client_events(&mut self, events: &[ClientEvent]) {
        let clients = std::mem::take(&mut self.clients);
        for (mut client, event) in clients.into_iter().zip(events) {
            let stays = match event {
                ClientEvent::Idle => true,
                ClientEvent::Readable => client.on_readable(&self.settings),
                ClientEvent::Closed => false,
            };
            if stays {
                self.clients.push(client);
            } else if let Some(session) = client.session {
                session.end();
                self.closing.push(session);
            }
        }
    }

    fn accept_client(&mut self) {
        match self.listener.accept() {
            Ok(Some(socket)) => match ClientConn::new(socket) {
                Ok(client) => self.clients.push(client),
                Err(error) => warn("a client was turned away", &error),
            },
            Ok(None) => {}
            Err(error) => warn("no client can connect", &error),
        }
    }
}

impl Drop for Agent {
    /// Ends all sessions; the clients see their sockets close.
    fn drop(&mut self) {
        let sessions = self.clients.drain(..).filter_map(|client| client.session);
        self.closing.extend(sessions);
        let until = Instant::now() + CLOSE_TIMEOUT;
        while !self.closing.iter().all(Session::is_over) && Instant::now() < until {
            self.closing.iter().for_each(Session::end);
            std::thread::sleep(Duration::from_millis(1));
        }
        // A client can block a copy of its memory for ever, by a mapping that it serves
        // itself (userfaultfd, FUSE); its session ends with the process.
        let stuck = self.closing.drain(..).filter(|session| !session.is_over());
        stuck.for_each(std::mem::forget);
    }
}

impl ClientConn {
    /// A client of the agent's own user: the kernel permits cross-memory copies within a uid only.
    fn new(socket: ClientSocket) -> io::Result<ClientConn> {
        let peer = socket.peer();
        if peer.uid != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let process = Pid::from_raw(peer.process).ok_or(io::ErrorKind::NotFound)?;
        Ok(ClientConn {
            socket,
            ended: pidfd_open(process, PidfdFlags::empty())?,
            session: None,
        })
    }

    fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.socket.as_fd(), self.ended.as_fd()]
    }

    /// Handles the client's hello, or the end of its connection; false if the connection
    /// is over.
    fn on_readable(&mut self, settings: &Settings) -> bool {
        if self.session.is_some() {
            return !self.socket.is_closed();
        }
        match self.start_session(settings) {
            Ok(session) => self.session = Some(session),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                warn("a client was turned away", &error);
                return false;
            }
        }
        true
    }

    fn start_session(&self, settings: &Settings) -> io::Result<Session> {
        let hello = self.socket.hello()?;
        let region = Arc::new(SharedRegion::create()?);
        let settings = settings.clone();
        let session = Session::start(self.socket.peer(), region.clone(), settings, hello)?;
        self.socket.send_region(&region)?;
        Ok(session)
    }
}

fn warn(what: &str, error: &io::Error) {
    log(Level::Warn, &format!("{what}: {error}"));
}

/// A stream that becomes readable when a signal ends the agent.
fn signals() -> io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        pipe::register(signal, sender.try_clone()?)?;
    }
    Ok(receiver)
}

/// Each client takes several descriptors. The usual soft limit protects programs that use
/// `select`, and the agent doesn't.
fn raise_file_limit() {
    let hard = getrlimit(Resource::Nofile).maximum;
    let raised = Rlimit {
        current: hard,
        maximum: hard,
    };
    // If it fails, the soft limit holds, and excess clients are turned away.
    let _ = setrlimit(Resource::Nofile, raised);
}
