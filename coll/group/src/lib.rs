//! Groups of processes whose collective operations a Portals library carries out.
//!
//! An operation is cut into segments. Each segment gets a *lane*: memory, counters
//! and match entries of its own, the same on all ranks. Its input is copied into
//! the lane, its schedule (`lintel-collectives`) posted as triggered operations, and
//! once its counters say that nothing will arrive any more, its result is copied out:
//!
//! ```text
//!   caller's input ──copy──▶ lane 5: input │ slots ──copy──▶ caller's result
//!                                    │       ▲
//!                   triggered puts   ▼       │  puts of other ranks
//!                 and own combining  others' lanes 5
//!
//!   numbers   0 … 15 │ 16 … 31 │ 32 … 47 │      segment n is in lane n % 32
//!                    barrier 1 begins ▲    ▲ and must have ended here
//! ```
//!
//! So no rank's caller is needed while an operation is in flight, and the network
//! never sees users' buffers. A lane is reused after a *recycling barrier*, a barrier in the
//! background for each sixteen segments, has shown that all ranks are done with it.
//!
//! Ranks that have [shared](Group::share) memory carry out blocking operations in it, without
//! messages; those of [several nodes](Group::share_on_nodes) within each node, with messages only among
//! the nodes.
//!
//! Order of use: implement [`Portals`] for a library, [`Group::create`] on all ranks;
//! then [`Group::run`], or [`Group::begin`] and [`Group::test`] or [`Group::wait`], the
//! same operations in the same order on all ranks; last [`Group::free`].
//!
//! Left to others: what a rank sends when (`lintel-collectives`), messages, counters
//! and all waiting (the library behind [`Portals`]).
#![forbid(unsafe_code)]

mod active;
mod buffers;
mod call;
mod error;
mod group;
mod hierarchical;
mod lane;
mod messages;
mod peers;
mod portals;
mod recycling;
mod shared;
mod spec;
mod tuning;
mod waiting;

pub use buffers::{Buffers, InPlace, Separate};
pub use call::{Call, Reduction};
pub use error::{Error, Result};
pub use group::{Group, Short};
pub use messages::{MAX_AWAITED, Request};
pub use portals::{Combine, Message, Portals};
pub use shared::{MAX_SHARING_RANKS, SharedMemory};
pub use spec::{CREATE_TIMEOUT, Progress, Spec};

pub use lintel_claim::{Datatype, Operation, Region};
pub use lintel_collectives::{Algorithm, Tree};
pub use lintel_types::{CountingEvent, Error as PortalsError, NiFail, ProcessId};
