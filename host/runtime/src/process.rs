//! The one per process: what the public calls reach first.

use crate::core::{Core, Opened};
use crate::effects::Effects;
use crate::helper;
use crate::log::{Level, log, set_level};
use crate::queue::Taken;
use crate::resources::About;
use crate::settings::Settings;
use crate::tables::Tables;
use crate::{Interface, queue::MOST_EVENTS};
use crate::{watcher, ways};
use lintel_engine4::{Config, Transfer, number};
use lintel_nal::Nal;
use lintel_nal_shm::{Bell, Sleeper};
use lintel_types::{CountingEvent, Error, Event, Handle, Kind, Limits, ProcessId, Result, options};
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// `PTL_IFACE_DEFAULT`
const DEFAULT_IFACE: u32 = u32::MAX;
/// `PTL_TIME_FOREVER`
const FOREVER: u32 = u32::MAX;
/// How long the last close waits for peers to take what was sent to them.
const FAREWELL: Duration = Duration::from_secs(2);

/// Everything that Lintel keeps in a process.
#[derive(Default)]
pub struct Process {
    references: AtomicU32,
    /// A fork's child has the memory but not the threads.
    forked: AtomicBool,
    aborted: AtomicBool,
    /// Counts calls that posted or counted something.
    noise: AtomicU64,
    core: Mutex<Option<Core>>,
    helper: Mutex<Option<JoinHandle<()>>>,
    /// One interface is opened or closed at a time.
    opening: Mutex<Generations>,
}

#[derive(Default)]
struct Generations([u16; 4]);

/// The process's own.
pub fn process() -> &'static Process {
    static PROCESS: OnceLock<Process> = OnceLock::new();
    PROCESS.get_or_init(Process::default)
}

fn tables() -> &'static [Tables; 4] {
    static TABLES: OnceLock<[Tables; 4]> = OnceLock::new();
    TABLES.get_or_init(Default::default)
}

impl Process {
    /// PtlInit. Counted.
    ///
    /// # Errors
    /// `Fail` where an environment variable isn't understood, or in a fork's child.
    pub fn init(&self) -> Result<()> {
        if self.forked.load(Ordering::Relaxed) {
            log(Level::Warn, "a fork's child can't use its parent's Portals");
            return Err(Error::Fail);
        }
        let settings = Settings::from_env().map_err(|error| {
            eprintln!("lintel[{}]: {error}", std::process::id());
            Error::Fail
        })?;
        set_level(settings.level);
        self.aborted.store(false, Ordering::Relaxed);
        self.references.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// PtlFini. The last one closes every interface.
    pub fn fini(&self) {
        if self.forked.load(Ordering::Relaxed) {
            return;
        }
        let before = self
            .references
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
                count.checked_sub(1)
            });
        if before == Ok(1) {
            let mut generations = self.opening.lock();
            for number in 0..4 {
                self.shut(number, &mut generations);
            }
            self.leave();
        }
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
    /// of it and nothing stays behind.
    pub fn exit(&self) {
        if !self.forked.load(Ordering::Relaxed) && self.references.swap(0, Ordering::AcqRel) > 0 {
            self.leave();
        }
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
    pub fn open(
        &'static self,
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
        let generation = generations.0[number as usize];
        self.with_core(|core| open_interface(core, options, generation, desired))
            .ok_or(Error::NoInit)
    }

    /// PtlNIFini.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't an open interface.
    pub fn close(&'static self, handle: Handle) -> Result<()> {
        self.check_alive()?;
        let mut generations = self.opening.lock();
        let number = handle.interface();
        let last = self
            .with_core(|core| {
                check_interface(core, handle)?;
                let opened = core.interfaces[number as usize]
                    .as_mut()
                    .ok_or(Error::ArgInvalid)?;
                opened.references -= 1;
                Ok(opened.references == 0)
            })
            .ok_or(Error::ArgInvalid)??;
        if last {
            self.shut(number, &mut generations);
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
        &'static self,
        handle: Handle,
        command: impl FnOnce(&mut Interface, &mut Effects<'_>) -> Result<R>,
    ) -> Result<R> {
        self.check_alive()?;
        let mut guard = self.core.lock();
        let Some(core) = guard.as_mut() else {
            return Err(Error::ArgInvalid);
        };
        if handle.is(Kind::Interface) {
            check_interface(core, handle)?;
        }
        let Some((interface, mut effects)) = core.parts(handle.interface()) else {
            return Err(Error::ArgInvalid);
        };
        let result = command(interface, &mut effects);
        if !core.ways.loopback.is_empty() {
            core.drain_loopback();
        }
        if core.ways.nal_waits() {
            core.make_way();
        }
        if core.oversleeps() {
            core.wake_helper();
        }
        let wake = self.make_noise(core);
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
        &'static self,
        handle: Handle,
        mut command: impl FnMut(&mut Interface) -> Result<R>,
    ) -> Result<R> {
        match self.with(handle, |interface, _| command(interface)) {
            Err(Error::InUse | Error::PtInUse) => {
                self.with_core(Core::progress);
                self.with(handle, |interface, _| command(interface))
            }
            done => done,
        }
    }

    /// Starts a data movement. While too many operations await their answers,
    /// waits for one of them.
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline(always)]
    pub fn start(&'static self, transfer: &Transfer) -> Result<()> {
        let by = if transfer.source == Handle::INVALID {
            transfer.sink
        } else {
            transfer.source
        };
        self.start_by(by, |interface, effects| interface.start(transfer, effects))
    }

    /// As [`start`](Self::start), for a caller that knows the descriptor and brings
    /// the step itself: the compiler then sees the whole way of that one call.
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline(always)]
    pub fn start_by(
        &'static self,
        descriptor: Handle,
        mut step: impl FnMut(&mut Interface, &mut Effects<'_>) -> Result<()>,
    ) -> Result<()> {
        loop {
            match self.with(descriptor, &mut step) {
                Err(Error::NoSpace) => self.wait_for_an_answer(descriptor)?,
                done => return done,
            }
        }
    }

    #[cold]
    fn wait_for_an_answer(&'static self, by: Handle) -> Result<()> {
        let under_way = |interface: &mut Interface| interface.operations_under_way();
        let full = self.with(by, |interface, _| Ok(under_way(interface)))?;
        self.until(|| {
            let now = self.with(by, |interface, _| Ok(under_way(interface)))?;
            Ok((now < full).then_some(()))
        })
    }

    /// Makes progress until a command gives something.
    ///
    /// # Errors
    /// The command's, and those of waiting.
    pub fn until<R>(&'static self, command: impl FnMut() -> Result<Option<R>>) -> Result<R> {
        self.wait(None, command)?.ok_or(Error::Fail)
    }

    /// The interface handle that an object's handle belongs to (PtlNIHandle).
    ///
    /// # Errors
    /// `ArgInvalid` where that interface isn't open.
    pub fn interface_of(&'static self, handle: Handle) -> Result<Handle> {
        self.check_alive()?;
        self.with_core(|core| {
            let number = handle.interface();
            let opened = core.interfaces[number as usize]
                .as_ref()
                .ok_or(Error::ArgInvalid)?;
            Ok(Handle::new(Kind::Interface, number, opened.generation, 0))
        })
        .unwrap_or(Err(Error::ArgInvalid))
    }

    /// PtlEQAlloc.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoSpace` beyond `max_eqs` or what a queue can hold.
    pub fn queue_alloc(&'static self, interface: Handle, count: u64) -> Result<Handle> {
        if count > MOST_EVENTS / 2 {
            return Err(Error::NoSpace);
        }
        self.with(interface, |interface, effects| {
            let handle = interface.queue_alloc(count)?;
            effects
                .tables
                .queue_at(handle.index())
                .begin(handle.0, count);
            Ok(handle)
        })
    }

    /// PtlEQFree.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live queue.
    pub fn queue_free(&'static self, handle: Handle) -> Result<()> {
        self.with(handle, |interface, effects| {
            interface.queue_free(handle)?;
            effects.tables.queue_at(handle.index()).end();
            // For those who wait for it.
            effects.ways.noise = true;
            Ok(())
        })
    }

    /// PtlEQGet: the next event, and whether others before it were lost.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `EqEmpty`.
    #[inline]
    pub fn queue_get(&'static self, handle: Handle) -> Result<(Event, bool)> {
        let taken = self.queue_take(handle)?;
        Ok((taken.event(), taken.dropped))
    }

    /// As [`queue_get`](Self::queue_get), the event still as words.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `EqEmpty`.
    #[inline(always)]
    pub fn queue_take(&'static self, handle: Handle) -> Result<Taken> {
        self.check_alive()?;
        let queue = tables()[handle.interface() as usize].queue(handle)?;
        if queue.is_empty() {
            self.poll();
        }
        queue.pop().ok_or(Error::EqEmpty)
    }

    /// PtlEQWait and PtlEQPoll: the next event of any of the queues, tried from
    /// `first` on, and which queue had it.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `Aborted`; `EqEmpty` once `timeout` (ms) is over.
    pub fn queue_poll(
        &'static self,
        handles: &[Handle],
        timeout: u32,
    ) -> Result<(Event, bool, usize)> {
        self.check_alive()?;
        let first = self.noise.load(Ordering::Relaxed) as usize % handles.len().max(1);
        let any = || {
            for step in 0..handles.len() {
                let which = (first + step) % handles.len();
                let handle = handles[which];
                let queue = tables()[handle.interface() as usize].queue(handle)?;
                if let Some(taken) = queue.pop() {
                    return Ok(Some((taken.event(), taken.dropped, which)));
                }
            }
            Ok(None)
        };
        if timeout == 0 {
            return self.look_once(any)?.ok_or(Error::EqEmpty);
        }
        self.wait(deadline(timeout), any)?.ok_or(Error::EqEmpty)
    }

    /// One look, progress, and another look.
    #[inline]
    fn look_once<T>(&'static self, ready: impl Fn() -> Result<Option<T>>) -> Result<Option<T>> {
        if self.is_aborted() {
            return Err(Error::Aborted);
        }
        match ready()? {
            None => {
                self.poll();
                ready()
            }
            found => Ok(found),
        }
    }

    /// PtlCTAlloc.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoSpace` beyond `max_cts`.
    pub fn counter_alloc(&'static self, interface: Handle) -> Result<Handle> {
        self.with(interface, |interface, effects| {
            let handle = interface.counter_alloc(effects)?;
            effects.tables.counter_at(handle.index()).begin(handle);
            Ok(handle)
        })
    }

    /// PtlCTFree.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live counter.
    pub fn counter_free(&'static self, handle: Handle) -> Result<()> {
        self.with(handle, |interface, effects| {
            interface.counter_free(handle)?;
            effects.tables.counter_at(handle.index()).end();
            // For those who wait for it.
            effects.ways.noise = true;
            Ok(())
        })
    }

    /// PtlCTGet. A caller that loops on it makes progress.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`.
    #[inline]
    pub fn counter_get(&'static self, handle: Handle) -> Result<CountingEvent> {
        self.check_alive()?;
        let cell = tables()[handle.interface() as usize].counter(handle)?;
        self.poll();
        Ok(cell.value())
    }

    /// PtlCTWait and PtlCTPoll: the first counter whose successes have reached its
    /// test, or that has counted a failure.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `Aborted`; `CtNoneReached` once `timeout` (ms) is over.
    pub fn counter_poll(
        &'static self,
        handles: &[Handle],
        tests: &[u64],
        timeout: u32,
    ) -> Result<(CountingEvent, usize)> {
        self.check_alive()?;
        let any = || {
            for (which, (handle, test)) in handles.iter().zip(tests).enumerate() {
                let cell = tables()[handle.interface() as usize].counter(*handle)?;
                let value = cell.value();
                if value.success >= *test || value.failure != 0 {
                    return Ok(Some((value, which)));
                }
            }
            Ok(None)
        };
        if timeout == 0 {
            return self.look_once(any)?.ok_or(Error::CtNoneReached);
        }
        self.wait(deadline(timeout), any)?
            .ok_or(Error::CtNoneReached)
    }

    /// Gives the queue of flow-controlled portal table entries room for what they report.
    pub fn reserve_events(&'static self, interface: Handle, queue: Handle) -> Result<()> {
        self.with(interface, |interface, effects| {
            let portals = interface.flow_controlled_portals(queue.index());
            // A message, its entry's unlinking, and the disabling for each.
            effects
                .tables
                .queue_at(queue.index())
                .set_reserve(portals * 4);
            Ok(())
        })
    }

    /// Makes progress, unless another thread does.
    #[inline(always)]
    pub(crate) fn poll(&'static self) {
        let Some(mut guard) = self.core.try_lock() else {
            return;
        };
        let Some(core) = guard.as_mut() else { return };
        if core.poll() {
            core.take_over_from_helper();
        }
        let wake = self.make_noise(core);
        drop(guard);
        self.wake_callers(wake);
    }

    /// Something under the core's lock, with what it causes.
    pub(crate) fn with_core<R>(&self, f: impl FnOnce(&mut Core) -> R) -> Option<R> {
        let mut guard = self.core.lock();
        let core = guard.as_mut()?;
        let result = f(core);
        let wake = self.make_noise(core);
        drop(guard);
        self.wake_callers(wake);
        Some(result)
    }

    pub(crate) fn bell(&self) -> Option<Bell> {
        self.core.lock().as_ref().map(|core| core.bell.clone())
    }

    pub(crate) fn noise(&self) -> u64 {
        self.noise.load(Ordering::Acquire)
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }

    /// Takes note of events; true where callers sleep who may wait for them.
    #[inline(always)]
    fn make_noise(&self, core: &mut Core) -> bool {
        if !core.ways.noise {
            return false;
        }
        core.ways.noise = false;
        // Under the core's lock, so a load and a store are enough.
        self.noise
            .store(self.noise.load(Ordering::Relaxed) + 1, Ordering::Release);
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

    /// Opens the NAL and starts the helper, for the first interface.
    fn join(&'static self, pid: u32) -> Result<()> {
        if let Some(core) = self.core.lock().as_ref() {
            return match pid == ProcessId::PID_ANY || pid == core.ways.me.pid {
                true => Ok(()),
                false => Err(Error::ArgInvalid),
            };
        }
        let settings = Settings::from_env().map_err(|_| Error::Fail)?;
        let uid = nix::unistd::geteuid().as_raw();
        let place = ways::join(&settings, pid, uid)?;
        *self.core.lock() = Some(Core::new(
            place,
            About::new(&settings, false),
            uid,
            tables(),
        ));
        match watcher::start(self).and_then(|()| helper::start(self)) {
            Ok(helper) => *self.helper.lock() = Some(helper),
            Err(error) => {
                *self.core.lock() = None;
                log(Level::Warn, &format!("no thread for progress: {error}"));
                return Err(Error::NoSpace);
            }
        }
        Ok(())
    }

    /// Ends an interface; the last one leaves the network.
    fn shut(&self, number: u8, generations: &mut Generations) {
        let index = number as usize;
        let last = self.with_core(|core| {
            if core.interfaces[index].take().is_some() {
                generations.0[index] = (generations.0[index] + 97) % Handle::GENERATIONS;
                core.tables[index].end_all();
            }
            core.interfaces.iter().all(Option::is_none)
        });
        if last == Some(true) {
            self.leave();
        }
    }

    /// Waits, within bounds, until peers have taken what was sent; then leaves.
    fn leave(&self) {
        let until = Instant::now() + FAREWELL;
        let sends = |core: &mut Core| {
            core.progress();
            core.check_peers();
            core.ways.nal.flush() || !core.ways.nal.is_settled()
        };
        while self.with_core(sends) == Some(true) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(50));
        }
        let bell = self.bell();
        self.with_core(|core| core.closing = true);
        if let Some(helper) = self.helper.lock().take() {
            if let Some(bell) = &bell {
                bell.wake(Sleeper::Helper);
            }
            let _ = helper.join();
        }
        let core = self.core.lock().take();
        // Outside the lock: the watcher may want it before it ends.
        if let Some(watcher) = core.and_then(|mut core| core.watcher.take()) {
            watcher.end();
        }
    }
}

fn open_interface(
    core: &mut Core,
    options: u32,
    generation: u16,
    desired: Option<Limits>,
) -> (Handle, Limits) {
    let number = number(options);
    let process = core.ways.me;
    let eager = core.ways.nal.caps().eager;
    let uid = nix::unistd::geteuid().as_raw();
    let opened = core.interfaces[number as usize].get_or_insert_with(|| {
        let limits = desired.unwrap_or(Limits::DEFAULT).clamped();
        let config = Config {
            options,
            limits,
            process,
            uid,
            eager,
            generation,
        };
        Opened {
            interface: Box::new(Interface::new(config)),
            references: 0,
            generation,
        }
    });
    opened.references += 1;
    let handle = Handle::new(Kind::Interface, number, opened.generation, 0);
    (handle, *opened.interface.limits())
}

fn check_interface(core: &Core, handle: Handle) -> Result<()> {
    let number = handle.interface();
    match &core.interfaces[number as usize] {
        Some(opened) if handle == Handle::new(Kind::Interface, number, opened.generation, 0) => {
            Ok(())
        }
        _ => Err(Error::ArgInvalid),
    }
}

fn deadline(timeout: u32) -> Option<Instant> {
    (timeout != FOREVER).then(|| Instant::now() + Duration::from_millis(timeout.into()))
}
