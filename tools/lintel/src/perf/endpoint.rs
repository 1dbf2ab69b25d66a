//! One side of a benchmark as PortalPerf has it: a persistent descriptor to send
//! from, one persistent match entry to receive in.

use std::cell::Cell;
use std::rc::Rc;

use super::options::{Api, Wait};
use super::session::Session;
use super::side::Side;
use crate::error::{During, Result};
use crate::portals::{
    AckRequest, Counted, Counter, Descriptor, Entry, EntrySpec, Interface, PT_ANY, Portal, Queue,
    Transfer, options, poll_event, try_event, wait_count, wait_event,
};
use crate::raw::Region;
use crate::team::WORDS;

/// Descriptors, memory and signals of one side. Fields are dropped in this order.
pub struct Endpoint {
    /// Sends from `source`; gets and fetches land there too.
    pub descriptor: Descriptor,
    /// What stands before the entry that matches.
    _ahead: Vec<Entry>,
    _entry: Entry,
    portal: Portal,
    /// Messages that arrived here.
    pub arrivals: Signal,
    /// Operations of this side that are complete.
    pub completions: Signal,
    /// Memory of the descriptor.
    pub source: Rc<Region>,
    /// Memory of the entry.
    pub landing: Rc<Region>,
    /// Names the other side's entry.
    pub to_peer: Transfer,
    /// Keeps everything above alive.
    pub interface: Interface,
}

/// How a [`Endpoint`] is to be set up.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// Bytes of each buffer.
    pub bytes: u64,
    /// How arrivals are waited for.
    pub arrive: Wait,
    /// How own operations are waited for, and which stage of them.
    pub complete: (Wait, Counted),
    /// Events that may wait in a queue.
    pub depth: u64,
    /// Entries ahead of the one that matches, in order: bits and ignore bits.
    pub ahead: &'a [(u64, u64)],
}

impl Setup<'_> {
    /// For messages of up to `bytes`, waiting as the options say, for one stage of an operation.
    pub fn simple(session: &Session, bytes: u64, stage: Counted) -> Self {
        let wait = session.options.wait;
        Self {
            bytes,
            arrive: wait,
            complete: (wait, stage),
            depth: QUEUE,
            ahead: &[],
        }
    }
}

impl Endpoint {
    /// Sets up both sides; when it returns, each may send to the other.
    ///
    /// # Errors
    /// What Portals or the system refused.
    pub fn new(session: &mut Session, setup: Setup<'_>) -> Result<Self> {
        let landing = Region::private(setup.bytes as usize).during("allocating")?;
        Self::over(session, setup, landing, true)
    }

    /// As [`new`](Self::new), but the entry lies in memory that the other side can map, and
    /// neither posts nor counts: nothing shows that a message has arrived.
    ///
    /// # Errors
    /// What Portals or the system refused.
    pub fn direct(session: &mut Session, setup: Setup<'_>) -> Result<Self> {
        let landing = Region::shareable(setup.bytes as usize)?;
        Self::over(session, setup, landing, false)
    }

    fn over(
        session: &mut Session,
        setup: Setup<'_>,
        landing: Region,
        reports: bool,
    ) -> Result<Self> {
        let (interface, peer) = session.interface()?;
        let source = Region::private(setup.bytes as usize).during("allocating")?;
        let (source, landing) = (Rc::new(source), Rc::new(landing));
        let arrivals = Signal::new(&interface, setup.arrive, setup.depth)?;
        let completions = Signal::new(&interface, setup.complete.0, setup.depth)?;
        let portal = interface.portal(PT_ANY, arrivals.queue())?;
        let ahead = ahead(&portal, setup.ahead)?;
        let any = EntrySpec {
            match_bits: BITS,
            ..EntrySpec::default()
        };
        let spec = match arrivals.counter() {
            _ if !reports => EntrySpec {
                options: any.options | options::ME_EVENT_COMM_DISABLE,
                ..any
            },
            Some(counter) => EntrySpec::counted(BITS, counter),
            None => any,
        };
        let entry = portal.append(Rc::clone(&landing), &spec)?;
        let (_, stage) = setup.complete;
        let spec = stage.spec(completions.queue(), completions.counter());
        let descriptor = interface.bind(Rc::clone(&source), &spec)?;
        let mut words = [0; WORDS];
        words[0] = portal.index().into();
        let to_peer = Transfer {
            target: peer,
            portal: session.team.swap(words)?[0] as u32,
            match_bits: BITS,
            ..Transfer::default()
        };
        Ok(Self {
            descriptor,
            _ahead: ahead,
            _entry: entry,
            portal,
            arrivals,
            completions,
            source,
            landing,
            to_peer,
            interface,
        })
    }

    /// This side's portal table index, for operations on itself.
    pub fn own_portal(&self) -> u32 {
        self.portal.index()
    }

    /// A transfer of `length` bytes to the other side's entry.
    pub fn transfer(&self, length: u64) -> Transfer {
        Transfer {
            length,
            ..self.to_peer
        }
    }
}

impl Side for Endpoint {
    type Transfer = Transfer;
    const API: Api = Api::Portals4;

    fn open(session: &mut Session, setup: Setup<'_>) -> Result<Self> {
        Endpoint::new(session, setup)
    }

    fn transfer_at(&self, length: u64, offset: u64) -> Transfer {
        Transfer {
            local_offset: offset,
            remote_offset: offset,
            ..self.transfer(length)
        }
    }

    #[inline]
    fn put(&self, transfer: &Transfer, is_acked: bool) -> Result<()> {
        let ack = match is_acked {
            true => self.completions.ack(),
            false => AckRequest::None,
        };
        Ok(self.descriptor.put(transfer, ack)?)
    }

    #[inline]
    fn get(&self, transfer: &Transfer) -> Result<()> {
        Ok(self.descriptor.get(transfer)?)
    }

    #[inline]
    fn take_arrivals(&self, n: u64) -> Result<()> {
        self.arrivals.take(n)
    }

    #[inline]
    fn take_completions(&self, n: u64) -> Result<()> {
        self.completions.take(n)
    }

    fn buffers(&self) -> (&Rc<Region>, &Rc<Region>) {
        (&self.source, &self.landing)
    }
}

fn ahead(portal: &Portal, bits: &[(u64, u64)]) -> Result<Vec<Entry>> {
    if bits.is_empty() {
        return Ok(Vec::new());
    }
    let memory = Rc::new(Region::private(64).during("allocating")?);
    let entry = |&(match_bits, ignore_bits): &(u64, u64)| {
        let any = EntrySpec::default();
        let silent = EntrySpec {
            match_bits,
            ignore_bits,
            options: any.options | options::ME_EVENT_COMM_DISABLE,
            ..any
        };
        Ok(portal.append(Rc::clone(&memory), &silent)?)
    };
    bits.iter().map(entry).collect()
}

/// Something awaited again and again, in one of the ways that Portals offers.
pub enum Signal {
    /// `PtlCTWait` for one more than before.
    Counted(Counter, Cell<u64>),
    /// `PtlEQGet` until there is an event.
    Polled(Queue),
    /// `PtlEQWait`, which may sleep in the kernel.
    Slept(Queue),
}

impl Signal {
    /// With a queue of `depth` events, if it waits for events.
    pub fn new(interface: &Interface, wait: Wait, depth: u64) -> Result<Self> {
        Ok(match wait {
            Wait::Ct => Self::Counted(interface.counter()?, Cell::new(0)),
            Wait::Eq => Self::Polled(interface.queue(depth)?),
            Wait::Eqwait => Self::Slept(interface.queue(depth)?),
        })
    }

    /// Waits for the next one.
    #[inline]
    pub fn next(&self) -> Result<()> {
        match self {
            Self::Polled(queue) => poll_event(queue)?,
            Self::Slept(queue) => wait_event(queue)?,
            Self::Counted(counter, seen) => {
                seen.set(seen.get() + 1);
                wait_count(counter, seen.get())?;
            }
        }
        Ok(())
    }

    /// Waits for the next `n`.
    #[inline]
    pub fn take(&self, n: u64) -> Result<()> {
        match self {
            Self::Counted(counter, seen) => {
                seen.set(seen.get() + n);
                Ok(wait_count(counter, seen.get())?)
            }
            _ => (0..n).try_for_each(|_| self.next()),
        }
    }

    /// Takes the next one if it is there already, and says so.
    pub fn try_take(&self) -> Result<bool> {
        match self {
            Self::Polled(queue) | Self::Slept(queue) => Ok(try_event(queue)?),
            Self::Counted(counter, seen) => {
                let there = counter.get()?.success > seen.get();
                seen.set(seen.get() + u64::from(there));
                Ok(there)
            }
        }
    }

    /// A counting acknowledgement for a counter, a full one for a queue.
    pub fn ack(&self) -> AckRequest {
        match self {
            Self::Counted(..) => AckRequest::Counting,
            _ => AckRequest::Full,
        }
    }

    fn queue(&self) -> Option<&Queue> {
        match self {
            Self::Counted(..) => None,
            Self::Polled(queue) | Self::Slept(queue) => Some(queue),
        }
    }

    /// The counter that it waits on, if it does.
    pub fn counter(&self) -> Option<&Counter> {
        match self {
            Self::Counted(counter, _) => Some(counter),
            _ => None,
        }
    }
}

/// Events of the longest batch of the shortest operation, and to spare.
pub const QUEUE: u64 = 8192;

/// Match bits of every benchmark's own entry: none of `depth`'s others has them.
pub const BITS: u64 = 0x11e7_e100_0000_0001;
