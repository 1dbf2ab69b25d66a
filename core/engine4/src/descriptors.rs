//! Memory descriptors: the initiator's memory (Portals 4.3, section `Memory
//! descriptors`).

use crate::Interface;
use lintel_memory::{Buffer, Span};
use lintel_types::{
    CounterIndex, DescriptorIndex, Error, Handle, Kind, MdOptions, QueueIndex, Result,
};

/// What `PtlMDBind` is given.
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
    /// The memory that operations read from and write to.
    pub buffer: Buffer<S>,
    /// What is reported, and how memory is accessed.
    pub options: MdOptions,
    /// Receives full events, unless `PTL_EQ_NONE`.
    pub queue: Handle,
    /// Receives counts, unless `PTL_CT_NONE`.
    pub counter: Handle,
}

pub(crate) struct Descriptor<S> {
    pub(crate) buffer: Buffer<S>,
    pub(crate) options: MdOptions,
    pub(crate) queue: Option<QueueIndex>,
    pub(crate) counter: Option<CounterIndex>,
    /// Operations in flight that still read, write, count or post through it.
    pub(crate) pending: u32,
}

impl<S: Span> Interface<S> {
    /// PtlMDBind.
    ///
    /// # Errors
    /// `ArgInvalid` for unknown options, a queue or counter that isn't live, too
    /// long a vector; `NoSpace` beyond `max_mds`.
    pub fn descriptor_bind(&mut self, spec: DescriptorSpec<S>) -> Result<Handle> {
        self.check_buffer(&spec.buffer)?;
        // Portals 4.3, section `Memory descriptors`, PtlMDBind: unknown options are refused.
        if !MdOptions::all().contains(spec.options) {
            return Err(Error::ArgInvalid);
        }
        let descriptor = Descriptor {
            queue: self.optional_queue(spec.queue)?,
            counter: self.optional_counter(spec.counter)?,
            buffer: spec.buffer,
            options: spec.options,
            pending: 0,
        };
        if self.descriptors.len() >= self.config.limits.max_mds as usize {
            return Err(Error::NoSpace);
        }
        let (index, generation) = self
            .descriptors
            .insert(descriptor)
            .map_err(|_| Error::NoSpace)?;
        Ok(self.handle(Kind::MemoryDescriptor, generation, index.into()))
    }

    /// PtlMDRelease.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live descriptor, `InUse` while
    /// operations are pending on it.
    pub fn descriptor_release(&mut self, descriptor: Handle) -> Result<()> {
        let index = self.descriptor(descriptor)?;
        if self
            .descriptors
            .at(index)
            .is_some_and(|descriptor| descriptor.pending > 0)
        {
            return Err(Error::InUse);
        }
        self.descriptors.remove(index);
        self.descriptors_changed += 1;
        Ok(())
    }

    #[inline]
    pub(crate) fn descriptor(&self, handle: Handle) -> Result<DescriptorIndex> {
        self.live(&self.descriptors, handle, Kind::MemoryDescriptor)
    }

    pub(crate) fn check_buffer(&self, buffer: &Buffer<S>) -> Result<()> {
        match buffer {
            Buffer::Vector(pieces, _) if pieces.len() > self.config.limits.max_iovecs as usize => {
                Err(Error::ArgInvalid)
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn optional_queue(&self, handle: Handle) -> Result<Option<QueueIndex>> {
        match handle {
            Handle::EQ_NONE => Ok(None),
            handle => self.queue(handle).map(Some),
        }
    }

    pub(crate) fn optional_counter(&self, handle: Handle) -> Result<Option<CounterIndex>> {
        match handle {
            Handle::CT_NONE => Ok(None),
            handle => self.counter(handle).map(Some),
        }
    }
}
