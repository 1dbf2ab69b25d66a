//! The calls that change the engine: a command each, with what it causes at once.

use crate::calls::MAX_STAGED;
use crate::core::Core;
use crate::library::Library;
use crate::portals3::effects::Effects;
use crate::portals3::handlers::Handler;
use crate::portals3::lifecycle::interface_handle;
use crate::portals3::owner::Owner3;
use crate::portals3::queues::{EventQueues, MAX_EVENTS};
use lintel_engine3::{AccessEntry, DescriptorSpec, EntrySpec, Interface, Transfer};
use lintel_memory::Span;
use lintel_types::portals3::{Error, MemoryDescriptor, Position, Result};
use lintel_types::{Handle, PortalIndex, ProcessId};
use serde::{Deserialize, Serialize};

/// What an interface is to others.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Identity {
    /// What PtlGetId gives.
    pub process: ProcessId,
    /// What PtlGetUid gives.
    pub uid: u32,
    /// What PtlGetJid gives.
    pub jid: u32,
}

/// A match entry with its memory descriptor, and where it goes in its list.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound(
    serialize = "S: Span + Serialize",
    deserialize = "S: Span + Deserialize<'de>"
))]
pub struct EntryWith<S> {
    /// What it matches.
    pub entry: EntrySpec,
    /// Before or after the base, or at which end of the list.
    pub position: Position,
    /// Its descriptor.
    pub md: DescriptorSpec<S>,
}

impl<O: Owner3> Library<O> {
    /// Carries out an engine command on the interface, and what it causes at once.
    ///
    /// # Errors
    /// `NoInit`, `absent` if no interface is open, and the command's own.
    #[inline(always)]
    pub fn with3<R>(
        &self,
        absent: Error,
        command: impl FnOnce(&mut Interface<O::Span>, &mut Effects<'_, O>) -> Result<R>,
    ) -> Result<R> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let mut guard = self.core.lock();
        let core = guard.as_mut().ok_or(absent)?;
        let Some((interface, mut effects)) = core.protocol.interface(&mut core.transports) else {
            return Err(absent);
        };
        let result = command(interface, &mut effects);
        let after = self.after_call(core);
        drop(guard);
        self.follow_up(after);
        result
    }

    /// As [`with3`](Self::with3), for a call that names the interface.
    ///
    /// # Errors
    /// `NoInit`, `NiInvalid`, and the command's own.
    pub fn on_interface<R>(
        &self,
        handle: Handle,
        command: impl FnOnce(&mut Interface<O::Span>, &mut Effects<'_, O>) -> Result<R>,
    ) -> Result<R> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let open = self.with_core(|core| core.protocol.open.as_ref().map(interface_handle));
        if open.flatten() != Some(handle) {
            return Err(Error::NiInvalid);
        }
        self.with3(Error::NiInvalid, command)
    }

    /// As [`with3`](Self::with3), for a command that ends something: where that is in use,
    /// what has arrived is looked at, and then it is tried once more.
    ///
    /// # Errors
    /// As [`with3`](Self::with3).
    pub fn end_with3(
        &self,
        absent: Error,
        mut command: impl FnMut(&mut Interface<O::Span>, &mut Effects<'_, O>) -> Result<()>,
    ) -> Result<()> {
        match self.with3(absent, &mut command) {
            Err(Error::MdInUse | Error::MeInUse) => {
                self.with_core(Core::progress);
                self.with3(absent, command)
            }
            done => done,
        }
    }

    /// A data movement, for an owner who waits elsewhere.
    ///
    /// # Errors
    /// As `Interface::start`; `NoSpace` while too much awaits its answers.
    pub fn try_start3(&self, transfer: Transfer) -> Result<()> {
        let staged = self.with_core(|core| core.protocol.staged.bytes());
        if staged.is_some_and(|bytes| bytes > MAX_STAGED) {
            self.with_core(Core::progress);
            return Err(Error::NoSpace);
        }
        self.with3(Error::MdInvalid, |interface, effects| {
            interface.start(&transfer, effects)
        })
    }

    /// PtlEQAlloc.
    ///
    /// # Errors
    /// `NiInvalid`, `NoSpace` beyond `max_eqs` or [`MAX_EVENTS`].
    pub fn queue_alloc3(&self, interface: Handle, count: u64) -> Result<Handle> {
        self.queue_with_handler(interface, count, None)
    }

    /// As [`queue_alloc3`](Self::queue_alloc3). With a handler, it is called with each event,
    /// and none is queued.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn queue_with_handler(
        &self,
        interface: Handle,
        count: u64,
        handler: Option<Handler>,
    ) -> Result<Handle> {
        if count > MAX_EVENTS {
            return Err(Error::NoSpace);
        }
        self.on_interface(interface, |interface, effects| {
            let queue = interface.queue_alloc()?;
            if let Err(error) = effects.queues.begin(queue, count, handler) {
                interface.queue_free(queue)?;
                return Err(error);
            }
            Ok(queue)
        })
    }

    /// PtlEQFree.
    ///
    /// # Errors
    /// `EqInvalid`
    pub fn queue_free3(&self, queue: Handle) -> Result<()> {
        self.with3(Error::EqInvalid, |interface, effects| {
            interface.queue_free(queue)?;
            effects.queues.end(queue);
            // For those who wait for it.
            effects.transports.activity = true;
            Ok(())
        })
    }

    /// Of each queue of the interface the index, the events in it, and how many it can hold.
    ///
    /// # Errors
    /// `NiInvalid`
    pub fn queue_lengths3(&self, interface: Handle) -> Result<Vec<(usize, usize, usize)>> {
        self.on_interface(interface, |_, effects| Ok(effects.queues.lengths()))
    }

    /// PtlNIHandle.
    ///
    /// # Errors
    /// `HandleInvalid`
    pub fn interface_of3(&self, handle: Handle) -> Result<Handle> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let found = self.with_core(|core| {
            let opened = core.protocol.open.as_ref().ok_or(Error::HandleInvalid)?;
            let own = interface_handle(opened);
            if handle != own {
                opened.interface.check_live(handle)?;
            }
            Ok(own)
        });
        found.unwrap_or(Err(Error::HandleInvalid))
    }

    /// PtlNIStatus.
    ///
    /// # Errors
    /// `NiInvalid`, `SrIndexInvalid`
    pub fn status3(&self, interface: Handle, register: u32) -> Result<u64> {
        self.on_interface(interface, |interface, _| interface.status(register))
    }

    /// PtlGetId, PtlGetUid, PtlGetJid.
    ///
    /// # Errors
    /// `NiInvalid`
    pub fn identity3(&self, interface: Handle) -> Result<Identity> {
        self.on_interface(interface, |interface, _| {
            Ok(Identity {
                process: interface.id(),
                uid: interface.uid(),
                jid: interface.jid(),
            })
        })
    }

    /// PtlACEntry.
    ///
    /// # Errors
    /// `NiInvalid`, `AcIndexInvalid`, `PtIndexInvalid`
    pub fn access_entry3(&self, interface: Handle, index: u32, entry: AccessEntry) -> Result<()> {
        self.on_interface(interface, |interface, _| {
            interface.access_entry(index, entry)
        })
    }
}

/// Match entries and memory descriptors. Errors are those of the engine's commands; the handle
/// of an object is invalid if no interface is open.
impl<O: Owner3> Library<O> {
    /// PtlMEAttach.
    ///
    /// # Errors
    /// `NiInvalid`, and as `Interface::entry_attach`.
    pub fn entry_attach3(
        &self,
        interface: Handle,
        portal: u32,
        entry: EntrySpec,
        position: Position,
    ) -> Result<Handle> {
        self.on_interface(interface, |interface, _| {
            interface.entry_attach(portal, entry, position)
        })
    }

    /// PtlMEAttachAny.
    ///
    /// # Errors
    /// `NiInvalid`, and as `Interface::entry_attach_any`.
    pub fn entry_attach_any3(
        &self,
        interface: Handle,
        entry: EntrySpec,
    ) -> Result<(PortalIndex, Handle)> {
        self.on_interface(interface, |interface, _| interface.entry_attach_any(entry))
    }

    /// PtlMEInsert.
    ///
    /// # Errors
    /// As `Interface::entry_insert`.
    pub fn entry_insert3(
        &self,
        base: Handle,
        entry: EntrySpec,
        position: Position,
    ) -> Result<Handle> {
        self.with3(Error::MeInvalid, |interface, _| {
            interface.entry_insert(base, entry, position)
        })
    }

    /// PtlMEUnlink.
    ///
    /// # Errors
    /// As `Interface::entry_unlink`.
    pub fn entry_unlink3(&self, entry: Handle) -> Result<()> {
        self.end_with3(Error::MeInvalid, |interface, _| {
            interface.entry_unlink(entry)
        })
    }

    /// PtlMEMDAttach.
    ///
    /// # Errors
    /// `NiInvalid`, and as `Interface::entry_attach_with`.
    pub fn entry_attach_with3(
        &self,
        interface: Handle,
        portal: u32,
        new: EntryWith<O::Span>,
    ) -> Result<(Handle, Handle)> {
        self.on_interface(interface, |interface, _| {
            interface.entry_attach_with(portal, new.entry, new.position, new.md)
        })
    }

    /// PtlMEMDInsert.
    ///
    /// # Errors
    /// As `Interface::entry_insert_with`.
    pub fn entry_insert_with3(
        &self,
        base: Handle,
        new: EntryWith<O::Span>,
    ) -> Result<(Handle, Handle)> {
        self.with3(Error::MeInvalid, |interface, _| {
            interface.entry_insert_with(base, new.entry, new.position, new.md)
        })
    }

    /// PtlMEMDPost.
    ///
    /// # Errors
    /// `NiInvalid`, and as `Interface::entry_post`.
    pub fn entry_post3(
        &self,
        interface: Handle,
        base: Handle,
        new: EntryWith<O::Span>,
        test: Handle,
    ) -> Result<(Handle, Handle)> {
        self.on_interface(interface, |interface, effects| {
            interface.entry_post(base, new.entry, new.position, new.md, test, effects)
        })
    }

    /// PtlMDAttach.
    ///
    /// # Errors
    /// As `Interface::descriptor_attach`.
    pub fn descriptor_attach3(
        &self,
        entry: Handle,
        spec: DescriptorSpec<O::Span>,
    ) -> Result<Handle> {
        self.with3(Error::MeInvalid, |interface, _| {
            interface.descriptor_attach(entry, spec)
        })
    }

    /// PtlMDBind.
    ///
    /// # Errors
    /// `NiInvalid`, and as `Interface::descriptor_bind`.
    pub fn descriptor_bind3(
        &self,
        interface: Handle,
        spec: DescriptorSpec<O::Span>,
    ) -> Result<Handle> {
        self.on_interface(interface, |interface, _| interface.descriptor_bind(spec))
    }

    /// PtlMDUnlink.
    ///
    /// # Errors
    /// As `Interface::descriptor_unlink`.
    pub fn descriptor_unlink3(&self, descriptor: Handle) -> Result<()> {
        self.end_with3(Error::MdInvalid, |interface, effects| {
            interface.descriptor_unlink(descriptor, effects)
        })
    }

    /// PtlMDUpdate: what the descriptor was; with a new one, if it was replaced.
    ///
    /// # Errors
    /// As `Interface::descriptor_update`.
    pub fn descriptor_update3(
        &self,
        descriptor: Handle,
        new: Option<DescriptorSpec<O::Span>>,
        test: Handle,
    ) -> Result<MemoryDescriptor> {
        self.with3(Error::MdInvalid, |interface, effects| {
            let old = interface.descriptor_state(descriptor)?;
            if let Some(new) = new {
                interface.descriptor_update(descriptor, new, test, effects)?;
            }
            Ok(old)
        })
    }
}
