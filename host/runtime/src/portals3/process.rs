//! The one per process: what the public calls reach first.

use crate::commands::{AnyCommand, to_bytes};
use crate::library::Library;
use crate::portals3::calls::{EntryWith, Identity};
use crate::portals3::commands::{Command3, for_each_command3};
use crate::portals3::handlers::Handler;
use crate::portals3::lifecycle::Opening;
use crate::portals3::owner::{Owner3, Portals3Process};
use crate::portals3::queue_calls::{after_last, first_event3};
use crate::portals3::remote_cache::{RemoteCache, answer};
use crate::portals3::remote_handlers::RemoteHandlers;
use crate::process::process_calls;
use crate::remote::{Remote, report_if_short};
use crate::settings::Mode;
use crate::timeline::CallBegun;
use lintel_bridge::{SharedRegion, Taken3};
use lintel_claim::Claim;
use lintel_engine3::{AccessEntry, DescriptorSpec, EntrySpec, Transfer};
use lintel_types::portals3::{Error, Limits, MemoryDescriptor, Position, Result};
use lintel_types::{Error as Error4, Handle, PortalIndex};
use lintel_wire::portals3::Verb;
use parking_lot::Mutex;
use serde::Deserialize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Everything that Lintel keeps of Portals 3.3 in a process: the library, or the way to the
/// agent's.
pub struct Process3 {
    library: Library<Portals3Process>,
    remote: Remote,
    generic: AtomicBool,
    /// The engine lives in the agent, or calls are recorded: a call looks at this alone.
    detour: AtomicBool,
    handlers: RemoteHandlers,
    cache: Mutex<RemoteCache>,
}

/// The one [`Process3`] of this process, which its calls use.
///
/// A process that was forked off has its parent's until it ends it ([`fini3`]); then it has
/// one of its own. The parent's is left as it is: locks may be held by threads that the child
/// hasn't.
#[inline]
pub fn process3() -> &'static Process3 {
    // Mostly: at an address that the linker knows.
    match DEPTH.load(Ordering::Relaxed) {
        0 => PROCESSES[0].get_or_init(Process3::new),
        depth => PROCESSES[depth].get_or_init(Process3::new),
    }
}

/// PtlFini. The last one closes the interface; in a fork's child it gives up the parent's.
pub fn fini3() {
    let process = process3();
    let depth = DEPTH.load(Ordering::Relaxed);
    if process.library.forked.load(Ordering::Relaxed) && depth + 1 < PROCESSES.len() {
        DEPTH.store(depth + 1, Ordering::Relaxed);
        return;
    }
    if process.library.fini() {
        process.remote.leave();
        *process.cache.lock() = RemoteCache::default();
    }
}

impl Process3 {
    #[cold]
    fn new() -> Process3 {
        Process3 {
            library: Library::new(Portals3Process::default(), 0),
            remote: Remote::new(),
            generic: AtomicBool::new(false),
            detour: AtomicBool::new(false),
            handlers: RemoteHandlers::default(),
            cache: Mutex::default(),
        }
    }

    /// PtlInit. Counted.
    ///
    /// # Errors
    /// `Fail` where an environment variable isn't understood, or in a fork's child.
    pub fn init(&self) -> Result<()> {
        let settings = self.library.init().map_err(|_| Error::Fail)?;
        if !self.remote.is_open() && !self.library.is_open() {
            let generic = settings.mode == Mode::Generic;
            self.generic.store(generic, Ordering::Relaxed);
            let is_recorded = settings.records_calls();
            self.detour.store(generic || is_recorded, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The process ends without a `fini`: leaves the network, so that peers learn of it and
    /// nothing stays behind.
    pub fn exit(&self) {
        if self.library.exit() {
            self.remote.leave();
        }
    }

    /// Called in the child of a fork: the calls of the child answer with an error.
    pub fn on_fork(&self) {
        self.library.on_fork();
    }

    /// Whether Portals can be used now.
    ///
    /// # Errors
    /// `NoInit` before the first `init`, after the last `fini`, in a fork's child.
    #[inline]
    pub fn check_alive(&self) -> Result<()> {
        self.library.check_alive().map_err(|_| Error::NoInit)
    }

    /// Whether the engine lives in the agent. Before an interface is opened there is none, and
    /// the process's own library says so.
    #[inline(always)]
    fn is_generic(&self) -> bool {
        self.generic.load(Ordering::Relaxed) && self.remote.is_open()
    }

    /// Whether the engine lives in the agent, or calls are recorded.
    #[inline(always)]
    fn takes_detour(&self) -> bool {
        self.detour.load(Ordering::Relaxed)
    }

    /// PtlNIInit. Counted; an interface that is open already keeps its limits.
    ///
    /// # Errors
    /// As [`Library::open3`]; `Fail` also where there is no agent.
    pub fn open(&'static self, opening: Opening) -> Result<(Handle, Limits)> {
        self.check_alive()?;
        self.library.pin();
        if self.generic.load(Ordering::Relaxed) {
            self.remote.join(&self.library).map_err(|_| Error::Fail)?;
        }
        let opened = self.open3(opening);
        report_if_short(self.is_generic() && opened == Err(Error::NoSpace));
        opened
    }

    /// Has the agent carry out a command.
    #[cold]
    fn ask<T: for<'a> Deserialize<'a>>(&self, command: &Command3<Claim>) -> Result<T> {
        self.check_alive()?;
        let bytes = to_bytes(&AnyCommand::<(), _>::Portals3(command));
        let answer = self.remote.ask_bytes(&bytes);
        let answer = answer.map_err(|_| Error::Fail)?;
        self.cache.lock().learn(command, &answer);
        self::answer(&answer)
    }

    /// Starts a data movement. While too many operations await their answers, or too much
    /// waits for the target, waits.
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline]
    pub fn start(&'static self, transfer: &Transfer) -> Result<()> {
        self.start_by(|| *transfer)
    }

    /// As [`start`](Self::start), specialized by the compiler for each caller: see
    /// [`Library::start3`].
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline(always)]
    pub fn start_by(&'static self, transfer: impl Fn() -> Transfer) -> Result<()> {
        if self.takes_detour() {
            return self.start_by_detour(&transfer());
        }
        self.library.start3(transfer)
    }

    #[cold]
    fn start_by_detour(&'static self, transfer: &Transfer) -> Result<()> {
        if self.is_generic() {
            return self.start_remotely(transfer);
        }
        let began = CallBegun::by_sending();
        let started = self.library.start3(|| *transfer);
        self.library.record_call(called(transfer.verb), began);
        started
    }

    #[cold]
    fn start_remotely(&'static self, transfer: &Transfer) -> Result<()> {
        if self.post(transfer)? {
            return Ok(());
        }
        let start = || match self.try_start3(*transfer) {
            Err(Error::NoSpace) => Ok(None),
            done => Ok(Some(done)),
        };
        self.remote
            .until(&self.library, start)
            .map_err(of_waiting)?
    }

    /// Posts a data movement; false where it must be asked for.
    fn post(&self, transfer: &Transfer) -> Result<bool> {
        self.check_alive()?;
        if !self.cache.lock().allows(transfer) {
            return Ok(false);
        }
        let command = Command3::<Claim>::Start(*transfer);
        let command = AnyCommand::<(), _>::Portals3(&command);
        let posted = self.remote.post_command(&command);
        posted.map_err(|_| Error::Fail)
    }

    /// PtlEQAlloc. With a handler, it is called with each event, and none is queued.
    ///
    /// # Errors
    /// As [`Library::queue_alloc3`].
    pub fn queue_alloc(
        &'static self,
        interface: Handle,
        count: u64,
        handler: Option<Handler>,
    ) -> Result<Handle> {
        if !self.is_generic() {
            return self.library.queue_with_handler(interface, count, handler);
        }
        let Some(handler) = handler else {
            return self.queue_alloc3(interface, count);
        };
        let queue = self.queue_alloc3(interface, count)?;
        self.handlers.insert(&self.remote, queue, handler)?;
        Ok(queue)
    }

    /// PtlEQGet: gives `take` the next event, on each path where it was read, so that the
    /// compiler need not gather its words for a return. Makes progress if there is no event.
    ///
    /// # Errors
    /// `EqInvalid`, `EqEmpty`
    #[inline]
    pub fn queue_get<R>(&self, queue: Handle, take: impl FnOnce(Taken3) -> R) -> Result<R> {
        if self.is_generic() {
            return self.look(|region| region.take_event3(queue)).map(take);
        }
        self.library.queue_get3(queue, take)
    }

    /// PtlEQPeek: as [`queue_get`](Self::queue_get), but the event stays.
    ///
    /// # Errors
    /// `EqInvalid`, `EqEmpty`
    pub fn queue_peek(&self, queue: Handle) -> Result<Taken3> {
        if self.is_generic() {
            return self.look(|region| region.peek_event3(queue));
        }
        self.library.queue_peek(queue)
    }

    #[cold]
    fn look(&self, look: impl Fn(&SharedRegion) -> Result<Option<Taken3>>) -> Result<Taken3> {
        self.check_alive()?;
        let found = self.remote.look(|region| look(region).transpose());
        found.map_err(|_| Error::Fail)?.ok_or(Error::EqEmpty)?
    }

    /// PtlEQWait: gives `take` the next event.
    ///
    /// # Errors
    /// `EqInvalid`
    #[inline]
    pub fn queue_wait<R>(&self, queue: Handle, take: impl FnOnce(Taken3) -> R) -> Result<R> {
        if self.takes_detour() {
            return self.wait_by_detour(queue).map(take);
        }
        self.library.queue_wait3(queue, take)
    }

    #[cold]
    fn wait_by_detour(&self, queue: Handle) -> Result<Taken3> {
        if self.is_generic() {
            let (taken, _) = self.poll_remotely(&[queue], u32::MAX)?;
            return Ok(taken);
        }
        let began = CallBegun::now();
        let taken = self.library.queue_wait3(queue, |taken| taken);
        self.library.record_call("PtlEQWait", began);
        taken
    }

    /// PtlEQPoll: the next event of any of the queues, and which had it. The
    /// search begins behind the queue that was served last.
    ///
    /// # Errors
    /// `EqInvalid`; `EqEmpty` once the timeout (ms) is over.
    pub fn queue_poll(&self, queues: &[Handle], timeout: u32) -> Result<(Taken3, usize)> {
        if self.is_generic() {
            return self.poll_remotely(queues, timeout);
        }
        self.library.queue_poll3(queues, timeout)
    }

    #[cold]
    fn poll_remotely(&self, queues: &[Handle], timeout: u32) -> Result<(Taken3, usize)> {
        self.check_alive()?;
        if queues.is_empty() {
            return Err(Error::EqInvalid);
        }
        let served = &self.library.owner().shared().served;
        let first = after_last(served, queues);
        let any = |region: &SharedRegion| Ok(first_event(region, queues, first).transpose());
        let found = self.remote.wait(&self.library, timeout, any);
        let (taken, which) = found.map_err(of_waiting)?.ok_or(Error::EqEmpty)??;
        served.store(queues[which].0, Ordering::Relaxed);
        Ok((taken, which))
    }

    /// PtlProgress.
    pub fn progress(&self) {
        // An agent makes progress by itself.
        if !self.is_generic() {
            self.library.progress3();
        }
    }
}

/// The call that starts a data movement, in timelines.
fn called(verb: Verb) -> &'static str {
    match verb {
        Verb::Put => "PtlPut",
        Verb::Get => "PtlGet",
        Verb::GetPut => "PtlGetPut",
    }
}

/// The next event of any of the queues. A call with one invalid queue fails.
fn first_event(
    region: &SharedRegion,
    queues: &[Handle],
    first: usize,
) -> Result<Option<(Taken3, usize)>> {
    queues
        .iter()
        .try_for_each(|queue| region.check_queue3(*queue))?;
    first_event3(queues, first, |queue| region.take_event3(queue))
}

/// Why a wait for the agent ended.
fn of_waiting(error: Error4) -> Error {
    match error {
        Error4::NoInit | Error4::Aborted => Error::NoInit,
        // The interface, and all that it had, has been closed.
        Error4::ArgInvalid => Error::EqInvalid,
        _ => Error::Fail,
    }
}

/// The spans of the table's calls, in this process.
type S = Claim;

for_each_command3!(process_calls Process3 Command3);

/// How often a process was forked off one that used Portals, and has begun anew.
static DEPTH: AtomicUsize = AtomicUsize::new(0);
static PROCESSES: [OnceLock<Process3>; 64] = [const { OnceLock::new() }; 64];
