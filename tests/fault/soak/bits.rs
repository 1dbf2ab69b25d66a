//! Match bits: what for, for which life of the target, by whom, which slot.
//!
//! ```text
//!   64      56      32      16       0
//!   │ kind  │ life  │ rank  │ slot  │
//! ```
//!
//! A rank that is started again has a new life. What was meant for an earlier one
//! matches nothing, and is dropped.

/// What an entry is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A rank begins to talk to another.
    Hello = 1,
    /// The other's answer.
    Welcome,
    /// A put that was checked: its slot may be written to again.
    Credit,
    /// A slot that is put to.
    Put,
    /// The numbers that are got.
    Pool,
    /// Words for atomics.
    Words,
    /// Puts that only a counter tells of.
    Counted,
}

/// Bits that say who and which slot.
pub const WHO: u64 = 0xffff_ffff;
/// Bits that say all but the kind.
pub const ALL_BUT_KIND: u64 = (1 << 56) - 1;

/// The bits of an entry.
pub fn bits(kind: Kind, life: u32, rank: u32, slot: usize) -> u64 {
    (kind as u64) << 56 | u64::from(life) << 32 | u64::from(rank) << 16 | slot as u64
}

/// The kind, where there is such a one, and rank and slot.
pub fn read(bits: u64) -> Option<(Kind, u32, usize)> {
    use Kind::{Counted, Credit, Hello, Pool, Put, Welcome, Words};
    let all = [Hello, Welcome, Credit, Put, Pool, Words, Counted];
    let kind = all.into_iter().find(|kind| *kind as u64 == bits >> 56)?;
    Some((kind, (bits >> 16) as u32 & 0xffff, bits as usize & 0xffff))
}

/// Two numbers in a message's header data.
pub fn header(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Both of them.
pub fn halves(header: u64) -> (u32, u32) {
    ((header >> 32) as u32, header as u32)
}
