//! `libportals_job.so`: the functions of `include/portals4_job.h`, and those of
//! `include/portals4/pmi.h`, which programs written for the reference's runtime library call.
//!
//! ```text
//!   ptljob_…  ─┐                     ┌─ lintel-pmi ──▶ launcher: PMI-1, PMI-2, PMIx
//!   PMI_…     ─┴─▶ job: one a process┴─ a job of one rank: no launcher
//! ```
//!
//! Every entry reads check, convert, call, map. The library calls no function of Portals.
//!
//! Safety, for every function: pointers are null or point to what the header says, for as long
//! as the header says. A null pointer where none may be is refused.
#![allow(non_snake_case, clippy::missing_safety_doc)]

mod calls;
mod codes;
mod job;
mod pmi;
mod pointers;

pub use calls::*;
pub use codes::ptljob_explain;
pub use pmi::*;
