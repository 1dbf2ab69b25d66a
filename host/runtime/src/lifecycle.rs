//! From PtlInit to PtlFini: opening and closing interfaces, joining and leaving the network.

use crate::barriers::register_for_barriers;
use crate::core::{Core, OpenInterface};
use crate::helper;
use crate::key;
use crate::library::{Generations, Library, Pinned};
use crate::locked::check_interface;
use crate::log::{Level, log, set_level};
use crate::orphans;
use crate::owner::Owner;
use crate::prepared_landings::PreparedLandings;
use crate::prepared_sends::PreparedSends;
use crate::protocol::Protocol;
use crate::resources::ProcessInfo;
use crate::settings::{Between, Mode, Settings};
use crate::transport::{self, Endpoint};
use crate::variables;
use crate::watcher;
use lintel_bridge::Tables;
use lintel_claim::Lease;
use lintel_engine4::{Config, Interface, Tokens, number};
use lintel_nal::{Nal, Wake};
use lintel_presence::{Sleeper, shareable};
use lintel_types::{
    Error, Handle, InterfaceNumber, Kind, Limits, NiOptions, ProcessId, Result, options,
};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// `PTL_IFACE_DEFAULT`: the only network.
const DEFAULT_IFACE: u32 = u32::MAX;
/// Its other names. Programs for NICs with several ports number them from 0.
const NUMBERED_IFACES: std::ops::RangeInclusive<u32> = 0..=3;
/// How long the last close waits for peers to take what was sent to them.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a closing process polls.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_micros(50);
/// How often a process identifier that is in use is tried again.
const PID_RETRY: Duration = Duration::from_millis(5);

/// Why interfaces close, and what their owner may still read of them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CloseMode {
    /// By the owner's call: its queues and counters are gone when it returns.
    Requested,
    /// The owner or the agent has ended: waiting callers get only that.
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
    /// PtlInit. Counted.
    ///
    /// # Errors
    /// `Fail` where an environment variable isn't understood, or in a fork's child.
    pub fn init(&self) -> Result<Settings> {
        if self.forked.load(Ordering::Relaxed) {
            log(Level::Warn, "a fork's child can't use its parent's Portals");
            return Err(Error::Fail);
        }
        let settings = self.settings()?;
        set_level(settings.level);
        variables::warn_of_unknown();
        // A libfabric provider keeps pages that it has registered.
        let can_share = settings.shm && settings.between != Some(Between::Ofi);
        if settings.share_memory && settings.mode == Mode::Accelerated && can_share {
            shareable().set_converts();
        }
        self.aborted.store(false, Ordering::Relaxed);
        self.references.fetch_add(1, Ordering::AcqRel);
        Ok(settings)
    }

    /// The owner's settings. An invalid value is reported on standard error with its
    /// variable, whatever `PTL_LOG` says: that may be the one.
    ///
    /// # Errors
    /// `Fail`
    pub(crate) fn settings(&self) -> Result<Settings> {
        self.owner.settings().map_err(|error| {
            eprintln!("lintel[{}]: {error}", std::process::id());
            Error::Fail
        })
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
        self.with_core(|core| core.transports.has_lost_owner = mode == CloseMode::Abrupt);
        for number in InterfaceNumber::ALL {
            self.close_number(number, &mut generations, mode);
        }
        self.close_protocol(mode.timeout());
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
            self.end_tables();
            self.leave(CLOSE_TIMEOUT);
        }
        leaves
    }

    /// Called in the child of a fork: the calls of the child answer with an error.
    pub fn on_fork(&self) {
        self.forked.store(true, Ordering::Relaxed);
        self.repeats.store(false, Ordering::Relaxed);
        self.repeats_sends.store(false, Ordering::Relaxed);
        self.end_tables();
    }

    /// Ends queues and counters: callers with their handles find that nothing is live.
    fn end_tables(&self) {
        self.owner.tables().iter().for_each(Tables::end_all);
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
        if !known
            || !(iface == DEFAULT_IFACE || NUMBERED_IFACES.contains(&iface))
            || pid > ProcessId::PID_ANY
        {
            return Err(Error::ArgInvalid);
        }
        let generations = self.opening.lock();
        self.join(pid)?;
        let options = NiOptions::from(options);
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

    /// Takes a process identifier and a place on each network. Waits for an identifier that
    /// is in use, as long as the owner allows.
    fn join_networks(&self, settings: &Settings, pid: u32) -> Result<Endpoint> {
        let until = Instant::now() + O::PID_TIMEOUT;
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

    /// Joins the networks, for the first interface.
    pub(crate) fn join(&self, pid: u32) -> Result<()> {
        if let Some(core) = self.core.lock().as_ref() {
            return match pid == ProcessId::PID_ANY || pid == core.transports.me.pid {
                true => Ok(()),
                false => Err(Error::ArgInvalid),
            };
        }
        let settings = self.settings()?;
        let endpoint = self.join_networks(&settings, pid)?;
        log_set_up(&settings, endpoint.me);
        self.start(endpoint, &settings)
    }

    /// Takes the place on the networks, and starts the threads that make progress.
    pub(crate) fn start(&self, endpoint: Endpoint, settings: &Settings) -> Result<()> {
        let info = ProcessInfo::new(settings, O::PLACEMENT);
        *self.core.lock() = Some(Core::new(endpoint, info, self.owner.clone()));
        let library = self
            .pinned
            .get()
            .and_then(Pinned::library)
            .ok_or(Error::Fail)?;
        register_for_barriers();
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
            // For those who wait for something of it.
            core.transports.activity = true;
            if let Some(tokens) = tokens {
                let handles = (generations.0[index].0 + 97) % Handle::GENERATIONS;
                generations.0[index] = (handles, tokens);
            }
            let none_open = core.interfaces.iter().all(Option::is_none);
            (lease, none_open && !core.protocol.is_open())
        });
        let Some((lease, last)) = last else { return };
        if let Some(lease) = lease {
            self.await_recall(&lease);
        }
        // A peer that was stopped in the middle of a copy is given up.
        let _ = self.await_accesses();
        if last {
            self.leave(mode.timeout());
        }
    }

    /// Waits, within bounds, until peers have taken what was sent; then leaves.
    pub(crate) fn leave(&self, timeout: Duration) {
        let until = Instant::now() + timeout;
        self.with_core(|core| core.transports.withdraw(|_| true));
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
            log(Level::Info, "left the network");
            orphans::adopt(core.take_orphans());
        }
    }

    /// Ends the helper and the watcher; nobody makes progress any more but callers.
    fn end_threads(&self) {
        let bell = self.bell();
        self.with_core(|core| core.wakeup.close());
        if let Some(helper) = self.helper.lock().take() {
            if let Some(bell) = &bell {
                bell.wake(Sleeper::Helper);
            }
            let _ = helper.join();
        }
        // Outside the lock: the watcher may want it before it ends.
        if let Some(watcher) = self.with_core(|core| core.wakeup.take_watcher()).flatten() {
            watcher.end();
        }
    }
}

/// What a user may want to see who wonders why a message doesn't arrive.
fn log_set_up(settings: &Settings, me: ProcessId) {
    let version = env!("CARGO_PKG_VERSION");
    let words = format!("Lintel {version}, job {}, process {me}", settings.job);
    log(Level::Info, &words);
    let within = if settings.shm {
        "shm"
    } else {
        "none of its own"
    };
    let between = settings.between.map_or("none", Between::name);
    let words = format!("networks: within the node {within}, between nodes {between}");
    log(Level::Info, &words);
    if settings.between.is_some() {
        let (model, timeout) = (settings.model, settings.peer_timeout.as_millis());
        let words = format!("connections {model:?}, peers may be silent for {timeout} ms");
        log(Level::Info, &words.to_lowercase());
        log(
            Level::Info,
            &format!("the secret is from {}", key::source(settings)),
        );
    }
}

fn use_interface<O: Owner>(
    core: &mut Core<O>,
    options: NiOptions,
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
            prepared: Box::default(),
            sends: Box::new(PreparedSends::new(options.contains(NiOptions::LOGICAL))),
            landings: Box::new(PreparedLandings::new()),
        }
    });
    opened.references += 1;
    let handle = Handle::new(Kind::Interface, number, opened.generation, 0);
    (handle, *opened.interface.limits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::owner::LocalProcess;
    use crate::testing::Network;
    use std::process::Command;

    const KIND: u32 = options::NI_MATCHING | options::NI_PHYSICAL;

    #[test]
    fn an_interface_is_counted_and_its_handles_are_stale_once_it_is_closed() {
        let network = Network::default();
        let one = network.peer(1);
        let (again, _) = one
            .library
            .open_interface(0, KIND, 1, None)
            .expect("it is open already");
        assert_eq!(again, one.interface);
        one.library.close_interface(again).expect("it is open");
        one.library.id(one.interface).expect("it is still open");
        let (other, _) = one
            .library
            .open_interface(0, options::NI_NO_MATCHING | options::NI_PHYSICAL, 1, None)
            .expect("it is free");
        one.library
            .close_interface(one.interface)
            .expect("it is open");
        assert_eq!(one.library.id(one.interface), Err(Error::ArgInvalid));
        let event = one.library.queue_get(one.queue).map(drop);
        assert_eq!(event, Err(Error::ArgInvalid));
        let (reopened, _) = one
            .library
            .open_interface(0, KIND, 1, None)
            .expect("it is free");
        assert_ne!(reopened, one.interface);
        one.library.close_interface(other).expect("it is open");
    }

    #[test]
    fn arguments_that_name_no_interface_are_refused() {
        let network = Network::default();
        let one = network.peer(1);
        let open = |iface, kind, pid| {
            let opened = one.library.open_interface(iface, kind, pid, None);
            opened.map(drop)
        };
        for (iface, kind, pid) in [
            (4, KIND, 1),
            (0, options::NI_MATCHING, 1),
            (0, KIND | options::NI_LOGICAL, 1),
            (0, KIND | 1 << 9, 1),
            (0, KIND, 2),
            (0, KIND, ProcessId::PID_ANY + 1),
        ] {
            assert_eq!(
                open(iface, kind, pid),
                Err(Error::ArgInvalid),
                "{iface} {kind} {pid}"
            );
        }
        for iface in NUMBERED_IFACES.chain([DEFAULT_IFACE]) {
            assert_eq!(open(iface, KIND, 1), Ok(()), "{iface}");
        }
    }

    #[test]
    fn the_last_fini_ends_everything_and_a_call_after_it_says_so() {
        let network = Network::default();
        let one = network.peer(1);
        one.library.init().expect("the environment is valid");
        assert!(!one.library.fini(), "it was initialised twice");
        assert!(one.library.is_open());
        assert!(one.library.fini());
        assert!(!one.library.is_open());
        assert_eq!(one.library.id(one.interface), Err(Error::NoInit));
        assert!(!one.library.fini(), "nothing is left to end");
    }

    #[test]
    fn a_forks_child_can_use_nothing_of_its_parents() {
        let library = Library::new(LocalProcess::with_own_tables(), 0);
        library.init().expect("the environment is valid");
        library.on_fork();
        assert_eq!(library.check_alive(), Err(Error::NoInit));
        assert!(matches!(library.init(), Err(Error::Fail)));
        assert!(!library.fini() && !library.exit());
    }

    #[test]
    fn a_setting_that_isnt_understood_is_reported_with_its_variable() {
        let test = "lifecycle::tests::reads_the_settings_of_its_environment";
        for (name, value) in [
            ("PTL_CONN", "pairs"),
            ("PTL_LOG", "loud"),
            ("PTL_NAL", "shm,tcp"),
        ] {
            let mut child = Command::new(std::env::current_exe().expect("a test has a file"));
            child.args(["--exact", test, "--ignored", "--nocapture", "--quiet"]);
            let output = child.env(name, value).output().expect("it starts");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(
                errors.contains(&format!("{name}={value} isn't understood; it takes ")),
                "{errors}"
            );
            assert!(output.status.success(), "{errors}");
        }
    }

    #[test]
    #[ignore = "another test starts it, with an invalid setting"]
    fn reads_the_settings_of_its_environment() {
        let library = Library::new(LocalProcess::with_own_tables(), 0);
        assert!(matches!(library.settings(), Err(Error::Fail)));
        assert!(matches!(library.init(), Err(Error::Fail)));
        assert_eq!(library.check_alive(), Err(Error::NoInit));
    }
}
