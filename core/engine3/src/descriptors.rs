//! Memory descriptors (section 3.10).

use crate::events::Details;
use crate::{Dialect, Host, Interface};
use lintel_memory::{Buffer, Span};
use lintel_types::portals3::{
    EQ_NONE, Error, EventKind, MdOptions, MemoryDescriptor, Result, THRESHOLD_INFINITE, Unlink,
};
use lintel_types::{DescriptorIndex, EntryIndex, Handle, Kind, NiFail, QueueIndex};

/// What `PtlMDAttach` and `PtlMDBind` are given.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "S: Span + serde::Serialize",
        deserialize = "S: Span + serde::Deserialize<'de>"
    ))
)]
pub struct DescriptorSpec<S> {
    /// The caller's structure, which events return.
    pub md: MemoryDescriptor,
    /// The memory that it names.
    pub buffer: Buffer<S>,
    /// Whether it goes once it is inactive.
    pub unlink: Unlink,
}

pub(crate) struct Descriptor<S> {
    /// Its own, which each event returns.
    pub(crate) handle: Handle,
    /// The caller's structure; its threshold is lowered with each operation.
    pub(crate) md: MemoryDescriptor,
    pub(crate) buffer: Buffer<S>,
    unlink: Unlink,
    pub(crate) queue: Option<QueueIndex>,
    /// The entry that it is attached to, unless it is free-floating.
    pub(crate) entry: Option<EntryIndex>,
    pub(crate) local_offset: u64,
    /// Operations that have begun and not ended, and gets whose reply hasn't come.
    pub(crate) pending: u32,
}

impl<S: Span> Descriptor<S> {
    /// Whether operations may still be done with it: threshold and max_size (section
    /// 3.10.1).
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        self.md.threshold != 0 && !self.is_filled()
    }

    /// Whether less than max_size is left of it (section 3.10, PTL_MD_MAX_SIZE).
    #[inline]
    fn is_filled(&self) -> bool {
        let options = self.md.options;
        options.contains(MdOptions::MAX_SIZE)
            && !options.contains(MdOptions::MANAGE_REMOTE)
            && self.buffer.length().saturating_sub(self.local_offset) < self.md.max_size
    }

    /// Whether it is to go now.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.unlink == Unlink::Unlink && self.pending == 0 && !self.is_active()
    }

    /// Counts an operation against the threshold.
    #[inline]
    pub(crate) fn count(&mut self) {
        if self.md.threshold > 0 {
            self.md.threshold -= 1;
        }
    }
}

impl<S: Span> Interface<S> {
    /// PtlMDAttach: to a match entry, as a target; it may be a source as well.
    ///
    /// # Errors
    /// `MeInvalid` for a handle that isn't a live entry, `MeInUse` if the entry has a
    /// descriptor, `NoSpace` beyond `max_mds`; `EqInvalid` for a queue that isn't live,
    /// `MdIllegal` for a queue of another interface and all else that is wrong with the
    /// structure.
    pub fn descriptor_attach(&mut self, entry: Handle, spec: DescriptorSpec<S>) -> Result<Handle> {
        let index = self.entry(entry)?;
        if self
            .entries
            .at(index)
            .is_some_and(|entry| entry.descriptor.is_some())
        {
            return Err(Error::MeInUse);
        }
        let mut descriptor = self.new_descriptor(spec)?;
        descriptor.entry = Some(index);
        self.insert_descriptor(descriptor)
    }

    /// PtlMDBind: free-floating, for the initiator's side only.
    ///
    /// # Errors
    /// As [`descriptor_attach`](Self::descriptor_attach), the entry apart.
    pub fn descriptor_bind(&mut self, spec: DescriptorSpec<S>) -> Result<Handle> {
        let descriptor = self.new_descriptor(spec)?;
        self.insert_descriptor(descriptor)
    }

    /// PtlMDUnlink. An entry with PTL_UNLINK goes along.
    ///
    /// # Errors
    /// `MdInvalid` for a handle that isn't a live descriptor, `MdInUse` while operations are
    /// pending on it.
    pub fn descriptor_unlink<H: Host<S>>(&mut self, handle: Handle, host: &mut H) -> Result<()> {
        let index = self.descriptor(handle)?;
        let descriptor = self.descriptors.at(index).ok_or(Error::MdInvalid)?;
        if descriptor.pending > 0 {
            return Err(Error::MdInUse);
        }
        let options = descriptor.md.options;
        let asked = options.contains(MdOptions::EVENT_MANUAL_UNLINK_ENABLE);
        if asked && self.config.dialect == Dialect::Cray {
            let details = self.own_details();
            let unlinked = (NiFail::Ok, None);
            self.report(index, EventKind::Unlink, &details, unlinked, host);
        }
        self.remove_descriptor(index);
        Ok(())
    }

    /// The present state of a descriptor, which PtlMDUpdate returns.
    ///
    /// # Errors
    /// `MdInvalid` for a handle that isn't a live descriptor.
    pub fn descriptor_state(&self, handle: Handle) -> Result<MemoryDescriptor> {
        let index = self.descriptor(handle)?;
        let descriptor = self.descriptors.at(index).ok_or(Error::MdInvalid)?;
        Ok(descriptor.md)
    }

    /// PtlMDUpdate with a new structure: replaces the descriptor's, with local offset 0, if
    /// nothing is pending on it and the test queue is empty. The spec's unlink operation
    /// isn't looked at; the descriptor keeps its own.
    ///
    /// # Errors
    /// `MdInvalid` for a handle that isn't a live descriptor; `EqInvalid`, `MdIllegal` as
    /// [`descriptor_attach`](Self::descriptor_attach); `MdNoUpdate` if it isn't so. Then
    /// nothing has changed.
    pub fn descriptor_update<H: Host<S>>(
        &mut self,
        handle: Handle,
        new: DescriptorSpec<S>,
        test: Handle,
        host: &mut H,
    ) -> Result<()> {
        let index = self.descriptor(handle)?;
        let queue = self.check_descriptor(&new)?;
        self.check_quiet(test, host)?;
        let descriptor = self.descriptors.at_mut(index).ok_or(Error::MdInvalid)?;
        if descriptor.pending > 0 {
            return Err(Error::MdNoUpdate);
        }
        descriptor.md = new.md;
        descriptor.buffer = new.buffer;
        descriptor.queue = queue;
        descriptor.local_offset = 0;
        Ok(())
    }

    #[inline]
    pub(crate) fn descriptor(&self, handle: Handle) -> Result<DescriptorIndex> {
        let live = self.live(&self.descriptors, handle, Kind::MemoryDescriptor);
        live.ok_or(Error::MdInvalid)
    }

    /// Checks what a descriptor is given; returns its queue.
    pub(crate) fn check_descriptor(&self, spec: &DescriptorSpec<S>) -> Result<Option<QueueIndex>> {
        let md = &spec.md;
        let named = match &spec.buffer {
            Buffer::Contiguous(span) => {
                !md.options.contains(MdOptions::IOVEC) && span.length() == md.length
            }
            Buffer::Vector(pieces, _) => {
                md.options.contains(MdOptions::IOVEC)
                    && pieces.len() as u64 == md.length
                    && pieces.len() <= self.config.limits.max_md_iovecs as usize
            }
        };
        let known = MdOptions::all().contains(md.options);
        if !named || !known || md.threshold < THRESHOLD_INFINITE {
            return Err(Error::MdIllegal);
        }
        if md.start == 0 && md.length > 0 {
            return Err(Error::MdIllegal);
        }
        if md.queue == EQ_NONE {
            return Ok(None);
        }
        if md.queue.is(Kind::EventQueue) && md.queue.interface() != self.config.number {
            return Err(Error::MdIllegal);
        }
        self.queue(md.queue).map(Some)
    }

    pub(crate) fn new_descriptor(&self, spec: DescriptorSpec<S>) -> Result<Descriptor<S>> {
        let queue = self.check_descriptor(&spec)?;
        if self.descriptors.len() >= self.config.limits.max_mds as usize {
            return Err(Error::NoSpace);
        }
        Ok(Descriptor {
            handle: Handle::INVALID,
            md: spec.md,
            buffer: spec.buffer,
            unlink: spec.unlink,
            queue,
            entry: None,
            local_offset: 0,
            pending: 0,
        })
    }

    pub(crate) fn insert_descriptor(&mut self, descriptor: Descriptor<S>) -> Result<Handle> {
        let entry = descriptor.entry;
        let inserted = self.descriptors.insert(descriptor);
        let (index, generation) = inserted.map_err(|_| Error::NoSpace)?;
        self.status.descriptors.add();
        if let Some(entry) = entry.and_then(|entry| self.entries.at_mut(entry)) {
            entry.descriptor = Some(index);
        }
        let handle = self.handle(Kind::MemoryDescriptor, generation, index.into());
        if let Some(descriptor) = self.descriptors.at_mut(index) {
            descriptor.handle = handle;
        }
        Ok(handle)
    }

    /// What events that belong to no operation say.
    fn own_details(&self) -> Details {
        Details {
            initiator: self.config.process,
            uid: self.config.uid,
            jid: self.config.jid,
            pt_index: 0,
            match_bits: 0,
            hdr_data: 0,
            rlength: 0,
            mlength: 0,
            offset: 0,
        }
    }
}
