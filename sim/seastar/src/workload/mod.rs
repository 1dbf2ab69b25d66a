//! The benchmarks of the papers, as programs for a simulated machine.

mod benchmark;
mod halo;
mod hypercube;
mod incast;
mod many_to_many;
mod netpipe;
mod ping_pong;
mod random_access;
mod rig;
mod stream;

pub use benchmark::{Benchmark, Done, Read, Running};
pub use halo::{Halo, halo};
pub use hypercube::{Hypercube, hypercube};
pub use incast::{Arrivals, Incast, incast};
pub use many_to_many::{Exchange, ManyToMany};
pub use netpipe::{NetPipe, Pattern, netpipe, netpipe_sizes};
pub use ping_pong::{PingPong, Rounds, Way, both_at_random, farthest, ping_pong};
pub use random_access::{RandomAccess, random_access};
pub use rig::{Case, Measured, TorusMachine, measured, median, pair, run};
pub use stream::{Stream, stream, tuned_stream, two_way_stream};
