//! `libportals.so.4`: the functions of `include/portals4.h` and `portals4_ext.h`.
//!
//! Every entry reads check, convert, call, map. Outputs are written on success
//! only. The header documents what the functions do, this crate what the
//! arguments become. An `if` that is no argument check lives elsewhere.
//!
//! Safety, for every function: pointers are null or point to what the header
//! says, for as long as the header says. A null pointer where none may be is
//! refused.
#![allow(non_snake_case, clippy::missing_safety_doc)]

mod convert;
mod entries;
mod events;
mod interfaces;
mod memory;
mod moves;
mod names;
mod triggered;

pub use entries::*;
pub use events::*;
pub use interfaces::*;
pub use memory::*;
pub use moves::*;
pub use names::*;
pub use portals4_sys::{Iovec, Le, Md, Me, RawEvent};
pub use triggered::*;
