//! List entries and match list entries.

use crate::counter::Counter;
use crate::deferred_release::{self, Dropped};
use crate::portal_table::PortalTableEntry;
use lintel_claim::{Claim, Memory};
use lintel_engine4 as engine;
use lintel_runtime::process;
use lintel_types::{Error, Handle, List, ProcessId, Result, UID_ANY};

/// Memory that messages reach, and which messages. On an interface without matching
/// `source`, `match_bits` and `ignore_bits` don't count.
///
/// The default takes messages with match bits 0 from everybody, and allows no
/// operation: name some by `options::ME_OP_PUT` and `options::ME_OP_GET`.
#[derive(Clone, Debug, Default)]
pub struct EntrySpec {
    /// The memory that messages read and write.
    pub memory: Memory,
    /// The list that the entry is appended to.
    pub list: List,
    /// Bits of `options::ME_*`; without any the entry accepts nothing.
    pub options: u32,
    /// The counter, if an option asks for counts.
    pub counter: Option<Counter>,
    /// Which user may reach it; everyone by default.
    pub uid: Option<u32>,
    /// From whom; from everyone by default.
    pub source: Option<ProcessId>,
    /// Match bits that a message must have.
    pub match_bits: u64,
    /// Ones at the match bits that aren't compared.
    pub ignore_bits: u64,
    /// With `options::ME_MANAGE_LOCAL`: bytes below which it unlinks.
    pub min_free: u64,
    /// Comes back in its events.
    pub user_ptr: u64,
}

impl EntrySpec {
    pub(crate) fn for_engine(&self, portal: &PortalTableEntry) -> engine::EntrySpec<Claim> {
        // PTL_RANK_ANY if the interface is logical, else PTL_NID_ANY and PTL_PID_ANY.
        let anyone = match portal.interface().is_logical() {
            true => ProcessId::from_rank(ProcessId::RANK_ANY),
            false => ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
        };
        engine::EntrySpec {
            portal: portal.table_index(),
            buffer: self.memory.buffer().clone(),
            counter: Counter::handle_of(self.counter.as_ref()),
            uid: self.uid.unwrap_or(UID_ANY),
            options: self.options.into(),
            source: self.source.unwrap_or(anyone),
            match_bits: self.match_bits,
            ignore_bits: self.ignore_bits,
            min_free: self.min_free,
            user_ptr: self.user_ptr,
        }
    }
}

/// An entry on a list (PtlLEAppend, PtlMEAppend). Dropping it unlinks it, unless use
/// has; its memory is kept until no message can reach it any more.
///
/// ```
/// use portals4::*;
/// # let portals = Portals::init()?;
/// # let interface = Interface::open(&portals, Options::default())?;
/// # let portal = PortalTableEntry::alloc(&interface, PortalSpec::default())?;
/// let inbox = Region::new(4096);
/// let counter = Counter::alloc(&interface)?;
/// let entry = Entry::append(&portal, EntrySpec {
///     memory: Memory::from(&inbox),
///     options: options::ME_OP_PUT | options::ME_OP_GET | options::ME_EVENT_CT_COMM,
///     counter: Some(counter.clone()),
///     ignore_bits: u64::MAX, // whatever the match bits
///     ..EntrySpec::default()
/// })?;
/// entry.try_unlink().map_err(|(_, why)| why)?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping an entry unlinks it"]
pub struct Entry {
    handle: Handle,
    memory: Memory,
    _counter: Option<Counter>,
    portal: PortalTableEntry,
}

impl Drop for Entry {
    fn drop(&mut self) {
        Dropped::Entry(self.handle).release(std::mem::take(&mut self.memory));
    }
}

impl Entry {
    /// Appends an entry to a list of a portal table entry.
    ///
    /// # Errors
    /// `ArgInvalid` for unknown options, another interface's counter, or memory of more
    /// than `max_iovecs` pieces; `NoSpace` beyond `max_entries`; `ListTooLong`.
    pub fn append(portal: &PortalTableEntry, spec: EntrySpec) -> Result<Entry> {
        deferred_release::retry_all();
        let for_engine = spec.for_engine(portal);
        let handle = process().append(portal.interface().handle(), for_engine, spec.list)?;
        Ok(Entry::new(handle, spec, portal))
    }

    pub(crate) fn new(handle: Handle, spec: EntrySpec, portal: &PortalTableEntry) -> Entry {
        Entry {
            handle,
            memory: spec.memory,
            _counter: spec.counter,
            portal: portal.clone(),
        }
    }

    /// Unlinks it now, unless a message or a header that is kept still uses it.
    ///
    /// # Errors
    /// The entry, with `InUse`, or `ArgInvalid` if use has unlinked it already.
    pub fn try_unlink(self) -> std::result::Result<(), (Entry, Error)> {
        match process().unlink(self.handle) {
            Ok(()) => Ok(()),
            Err(error) => Err((self, error)),
        }
    }

    /// The portal table entry that it belongs to.
    pub fn portal(&self) -> &PortalTableEntry {
        &self.portal
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }
}
