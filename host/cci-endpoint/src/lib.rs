//! CCI endpoints: the rules of `lintel-cci` over shared memory or UDP, with progress.
//!
//! ```text
//!   calls ──▶ Endpoint ──lock──▶ State { rules, link, events, buffers }
//!                │                          │ NAL, loopback
//!                └── helper thread: sleeps on the bell or the socket, makes progress
//!                    while no thread of the application polls
//! ```
//!
//! An endpoint is a process on its network of its own: it has a name, and a ring or a socket. Its
//! connections share them, so their number costs no rings, sockets or buffers.
//!
//! Order of use: [`devices`], [`Endpoint::open`], then the calls as CCI names them.
//! Left to others: the rules (`lintel-cci`), pointers and structures of C (`cci-c`).
#![forbid(unsafe_code)]

mod address;
mod body;
mod buffers;
mod config;
mod device;
mod endpoint;
mod events;
mod helper;
mod link;
mod log;
mod memory;
mod multicast;
mod options;
mod shared;
mod state;
mod variables;

pub use address::AddressError;
pub use buffers::Buffer;
pub use device::{Device, Transport, devices};
pub use endpoint::{Endpoint, GivenBack, MessageFlags, OpenError};
pub use events::{Event, Message};
pub use lintel_cci::{
    Access, Attribute, ConnectionId, ConnectionInfo, Direction, MAX_REQUEST, Region, Resources,
    RmaRequest, Status, Time,
};
pub use lintel_nal_udp::Faults;
pub use options::EndpointOption;
pub use variables::VARIABLES;
