//! `libptlcoll.so`: the functions of `include/ptlcoll.h`, over those of `portals4.h`.
//!
//! ```text
//!   ptlcoll_allreduce ──▶ calls: check, convert ──▶ lintel-group ──▶ library: Ptl… ──▶
//!                                                                  libportals.so.4
//! ```
//!
//! Every entry reads check, convert, call, map. What an operation becomes, lanes,
//! barriers and schedules, is `lintel-group`'s; the Portals library is whichever the
//! program has loaded. Order of reading: `library` that one as a group wants it, `groups`
//! the groups of this process, `sharing` the memory that ranks of one node map, `calls` the
//! entries.
//!
//! Safety, for every function: pointers are null or point to what the header says, for
//! as long as the header says. A null pointer that isn't allowed is refused.
#![allow(non_snake_case, clippy::missing_safety_doc)]

mod calls;
mod codes;
mod groups;
mod library;
mod pointers;
mod sharing;

pub use calls::*;
pub use codes::{ptlcoll_explain, ptlcoll_strerror};
