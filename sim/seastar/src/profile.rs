//! Every constant of the model: value, unit, source.
//!
//! Three machines were measured, so there are three profiles. Sources:
//!
//! | key | document |
//! |---|---|
//! | S0 | S. Kelly, *Accelerated Portals: integration into XT3 code base*, slides, 2006 |
//! | S1 | R. Brightwell, T. Hudson, K. Pedretti, R. Riesen, K. Underwood, *Portals 3.3 on the Sandia/Cray Red Storm system* |
//! | S2 | R. Brightwell, *Portals as a case study for co-design*, slides |
//! | S4 | D. Dillow, S. Atchley, *SeaStar unchained* |
//! | LW | T. Hudson, R. Brightwell, *Network performance impact of a lightweight Linux for Cray XT3 compute nodes*, 2006, abstract: latency more than 20 % worse |
//! | UP | R. Brightwell, K. Underwood, C. Vaughan, *Performance impact of the Red Storm upgrade*, 2006: from single-core to dual-core processors, from SeaStar 1.2 to 2.1 |
//! | IP | public IP drivers for SeaStar (Kitten, Linux): layout of its memory, mailboxes |
//!
//! A constant is fitted if it was chosen so that one published point comes out, whatever
//! else speaks for its value. Four are: what an interrupt costs Catamount, by put of 0
//! bytes, and Linux, by what an acknowledgement adds; CCI's call, by its latency of 0
//! bytes, and one step of its firmware, by its message rate. What no document states is
//! assumed; the reason stands beside it. `tests/fits.rs` counts fits without looking at
//! these words: by the points that come out exactly and move with a constant that nobody
//! has published.
//!
//! Put of 0 bytes settles what an interrupt costs, of which S1 gives a lower bound only.
//! Where in the interrupt that cost lies is assumed: at its end. S1's get takes 1.2 us more
//! than its put, so that little of an interrupt can lie before its handler; but then a
//! transfer of less than an interrupt's end goes on behind the first of two interrupts. What
//! shows of it up to 3 KB is what the kernel waits for memory that the engines use: 0.2 ns a
//! byte on Red Storm, against 0.9 ns beyond. S1's half bandwidth asks for more, its get and
//! its bidirectional put for less.
//!
//! Assumptions that were settled with first results in view, so that the predictions that
//! they bear on are the weaker for it: what a call costs, as much as a call that goes to the
//! NIC itself; `interrupt_entry` and Red Storm's `interrupt_events`, which decide on get,
//! bidirectional puts and sizes of half bandwidth; `router_buffer` and `rx_fifo`, which
//! decide on CCI's messages of 4 KB; that the XT5's handler drains its ring, and that
//! SeaStar 1.2 is slower on its receiving side, both of which have sources, but were
//! followed after others had missed more; that an interrupt's end waits for memory, which was
//! followed because latency was flat; `memory_bandwidth` itself is a peak and no choice; that the
//! sender of a stream finds an event up to a look later, which was followed because a rate rose
//! with the size.

use std::fmt;

use lintel_sim_fabric::{Arbitration, LinkParameters, Parameters};
use lintel_sim_kernel::{Bandwidth, Bytes, Duration};

/// What a constant counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// A duration in nanoseconds.
    Nanoseconds,
    /// Cycles of the PowerPC.
    Cycles,
    /// A clock rate, in cycles per second.
    Hertz,
    /// A length in bytes.
    Bytes,
    /// A bandwidth, in bytes per second.
    BytesPerSecond,
    /// A number of entries, structures or messages.
    Count,
    /// So many in a thousand million.
    PerBillion,
}

/// How a value was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// A document states it.
    Published,
    /// It makes one published result come out.
    Fitted,
    /// No document states it: an estimate.
    Assumed,
}

/// One constant of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Constant {
    /// The value, in `unit`.
    pub value: u64,
    /// The unit of `value`.
    pub unit: Unit,
    /// How it was found.
    pub origin: Origin,
    /// Where it stands, or why it was assumed.
    pub source: &'static str,
}

/// A profile has no such constant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownConstant(String);

impl fmt::Display for UnknownConstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known: Vec<&str> = RED_STORM_2005.constants().iter().map(|c| c.0).collect();
        let known = known.join(", ");
        write!(f, "no constant is called {}; there are {known}", self.0)
    }
}

impl std::error::Error for UnknownConstant {}

macro_rules! profile {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// A machine: all constants of its model.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct Profile {
            /// What it is called.
            pub name: &'static str,
            $($(#[$doc])* pub $name: Constant,)*
        }

        impl Profile {
            /// All constants with their names.
            pub fn constants(&self) -> Vec<(&'static str, Constant)> {
                vec![$((stringify!($name), self.$name)),*]
            }

            /// This machine with another value of one constant.
            ///
            /// # Errors
            /// No constant has that name.
            pub fn with(mut self, name: &str, value: u64) -> Result<Self, UnknownConstant> {
                match name {
                    $(stringify!($name) => self.$name.value = value,)*
                    _ => return Err(UnknownConstant(name.to_string())),
                }
                Ok(self)
            }
        }
    };
}

profile! {
    /// Bytes of a packet on the links.
    packet,
    /// What a node's memory gives to host and engines together.
    memory_bandwidth,
    /// What the TX engine reads from host memory.
    tx_bandwidth,
    /// What the RX engine writes to host memory.
    rx_bandwidth,
    /// Payload of a link, one direction.
    link_bandwidth,
    /// From router to router.
    hop,
    /// Between a node's engines and its router.
    port,
    /// Packets that a router holds per lane.
    router_buffer,
    /// Packets that the RX FIFO holds, in front of the RX engine; 0: none.
    rx_fifo,
    /// From a packet's leaving a router to its sender's knowing it.
    credit,
    /// Packets of a billion that a link sends twice.
    link_errors,
    /// What a link's retransmission of a packet costs.
    link_retry,
    /// A posted write over HyperTransport, either way.
    ht_write,
    /// A read of host memory by the TX engine.
    ht_read,
    /// The clock rate of the NIC's PowerPC.
    ppc_clock,
    /// Memory of the NIC.
    sram,
    /// The firmware's program and stack, in its memory.
    program_bytes,
    /// NIC memory of a process's mailbox.
    mailbox,
    /// The NIC's control block there.
    control_block,
    /// Sources for which it has structures.
    sources,
    /// NIC memory of the structure of a source.
    source_bytes,
    /// Messages for which it has structures.
    pendings,
    /// A message's structure, of which the larger part is the host's.
    pending_bytes,
    /// An accelerated client's match entry and descriptor.
    entry_bytes,
    /// Commands that the TX engine's queue holds.
    tx_queue,
    /// Bytes of the PIO buffer.
    pio_bytes,
    /// Commands that the PIO path holds.
    pio_queue,
    /// Sources that the CAM holds.
    cam_entries,
    /// RX commands per source.
    rx_queue,
    /// Bytes that an RX command covers at most.
    rx_command_bytes,
    /// Bytes of a page if memory isn't contiguous; 0 if it is.
    page,
    /// Entering and leaving the kernel.
    trap,
    /// From a device's interrupt to its handler's first step.
    interrupt_entry,
    /// From the handler's last step to the process going on.
    interrupt_exit,
    /// Events of the NIC that an interrupt serves at most.
    interrupt_events,
    /// A put or get in the host's library, without trap and matching.
    library_call,
    /// The same if the process gives the command to the NIC itself.
    direct_call,
    /// Looking into an event queue and finding an event.
    event_get,
    /// A message at the host, whenever it makes one or the NIC reports one: its
    /// structure and header; matching and events apart.
    host_message,
    /// A match entry looked at by the host.
    host_entry,
    /// An event or count written by the host.
    host_event,
    /// Finding the frame of a page, and passing it to the NIC.
    page_map,
    /// Copying by the host.
    copy_bandwidth,
    /// Entries of a portal table.
    portals,
    /// Match entries in generic mode.
    generic_entries,
    /// Match entries in accelerated mode.
    accelerated_entries,
    /// Payload that travels in the header's packet.
    inline_bytes,
    /// One turn of the firmware's loop before work is found.
    fw_turn,
    /// Taking a transmit command and feeding the TX engine.
    fw_transmit,
    /// Making a DMA program on the NIC, if the host doesn't.
    fw_program,
    /// Noticing that a message has left, and saying so.
    fw_sent,
    /// A new message: reading its header, looking up its source.
    fw_header,
    /// Feeding a deposit to the RX engine.
    fw_deposit,
    /// Noticing that a deposit is whole, and saying so.
    fw_landed,
    /// Freeing a tracking structure.
    fw_release,
    /// Sending or taking an acknowledgement of the firmware's own.
    fw_control,
    /// One more command fed to a queue that was full.
    fw_feed,
    /// A message matched on the NIC, its entries apart.
    nic_message,
    /// A match entry looked at by the NIC.
    nic_entry,
    /// An event made by the NIC.
    nic_event,
    /// Swapping an entry of the CAM out and another one in.
    cam_swap,
    /// How long a sender waits after a refusal.
    backoff,
    /// The longest CCI message.
    cci_mss,
    /// Length of CCI's header.
    cci_header,
    /// Bytes of a CCI buffer area.
    cci_area,
    /// Messages in an area begin at multiples of this.
    cci_slot,
    /// An area's place in the ring on the NIC.
    cci_ring_bytes,
    /// Areas to send from, per endpoint.
    cci_tx_areas,
    /// Areas to receive into, per endpoint.
    cci_rx_areas,
    /// CCI completions that may be on their way to an endpoint.
    cci_completions,
    /// Completions and areas that an endpoint has again before it says so by a command of
    /// its own.
    cci_returns,
    /// `cci_send` without its copy.
    cci_send,
    /// `cci_get_event` that finds one, and giving it back.
    cci_get_event,
    /// What the library does for a message of a reliable connection, at either end.
    cci_reliable,
    /// CCI's firmware: a send command.
    cci_fw_transmit,
    /// CCI's firmware: a command that returns completions and areas.
    cci_fw_return,
    /// CCI's firmware: a message has left.
    cci_fw_sent,
    /// CCI's firmware: a new message.
    cci_fw_header,
    /// CCI's firmware: a message is in host memory.
    cci_fw_landed,
    /// CCI's firmware: an entry of a completion queue.
    cci_fw_event,
    /// CCI's firmware: an acknowledgement, sent or taken.
    cci_fw_ack,
}

const fn published(value: u64, unit: Unit, source: &'static str) -> Constant {
    let origin = Origin::Published;
    Constant {
        value,
        unit,
        origin,
        source,
    }
}

const fn fitted(value: u64, unit: Unit, source: &'static str) -> Constant {
    let origin = Origin::Fitted;
    Constant {
        value,
        unit,
        origin,
        source,
    }
}

const fn assumed(value: u64, unit: Unit, source: &'static str) -> Constant {
    let origin = Origin::Assumed;
    Constant {
        value,
        unit,
        origin,
        source,
    }
}

use Unit::{Bytes as B, BytesPerSecond, Count, Cycles, Hertz, Nanoseconds, PerBillion};

/// Red Storm in 2005: Catamount, Portals 3.3 (S1), and what S0 adds in 2006.
pub const RED_STORM_2005: Profile = Profile {
    name: "redstorm-2005",
    packet: published(64, B, "S1 2"),
    memory_bandwidth: assumed(
        5_300_000_000,
        BytesPerSecond,
        "two channels of DDR-333, their peak; no document here states it",
    ),
    tx_bandwidth: published(
        2_800_000_000,
        BytesPerSecond,
        "S1 2: HyperTransport's peak payload",
    ),
    rx_bandwidth: published(
        1_100_000_000,
        BytesPerSecond,
        "UP: sustained, SeaStar 1.2; that it limits the way into a node: S1 6",
    ),
    link_bandwidth: published(2_500_000_000, BytesPerSecond, "S1 2"),
    hop: assumed(50, Nanoseconds, "S2's router, of the same years"),
    port: assumed(50, Nanoseconds, "as a hop"),
    router_buffer: assumed(
        8,
        Count,
        "covers a hop's round trip, 120 ns at the link's rate",
    ),
    rx_fifo: assumed(
        16,
        Count,
        "S4 II has the FIFO and no depth: 1 KB; up to 4 KB the rows are the same",
    ),
    credit: assumed(10, Nanoseconds, "a wire's length"),
    link_errors: assumed(
        0,
        PerBillion,
        "no rate is published; retries are there to be switched on",
    ),
    link_retry: assumed(200, Nanoseconds, "two hops and the packet"),
    ht_write: assumed(
        80,
        Nanoseconds,
        "some 60 ns across HyperTransport, and the pads",
    ),
    ht_read: assumed(
        200,
        Nanoseconds,
        "there and back, and the memory of an Opteron",
    ),
    ppc_clock: published(500_000_000, Hertz, "S1 2"),
    sram: published(384 << 10, B, "S1 2"),
    program_bytes: assumed(96 << 10, B, "three times the instruction cache"),
    mailbox: published(4 << 10, B, "IP: a page, mapped into a client"),
    control_block: published(8 << 10, B, "IP: from its address to the end of memory"),
    sources: assumed(1_024, Count, "four times the CAM"),
    source_bytes: assumed(32, B, "as a pending message"),
    pendings: assumed(2_048, Count, "as many as match entries"),
    pending_bytes: published(32, B, "IP: the lower part"),
    entry_bytes: assumed(64, B, "S1 3.1's fields of both, packed"),
    tx_queue: published(31, Count, "S4 II"),
    pio_bytes: published(256, B, "S4 II"),
    pio_queue: published(4, Count, "S4 II"),
    cam_entries: published(256, Count, "S4 II"),
    rx_queue: published(7, Count, "S4 II"),
    rx_command_bytes: published(256 << 10, B, "S4 II"),
    page: published(0, B, "S1 4.1: Catamount's memory is contiguous"),
    trap: published(75, Nanoseconds, "S1 4.1"),
    interrupt_entry: assumed(
        155,
        Nanoseconds,
        "enters as a trap does, once it has crossed HyperTransport: trap and ht_write",
    ),
    interrupt_exit: fitted(
        2_502,
        Nanoseconds,
        "S1 6: put of 0 bytes, 4.89 us; with the entry no less than S1 4.1's 2 us",
    ),
    interrupt_events: assumed(
        1,
        Count,
        "each raises its own (S1 6, S4 III-B), though one before may find its event (IP)",
    ),
    library_call: assumed(
        250,
        Nanoseconds,
        "as the direct call: arguments checked, a command of 64 bytes",
    ),
    direct_call: assumed(
        250,
        Nanoseconds,
        "500 cycles of a 2 GHz Opteron: a command of 64 bytes",
    ),
    event_get: assumed(
        100,
        Nanoseconds,
        "200 cycles, and a line that another has written",
    ),
    host_message: assumed(100, Nanoseconds, "200 cycles of a 2 GHz Opteron"),
    host_entry: assumed(40, Nanoseconds, "a cache miss every other entry"),
    host_event: assumed(50, Nanoseconds, "100 cycles"),
    page_map: assumed(0, Nanoseconds, "nothing to find on Catamount"),
    copy_bandwidth: assumed(
        2_000_000_000,
        BytesPerSecond,
        "memory of a 2 GHz Opteron, read and written",
    ),
    portals: published(64, Count, "S1 3.1"),
    generic_entries: published(2_048, Count, "S0"),
    accelerated_entries: published(1_024, Count, "S0"),
    inline_bytes: published(12, B, "S1 6"),
    fw_turn: assumed(25, Cycles, "half a turn of a loop that looks at two queues"),
    fw_transmit: assumed(
        150,
        Cycles,
        "a command of 16 words, read and turned into DMA commands",
    ),
    fw_program: assumed(
        100,
        Cycles,
        "checks and addresses, done by the host in generic mode",
    ),
    fw_sent: assumed(100, Cycles, "a status word, a list, an event of one word"),
    fw_header: assumed(
        200,
        Cycles,
        "16 words out of the FIFO, the source's structure, 16 words to the host",
    ),
    fw_deposit: assumed(100, Cycles, "two or three RX commands"),
    fw_landed: assumed(100, Cycles, "as for a message that has left"),
    fw_release: assumed(50, Cycles, "a list"),
    fw_control: assumed(100, Cycles, "one packet by PIO"),
    fw_feed: assumed(50, Cycles, "one command"),
    nic_message: assumed(100, Cycles, "the host's instructions at half the width"),
    nic_entry: assumed(
        60,
        Cycles,
        "six words from memory beyond the cache, and compares",
    ),
    nic_event: assumed(100, Cycles, "32 words by PIO over HyperTransport, posted"),
    cam_swap: assumed(400, Cycles, "S4 IV-B: 128 bytes out, 128 bytes in"),
    backoff: assumed(
        20_000,
        Nanoseconds,
        "a few messages' time; the protocol's own isn't published",
    ),
    cci_mss: published(4 << 10, B, "S4 IV-B"),
    cci_header: published(24, B, "S4 IV-C: 40 bytes of payload in 64"),
    cci_area: published(16 << 10, B, "S4 IV-B"),
    cci_slot: published(64, B, "S4 IV-C: 8192 messages of 40 bytes in 512 KB"),
    cci_ring_bytes: assumed(2, B, "an index of 8192"),
    cci_tx_areas: published(32, Count, "S4 IV-B"),
    cci_rx_areas: published(8_192, Count, "S4 IV-B"),
    cci_completions: assumed(
        16_384,
        Count,
        "as many as messages of 40 bytes that can wait, twice",
    ),
    cci_returns: assumed(
        16,
        Count,
        "S4 IV-B2: several; otherwise they go with transmit requests",
    ),
    cci_send: assumed(
        200,
        Nanoseconds,
        "CCI was not run on this machine: a short call",
    ),
    cci_get_event: assumed(
        150,
        Nanoseconds,
        "a look at a queue in memory; CCI was not run on this machine",
    ),
    cci_reliable: assumed(50, Nanoseconds, "a list of what is open, a sequence number"),
    cci_fw_transmit: assumed(
        200,
        Cycles,
        "a command and a table; CCI was not run on this machine",
    ),
    cci_fw_return: assumed(50, Cycles, "two counters, as a release"),
    cci_fw_sent: assumed(
        100,
        Cycles,
        "a status word and a list; CCI was not run on this machine",
    ),
    cci_fw_header: assumed(
        200,
        Cycles,
        "as a Portals header; CCI was not run on this machine",
    ),
    cci_fw_landed: assumed(
        100,
        Cycles,
        "as a Portals message; CCI was not run on this machine",
    ),
    cci_fw_event: assumed(
        50,
        Cycles,
        "two words, posted; CCI was not run on this machine",
    ),
    cci_fw_ack: assumed(
        150,
        Cycles,
        "one packet by PIO and a list; CCI was not run on this machine",
    ),
};

/// Red Storm after its upgrade of 2006: dual-core Opterons of 2.4 GHz, SeaStar 2.1 (UP), on
/// which S0's measurements of two processes a node were made. The host's costs are those of
/// 2005: nobody published others.
pub const RED_STORM_2006: Profile = Profile {
    name: "redstorm-2006",
    tx_bandwidth: published(2_000_000_000, BytesPerSecond, "UP: sustained, SeaStar 2.1"),
    rx_bandwidth: published(
        2_800_000_000,
        BytesPerSecond,
        "S1 2: HyperTransport's peak payload",
    ),
    link_bandwidth: published(3_000_000_000, BytesPerSecond, "S4 II, SeaStar 2"),
    ..RED_STORM_2005
};

/// OLCF's "chester", a Cray XT5 with Linux, before 2012 (S4).
pub const XT5_2009: Profile = Profile {
    name: "xt5-2009",
    memory_bandwidth: assumed(
        12_800_000_000,
        BytesPerSecond,
        "S4 V: DDR2 800; its peak on two channels",
    ),
    tx_bandwidth: published(
        2_000_000_000,
        BytesPerSecond,
        "UP: sustained, SeaStar 2.1; S4 II: over 2 GB/s effective",
    ),
    rx_bandwidth: published(
        2_800_000_000,
        BytesPerSecond,
        "S1 2: HyperTransport's peak payload",
    ),
    link_bandwidth: published(3_000_000_000, BytesPerSecond, "S4 II"),
    page: published(4 << 10, B, "S1 4.1: Linux gives the NIC each page"),
    trap: assumed(
        150,
        Nanoseconds,
        "a system call of Linux on a 2.6 GHz Opteron",
    ),
    interrupt_entry: assumed(230, Nanoseconds, "as on Red Storm, with Linux's trap"),
    interrupt_exit: fitted(3_970, Nanoseconds, "S4 V-A: an acknowledgement adds 4.4 us"),
    interrupt_events: published(
        1_024,
        Count,
        "IP: the handler drains the event ring, which has 1024 places",
    ),
    library_call: assumed(250, Nanoseconds, "as on Red Storm"),
    event_get: assumed(
        300,
        Nanoseconds,
        "S4 III-B: a look enters the kernel, twice a trap",
    ),
    page_map: assumed(
        60,
        Nanoseconds,
        "a walk of page tables, and a command's part",
    ),
    copy_bandwidth: assumed(5_000_000_000, BytesPerSecond, "DDR2-800, from a warm cache"),
    inline_bytes: assumed(16, B, "S4 V-A: 16 bytes still fit, 32 don't"),
    cci_send: fitted(556, Nanoseconds, "S4 VI: 0 bytes UU, 2.83 us"),
    cci_get_event: assumed(
        150,
        Nanoseconds,
        "checks of nonce and connection, an event from the pool",
    ),
    cci_fw_transmit: assumed(275, Cycles, "credits, a table's look-up, three TX commands"),
    cci_fw_sent: fitted(105, Cycles, "S4 V-B: a message each 960 ns"),
    cci_fw_header: assumed(
        250,
        Cycles,
        "one word of the FIFO, credits and room, two RX commands",
    ),
    cci_fw_landed: assumed(100, Cycles, "a status word, a list, structures free again"),
    cci_fw_event: assumed(50, Cycles, "two words by PIO over HyperTransport, posted"),
    cci_fw_ack: assumed(200, Cycles, "a packet by PIO, or out of the FIFO"),
    ..RED_STORM_2005
};

/// The profiles that there are.
pub const PROFILES: [&Profile; 3] = [&RED_STORM_2005, &RED_STORM_2006, &XT5_2009];

impl Profile {
    /// A constant that is a time, or a number of the PowerPC's cycles.
    ///
    /// # Panics
    /// If it is something else.
    pub fn time(&self, constant: Constant) -> Duration {
        match constant.unit {
            Nanoseconds => Duration::from_ns(constant.value),
            Cycles => {
                let second = 1_000_000_000_000;
                Duration::from_ps(constant.value * second / self.ppc_clock.value)
            }
            other => panic!("{other:?} are no time"),
        }
    }

    /// A constant that is a bandwidth. None is zero: 1 byte a second stands for it.
    pub fn bandwidth(&self, constant: Constant) -> Bandwidth {
        let rate = constant.value.max(1);
        Bandwidth::from_bytes_per_second(rate).expect("at least one byte a second")
    }

    /// How long the host copies so many bytes.
    pub fn copy(&self, bytes: u64) -> Duration {
        self.bandwidth(self.copy_bandwidth).time_for(Bytes(bytes))
    }

    /// Pages in so many bytes; none if memory is contiguous.
    pub fn pages(&self, bytes: u64) -> u64 {
        match self.page.value {
            0 => 0,
            page => bytes.div_ceil(page),
        }
    }

    /// Packets for which a node has room in front of its RX engine.
    pub fn rx_fifo(&self) -> u32 {
        u32::try_from(self.rx_fifo.value).unwrap_or(u32::MAX)
    }

    /// The network between nodes. Its first and last links are the engines: data
    /// enters as fast as the TX engine reads it and leaves as fast as the RX engine
    /// writes it. Class 0 carries messages, class 1 control messages of firmwares.
    pub fn network(&self) -> Parameters {
        let link = |bandwidth, latency| LinkParameters {
            bandwidth: self.bandwidth(bandwidth),
            latency: self.time(latency),
        };
        let near = link(self.link_bandwidth, self.hop);
        Parameters {
            packet: Bytes(self.packet.value),
            buffer: u32::try_from(self.router_buffer.value).unwrap_or(u32::MAX),
            credit: self.time(self.credit),
            arbitration: Arbitration::RoundRobin,
            classes: 2,
            inject: link(self.tx_bandwidth, self.port),
            near,
            far: near,
            eject: link(self.rx_bandwidth, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_constant_says_where_it_comes_from() {
        for profile in PROFILES {
            for (name, constant) in profile.constants() {
                assert!(!constant.source.is_empty(), "{name} of {}", profile.name);
            }
        }
    }

    #[test]
    fn a_constant_is_changed_by_its_name_and_an_unknown_one_is_reported() {
        let quick = RED_STORM_2005
            .with("interrupt_entry", 1)
            .expect("there is one");
        assert_eq!(quick.interrupt_entry.value, 1);
        let reported = RED_STORM_2005
            .with("interupt", 1)
            .expect_err("misspelt")
            .to_string();
        assert!(
            reported.contains("interupt") && reported.contains("interrupt_entry"),
            "{reported}"
        );
    }
}
