//! What the machine itself can do, without Portals: the workloads of `lintel perf limits`.
//!
//! | module | limits |
//! |---|---|
//! | [`lines`] | cache lines between two cores |
//! | [`copies`] | memcpy, cross-memory attach |
//! | [`kernel`] | system call, futex |
//! | [`network`] | bare UDP and TCP sockets on loopback |

pub mod copies;
pub mod kernel;
pub mod lines;
pub mod network;

/// The table that RandomAccess and its limit use, in bytes.
pub const XOR_TABLE: usize = 16 << 20;

/// Payload of a datagram that an Ethernet frame surely holds, in bytes.
pub const ETHERNET: usize = 1400;
