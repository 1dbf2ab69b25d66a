//! The library and its interfaces.

use crate::deferred_release;
use lintel_engine4::Registers;
use lintel_runtime::process;
use lintel_types::{Handle, Limits, ProcessId, Result, options};
use std::sync::Arc;

/// `PTL_IFACE_DEFAULT`: the library has one interface to choose.
const DEFAULT_IFACE: u32 = u32::MAX;

/// The library in use: from [`Portals::init`] until the last clone and everything
/// made by it is dropped (PtlInit, PtlFini).
///
/// End a program by returning from `main`, not by `std::process::exit`, so that
/// peers learn of its end at once and nothing stays in shared memory.
///
/// ```
/// let portals = portals4::Portals::init()?;
/// # Ok::<(), portals4::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Portals {
    _library: Arc<Library>,
}

#[derive(Debug)]
struct Library;

impl Drop for Library {
    fn drop(&mut self) {
        process().fini();
    }
}

impl Portals {
    /// Starts the library. Counted: several values may live at one time.
    ///
    /// # Errors
    /// `Fail` if an environment variable isn't understood (standard error says
    /// which), or in a fork's child.
    pub fn init() -> Result<Portals> {
        process().init()?;
        Ok(Portals {
            _library: Arc::new(Library),
        })
    }

    /// Ends all waiting in this process, now and until the library is started
    /// again: it returns `Aborted` (PtlAbort).
    ///
    /// ```
    /// use portals4::*;
    /// let portals = Portals::init()?;
    /// let interface = Interface::open(&portals, Options::default())?;
    /// let counter = Counter::alloc(&interface)?;
    /// std::thread::scope(|scope| {
    ///     let waiting = scope.spawn(|| counter.wait(1));
    ///     portals.abort();
    ///     assert_eq!(waiting.join().unwrap(), Err(Error::Aborted));
    /// });
    /// # Ok::<(), Error>(())
    /// ```
    pub fn abort(&self) {
        process().abort();
    }

    /// Waits until atomics begun before the call have finished with this process's
    /// memory (PtlAtomicSync).
    ///
    /// # Errors
    /// `NoInit` in a fork's child.
    pub fn atomic_sync(&self) -> Result<()> {
        process().atomic_sync()
    }
}

/// Which interface, and what it should be able to hold.
///
/// The default matches, addresses processes physically, and leaves pid and limits to
/// the library.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Messages find their entry by match bits.
    pub matching: bool,
    /// Processes are named by rank, once a map is set.
    pub logical: bool,
    /// The pid wanted, if it matters. All interfaces of a process share it.
    pub pid: Option<u32>,
    /// The limits wanted; what can't be had is clamped.
    pub limits: Option<Limits>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            matching: true,
            logical: false,
            pid: None,
            limits: None,
        }
    }
}

/// A network interface (PtlNIInit). Clones are the same one; it closes with the last
/// of them and of what was made on it.
///
/// ```
/// use portals4::*;
/// let portals = Portals::init()?;
/// let interface = Interface::open(&portals, Options { logical: true, ..Options::default() })?;
/// interface.set_map(&[interface.physical_id()?])?;
/// assert_eq!(interface.id()?.rank(), 0);
/// assert_eq!(interface.map()?.len(), 1);
/// assert_eq!(interface.registers()?.drops, 0);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Interface {
    open: Arc<Open>,
}

#[derive(Debug)]
struct Open {
    handle: Handle,
    logical: bool,
    limits: Limits,
    // After the interface has closed.
    _portals: Portals,
}

impl Drop for Open {
    fn drop(&mut self) {
        // Fails only if the library has been finalized before, and everything with it.
        let _ = process().close(self.handle);
        deferred_release::retry_all();
    }
}

impl Interface {
    /// Opens an interface. Opening the same one again gives the same, with the
    /// limits that it has.
    ///
    /// # Errors
    /// `ArgInvalid` if the process has another pid already; `PidInUse`;
    /// `NoSpace`; `Fail` if the network can't be opened (standard error says why).
    pub fn open(portals: &Portals, options: Options) -> Result<Interface> {
        let matching = match options.matching {
            true => options::NI_MATCHING,
            false => options::NI_NO_MATCHING,
        };
        let addressing = match options.logical {
            true => options::NI_LOGICAL,
            false => options::NI_PHYSICAL,
        };
        let pid = options.pid.unwrap_or(ProcessId::PID_ANY);
        let bits = matching | addressing;
        let (handle, limits) = process().open(DEFAULT_IFACE, bits, pid, options.limits)?;
        let open = Open {
            handle,
            logical: options.logical,
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

    /// The process's name in the interface's addressing (PtlGetId).
    ///
    /// # Errors
    /// `NoInit` in a fork's child, as of every call.
    pub fn id(&self) -> Result<ProcessId> {
        process().id(self.handle())
    }

    /// The process's nid and pid (PtlGetPhysId).
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn physical_id(&self) -> Result<ProcessId> {
        process().physical_id(self.handle())
    }

    /// The user that the process runs as (PtlGetUid).
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn uid(&self) -> Result<u32> {
        process().uid(self.handle())
    }

    /// The counters of trouble (PtlNIStatus).
    ///
    /// # Errors
    /// As [`id`](Self::id).
    pub fn registers(&self) -> Result<Registers> {
        process().registers(self.handle())
    }

    /// Defines which process each rank of a logical interface is (PtlSetMap).
    ///
    /// # Errors
    /// `ArgInvalid` on a physical interface, or if this process isn't in the map;
    /// `Ignored` if there is one already.
    pub fn set_map(&self, map: &[ProcessId]) -> Result<()> {
        process().set_map(self.handle(), map.to_vec())
    }

    /// The process identifiers of all ranks, by rank (PtlGetMap).
    ///
    /// # Errors
    /// `ArgInvalid` on a physical interface, or without a map.
    pub fn map(&self) -> Result<Vec<ProcessId>> {
        process().map(self.handle())
    }

    pub(crate) fn handle(&self) -> Handle {
        self.open.handle
    }

    pub(crate) fn is_logical(&self) -> bool {
        self.open.logical
    }
}
