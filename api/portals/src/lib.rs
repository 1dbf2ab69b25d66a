//! Portals 4 for Rust programs: the safe interface.
//!
//! ```text
//!   initiator                                     target
//!   MemoryDescriptor ──put, get, atomic, swap──▶  PortalTableEntry
//!     │ Region, options                             │ priority list: Entry, Entry, …
//!     ▼                                             │ overflow list: Entry, …
//!   EventQueue, Counter                             ▼
//!                                                 EventQueue, Counter
//! ```
//!
//! Order of use: [`Portals::init`], [`Interface::open`], then [`EventQueue::alloc`]
//! and [`Counter::alloc`]; at the target [`PortalTableEntry::alloc`] and
//! [`Entry::append`], at the initiator [`MemoryDescriptor::bind`] and
//! [`MemoryDescriptor::put`] or another operation. Events and counts report how it
//! went. Dropping a value gives back what it stands for; each keeps what it needs,
//! so any order is right.
//!
//! Messages are delivered by themselves: the target needn't make a call. Memory
//! that messages reach belongs to a [`Region`], which stays as long as anything is
//! bound to it; its bytes are copied in and out, since a peer may change them at any
//! moment.
//!
//! Left to others: all rules of Portals (the engine) and all waiting (the runtime).
//! What isn't explained here is in `include/portals4.h`, by the same nouns.
//!
//! ```
//! use portals4::*;
//!
//! # fn main() -> Result<()> {
//! let portals = Portals::init()?;
//! let interface = Interface::open(&portals, Options::default())?;
//!
//! let queue = EventQueue::alloc(&interface, 16)?;
//! let portal = PortalTableEntry::alloc(&interface, PortalSpec {
//!     queue: Some(queue.clone()),
//!     ..PortalSpec::default()
//! })?;
//! let inbox = Region::new(64);
//! let _entry = Entry::append(&portal, EntrySpec {
//!     memory: Memory::from(&inbox),
//!     options: options::ME_OP_PUT | options::ME_EVENT_LINK_DISABLE,
//!     match_bits: 42,
//!     ..EntrySpec::default()
//! })?;
//!
//! let outbox = Region::new(64);
//! outbox.write(0, b"lintel");
//! let descriptor = MemoryDescriptor::bind(&interface, DescriptorSpec {
//!     memory: Memory::from(&outbox),
//!     ..DescriptorSpec::default()
//! })?;
//! descriptor.put(Put {
//!     length: 6,
//!     target: Target { match_bits: 42, ..Target::new(interface.id()?, portal.index()) },
//!     ..Put::default()
//! })?;
//!
//! let event = queue.wait()?;
//! assert_eq!((event.kind, event.mlength), (EventKind::Put, 6));
//! let mut bytes = [0; 6];
//! inbox.read(0, &mut bytes);
//! assert_eq!(&bytes, b"lintel");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod counter;
mod deferred_release;
mod descriptor;
mod entry;
mod interface;
mod moves;
mod portal_table;
mod queue;
mod triggered;

pub use counter::Counter;
pub use descriptor::{DescriptorSpec, MemoryDescriptor};
pub use entry::{Entry, EntrySpec};
pub use interface::{Interface, Options, Portals};
pub use moves::{Atomic, FetchAtomic, Get, Put, Swap, Target};
pub use portal_table::{PortalSpec, PortalTableEntry};
pub use queue::{EventQueue, Events, Taken};
pub use triggered::Trigger;

pub use lintel_claim::{Datatype, Memory, Operation, Region};
pub use lintel_engine4::{Registers, SearchOp};
pub use lintel_types::{
    AckRequest, CountingEvent, Error, Event, EventKind, Limits, List, NiFail, ProcessId, Result,
    options,
};
