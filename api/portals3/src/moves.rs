//! Data movement.

use crate::descriptor::MemoryDescriptor;
use lintel_engine3::Transfer;
use lintel_runtime::process3;
use lintel_types::portals3::Result;
use lintel_types::{Handle, ProcessId};
use lintel_wire::portals3::Verb;

/// Which memory of which process an operation reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Target {
    /// The target's nid and pid.
    pub process: ProcessId,
    /// The index in its portal table.
    pub portal: u32,
    /// The entry of its access control table that must admit the operation.
    pub access: u32,
    /// Match bits.
    pub match_bits: u64,
    /// Where in its descriptor, if that has `MdOptions::MANAGE_REMOTE`.
    pub offset: u64,
}

impl Target {
    /// Match bits, access control entry and offset 0.
    pub fn new(process: ProcessId, portal: u32) -> Target {
        Target {
            process,
            portal,
            ..Target::default()
        }
    }
}

/// A part of a descriptor's memory, bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub length: u64,
}

/// A put: PtlPut, and PtlPutRegion for a part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Put {
    /// What is sent; all of the descriptor without one.
    pub part: Option<Part>,
    /// Where it goes.
    pub target: Target,
    /// Whether the target shall acknowledge.
    pub ack: bool,
    /// Eight bytes for the target's event.
    pub hdr_data: u64,
}

/// A get: PtlGet, and PtlGetRegion for a part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Get {
    /// What is filled; all of the descriptor without one.
    pub part: Option<Part>,
    /// Where it is read.
    pub target: Target,
}

/// A swap with the target's memory: PtlGetPut, of whole descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub struct GetPut {
    /// Which memory is swapped.
    pub target: Target,
    /// Eight bytes for the target's event.
    pub hdr_data: u64,
}

impl MemoryDescriptor {
    /// Sends bytes. The memory may be changed after SEND_END.
    ///
    /// # Errors
    /// `MdInvalid` if it is inactive or unlinked, `MdIllegal` for a part that isn't inside,
    /// `ProcessInvalid` for a wildcard.
    #[inline]
    pub fn put(&self, put: Put) -> Result<()> {
        let (offset, length) = bounds(put.part);
        process3().start(&Transfer {
            source: self.handle(),
            source_offset: offset,
            length,
            ack: put.ack,
            hdr_data: put.hdr_data,
            ..transfer(Verb::Put, &put.target)
        })
    }

    /// Reads bytes of the target.
    ///
    /// ```
    /// use portals33::*;
    /// # let portals = Portals::init()?;
    /// # let interface = Interface::open(&portals, Options::default())?;
    /// let theirs = Region::new(8);
    /// theirs.write(0, b"answer42");
    /// let entry = Entry::attach(&interface, 5, Position::After, EntrySpec::default())?;
    /// let _target = MemoryDescriptor::attach(&entry, DescriptorSpec {
    ///     memory: Memory::from(&theirs),
    ///     options: MdOptions::OP_GET,
    ///     ..DescriptorSpec::default()
    /// })?;
    /// let (ours, queue) = (Region::new(8), EventQueue::alloc(&interface, 8)?);
    /// let sink = MemoryDescriptor::bind(&interface, DescriptorSpec {
    ///     memory: Memory::from(&ours),
    ///     options: MdOptions::EVENT_START_DISABLE,
    ///     queue: Some(queue.clone()),
    ///     ..DescriptorSpec::default()
    /// })?;
    /// sink.get(Get { target: Target::new(interface.id()?, 5), ..Get::default() })?;
    /// assert_eq!(queue.wait()?.kind, EventKind::ReplyEnd);
    /// let mut bytes = [0; 8];
    /// ours.read(0, &mut bytes);
    /// assert_eq!(&bytes, b"answer42");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put).
    #[inline]
    pub fn get(&self, get: Get) -> Result<()> {
        let (offset, length) = bounds(get.part);
        process3().start(&Transfer {
            sink: self.handle(),
            sink_offset: offset,
            length,
            ..transfer(Verb::Get, &get.target)
        })
    }

    /// Sends this descriptor's bytes in exchange for the target's, which come into `sink`. No
    /// other exchange comes between.
    ///
    /// # Errors
    /// As [`put`](Self::put); `MdIllegal` beyond `max_getput_md`.
    pub fn get_put(&self, sink: &MemoryDescriptor, exchange: GetPut) -> Result<()> {
        process3().start(&Transfer {
            source: self.handle(),
            sink: sink.handle(),
            hdr_data: exchange.hdr_data,
            ..transfer(Verb::GetPut, &exchange.target)
        })
    }
}

fn bounds(part: Option<Part>) -> (u64, Option<u64>) {
    part.map_or((0, None), |part| (part.offset, Some(part.length)))
}

fn transfer(verb: Verb, target: &Target) -> Transfer {
    Transfer {
        verb,
        source: Handle::INVALID,
        source_offset: 0,
        sink: Handle::INVALID,
        sink_offset: 0,
        length: None,
        ack: false,
        target: target.process,
        portal: target.portal,
        access: target.access,
        match_bits: target.match_bits,
        remote_offset: target.offset,
        hdr_data: 0,
    }
}
