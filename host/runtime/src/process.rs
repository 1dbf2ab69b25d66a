//! The one per process: what the public calls reach first.

use crate::commands::{self, Command, for_each_command};
use crate::library::Library;
use crate::log::{Level, log};
use crate::owner::LocalProcess;
use crate::prepared::Asked;
use crate::queue_calls::FOREVER;
use crate::remote::Remote;
use crate::settings::Mode;
use crate::timeline::CallBegun;
use lintel_bridge::Taken;
use lintel_claim::Claim;
use lintel_engine4::{Deferred, DescriptorSpec, EntrySpec, Registers, SearchOp, Transfer};
use lintel_presence::shareable;
use lintel_types::{
    CountingEvent, Error, Event, Handle, Limits, List, PortalIndex, ProcessId, PtOptions, Result,
};
use lintel_wire::Verb;
use serde::Deserialize;
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything that Lintel keeps in a process: the library, or the way to the agent's.
pub struct Process {
    pub(crate) library: Library<LocalProcess>,
    remote: Remote,
    generic: AtomicBool,
    /// The engine lives in the agent, or calls are recorded: a call looks at this alone.
    detour: AtomicBool,
}

/// The one [`Process`] of this process, which its calls use.
#[inline(always)]
pub fn process() -> &'static Process {
    // Made by the compiler, so that calls find it at an address that the linker knows.
    static PROCESS: Process = Process {
        library: Library::new(LocalProcess::new(), 0),
        remote: Remote::new(),
        generic: AtomicBool::new(false),
        detour: AtomicBool::new(false),
    };
    &PROCESS
}

impl Process {
    /// PtlInit. Counted.
    ///
    /// # Errors
    /// `Fail` where an environment variable isn't understood, or in a fork's child.
    pub fn init(&self) -> Result<()> {
        let settings = self.library.init()?;
        let generic = settings.mode == Mode::Generic;
        if !self.remote.is_open() && !self.library.is_open() {
            self.generic.store(generic, Ordering::Relaxed);
            let is_recorded = settings.records_calls();
            self.detour.store(generic || is_recorded, Ordering::Relaxed);
        }
        Ok(())
    }

    /// PtlFini. The last one closes every interface.
    pub fn fini(&self) {
        if self.library.fini() {
            self.remote.leave();
        }
    }

    /// PtlAbort: everyone who waits returns, and waits no more.
    pub fn abort(&self) {
        self.library.abort();
        self.remote.wake();
    }

    /// The process ends without a `fini`: leaves the network, so that peers learn
    /// of it and nothing stays behind.
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
        self.library.check_alive()
    }

    /// Whether the engine lives in the agent. Then the library's own tables are empty, so that
    /// a call that needs nothing else asks this only about a handle that isn't live there.
    #[inline(always)]
    pub(crate) fn is_generic(&self) -> bool {
        self.generic.load(Ordering::Relaxed)
    }

    /// Whether the engine lives in the agent, or calls are recorded.
    #[inline(always)]
    fn takes_detour(&self) -> bool {
        self.detour.load(Ordering::Relaxed)
    }

    /// PtlNIInit. Counted; an interface that is open already keeps its limits.
    ///
    /// # Errors
    /// `ArgInvalid`, `PidInUse`, `NoSpace`, `Fail` where shared memory can't be had, or
    /// there is no agent where the engine should live there.
    pub fn open(
        &'static self,
        iface: u32,
        options: u32,
        pid: u32,
        desired: Option<Limits>,
    ) -> Result<(Handle, Limits)> {
        self.check_alive()?;
        self.library.pin();
        if self.is_generic() {
            self.remote.join(&self.library)?;
        }
        self.open_interface(iface, options, pid, desired)
    }

    /// PtlNIFini.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't an open interface.
    pub fn close(&'static self, handle: Handle) -> Result<()> {
        self.remote.advance_generation();
        self.close_interface(handle)
    }

    /// PtlMemAlloc: memory that peers of this user can map.
    ///
    /// # Errors
    /// `ArgInvalid` for no bytes, `NoSpace` if the system refuses.
    pub fn memory_alloc(&self, length: u64) -> Result<*mut u8> {
        if length == 0 {
            return Err(Error::ArgInvalid);
        }
        shareable().allocate(length).map_err(|error| {
            log(
                Level::Warn,
                &format!("no memory that peers can map: {error}"),
            );
            Error::NoSpace
        })
    }

    /// PtlMemFree.
    ///
    /// # Errors
    /// `ArgInvalid` for anything else than what [`memory_alloc`](Self::memory_alloc) has
    /// returned, `InUse` if a peer was stopped while it accesses it.
    pub fn memory_free(&self, start: u64) -> Result<()> {
        let length = shareable().length(start).ok_or(Error::ArgInvalid)?;
        let place = shareable().find(start, length).ok_or(Error::ArgInvalid)?;
        if !self.library.forked.load(Ordering::Relaxed) {
            self.library.withdraw_memory(place.id)?;
        }
        match shareable().free(start) {
            true => Ok(()),
            false => Err(Error::ArgInvalid),
        }
    }

    /// Has the agent carry out a command.
    #[cold]
    pub(crate) fn ask<T: for<'a> Deserialize<'a>>(&self, command: &Command<Claim>) -> Result<T> {
        self.check_alive()?;
        commands::answer(&self.remote.ask(command)?)
    }

    /// Starts a data movement. While too many operations await their answers,
    /// waits for one of them.
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline(always)]
    pub fn start(&'static self, transfer: &Transfer) -> Result<()> {
        self.start_by(|| transfer.clone())
    }

    /// As [`start`](Self::start), specialized by the compiler for each caller: see
    /// [`Library::start_by`].
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline(always)]
    pub fn start_by(&'static self, transfer: impl Fn() -> Transfer) -> Result<()> {
        if self.takes_detour() {
            return self.start_by_detour(&transfer());
        }
        self.library.start_by(transfer)
    }

    /// Whether [`repeat_word`](Self::repeat_word) and [`repeat_bytes`](Self::repeat_bytes) may have
    /// something to do.
    #[inline(always)]
    pub fn repeats(&self) -> bool {
        self.library.repeats.load(Ordering::Relaxed)
    }

    /// Carries out an operation on 8 bytes of a peer's memory that is like an earlier one. False,
    /// with nothing done and no function called, for all else: that has to be started.
    #[inline(always)]
    pub fn repeat_word(&'static self, asked: &Asked) -> bool {
        self.library.repeat_word(asked)
    }

    /// As [`repeat_word`](Self::repeat_word), or a put or get of 16 to 64 bytes.
    #[inline(always)]
    pub fn repeat_short(&'static self, asked: &Asked) -> bool {
        self.library.repeat_short(asked)
    }

    /// As [`repeat_word`](Self::repeat_word), of any length.
    #[inline(always)]
    pub fn repeat_bytes(&'static self, asked: &Asked) -> bool {
        self.library.repeat_bytes(asked)
    }

    /// Whether [`repeat_silent_put`](Self::repeat_silent_put) and
    /// [`repeat_send`](Self::repeat_send) may have something to do.
    #[inline(always)]
    pub fn repeats_sends(&self) -> bool {
        self.library.repeats_sends.load(Ordering::Relaxed)
    }

    /// Starts a short put to a process of this node that is like an earlier one, and without an
    /// acknowledgement or full event at this end. False, with nothing done, for all else: that has
    /// to be [started](Self::start_by).
    #[inline(always)]
    pub fn repeat_silent_put(&'static self, transfer: &Transfer) -> bool {
        self.library.repeat_silent_put(transfer)
    }

    /// As [`repeat_silent_put`](Self::repeat_silent_put), any put or get.
    #[inline(always)]
    pub fn repeat_send(&'static self, transfer: &Transfer) -> bool {
        self.library.repeat_send(transfer)
    }

    #[cold]
    fn start_by_detour(&'static self, transfer: &Transfer) -> Result<()> {
        if self.is_generic() {
            return self.start_remotely(transfer);
        }
        let began = CallBegun::by_sending();
        let started = self.library.start_by(|| transfer.clone());
        self.library.record_call(called(transfer.verb), began);
        started
    }

    #[cold]
    fn start_remotely(&'static self, transfer: &Transfer) -> Result<()> {
        self.check_alive()?;
        if self.remote.post(transfer)? {
            return Ok(());
        }
        // What keeps it waiting ends by an answer, which not every waiting thread gets.
        self.remote
            .until(&self.library, || match self.try_start(transfer.clone()) {
                Err(Error::NoSpace) => Ok(None),
                done => done.map(Some),
            })
    }

    /// PtlPTDisable: waits until no message is landing any more.
    ///
    /// # Errors
    /// As `Interface::portal_disable`, and those of waiting.
    pub fn portal_disable(&'static self, interface: Handle, index: PortalIndex) -> Result<()> {
        let disabled = || Ok(self.portal_disable_begin(interface, index)?.then_some(()));
        if self.is_generic() {
            return self.remote.until(&self.library, disabled);
        }
        self.library.until(disabled)
    }

    /// PtlEQGet: the next event, and whether others before it were lost.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `EqEmpty`.
    #[inline]
    pub fn queue_get(&'static self, handle: Handle) -> Result<(Event, bool)> {
        self.queue_take(handle, |taken| (taken.event(), taken.dropped))
    }

    /// As [`queue_get`](Self::queue_get), the event still as words, and given to a function.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `EqEmpty`.
    #[inline(always)]
    pub fn queue_take<R>(
        &'static self,
        handle: Handle,
        take: impl Fn(Taken) -> R + Copy,
    ) -> Result<R> {
        match self.library.queue_take(handle, take) {
            Err(Error::ArgInvalid) if self.is_generic() => {
                self.remote.queue_take(&self.library, handle).map(take)
            }
            taken => taken,
        }
    }

    /// PtlEQWait and PtlEQPoll: gives `take` the next event of any of the queues, and which
    /// queue had it.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `Aborted`; `EqEmpty` once `timeout` (ms) is over.
    #[inline]
    pub fn queue_poll<R>(
        &'static self,
        handles: &[Handle],
        timeout: u32,
        take: impl Fn(Taken, usize) -> R,
    ) -> Result<R> {
        let mut began = None;
        if self.takes_detour() {
            if self.is_generic() {
                return self
                    .remote
                    .queue_poll(&self.library, handles, timeout, take);
            }
            began = Some(CallBegun::now());
        }
        let polled = self.library.queue_poll(handles, timeout, take);
        if let Some(began) = began {
            self.library
                .record_call(by_timeout(timeout, "PtlEQWait", "PtlEQPoll"), began);
        }
        polled
    }

    /// PtlCTGet. A caller that loops on it makes progress.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`.
    #[inline]
    pub fn counter_get(&'static self, handle: Handle) -> Result<CountingEvent> {
        match self.library.counter_get(handle) {
            Err(Error::ArgInvalid) if self.is_generic() => {
                self.remote.counter_get(&self.library, handle)
            }
            value => value,
        }
    }

    /// The value of a counter, if [`counter_poll`](Self::counter_poll) would return that without
    /// waiting, by one look.
    #[inline(always)]
    pub fn counter_reached(&'static self, handle: Handle, test: u64) -> Option<CountingEvent> {
        if self.takes_detour() {
            return None;
        }
        self.library.counter_reached(handle, test)
    }

    /// PtlCTWait and PtlCTPoll: the first counter whose successes have reached its
    /// test, or that has counted a failure.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `Aborted`; `CtNoneReached` once `timeout` (ms) is over.
    #[inline]
    pub fn counter_poll(
        &'static self,
        handles: &[Handle],
        tests: &[u64],
        timeout: u32,
    ) -> Result<(CountingEvent, usize)> {
        let mut began = None;
        if self.takes_detour() {
            if self.is_generic() {
                return self
                    .remote
                    .counter_poll(&self.library, handles, tests, timeout);
            }
            began = Some(CallBegun::now());
        }
        let polled = self.library.counter_poll(handles, tests, timeout);
        if let Some(began) = began {
            self.library
                .record_call(by_timeout(timeout, "PtlCTWait", "PtlCTPoll"), began);
        }
        polled
    }
}

/// The call that starts a data movement, in timelines.
fn called(verb: Verb) -> &'static str {
    match verb {
        Verb::Put => "PtlPut",
        Verb::Get => "PtlGet",
        Verb::Atomic => "PtlAtomic",
        Verb::FetchAtomic => "PtlFetchAtomic",
        Verb::Swap => "PtlSwap",
    }
}

/// The name of a call that waits for ever, or of one that doesn't.
fn by_timeout(timeout: u32, waits: &'static str, polls: &'static str) -> &'static str {
    match timeout {
        FOREVER => waits,
        _ => polls,
    }
}

/// The calls of a table, for the process: each is carried out by its own library, or asked for.
macro_rules! process_calls {
    ($process:ident $commands:ident; $($command:ident $called:literal = fn $name:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        /// The calls that either place carries out by the same name: the library in this
        /// process, or the agent's.
        impl $process {
            $(
                #[doc = concat!("See [`Library::", stringify!($name), "`].")]
                ///
                /// # Errors
                /// As there; `Fail` if the agent has gone.
                #[inline]
                pub fn $name(&'static self, $($argument: $kind),*) -> Result<$answer> {
                    let mut began = None;
                    if self.takes_detour() {
                        if self.is_generic() {
                            return self.ask(&$commands::<S>::$command($($argument),*));
                        }
                        began = Some(CallBegun::now());
                    }
                    let done = self.library.$name($($argument),*);
                    if let Some(began) = began {
                        self.library.record_call($called, began);
                    }
                    done
                }
            )*
        }
    };
}

/// The spans of the table's calls, in this process.
type S = Claim;

pub(crate) use process_calls;

for_each_command!(process_calls Process Command);
