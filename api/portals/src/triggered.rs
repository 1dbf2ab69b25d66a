//! Triggered operations.

use crate::counter::Counter;
use crate::deferred_release;
use crate::descriptor::MemoryDescriptor;
use crate::entry::{Entry, EntrySpec};
use crate::moves::{Atomic, FetchAtomic, Get, Put, Swap};
use crate::portal_table::PortalTableEntry;
use lintel_claim::Claim;
use lintel_engine4::{Deferred, Transfer};
use lintel_runtime::process;
use lintel_types::{CountingEvent, Result};

/// What is to happen when a counter reaches a threshold (section 3.16): by itself,
/// once, immediately if it has already. Made by [`Counter::at`].
///
/// Operations of one counter happen in the order of their thresholds, those of one
/// threshold in the order of their calls. One whose descriptor, counter or entry is
/// gone by then doesn't happen. Everything is of one interface, or `ArgInvalid`;
/// beyond `max_triggered_ops` it is `NoSpace`.
///
/// ```
/// use portals4::*;
/// # let portals = Portals::init()?;
/// # let interface = Interface::open(&portals, Options::default())?;
/// # let portal = PortalTableEntry::alloc(&interface, PortalSpec::default())?;
/// let (inbox, arrived) = (Region::new(8), Counter::alloc(&interface)?);
/// let _entry = Entry::append(&portal, EntrySpec {
///     memory: Memory::from(&inbox),
///     options: options::ME_OP_PUT | options::ME_EVENT_CT_COMM,
///     counter: Some(arrived.clone()),
///     ..EntrySpec::default()
/// })?;
/// let source = MemoryDescriptor::bind(&interface, DescriptorSpec {
///     memory: Memory::from(&Region::new(8)),
///     ..DescriptorSpec::default()
/// })?;
///
/// let (ready, next) = (Counter::alloc(&interface)?, Counter::alloc(&interface)?);
/// ready.at(2).put(&source, Put {
///     length: 8,
///     target: Target::new(interface.id()?, portal.index()),
///     ..Put::default()
/// })?;
/// arrived.at(1).increment(&next, 1)?; // a chain
/// ready.increment(1)?;
/// assert_eq!(arrived.get()?.success, 0);
/// ready.increment(1)?;
/// assert_eq!(next.wait(1)?.success, 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Trigger<'a> {
    counter: &'a Counter,
    threshold: u64,
}

impl<'a> Trigger<'a> {
    pub(crate) fn new(counter: &'a Counter, threshold: u64) -> Self {
        Trigger { counter, threshold }
    }

    /// PtlTriggeredPut
    ///
    /// # Errors
    /// As [`MemoryDescriptor::put`].
    pub fn put(self, source: &MemoryDescriptor, put: Put) -> Result<()> {
        self.transfer(put.transfer(source))
    }

    /// PtlTriggeredGet
    ///
    /// # Errors
    /// As [`MemoryDescriptor::get`].
    pub fn get(self, sink: &MemoryDescriptor, get: Get) -> Result<()> {
        self.transfer(get.transfer(sink))
    }

    /// PtlTriggeredAtomic
    ///
    /// # Errors
    /// As [`MemoryDescriptor::atomic`].
    pub fn atomic(self, source: &MemoryDescriptor, atomic: Atomic) -> Result<()> {
        self.transfer(atomic.transfer(source)?)
    }

    /// PtlTriggeredFetchAtomic
    ///
    /// # Errors
    /// As [`MemoryDescriptor::fetch_atomic`].
    pub fn fetch_atomic(
        self,
        sink: &MemoryDescriptor,
        source: &MemoryDescriptor,
        fetch: FetchAtomic,
    ) -> Result<()> {
        self.transfer(fetch.transfer(sink, source)?)
    }

    /// PtlTriggeredSwap
    ///
    /// # Errors
    /// As [`MemoryDescriptor::swap`].
    pub fn swap(
        self,
        sink: &MemoryDescriptor,
        source: &MemoryDescriptor,
        swap: Swap<'_>,
    ) -> Result<()> {
        self.transfer(swap.transfer(sink, source)?)
    }

    /// Counts successes on a counter, this one or another (PtlTriggeredCTInc).
    ///
    /// # Errors
    /// See [`Trigger`].
    pub fn increment(self, counter: &Counter, successes: u64) -> Result<()> {
        let by = CountingEvent {
            success: successes,
            failure: 0,
        };
        self.defer(Deferred::Increment(counter.handle(), by))
    }

    /// Gives a counter, this one or another, a value (PtlTriggeredCTSet).
    ///
    /// # Errors
    /// See [`Trigger`].
    pub fn set(self, counter: &Counter, value: CountingEvent) -> Result<()> {
        self.defer(Deferred::Set(counter.handle(), value))
    }

    /// Appends a match list entry (PtlTriggeredMEAppend). Dropping it before that
    /// cancels it.
    ///
    /// # Errors
    /// As [`Entry::append`].
    pub fn append(self, portal: &PortalTableEntry, spec: EntrySpec) -> Result<Entry> {
        deferred_release::retry_all();
        let (for_engine, counter) = (spec.for_engine(portal), self.counter.handle());
        let interface = portal.interface().handle();
        let handle =
            process().trigger_append(interface, for_engine, spec.list, counter, self.threshold)?;
        Ok(Entry::new(handle, spec, portal))
    }

    /// Unlinks a match list entry (PtlTriggeredMEUnlink), unless it is in use then.
    ///
    /// # Errors
    /// See [`Trigger`].
    pub fn unlink(self, entry: &Entry) -> Result<()> {
        self.defer(Deferred::Unlink(entry.handle()))
    }

    fn transfer(self, transfer: Transfer) -> Result<()> {
        self.defer(Deferred::Transfer(Box::new(transfer)))
    }

    fn defer(self, operation: Deferred<Claim>) -> Result<()> {
        process().trigger(operation, self.counter.handle(), self.threshold)
    }
}
