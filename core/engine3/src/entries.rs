//! Match entries (section 3.9): attaching, inserting, unlinking.

use crate::access::names;
use crate::descriptors::{Descriptor, DescriptorSpec};
use crate::{Host, Interface};
use lintel_memory::Span;
use lintel_types::portals3::{Error, Position, Result, Unlink};
use lintel_types::{DescriptorIndex, EntryIndex, Handle, Kind, PortalIndex, ProcessId};

/// What a match entry is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EntrySpec {
    /// The process whose messages it takes; nid and pid each have a wildcard.
    pub source: ProcessId,
    /// Match bits that a message must carry.
    pub match_bits: u64,
    /// Bits that don't matter.
    pub ignore_bits: u64,
    /// Whether it goes with its memory descriptor.
    pub unlink: Unlink,
}

pub(crate) struct Entry {
    portal: PortalIndex,
    source: ProcessId,
    pub(crate) unlink: Unlink,
    pub(crate) descriptor: Option<DescriptorIndex>,
}

impl Entry {
    /// The process that it is for, or a wildcard.
    pub(crate) fn source(&self) -> ProcessId {
        self.source
    }

    /// The descriptor, if the entry is for messages from that process.
    #[inline]
    pub(crate) fn descriptor_for(&self, from: ProcessId) -> Option<DescriptorIndex> {
        self.descriptor.filter(|_| names(self.source, from))
    }
}

/// Where a new entry goes.
#[derive(Clone, Copy)]
enum Place {
    Head(PortalIndex),
    Tail(PortalIndex),
    Before(EntryIndex),
    After(EntryIndex),
}

impl<S: Span> Interface<S> {
    /// PtlMEAttach: at the head of the list (before) or at its tail (after).
    ///
    /// # Errors
    /// `PtIndexInvalid` beyond the table, `MeListTooLong` beyond `max_me_list`, `NoSpace`
    /// beyond `max_mes`.
    pub fn entry_attach(
        &mut self,
        portal: u32,
        spec: EntrySpec,
        position: Position,
    ) -> Result<Handle> {
        let place = self.end_of_list(portal, position)?;
        self.link_entry(place, spec)
    }

    /// PtlMEAttachAny (section 3.9.3): at the first index whose list is empty.
    ///
    /// # Errors
    /// `PtFull` if there is none, `NoSpace` beyond `max_mes`.
    pub fn entry_attach_any(&mut self, spec: EntrySpec) -> Result<(PortalIndex, Handle)> {
        let free = self.portals.iter().position(|list| list.is_empty());
        // The table has at most 4096 entries.
        let portal = PortalIndex(free.ok_or(Error::PtFull)? as u16);
        let entry = self.link_entry(Place::Tail(portal), spec)?;
        Ok((portal, entry))
    }

    /// PtlMEInsert: directly before or behind another entry.
    ///
    /// # Errors
    /// `MeInvalid` for a base that isn't a live entry, `MeListTooLong` beyond `max_me_list`,
    /// `NoSpace` beyond `max_mes`.
    pub fn entry_insert(
        &mut self,
        base: Handle,
        spec: EntrySpec,
        position: Position,
    ) -> Result<Handle> {
        let place = self.beside(base, position)?;
        self.link_entry(place, spec)
    }

    /// PtlMEUnlink: its descriptor goes with it, without an event.
    ///
    /// # Errors
    /// `MeInvalid` for a handle that isn't a live entry, `MeInUse` while operations are
    /// pending on its descriptor.
    pub fn entry_unlink(&mut self, handle: Handle) -> Result<()> {
        let index = self.entry(handle)?;
        let descriptor = self.entries.at(index).and_then(|entry| entry.descriptor);
        if let Some(descriptor) = descriptor {
            let pending = self.descriptors.at(descriptor).map_or(0, |md| md.pending);
            if pending > 0 {
                return Err(Error::MeInUse);
            }
            self.descriptors.remove(descriptor);
            self.status.descriptors.remove();
        }
        self.remove_entry(index);
        Ok(())
    }

    /// PtlMEMDAttach: PtlMEAttach and PtlMDAttach in one. Returns entry and descriptor.
    ///
    /// # Errors
    /// As [`entry_attach`](Self::entry_attach) and
    /// [`descriptor_attach`](Self::descriptor_attach); then neither is there.
    pub fn entry_attach_with(
        &mut self,
        portal: u32,
        entry: EntrySpec,
        position: Position,
        md: DescriptorSpec<S>,
    ) -> Result<(Handle, Handle)> {
        let place = self.end_of_list(portal, position)?;
        self.link_both(place, entry, md)
    }

    /// PtlMEMDInsert: PtlMEInsert and PtlMDAttach in one. Returns entry and descriptor.
    ///
    /// # Errors
    /// As [`entry_insert`](Self::entry_insert) and
    /// [`descriptor_attach`](Self::descriptor_attach); then neither is there.
    pub fn entry_insert_with(
        &mut self,
        base: Handle,
        entry: EntrySpec,
        position: Position,
        md: DescriptorSpec<S>,
    ) -> Result<(Handle, Handle)> {
        let place = self.beside(base, position)?;
        self.link_both(place, entry, md)
    }

    /// PtlMEMDPost: as [`entry_insert_with`](Self::entry_insert_with), only if the test queue
    /// is empty and no operation has begun that will post to it.
    ///
    /// # Errors
    /// As there; `EqInvalid` for a test queue that isn't live, `MdNoUpdate` if it isn't
    /// empty.
    pub fn entry_post<H: Host<S>>(
        &mut self,
        base: Handle,
        entry: EntrySpec,
        position: Position,
        md: DescriptorSpec<S>,
        test: Handle,
        host: &mut H,
    ) -> Result<(Handle, Handle)> {
        let place = self.beside(base, position)?;
        self.check_descriptor(&md)?;
        self.check_quiet(test, host)?;
        self.link_both(place, entry, md)
    }

    pub(crate) fn entry(&self, handle: Handle) -> Result<EntryIndex> {
        let live = self.live(&self.entries, handle, Kind::MatchEntry);
        live.ok_or(Error::MeInvalid)
    }

    fn end_of_list(&self, portal: u32, position: Position) -> Result<Place> {
        if portal as usize >= self.portals.len() {
            return Err(Error::PtIndexInvalid);
        }
        // The table has at most 4096 entries.
        let portal = PortalIndex(portal as u16);
        Ok(match position {
            Position::Before => Place::Head(portal),
            Position::After => Place::Tail(portal),
        })
    }

    fn beside(&self, base: Handle, position: Position) -> Result<Place> {
        let base = self.entry(base)?;
        Ok(match position {
            Position::Before => Place::Before(base),
            Position::After => Place::After(base),
        })
    }

    fn portal_of(&self, place: Place) -> Result<PortalIndex> {
        match place {
            Place::Head(portal) | Place::Tail(portal) => Ok(portal),
            Place::Before(base) | Place::After(base) => {
                let base = self.entries.at(base).ok_or(Error::MeInvalid)?;
                Ok(base.portal)
            }
        }
    }

    fn link_both(
        &mut self,
        place: Place,
        entry: EntrySpec,
        md: DescriptorSpec<S>,
    ) -> Result<(Handle, Handle)> {
        let mut descriptor = self.new_descriptor(md)?;
        let entry = self.link_entry(place, entry)?;
        let index = EntryIndex(entry.index());
        descriptor.entry = Some(index);
        match self.insert_descriptor(descriptor) {
            Ok(md) => Ok((entry, md)),
            Err(error) => {
                self.remove_entry(index);
                Err(error)
            }
        }
    }

    fn link_entry(&mut self, place: Place, spec: EntrySpec) -> Result<Handle> {
        let portal = self.portal_of(place)?;
        let limits = &self.config.limits;
        if self.portals[portal.position()].len() >= limits.max_me_list as usize {
            return Err(Error::MeListTooLong);
        }
        if self.entries.len() >= limits.max_mes as usize {
            return Err(Error::NoSpace);
        }
        let entry = Entry {
            portal,
            source: spec.source,
            unlink: spec.unlink,
            descriptor: None,
        };
        let inserted = self.entries.insert(entry);
        let (index, generation) = inserted.map_err(|_| Error::NoSpace)?;
        let (bits, ignore) = (spec.match_bits, spec.ignore_bits);
        let list = &mut self.portals[portal.position()];
        match place {
            Place::Head(_) => list.push_front(index.0, bits, ignore),
            Place::Tail(_) => list.push_back(index.0, bits, ignore),
            Place::Before(base) => list.insert_before(base.0, index.0, bits, ignore),
            Place::After(base) => list.insert_after(base.0, index.0, bits, ignore),
        }
        let length = list.len();
        self.status.list_grew(portal.position(), length);
        self.status.entries.add();
        Ok(self.handle(Kind::MatchEntry, generation, index.into()))
    }

    pub(crate) fn remove_entry(&mut self, index: EntryIndex) {
        if let Some(entry) = self.entries.remove(index) {
            self.portals[entry.portal.position()].remove(index.0);
            self.status.entries.remove();
        }
    }

    /// Takes a descriptor away; an entry with PTL_UNLINK goes with it, another one stays,
    /// empty (section 3.9).
    pub(crate) fn remove_descriptor(&mut self, index: DescriptorIndex) {
        let Some(Descriptor { entry, .. }) = self.descriptors.remove(index) else {
            return;
        };
        self.status.descriptors.remove();
        let Some(entry) = entry else { return };
        match self.entries.at_mut(entry) {
            Some(linked) if linked.unlink == Unlink::Retain => linked.descriptor = None,
            _ => self.remove_entry(entry),
        }
    }
}
