//! The library that serves one owner: the engine's interfaces under a lock, with a
//! helper that makes progress. A process has one, an agent one for each client.

use crate::core::{Core, OpenInterface};
use crate::effects::Effects;
use crate::helper;
use crate::log::{Level, log, set_level};
use crate::orphans;
use crate::owner::Owner;
use crate::queue::MAX_EVENTS;
use crate::resources::ProcessInfo;
use crate::settings::Settings;
use crate::transport::{self, Endpoint};
use crate::watcher;
use lintel_bridge::Tables;
use lintel_claim::Lease;
use lintel_engine4::{Config, Interface, Tokens, number};
use lintel_nal::{Nal, Wake};
use lintel_presence::{Bell, Sleeper};
use lintel_types::{Error, Handle, InterfaceNumber, Kind, Limits, ProcessId, Result, options};
use parking_lot::Mutex;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// `PTL_IFACE_DEFAULT`
const DEFAULT_IFACE: u32 = u32::MAX;
/// How long the last close waits for peers to take what was sent to them.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often it looks.
const POLL_INTERVAL: Duration = Duration::from_micros(50);
/// How long a peer's system call may still copy after what it copies was taken back. A
/// copy of a GiB takes a tenth of that; who takes longer has been stopped behind it.
const COPY_TIMEOUT: Duration = Duration::from_secs(2);
/// How long an agent waits for a name that a client of its may just be leaving, and how
/// often it looks.
const PID_TIMEOUT: Duration = Duration::from_secs(3);
const PID_RETRY: Duration = Duration::from_millis(5);

/// Everything that Lintel keeps for an owner.
pub struct Library<O: Owner> {
    owner: O,
    /// How its threads keep it.
    pinned: OnceLock<Pinned<O>>,
    references: AtomicU32,
    /// A fork's child has the memory but not the threads.
    forked: AtomicBool,
    aborted: AtomicBool,
    /// Counts calls that posted or counted something.
    activity: AtomicU64,
    core: Mutex<Option<Core<O>>>,
    helper: Mutex<Option<JoinHandle<()>>>,
    /// One interface is opened or closed at a time.
    opening: Mutex<Generations>,
}

/// What keeps a library where it is.
enum Pinned<O: Owner> {
    /// It is the process's own.
    Process(&'static Library<O>),
    /// It ends with its client.
    Client(Weak<Library<O>>),
}

/// A library that stays for as long as a thread needs it.
pub(crate) enum LibraryRef<O: Owner> {
    Process(&'static Library<O>),
    Client(Arc<Library<O>>),
}

impl<O: Owner> Pinned<O> {
    fn library(&self) -> Option<LibraryRef<O>> {
        match self {
            Pinned::Process(library) => Some(LibraryRef::Process(library)),
            Pinned::Client(library) => library.upgrade().map(LibraryRef::Client),
        }
    }
}

impl<O: Owner> Clone for LibraryRef<O> {
    fn clone(&self) -> Self {
        match self {
            LibraryRef::Process(library) => LibraryRef::Process(library),
            LibraryRef::Client(library) => LibraryRef::Client(library.clone()),
        }
    }
}

impl<O: Owner> Deref for LibraryRef<O> {
    type Target = Library<O>;

    fn deref(&self) -> &Library<O> {
        match self {
            LibraryRef::Process(library) => library,
            LibraryRef::Client(library) => library,
        }
    }
}

/// What tells the interfaces of a place apart: what the handles of the next one, and the
/// tokens of its operations, begin with.
struct Generations([(u16, Tokens); 4]);

/// How interfaces end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CloseMode {
    /// By the owner's call: its queues and counters are gone when it returns.
    Requested,
    /// The owner or the agent has ended: whoever waits learns of that alone.
    Abrupt,
}

impl CloseMode {
    /// How long peers are waited for.
    fn timeout(self) -> Duration {
        match self {
            CloseMode::Requested => CLOSE_TIMEOUT,
            CloseMode::Abrupt => Duration::ZERO,
        }
    }
}

impl<O: Owner> Library<O> {
    /// A library without an interface; handles of its interfaces begin with
    /// `generation`.
    pub(crate) fn new(owner: O, generation: u16) -> Self {
        let first = (generation % Handle::GENERATIONS, Tokens::default());
        Library {
            owner,
            pinned: OnceLock::new(),
            references: AtomicU32::new(0),
            forked: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            activity: AtomicU64::new(0),
            core: Mutex::new(None),
            helper: Mutex::new(None),
            opening: Mutex::new(Generations([first; 4])),
        }
    }

    /// The library of somebody who lives elsewhere: it is in use until it is dropped.
    pub(crate) fn of_client(owner: O, generation: u16) -> Arc<Self> {
        Arc::new_cyclic(|library| {
            let new = Library::new(owner, generation);
            new.references.store(1, Ordering::Relaxed);
            // It is new, so there is none yet.
            let _ = new.pinned.set(Pinned::Client(library.clone()));
            new
        })
    }

    /// The process's own library: it stays where it is.
    pub(crate) fn pin(&'static self) {
        // Where it is set already, it is the same.
        let _ = self.pinned.set(Pinned::Process(self));
    }

    /// Whose it is.
    pub(crate) fn owner(&self) -> &O {
        &self.owner
    }

    /// PtlInit. Counted.
    ///
    /// # Errors
    /// `Fail` where an environment variable isn't understood, or in a fork's child.
    pub fn init(&self) -> Result<Settings> {
        if self.forked.load(Ordering::Relaxed) {
            log(Level::Warn, "a fork's child can't use its parent's Portals");
            return Err(Error::Fail);
        }
        let settings = self.owner.settings().map_err(|error| {
            eprintln!("lintel[{}]: {error}", std::process::id());
            Error::Fail
        })?;
        set_level(settings.level);
        self.aborted.store(false, Ordering::Relaxed);
        self.references.fetch_add(1, Ordering::AcqRel);
        Ok(settings)
    }

    /// PtlFini. The last one closes every interface; true where it was that.
    pub fn fini(&self) -> bool {
        if self.forked.load(Ordering::Relaxed) {
            return false;
        }
        let before = self
            .references
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                count.checked_sub(1)
            });
        if before == Ok(1) {
            self.close_all();
        }
        before == Ok(1)
    }

    /// Closes every interface and leaves the network.
    pub(crate) fn close_all(&self) {
        self.close_each(CloseMode::Requested);
    }

    /// As [`close_all`](Self::close_all), but waits for peers no longer than they use what
    /// was lent to them.
    pub(crate) fn close_abruptly(&self) {
        self.close_each(CloseMode::Abrupt);
    }

    fn close_each(&self, mode: CloseMode) {
        let mut generations = self.opening.lock();
        for number in InterfaceNumber::ALL {
            self.close_number(number, &mut generations, mode);
        }
        self.leave(mode.timeout());
    }

    /// Closes every interface and leaves the network, by a client's wish.
    ///
    /// # Errors
    /// None.
    pub fn leave_all(&self) -> Result<()> {
        self.close_all();
        Ok(())
    }

    /// Whether an interface is open.
    pub(crate) fn is_open(&self) -> bool {
        self.core.lock().is_some()
    }

    /// PtlAbort: everyone who waits returns, and waits no more.
    pub fn abort(&self) {
        self.aborted.store(true, Ordering::Release);
        if self.forked.load(Ordering::Relaxed) {
            return;
        }
        if let Some(bell) = self.bell() {
            bell.wake(Sleeper::Caller);
        }
    }

    /// The process ends without a `fini`: leaves the network, so that peers learn
    /// of it and nothing stays behind. True where it hadn't before.
    pub fn exit(&self) -> bool {
        let leaves =
            !self.forked.load(Ordering::Relaxed) && self.references.swap(0, Ordering::AcqRel) > 0;
        if leaves {
            self.leave(CLOSE_TIMEOUT);
        }
        leaves
    }

    /// Called in the child of a fork: the calls of the child answer with an error.
    pub fn on_fork(&self) {
        self.forked.store(true, Ordering::Relaxed);
    }

    /// Whether Portals can be used now.
    ///
    /// # Errors
    /// `NoInit` before the first `init`, after the last `fini`, in a fork's child.
    #[inline]
    pub fn check_alive(&self) -> Result<()> {
        if self.references.load(Ordering::Relaxed) == 0 || self.forked.load(Ordering::Relaxed) {
            return Err(Error::NoInit);
        }
        Ok(())
    }

    /// PtlAtomicSync: atomics are carried out under the core's lock, so those begun
    /// have ended, and are seen, once it was had.
    ///
    /// # Errors
    /// `NoInit`
    pub fn atomic_sync(&self) -> Result<()> {
        self.check_alive()?;
        drop(self.core.lock());
        Ok(())
    }

    /// PtlNIInit. Counted; an interface that is open already keeps its limits.
    ///
    /// # Errors
    /// `ArgInvalid`, `PidInUse`, `NoSpace`, `Fail` where shared memory can't be had.
    pub fn open_interface(
        &self,
        iface: u32,
        options: u32,
        pid: u32,
        desired: Option<Limits>,
    ) -> Result<(Handle, Limits)> {
        self.check_alive()?;
        let one_of = |a, b| (options & a != 0) != (options & b != 0);
        let known = options & !0xf == 0
            && one_of(options::NI_MATCHING, options::NI_NO_MATCHING)
            && one_of(options::NI_LOGICAL, options::NI_PHYSICAL);
        if !known || !matches!(iface, 0 | DEFAULT_IFACE) || pid > ProcessId::PID_ANY {
            return Err(Error::ArgInvalid);
        }
        let generations = self.opening.lock();
        self.join(pid)?;
        let number = number(options);
        let next = generations.0[number.position()];
        self.with_core(|core| use_interface(core, options, next, desired))
            .ok_or(Error::NoInit)
    }

    /// PtlNIFini.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't an open interface.
    pub fn close_interface(&self, handle: Handle) -> Result<()> {
        self.check_alive()?;
        let mut generations = self.opening.lock();
        let number = handle.interface();
        let last = self
            .with_core(|core| {
                check_interface(core, handle)?;
                let opened = core.interfaces[number.position()]
                    .as_mut()
                    .ok_or(Error::ArgInvalid)?;
                opened.references -= 1;
                Ok(opened.references == 0)
            })
            .ok_or(Error::ArgInvalid)??;
        if last {
            self.close_number(number, &mut generations, CloseMode::Requested);
        }
        Ok(())
    }

    /// Carries out an engine command on an interface, and what it causes at once.
    ///
    /// # Errors
    /// `ArgInvalid` where the handle's interface isn't open, `NoInit`, and the
    /// command's own.
    #[inline(always)]
    pub fn with<R>(
        &self,
        handle: Handle,
        command: impl FnOnce(&mut Interface<O::Span>, &mut Effects<'_, O>) -> Result<R>,
    ) -> Result<R> {
        self.check_alive()?;
        let mut guard = self.core.lock();
        let Some(core) = guard.as_mut() else {
            return Err(Error::ArgInvalid);
        };
        if handle.is(Kind::Interface) {
            check_interface(core, handle)?;
        }
        let Some((interface, mut effects)) = core.interface(handle.interface()) else {
            return Err(Error::ArgInvalid);
        };
        let result = command(interface, &mut effects);
        if !core.transports.loopback.is_empty() {
            core.drain_loopback();
        }
        if core.transports.is_behind() {
            core.drain_backlog();
        }
        if core.helper_oversleeps() {
            core.wake_helper();
        }
        let wake = self.note_activity(core);
        drop(guard);
        self.wake_callers(wake);
        result
    }

    /// As [`with`](Self::with), for a command that ends something: where that is in
    /// use, what has arrived is looked at, and then it is tried once more.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    pub fn end_with<R>(
        &self,
        handle: Handle,
        mut command: impl FnMut(&mut Interface<O::Span>) -> Result<R>,
    ) -> Result<R> {
        match self.with(handle, |interface, _| command(interface)) {
            Err(Error::InUse | Error::PtInUse) => {
                self.with_core(Core::progress);
                self.with(handle, |interface, _| command(interface))
            }
            done => done,
        }
    }

    /// Starts a data movement by the step that the caller brings. While too many
    /// operations await their answers, or too much waits for the target, waits.
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline(always)]
    pub fn start_by(
        &self,
        descriptor: Handle,
        mut step: impl FnMut(&mut Interface<O::Span>, &mut Effects<'_, O>) -> Result<()>,
    ) -> Result<()> {
        loop {
            match self.with(descriptor, &mut step) {
                Err(Error::NoSpace) => self.wait_for_an_answer(descriptor)?,
                done => return done,
            }
        }
    }

    #[cold]
    fn wait_for_an_answer(&self, by: Handle) -> Result<()> {
        let under_way = |interface: &mut Interface<O::Span>| interface.operations_under_way();
        let full = self.with(by, |interface, _| Ok(under_way(interface)))?;
        let blocked = self.with_core(|core| core.transports.is_blocked()) == Some(true);
        self.until(|| {
            let has_room = match blocked {
                true => self.with_core(|core| !core.transports.is_blocked()),
                false => Some(self.with(by, |interface, _| Ok(under_way(interface)))? < full),
            };
            Ok((has_room != Some(false)).then_some(()))
        })
    }

    /// Makes progress until a command gives something.
    ///
    /// # Errors
    /// The command's, and those of waiting.
    pub fn until<R>(&self, command: impl FnMut() -> Result<Option<R>>) -> Result<R> {
        self.wait(None, command)?.ok_or(Error::Fail)
    }

    /// PtlEQAlloc.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoSpace` beyond `max_eqs` or what a queue can hold.
    pub fn queue_alloc(&self, interface: Handle, count: u64) -> Result<Handle> {
        if count > MAX_EVENTS {
            return Err(Error::NoSpace);
        }
        self.with(interface, |interface, effects| {
            let handle = interface.queue_alloc(count)?;
            if let Err(error) = effects.tables.begin_queue(handle, count) {
                interface.queue_free(handle)?;
                return Err(error);
            }
            Ok(handle)
        })
    }

    /// PtlEQFree.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live queue.
    pub fn queue_free(&self, handle: Handle) -> Result<()> {
        self.with(handle, |interface, effects| {
            interface.queue_free(handle)?;
            effects.tables.end_queue(handle);
            // For those who wait for it.
            effects.transports.activity = true;
            Ok(())
        })
    }

    /// PtlCTAlloc.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoSpace` beyond `max_cts`.
    pub fn counter_alloc(&self, interface: Handle) -> Result<Handle> {
        self.with(interface, |interface, effects| {
            let handle = interface.counter_alloc(effects)?;
            effects.tables.begin_counter(handle);
            Ok(handle)
        })
    }

    /// PtlCTFree.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live counter.
    pub fn counter_free(&self, handle: Handle) -> Result<()> {
        self.with(handle, |interface, effects| {
            interface.counter_free(handle)?;
            effects.tables.end_counter(handle);
            // For those who wait for it.
            effects.transports.activity = true;
            Ok(())
        })
    }

    /// Makes progress, unless another thread does.
    #[inline(always)]
    pub(crate) fn poll(&self) {
        let Some(mut guard) = self.core.try_lock() else {
            return;
        };
        let Some(core) = guard.as_mut() else { return };
        if core.poll() {
            core.disarm_bell();
        }
        let wake = self.note_activity(core);
        drop(guard);
        self.wake_callers(wake);
    }

    /// As [`poll`](Self::poll), by a thread that polls for somebody else.
    pub(crate) fn poll_for_client(&self) {
        self.with_core(|core| core.polling_stopped = false);
        self.poll();
    }

    /// Something under the core's lock, with what it causes.
    pub(crate) fn with_core<R>(&self, f: impl FnOnce(&mut Core<O>) -> R) -> Option<R> {
        let mut guard = self.core.lock();
        let core = guard.as_mut()?;
        let result = f(core);
        let wake = self.note_activity(core);
        drop(guard);
        self.wake_callers(wake);
        Some(result)
    }

    pub(crate) fn bell(&self) -> Option<Bell> {
        self.core.lock().as_ref().map(|core| core.bell.clone())
    }

    pub(crate) fn activity(&self) -> u64 {
        self.activity.load(Ordering::Acquire)
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Takes note of events; true where callers sleep who may wait for them.
    #[inline(always)]
    fn note_activity(&self, core: &mut Core<O>) -> bool {
        if !core.transports.activity {
            return false;
        }
        core.transports.activity = false;
        // Under the core's lock, so a load and a store are enough.
        self.activity
            .store(self.activity.load(Ordering::Relaxed) + 1, Ordering::Release);
        self.owner.note_activity();
        core.callers_asleep > 0
    }

    #[inline]
    fn wake_callers(&self, wake: bool) {
        if wake {
            if let Some(bell) = self.bell() {
                bell.wake(Sleeper::Caller);
            }
        }
    }

    /// The name of a killed client is free once its agent has seen it end, and has
    /// sent what it left.
    fn join_networks(&self, settings: &Settings, pid: u32) -> Result<Endpoint> {
        let until = Instant::now()
            + if O::DIRECT {
                Duration::ZERO
            } else {
                PID_TIMEOUT
            };
        loop {
            match transport::join(settings, pid, self.owner.uid()) {
                Err(Error::PidInUse) if Instant::now() < until => {
                    std::thread::sleep(PID_RETRY);
                }
                Err(Error::PidInUse) => {
                    let words = format!("no interface: another process has the name {pid}");
                    log(Level::Warn, &words);
                    return Err(Error::PidInUse);
                }
                taken => return taken,
            }
        }
    }

    /// Opens the NAL and starts the helper, for the first interface.
    fn join(&self, pid: u32) -> Result<()> {
        if let Some(core) = self.core.lock().as_ref() {
            return match pid == ProcessId::PID_ANY || pid == core.transports.me.pid {
                true => Ok(()),
                false => Err(Error::ArgInvalid),
            };
        }
        let settings = self.owner.settings().map_err(|_| Error::Fail)?;
        let endpoint = self.join_networks(&settings, pid)?;
        let info = ProcessInfo::new(&settings, !O::DIRECT);
        *self.core.lock() = Some(Core::new(endpoint, info, self.owner.clone()));
        let library = self
            .pinned
            .get()
            .and_then(Pinned::library)
            .ok_or(Error::Fail)?;
        match watcher::start(&library).and_then(|()| helper::start(library)) {
            Ok(helper) => *self.helper.lock() = Some(helper),
            Err(error) => {
                self.end_threads();
                *self.core.lock() = None;
                log(Level::Warn, &format!("no thread for progress: {error}"));
                return Err(Error::NoSpace);
            }
        }
        Ok(())
    }

    /// Ends an interface; the last one leaves the network.
    fn close_number(
        &self,
        number: InterfaceNumber,
        generations: &mut Generations,
        mode: CloseMode,
    ) {
        self.await_loans(number, mode.timeout());
        let index = number.position();
        let last = self.with_core(|core| {
            let tokens = core.interfaces[index]
                .as_ref()
                .map(|o| o.interface.next_tokens());
            let lease = core.end_interface(number);
            if mode == CloseMode::Requested {
                core.owner.tables()[index].end_all();
            }
            if let Some(tokens) = tokens {
                let handles = (generations.0[index].0 + 97) % Handle::GENERATIONS;
                generations.0[index] = (handles, tokens);
            }
            (lease, core.interfaces.iter().all(Option::is_none))
        });
        let Some((lease, last)) = last else { return };
        if let Some(lease) = lease {
            self.await_recall(&lease);
        }
        if last {
            self.leave(mode.timeout());
        }
    }

    /// Waits until peers have answered what was lent to them. Once they have become no
    /// fewer for so long, the rest is given up: what arrives meanwhile holds nobody.
    fn await_loans(&self, number: InterfaceNumber, timeout: Duration) {
        let mut least = usize::MAX;
        let mut until = Instant::now() + timeout;
        while Instant::now() < until {
            let left = self.with_core(|core| {
                core.progress();
                core.check_peers();
                core.loans(number)
            });
            let left = left.flatten().unwrap_or(0);
            if left == 0 {
                return;
            }
            if left < least {
                least = left;
                until = Instant::now() + timeout;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until no peer is in a copy that it began while the interface was open.
    fn await_recall(&self, lease: &Lease) {
        let until = Instant::now() + COPY_TIMEOUT;
        let recall = |core: &mut Core<O>| core.transports.nal.recall(lease);
        while self.with_core(recall) == Some(false) && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits, within bounds, until peers have taken what was sent; then leaves.
    fn leave(&self, timeout: Duration) {
        let until = Instant::now() + timeout;
        let sends = |core: &mut Core<O>| {
            core.progress();
            core.check_peers();
            core.transports.nal.flush() || !core.transports.nal.all_delivered()
        };
        while self.with_core(sends) == Some(true) && Instant::now() < until {
            std::thread::sleep(POLL_INTERVAL);
        }
        self.end_threads();
        if let Some(mut core) = self.core.lock().take() {
            orphans::adopt(core.take_orphans());
        }
    }

    /// Ends the helper and the watcher; nobody makes progress any more but callers.
    fn end_threads(&self) {
        let bell = self.bell();
        self.with_core(|core| core.closing = true);
        if let Some(helper) = self.helper.lock().take() {
            if let Some(bell) = &bell {
                bell.wake(Sleeper::Helper);
            }
            let _ = helper.join();
        }
        // Outside the lock: the watcher may want it before it ends.
        if let Some(watcher) = self.with_core(|core| core.watcher.take()).flatten() {
            watcher.end();
        }
    }
}

fn use_interface<O: Owner>(
    core: &mut Core<O>,
    options: u32,
    (generation, tokens): (u16, Tokens),
    desired: Option<Limits>,
) -> (Handle, Limits) {
    let number = number(options);
    let process = core.transports.me;
    let eager = core.owner.eager(core.transports.nal.capabilities().eager);
    let (uid, owner) = (core.owner.uid(), core.owner.clone());
    let opened = core.interfaces[number.position()].get_or_insert_with(|| {
        let mut limits = owner.limits(desired.unwrap_or(Limits::DEFAULT));
        // What is longer stays in its place until it is answered.
        limits.max_volatile_size = limits.max_volatile_size.min(eager);
        let config = Config {
            options,
            limits,
            process,
            uid,
            eager,
            generation,
        };
        let mut interface = Box::new(Interface::new(config));
        interface.begin_with(tokens);
        OpenInterface {
            interface,
            references: 0,
            generation,
            lease: Lease::new(),
        }
    });
    opened.references += 1;
    let handle = Handle::new(Kind::Interface, number, opened.generation, 0);
    (handle, *opened.interface.limits())
}

fn check_interface<O: Owner>(core: &Core<O>, handle: Handle) -> Result<()> {
    let number = handle.interface();
    match &core.interfaces[number.position()] {
        Some(opened) if handle == Handle::new(Kind::Interface, number, opened.generation, 0) => {
            Ok(())
        }
        _ => Err(Error::ArgInvalid),
    }
}
