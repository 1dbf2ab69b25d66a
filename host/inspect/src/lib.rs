//! The state of running processes, for tools: asked for, printed, and the likely reason of a
//! hang.
//!
//! ```text
//!   look ── presence ──▶ each process's helper ──▶ Process { rank, Snapshot }
//!                                                     │ text     all of it, for people
//!                                                     └ reasons  what keeps a job waiting
//! ```
//!
//! Order of use: [`look`], then [`text`] and [`reasons`], or the fields.
//!
//! Left to others: what a snapshot holds and who fills it (`lintel-snapshot`, the runtime),
//! and when one is wanted (`lintel info --queues`, `lintel top`, yod).
#![forbid(unsafe_code)]

mod process;
mod reasons;
mod text;

pub use process::{PATIENCE, Process, clean, look};
pub use reasons::reasons;
pub use text::{awaited, text};
