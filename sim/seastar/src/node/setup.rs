//! What a process sets up before the clock starts: its client's interface, memory that it
//! exposes and binds; and the operations on them.

use lintel_engine3::{Config, DescriptorSpec, Dialect, EntrySpec, Interface, Transfer};
use lintel_memory::{Buffer, Ghost, Span};
use lintel_types::portals3::{
    Error, Limits, MdOptions, MemoryDescriptor, NID_ANY, PID_ANY, Position, THRESHOLD_INFINITE,
    Unlink,
};
use lintel_types::{Handle, InterfaceNumber, ProcessId};
use lintel_wire::portals3::Verb;

use super::process::{Client, Mode, Process, Refused};
use crate::message::Class;
use crate::profile::Profile;

/// What a process can set up before the clock starts.
pub struct Setup<'a> {
    pub(super) process: &'a mut Process,
}

/// Memory that others may reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exposure {
    /// Length of the exposed memory.
    pub bytes: u64,
    /// The entry's match bits, none of them ignored.
    pub match_bits: u64,
    /// Bits that don't matter.
    pub ignore_bits: u64,
    /// Whose messages it takes.
    pub source: ProcessId,
    /// Operations that its descriptor takes before it is inactive.
    pub threshold: i32,
    /// Options besides that it takes puts and gets at the initiator's offset.
    pub options: MdOptions,
}

impl Exposure {
    /// To every process, by these very match bits.
    pub const fn to_all(bytes: u64, match_bits: u64) -> Self {
        Exposure {
            bytes,
            match_bits,
            ignore_bits: 0,
            source: any_process(),
            threshold: THRESHOLD_INFINITE,
            options: MdOptions::empty(),
        }
    }

    /// The same without START events, as MPI libraries set it.
    pub const fn of_ends(bytes: u64, match_bits: u64) -> Self {
        Exposure {
            options: MdOptions::EVENT_START_DISABLE,
            ..Exposure::to_all(bytes, match_bits)
        }
    }
}

pub(super) fn portals_client(
    id: ProcessId,
    mode: Mode,
    profile: &Profile,
) -> Result<Client, Refused> {
    let entries = match mode {
        Mode::Generic => profile.generic_entries.value,
        _ => profile.accelerated_entries.value,
    };
    let entries = i32::try_from(entries).unwrap_or(i32::MAX);
    let limits = Limits {
        max_mes: entries,
        max_me_list: entries,
        max_mds: i32::MAX,
        max_pt_index: i32::try_from(profile.portals.value).unwrap_or(i32::MAX) - 1,
        ..Limits::DEFAULT
    };
    let config = Config {
        number: InterfaceNumber::from_bits(0),
        // S1 3.1: a get has no events at its initiator but those of the reply.
        dialect: Dialect::Specification,
        limits: limits.clamped(),
        process: id,
        uid: 1,
        jid: 1,
        // No message is lent: the TX engine reads where the program wrote.
        eager: u64::MAX,
        generation: 0,
    };
    let mut engine = Box::new(Interface::new(config));
    let queue = engine.queue_alloc().map_err(refused)?;
    Ok(Client::Portals { engine, queue })
}

fn refused(error: Error) -> Refused {
    Refused(error.to_string())
}

/// The portal table entry that programs use.
const PORTAL: u32 = 4;

impl Setup<'_> {
    /// Which process this is.
    pub fn id(&self) -> ProcessId {
        self.process.id
    }

    /// Lets others reach memory: a match entry at the end of the list, and its descriptor.
    ///
    /// # Errors
    /// The list has its full length.
    pub fn expose(&mut self, exposure: &Exposure) -> Result<Handle, Refused> {
        let buffer = Buffer::Contiguous(Ghost::new(0x1000, exposure.bytes));
        let entry = EntrySpec {
            source: exposure.source,
            match_bits: exposure.match_bits,
            ignore_bits: exposure.ignore_bits,
            unlink: Unlink::Retain,
        };
        let takes = MdOptions::OP_PUT | MdOptions::OP_GET | MdOptions::MANAGE_REMOTE;
        let (engine, queue) = self.portals()?;
        let descriptor = descriptor(buffer, exposure.options | takes, exposure.threshold, queue);
        let attached = engine.entry_attach_with(PORTAL, entry, Position::After, descriptor);
        attached.map(|(entry, _)| entry).map_err(refused)
    }

    /// Binds memory to send from or to be answered into.
    ///
    /// # Errors
    /// The NIC itself can't serve memory in pieces.
    pub fn bind(&mut self, buffer: Buffer<Ghost>, options: MdOptions) -> Result<Handle, Refused> {
        if self.process.mode == Mode::Accelerated && matches!(buffer, Buffer::Vector(..)) {
            let why = "the NIC serves contiguous memory only: copy the pieces together, \
                       or make the process generic";
            return Err(Refused(why.to_string()));
        }
        let (engine, queue) = self.portals()?;
        let bound = engine.descriptor_bind(descriptor(buffer, options, THRESHOLD_INFINITE, queue));
        bound.map_err(refused)
    }

    /// CCI: asks for a connection, which is made before the clock starts. Either end may
    /// send on it.
    ///
    /// # Errors
    /// The process has Portals.
    pub fn connect(&mut self, to: ProcessId, class: Class) -> Result<(), Refused> {
        let endpoint = self.process.endpoint_mut().ok_or_else(not_cci)?;
        endpoint.want(to, class);
        Ok(())
    }

    fn portals(&mut self) -> Result<(&mut Interface<Ghost>, Handle), Refused> {
        match &mut self.process.client {
            Client::Portals { engine, queue } => Ok((engine, *queue)),
            Client::Cci(_) => Err(not_portals()),
        }
    }
}

/// A descriptor of memory that reports to a queue, and stays when it is inactive.
fn descriptor(
    buffer: Buffer<Ghost>,
    options: MdOptions,
    threshold: i32,
    queue: Handle,
) -> DescriptorSpec<Ghost> {
    let (length, pieces) = match &buffer {
        Buffer::Contiguous(span) => (span.length(), MdOptions::empty()),
        Buffer::Vector(pieces, _) => (pieces.len() as u64, MdOptions::IOVEC),
    };
    let md = MemoryDescriptor {
        start: 0x1000,
        length,
        threshold,
        options: options | pieces,
        queue,
        ..MemoryDescriptor::default()
    };
    DescriptorSpec {
        md,
        buffer,
        unlink: Unlink::Retain,
    }
}

pub(super) fn not_portals() -> Refused {
    Refused("a CCI process has no Portals interface: make it generic or accelerated".to_string())
}

pub(super) fn not_cci() -> Refused {
    Refused("only a CCI process has CCI connections: make it one, or put".to_string())
}

/// A put of `length` bytes from a descriptor.
pub fn put(source: Handle, length: u64, target: ProcessId, match_bits: u64) -> Transfer {
    Transfer {
        verb: Verb::Put,
        source,
        source_offset: 0,
        sink: Handle::INVALID,
        sink_offset: 0,
        length: Some(length),
        ack: false,
        target,
        portal: PORTAL,
        access: 0,
        match_bits,
        remote_offset: 0,
        hdr_data: 0,
    }
}

/// A get of `length` bytes into a descriptor.
pub fn get(sink: Handle, length: u64, target: ProcessId, match_bits: u64) -> Transfer {
    Transfer {
        verb: Verb::Get,
        sink,
        ..put(Handle::INVALID, length, target, match_bits)
    }
}

/// Every process of every node.
pub const fn any_process() -> ProcessId {
    ProcessId::new(NID_ANY, PID_ANY)
}
