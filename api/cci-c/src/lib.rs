//! `libcci.so.2`: the functions of `include/cci.h`.
//!
//! Every entry reads check, convert, call, map. Outputs are written on success only, but for
//! `*event` of `cci_get_event`, which becomes null on errors. The header documents what the
//! functions do, this crate what the arguments become.
//!
//! Safety, for every function: pointers are null or point to what the header says, for as long
//! as the header says. A null pointer where none may be is refused.
#![allow(clippy::missing_safety_doc)]

mod cells;
mod connections;
mod convert;
mod devices;
mod endpoints;
mod events;
mod library;
mod memory;
mod messages;
mod options;

pub use connections::*;
pub use endpoints::*;
pub use events::*;
pub use library::*;
pub use memory::*;
pub use messages::*;
pub use options::*;
