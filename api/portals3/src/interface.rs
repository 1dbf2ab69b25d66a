//! The library and its interface.

use crate::IFACE_DEFAULT;
use crate::deferred_release;
use crate::ranks::Ranks;
use lintel_engine3::AccessEntry;
use lintel_runtime::{Opening, fini3, process3};
use lintel_types::portals3::{Limits, PID_ANY, Result};
use lintel_types::{Handle, ProcessId};
use std::sync::Arc;

/// The library in use: from [`Portals::init`] until the last clone and everything made by it is
/// dropped (PtlInit, PtlFini).
///
/// End a program by returning from `main`, not by `std::process::exit`, so that peers learn of
/// its end at once and nothing stays in shared memory.
///
/// ```
/// let portals = portals33::Portals::init()?;
/// # Ok::<(), portals33::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Portals {
    _library: Arc<Library>,
}

#[derive(Debug)]
struct Library;

impl Drop for Library {
    fn drop(&mut self) {
        fini3();
    }
}

impl Portals {
    /// Starts the library. Counted: several values may live at one time.
    ///
    /// # Errors
    /// `Fail` if an environment variable isn't understood (standard error says which), or in a
    /// fork's child.
    pub fn init() -> Result<Portals> {
        process3().init()?;
        Ok(Portals {
            _library: Arc::new(Library),
        })
    }
}

/// Which interface, and what it should be able to hold.
///
/// The default follows the specification, leaves pid and limits to the library, and belongs to
/// no job.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The interface's number, which chooses the rules in which programs differ:
    /// [`IFACE_DEFAULT`] or [`IFACE_CRAY`](crate::IFACE_CRAY).
    pub iface: u32,
    /// The pid wanted, if it matters.
    pub pid: Option<u32>,
    /// The limits wanted; what can't be had is clamped.
    pub limits: Option<Limits>,
    /// The job that the process belongs to; 0 is none.
    pub jid: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            iface: IFACE_DEFAULT,
            pid: None,
            limits: None,
            jid: 0,
        }
    }
}

impl Options {
    /// With the pid and the job that a launcher has given this rank.
    pub fn of(ranks: &Ranks) -> Options {
        Options {
            pid: Some(ranks.process().pid),
            jid: ranks.jid(),
            ..Options::default()
        }
    }
}

/// A network interface (PtlNIInit). Clones are the same one; it closes with the last of them and
/// of what was made on it.
///
/// ```
/// use portals33::*;
/// let portals = Portals::init()?;
/// let interface = Interface::open(&portals, Options::default())?;
/// assert_eq!(interface.limits().max_pt_index, 63);
/// assert_eq!(interface.status(register::DROP_COUNT)?, 0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Interface {
    open: Arc<Open>,
}

#[derive(Debug)]
struct Open {
    handle: Handle,
    limits: Limits,
    // After the interface has closed.
    _portals: Portals,
}

impl Drop for Open {
    fn drop(&mut self) {
        // Fails only if the library has been finalized before, and everything with it.
        let _ = process3().close3(self.handle);
        deferred_release::retry_all();
    }
}

impl Interface {
    /// Opens the interface. Opening it again gives the same, with the limits that it has.
    ///
    /// # Errors
    /// `IfaceInvalid` for a number that isn't one, or if another is open; `PidInvalid` if the pid
    /// can't be had; `NoSpace`; `Fail` if the network can't be opened (standard error says why).
    pub fn open(portals: &Portals, options: Options) -> Result<Interface> {
        let (handle, limits) = process3().open(Opening {
            iface: options.iface,
            pid: options.pid.unwrap_or(PID_ANY),
            limits: options.limits,
            jid: options.jid,
        })?;
        let open = Open {
            handle,
            limits,
            _portals: portals.clone(),
        };
        Ok(Interface {
            open: Arc::new(open),
        })
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.open.limits
    }

    /// The process's nid and pid (PtlGetId).
    ///
    /// # Errors
    /// `NoInit` in a fork's child, as of every call.
    pub fn id(&self) -> Result<ProcessId> {
        Ok(process3().identity3(self.handle())?.process)
    }

    /// The user that the process runs as (PtlGetUid).
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn uid(&self) -> Result<u32> {
        Ok(process3().identity3(self.handle())?.uid)
    }

    /// The job that the process belongs to (PtlGetJid).
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn jid(&self) -> Result<u32> {
        Ok(process3().identity3(self.handle())?.jid)
    }

    /// The value of a status [`register`](crate::register) (PtlNIStatus).
    ///
    /// # Errors
    /// `SrIndexInvalid` for a number that is no register.
    pub fn status(&self, register: u32) -> Result<u64> {
        process3().status3(self.handle(), register)
    }

    /// Sets an entry of the access control table (PtlACEntry).
    ///
    /// # Errors
    /// `AcIndexInvalid`, `PtIndexInvalid` beyond the tables.
    pub fn set_access(&self, index: u32, entry: AccessEntry) -> Result<()> {
        process3().access_entry3(self.handle(), index, entry)
    }

    pub(crate) fn handle(&self) -> Handle {
        self.open.handle
    }
}
