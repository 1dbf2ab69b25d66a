//! The agent's side: a client whose engine lives in this process.
//!
//! A [`Session`] has a library of its own for the client, and so its own lock, helper
//! and way to the network: clients don't wait for each other. Its thread carries out
//! the client's commands, and between them makes the progress that a polling caller
//! would make; then it sleeps, and the helper is rung by what arrives.

use crate::commands::{AnyCommand, Command, parse};
use crate::core::Core;
use crate::library::Library;
use crate::log::{Level, log, set_level};
use crate::memory::Memory;
use crate::owner::Owner;
use crate::portals3::{Command3, Owner3, Portals3, Shared, SharedQueues};
use crate::resources::Placement;
use crate::settings::{SettingError, Settings};
use crate::staged::Staged;
use lintel_bridge::{
    COUNTERS, ClientCommand, Cursor, Hello, Peer, QUEUES, SharedRegion, SharedTables,
};
use lintel_claim::{Claim, CrossMemoryError, Region, RemoteMemory, RemoteSpan};
use lintel_types::portals3::{Error as Error3, Limits as Limits3};
use lintel_types::{Error, Limits, options};
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a session's thread polls in vain before it sleeps: longer than a client
/// takes for its next command, or a peer for an answer.
const PATIENCE: Duration = Duration::from_micros(100);
/// Interval at which a thread is asked again to end.
const END_RETRY: Duration = Duration::from_millis(1);
/// Bytes of a client's memory that are sent as copies; longer ones are lent.
const EAGER: u64 = 8 << 10;

/// What a client sends.
type ClientCall = AnyCommand<Command<RemoteSpan>, Command3<RemoteSpan>>;

/// A process without an engine of its own.
#[derive(Clone)]
pub struct Client(Arc<ClientState>);

struct ClientState {
    peer: Peer,
    memory: RemoteMemory,
    region: Arc<SharedRegion>,
    tables: [SharedTables; 4],
    settings: Settings,
    max_staged: u64,
    portals3: Arc<Shared>,
    /// Its memory is denied, which has been reported.
    denial_reported: AtomicBool,
}

impl Client {
    /// Reports once that the system denies a client's memory: nothing can be moved then.
    fn report_denial(&self, moved: Result<u64, CrossMemoryError>) -> Result<u64, CrossMemoryError> {
        if moved == Err(CrossMemoryError::Denied)
            && !self.0.denial_reported.swap(true, Ordering::Relaxed)
        {
            let words = format!(
                "the system denies the memory of client {}: generic placement needs \
                 cross-memory copies (`lintel info` shows what forbids them); use \
                 PTL_MODE=accelerated, which can do without",
                self.0.peer.process
            );
            log(Level::Warn, &words);
        }
        moved
    }

    fn new(peer: Peer, hello: Hello, region: Arc<SharedRegion>, settings: Settings) -> Client {
        Client(Arc::new(ClientState {
            peer,
            memory: RemoteMemory {
                process: peer.process,
                key: hello.key,
            },
            tables: SharedTables::all(&region),
            region,
            settings,
            max_staged: max_staged(),
            portals3: Arc::new(Shared::new(hello.generation)),
            denial_reported: AtomicBool::new(false),
        }))
    }
}

/// The longest copy that is made of a client's memory, bytes: a quarter of what the
/// machine has, so that no client's wrong length ends the agent.
fn max_staged() -> u64 {
    let system = rustix::system::sysinfo();
    system.totalram * u64::from(system.mem_unit) / 4
}

impl Memory for Client {
    type Span = RemoteSpan;

    fn copy_in(&self, from: &[Claim], to: &[RemoteSpan]) -> Result<u64, CrossMemoryError> {
        self.report_denial(self.0.memory.push(from, to))
    }

    fn copy_out(&self, from: &[RemoteSpan], to: &[Claim]) -> Result<u64, CrossMemoryError> {
        self.report_denial(self.0.memory.pull(from, to))
    }

    fn staging(&self, length: u64) -> io::Result<Region> {
        if length > self.0.max_staged {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Region::try_new(length)
    }
}

impl Owner for Client {
    type Tables = SharedTables;
    type Mover = Staged;
    type Protocol = Portals3<Client>;
    const PLACEMENT: Placement = Placement::Generic;
    const PID_TIMEOUT: Duration = Duration::from_secs(3);

    fn tables(&self) -> &[SharedTables; 4] {
        &self.0.tables
    }

    fn uid(&self) -> u32 {
        self.0.peer.uid
    }

    fn settings(&self) -> Result<Settings, SettingError> {
        Ok(self.0.settings.clone())
    }

    /// Atomics of a client are combined on a copy: what it does itself to the same
    /// bytes doesn't take part. And it can ask for so much of the agent's memory only, in
    /// which its messages are copied.
    fn limits(&self, wanted: Limits) -> Limits {
        let limits = wanted.clamped();
        Limits {
            max_eqs: limits.max_eqs.min(QUEUES as i32),
            max_cts: limits.max_cts.min(COUNTERS as i32),
            max_iovecs: limits.max_iovecs.min(Limits::DEFAULT.max_iovecs),
            max_triggered_ops: limits
                .max_triggered_ops
                .min(Limits::DEFAULT.max_triggered_ops),
            max_msg_size: limits.max_msg_size.min(self.0.max_staged),
            features: limits.features & !options::FEATURE_COHERENT_ATOMICS,
            ..limits
        }
    }

    /// What doesn't fit into one record of a ring: a stream keeps its sender busy, and
    /// here sender and receiver may be threads that wait for the same processor.
    fn eager(&self, network: u64) -> u64 {
        network.min(EAGER)
    }

    fn note_activity(&self) {
        self.0.region.note_activity();
    }
}

impl Owner3 for Client {
    type Queues = SharedQueues<Client>;

    fn queues(&self) -> SharedQueues<Client> {
        SharedQueues::new(self.clone())
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.portals3
    }

    fn limits3(&self, wanted: Limits3) -> Limits3 {
        let limits = wanted.clamped();
        Limits3 {
            max_eqs: limits.max_eqs.min(QUEUES as i32),
            ..limits
        }
    }
}

/// What an agent keeps for one client. Dropping it ends it: the network is left, and
/// peers are notified.
pub struct Session {
    region: Arc<SharedRegion>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Session {
    /// Serves a client from now on.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(
        peer: Peer,
        region: Arc<SharedRegion>,
        settings: Settings,
        hello: Hello,
    ) -> io::Result<Session> {
        set_level(settings.level);
        let client = Client::new(peer, hello, region.clone(), settings);
        let library = Library::of_client(client, hello.generation);
        let over = Arc::new(AtomicBool::new(false));
        let (shared, ended) = (region.clone(), over.clone());
        let thread = std::thread::Builder::new()
            .name(format!("client {}", peer.process))
            .spawn(move || serve(&library, &shared, &ended))?;
        Ok(Session {
            region,
            over,
            thread: Some(thread),
        })
    }

    /// Asks it to end; it does so by itself. To be repeated until it
    /// [is over](Self::is_over): a thread that is just about to sleep doesn't hear it.
    pub fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.region.interrupt();
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        while !self.is_over() {
            self.end();
            std::thread::sleep(END_RETRY);
        }
        if let Some(thread) = self.thread.take() {
            // It can't have panicked: that ends the whole agent.
            let _ = thread.join();
        }
    }
}

fn serve(library: &Library<Client>, region: &SharedRegion, over: &AtomicBool) {
    let is_over = || over.load(Ordering::SeqCst);
    let mut cursor = Cursor::default();
    let mut awake = PollWindow::new(library);
    while !is_over() {
        match region.next_command(&mut cursor) {
            Some(ClientCommand::Requested(command)) => {
                // A malformed command gets an empty answer, so that its caller doesn't wait for one.
                let answer = parse(&command).map(|command: ClientCall| match command {
                    ClientCall::Portals4(command) => command.carry_out(library),
                    ClientCall::Portals3(command) => command.carry_out(library),
                });
                region.reply(&answer.unwrap_or_default());
                awake = PollWindow::new(library);
            }
            Some(ClientCommand::Posted(command)) => {
                match parse(&command) {
                    Some(ClientCall::Portals4(Command::Start(transfer))) => {
                        let try_start = || library.try_start(transfer.clone());
                        start(library, try_start, Error::NoSpace, is_over);
                    }
                    Some(ClientCall::Portals3(Command3::Start(transfer))) => {
                        let try_start = || library.try_start3(transfer);
                        start(library, try_start, Error3::NoSpace, is_over);
                    }
                    _ => {}
                }
                awake = PollWindow::new(library);
            }
            None if awake.lasts(library) => {
                library.poll_for_client();
                // The client may wait for this very processor.
                std::thread::yield_now();
            }
            None => {
                if matches!(library.with_core(Core::stop_polling), None | Some(0)) {
                    region.await_command(&cursor, is_over);
                }
            }
        }
    }
    // Nobody is left who would wait for what was sent.
    library.close_abruptly();
}

/// Starts a data movement of a client that doesn't wait for it. While too many await
/// their answers, what comes after it waits as well, for calls are carried out in order.
fn start<E: PartialEq + Debug>(
    library: &Library<Client>,
    try_start: impl Fn() -> Result<(), E>,
    no_space: E,
    is_over: impl Fn() -> bool,
) {
    let mut started = try_start();
    while started.as_ref() == Err(&no_space) && !is_over() {
        library.poll_for_client();
        std::thread::yield_now();
        started = try_start();
    }
    if let Err(error) = started {
        // The client has looked, so it has released a descriptor meanwhile, or lies.
        let words = format!("a client's data movement was refused: {error:?}");
        log(Level::Info, &words);
    }
}

/// How long there is reason to poll: for a while after anything has happened.
struct PollWindow {
    activity: u64,
    since: Instant,
}

impl PollWindow {
    fn new(library: &Library<Client>) -> Self {
        PollWindow {
            activity: library.activity(),
            since: Instant::now(),
        }
    }

    fn lasts(&mut self, library: &Library<Client>) -> bool {
        if self.activity != library.activity() {
            *self = PollWindow::new(library);
        }
        self.since.elapsed() < PATIENCE
    }
}
