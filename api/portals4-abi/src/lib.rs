//! The C interface of Portals with owned handles: every call goes through a symbol of
//! `portals4.h`, every object frees itself when it is dropped, every refusal is a
//! [`CallError`] that names the call and the return code.
//!
//! ```text
//!   Interface ─┬─ queue() ──▶ Queue        get, wait, poll
//!              ├─ counter() ─▶ Counter      get, wait, poll, increment
//!              ├─ bind() ────▶ Descriptor   put, get, atomic, … and triggered
//!              └─ portal() ──▶ Portal ── append() ──▶ Entry
//! ```
//!
//! Nothing is linked here: a program links `portals4-c`, or `-lportals`, or is loaded into
//! a process that has a `libportals.so.4`, and every call reaches that library. So this
//! crate serves benchmarks that compare libraries, tests that break processes, and
//! `libptlcoll`. A Rust program that only wants Portals uses `portals4` instead.
//!
//! An object holds its interface, an [`Entry`] its [`Portal`] too; a [`Descriptor`] and an
//! [`Entry`] hold their memory until the library has given it back. Drop a descriptor or
//! an entry before the queue and the counter that it reports to: a library may refuse to
//! free what is in use.
//!
//! ```
//! extern crate portals; // defines the functions
//! use lintel_claim::Region;
//! use portals4_abi::{AckRequest, DescriptorSpec, EntrySpec, Interface, InterfaceSpec, Transfer};
//!
//! let interface = Interface::open(&InterfaceSpec::default())?;
//! let (sent, arrived) = (interface.counter()?, interface.counter()?);
//! let portal = interface.portal(0, None)?;
//! let entry = portal.append(Region::new(64), &EntrySpec::counted(7, &arrived))?;
//! let descriptor = interface.bind(Region::new(64), &DescriptorSpec::default())?;
//! let transfer = Transfer {
//!     target: interface.physical_id()?,
//!     portal: portal.index(),
//!     match_bits: 7,
//!     length: 64,
//!     ..Transfer::default()
//! };
//! descriptor.put(&transfer, AckRequest::None)?;
//! assert_eq!(arrived.wait(1)?.success, 1);
//! # drop((entry, sent));
//! # Ok::<(), portals4_abi::CallError>(())
//! ```

mod error;
mod events;
mod interface;
mod lists;
mod memory;
mod transfer;

pub use error::{CallError, Result};
pub use events::{Counter, Queue, poll_counters};
pub use interface::{Interface, InterfaceSpec, abort, finalize, initialize};
pub use lists::{Descriptor, DescriptorSpec, Entry, EntrySpec, Portal};
pub use memory::{ShareableMemory, UserMemory};
pub use transfer::{Sink, Transfer, Trigger};

pub use lintel_types::{
    AckRequest, CountingEvent, Error, Handle, Limits, List, NiFail, PT_ANY, ProcessId, options,
};
pub use lintel_types::{Datatype, Operation};
pub use portals4_sys::RawEvent;
