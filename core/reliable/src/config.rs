//! What an endpoint must know, and what it reports of itself.

use core::time::Duration;
use lintel_session::Incarnation;
use lintel_types::ProcessId;

/// Which processes share a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Model {
    /// Each remote process has its own ("reliable connection").
    Rc,
    /// The processes of a remote node share one ("extended reliable connection").
    Xrc,
    /// As `Xrc`, and the processes here share what they know of the path.
    Node,
}

/// What an endpoint must know.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The name of this process.
    pub me: ProcessId,
    /// Its user, which is sent to peers.
    pub uid: u32,
    /// Never that of an earlier process of that name: a sender that has recorded what that one
    /// was sent could replay it to this one. It should be larger than those of all earlier
    /// ones, too: a peer that has known a larger one says so, and this one goes on behind
    /// it, but what a larger one has sent to a peer that never heard of it is taken for
    /// newer, if it was held back on its way. The low 20 bits should be random.
    pub incarnation: Incarnation,
    /// Which processes share a context.
    pub model: Model,
    /// Bytes of the longest datagram, header included.
    pub max_datagram: u32,
    /// Bytes that this process can buffer.
    pub recv_window: u32,
    /// A peer from which something is awaited is given up after so much silence.
    pub peer_timeout: Duration,
}

/// Names a pair; it stays the same as long as the endpoint lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct PairId(pub(crate) u32);

impl PairId {
    /// Its number: pairs are numbered from 0 in the order in which they are made.
    pub fn index(self) -> u32 {
        self.0
    }
}

/// Nothing more comes from a peer, and nothing that was sent is acknowledged any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostPeer {
    /// The pair, which another process of that name may use from now on.
    pub pair: PairId,
    /// The process that is lost.
    pub process: ProcessId,
    /// Whether something was sent to it.
    pub was_addressed: bool,
}

/// Packets and peers so far. A packet that arrived is counted once under what is wrong with
/// it, or not at all.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Packets for another process.
    pub misdirected: u64,
    /// Packets from or to an incarnation that has ended.
    pub stale: u64,
    /// Packets that contradict others of their sender.
    pub contradictory: u64,
    /// Packets that had arrived before.
    pub duplicates: u64,
    /// Packets that this process has retransmitted.
    pub retransmitted: u64,
    /// Packets too far ahead of a missing one to be kept.
    pub beyond: u64,
    /// Peers that were given up, closed or started again.
    pub lost_peers: u64,
}

/// What an endpoint holds.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Resources {
    /// Contexts that are open.
    pub contexts: usize,
    /// Pairs: processes that were sent to or have named this one.
    pub pairs: usize,
    /// Bytes of memory of both, about.
    pub bytes: usize,
}
