//! Collective operations for Rust programs, over the safe Portals interface.
//!
//! ```text
//!   open ──▶ Group ──run, begin, test, wait──▶ lintel-group ──Library──▶ portals4
//! ```
//!
//! Order of use: open a matching interface, [`open`] a group on all its processes, then
//! [`Group::run`], or [`Group::begin`] and [`Group::wait`]; last [`Group::free`]. What
//! isn't explained here is in `include/ptlcoll.h`, by the same nouns. Left to others: what
//! an operation becomes (`lintel-group`).
//!
//! ```
//! use portals4::{Interface, Options, Portals};
//! use portals4_collectives::*;
//!
//! # fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let portals = Portals::init()?;
//! let interface = Interface::open(&portals, Options::default())?;
//! let spec = Spec {
//!     processes: vec![interface.id()?],
//!     rank: 0,
//!     progress: Progress::Offloaded,
//!     create_timeout: CREATE_TIMEOUT,
//! };
//! let mut group = open(&interface, 20, spec)?;
//! let combine = Combine { operation: Operation::Sum, datatype: Datatype::Uint64 };
//! let sum = Call::Allreduce(Reduction { combine, count: 1 });
//! let (given, mut got) = (7u64.to_ne_bytes(), [0; 8]);
//! group.run(sum, None, &mut Separate { input: &given, output: &mut got })?;
//! assert_eq!(u64::from_ne_bytes(got), 7);
//! group.free()?;
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

use portals4::{
    AckRequest, Atomic, Counter, DescriptorSpec, Entry, EntrySpec, EventQueue, Interface, Memory,
    MemoryDescriptor, PortalSpec, PortalTableEntry, Put, Region, Target, options,
};
use std::time::Duration;

pub use lintel_group::{
    Algorithm, Buffers, CREATE_TIMEOUT, Call, Combine, CountingEvent, Datatype, Error, InPlace,
    Message, NiFail, Operation, PortalsError, ProcessId, Progress, Reduction, Request, Result,
    Separate, Spec, Tree,
};

/// A group over the safe interface.
pub type Group = lintel_group::Group<Library>;

type Portals4<T> = std::result::Result<T, PortalsError>;

/// Creates a group; returns when all ranks have created it. `index` is a free one of the
/// portal table, the same on all ranks.
///
/// # Errors
/// `InvalidArgument` for an impossible list of processes; `ProcFailed`; `NotCreated`;
/// `Portals` for an interface without matching, an index that is taken, or limits that are too low.
pub fn open(interface: &Interface, index: u32, spec: Spec) -> Result<Group> {
    let region = Region::new(Group::region_bytes(spec.processes.len()));
    let library = Library::open(interface, index, &region, spec.processes.len())?;
    Group::create(library, region, spec)
}

/// An interface, an index of its portal table, and a group's region bound to it.
#[derive(Debug)]
pub struct Library {
    interface: Interface,
    portal: PortalTableEntry,
    region: Region,
    memory: MemoryDescriptor,
    probe_md: MemoryDescriptor,
    probe_queue: EventQueue,
}

impl Library {
    fn open(
        interface: &Interface,
        index: u32,
        region: &Region,
        processes: usize,
    ) -> Portals4<Self> {
        let probe_queue = EventQueue::alloc(interface, processes as u64 + 16)?;
        let bind = |memory, queue| {
            let spec = DescriptorSpec {
                memory,
                options: options::MD_EVENT_SEND_DISABLE,
                queue,
                counter: None,
            };
            MemoryDescriptor::bind(interface, spec)
        };
        Ok(Library {
            portal: PortalTableEntry::alloc(
                interface,
                PortalSpec {
                    index: Some(index),
                    ..PortalSpec::default()
                },
            )?,
            memory: bind(Memory::from(region), None)?,
            probe_md: bind(Memory::default(), Some(probe_queue.clone()))?,
            interface: interface.clone(),
            region: region.clone(),
            probe_queue,
        })
    }

    fn put(&self, message: &Message) -> Put {
        Put {
            offset: message.from,
            length: message.bytes,
            target: Target {
                process: message.target,
                portal: self.portal.index(),
                match_bits: message.match_bits,
                offset: message.at,
            },
            ..Put::default()
        }
    }

    fn atomic(&self, message: &Message, how: Combine) -> Atomic {
        Atomic {
            operation: how.operation,
            datatype: how.datatype,
            put: self.put(message),
        }
    }
}

impl lintel_group::Portals for Library {
    type Counter = Counter;
    type Entry = Entry;

    fn id(&self) -> Portals4<ProcessId> {
        self.interface.id()
    }

    fn largest_atomic(&self) -> u64 {
        self.interface.limits().max_atomic_size
    }

    fn counter(&self) -> Portals4<Counter> {
        Counter::alloc(&self.interface)
    }

    fn entry(
        &self,
        match_bits: u64,
        place: (u64, u64),
        counter: Option<&Counter>,
    ) -> Portals4<Entry> {
        let counts = counter.map_or(0, |_| options::ME_EVENT_CT_COMM);
        let spec = EntrySpec {
            memory: Memory::part(&self.region, place.0, place.1),
            options: options::ME_OP_PUT | options::ME_EVENT_LINK_DISABLE | counts,
            counter: counter.cloned(),
            match_bits,
            ..EntrySpec::default()
        };
        Entry::append(&self.portal, spec)
    }

    fn send(&self, message: &Message) -> Portals4<()> {
        match message.combine {
            None => self.memory.put(self.put(message)),
            Some(how) => self.memory.atomic(self.atomic(message, how)),
        }
    }

    fn send_at(&self, trigger: (&Counter, u64), message: &Message) -> Portals4<()> {
        let trigger = trigger.0.at(trigger.1);
        match message.combine {
            None => trigger.put(&self.memory, self.put(message)),
            Some(how) => trigger.atomic(&self.memory, self.atomic(message, how)),
        }
    }

    fn count(&self, counter: &Counter) -> Portals4<()> {
        counter.increment(1)
    }

    fn count_at(&self, trigger: (&Counter, u64), counter: &Counter) -> Portals4<()> {
        trigger.0.at(trigger.1).increment(counter, 1)
    }

    fn value(&self, counter: &Counter) -> Portals4<CountingEvent> {
        counter.get()
    }

    fn wait(&self, counters: &[(&Counter, u64)], time: Duration) -> Portals4<bool> {
        Ok(Counter::poll_any(counters, time)?.is_some())
    }

    fn probe(&self, target: ProcessId, match_bits: u64, id: u64) -> Portals4<()> {
        self.probe_md.put(Put {
            ack: AckRequest::Full,
            target: Target {
                match_bits,
                ..Target::new(target, self.portal.index())
            },
            user_ptr: id,
            ..Put::default()
        })
    }

    fn poll_probe(&self, time: Duration) -> Portals4<Option<(u64, NiFail)>> {
        let taken = self.probe_queue.poll(time)?;
        Ok(taken.map(|taken| (taken.user_ptr, taken.ni_fail)))
    }
}
