//! User buffers: the only raw copy and the only raw atomic.
//!
//! Memory that the application or a peer may touch at any moment is never a Rust
//! slice. It is a [`Claim`]: an address and a length, checked once when it enters
//! (`Claim::new` is `unsafe`) and from then on moved by this crate alone.
//!
//! ```text
//!   &[u8] ──write──▶ Claim ──read──▶ &mut [u8]        bytes of ours, bytes of theirs
//!   Claim ──copy───▶ Claim                            one address space
//!   Claim ◀──pull─── RemoteMemory                     another process, cross-memory attach
//!   Claim ──push───▶ RemoteMemory
//!   Claim ──lend───▶ Lent ──keep──▶ Loan              held beyond a call, counted by a Lease
//!   Region ─▶ Memory ──▶ Deferred                     kept until no message reaches it
//!   Claim ──▶ datagram ──▶ Claim                      sockets, gathered and scattered
//!   operand ─atomic─▶ Claim ──▶ fetched               Portals 4.3, PtlAtomic, PtlSwap
//!   Claim ─combine─▶ Claim                            the same, without atomics
//! ```
//!
//! Order of use: make a claim of user memory (or take one from a [`Region`]), cut it
//! with [`Claim::slice`], then [`copy`], [`RemoteMemory::pull`], [`RemoteMemory::push`],
//! [`atomic()`], [`combine()`]. What is to be used beyond a call is lent under a [`Lease`].
//!
//! Left to others: which bytes may be touched (the engine decides) and when (the
//! runtime). What a peer writes at the same time may be seen torn; nothing here ever
//! interprets bytes before they are copied to memory of our own.
//!
//! ```
//! use lintel_claim::{Region, copy};
//!
//! let (source, sink) = (Region::new(64), Region::new(64));
//! source.write(0, b"portal");
//! assert_eq!(copy(source.claim().slice(0, 6), sink.claim()), 6);
//! let mut seen = [0; 6];
//! sink.read(0, &mut seen);
//! assert_eq!(&seen, b"portal");
//! ```

pub mod atomic;
mod bounce;
mod claim;
mod combine;
mod copy;
mod cross_memory;
mod datagram;
mod deferred;
mod element;
mod lease;
mod mapping;
mod memory;
mod native;
mod region;

pub use atomic::{atomic, fetch_atomic, swap, word_atomic};
pub use claim::{Claim, WordClaim, prefetch_to_write};
pub use combine::{combine, combine_bytes, combine_into, combine_with};
pub use copy::{SHORT, copy, copy_long, copy_short, copy_vectored, gather};
pub use cross_memory::{CrossMemoryError, Key, RemoteMemory, RemoteSpan, copy_checked};
pub use datagram::{MAX_PIECES, receive_datagram, receive_gso_batch, send_datagram, take_report};
pub use deferred::Deferred;
pub use lease::{Lease, Lent, Loan};
pub use mapping::Mapping;
pub use memory::Memory;
pub use region::Region;

pub use lintel_types::{AtomicCall, Datatype, Operation, Unknown, valid};

// Lengths and addresses travel as u64 and are used as usize.
const _: () = assert!(size_of::<usize>() == size_of::<u64>());
