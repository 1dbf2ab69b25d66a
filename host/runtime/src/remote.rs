//! The way to the agent that has the engine, for a process without one.
//!
//! Commands are carried to the agent one at a time and answered at once, but for data
//! movements that it can't refuse: they are posted, and it comes to them in order.
//! A caller waits here, on what the agent shows in shared pages, and sleeps for as
//! long as nothing comes: a thread that sleeps on the socket wakes the caller if the agent ends.

use crate::commands::{AnyCommand, Command, to_bytes, to_post};
use crate::library::Library;
use crate::log::{Level, log};
use crate::owner::{LocalProcess, Owner};
use crate::queue_calls::{deadline, first_event, first_reached};
use crate::remote_cache::RemoteCache;
use crate::settings::Settings;
use crate::thread::spawn;
use lintel_bridge::{
    Channel, ConnectError, Disconnected, Hello, MESSAGE_BYTES, POST_BYTES, SharedRegion, Taken,
};
use lintel_claim::{Claim, Lease};
use lintel_engine4::Transfer;
use lintel_types::{CountingEvent, Error, Handle, Result};
use parking_lot::{Mutex, RwLock};
use serde::Serialize;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Looks before a waiter lets other threads have the processor in between. They are
/// few: the agent may need this very one.
const SPINS: u32 = 20;
/// How long it looks from then on before it sleeps.
const PATIENCE: Duration = Duration::from_micros(100);
/// Looks in vain, of a caller that comes again and again, before it lets others have
/// the processor.
const YIELD_EVERY: u32 = 8;
/// How soon a command is tried again that had to wait.
const RETRY: Duration = Duration::from_millis(1);
/// How long a thread that attends to the agent's events sleeps at most.
const ATTENTION: Duration = Duration::from_millis(100);
/// By how much the generations of one session's handles differ from the next one's.
const GENERATION_STEP: u16 = 97;

/// What a process keeps of its agent.
pub(crate) struct Remote {
    session: RwLock<Option<Arc<Session>>>,
    /// What the handles of the next session begin with.
    generation: AtomicU16,
}

struct Session {
    channel: Channel,
    region: SharedRegion,
    /// Under which the agent copies this process's memory.
    lease: Lease,
    /// One command at a time.
    asking: Mutex<()>,
    cache: Mutex<RemoteCache>,
    /// The agent has closed the channel, or has ended.
    gone: AtomicBool,
    /// This process has, by its own wish.
    left: AtomicBool,
    looks: AtomicU32,
    /// Sleeps until the agent goes.
    watch: Mutex<Option<JoinHandle<()>>>,
}

impl Session {
    /// Calls the agent; handles begin with `generation`.
    fn open(
        settings: &Settings,
        generation: u16,
    ) -> std::result::Result<Arc<Session>, ConnectError> {
        let lease = Lease::new();
        // Without a page the agent could copy nothing.
        let key = lease
            .key()
            .ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?;
        let hello = Hello { generation, key };
        let (channel, region) = Channel::connect(&settings.job, settings.nid, hello)?;
        let session = Arc::new(Session {
            channel,
            region,
            lease,
            asking: Mutex::new(()),
            cache: Mutex::default(),
            gone: AtomicBool::new(false),
            left: AtomicBool::new(false),
            looks: AtomicU32::new(0),
            watch: Mutex::new(None),
        });
        let watched = session.clone();
        let watch = spawn("lintel-agent", move || watched.watch())?;
        *session.watch.lock() = Some(watch);
        Ok(session)
    }

    /// Sleeps until the agent goes, then wakes those who wait for it.
    fn watch(&self) {
        self.channel.await_close();
        if !self.left.load(Ordering::Relaxed) {
            self.on_agent_lost();
        }
        self.region.wake_all();
    }

    /// Has the agent end all that it keeps.
    fn close(&self) {
        // One that has gone has ended it already.
        let _ = self.ask(&Command::Leave());
        self.lease.revoke();
        self.left.store(true, Ordering::Relaxed);
        self.channel.close();
        if let Some(watch) = self.watch.lock().take() {
            let _ = watch.join();
        }
    }

    fn ask(&self, command: &Command<Claim>) -> Result<Vec<u8>> {
        let _alone = self.asking.lock();
        let answer = self.request(&to_bytes(&AnyCommand::<_, ()>::Portals4(command)))?;
        self.cache.lock().learn(command, &answer);
        report_if_short(RemoteCache::was_refused_space(command, &answer));
        Ok(answer)
    }

    fn ask_bytes(&self, command: &[u8]) -> Result<Vec<u8>> {
        let _alone = self.asking.lock();
        self.request(command)
    }

    /// Sends a request, and waits for the answer. The caller holds `asking`.
    fn request(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        if bytes.len() > MESSAGE_BYTES {
            log(
                Level::Warn,
                "too much for one call to the agent: give it in parts",
            );
            return Err(Error::NoSpace);
        }
        self.check()?;
        let answer = self.region.request(bytes, || self.check().is_ok());
        answer.map_err(|Disconnected| Error::Fail)
    }

    /// Posts a data movement; false where it must be asked for.
    fn post(&self, transfer: &Transfer) -> Result<bool> {
        if !self.cache.lock().allows(transfer) {
            return Ok(false);
        }
        let command = Command::<Claim>::Start(transfer.clone());
        self.post_command(&AnyCommand::<_, ()>::Portals4(&command))
    }

    /// Posts a command; false where it is too long for that.
    fn post_command(&self, command: &impl Serialize) -> Result<bool> {
        let mut room = [0; POST_BYTES];
        let Some(bytes) = to_post(command, &mut room) else {
            return Ok(false);
        };
        let _alone = self.asking.lock();
        self.check()?;
        let posted = self.region.post(bytes, || self.check().is_ok());
        posted.map(|()| true).map_err(|Disconnected| Error::Fail)
    }

    /// Whether the agent is known to have gone.
    fn check(&self) -> Result<()> {
        match self.gone.load(Ordering::Relaxed) {
            true => Err(Error::Fail),
            false => Ok(()),
        }
    }

    #[cold]
    fn on_agent_lost(&self) {
        self.gone.store(true, Ordering::Relaxed);
        log(
            Level::Warn,
            "the agent of this node has gone, and all that it kept: end the library, and \
             start it again once lintel-agent runs",
        );
    }

    /// A look in vain, by a caller that will come again.
    fn poll_failed(&self) -> Result<()> {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        if looks % YIELD_EVERY == YIELD_EVERY - 1 {
            std::thread::yield_now();
        }
        self.check()
    }
}

impl Remote {
    pub(crate) const fn new() -> Remote {
        Remote {
            session: RwLock::new(None),
            generation: AtomicU16::new(0),
        }
    }

    /// Whether there is an agent that serves this process.
    pub(crate) fn is_open(&self) -> bool {
        self.session.read().is_some()
    }

    /// Calls the agent, unless that has been done.
    ///
    /// # Errors
    /// `Fail` where there is none, or it has gone; the log says so.
    pub(crate) fn join<O: Owner>(&self, library: &Library<O>) -> Result<()> {
        let mut session = self.session.write();
        if let Some(session) = session.as_ref() {
            return session.check();
        }
        let settings = library.settings()?;
        let generation = self.generation.load(Ordering::Relaxed);
        match Session::open(&settings, generation % Handle::GENERATIONS) {
            Ok(opened) => {
                let (job, node) = (&settings.job, std::net::Ipv4Addr::from(settings.nid));
                let words = format!("job {job}: the agent of node {node} runs the engine");
                log(Level::Info, &words);
                *session = Some(opened);
                self.advance_generation();
                Ok(())
            }
            Err(error) => {
                log(Level::Warn, &format!("no interface: {error}"));
                Err(Error::Fail)
            }
        }
    }

    /// Handles from now on aren't taken for those of the past.
    pub(crate) fn advance_generation(&self) {
        let next = |generation| Some((generation + GENERATION_STEP) % Handle::GENERATIONS);
        let _ = self
            .generation
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
    }

    /// Has the agent end all that it keeps for this process.
    pub(crate) fn leave(&self) {
        let session = self.session.write().take();
        if let Some(session) = session {
            session.close();
        }
    }

    /// Wakes those who wait.
    pub(crate) fn wake(&self) {
        if let Ok(session) = self.session() {
            session.region.note_activity();
        }
    }

    fn session(&self) -> Result<Arc<Session>> {
        self.session.read().clone().ok_or(Error::ArgInvalid)
    }

    /// Carries a command to the agent; gives its answer.
    ///
    /// # Errors
    /// `ArgInvalid` where no interface is open, `Fail` where the agent has gone.
    pub(crate) fn ask(&self, command: &Command<Claim>) -> Result<Vec<u8>> {
        self.session()?.ask(command)
    }

    /// As [`ask`](Self::ask), for a command of another protocol.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn ask_bytes(&self, command: &[u8]) -> Result<Vec<u8>> {
        self.session()?.ask_bytes(command)
    }

    /// A look at what the agent shows, by a caller that will come again.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) fn look<R>(
        &self,
        look: impl FnOnce(&SharedRegion) -> Option<R>,
    ) -> Result<Option<R>> {
        let session = self.session()?;
        match look(&session.region) {
            None => session.poll_failed().map(|()| None),
            found => Ok(found),
        }
    }

    /// Does something, then sleeps until the agent has posted what wasn't there before; true if
    /// there is no agent any more.
    pub(crate) fn attend(&self, act: impl FnOnce(&SharedRegion)) -> bool {
        let Ok(session) = self.session() else {
            return true;
        };
        let activity = session.region.activity();
        act(&session.region);
        if session.check().is_err() || session.left.load(Ordering::Relaxed) {
            return true;
        }
        session.region.sleep(activity, Some(ATTENTION));
        false
    }

    /// Has the agent start a data movement when it comes to it; false where it may
    /// refuse that, and is to be asked.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) fn post(&self, transfer: &Transfer) -> Result<bool> {
        self.session()?.post(transfer)
    }

    /// Has the agent carry out a command of another protocol when it comes to it; false where
    /// it is too long, and is to be asked for.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub(crate) fn post_command(&self, command: &impl Serialize) -> Result<bool> {
        self.session()?.post_command(command)
    }

    /// Tries a command now and then until it gives something.
    ///
    /// # Errors
    /// The command's, and those of waiting.
    pub(crate) fn until<R, O: Owner>(
        &self,
        library: &Library<O>,
        mut command: impl FnMut() -> Result<Option<R>>,
    ) -> Result<R> {
        let session = self.session()?;
        loop {
            // Read first, so that what ends the wait from here on isn't missed.
            let activity = session.region.activity();
            may_wait(library)?;
            if let Some(done) = command()? {
                return Ok(done);
            }
            session.region.sleep(activity, Some(RETRY));
        }
    }

    /// `Process::queue_take` for a queue whose events the agent posts.
    pub(crate) fn queue_take(
        &self,
        library: &Library<LocalProcess>,
        handle: Handle,
    ) -> Result<Taken> {
        library.check_alive()?;
        let session = self.session()?;
        match session.region.take_event(handle)? {
            Some(taken) => Ok(taken),
            None => session.poll_failed().and(Err(Error::EqEmpty)),
        }
    }

    /// `Process::queue_poll` for queues whose events the agent posts.
    pub(crate) fn queue_poll<R>(
        &self,
        library: &Library<LocalProcess>,
        handles: &[Handle],
        timeout: u32,
        take: impl Fn(Taken, usize) -> R,
    ) -> Result<R> {
        library.check_alive()?;
        let first = self.session()?.region.activity() as usize % handles.len().max(1);
        let any = |region: &SharedRegion| {
            first_event(handles, first, |handle| region.take_event(handle), &take)
        };
        self.wait(library, timeout, any)?.ok_or(Error::EqEmpty)
    }

    /// `Process::counter_get` for a counter that the agent publishes.
    pub(crate) fn counter_get(
        &self,
        library: &Library<LocalProcess>,
        handle: Handle,
    ) -> Result<CountingEvent> {
        library.check_alive()?;
        let session = self.session()?;
        let value = session.region.counter_value(handle)?;
        // A caller that polls repeatedly is waiting.
        session.poll_failed()?;
        Ok(value)
    }

    /// `Process::counter_poll` for counters that the agent publishes.
    pub(crate) fn counter_poll(
        &self,
        library: &Library<LocalProcess>,
        handles: &[Handle],
        tests: &[u64],
        timeout: u32,
    ) -> Result<(CountingEvent, usize)> {
        library.check_alive()?;
        let value = |region: &SharedRegion, handle| region.counter_value(handle);
        let any =
            |region: &SharedRegion| first_reached(handles, tests, |handle| value(region, handle));
        let found = self.wait(library, timeout, any)?;
        found.ok_or(Error::CtNoneReached)
    }

    /// Waits until `ready` gives something; nothing once `timeout` (ms) has passed.
    pub(crate) fn wait<T, O: Owner>(
        &self,
        library: &Library<O>,
        timeout: u32,
        ready: impl Fn(&SharedRegion) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let session = self.session()?;
        let region = &session.region;
        let deadline = deadline(timeout);
        let passed = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let (mut looks, mut since) = (0, None);
        loop {
            // Read first, so that what ends the wait from here on isn't missed.
            let activity = region.activity();
            may_wait(library)?;
            if let Some(found) = ready(region)? {
                return Ok(Some(found));
            }
            looks += 1;
            if looks < SPINS && timeout > 0 {
                std::hint::spin_loop();
                // A look at the clock costs as much as several others.
                continue;
            }
            if since.get_or_insert_with(Instant::now).elapsed() < PATIENCE || timeout == 0 {
                std::thread::yield_now();
            } else {
                session.check()?;
                let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
                region.sleep(activity, left);
            }
            if passed() {
                session.check()?;
                return ready(region);
            }
        }
    }
}

/// Says where to look if the agent couldn't open an interface for want of something.
pub(crate) fn report_if_short(is_short: bool) {
    if is_short {
        log(
            Level::Warn,
            "no interface: the agent of this node has no room; its standard error says what \
             is short",
        );
    }
}

fn may_wait<O: Owner>(library: &Library<O>) -> Result<()> {
    if library.is_aborted() {
        return Err(Error::Aborted);
    }
    library.check_alive()
}
