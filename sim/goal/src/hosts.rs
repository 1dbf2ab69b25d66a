//! What hosts need for messages.

use lintel_sim_kernel::Duration;

/// What it costs a host to send and to receive, by the letters of LogGOPS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hosts {
    /// `o`: processor time for a message, on each side.
    pub overhead: Duration,
    /// `O`: processor time for each byte after the first, on each side.
    pub overhead_per_byte: Duration,
    /// `g`: from one message to the next of an interface, each way.
    pub gap: Duration,
    /// `S`: messages of more bytes wait for their receive; their sends end when it is
    /// found.
    pub eager: u64,
}

impl Hosts {
    /// Hosts that messages cost nothing, and for which all are eager.
    pub const FREE: Hosts = Hosts {
        overhead: Duration::ZERO,
        overhead_per_byte: Duration::ZERO,
        gap: Duration::ZERO,
        eager: u64::MAX,
    };

    /// LogGOPSim's own defaults: o 1500 ns, g 1000 ns, O 0, S 65535. Its network has L
    /// 2500 ns and G 6 ns.
    pub const LOGGOPSIM: Hosts = Hosts {
        overhead: Duration::from_ns(1_500),
        overhead_per_byte: Duration::ZERO,
        gap: Duration::from_ns(1_000),
        eager: 65_535,
    };
}
