//! Portals 3.3 for Rust programs: the safe interface.
//!
//! ```text
//!   initiator                                target
//!   MemoryDescriptor ──put, get, get_put──▶  match list ─▶ Entry ─▶ MemoryDescriptor
//!     │ Region, threshold, options                                    │
//!     ▼                                                               ▼
//!   EventQueue                                                      EventQueue
//! ```
//!
//! Order of use: [`Portals::init`], [`Interface::open`], then [`EventQueue::alloc`]; at the target
//! [`Entry::attach`] and [`MemoryDescriptor::attach`], at the initiator [`MemoryDescriptor::bind`]
//! and [`MemoryDescriptor::put`] or another operation. Events report how it went. Dropping a value
//! gives back what it stands for; each keeps what it needs, so any order is right.
//!
//! Messages are delivered by themselves: the target needn't make a call. Memory that messages
//! reach belongs to a [`Region`], which stays as long as a descriptor names it; its bytes are
//! copied in and out, since a peer may change them at any moment.
//!
//! Left to others: all rules of Portals (the engine) and all waiting (the runtime). What isn't
//! explained here is in `include/portals3.h`, by the same nouns. Portals 4 is `portals4`; a
//! program can use both.
//!
//! ```
//! use portals33::*;
//!
//! # fn main() -> Result<()> {
//! let portals = Portals::init()?;
//! let interface = Interface::open(&portals, Options::default())?;
//! let queue = EventQueue::alloc(&interface, 16)?;
//!
//! let entry = Entry::attach(&interface, 4, Position::After, EntrySpec {
//!     match_bits: 42,
//!     ..EntrySpec::default()
//! })?;
//! let inbox = Region::new(64);
//! let _target = MemoryDescriptor::attach(&entry, DescriptorSpec {
//!     memory: Memory::from(&inbox),
//!     options: MdOptions::OP_PUT | MdOptions::EVENT_START_DISABLE,
//!     queue: Some(queue.clone()),
//!     ..DescriptorSpec::default()
//! })?;
//!
//! let outbox = Region::new(64);
//! outbox.write(0, b"lintel");
//! let source = MemoryDescriptor::bind(&interface, DescriptorSpec {
//!     memory: Memory::from(&outbox),
//!     ..DescriptorSpec::default()
//! })?;
//! source.put(Put {
//!     part: Some(Part { offset: 0, length: 6 }),
//!     target: Target { match_bits: 42, ..Target::new(interface.id()?, 4) },
//!     ..Put::default()
//! })?;
//!
//! let event = queue.wait()?;
//! assert_eq!((event.kind, event.mlength), (EventKind::PutEnd, 6));
//! let mut bytes = [0; 6];
//! inbox.read(0, &mut bytes);
//! assert_eq!(&bytes, b"lintel");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod deferred_release;
mod descriptor;
mod entry;
mod interface;
mod moves;
mod queue;
mod ranks;

pub use descriptor::{DescriptorSpec, MemoryDescriptor};
pub use entry::{Entry, EntrySpec};
pub use interface::{Interface, Options, Portals};
pub use moves::{Get, GetPut, Part, Put, Target};
pub use queue::{EventQueue, Taken};
pub use ranks::Ranks;

pub use lintel_claim::{Memory, Region};
pub use lintel_engine3::{AccessEntry, register};
pub use lintel_types::ProcessId;
pub use lintel_types::portals3::{
    Error, Event, EventKind, JID_ANY, Limits, MdOptions, NI_FAIL, NI_OK, NID_ANY, PID_ANY,
    PT_INDEX_ANY, Position, Result, THRESHOLD_INFINITE, UID_ANY, Unlink,
};

/// `PTL_IFACE_DEFAULT`: the interface that follows the specification.
pub const IFACE_DEFAULT: u32 = 0xf0f0_f000;
/// `CRAY_USER_NAL`: the interface that follows Cray's rules for unlinking and gets.
pub const IFACE_CRAY: u32 = 0x1_0001;
