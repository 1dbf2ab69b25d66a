//! Messages over datagrams: each arrives once, in order, whatever the network loses,
//! duplicates or reorders. No sockets, no memory of users, no clock: a datagram's header and
//! the time go in, headers and the ranges of payloads come out.
//!
//! ```text
//!   send ──▶ ┌──────── Endpoint ────────┐ ──▶ poll_transmit   a header, and which bytes
//!            │ pair      pair      pair │                     of which body
//!            │   └──┬─────┘         │   │
//!   on_packet│   context         context│ ──▶ Verdict         deliver, keep, or drop
//!  ─────────▶└──────────────────────────┘ ──▶ poll_lost_peer  a peer is lost
//! ```
//!
//! There are two kinds of state. A *pair* is this process and one other: which packet comes
//! next, either way, and which incarnation the other is. A *context* is a path: round-trip
//! time, congestion window, pacing. Which pairs share a context is the [`Model`]: none of
//! them, those to one node, or those of all processes here to one node. Pairs stay, for
//! order must survive, but after a second of silence a pair keeps only its numbers; contexts
//! are made on first use and closed when they have been idle for 30 s.
//!
//! A peer that ends and starts again has a newer *incarnation* (`lintel-session`). A packet
//! names its sender's and its receiver's, so that nothing of an earlier incarnation is mixed
//! with a later one: the end of the earlier one is reported first. A side that has given a
//! peer up goes on in a newer incarnation too, so that the peer, if it is alive, learns of
//! it. Before the first message to a process its incarnation is asked for, which takes a
//! round trip; and nothing is delivered or kept of a sender that can't name the receiver's,
//! so that what was sent to an earlier incarnation can't be replayed to a later one.
//!
//! Order of use: [`Endpoint::send`], then [`Endpoint::poll_transmit`] until it returns
//! nothing. For each datagram [`Header::parse`], then [`Endpoint::on_packet`]; after one
//! that was delivered, [`Endpoint::on_early`] for those that waited for it. At the time
//! of [`Endpoint::due`], [`Endpoint::on_timeout`]. [`Endpoint::poll_lost_peer`] and
//! [`Endpoint::take_finished`] after either.
//!
//! Left to others: checksums of payloads (the owner of the bytes computes them), sealed
//! datagrams and sockets.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod authenticator;
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

pub use authenticator::{Key, TAG_BYTES};
pub use config::{Config, Counts, LostPeer, Model, PairId, Resources};
pub use context::{Path, Paths};
pub use endpoint::Endpoint;
pub use incoming::Verdict;
pub use lintel_session::Incarnation;
pub use outbound::Message;
pub use outgoing::{PayloadRange, Transmit};
pub use packet::{
    Class, FIRST_BYTES, FURTHER_BYTES, Fragment, GAP_BYTES, Header, Kind, MAX_HEADER_BYTES,
    Refusal, VERSION, WHOLE_BYTES,
};
pub use time::{Nanos, Time};

#[cfg(test)]
mod tests;
