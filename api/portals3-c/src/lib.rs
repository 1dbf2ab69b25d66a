//! `libportals3.so.0`: the C interface of Portals 3.3. Each entry checks, converts, calls the
//! runtime and maps the result; what a call means is written in `portals3.h`, and how it comes
//! about in `lintel-engine3` and `lintel-runtime`.
//!
//! ```text
//!   C program ──▶ Ptl… (this crate) ──▶ lintel-runtime ──▶ lintel-engine3
//!                  └─ ranks: PtlSetRank and the maps, of this process alone
//! ```
//!
//! Outputs are written on success only.
#![allow(non_snake_case, clippy::missing_safety_doc)]

mod convert;
mod debug;
mod descriptors;
mod entries;
mod events;
mod group;
mod interfaces;
mod moves;
mod names;
mod ranks;

pub use debug::*;
pub use descriptors::*;
pub use entries::*;
pub use events::*;
pub use interfaces::*;
pub use moves::*;
pub use names::*;
pub use ranks::*;
