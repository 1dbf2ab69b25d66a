//! Network interfaces: who closes them, and what happens to objects that outlive them.

use crate::error::{Result, check};
use crate::events::{Counter, Queue};
use crate::lists::{Descriptor, DescriptorSpec, Portal};
use crate::memory::UserMemory;
use lintel_types::{Error, Handle, Limits, ProcessId, options};
use portals4_sys::{self as sys, codes};
use std::ffi::c_int;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// `PtlInit`; each success wants a [`finalize`].
///
/// # Errors
/// The code of `PtlInit`.
pub fn initialize() -> Result<()> {
    check("PtlInit", sys::PtlInit())
}

/// Ends the library once as often as it was started (PtlFini).
pub fn finalize() {
    sys::PtlFini();
}

/// `PtlAbort`: every call of this process returns, now and later, with `PTL_ABORTED`.
pub fn abort() {
    sys::PtlAbort();
}

/// A network interface. Without [`close`](Self::close) it is closed when the last clone
/// and the last object on it are dropped.
#[derive(Clone, Debug)]
pub struct Interface(Arc<Ni>);

/// What PtlNIInit is asked for.
#[derive(Clone, Copy, Debug)]
pub struct InterfaceSpec {
    /// `PTL_NI_*`: with or without matching, physical or logical.
    pub options: u32,
    /// The process identifier to take, or [`ProcessId::PID_ANY`].
    pub pid: u32,
    /// The limits to ask for; the library chooses if there are none.
    pub limits: Option<Limits>,
}

/// With matching, physical, any pid, limits of the library's choice.
impl Default for InterfaceSpec {
    fn default() -> Self {
        InterfaceSpec {
            options: options::NI_MATCHING | options::NI_PHYSICAL,
            pid: ProcessId::PID_ANY,
            limits: None,
        }
    }
}

/// The handle that an interface and its objects share.
#[derive(Debug)]
pub(crate) struct Ni {
    pub(crate) handle: Handle,
    pub(crate) matches: bool,
    granted: Option<Limits>,
    owner: Owner,
    state: AtomicU8,
}

/// What is to be called when an interface ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Owner {
    /// Nothing: the handle belongs to other code.
    Borrowed,
    /// The interface alone, by `PtlNIFini`.
    Interface,
    /// The interface by `PtlNIFini`, then the library by `PtlFini`.
    Library,
}

/// The interface is open: objects free themselves on drop.
const OPEN: u8 = 0;
/// Nothing is freed any more: the process leaves all of it to its end.
const ABANDONED: u8 = 1;
/// `PtlNIFini` has freed the objects.
const CLOSED: u8 = 2;

/// A message on its way in keeps an entry for microseconds: so often the processor is
/// yielded before anybody sleeps.
const YIELDS: u32 = 1000;
/// How often, and how long, a release sleeps if a dead peer has left a message half sent.
const SLEEPS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

impl Interface {
    /// `PtlInit` and `PtlNIInit` of the default interface; the end calls `PtlFini` too.
    ///
    /// # Errors
    /// The code of either call.
    pub fn open(spec: &InterfaceSpec) -> Result<Self> {
        initialize()?;
        let opened = Self::start(spec, Owner::Library);
        if opened.is_err() {
            finalize();
        }
        opened
    }

    /// `PtlNIInit` alone, in a process that has called [`initialize`].
    ///
    /// # Errors
    /// The code of the call.
    pub fn open_only(spec: &InterfaceSpec) -> Result<Self> {
        Self::start(spec, Owner::Interface)
    }

    /// An interface with matching that other code has opened and will close.
    pub fn borrow(handle: Handle) -> Self {
        Self(Arc::new(Ni {
            handle,
            matches: true,
            granted: None,
            owner: Owner::Borrowed,
            state: AtomicU8::new(OPEN),
        }))
    }

    fn start(spec: &InterfaceSpec, owner: Owner) -> Result<Self> {
        let desired = spec.limits.as_ref().map_or(ptr::null(), ptr::from_ref);
        let (mut granted, mut handle) = (Limits::DEFAULT, Handle::INVALID);
        // SAFETY: the desired limits are null or outlive the call, the outputs outlive it.
        let code = unsafe {
            sys::PtlNIInit(
                IFACE_DEFAULT,
                spec.options,
                spec.pid,
                desired,
                &mut granted,
                &mut handle,
            )
        };
        check("PtlNIInit", code)?;
        Ok(Self(Arc::new(Ni {
            handle,
            matches: spec.options & options::NI_MATCHING != 0,
            granted: Some(granted),
            owner,
            state: AtomicU8::new(OPEN),
        })))
    }

    /// Closes the interface now, whatever objects and clones are left: the library frees
    /// the objects with it, and to drop them later does nothing.
    ///
    /// # Errors
    /// The code of `PtlNIFini`; `PtlFini` is called all the same.
    pub fn close(&self) -> Result<()> {
        self.0.close()
    }

    /// Leaves the interface and its objects to the end of the process: to drop them does
    /// nothing, and their memory is never given back. [`close`](Self::close) still closes.
    pub fn abandon(&self) {
        self.0.state.store(ABANDONED, Ordering::Relaxed);
    }

    /// The handle, for calls that this crate doesn't wrap.
    pub fn handle(&self) -> Handle {
        self.0.handle
    }

    /// The limits that `PtlNIInit` granted; a borrowed interface doesn't know them.
    pub fn limits(&self) -> Option<&Limits> {
        self.0.granted.as_ref()
    }

    /// Whether atomic operations of the processor and of Portals may meet on one word
    /// (`PTL_COHERENT_ATOMICS` among the granted features).
    pub fn has_coherent_atomics(&self) -> bool {
        let has = |limits: &Limits| limits.features & options::FEATURE_COHERENT_ATOMICS != 0;
        self.limits().is_some_and(has)
    }

    /// This process by rank if the interface is logical, else by node and pid (`PtlGetId`).
    ///
    /// # Errors
    /// The code of the call.
    pub fn id(&self) -> Result<ProcessId> {
        let mut id = ProcessId::default();
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlGetId(self.0.handle, &mut id) };
        check("PtlGetId", code).map(|()| id)
    }

    /// This process by node and pid (`PtlGetPhysId`).
    ///
    /// # Errors
    /// The code of the call.
    pub fn physical_id(&self) -> Result<ProcessId> {
        let mut id = ProcessId::default();
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlGetPhysId(self.0.handle, &mut id) };
        check("PtlGetPhysId", code).map(|()| id)
    }

    /// The user id that peers see (`PtlGetUid`).
    ///
    /// # Errors
    /// The code of the call.
    pub fn uid(&self) -> Result<u32> {
        let mut uid = 0;
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlGetUid(self.0.handle, &mut uid) };
        check("PtlGetUid", code).map(|()| uid)
    }

    /// Whether the interface is logical: only such a one has a map, or can get one
    /// (`PtlGetMap` of no elements).
    pub fn is_logical(&self) -> bool {
        let mut size = 0;
        // SAFETY: the size outlives the call, and a map of no elements is written nowhere.
        let code = unsafe { sys::PtlGetMap(self.0.handle, 0, ptr::null_mut(), &mut size) };
        code == codes::OK
    }

    /// An event queue for `count` events (`PtlEQAlloc`).
    ///
    /// # Errors
    /// The code of the call.
    pub fn queue(&self, count: u64) -> Result<Queue> {
        Queue::new(&self.0, count)
    }

    /// A counter of zero (`PtlCTAlloc`).
    ///
    /// # Errors
    /// The code of the call.
    pub fn counter(&self) -> Result<Counter> {
        Counter::new(&self.0)
    }

    /// The portal table entry at that index, or at a free one for
    /// [`PT_ANY`](lintel_types::PT_ANY); it reports to `queue` (`PtlPTAlloc`).
    ///
    /// # Errors
    /// The code of the call.
    pub fn portal(&self, index: u32, queue: Option<&Queue>) -> Result<Portal> {
        Portal::new(&self.0, index, queue)
    }

    /// A descriptor over the whole of `memory` (`PtlMDBind`).
    ///
    /// # Errors
    /// The code of the call; `PTL_ARG_INVALID` for [`options::IOVEC`].
    pub fn bind<M: UserMemory>(
        &self,
        memory: M,
        spec: &DescriptorSpec<'_>,
    ) -> Result<Descriptor<M>> {
        Descriptor::new(&self.0, memory, spec)
    }
}

impl Ni {
    fn close(&self) -> Result<()> {
        if self.owner == Owner::Borrowed {
            return Ok(());
        }
        let closed = check("PtlNIFini", sys::PtlNIFini(self.handle));
        if closed.is_ok() {
            self.state.store(CLOSED, Ordering::Relaxed);
        }
        if self.owner == Owner::Library {
            finalize();
        }
        closed
    }

    /// Calls a function that frees an object until nothing uses it; whether its memory is
    /// the application's again.
    pub(crate) fn release(&self, free: impl Fn() -> c_int) -> bool {
        match self.state.load(Ordering::Relaxed) {
            CLOSED => return true,
            ABANDONED => return false,
            _ => {}
        }
        for attempt in 0..YIELDS + SLEEPS {
            match free() {
                codes::IN_USE | codes::PT_IN_USE if attempt < YIELDS => std::thread::yield_now(),
                codes::IN_USE | codes::PT_IN_USE => std::thread::sleep(PAUSE),
                // Freed, or gone with the interface; after an abort nobody knows.
                code => return code != Error::Aborted as c_int,
            }
        }
        false
    }
}

impl Drop for Ni {
    fn drop(&mut self) {
        if *self.state.get_mut() == OPEN {
            // Nobody is left to hear of a refusal.
            let _ = self.close();
        }
    }
}

/// `PTL_IFACE_DEFAULT`: any interface that the library has.
const IFACE_DEFAULT: u32 = u32::MAX;
