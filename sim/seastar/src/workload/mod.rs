//! The benchmarks of the papers, as programs for a simulated machine.

mod halo;
mod incast;
mod ping_pong;
mod random_access;
mod rig;
mod stream;

pub use halo::{Halo, halo};
pub use incast::{Arrivals, Incast, incast};
pub use ping_pong::{PingPong, Way, netpipe_sizes, ping_pong};
pub use random_access::{RandomAccess, random_access};
pub use rig::{Case, Measured, TorusMachine, measured, median, pair, run};
pub use stream::{Stream, stream, tuned_stream, two_way_stream};
