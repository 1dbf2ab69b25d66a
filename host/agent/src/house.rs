//! Who comes in, and who has gone.

use crate::Options;
use crate::lock::Lock;
use crate::secret;
use lintel_bridge::{Listener, PendingClient, SharedRegion};
use lintel_private_file::Refusal;
use lintel_runtime::{Level, Session, SettingError, Settings, log};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fmt;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to sleep while sessions are ending, ns; and otherwise.
const SOON: i64 = 10_000_000;
const LATER: i64 = 500_000_000;
/// How long sessions have to end when the agent does.
const GRACE: Duration = Duration::from_secs(2);

/// Why there is no agent.
#[derive(Debug)]
pub enum OpenError {
    /// A variable isn't understood.
    Setting(SettingError),
    /// Standard input holds no secret, and why.
    Secret(String),
    /// A file of the agent's can't be used, and why.
    File(PathBuf, Refusal),
    /// There is one already.
    Running {
        /// The job.
        job: String,
        /// The node.
        nid: u32,
    },
    /// The system refused.
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
                "job {job} has an agent on node {nid:#x} already: use that one, or end it by \
                 SIGTERM"
            ),
            OpenError::System(error) => write!(f, "the system refused: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> Self {
        OpenError::System(error)
    }
}

impl From<nix::errno::Errno> for OpenError {
    fn from(error: nix::errno::Errno) -> Self {
        OpenError::System(error.into())
    }
}

/// The agent: its door, and who is in.
pub struct House {
    // In this order: nobody comes in while others are shown out, and the lock goes last.
    door: Listener,
    guests: Vec<Guest>,
    /// Sessions that end by themselves, of guests that have gone.
    leaving: Vec<Session>,
    signals: SignalFd,
    settings: Settings,
    _lock: Lock,
}

/// A client that has come in.
struct Guest {
    visitor: PendingClient,
    /// Readable when the process has ended: a child of its may hold its socket.
    ended: OwnedFd,
    /// Once it has said what it is.
    session: Option<Session>,
}

/// What has become of a guest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    None,
    Speaks,
    Gone,
}

impl House {
    /// Opens the door of a node.
    ///
    /// Blocks the signals that end the agent in the calling thread and those that it
    /// starts, so that it removes its files however early it is told to end. Nothing waits
    /// from then on without looking at the signals.
    ///
    /// # Errors
    /// [`OpenError`]
    pub fn open(options: &Options) -> Result<House, OpenError> {
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
        Ok(House {
            door: Listener::open(&job, nid)?,
            guests: Vec::new(),
            leaving: Vec::new(),
            signals,
            settings,
            _lock: lock,
        })
    }

    /// Writes the line `ready` once `output` takes it, unless the process is told to end
    /// before.
    ///
    /// # Errors
    /// What the system said, of `output` too.
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

    /// Serves clients until the process is told to end.
    ///
    /// # Errors
    /// What the system said.
    pub fn run(mut self) -> io::Result<()> {
        loop {
            let (end, knock, news) = self.wait()?;
            if end {
                return Ok(());
            }
            self.leaving.retain(|session| !session.is_over());
            self.leaving.iter().for_each(Session::end);
            self.look_after(&news);
            if knock {
                self.let_in();
            }
        }
    }

    /// Waits until something happens: the end, somebody at the door, news of guests.
    fn wait(&self) -> io::Result<(bool, bool, Vec<News>)> {
        let fixed = [self.signals.as_fd(), self.door.as_fd()];
        let guests = self.guests.iter().flat_map(Guest::descriptors);
        let readable = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut ends: Vec<PollFd<'_>> = fixed.into_iter().chain(guests).map(readable).collect();
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: if self.leaving.is_empty() { LATER } else { SOON },
        };
        match poll(&mut ends, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let happened = |end: &PollFd<'_>| !end.revents().is_empty();
        let guests = ends[fixed.len()..].chunks_exact(2).zip(&self.guests);
        let news = guests.map(|(ends, guest)| {
            let failed = guest.session.as_ref().is_some_and(Session::is_over);
            match (happened(&ends[0]), happened(&ends[1]) || failed) {
                (_, true) => News::Gone,
                (true, _) => News::Speaks,
                _ => News::None,
            }
        });
        Ok((happened(&ends[0]), happened(&ends[1]), news.collect()))
    }

    fn look_after(&mut self, news: &[News]) {
        let guests = std::mem::take(&mut self.guests);
        for (mut guest, news) in guests.into_iter().zip(news) {
            let stays = match news {
                News::None => true,
                News::Speaks => guest.listen(&self.settings),
                News::Gone => false,
            };
            if stays {
                self.guests.push(guest);
            } else if let Some(session) = guest.session {
                session.end();
                self.leaving.push(session);
            }
        }
    }

    fn let_in(&mut self) {
        match self.door.accept() {
            Ok(Some(visitor)) => match Guest::new(visitor) {
                Ok(guest) => self.guests.push(guest),
                Err(error) => warn("a client was turned away", &error),
            },
            Ok(None) => {}
            Err(error) => warn("nobody can come in", &error),
        }
    }
}

impl Drop for House {
    /// Shows everybody out: they learn of it by their sockets.
    fn drop(&mut self) {
        let sessions = self.guests.drain(..).filter_map(|guest| guest.session);
        self.leaving.extend(sessions);
        let until = Instant::now() + GRACE;
        while !self.leaving.iter().all(Session::is_over) && Instant::now() < until {
            self.leaving.iter().for_each(Session::end);
            std::thread::sleep(Duration::from_millis(1));
        }
        // A client can hold up a copy of its memory for ever, by memory that it
        // provides itself; its session ends with the process.
        let stuck = self.leaving.drain(..).filter(|session| !session.is_over());
        stuck.for_each(std::mem::forget);
    }
}

impl Guest {
    /// Somebody of the agent's own user: nobody else's memory could be copied.
    fn new(visitor: PendingClient) -> io::Result<Guest> {
        let peer = visitor.peer();
        if peer.uid != rustix::process::geteuid().as_raw() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let process = Pid::from_raw(peer.process).ok_or(io::ErrorKind::NotFound)?;
        Ok(Guest {
            visitor,
            ended: pidfd_open(process, PidfdFlags::empty())?,
            session: None,
        })
    }

    fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.visitor.as_fd(), self.ended.as_fd()]
    }

    /// It has said something: what it is, or good-bye. False where it goes.
    fn listen(&mut self, settings: &Settings) -> bool {
        if self.session.is_some() {
            return !self.visitor.is_closed();
        }
        match self.welcome(settings) {
            Ok(session) => self.session = Some(session),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                warn("a client was turned away", &error);
                return false;
            }
        }
        true
    }

    fn welcome(&self, settings: &Settings) -> io::Result<Session> {
        let hello = self.visitor.hello()?;
        let region = Arc::new(SharedRegion::create()?);
        let settings = settings.clone();
        let session = Session::start(self.visitor.peer(), region.clone(), settings, hello)?;
        self.visitor.send_region(&region)?;
        Ok(session)
    }
}

fn warn(what: &str, error: &io::Error) {
    log(Level::Warn, &format!("{what}: {error}"));
}

fn signals() -> Result<SignalFd, OpenError> {
    let mut ending = SigSet::empty();
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        ending.add(signal);
    }
    ending.thread_block()?;
    Ok(SignalFd::with_flags(&ending, SfdFlags::SFD_CLOEXEC)?)
}

/// Each client takes several descriptors; the limit is for programs that use `select`.
fn raise_file_limit() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
