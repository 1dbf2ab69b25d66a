//! The library that serves one owner: the engine's interfaces under a lock, with a helper
//! that makes progress. A process has one, an agent one for each client.

use crate::core::Core;
use crate::owner::Owner;
use crate::timeline::CallBegun;
use lintel_engine4::Tokens;
use lintel_lock::Mutex;
use lintel_nal_shm::Lookout;
use lintel_presence::Bell;
use lintel_types::{Error, Handle, Result};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::JoinHandle;

/// Everything that Lintel keeps for an owner.
pub struct Library<O: Owner> {
    pub(crate) owner: O,
    /// How its threads keep it.
    pub(crate) pinned: OnceLock<Pinned<O>>,
    pub(crate) references: AtomicU32,
    /// A fork's child has the memory but not the threads.
    pub(crate) forked: AtomicBool,
    pub(crate) aborted: AtomicBool,
    /// Operations on direct entries may have been prepared, which calls repeat without asking
    /// whether the library is in use: if it isn't, it has no interface. False in a fork's child.
    pub(crate) repeats: AtomicBool,
    /// The same of sends.
    pub(crate) repeats_sends: AtomicBool,
    /// Polls that found the lock taken.
    pub(crate) refused: AtomicU32,
    /// A caller has polled since the helper looked at this.
    pub(crate) polled: AtomicBool,
    /// Where callers look for messages without the core's lock.
    pub(crate) lookout: Lookout,
    /// Counts calls that posted or counted something.
    pub(crate) activity: AtomicU64,
    pub(crate) core: Mutex<Option<Core<O>>>,
    pub(crate) helper: Mutex<Option<JoinHandle<()>>>,
    /// One interface is opened or closed at a time.
    pub(crate) opening: Mutex<Generations>,
}

/// What distinguishes the interfaces of a slot: what the handles of the next one, and the
/// tokens of its operations, begin with.
pub(crate) struct Generations(pub(crate) [(u16, Tokens); 4]);

/// What keeps a library where it is.
pub(crate) enum Pinned<O: Owner> {
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

impl<O: Owner> Library<O> {
    /// A library without an interface; handles of its interfaces begin with
    /// `generation`.
    pub(crate) const fn new(owner: O, generation: u16) -> Self {
        let first = (generation % Handle::GENERATIONS, Tokens::FIRST);
        Library {
            owner,
            pinned: OnceLock::new(),
            references: AtomicU32::new(0),
            forked: AtomicBool::new(false),
            aborted: AtomicBool::new(false),
            repeats: AtomicBool::new(false),
            repeats_sends: AtomicBool::new(false),
            refused: AtomicU32::new(0),
            polled: AtomicBool::new(false),
            lookout: Lookout::new(),
            activity: AtomicU64::new(0),
            core: Mutex::new(None),
            helper: Mutex::new(None),
            opening: Mutex::new(Generations([first; 4])),
        }
    }

    /// The library of an owner in another process: it is in use until it is dropped.
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

    /// Whose memory the engines serve: this process's, or a client's.
    pub(crate) fn owner(&self) -> &O {
        &self.owner
    }

    /// Whether an interface is open.
    pub(crate) fn is_open(&self) -> bool {
        self.core.lock().is_some()
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

    pub(crate) fn bell(&self) -> Option<Bell> {
        self.core
            .lock()
            .as_ref()
            .map(|core| core.wakeup.bell.clone())
    }

    /// A call that is recorded returns. One that closes the last interface isn't recorded: its
    /// timeline has been written.
    #[cold]
    pub(crate) fn record_call(&self, name: &'static str, began: CallBegun) {
        let call = began.end(name);
        let mut core = self.core.lock();
        let recorder = core
            .as_mut()
            .and_then(|core| core.transports.nal.recorder());
        if let Some(recorder) = recorder {
            recorder.on_called(call);
        }
    }

    pub(crate) fn activity(&self) -> u64 {
        self.activity.load(Ordering::Acquire)
    }

    pub(crate) fn is_aborted(&self) -> bool {
        self.aborted.load(Ordering::Relaxed)
    }
}

impl<O: Owner> Pinned<O> {
    pub(crate) fn library(&self) -> Option<LibraryRef<O>> {
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
