//! Match bits: purpose, incarnation of the target, rank of the sender, slot.
//!
//! ```text
//!   64      56      32      16       0
//!   │ kind  │ incar.│ rank  │ slot  │
//! ```
//!
//! A rank that is restarted has a new incarnation. A message for an earlier one matches
//! nothing, and is dropped.

/// The purpose of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A rank opens a session with another.
    Hello = 1,
    /// The reply to a hello, which completes the handshake.
    HelloReply,
    /// A put has been checked: its slot is free for the next one.
    Credit,
    /// A slot of the target for puts.
    Put,
    /// The random numbers that gets read.
    Pool,
    /// The words that atomics change.
    Words,
    /// Puts that only a counter reports.
    Counted,
}

/// The bits of rank and slot.
pub const RANK_AND_SLOT: u64 = 0xffff_ffff;
/// All bits but those of the kind.
pub const ALL_BUT_KIND: u64 = (1 << 56) - 1;

/// The match bits of an entry.
pub fn bits(kind: Kind, incarnation: u32, rank: u32, slot: usize) -> u64 {
    (kind as u64) << 56 | u64::from(incarnation) << 32 | u64::from(rank) << 16 | slot as u64
}

/// Kind, rank and slot of match bits; nothing for a kind that doesn't exist.
pub fn read(bits: u64) -> Option<(Kind, u32, usize)> {
    use Kind::{Counted, Credit, Hello, HelloReply, Pool, Put, Words};
    let all = [Hello, HelloReply, Credit, Put, Pool, Words, Counted];
    let kind = all.into_iter().find(|kind| *kind as u64 == bits >> 56)?;
    Some((kind, (bits >> 16) as u32 & 0xffff, bits as usize & 0xffff))
}

/// Two numbers in a message's header data.
pub fn header(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// The two numbers of [`header`], high one first.
pub fn halves(header: u64) -> (u32, u32) {
    ((header >> 32) as u32, header as u32)
}
