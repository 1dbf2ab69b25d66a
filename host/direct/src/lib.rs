//! Direct entries: list and match list entries whose memory peers access by themselves, by plain
//! loads, stores and atomics or by copies of the system, while the process that owns them does
//! something else.
//!
//! ```text
//!   owner                                        peer
//!   publish ──▶ Table { version, entries } ──read──▶ its copy of the entries
//!                        │                              │ begin: odd, then look at the version
//!   withdraw ── changes ─┘                              │ loads and stores
//!   then waits for each peer's AccessWord  ◀────────────┘ end: even
//! ```
//!
//! The owner of a [`Table`] publishes entries there; peers keep a copy of it as long as its
//! version is the same. A peer marks its [`AccessWord`] while it accesses memory, and looks at the
//! version in between. So once the owner has changed the version, has ordered a barrier, and
//! has seen each access word that was odd change, no peer accesses what was withdrawn.
//!
//! Order of use: the owner calls [`Table::publish`]; a peer [`Table::read`], and for each
//! operation [`AccessWord::begin`] and [`AccessWord::end`]. To withdraw: [`Table::withdraw`],
//! the barrier, then [`AccessWord::is_over`] for each value that [`AccessWord::under_way`] gave.
//!
//! Left to others: where table and words lie (the shared-memory NAL), the memory itself and the
//! barrier (presence), whether a peer lives, which entries may be published (the runtime).
#![forbid(unsafe_code)]

mod access;
mod table;

pub use access::{AccessWord, Fence};
pub use table::{CopyKey, Counts, Entry, Memory, MemoryName, SLOTS, Table};

#[cfg(loom)]
pub(crate) use loom::sync::atomic;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic;
