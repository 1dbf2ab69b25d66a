//! What the examples share: a job whose ranks know one another's addresses.
//!
//! The order of use: [`Job::open`], then post what messages arrive in, [`Job::ready`], and
//! [`Job::close`] at the end. The examples are those of `examples/c`, in Rust.
//!
//! ```sh
//! cargo build -p portals-examples
//! yod -n 4 target/debug/ring
//! ```
#![forbid(unsafe_code)]

use lintel_pmi::client::Client;
use portals4::{
    EventKind, EventQueue, Interface, MemoryDescriptor, NiFail, Options, PortalSpec,
    PortalTableEntry, Portals, ProcessId, Region, Taken, options,
};

/// What can go wrong: a call of Portals, of the launcher, or a result that isn't right.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A rank of a parallel program.
pub struct Job {
    /// None if no launcher has started the process: a job of one rank.
    launcher: Option<Client>,
    /// The interface, on which all else is made.
    pub interface: Interface,
    /// The addresses of all ranks; empty before [`ready`](Job::ready).
    pub ranks: Vec<ProcessId>,
}

impl Job {
    /// Joins the job and opens an interface, with match bits or without.
    ///
    /// # Errors
    /// The launcher can't be reached, or Portals can't be used; standard error says why.
    pub fn open(matching: bool) -> Result<Job> {
        let launcher = Client::from_env()?;
        let portals = Portals::init()?;
        let options = Options {
            matching,
            ..Options::default()
        };
        Ok(Job {
            launcher,
            interface: Interface::open(&portals, options)?,
            ranks: Vec::new(),
        })
    }

    /// The number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.launcher.as_ref().map_or(0, Client::rank)
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.launcher.as_ref().map_or(1, Client::size)
    }

    /// The rank after this one; 0 after the last.
    pub fn next(&self) -> usize {
        (self.rank() + 1) % self.size()
    }

    /// The rank before this one; the last before 0.
    pub fn previous(&self) -> usize {
        (self.rank() + self.size() - 1) % self.size()
    }

    /// Exchanges addresses. It returns when all ranks have posted what they receive into.
    ///
    /// # Errors
    /// A lost launcher.
    pub fn ready(&mut self) -> Result {
        let (rank, size) = (self.rank(), self.size());
        let me = self.interface.physical_id()?;
        let Some(launcher) = &mut self.launcher else {
            self.ranks = vec![me];
            return Ok(());
        };
        launcher.put(
            &format!("address-{rank}"),
            &format!("{}:{}", me.nid, me.pid),
        )?;
        launcher.barrier()?;
        for rank in 0..size {
            let text = launcher.get(&format!("address-{rank}"))?;
            let text = text.ok_or(format!("rank {rank} has no address"))?;
            let (nid, pid) = text.split_once(':').ok_or("no address")?;
            self.ranks.push(ProcessId::new(nid.parse()?, pid.parse()?));
        }
        Ok(())
    }

    /// Waits for all ranks.
    ///
    /// # Errors
    /// A lost launcher.
    pub fn barrier(&mut self) -> Result {
        self.launcher.as_mut().map_or(Ok(()), Client::barrier)?;
        Ok(())
    }

    /// Waits until nobody sends to this rank any more, and leaves the job.
    ///
    /// # Errors
    /// A lost launcher.
    pub fn close(mut self) -> Result {
        self.barrier()?;
        self.launcher.map_or(Ok(()), Client::finalize)?;
        Ok(())
    }

    /// A queue of events, and an entry of the portal table whose events go there.
    ///
    /// # Errors
    /// The index is taken, or a limit is reached.
    pub fn portal(&self, index: u32, options: u32) -> Result<(EventQueue, PortalTableEntry)> {
        let queue = EventQueue::alloc(&self.interface, 1024)?;
        let spec = PortalSpec {
            options,
            queue: Some(queue.clone()),
            index: Some(index),
        };
        let portal = PortalTableEntry::alloc(&self.interface, spec)?;
        Ok((queue, portal))
    }
}

/// The next event of a queue, which must be of this kind and report success.
///
/// # Errors
/// Another event, or none.
pub fn expect_event(queue: &EventQueue, kind: EventKind) -> Result<Taken> {
    let event = queue.wait()?;
    match (event.kind, event.ni_fail) {
        (found, NiFail::Ok) if found == kind => Ok(event),
        (found, fail) => Err(format!("{kind:?} expected, not {found:?} ({fail:?})").into()),
    }
}

/// A descriptor of a region, without events. The bytes may change as soon as a call that sends
/// them returns.
///
/// # Errors
/// A limit is reached.
pub fn descriptor(interface: &Interface, region: &Region) -> Result<MemoryDescriptor> {
    let spec = portals4::DescriptorSpec {
        memory: region.into(),
        options: options::MD_VOLATILE,
        ..portals4::DescriptorSpec::default()
    };
    Ok(MemoryDescriptor::bind(interface, spec)?)
}

/// The number at an offset of a region, in bytes.
pub fn number(region: &Region, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    region.read(offset, &mut bytes);
    u64::from_ne_bytes(bytes)
}

/// Writes a number at an offset of a region, in bytes.
pub fn set_number(region: &Region, offset: u64, value: u64) {
    region.write(offset, &value.to_ne_bytes());
}
