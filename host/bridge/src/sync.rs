//! The atomics in memory that two sides share, named once: loom's models of this crate
//! (`tests/loom.rs`) include its files and put their own in this place.

pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
