//! Every constant of the machine.
//!
//! Source, where no other is named: the public model `portals4_sm` with `SS_router`
//! (sst-elements, the parent of commit b29149868, 2015), by the names given here.

use lintel_sim_fabric::{Arbitration, LinkParameters, Parameters};
use lintel_sim_kernel::{Bandwidth, Bytes, Duration, SimTime};

const fn ns(ns: u64) -> Duration {
    Duration::from_ns(ns)
}

/// Host work before an operation: the seed's setup time (`addBusyTime`).
pub const SETUP: Duration = ns(200);
/// Host work to combine up to eight operands, a cache line: the seed's miss latency.
pub const COMBINE: Duration = ns(100);
/// Host work to bind a memory descriptor (`PtlMDBind`).
pub const BIND: Duration = ns(100);
/// The shortest time between two things that a host does.
pub const STEP: Duration = ns(1);
/// A command on the bus, 64 bytes: the seed's 62.5 M messages a second
/// (`delay_bus_xfer`).
pub const BUS: Duration = ns(16);
/// From a command's write being complete to the bus (`nic_timing_link`).
pub const BUS_WAKE: Duration = ns(1);
/// A read of host memory, at the host (`latency_dma_mem_access`).
pub const MEMORY: Duration = ns(1);
/// A request for such a read, in the interface, and the next one after it
/// (`dma_link`).
pub const READ: Duration = ns(1);
/// From one read to the next, on top of [`READ`].
pub const NEXT_READ: Duration = ns(8);
/// From the queue of commands to the Portals unit (`ptl_latency`).
pub const COMMAND: Duration = ns(20);
/// What an atomic operation takes longer than a put (`additional_atomic_latency`).
pub const ATOMIC: Duration = ns(10);
/// From one released operation to the next (`PTL_NIC_PROCESS_TRIG`).
pub const RELEASE: Duration = ns(1);
/// From a counter's change to the host's link (`latency_ct_host_update`).
pub const NOTIFY: Duration = ns(25);
/// The interface's clock: 500 MHz.
pub const CLOCK: Duration = ns(2);
/// A packet: 32 bytes of header, 32 of data.
pub const PACKET: Bytes = Bytes(64);

/// From a packet's way into a router to where it waits for its link: 5 cycles
/// (`iQLat` 2, `routingLat` 3).
const INTO_ROUTER: Duration = ns(10);
/// From there to the wire: 20 cycles (`oLCBLat` 7, `iLCBLat` 13).
const OUT_OF_ROUTER: Duration = ns(40);
/// Through one router, from head to head.
pub const ROUTER: Duration = ns(50);
/// Through one router and to the next (`rtr_link_lat` 10 ns): the seed's router
/// latency of 50 ns, and the wire.
pub const HOP: Duration = ns(60);

/// One of the model's three sets: `timing_set` 1, 2 and 3, the seed's message
/// latencies of 500, 1000 and 1500 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Between host and interface, and between interface and router, each way
    /// (`nic_link_lat`).
    pub link: Duration,
    /// Host work to write a command (`delay_host_pio_write`).
    pub write: Duration,
    /// And to push it out, once for commands that are written together
    /// (`delay_sfence`).
    pub fence: Duration,
    /// What the write takes longer on its way (`added_pio_latency`).
    pub write_latency: Duration,
    /// Host work to receive a message (`recv_overhead`).
    pub receive: Duration,
    /// A message's way out of the interface, or its data's to the host
    /// (`ptl_msg_latency`).
    pub message: Duration,
    /// A packet's way to the Portals unit (`ptl_unit_latency`).
    pub unit: Duration,
    /// From a message to its counter (`latency_ct_post`).
    pub count: Duration,
}

impl Timing {
    /// 8 bytes from host to host in about 500 ns; 75 ns of host work a command.
    pub const SET_1: Timing = Timing {
        link: ns(100),
        write: ns(25),
        fence: ns(50),
        write_latency: ns(0),
        receive: ns(100),
        message: ns(25),
        unit: ns(50),
        count: ns(25),
    };

    /// About 1000 ns; 100 ns a command.
    pub const SET_2: Timing = Timing {
        link: ns(200),
        write: ns(50),
        fence: ns(50),
        write_latency: ns(0),
        receive: ns(175),
        message: ns(75),
        unit: ns(150),
        count: ns(75),
    };

    /// About 1500 ns; 200 ns a command.
    pub const SET_3: Timing = Timing {
        link: ns(250),
        write: ns(100),
        fence: ns(100),
        write_latency: ns(100),
        receive: ns(300),
        message: ns(100),
        unit: ns(200),
        count: ns(100),
    };

    /// The model's set of this number, 1 to 3.
    pub const fn set(number: u8) -> Option<Timing> {
        match number {
            1 => Some(Self::SET_1),
            2 => Some(Self::SET_2),
            3 => Some(Self::SET_3),
            _ => None,
        }
    }

    /// Host work for a command that is written alone.
    pub fn command(&self) -> Duration {
        self.write + self.fence
    }

    /// The routers: 8 flits of 8 bytes a packet at 500 MHz.
    ///
    /// The fabric has one size of buffers: the model's 64 packets where a node's come
    /// in. Between routers the model has 12, more than a link's way there and back
    /// holds. On the last link the fabric counts a packet's 16 ns, the model doesn't.
    pub fn network(&self) -> Parameters {
        let bandwidth = Bandwidth::from_bytes_per_second(4_000_000_000).expect("not zero");
        let link = |latency| LinkParameters { bandwidth, latency };
        Parameters {
            packet: PACKET,
            buffer: 64,
            credit: ns(10),
            arbitration: Arbitration::RoundRobin,
            classes: 1,
            inject: link(self.link + INTO_ROUTER),
            near: link(HOP),
            far: link(HOP),
            eject: link(OUT_OF_ROUTER + self.link - bandwidth.time_for(PACKET)),
        }
    }
}

/// All but clocks acts at whole nanoseconds and this, so that at any nanosecond a
/// clock's edge comes first, as in the model.
const AFTER_THE_EDGE: Duration = Duration::from_ps(1);

/// A whole number of nanoseconds after the present one, after an edge there.
pub(crate) fn later(now: SimTime, wait: Duration) -> SimTime {
    let ns = now.as_ps() / 1_000;
    SimTime::START + Duration::from_ns(ns) + wait + AFTER_THE_EDGE
}

/// The first edge of an interface's clock after now.
pub(crate) fn next_edge(now: SimTime) -> SimTime {
    let edges = now.as_ps() / CLOCK.as_ps();
    SimTime::START + CLOCK * (edges + 1)
}

/// The first edge at or after a nanosecond.
pub(crate) fn edge_from(when: SimTime) -> SimTime {
    let ns = when.as_ps() / 1_000;
    SimTime::START + CLOCK * ns.div_ceil(2)
}

/// The first whole nanosecond at or after `when`, after an edge there.
pub(crate) fn rounded_up(when: SimTime) -> SimTime {
    let ns = (when.as_ps() - AFTER_THE_EDGE.as_ps()).div_ceil(1_000);
    SimTime::START + Duration::from_ns(ns) + AFTER_THE_EDGE
}
