//! Host memory, which the engines and the host share.
//!
//! What the TX engine reads and the RX engine writes passes the memory of the host, and the
//! host waits for it meanwhile. The end of an interrupt is the part of its work that is made
//! of misses: handler and message have replaced what the process had in its caches. So it
//! takes longer by what the engines' bytes take of memory's bandwidth.

use std::collections::BTreeMap;

use lintel_sim_kernel::{Bandwidth, Bytes, Duration, SimTime};

use super::Node;
use crate::context::Context;

/// What the engines have moved between network and host memory.
#[derive(Default)]
pub(crate) struct HostMemory {
    moved: u64,
    under_way: BTreeMap<u64, Moving>,
    /// Bytes for which the host has waited, or that came while it had no need to.
    awaited: u64,
}

/// A message that an engine moves.
struct Moving {
    since: SimTime,
    bytes: u64,
    engine: Bandwidth,
}

impl Moving {
    /// As fast as the engine goes; the network may be slower.
    fn moved(&self, now: SimTime) -> u64 {
        let took = u128::from(now.since(self.since).as_ps());
        let moved = took * u128::from(self.engine.bytes_per_second()) / 1_000_000_000_000;
        self.bytes.min(u64::try_from(moved).unwrap_or(u64::MAX))
    }
}

impl HostMemory {
    /// An engine begins with a message's payload.
    pub(crate) fn begin(&mut self, name: u64, bytes: u64, engine: Bandwidth, since: SimTime) {
        let moving = Moving {
            since,
            bytes,
            engine,
        };
        self.under_way.insert(name, moving);
    }

    /// The last byte of a message is through.
    pub(crate) fn end(&mut self, name: u64, bytes: u64) {
        self.under_way.remove(&name);
        self.moved += bytes;
    }

    fn moved(&self, now: SimTime) -> u64 {
        let under_way = self.under_way.values();
        self.moved + under_way.map(|moving| moving.moved(now)).sum::<u64>()
    }

    /// From now on the host needs memory.
    pub(crate) fn need(&mut self, now: SimTime) {
        self.awaited = self.moved(now);
    }

    /// How much longer what the host does takes, for the bytes since it was last asked.
    fn wait(&mut self, now: SimTime, memory: Bandwidth) -> Duration {
        let moved = self.moved(now);
        // A slow network has moved less than the engine could.
        let bytes = moved.saturating_sub(self.awaited);
        self.awaited = self.awaited.max(moved);
        memory.time_for(Bytes(bytes))
    }
}

impl Node {
    /// How much longer the end of an interrupt takes than it would without the engines.
    pub(super) fn wait_for_memory(&mut self, ctx: &Context<'_>) -> Duration {
        let memory = ctx.profile.bandwidth(ctx.profile.memory_bandwidth);
        self.memory.wait(ctx.now, memory)
    }
}
