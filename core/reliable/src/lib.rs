//! Messages over datagrams: each arrives once, in order, whatever the network loses,
//! repeats or reorders. No sockets, no memory of users, no clock: a datagram's header and
//! the time come in, headers and the places of payloads go out.
//!
//! ```text
//!   send ──▶ ┌──────── Endpoint ────────┐ ──▶ poll_transmit   a header, and which bytes
//!            │ pair      pair      pair │                     of which body
//!            │   └──┬─────┘         │   │
//!   on_packet│   context         context│ ──▶ Verdict         deliver, keep, or drop
//!  ─────────▶└──────────────────────────┘ ──▶ poll_lost_peer  a peer is lost
//! ```
//!
//! Two kinds of state. A *pair* is this process and one other: which packet comes next,
//! either way, and who the other is. A *context* is a path: round-trip time, window,
//! pacing. Which pairs share a context is the [`Model`]: none of them, those to one
//! node, or those of all processes here to one node. Pairs stay, for order must survive,
//! but after a second at rest a pair keeps only its numbers; contexts are made on first
//! use and go when they have been idle for 30 s.
//!
//! A peer that ends and begins again has a newer *incarnation*. A packet names its
//! sender's and its receiver's, so that nothing of an earlier life is mixed with a later
//! one: its end is told first. A side that has given a peer up goes on in a newer
//! incarnation too, so that the peer, should it live, learns of it. Who sends to a process
//! for the first time asks for its incarnation before, which takes a round trip; and of
//! whoever can't name the receiver's nothing is delivered or kept, so that what was said to
//! an earlier life can't be said again to a later one.
//!
//! Order of use: [`Endpoint::send`], then [`Endpoint::poll_transmit`] until it gives
//! nothing. For each datagram [`Header::parse`], then [`Endpoint::on_packet`]; after one
//! that was delivered, [`Endpoint::on_early`] for those that waited for it. At the time
//! of [`Endpoint::due`], [`Endpoint::on_timeout`]. [`Endpoint::poll_lost_peer`] and
//! [`Endpoint::take_finished`] after either.
//!
//! Left to others: checksums of payloads (who has the bytes computes them), sealed
//! datagrams and sockets.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod config;
mod congestion;
mod context;
mod endpoint;
mod incoming;
mod outbound;
mod outgoing;
mod packet;
mod pair;
mod receiving;
mod sending;
mod time;
mod timers;

pub use config::{Config, Counts, LostPeer, Model, PairId, Resources};
pub use context::{Path, Paths};
pub use endpoint::Endpoint;
pub use incoming::Verdict;
pub use lintel_session::Incarnation;
pub use outbound::Message;
pub use outgoing::{PayloadRange, Transmit};
pub use packet::{
    Class, FIRST_BYTES, FURTHER_BYTES, Fragment, Header, Key, Kind, MAX_HEADER_BYTES, Refusal,
    TAG_BYTES, VERSION, WHOLE_BYTES,
};
pub use time::{Nanos, Time};

#[cfg(test)]
mod tests;
