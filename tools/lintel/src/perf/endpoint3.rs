//! One side of a benchmark over Portals 3.3: a bound descriptor to send from, one entry with a
//! descriptor to receive in, and a queue each.

use std::rc::Rc;

use portals33::{
    DescriptorSpec, Entry, EntrySpec, EventQueue, Get, Interface, MdOptions, Memory,
    MemoryDescriptor, NI_OK, Part, Position, Put, Taken, Target,
};

use super::endpoint::{BITS, QUEUE, Setup};
use super::options::{Api, Wait};
use super::session::Session;
use super::side::Side;
use crate::error::{During, Error, Result};
use crate::portals::Counted;
use crate::raw::Region;
use crate::team::WORDS;

/// Descriptors, queues and memory of one side. Fields are dropped in this order.
pub struct Endpoint3 {
    source: MemoryDescriptor,
    _landing: MemoryDescriptor,
    _entry: Entry,
    /// What stands before the entry that matches.
    _ahead: Vec<(MemoryDescriptor, Entry)>,
    arrivals: Signal3,
    completions: Signal3,
    target: Target,
    /// What limits copy between: like the descriptors' own memory.
    buffers: [Rc<Region>; 2],
}

impl Side for Endpoint3 {
    type Transfer = (Part, Target);
    const API: Api = Api::Portals3;

    fn open(session: &mut Session, setup: Setup<'_>) -> Result<Self> {
        let (interface, peer) = session.interface3()?;
        let arrivals = Signal3::new(&interface, setup.arrive, setup.depth)?;
        let completions = Signal3::new(&interface, setup.complete.0, setup.depth)?;
        let (portal, mut entries) = entries(&interface, setup.ahead)?;
        let entry = entries.pop().expect("the one that matches is the last");
        let ahead = entries.into_iter().map(silent).collect::<Result<_>>()?;
        let taking = MdOptions::OP_PUT | MdOptions::OP_GET | MdOptions::MANAGE_REMOTE;
        let landing = DescriptorSpec {
            options: taking | MdOptions::EVENT_START_DISABLE,
            queue: Some(arrivals.queue.clone()),
            ..memory(setup.bytes)
        };
        let source = DescriptorSpec {
            options: quiet(setup.complete.1),
            queue: Some(completions.queue.clone()),
            ..memory(setup.bytes)
        };
        let mut words = [0; WORDS];
        words[0] = portal.into();
        let portal_of_peer = session.team.swap(words)?[0] as u32;
        let buffer = || Region::private(setup.bytes as usize).during("allocating");
        let side = Self {
            source: MemoryDescriptor::bind(&interface, source)?,
            _landing: MemoryDescriptor::attach(&entry, landing)?,
            _entry: entry,
            _ahead: ahead,
            arrivals,
            completions,
            target: Target {
                match_bits: BITS,
                ..Target::new(peer, portal_of_peer)
            },
            buffers: [Rc::new(buffer()?), Rc::new(buffer()?)],
        };
        session.team.barrier()?;
        Ok(side)
    }

    fn transfer_at(&self, length: u64, offset: u64) -> Self::Transfer {
        let target = Target {
            offset,
            ..self.target
        };
        (Part { offset, length }, target)
    }

    #[inline]
    fn put(&self, (part, target): &Self::Transfer, is_acked: bool) -> Result<()> {
        Ok(self.source.put(Put {
            part: Some(*part),
            target: *target,
            ack: is_acked,
            hdr_data: 0,
        })?)
    }

    #[inline]
    fn get(&self, (part, target): &Self::Transfer) -> Result<()> {
        Ok(self.source.get(Get {
            part: Some(*part),
            target: *target,
        })?)
    }

    #[inline]
    fn take_arrivals(&self, n: u64) -> Result<()> {
        (0..n).try_for_each(|_| self.arrivals.next())
    }

    #[inline]
    fn take_completions(&self, n: u64) -> Result<()> {
        (0..n).try_for_each(|_| self.completions.next())
    }

    fn buffers(&self) -> (&Rc<Region>, &Rc<Region>) {
        (&self.buffers[0], &self.buffers[1])
    }
}

/// An event queue, and how it is waited on.
struct Signal3 {
    queue: EventQueue,
    sleeps: bool,
}

impl Signal3 {
    /// Counters, which streams over Portals 4 use, become queues with room for a batch.
    fn new(interface: &Interface, wait: Wait, depth: u64) -> Result<Self> {
        Ok(Self {
            queue: EventQueue::alloc(interface, depth.max(QUEUE))?,
            sleeps: wait == Wait::Eqwait,
        })
    }

    #[inline]
    fn next(&self) -> Result<()> {
        if self.sleeps {
            return succeeded(&self.queue.wait()?);
        }
        loop {
            if let Some(taken) = self.queue.get()? {
                return succeeded(&taken);
            }
        }
    }
}

#[inline]
fn succeeded(taken: &Taken) -> Result<()> {
    match taken.event.ni_fail {
        NI_OK if !taken.dropped => Ok(()),
        NI_OK => Err(Error::Wrong("an event queue lost events".into())),
        _ => Err(Error::Wrong(
            "an event reported an operation as failed".into(),
        )),
    }
}

/// Leaves of a descriptor's events those of one stage; ACK comes whatever is disabled.
fn quiet(stage: Counted) -> MdOptions {
    match stage {
        Counted::Acks => MdOptions::EVENT_START_DISABLE | MdOptions::EVENT_END_DISABLE,
        Counted::Replies | Counted::Sends => MdOptions::EVENT_START_DISABLE,
    }
}

fn memory(bytes: u64) -> DescriptorSpec {
    DescriptorSpec {
        memory: Memory::from(&portals33::Region::new(bytes)),
        ..DescriptorSpec::default()
    }
}

/// The entries of a list of their own, in order, with its index; the last is the one that matches.
fn entries(interface: &Interface, ahead: &[(u64, u64)]) -> Result<(u32, Vec<Entry>)> {
    let spec = |(match_bits, ignore_bits)| EntrySpec {
        match_bits,
        ignore_bits,
        ..EntrySpec::default()
    };
    let mut all = ahead.iter().copied().chain([(BITS, 0)]).map(spec);
    let head = all.next().expect("there is one that matches");
    let (portal, head) = Entry::attach_any(interface, head)?;
    let mut entries = vec![head];
    for spec in all {
        entries.push(Entry::attach(interface, portal, Position::After, spec)?);
    }
    Ok((portal, entries))
}

/// An entry that takes puts and gets none, with its descriptor.
fn silent(entry: Entry) -> Result<(MemoryDescriptor, Entry)> {
    let spec = DescriptorSpec {
        options: MdOptions::OP_PUT,
        ..DescriptorSpec::default()
    };
    Ok((MemoryDescriptor::attach(&entry, spec)?, entry))
}
