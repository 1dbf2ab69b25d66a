//! The Portals 3.3 engine: one network interface as a plain value.
//!
//! Commands named as in the specification go in, effects come out through a
//! [`Host`]. The engine decides where bytes go and never moves one; it has no
//! clock, no thread and no I/O, so the same code runs in a process, in an agent
//! and on a simulated NIC.
//!
//! ```text
//!   put, get, getput    ──▶ ┌───────────┐ ──▶ Host::send      a request and where its bytes lie
//!   attach, bind, …     ──▶ │ Interface │ ──▶ Host::post      an event into a queue
//!   on_request          ──▶ │           │ ──▶ Host::is_empty  asked by PtlMDUpdate
//!   on_response         ──▶ └───────────┘
//! ```
//!
//! A request at its target takes three steps, each with a host for its events:
//! [`Interface::accept`] decides by the header alone,
//! [`Interface::begin_landing`] takes the place of the bytes and posts the START event, and,
//! once the host has moved them and sent the response, [`Interface::on_landed`] posts the
//! END event. A reply takes two: [`Interface::on_response`] and [`Interface::on_filled`].
//! Tokens are consumed, so that each delivery finishes exactly once.
//!
//! ```
//! use lintel_engine3::{Body, Config, DescriptorSpec, Dialect, EntrySpec, Host, Interface};
//! use lintel_engine3::{Landing, Posting, Undeliverable};
//! use lintel_memory::{Buffer, Ghost};
//! use lintel_types::portals3::{Event, EventKind, Limits, MdOptions, MemoryDescriptor};
//! use lintel_types::portals3::{Position, Unlink};
//! use lintel_types::{InterfaceNumber, NiFail, PortalIndex, ProcessId, QueueIndex};
//! use lintel_wire::portals3::{Request, Verb};
//!
//! /// A host that keeps the kinds of events and sends nothing.
//! #[derive(Default)]
//! struct Kinds(Vec<EventKind>);
//!
//! impl Host<Ghost> for Kinds {
//!     fn post(&mut self, _: QueueIndex, event: Posting<'_>) {
//!         self.0.push(Event::from(event).kind);
//!     }
//!     fn is_empty(&mut self, _: QueueIndex) -> bool {
//!         self.0.is_empty()
//!     }
//!     fn send(&mut self, _: ProcessId, _: &Request, _: Body<Ghost>) -> Result<(), Undeliverable> {
//!         Err(Undeliverable)
//!     }
//! }
//!
//! let (number, me) = (InterfaceNumber::from_bits(0), ProcessId::new(1, 100));
//! let mut host = Kinds::default();
//! let mut interface = Interface::new(Config {
//!     number,
//!     dialect: Dialect::Specification,
//!     limits: Limits::DEFAULT,
//!     process: me,
//!     uid: 1000,
//!     jid: 0,
//!     eager: 1024,
//!     generation: 0,
//! });
//! // 100 bytes for one put from this process with match bits 7.
//! let queue = interface.queue_alloc()?;
//! let entry = EntrySpec { source: me, match_bits: 7, ignore_bits: 0, unlink: Unlink::Unlink };
//! let md = MemoryDescriptor {
//!     start: 0x1000,
//!     length: 100,
//!     threshold: 1,
//!     options: MdOptions::OP_PUT,
//!     queue,
//!     ..MemoryDescriptor::default()
//! };
//! let buffer = Buffer::Contiguous(Ghost::new(0x1000, 100));
//! let md = DescriptorSpec { md, buffer, unlink: Unlink::Unlink };
//! interface.entry_attach_with(4, entry, Position::After, md)?;
//! // A put of 8 bytes arrives.
//! let request = Request {
//!     verb: Verb::Put,
//!     interface: number,
//!     ack: false,
//!     referenced: false,
//!     portal: PortalIndex(4),
//!     access: 0,
//!     token: 0,
//!     jid: 0,
//!     length: 8,
//!     match_bits: 7,
//!     remote_offset: 0,
//!     hdr_data: 0,
//! };
//! let Landing::Accepted(pieces, landed) = interface.on_request(me, 1000, &request, &mut host)
//! else {
//!     panic!("the entry takes it");
//! };
//! assert_eq!(pieces.as_slice(), [Ghost::new(0x1000, 8)]);
//! interface.on_landed(landed, NiFail::Ok, &mut host);
//! assert_eq!(host.0, [EventKind::PutStart, EventKind::PutEnd, EventKind::Unlink]);
//! # Ok::<(), lintel_types::portals3::Error>(())
//! ```
//!
//! Source: the Portals 3.3 specification; each rule names its section. The two dialects,
//! where programs for the specification's reference and for Cray's library differ, are a
//! [`Dialect`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod delivery;
mod descriptors;
mod entries;
mod events;
mod initiator;
mod short_put;
mod state;
mod status;
mod target;
mod work;

pub use access::AccessEntry;
pub use delivery::Delivered;
pub use descriptors::DescriptorSpec;
pub use entries::EntrySpec;
pub use events::Posting;
pub use initiator::{PendingReply, Tokens, Transfer};
pub use lintel_types::{Backlog, Undeliverable};
pub use status::register;
pub use target::{Accepted, Landed, Landing};
pub use work::Work;

use alloc::vec::Vec;
use lintel_memory::{Pieces, Span};
use lintel_tables::{OrderedMatchList, Slab};
use lintel_types::portals3::{Error, Limits, Result};
use lintel_types::{
    DescriptorIndex, EntryIndex, Handle, InterfaceNumber, Kind, OperationIndex, ProcessId,
    QueueIndex,
};
use lintel_wire::portals3::Request;

/// Where the engine's effects go.
pub trait Host<S> {
    /// Posts an event into a queue. If the queue is full the event is lost; its number is not
    /// given again.
    fn post(&mut self, queue: QueueIndex, event: Posting<'_>);
    /// Whether every event of a queue has been taken.
    fn is_empty(&mut self, queue: QueueIndex) -> bool;
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
    /// Sends a request. A body that isn't [referenced](Request::referenced) is copied before
    /// this returns; a referenced one is left in place until the response.
    fn send(
        &mut self,
        to: ProcessId,
        request: &Request,
        body: Body<S>,
    ) -> core::result::Result<(), Undeliverable>;
}

/// The bytes that go with a request. For a get they are the destination of the reply, for
/// an exchange what the target is given.
pub struct Body<S> {
    /// Memory of the initiator.
    pub pieces: Pieces<S>,
}

/// Which of two readings holds where programs expect different ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// The specification's, as its reference implementation has it: a get counts once at its
    /// initiator, when the reply comes; a descriptor that is unlinked automatically says so.
    #[default]
    Specification,
    /// Cray's: a get also counts, and posts SEND events, when it is sent; a descriptor says
    /// that it is unlinked only if its options ask for that.
    Cray,
}

/// The parameters of a new interface.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Which of the process's interfaces it is; part of its handles, and of its messages,
    /// which reach the interface of the same number.
    pub number: InterfaceNumber,
    /// The programs that it is for.
    pub dialect: Dialect,
    /// Limits, already [clamped](Limits::clamped).
    pub limits: Limits,
    /// Identifier of the process.
    pub process: ProcessId,
    /// The user that the process belongs to.
    pub uid: u32,
    /// The job that the process belongs to; 0 without one.
    pub jid: u32,
    /// Bytes up to which the host copies a body at once.
    pub eager: u64,
    /// First generation of the interface's handles, so that those of an earlier
    /// interface in the same place are stale.
    pub generation: u16,
}

/// An event queue, whose events the host keeps.
#[derive(Default)]
struct Queue {
    /// Number of the next event.
    sequence: u32,
    /// Operations that have begun on descriptors of the queue and not ended.
    begun: u32,
}

/// A network interface: the objects of one process, and what it has under way.
pub struct Interface<S> {
    config: Config,
    portals: Vec<OrderedMatchList>,
    access: Vec<AccessEntry>,
    entries: Slab<entries::Entry, EntryIndex>,
    descriptors: Slab<descriptors::Descriptor<S>, DescriptorIndex>,
    queues: Slab<Queue, QueueIndex>,
    operations: Slab<initiator::InFlight, OperationIndex>,
    /// Operations whose memory is lent to the host.
    loans: usize,
    status: status::Status,
    work: Work,
}

impl<S: Span> Interface<S> {
    /// An interface without entries, descriptors and queues, open to every process.
    pub fn new(config: Config) -> Self {
        let Limits {
            max_pt_index,
            max_ac_index,
            ..
        } = config.limits;
        Interface {
            config,
            portals: (0..=max_pt_index).map(|_| Default::default()).collect(),
            access: (0..=max_ac_index).map(|_| AccessEntry::OPEN).collect(),
            entries: of_handles(config.generation),
            descriptors: of_handles(config.generation),
            queues: of_handles(config.generation),
            operations: Slab::new(u16::MAX - 1),
            loans: 0,
            status: status::Status::default(),
            work: Work::default(),
        }
    }

    /// Its number among the interfaces of a process.
    pub fn number(&self) -> InterfaceNumber {
        self.config.number
    }

    /// The limits in force, as `PtlNIInit` returns them.
    pub fn limits(&self) -> &Limits {
        &self.config.limits
    }

    /// The identifier that `PtlGetId` gives.
    pub fn id(&self) -> ProcessId {
        self.config.process
    }

    /// The user that `PtlGetUid` gives.
    pub fn uid(&self) -> u32 {
        self.config.uid
    }

    /// The job that `PtlGetJid` gives.
    pub fn jid(&self) -> u32 {
        self.config.jid
    }

    /// Sets the job, which a launcher may name later than the interface is opened.
    pub fn set_jid(&mut self, jid: u32) {
        self.config.jid = jid;
    }

    /// The work since the last call: counted here, priced by simulators.
    pub fn take_work(&mut self) -> Work {
        core::mem::take(&mut self.work)
    }

    /// Whether a handle names a live object of this interface (`PtlNIHandle`).
    ///
    /// # Errors
    /// `HandleInvalid` if it doesn't.
    pub fn check_live(&self, handle: Handle) -> Result<()> {
        let live = match handle.kind() {
            Some(Kind::EventQueue) => self.queue(handle).is_ok(),
            Some(Kind::MemoryDescriptor) => self.descriptor(handle).is_ok(),
            Some(Kind::MatchEntry) => self.entry(handle).is_ok(),
            _ => false,
        };
        if live {
            Ok(())
        } else {
            Err(Error::HandleInvalid)
        }
    }

    /// PtlEQAlloc: reserves an event queue; the host keeps its events under the handle's
    /// index.
    ///
    /// # Errors
    /// `NoSpace` beyond `max_eqs`.
    pub fn queue_alloc(&mut self) -> Result<Handle> {
        if self.queues.len() >= self.config.limits.max_eqs as usize {
            return Err(Error::NoSpace);
        }
        let queue = self.queues.insert(Queue::default());
        let (index, generation) = queue.map_err(|_| Error::NoSpace)?;
        self.status.queues.add();
        Ok(self.handle(Kind::EventQueue, generation, index.into()))
    }

    /// PtlEQFree. Descriptors that name the queue work on without events, even once another
    /// queue takes its slot.
    ///
    /// # Errors
    /// `EqInvalid` for a handle that isn't a live queue.
    pub fn queue_free(&mut self, queue: Handle) -> Result<()> {
        let index = self.queue(queue)?;
        for descriptor in self.descriptors.values_mut() {
            descriptor.queue.take_if(|queue| *queue == index);
        }
        self.queues.remove(index);
        self.status.queues.remove();
        Ok(())
    }

    /// Index of a live event queue of this interface.
    pub(crate) fn queue(&self, handle: Handle) -> Result<QueueIndex> {
        let live = self.live(&self.queues, handle, Kind::EventQueue);
        live.ok_or(Error::EqInvalid)
    }

    /// Whether nothing can come between a look at a queue and what the caller does next: its
    /// events are taken, and no operation has begun that will post another (section 3.10,
    /// PtlMDUpdate). Without a queue that is so.
    ///
    /// # Errors
    /// `EqInvalid` for a handle that isn't a live queue, `MdNoUpdate` if it isn't so.
    fn check_quiet<H: Host<S>>(&self, queue: Handle, host: &mut H) -> Result<()> {
        if queue == lintel_types::portals3::EQ_NONE {
            return Ok(());
        }
        let index = self.queue(queue)?;
        let begun = self.queues.at(index).map_or(0, |queue| queue.begun);
        if begun > 0 || !host.is_empty(index) {
            return Err(Error::MdNoUpdate);
        }
        Ok(())
    }

    fn handle(&self, kind: Kind, generation: u16, index: u16) -> Handle {
        Handle::new(kind, self.config.number, generation, index)
    }

    /// The index of a live object that a handle names.
    #[inline(always)]
    fn live<T, I: From<u16> + Into<u16>>(
        &self,
        slab: &Slab<T, I>,
        handle: Handle,
        kind: Kind,
    ) -> Option<I> {
        let mine = handle.is(kind) && handle.interface() == self.config.number;
        let found = slab.get(handle.index().into(), handle.generation());
        (mine && found.is_some()).then(|| handle.index().into())
    }
}

/// A slab whose generations are those of handles, beginning with `generation`. The
/// generation of the reserved handles is none of them.
fn of_handles<T, I>(generation: u16) -> Slab<T, I> {
    let mut slab = Slab::new(Handle::GENERATIONS);
    slab.begin_with(generation);
    slab
}
