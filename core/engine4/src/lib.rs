//! The Portals 4 engine: one network interface as a plain value.
//!
//! Commands named as in the specification go in, effects come out through a
//! [`Host`]. The engine decides where bytes go and never moves one; it has no
//! clock, no thread and no I/O, so the same code runs in a process, in an agent
//! and on a simulated NIC.
//!
//! ```text
//!   put, get, atomic …  ──▶ ┌───────────┐ ──▶ Host::send      a request and where its bytes lie
//!   append, unlink …    ──▶ │ Interface │ ──▶ Host::post      an event into a queue
//!   on_request          ──▶ │           │ ──▶ Host::publish   a counter's new value
//!   on_response         ──▶ └───────────┘
//! ```
//!
//! A request at its target takes three steps: [`Interface::on_request`] decides
//! by the header alone, the host moves the bytes and sends the response, and
//! [`Interface::on_landed`] posts the events. Its [`Landed`] token is consumed,
//! so a delivery finishes exactly once. [`Interface::deliver`] is these three in one, for the
//! short puts that most messages are.
//!
//! Source: the Portals 4.3 specification; each rule names its section.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod counters;
mod delivery;
mod descriptors;
mod direct;
mod entries;
mod initiator;
mod portal;
mod prepared_landings;
mod prepared_sends;
mod responses;
mod search;
mod state;
mod target;
mod triggered;
mod unexpected;
mod work;

pub use delivery::{Delivered, Step};
pub use descriptors::DescriptorSpec;
pub use direct::{Carried, DirectSpec, Exchange, Prepared, PreparedCounts};
pub use entries::{EntrySpec, MOST_EVENTS};
pub use initiator::{Tokens, Transfer};
pub use lintel_types::{Backlog, Undeliverable};
pub use prepared_landings::PreparedLanding;
pub use prepared_sends::PreparedSend;
pub use responses::PendingReply;
pub use search::SearchOp;
pub use target::{Accepted, Counting, Landed, Landing};
pub use triggered::Deferred;
pub use work::Work;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use lintel_memory::{Pieces, Span};
use lintel_tables::Slab;
use lintel_types::{
    CounterIndex, CountingEvent, DescriptorIndex, EntryIndex, Error, Event, Handle, HeaderIndex,
    InterfaceNumber, Kind, Limits, NiOptions, OperationIndex, ProcessId, QueueIndex, Result,
};
use lintel_wire::{OPERAND_BYTES, Request};

/// Where the engine's effects go.
pub trait Host<S> {
    /// Posts an event into a queue.
    fn post(&mut self, queue: QueueIndex, event: &Event);
    /// How many events a queue can take before it drops one.
    fn free_slots(&mut self, queue: QueueIndex) -> usize;
    /// How many events a queue holds.
    fn queued(&mut self, queue: QueueIndex) -> usize;
    /// Makes a counter's new value visible.
    fn publish(&mut self, counter: CounterIndex, value: CountingEvent);
    /// How much is queued for a process.
    #[inline(always)]
    fn backlog(&mut self, _to: ProcessId) -> Backlog {
        Backlog::Low
    }
    /// Whether a body of that length, although at most [`Config::eager`], is better left in
    /// place. Asked for bodies that are long enough for the question, and may be.
    #[inline(always)]
    fn lends(&mut self, _to: ProcessId, _length: u64) -> bool {
        false
    }
    /// Whether [`carry_out`](Self::carry_out) is worth trying: some process has entries whose
    /// memory the host can access.
    #[inline(always)]
    fn may_carry_out(&mut self) -> bool {
        false
    }
    /// Carries an operation out by itself, in memory of the target that it can access.
    #[inline]
    fn carry_out(&mut self, _to: ProcessId, _exchange: Exchange<'_, S>) -> Carried {
        Carried::No
    }
    /// Sends a request. A body of at most [`Config::eager`] bytes is copied
    /// before this returns, unless much waits for the target or the host lends it; a
    /// referenced one is left in place until the response.
    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<'_, S>,
    ) -> core::result::Result<(), Undeliverable>;
}

/// The bytes that go with a request: an operand (swaps only), then the pieces.
/// For a get the pieces are the destination of the reply.
pub struct Body<'a, S> {
    /// Operand of a conditional or masked swap.
    pub operand: Option<&'a [u8; OPERAND_BYTES]>,
    /// Memory of the initiator.
    pub pieces: Pieces<S>,
}

/// The parameters of a new interface.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// `PTL_NI_MATCHING` or not, `PTL_NI_LOGICAL` or not.
    pub options: NiOptions,
    /// What the interface may hold, already [clamped](Limits::clamped).
    pub limits: Limits,
    /// Physical identifier of the process.
    pub process: ProcessId,
    /// The user that the process belongs to.
    pub uid: u32,
    /// Bytes up to which the host copies a body at once.
    pub eager: u64,
    /// First generation of the interface's handles, so that those of an earlier
    /// interface in the same place are stale.
    pub generation: u16,
}

/// Status registers, by `ptl_sr_index_t`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Registers {
    /// Messages that no entry took (`PTL_SR_DROP_COUNT`), since the interface was opened.
    pub drops: i32,
    /// Messages of the wrong user.
    pub permission_violations: i32,
    /// Messages with an operation that their entry doesn't allow.
    pub operation_violations: i32,
}

/// A network interface: the state of Portals 4 that one process has for one `PtlNIInit`.
pub struct Interface<S> {
    config: Config,
    number: InterfaceNumber,
    map: Vec<ProcessId>,
    rank: u32,
    portals: Vec<Option<portal::Portal>>,
    /// How often what decides where messages land has changed, see `Portal::changed`.
    portals_changed: u64,
    /// Portal table entries with flow control.
    flow_controlled: usize,
    /// Events that messages that are landing may cause, over all portal table entries.
    promised: usize,
    entries: Slab<entries::Entry<S>, EntryIndex>,
    unexpected: Slab<unexpected::Unexpected, HeaderIndex>,
    descriptors: Slab<descriptors::Descriptor<S>, DescriptorIndex>,
    /// How often a descriptor was released, or queues or counters taken from descriptors.
    descriptors_changed: u64,
    queues: Slab<u64, QueueIndex>,
    counters: Slab<counters::Counter<S>, CounterIndex>,
    operations: Slab<initiator::InFlight, OperationIndex>,
    /// Operations whose memory is lent to the host.
    loans: usize,
    triggered: usize,
    ready: VecDeque<Deferred<S>>,
    posted: u64,
    registers: Registers,
    work: Work,
}

impl<S: Span> Interface<S> {
    /// An interface without entries, descriptors, queues and counters.
    pub fn new(config: Config) -> Self {
        let portals = (0..=config.limits.max_pt_index).map(|_| None).collect();
        let generation = config.generation % Handle::GENERATIONS;
        Interface {
            number: number(config.options),
            config,
            map: Vec::new(),
            rank: ProcessId::RANK_ANY,
            portals,
            portals_changed: 0,
            flow_controlled: 0,
            promised: 0,
            entries: of_handles(generation),
            unexpected: Slab::new(u16::MAX),
            descriptors: of_handles(generation),
            descriptors_changed: 0,
            queues: of_handles(generation),
            counters: of_handles(generation),
            operations: Slab::new(u16::MAX - 1),
            loans: 0,
            triggered: 0,
            ready: VecDeque::new(),
            posted: 0,
            registers: Registers::default(),
            work: Work::default(),
        }
    }

    /// Its number among the four interfaces of a process.
    pub fn number(&self) -> InterfaceNumber {
        self.number
    }

    /// The limits in force, as `PtlNIInit` returns them.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// The status registers that `PtlNIStatus` reads.
    pub fn registers(&self) -> Registers {
        self.registers
    }

    /// Whether it matches by bits (`PTL_NI_MATCHING`).
    #[inline]
    pub fn matching(&self) -> bool {
        self.config.options.contains(NiOptions::MATCHING)
    }

    /// Whether it addresses by rank (`PTL_NI_LOGICAL`).
    #[inline]
    pub fn logical(&self) -> bool {
        self.config.options.contains(NiOptions::LOGICAL)
    }

    /// The work since the last call: counted here, priced by simulators.
    pub fn take_work(&mut self) -> Work {
        core::mem::take(&mut self.work)
    }

    /// The identifier that `PtlGetId` gives: physical, or the rank once a map is set.
    pub fn id(&self) -> ProcessId {
        if self.logical() {
            ProcessId::from_rank(self.rank)
        } else {
            self.config.process
        }
    }

    /// Physical identifier of the process.
    pub fn physical_id(&self) -> ProcessId {
        self.config.process
    }

    /// The user that the process belongs to.
    pub fn uid(&self) -> u32 {
        self.config.uid
    }

    /// Whether a handle names a live object of this interface.
    ///
    /// # Errors
    /// `ArgInvalid` if it doesn't.
    pub fn check_live(&self, handle: Handle) -> Result<()> {
        match handle.kind() {
            Some(Kind::EventQueue) => self.queue(handle).map(drop),
            Some(Kind::Counter) => self.counter(handle).map(drop),
            Some(Kind::MemoryDescriptor) => self.descriptor(handle).map(drop),
            Some(Kind::ListEntry | Kind::MatchEntry) => self.entry(handle).map(drop),
            Some(Kind::Interface) | None => Err(Error::ArgInvalid),
        }
    }

    /// Sets the map from ranks to processes (Portals 4.3, section `Network interfaces`,
    /// PtlSetMap): once, and with this process in it.
    ///
    /// # Errors
    /// `ArgInvalid` on a physical interface or if the map lacks this process,
    /// `Ignored` once a map is set.
    pub fn set_map(&mut self, map: &[ProcessId]) -> Result<()> {
        if !self.logical() {
            return Err(Error::ArgInvalid);
        }
        if !self.map.is_empty() {
            return Err(Error::Ignored);
        }
        let me = self.config.process;
        let rank = map
            .iter()
            .position(|process| *process == me)
            .ok_or(Error::ArgInvalid)?;
        self.rank = rank as u32;
        self.map = map.to_vec();
        Ok(())
    }

    /// The map (PtlGetMap).
    ///
    /// # Errors
    /// `ArgInvalid` on a physical interface, and before a map is set.
    pub fn map(&self) -> Result<&[ProcessId]> {
        if self.map.is_empty() {
            Err(Error::ArgInvalid)
        } else {
            Ok(&self.map)
        }
    }

    /// Reserves an event queue; the host keeps its events under the handle's index.
    ///
    /// # Errors
    /// `NoSpace` beyond `max_eqs`.
    pub fn queue_alloc(&mut self, count: u64) -> Result<Handle> {
        if self.queues.len() >= self.config.limits.max_eqs as usize {
            return Err(Error::NoSpace);
        }
        let (index, generation) = self.queues.insert(count).map_err(|_| Error::NoSpace)?;
        Ok(self.handle(Kind::EventQueue, generation, index.into()))
    }

    /// Frees an event queue. Descriptors and portal table entries that name it work on
    /// without full events, even once another queue takes its slot.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live queue.
    pub fn queue_free(&mut self, queue: Handle) -> Result<()> {
        let index = self.queue(queue)?;
        let named = |queue: &mut Option<QueueIndex>| {
            queue.take_if(|queue| *queue == index);
        };
        self.descriptors_changed += 1;
        let descriptors = self.descriptors.values_mut();
        descriptors.for_each(|descriptor| named(&mut descriptor.queue));
        let portals = self.portals.iter_mut().flatten();
        portals.for_each(|portal| named(&mut portal.queue));
        self.forget_landings();
        self.queues.remove(index);
        Ok(())
    }

    fn handle(&self, kind: Kind, generation: u16, index: u16) -> Handle {
        Handle::new(kind, self.number, generation, index)
    }

    /// Index of a live event queue of this interface.
    fn queue(&self, handle: Handle) -> Result<QueueIndex> {
        self.live(&self.queues, handle, Kind::EventQueue)
    }

    #[inline(always)]
    fn live<T, I: From<u16> + Into<u16>>(
        &self,
        slab: &Slab<T, I>,
        handle: Handle,
        kind: Kind,
    ) -> Result<I> {
        let mine = handle.is(kind) && handle.interface() == self.number;
        match slab.get(handle.index().into(), handle.generation()) {
            Some(_) if mine => Ok(handle.index().into()),
            _ => Err(Error::ArgInvalid),
        }
    }

    #[inline(always)]
    fn post<H: Host<S>>(&mut self, host: &mut H, queue: QueueIndex, event: &Event) {
        self.work.events += 1;
        host.post(queue, event);
    }
}

/// A slab whose generations are those of handles, beginning with `generation`. The
/// generation of the reserved handles is none of them.
fn of_handles<T, I>(generation: u16) -> Slab<T, I> {
    let mut slab = Slab::new(Handle::GENERATIONS);
    slab.begin_with(generation);
    slab
}

/// The number of an interface with these options.
pub const fn number(options: NiOptions) -> InterfaceNumber {
    InterfaceNumber::new(
        options.contains(NiOptions::MATCHING),
        options.contains(NiOptions::LOGICAL),
    )
}
