//! The job as its launcher's PMI knows it: registered names, and the barrier.

use std::sync::{Mutex, PoisonError};

use lintel_pmi::client::Client;
use portals3_sys::ProcessId;

use crate::Error;

/// The connection with the launcher, opened by the first call that needs it.
static JOB: Mutex<Option<Job>> = Mutex::new(None);

/// What a process has of its launcher.
pub(crate) struct Job {
    /// None in a job of one that no launcher started.
    launcher: Option<Client>,
    /// What this process has registered.
    own: Option<ProcessId>,
    /// A barrier has ended since: the other ranks' names can be read.
    exchanged: bool,
    /// A child after fork shares the connection and must not end it.
    process: u32,
}

/// Calls `use_it` with the job.
///
/// # Errors
/// The launcher can't be reached; those of `use_it`.
pub(crate) fn with<T>(use_it: impl FnOnce(&mut Job) -> Result<T, Error>) -> Result<T, Error> {
    // A panic in between has left the connection in its last whole state.
    let mut job = JOB.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *job {
        Some(job) => use_it(job),
        none => use_it(none.insert(Job::open()?)),
    }
}

impl Job {
    fn open() -> Result<Job, Error> {
        let launcher = Client::from_env().map_err(Error::Launcher)?;
        // SAFETY: the library stays loaded, so that its function is there at exit.
        unsafe { libc::atexit(finalize) };
        Ok(Job {
            launcher,
            own: None,
            exchanged: false,
            process: std::process::id(),
        })
    }

    /// Rank and size.
    pub(crate) fn place(&self) -> (usize, usize) {
        let place = |launcher: &Client| (launcher.rank(), launcher.size());
        self.launcher.as_ref().map_or((0, 1), place)
    }

    /// Publishes the name of this process.
    pub(crate) fn register(&mut self, id: ProcessId) -> Result<(), Error> {
        let (rank, _) = self.place();
        if let Some(launcher) = &mut self.launcher {
            let name = format!("{}:{}", id.nid, id.pid);
            launcher.put(&key(rank), &name).map_err(Error::Launcher)?;
        }
        self.own = Some(id);
        self.exchanged = false;
        Ok(())
    }

    /// Waits until all ranks have entered.
    pub(crate) fn barrier(&mut self) -> Result<(), Error> {
        if let Some(launcher) = &mut self.launcher {
            launcher.barrier().map_err(Error::Launcher)?;
        }
        self.exchanged = self.own.is_some();
        Ok(())
    }

    /// The name of each rank; None if this one has not registered.
    pub(crate) fn names(&mut self) -> Result<Option<Vec<ProcessId>>, Error> {
        let Some(own) = self.own else {
            return Ok(None);
        };
        if !self.exchanged {
            self.barrier()?;
        }
        let Some(launcher) = &mut self.launcher else {
            return Ok(Some(vec![own]));
        };
        let names = (0..launcher.size()).map(|rank| name_of(launcher, rank));
        names.collect::<Result<_, _>>().map(Some)
    }
}

/// Finalizes, so that the launcher takes the exit as intended.
extern "C" fn finalize() {
    // A thread that is still in a barrier has the lock; the launcher then sees an exit in it.
    let Ok(mut job) = JOB.try_lock() else {
        return;
    };
    let here = |job: &mut Job| job.process == std::process::id();
    if let Some(launcher) = job.take_if(here).and_then(|job| job.launcher) {
        // The process is ending: there is nobody to tell.
        let _ = launcher.finalize();
    }
}

fn name_of(launcher: &mut Client, rank: usize) -> Result<ProcessId, Error> {
    let name = launcher.get(&key(rank)).map_err(Error::Launcher)?;
    let parse = |name: String| {
        let (nid, pid) = name.split_once(':')?;
        Some(ProcessId::new(nid.parse().ok()?, pid.parse().ok()?))
    };
    name.and_then(parse).ok_or(Error::NotRegistered(rank))
}

fn key(rank: usize) -> String {
    format!("cnos-{rank}")
}
