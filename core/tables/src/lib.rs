//! Containers of the engines, without any rule of Portals: a slab that notices
//! stale names, chains through slots, and lists whose entries are found in order, by hash
//! where hashing can decide.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod buckets;
mod chain;
mod match_list;
mod ordered;
mod posted;
mod slab;
#[cfg(test)]
mod testing;

pub use chain::{Chain, Chains};
pub use match_list::MatchList;
pub use ordered::OrderedMatchList;
pub use posted::Posted;
pub use slab::Slab;
