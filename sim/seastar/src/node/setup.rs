//! What a process sets up before the clock starts: its client's interface, memory that it
//! exposes and binds; and the operations on them.

use lintel_engine4::{Config, DescriptorSpec, EntrySpec, Interface, Transfer};
use lintel_memory::{Buffer, Ghost};
use lintel_types::{
    AckRequest, Datatype, Error, Handle, Limits, List, MdOptions, MeOptions, NiOptions, Operation,
    PortalIndex, ProcessId, PtOptions, UID_ANY,
};
use lintel_wire::{OPERAND_BYTES, Verb};

use super::portals::Gathered;
use super::process::{Client, Mode, Process, Refused};
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
    /// `PTL_ME_*` besides that it takes puts and gets.
    pub options: MeOptions,
}

impl Exposure {
    /// To every process, by these very match bits.
    pub const fn to_all(bytes: u64, match_bits: u64) -> Self {
        Exposure {
            bytes,
            match_bits,
            ignore_bits: 0,
            source: any_process(),
            options: MeOptions::empty(),
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
        max_entries: entries,
        max_list_size: entries,
        max_pt_index: i32::try_from(profile.portals.value).unwrap_or(i32::MAX) - 1,
        ..Limits::DEFAULT
    };
    let config = Config {
        options: NiOptions::MATCHING | NiOptions::PHYSICAL,
        limits: limits.clamped(),
        process: id,
        uid: 1,
        // No message is lent: the TX engine reads where the program wrote.
        eager: u64::MAX,
        generation: 0,
    };
    let mut engine = Box::new(Interface::new(config));
    let queue = engine.queue_alloc(u64::MAX).map_err(refused)?;
    engine
        .portal_alloc(PtOptions::empty(), queue, PORTAL.into())
        .map_err(refused)?;
    Ok(Client::Portals { engine, queue })
}

fn refused(error: Error) -> Refused {
    Refused(error.to_string())
}

/// The portal table entry that programs use.
const PORTAL: PortalIndex = PortalIndex(4);

impl Setup<'_> {
    /// Which process this is.
    pub fn id(&self) -> ProcessId {
        self.process.id
    }

    /// Events of operations come in pairs, as Portals 3.3's do unless a program
    /// disables the first one: starts are reported as well as ends. The start of
    /// each is read and paid for; the program is notified of ends only.
    pub fn want_starts(&mut self) {
        self.process.wants_starts = true;
    }

    /// Lets others reach memory.
    ///
    /// # Errors
    /// The list has its full length.
    pub fn expose(&mut self, exposure: &Exposure) -> Result<Handle, Refused> {
        let buffer = Buffer::Contiguous(Ghost::new(0x1000, exposure.bytes));
        let spec = EntrySpec {
            portal: PORTAL,
            buffer,
            counter: Handle::CT_NONE,
            uid: UID_ANY,
            options: exposure.options
                | MeOptions::OP_PUT
                | MeOptions::OP_GET
                | MeOptions::EVENT_LINK_DISABLE,
            source: exposure.source,
            match_bits: exposure.match_bits,
            ignore_bits: exposure.ignore_bits,
            min_free: 0,
            user_ptr: 0,
        };
        let (engine, mut gathered) = self.portals()?;
        engine
            .append(spec, List::Priority, &mut gathered)
            .map_err(refused)
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
        let Client::Portals { engine, queue } = &mut self.process.client else {
            return Err(not_portals());
        };
        let spec = DescriptorSpec {
            buffer,
            options,
            queue: *queue,
            counter: Handle::CT_NONE,
        };
        engine.descriptor_bind(spec).map_err(refused)
    }

    fn portals(&mut self) -> Result<(&mut Interface<Ghost>, Gathered), Refused> {
        let gathered = self.process.gather(0);
        match &mut self.process.client {
            Client::Portals { engine, .. } => Ok((engine, gathered)),
            Client::Cci(_) => Err(not_portals()),
        }
    }
}

pub(super) fn not_portals() -> Refused {
    Refused("a CCI process has no Portals interface: make it generic or accelerated".to_string())
}

/// A put of `length` bytes from a descriptor.
pub fn put(source: Handle, length: u64, target: ProcessId, match_bits: u64) -> Transfer {
    Transfer {
        verb: Verb::Put,
        source,
        source_offset: 0,
        sink: Handle::INVALID,
        sink_offset: 0,
        length,
        ack: AckRequest::None,
        target,
        portal: PORTAL.into(),
        match_bits,
        remote_offset: 0,
        user_ptr: 0,
        hdr_data: 0,
        operation: Operation::default(),
        datatype: Datatype::default(),
        operand: [0; OPERAND_BYTES],
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
    ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY)
}
