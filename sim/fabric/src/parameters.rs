//! The constants of a network. Their values come from profiles.

use std::fmt;

use lintel_sim_kernel::{Bandwidth, Bytes, Duration};

use crate::topology::Reach;

/// One kind of link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkParameters {
    /// Bytes per second, headers included.
    pub bandwidth: Bandwidth,
    /// From a packet's head leaving one end to its head being able to leave the
    /// next router: wire, routing, crossing. On the last link: to its head being
    /// in the node.
    pub latency: Duration,
}

/// The packet that a link serves first when several wait for it.
///
/// It matters beyond saturation. Where nodes offer more than their links carry,
/// turns let each packet that enters have as much as all that come through, and
/// the buffers behind fill up: a tornado on a ring of eight falls to half of what
/// it could be. Age keeps it at all of it (Abts and Weisser, "Age-based packet
/// arbitration in large-radix k-ary n-cubes", SC 2007, on the Cray XT's router,
/// which can do either).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arbitration {
    /// Lanes in turn, and within a lane the packet that has waited longest there.
    RoundRobin,
    /// The packet that left its node first.
    Oldest,
}

/// The constants of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// The longest packet; a message is cut into packets of this size.
    pub packet: Bytes,
    /// Packets for which a router has room, per lane and link that enters it.
    pub buffer: u32,
    /// From a packet's tail leaving a router to the sender before knowing that
    /// its room is free.
    pub credit: Duration,
    /// The packet that a link serves first when several wait for it.
    pub arbitration: Arbitration,
    /// Classes of messages that have lanes of their own: as many as the topology
    /// needs. By packet, a link has 16 lanes at most.
    pub classes: u8,
    /// From a node to its router.
    pub inject: LinkParameters,
    /// Between routers that lie near each other.
    pub near: LinkParameters,
    /// Between groups of a dragonfly.
    pub far: LinkParameters,
    /// From a router to its node.
    pub eject: LinkParameters,
}

/// What is wrong with a topology or with parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError(pub(crate) String);

/// Links by what they join: each kind has parameters of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Inject,
    Near,
    Far,
    Eject,
}

/// How long packets take on one kind of link.
#[derive(Clone, Copy)]
pub(crate) struct Stage {
    whole: Duration,
    bandwidth: Bandwidth,
    pub(crate) latency: Duration,
}

/// How long packets take.
#[derive(Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) packet: u64,
    stages: [Stage; 4],
}

impl Parameters {
    /// Finds what no network can have.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let wrong = |what: &str| Err(ConfigError(what.to_string()));
        match self {
            p if p.packet == Bytes(0) => wrong("packet is 0 bytes, it takes 1 or more"),
            p if p.packet.0 > u64::from(u32::MAX) => wrong("packet is above 4 GiB"),
            p if p.buffer == 0 => wrong("buffer is 0 packets, it takes 1 or more"),
            p if p.buffer > 4096 => wrong("buffer is above 4096 packets"),
            p if p.classes == 0 => wrong("classes is 0, it takes 1 or more"),
            _ => Ok(()),
        }
    }
}

impl Timing {
    pub(crate) fn new(parameters: &Parameters) -> Self {
        let stage = |link: &LinkParameters| Stage {
            whole: link.bandwidth.time_for(parameters.packet),
            bandwidth: link.bandwidth,
            latency: link.latency,
        };
        let Parameters {
            inject,
            near,
            far,
            eject,
            ..
        } = parameters;
        Timing {
            packet: parameters.packet.0,
            stages: [stage(inject), stage(near), stage(far), stage(eject)],
        }
    }

    #[inline]
    pub(crate) fn stage(&self, kind: Kind) -> &Stage {
        &self.stages[kind as usize]
    }

    /// How long a packet of so many bytes occupies a link.
    #[inline]
    pub(crate) fn occupies(&self, kind: Kind, bytes: u64) -> Duration {
        let stage = self.stage(kind);
        if bytes == self.packet {
            return stage.whole;
        }
        stage.bandwidth.time_for(Bytes(bytes))
    }

    /// From a packet's head leaving one link to its head being able to leave on
    /// the next. Where the next one is faster, the packet waits until it won't
    /// run dry there.
    #[inline]
    pub(crate) fn head_delay(&self, kind: Kind, next: Kind, bytes: u64) -> Duration {
        let latency = self.stage(kind).latency;
        if kind == next {
            return latency;
        }
        let here = self.occupies(kind, bytes);
        latency + here.saturating_sub(self.occupies(next, bytes))
    }
}

impl From<Reach> for Kind {
    fn from(reach: Reach) -> Kind {
        match reach {
            Reach::Near => Kind::Near,
            Reach::Far => Kind::Far,
        }
    }
}

impl From<Option<Reach>> for Kind {
    /// A link that leads to no router leads to the node.
    #[inline]
    fn from(reach: Option<Reach>) -> Kind {
        reach.map_or(Kind::Eject, Kind::from)
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
