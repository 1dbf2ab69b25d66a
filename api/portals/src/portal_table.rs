//! The portal table.

use crate::deferred_release::{self, Dropped};
use crate::entry::EntrySpec;
use crate::interface::Interface;
use crate::queue::EventQueue;
use lintel_claim::Memory;
use lintel_engine4::SearchOp;
use lintel_runtime::process;
use lintel_types::{Handle, PT_ANY, PortalIndex, Result};
use std::sync::Arc;

/// What a portal table entry is to be. The default is any index, no queue.
#[derive(Clone, Debug, Default)]
pub struct PortalSpec {
    /// Bits of `options::PT_*`, 0 for none.
    pub options: u32,
    /// The queue that events of its lists are posted to.
    pub queue: Option<EventQueue>,
    /// The index wanted, if it matters.
    pub index: Option<u32>,
}

/// An entry of the portal table (PtlPTAlloc): what initiators name by its index.
/// Clones are the same one.
///
/// ```
/// use portals4::*;
/// # let portals = Portals::init()?;
/// # let interface = Interface::open(&portals, Options::default())?;
/// let portal = PortalTableEntry::alloc(&interface, PortalSpec {
///     index: Some(11),
///     ..PortalSpec::default()
/// })?;
/// assert_eq!(portal.index(), 11);
/// portal.disable()?; // Messages already begun are delivered now; others are refused.
/// portal.enable()?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PortalTableEntry {
    portal: Arc<Portal>,
}

#[derive(Debug)]
struct Portal {
    index: PortalIndex,
    handle: Handle,
    // After the index is free.
    _queue: Option<EventQueue>,
    interface: Interface,
}

impl Drop for Portal {
    fn drop(&mut self) {
        Dropped::Portal(self.handle, self.index).release(Memory::default());
    }
}

impl PortalTableEntry {
    /// Allocates an entry of the portal table (PtlPTAlloc).
    ///
    /// # Errors
    /// `ArgInvalid` for unknown options, another interface's queue or an index beyond
    /// `max_pt_index`; `PtInUse` if the index is taken; `PtFull`; `PtEqNeeded` for
    /// flow control without a queue.
    pub fn alloc(interface: &Interface, spec: PortalSpec) -> Result<PortalTableEntry> {
        deferred_release::retry_all();
        let queue = EventQueue::handle_of(spec.queue.as_ref());
        let wanted = spec.index.unwrap_or(PT_ANY);
        let handle = interface.handle();
        let index = process().portal_alloc(handle, spec.options.into(), queue, wanted)?;
        Ok(PortalTableEntry {
            portal: Arc::new(Portal {
                index,
                handle,
                _queue: spec.queue,
                interface: interface.clone(),
            }),
        })
    }

    /// The index that initiators name, from 0 on.
    pub fn index(&self) -> u32 {
        self.portal.index.into()
    }

    pub(crate) fn table_index(&self) -> PortalIndex {
        self.portal.index
    }

    /// Refuses messages from now on; waits until those already begun are delivered
    /// (PtlPTDisable).
    ///
    /// # Errors
    /// `Aborted` after [`Portals::abort`](crate::Portals::abort).
    pub fn disable(&self) -> Result<()> {
        process().portal_disable(self.interface().handle(), self.table_index())
    }

    /// Takes messages again (PtlPTEnable).
    ///
    /// # Errors
    /// `NoInit` in a fork's child.
    pub fn enable(&self) -> Result<()> {
        process().portal_enable(self.interface().handle(), self.table_index())
    }

    /// Looks for messages that came before their entry (PtlLESearch, PtlMESearch);
    /// events report what was found. The entry's memory and list don't matter.
    ///
    /// ```
    /// use portals4::*;
    /// # let portals = Portals::init()?;
    /// # let interface = Interface::open(&portals, Options::default())?;
    /// let queue = EventQueue::alloc(&interface, 8)?;
    /// let portal = PortalTableEntry::alloc(&interface, PortalSpec {
    ///     queue: Some(queue.clone()),
    ///     ..PortalSpec::default()
    /// })?;
    /// portal.search(EntrySpec::default(), SearchOp::Only)?;
    /// let event = queue.wait()?;
    /// assert_eq!((event.kind, event.ni_fail), (EventKind::Search, NiFail::NoMatch));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `ArgInvalid` for unknown options or another interface's counter.
    pub fn search(&self, spec: EntrySpec, op: SearchOp) -> Result<()> {
        let spec = spec.for_engine(self);
        process().search(self.interface().handle(), spec, op)
    }

    /// The interface that it was made on.
    pub fn interface(&self) -> &Interface {
        &self.portal.interface
    }
}
