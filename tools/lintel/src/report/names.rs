//! The names by which reports call benchmarks, rows and limits: `perf` writes them, the
//! verdicts and the figures read them.

/// What a TCP connection carries.
pub const BARE_TCP_STREAM: &str = "bare TCP stream";
/// Half a round trip of a put, counted at the target.
pub const LATENCY: &str = "conn-latency";
/// One process of a node streams to one of the other.
pub const ONE_WAY: &str = "conn-one-way";
/// Both stream to each other.
pub const BOTH_WAYS: &str = "conn-both-ways";
/// Several processes of a node stream to as many of the other.
pub const MULTI_PAIR: &str = "conn-pairs";
/// Each process of a node streams to each of the other.
pub const MANY_TO_MANY: &str = "conn-many";
/// Acknowledged puts to the others of a node while one of its processes is stopped.
pub const STALLED: &str = "conn-stalled";
/// Contexts and memory as counted.
pub const COUNTS: &str = "conn-counts";
/// Contexts and memory by the formula.
pub const FORMULA: &str = "conn-formula";
/// Generic against accelerated placement, between two nodes.
pub const PLACEMENTS: &str = "placements";
/// What is chosen within a node beside each path alone.
pub const PATHS: &str = "paths";
/// Requests to a server that sleeps.
pub const ASLEEP: &str = "asleep";
/// Two ranks that share a core.
pub const ONE_CORE: &str = "one-core";
/// Collective operations, carried out by the Portals library or by the calling thread.
pub const COLLECTIVES: &str = "collectives";

/// The collective operations, in the order of their rows.
pub const OPERATIONS: [&str; 6] = [
    "barrier",
    "broadcast",
    "allreduce",
    "reduce",
    "gather",
    "scatter",
];

/// The variant of the rows of a collective operation.
pub fn collective_variant(name: &str, ranks: u32, placement: &str) -> String {
    format!("{name}, {ranks} ranks, {placement}")
}

/// Time to half a round trip over a cache line for each direction.
pub const TWO_LINES: &str = "× two lines";
/// Until the target's memory shows a message, to a bare wake onto a busy core.
pub const DELIVERED_TO_WAKE: &str = "delivered × wake";
/// Until the operation is complete at its origin, to such a wake.
pub const ACKNOWLEDGED_TO_WAKE: &str = "completed × wake";
/// One copy by the kernel out of the other process.
pub const CROSS_MEMORY_COPY: &str = "cross-memory copy";
/// A copy into shared memory and one out of it.
pub const SHARED_COPY: &str = "copy through shared memory";
/// The same, many in flight.
pub const SHARED_STREAM: &str = "copies through a shared ring";
/// The limit of one way over a network.
pub const BARE_PING_PONG: &str = "bare UDP ping-pong, one way";
/// The limit of bandwidth over a network.
pub const BARE_STREAM: &str = "bare UDP stream, GSO and GRO";

/// The tables of `connections`: the name of their rows, and their titles.
pub const CONNECTIONS: [(&str, &str); 8] = [
    (
        LATENCY,
        "connections, latency: ping-pong of puts, half a round trip",
    ),
    (
        ONE_WAY,
        "connections, uni-directional: a stream of puts, time of one message",
    ),
    (
        BOTH_WAYS,
        "connections, bi-directional: two streams at once, time of one message of either",
    ),
    (
        MULTI_PAIR,
        "connections, multi-pair: a stream each, time of one message of any",
    ),
    (
        MANY_TO_MANY,
        "connections, many-to-many: each streams to each, time of one message of any",
    ),
    (
        STALLED,
        "connections, one receiver stopped: 8 B to the others until acknowledged",
    ),
    (
        COUNTS,
        "connections, counted: two nodes, each process puts to each of the other node",
    ),
    (
        FORMULA,
        "connections, by formula: 16 processes a node, each in touch with every other node's",
    ),
];
