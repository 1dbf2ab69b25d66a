//! The signals that a launcher passes on. Handlers belong to the process, so
//! they are installed once; while no job runs, a signal does what it does by
//! default.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;
use signal_hook::{flag, low_level::pipe};

/// The signals, while a job runs. One job at a time: a second waits here.
pub(crate) struct Signals {
    hub: MutexGuard<'static, Option<Hub>>,
}

struct Hub {
    idle: Arc<AtomicBool>,
    /// By signal number: each arrival leaves a byte.
    arrivals: BTreeMap<i32, UnixStream>,
}

static HUB: Mutex<Option<Hub>> = Mutex::new(None);

impl Signals {
    /// Takes the signals until dropped.
    pub(crate) fn take() -> io::Result<Signals> {
        let mut hub = HUB.lock().unwrap_or_else(PoisonError::into_inner);
        if hub.is_none() {
            *hub = Some(Hub::install()?);
        }
        let signals = Signals { hub };
        signals.hub().idle.store(false, Ordering::SeqCst);
        Ok(signals)
    }

    /// The descriptors to poll, with their signals.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (i32, BorrowedFd<'_>)> {
        self.hub()
            .arrivals
            .iter()
            .map(|(&signal, stream)| (signal, stream.as_fd()))
    }

    /// How often `signal` came since the last call.
    pub(crate) fn take_arrivals(&self, signal: i32) -> usize {
        let mut bytes = [0; 64];
        let mut stream = &self.hub().arrivals[&signal];
        stream.read(&mut bytes).unwrap_or(0)
    }

    /// The descriptors to poll for signals that ask the job to end.
    pub(crate) fn requests_to_end(&self) -> impl Iterator<Item = (i32, BorrowedFd<'_>)> {
        let asks = |signal| TERMINATION.iter().any(|other| other.as_raw() == signal);
        self.sources().filter(move |&(signal, _)| asks(signal))
    }

    /// A signal that asked the job to end since the last call.
    pub(crate) fn take_request_to_end(&self) -> Option<i32> {
        let mut requests = self.requests_to_end().map(|(signal, _)| signal);
        requests.find(|&signal| self.take_arrivals(signal) > 0)
    }

    fn hub(&self) -> &Hub {
        self.hub
            .as_ref()
            .expect("installed before a Signals exists")
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.hub().idle.store(true, Ordering::SeqCst);
        for (signal, _) in self.sources() {
            self.take_arrivals(signal);
        }
    }
}

impl Hub {
    fn install() -> io::Result<Hub> {
        let idle = Arc::new(AtomicBool::new(true));
        let mut arrivals = BTreeMap::new();
        let ignored = ignored_signals();
        for signal in FORWARDED {
            let signal = signal.as_raw();
            // Started under nohup, or in the background of a plain shell.
            if ignored >> (signal - 1) & 1 == 1 {
                continue;
            }
            let (ours, handlers) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            flag::register_conditional_default(signal, Arc::clone(&idle))?;
            pipe::register(signal, handlers)?;
            arrivals.insert(signal, ours);
        }
        Ok(Hub { idle, arrivals })
    }
}

const TERMINATION: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

const FORWARDED: [Signal; 7] = [
    Signal::INT,
    Signal::TERM,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::TSTP,
];

/// A bit per signal, the lowest for signal 1; 0 if the kernel doesn't report it.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
