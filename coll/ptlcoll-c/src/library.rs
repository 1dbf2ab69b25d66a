//! The Portals library that the program has loaded, as a group wants it.

use arrayvec::ArrayVec;
use lintel_group::{
    Combine, CountingEvent, Datatype, MAX_AWAITED, Message, NiFail, Operation, Portals,
    PortalsError, ProcessId, Region,
};
use lintel_types::{AckRequest, Handle, Result, options};
use portals4_abi::{
    Counter, Descriptor, DescriptorSpec, Entry, EntrySpec, Interface, Portal, Queue, Transfer,
    Trigger, poll_counters,
};
use std::time::Duration;

/// An interface, one index of its portal table, and a region bound to it.
pub(crate) struct Library {
    interface: Interface,
    id: ProcessId,
    region: Region,
    largest_atomic: u64,
    // In the order in which they are to go.
    memory: Descriptor<Region>,
    probe_md: Descriptor<Region>,
    probe_queue: Queue,
    portal: Portal,
}

/// Larger wishes are tried first.
const LARGEST_ATOMIC: u64 = 64 << 10;
/// An element of each type fits.
const SMALLEST_ATOMIC: u64 = 32;

impl Library {
    /// Takes the index, which messages find from here on.
    pub(crate) fn open(ni: Handle, index: u32, region: &Region, ranks: usize) -> Result<Self> {
        let interface = Interface::borrow(ni);
        let id = named(interface.id()?, interface.is_logical());
        let portal = interface.portal(index, None)?;
        let probe_queue = interface.queue(ranks as u64 + 16)?;
        let quiet = |queue| DescriptorSpec {
            queue,
            options: options::MD_EVENT_SEND_DISABLE,
            ..DescriptorSpec::default()
        };
        let mut library = Library {
            id,
            largest_atomic: 0,
            memory: interface.bind(region.clone(), &quiet(None))?,
            probe_md: interface.bind(Region::new(0), &quiet(Some(&probe_queue)))?,
            region: region.clone(),
            probe_queue,
            portal,
            interface,
        };
        library.largest_atomic = library.probe_atomics()?;
        Ok(library)
    }

    /// What the interface takes: a triggered atomic is checked when it is posted, and
    /// these are cancelled at once.
    fn probe_atomics(&self) -> Result<u64> {
        let never = self.counter()?;
        let mut bytes = LARGEST_ATOMIC;
        let probe = |bytes| Message {
            from: 0,
            bytes,
            target: self.id,
            match_bits: u64::MAX,
            at: 0,
            combine: Some(Combine {
                operation: Operation::Bor,
                datatype: Datatype::Uint8,
            }),
        };
        while let Err(error) = self.send_at((&never, u64::MAX), &probe(bytes)) {
            if error != PortalsError::ArgInvalid || bytes <= SMALLEST_ATOMIC {
                return Err(error);
            }
            bytes /= 2;
        }
        never.cancel_triggered()?;
        Ok(bytes)
    }

    fn transfer(&self, message: &Message) -> Transfer {
        Transfer {
            local_offset: message.from,
            length: message.bytes,
            target: message.target,
            portal: self.portal.index(),
            match_bits: message.match_bits,
            remote_offset: message.at,
            ..Transfer::default()
        }
    }
}

impl Portals for Library {
    type Counter = Counter;
    type Entry = Entry<Region>;

    fn id(&self) -> Result<ProcessId> {
        Ok(self.id)
    }

    fn largest_atomic(&self) -> u64 {
        self.largest_atomic
    }

    fn counter(&self) -> Result<Counter> {
        Ok(self.interface.counter()?)
    }

    fn entry(
        &self,
        match_bits: u64,
        place: (u64, u64),
        counter: Option<&Counter>,
    ) -> Result<Entry<Region>> {
        let (at, bytes) = place;
        let counts = counter.map_or(0, |_| options::ME_EVENT_CT_COMM);
        let spec = EntrySpec {
            range: Some(at as usize..(at + bytes) as usize),
            match_bits,
            source: anyone(self.interface.is_logical()),
            counter,
            options: options::ME_OP_PUT | options::ME_EVENT_LINK_DISABLE | counts,
            ..EntrySpec::default()
        };
        Ok(self.portal.append(self.region.clone(), &spec)?)
    }

    fn send(&self, message: &Message) -> Result<()> {
        let (transfer, no_ack) = (self.transfer(message), AckRequest::None);
        match message.combine {
            None => self.memory.put(&transfer, no_ack)?,
            Some(how) => {
                let how = (how.operation, how.datatype);
                self.memory.atomic(&transfer, how, no_ack)?;
            }
        }
        Ok(())
    }

    fn send_at(&self, (counter, threshold): (&Counter, u64), message: &Message) -> Result<()> {
        let (transfer, no_ack) = (self.transfer(message), AckRequest::None);
        let trigger = Trigger { counter, threshold };
        match message.combine {
            None => self.memory.triggered_put(&transfer, no_ack, trigger)?,
            Some(how) => {
                let how = (how.operation, how.datatype);
                self.memory
                    .triggered_atomic(&transfer, how, no_ack, trigger)?;
            }
        }
        Ok(())
    }

    fn count(&self, counter: &Counter) -> Result<()> {
        Ok(counter.increment()?)
    }

    fn count_at(&self, trigger: (&Counter, u64), counter: &Counter) -> Result<()> {
        let (by, threshold) = trigger;
        Ok(counter.triggered_increment(Trigger {
            counter: by,
            threshold,
        })?)
    }

    fn value(&self, counter: &Counter) -> Result<CountingEvent> {
        Ok(counter.get()?)
    }

    fn wait(&self, counters: &[(&Counter, u64)], time: Duration) -> Result<bool> {
        let handles = counters.iter().map(|(counter, _)| counter.handle());
        let handles: ArrayVec<Handle, MAX_AWAITED> = handles.collect();
        let tests: ArrayVec<u64, MAX_AWAITED> = counters.iter().map(|(_, test)| *test).collect();
        Ok(poll_counters(&handles, &tests, milliseconds(time))?.is_some())
    }

    fn probe(&self, target: ProcessId, match_bits: u64, id: u64) -> Result<()> {
        let nothing = Transfer {
            target,
            portal: self.portal.index(),
            match_bits,
            user_ptr: id as usize,
            ..Transfer::default()
        };
        Ok(self.probe_md.put(&nothing, AckRequest::Full)?)
    }

    fn poll_probe(&self, time: Duration) -> Result<Option<(u64, NiFail)>> {
        let event = self.probe_queue.poll_lossy(milliseconds(time))?;
        Ok(event.map(|event| (event.user_ptr, NiFail::from_bits(event.ni_fail))))
    }
}

/// The names of other processes, as a caller may have filled them: of a rank, only the
/// rank counts.
pub(crate) fn named(process: ProcessId, logical: bool) -> ProcessId {
    match logical {
        true => ProcessId::from_rank(process.rank()),
        false => process,
    }
}

/// Whether processes of this interface have ranks for names.
pub(crate) fn is_logical(ni: Handle) -> bool {
    Interface::borrow(ni).is_logical()
}

/// The node of this process.
pub(crate) fn node(ni: Handle) -> Result<u32> {
    Ok(Interface::borrow(ni).physical_id()?.nid)
}

fn anyone(logical: bool) -> ProcessId {
    match logical {
        true => ProcessId::from_rank(ProcessId::RANK_ANY),
        false => ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
    }
}

fn milliseconds(time: Duration) -> u32 {
    time.as_millis() as u32
}
