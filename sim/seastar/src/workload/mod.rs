//! The benchmarks of the papers, as programs for a simulated machine.

mod ping_pong;
mod rig;

pub use ping_pong::{PingPong, Way, ping_pong};
pub use rig::{Case, Measured, TorusMachine, measured, median, pair, run};
