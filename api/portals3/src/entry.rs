//! Match entries.

use crate::deferred_release::{self, Dropped};
use crate::interface::Interface;
use lintel_claim::Memory;
use lintel_engine3 as engine;
use lintel_runtime::process3;
use lintel_types::portals3::{Error, NID_ANY, PID_ANY, Position, Result, Unlink};
use lintel_types::{Handle, ProcessId};

/// Which messages an entry takes. The default takes those with match bits 0 from everybody.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntrySpec {
    /// From whom; from everyone by default. Nid and pid each have a wildcard.
    pub source: Option<ProcessId>,
    /// Match bits that a message must have.
    pub match_bits: u64,
    /// Ones at the match bits that aren't compared.
    pub ignore_bits: u64,
    /// Whether the entry goes with its descriptor.
    pub unlink: Unlink,
}

/// An entry of a match list (PtlMEAttach). It takes messages while a descriptor is attached to
/// it. Dropping it unlinks it with its descriptor, once no message uses that.
///
/// ```
/// use portals33::*;
/// # let portals = Portals::init()?;
/// # let interface = Interface::open(&portals, Options::default())?;
/// let (portal, entry) = Entry::attach_any(&interface, EntrySpec::default())?;
/// let spec = EntrySpec { match_bits: 1, ..EntrySpec::default() };
/// let before = entry.insert(Position::Before, spec)?;
/// assert_eq!(interface.status(register::MLIST_LEN | portal << 16)?, 2);
/// before.try_unlink().map_err(|(_, why)| why)?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping an entry unlinks it"]
pub struct Entry {
    handle: Handle,
    interface: Interface,
}

impl Drop for Entry {
    fn drop(&mut self) {
        Dropped::Entry(self.handle).release(Memory::default());
    }
}

impl Entry {
    /// Attaches an entry to the list of a portal table index, before or behind all others.
    ///
    /// # Errors
    /// `PtIndexInvalid` beyond the table, `NoSpace` beyond `max_mes`, `MeListTooLong`.
    pub fn attach(
        interface: &Interface,
        portal: u32,
        position: Position,
        spec: EntrySpec,
    ) -> Result<Entry> {
        deferred_release::retry_all();
        let handle =
            process3().entry_attach3(interface.handle(), portal, spec.for_engine(), position)?;
        Ok(Entry::new(handle, interface))
    }

    /// Attaches an entry at an index whose list is empty, and returns both (PtlMEAttachAny).
    ///
    /// # Errors
    /// `PtFull` if each list has an entry, `NoSpace` beyond `max_mes`.
    pub fn attach_any(interface: &Interface, spec: EntrySpec) -> Result<(u32, Entry)> {
        deferred_release::retry_all();
        let (portal, handle) =
            process3().entry_attach_any3(interface.handle(), spec.for_engine())?;
        Ok((portal.into(), Entry::new(handle, interface)))
    }

    /// Inserts another entry directly before or behind this one (PtlMEInsert).
    ///
    /// # Errors
    /// `MeInvalid` if this one went with its descriptor; `NoSpace`, `MeListTooLong`.
    pub fn insert(&self, position: Position, spec: EntrySpec) -> Result<Entry> {
        let handle = process3().entry_insert3(self.handle, spec.for_engine(), position)?;
        Ok(Entry::new(handle, &self.interface))
    }

    /// Unlinks it now with its descriptor, unless a message uses that.
    ///
    /// # Errors
    /// The entry, with `MeInUse`, or `MeInvalid` if it went with its descriptor.
    pub fn try_unlink(self) -> std::result::Result<(), (Entry, Error)> {
        match Dropped::Entry(self.handle).unlink() {
            Ok(()) => Ok(()),
            Err(error) => Err((self, error)),
        }
    }

    /// The interface that it was made on.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    fn new(handle: Handle, interface: &Interface) -> Entry {
        Entry {
            handle,
            interface: interface.clone(),
        }
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }
}

impl EntrySpec {
    fn for_engine(&self) -> engine::EntrySpec {
        engine::EntrySpec {
            source: self.source.unwrap_or(ProcessId::new(NID_ANY, PID_ANY)),
            match_bits: self.match_bits,
            ignore_bits: self.ignore_bits,
            unlink: self.unlink,
        }
    }
}
