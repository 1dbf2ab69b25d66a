//! An endpoint's network: shared memory or UDP, and the way to itself.

use crate::address::of_service;
use crate::device::{Device, Transport};
use crate::endpoint::OpenError;
use crate::log::warn;
use lintel_claim::{Claim, Lease};
use lintel_nal::{Arrival, Loopback, Nal, Origin, Outgoing, Unreachable, Wake};
use lintel_nal_shm::{Costs, ShmNal};
use lintel_nal_udp::{Model, UdpNal};
use lintel_presence::{Bell, Segment, StatsWriter};
use lintel_runtime::register_for_barriers;
use lintel_types::{ALWAYS_COPIED, ProcessId};
use lintel_wire::Words;
use std::sync::Arc;
use std::time::Duration;

/// Name of the group of endpoints over UDP; those of other jobs have another key.
const JOB: &str = "cci";
/// A process that doesn't answer for this long counts as ended. Longer than for Portals: CCI
/// has timeouts and keepalive of its own, and a busy machine may keep a process from its
/// socket for many seconds.
const PEER_TIMEOUT: Duration = Duration::from_secs(30);

/// What endpoints over UDP are listed as.
const UDP_GROUP: &str = "cci-udp";

/// What opening gives.
pub(crate) struct Opened {
    pub(crate) link: Link,
    /// Wakes the endpoint's helper, if a descriptor doesn't.
    pub(crate) bell: Option<Bell>,
    /// Where the endpoint publishes what it holds.
    pub(crate) statistics: Option<StatsWriter>,
}

/// The networks of one endpoint.
pub(crate) struct Link {
    far: Far,
    own: Loopback,
    me: ProcessId,
}

#[allow(clippy::large_enum_variant)] // There is one for each endpoint.
enum Far {
    Shm(ShmNal),
    Udp(UdpNal),
}

/// Where an arrival came from: the lanes of the way to itself are no other's.
const OWN: u32 = u32::MAX;

impl Link {
    /// Joins the device's network under the name that the service is.
    ///
    /// # Errors
    /// [`OpenError`]
    pub(crate) fn open(device: &Device, service: Option<&str>) -> Result<Opened, OpenError> {
        let name = of_service(device, service).map_err(|_| OpenError::Service)?;
        let uid = rustix::process::geteuid().as_raw();
        let (far, me, bell, segment) = match device.transport {
            Transport::Sm => {
                register_for_barriers();
                let segment = Arc::new(register(device, name)?);
                let nal = ShmNal::new(segment.clone(), Costs::of_this_machine(), warn);
                let bell = Bell::new(segment.clone());
                (Far::Shm(nal), segment.process(), Some(bell), Some(segment))
            }
            _ => {
                let nal = open_udp(device, name, uid)?;
                let me = nal.process();
                // What it holds is published there. Nothing else needs it.
                let segment = Segment::create(UDP_GROUP, me.nid, me.pid).map(Arc::new);
                (Far::Udp(nal), me, None, segment.ok())
            }
        };
        let own = Loopback::new(me, uid);
        Ok(Opened {
            link: Link { far, own, me },
            bell,
            statistics: segment.map(StatsWriter::new),
        })
    }

    pub(crate) fn me(&self) -> ProcessId {
        self.me
    }

    fn far(&mut self) -> &mut dyn Nal {
        match &mut self.far {
            Far::Shm(nal) => nal,
            Far::Udp(nal) => nal,
        }
    }

    /// The network that an arrival came on.
    pub(crate) fn of(&mut self, origin: Origin) -> &mut dyn Nal {
        match origin.lane {
            OWN => &mut self.own,
            _ => self.far(),
        }
    }

    #[inline]
    pub(crate) fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        if to == self.me {
            return self.own.send(to, words, body);
        }
        match &mut self.far {
            Far::Shm(nal) => nal.send(to, words, body),
            Far::Udp(nal) => nal.send(to, words, body),
        }
    }

    /// Whether memory of that length is better lent to that process than copied.
    #[inline]
    pub(crate) fn lends(&mut self, to: ProcessId, length: u64) -> bool {
        if to == self.me {
            return true;
        }
        let far = self.far();
        length > far.capabilities().eager || length > ALWAYS_COPIED && far.lends(to, length)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Arrival> {
        if let Some(Arrival::Message(mut origin, words, payload)) = self.own.next() {
            origin.lane = OWN;
            return Some(Arrival::Message(origin, words, payload));
        }
        match &mut self.far {
            Far::Shm(nal) => nal.next(),
            Far::Udp(nal) => nal.next(),
        }
    }

    /// As [`next`](Self::next), of the far network, if its bytes are with it and it is quickly
    /// found.
    #[inline(always)]
    pub(crate) fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        match &mut self.far {
            Far::Shm(nal) => nal.next_inline(),
            Far::Udp(_) => None,
        }
    }

    #[inline]
    pub(crate) fn done(&mut self, origin: Origin) {
        match (&mut self.far, origin.lane) {
            (_, OWN) => self.own.done(origin),
            (Far::Shm(nal), _) => nal.done(origin),
            (Far::Udp(nal), _) => nal.done(origin),
        }
    }

    /// What the network holds, and its counters.
    pub(crate) fn resources(&self) -> lintel_nal::Resources {
        match &self.far {
            Far::Shm(nal) => nal.resources(),
            Far::Udp(nal) => Nal::resources(nal),
        }
    }

    /// Messages exchanged with each peer so far.
    pub(crate) fn traffic(&self) -> Vec<lintel_snapshot::Traffic> {
        match &self.far {
            Far::Shm(nal) => nal.traffic(),
            Far::Udp(nal) => Nal::traffic(nal),
        }
    }

    /// Bytes on their way to a process that it hasn't taken.
    pub(crate) fn backlog(&self, process: ProcessId) -> u64 {
        match &self.far {
            Far::Shm(nal) => nal.backlog(process),
            Far::Udp(nal) => nal.backlog(process),
        }
    }

    /// Bytes that an endpoint has lent to itself and that the next arrival names.
    pub(crate) fn own_lent(&self) -> u64 {
        lintel_memory::length(self.own.lent())
    }

    /// Sends what waits; true while something still does.
    pub(crate) fn flush(&mut self) -> bool {
        self.far().flush()
    }

    pub(crate) fn wake(&mut self) -> &mut dyn Wake {
        match &mut self.far {
            Far::Shm(nal) => nal,
            Far::Udp(nal) => nal,
        }
    }

    /// Ends the use of memory under a revoked lease; true once nobody uses it.
    pub(crate) fn recall(&mut self, lease: &Lease) -> bool {
        let is_own_done = self.own.recall(lease);
        self.far().recall(lease) && is_own_done && lease.outstanding() == 0
    }
}

fn register(device: &Device, name: ProcessId) -> Result<Segment, OpenError> {
    Segment::create(&group(&device.path), name.nid, name.pid).map_err(|error| {
        warn(&format!("no endpoint on {}: {error}", device.name));
        match error {
            lintel_presence::OpenError::InUse | lintel_presence::OpenError::Occupied(..) => {
                OpenError::InUse
            }
            _ => OpenError::System,
        }
    })
}

/// The name of the group whose endpoints reach each other: the path's, FNV-1a.
fn group(path: &str) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in path.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    format!("{JOB}{hash:016x}")
}

fn open_udp(device: &Device, name: ProcessId, uid: u32) -> Result<UdpNal, OpenError> {
    let key = lintel_runtime::key_of(JOB).map_err(|why| {
        warn(&why);
        OpenError::System
    })?;
    let port = u16::try_from(name.pid).ok();
    let config = lintel_nal_udp::Config {
        nid: name.nid,
        port: port.filter(|_| name.pid != ProcessId::PID_ANY),
        key,
        uid,
        model: Model::Rc,
        peer_timeout: PEER_TIMEOUT,
        faults: device.faults,
        log: warn,
        job: JOB,
    };
    UdpNal::open(config).map_err(|error| {
        warn(&format!("no endpoint: {error}"));
        match error {
            lintel_nal_udp::OpenError::PortInUse(..) => OpenError::InUse,
            _ => OpenError::System,
        }
    })
}
