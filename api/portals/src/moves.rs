//! Data movement.

use crate::descriptor::MemoryDescriptor;
use lintel_claim::{AtomicCall, Datatype, Operation, valid};
use lintel_engine4::Transfer;
use lintel_runtime::process;
use lintel_types::{AckRequest, Error, Handle, ProcessId, Result};
use lintel_wire::{OPERAND_BYTES, Verb};

/// The target of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Target {
    /// The process, named as the interface names processes.
    pub process: ProcessId,
    /// Its portal table index.
    pub portal: u32,
    /// What its match entry is to match.
    pub match_bits: u64,
    /// Offset in the entry, bytes, unless the entry manages its own.
    pub offset: u64,
}

impl Target {
    /// The beginning of an entry with match bits 0.
    pub fn new(process: ProcessId, portal: u32) -> Target {
        Target {
            process,
            portal,
            ..Target::default()
        }
    }
}

/// The arguments of [`MemoryDescriptor::put`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Put {
    /// Offset of the data in the descriptor's memory, bytes.
    pub offset: u64,
    /// Length of the data, bytes.
    pub length: u64,
    /// Which acknowledgement is wanted.
    pub ack: AckRequest,
    /// Process, portal table entry and match bits that receive the data.
    pub target: Target,
    /// Comes back in the local events.
    pub user_ptr: u64,
    /// Comes with the target's event.
    pub hdr_data: u64,
}

/// The arguments of [`MemoryDescriptor::get`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Get {
    /// Offset of the reply in the descriptor's memory, bytes.
    pub offset: u64,
    /// The bytes to read.
    pub length: u64,
    /// Process, portal table entry and match bits that the data is read from.
    pub target: Target,
    /// Comes back in the local event.
    pub user_ptr: u64,
}

/// The arguments of [`MemoryDescriptor::atomic`].
#[derive(Clone, Copy, Debug)]
pub struct Atomic {
    /// An operation from `Min` to `Bxor`.
    pub operation: Operation,
    /// The type of each item.
    pub datatype: Datatype,
    /// The rest, as of a put.
    pub put: Put,
}

/// The arguments of [`MemoryDescriptor::fetch_atomic`].
#[derive(Clone, Copy, Debug)]
pub struct FetchAtomic {
    /// An operation from `Min` to `Bxor`.
    pub operation: Operation,
    /// The type of each item.
    pub datatype: Datatype,
    /// Offset of the old value in the fetching descriptor's memory, bytes.
    pub fetch_offset: u64,
    /// The rest, as of a put; there is no acknowledgement.
    pub put: Put,
}

/// The arguments of [`MemoryDescriptor::swap`].
#[derive(Clone, Copy, Debug)]
pub struct Swap<'a> {
    /// An operation from `Swap` to `Mswap`.
    pub operation: Operation,
    /// The type of each item.
    pub datatype: Datatype,
    /// What is compared, or the mask: the bytes of one item. Empty for `Swap`.
    pub operand: &'a [u8],
    /// Offset of the old value in the fetching descriptor's memory, bytes.
    pub fetch_offset: u64,
    /// The rest, as of a put; there is no acknowledgement.
    pub put: Put,
}

impl MemoryDescriptor {
    /// Writes to another process, or to this one (PtlPut).
    ///
    /// ```
    /// use portals4::*;
    /// # let portals = Portals::init()?;
    /// # let interface = Interface::open(&portals, Options::default())?;
    /// # let portal = PortalTableEntry::alloc(&interface, PortalSpec::default())?;
    /// # let inbox = Region::new(8);
    /// # let _entry = Entry::append(&portal, EntrySpec {
    /// #     memory: Memory::from(&inbox),
    /// #     options: options::ME_OP_PUT,
    /// #     ..EntrySpec::default()
    /// # })?;
    /// let acknowledged = Counter::alloc(&interface)?;
    /// let source = MemoryDescriptor::bind(&interface, DescriptorSpec {
    ///     memory: Memory::from(&Region::new(8)),
    ///     options: options::MD_EVENT_CT_ACK,
    ///     counter: Some(acknowledged.clone()),
    ///     ..DescriptorSpec::default()
    /// })?;
    /// source.put(Put {
    ///     length: 8,
    ///     ack: AckRequest::Counting,
    ///     target: Target::new(interface.id()?, portal.index()),
    ///     ..Put::default()
    /// })?;
    /// assert_eq!(acknowledged.wait(1)?.failure, 0);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// `ArgInvalid` for bytes outside of the memory, an acknowledgement that has no
    /// queue or counter to go to, a wildcard as target, or a rank outside of the map.
    pub fn put(&self, put: Put) -> Result<()> {
        process().start(&put.transfer(self))
    }

    /// Reads from another process, or from this one (PtlGet).
    ///
    /// ```
    /// use portals4::*;
    /// # let portals = Portals::init()?;
    /// # let interface = Interface::open(&portals, Options::default())?;
    /// # let portal = PortalTableEntry::alloc(&interface, PortalSpec::default())?;
    /// let table = Region::new(64);
    /// table.write(0, b"hello");
    /// let _entry = Entry::append(&portal, EntrySpec {
    ///     memory: Memory::from(&table),
    ///     options: options::ME_OP_GET,
    ///     ..EntrySpec::default()
    /// })?;
    ///
    /// let queue = EventQueue::alloc(&interface, 4)?;
    /// let copy = Region::new(64);
    /// let sink = MemoryDescriptor::bind(&interface, DescriptorSpec {
    ///     memory: Memory::from(&copy),
    ///     queue: Some(queue.clone()),
    ///     ..DescriptorSpec::default()
    /// })?;
    /// let target = Target::new(interface.id()?, portal.index());
    /// sink.get(Get { length: 5, target, ..Get::default() })?;
    /// assert_eq!(queue.wait()?.kind, EventKind::Reply);
    /// let mut bytes = [0; 5];
    /// copy.read(0, &mut bytes);
    /// assert_eq!(&bytes, b"hello");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn get(&self, get: Get) -> Result<()> {
        process().start(&get.transfer(self))
    }

    /// Combines data with that of another process, item by item (PtlAtomic).
    ///
    /// ```
    /// use portals4::*;
    /// # let portals = Portals::init()?;
    /// # let interface = Interface::open(&portals, Options::default())?;
    /// # let portal = PortalTableEntry::alloc(&interface, PortalSpec::default())?;
    /// let total = Region::new(8);
    /// total.write(0, &40u64.to_ne_bytes());
    /// let done = Counter::alloc(&interface)?;
    /// let _entry = Entry::append(&portal, EntrySpec {
    ///     memory: Memory::from(&total),
    ///     options: options::ME_OP_PUT | options::ME_EVENT_CT_COMM,
    ///     counter: Some(done.clone()),
    ///     ..EntrySpec::default()
    /// })?;
    ///
    /// let two = Region::new(8);
    /// two.write(0, &2u64.to_ne_bytes());
    /// let source = MemoryDescriptor::bind(&interface, DescriptorSpec {
    ///     memory: Memory::from(&two),
    ///     ..DescriptorSpec::default()
    /// })?;
    /// source.atomic(Atomic {
    ///     operation: Operation::Sum,
    ///     datatype: Datatype::Uint64,
    ///     put: Put {
    ///         length: 8,
    ///         target: Target::new(interface.id()?, portal.index()),
    ///         ..Put::default()
    ///     },
    /// })?;
    /// done.wait(1)?;
    /// let mut sum = [0; 8];
    /// total.read(0, &mut sum);
    /// assert_eq!(u64::from_ne_bytes(sum), 42);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Self::put), and `ArgInvalid` for more bytes than `max_atomic_size`,
    /// no whole number of items, or an operation that isn't defined on the datatype.
    pub fn atomic(&self, atomic: Atomic) -> Result<()> {
        process().start(&atomic.transfer(self)?)
    }

    /// As [`atomic`](Self::atomic) with the data of `source`, and brings the former
    /// value back into this descriptor's memory (PtlFetchAtomic).
    ///
    /// ```
    /// use portals4::*;
    /// # let portals = Portals::init()?;
    /// # let interface = Interface::open(&portals, Options::default())?;
    /// # let portal = PortalTableEntry::alloc(&interface, PortalSpec::default())?;
    /// # let tickets = Region::new(8);
    /// # let _entry = Entry::append(&portal, EntrySpec {
    /// #     memory: Memory::from(&tickets),
    /// #     options: options::ME_OP_PUT | options::ME_OP_GET,
    /// #     ..EntrySpec::default()
    /// # })?;
    /// let (one, mine) = (Region::new(8), Region::new(8));
    /// one.write(0, &1u64.to_ne_bytes());
    /// let fetched = Counter::alloc(&interface)?;
    /// let source = MemoryDescriptor::bind(&interface, DescriptorSpec {
    ///     memory: Memory::from(&one),
    ///     ..DescriptorSpec::default()
    /// })?;
    /// let sink = MemoryDescriptor::bind(&interface, DescriptorSpec {
    ///     memory: Memory::from(&mine),
    ///     options: options::MD_EVENT_CT_REPLY,
    ///     counter: Some(fetched.clone()),
    ///     ..DescriptorSpec::default()
    /// })?;
    /// let take_a_ticket = FetchAtomic {
    ///     operation: Operation::Sum,
    ///     datatype: Datatype::Uint64,
    ///     fetch_offset: 0,
    ///     put: Put {
    ///         length: 8,
    ///         target: Target::new(interface.id()?, portal.index()),
    ///         ..Put::default()
    ///     },
    /// };
    /// for ticket in 0..3 {
    ///     sink.fetch_atomic(&source, take_a_ticket)?;
    ///     fetched.wait(ticket + 1)?;
    ///     let mut bytes = [0; 8];
    ///     mine.read(0, &mut bytes);
    ///     assert_eq!(u64::from_ne_bytes(bytes), ticket);
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`atomic`](Self::atomic), by `max_fetch_atomic_size`.
    pub fn fetch_atomic(&self, source: &MemoryDescriptor, fetch: FetchAtomic) -> Result<()> {
        process().start(&fetch.transfer(self, source)?)
    }

    /// Exchanges data of `source` with that of another process, on a condition or
    /// under a mask; the former value always comes back into this descriptor's memory
    /// (PtlSwap).
    ///
    /// ```
    /// use portals4::*;
    /// # let portals = Portals::init()?;
    /// # let interface = Interface::open(&portals, Options::default())?;
    /// # let portal = PortalTableEntry::alloc(&interface, PortalSpec::default())?;
    /// # let lock = Region::new(4);
    /// # let _entry = Entry::append(&portal, EntrySpec {
    /// #     memory: Memory::from(&lock),
    /// #     options: options::ME_OP_PUT | options::ME_OP_GET,
    /// #     ..EntrySpec::default()
    /// # })?;
    /// # let bytes = Region::new(8);
    /// # let done = Counter::alloc(&interface)?;
    /// # let both = MemoryDescriptor::bind(&interface, DescriptorSpec {
    /// #     memory: Memory::from(&bytes),
    /// #     options: options::MD_EVENT_CT_REPLY,
    /// #     counter: Some(done.clone()),
    /// #     ..DescriptorSpec::default()
    /// # })?;
    /// // Takes the lock, which is 7 then, if it is 0.
    /// bytes.write(0, &7i32.to_ne_bytes());
    /// both.swap(&both, Swap {
    ///     operation: Operation::CswapEq,
    ///     datatype: Datatype::Int32,
    ///     operand: &0i32.to_ne_bytes(),
    ///     fetch_offset: 4,
    ///     put: Put {
    ///         length: 4,
    ///         target: Target::new(interface.id()?, portal.index()),
    ///         ..Put::default()
    ///     },
    /// })?;
    /// done.wait(1)?;
    /// let (mut former, mut now) = ([0; 4], [0; 4]);
    /// bytes.read(4, &mut former);
    /// lock.read(0, &mut now);
    /// assert_eq!((i32::from_ne_bytes(former), i32::from_ne_bytes(now)), (0, 7));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fetch_atomic`](Self::fetch_atomic), and `ArgInvalid` for an operand that
    /// isn't one item, or more than one item but for `Swap`.
    pub fn swap(&self, source: &MemoryDescriptor, swap: Swap<'_>) -> Result<()> {
        process().start(&swap.transfer(self, source)?)
    }
}

impl Put {
    pub(crate) fn transfer(&self, source: &MemoryDescriptor) -> Transfer {
        Transfer {
            source: source.handle(),
            source_offset: self.offset,
            ack: self.ack,
            hdr_data: self.hdr_data,
            ..transfer(Verb::Put, self.length, self.target, self.user_ptr)
        }
    }
}

impl Get {
    pub(crate) fn transfer(&self, sink: &MemoryDescriptor) -> Transfer {
        Transfer {
            sink: sink.handle(),
            sink_offset: self.offset,
            ..transfer(Verb::Get, self.length, self.target, self.user_ptr)
        }
    }
}

impl Atomic {
    pub(crate) fn transfer(&self, source: &MemoryDescriptor) -> Result<Transfer> {
        check(self.operation, self.datatype, AtomicCall::Atomic)?;
        Ok(Transfer {
            verb: Verb::Atomic,
            operation: self.operation,
            datatype: self.datatype,
            ..self.put.transfer(source)
        })
    }
}

impl FetchAtomic {
    pub(crate) fn transfer(
        &self,
        sink: &MemoryDescriptor,
        source: &MemoryDescriptor,
    ) -> Result<Transfer> {
        check(self.operation, self.datatype, AtomicCall::FetchAtomic)?;
        Ok(Transfer {
            verb: Verb::FetchAtomic,
            sink: sink.handle(),
            sink_offset: self.fetch_offset,
            operation: self.operation,
            datatype: self.datatype,
            ack: AckRequest::None,
            ..self.put.transfer(source)
        })
    }
}

impl Swap<'_> {
    pub(crate) fn transfer(
        &self,
        sink: &MemoryDescriptor,
        source: &MemoryDescriptor,
    ) -> Result<Transfer> {
        check(self.operation, self.datatype, AtomicCall::Swap)?;
        let needed = match self.operation.uses_compare() {
            true => self.datatype.size(),
            false => 0,
        };
        if self.operand.len() != needed {
            return Err(Error::ArgInvalid);
        }
        let mut operand = [0; OPERAND_BYTES];
        operand[..needed].copy_from_slice(self.operand);
        Ok(Transfer {
            verb: Verb::Swap,
            sink: sink.handle(),
            sink_offset: self.fetch_offset,
            operation: self.operation,
            datatype: self.datatype,
            operand,
            ack: AckRequest::None,
            ..self.put.transfer(source)
        })
    }
}

/// Whether the call has that operation on that datatype.
fn check(operation: Operation, datatype: Datatype, call: AtomicCall) -> Result<()> {
    if valid(operation, datatype, call) {
        Ok(())
    } else {
        Err(Error::ArgInvalid)
    }
}

fn transfer(verb: Verb, length: u64, target: Target, user_ptr: u64) -> Transfer {
    Transfer {
        verb,
        source: Handle::INVALID,
        source_offset: 0,
        sink: Handle::INVALID,
        sink_offset: 0,
        length,
        ack: AckRequest::None,
        target: target.process,
        portal: target.portal,
        match_bits: target.match_bits,
        remote_offset: target.offset,
        user_ptr,
        hdr_data: 0,
        operation: Operation::default(),
        datatype: Datatype::default(),
        operand: [0; OPERAND_BYTES],
    }
}
