//! Memory descriptors.

use crate::counter::Counter;
use crate::deferred_release::{self, Dropped};
use crate::interface::Interface;
use crate::queue::EventQueue;
use lintel_claim::Memory;
use lintel_engine4 as engine;
use lintel_runtime::process;
use lintel_types::{Error, Handle, Result};

/// Memory of the initiator, with the queue and counter of its operations.
#[derive(Clone, Debug, Default)]
pub struct DescriptorSpec {
    /// The memory that operations read and fill.
    pub memory: Memory,
    /// Bits of `options::MD_*`; they select what is counted and reported.
    pub options: u32,
    /// The queue that full events are posted to.
    pub queue: Option<EventQueue>,
    /// The counter, if an option asks for counts.
    pub counter: Option<Counter>,
}

/// Memory that operations send from, and that replies go to (PtlMDBind). Dropping it
/// releases it; its memory is kept until operations that it began have ended.
///
/// ```
/// use portals4::*;
/// # let portals = Portals::init()?;
/// # let interface = Interface::open(&portals, Options::default())?;
/// let region = Region::new(1 << 20);
/// let descriptor = MemoryDescriptor::bind(&interface, DescriptorSpec {
///     memory: Memory::from(&region),
///     queue: Some(EventQueue::alloc(&interface, 64)?),
///     ..DescriptorSpec::default()
/// })?;
/// descriptor.try_release().map_err(|(_, why)| why)?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping a descriptor releases it"]
pub struct MemoryDescriptor {
    handle: Handle,
    memory: Memory,
    _queue: Option<EventQueue>,
    _counter: Option<Counter>,
    interface: Interface,
}

impl Drop for MemoryDescriptor {
    fn drop(&mut self) {
        Dropped::Descriptor(self.handle).release(std::mem::take(&mut self.memory));
    }
}

impl MemoryDescriptor {
    /// Binds the memory (PtlMDBind).
    ///
    /// # Errors
    /// `ArgInvalid` for unknown options, another interface's queue or counter, or
    /// memory of more than `max_iovecs` pieces; `NoSpace` beyond `max_mds`.
    pub fn bind(interface: &Interface, spec: DescriptorSpec) -> Result<MemoryDescriptor> {
        deferred_release::retry_all();
        let for_engine = engine::DescriptorSpec {
            buffer: spec.memory.buffer().clone(),
            options: spec.options.into(),
            queue: EventQueue::handle_of(spec.queue.as_ref()),
            counter: Counter::handle_of(spec.counter.as_ref()),
        };
        let handle = process().descriptor_bind(interface.handle(), for_engine)?;
        Ok(MemoryDescriptor {
            handle,
            memory: spec.memory,
            _queue: spec.queue,
            _counter: spec.counter,
            interface: interface.clone(),
        })
    }

    /// Releases it now, unless operations that it began are under way.
    ///
    /// # Errors
    /// The descriptor, with `InUse`.
    pub fn try_release(self) -> std::result::Result<(), (MemoryDescriptor, Error)> {
        let handle = self.handle;
        match process().descriptor_release(handle) {
            Ok(()) => Ok(()),
            Err(error) => Err((self, error)),
        }
    }

    /// Bytes of its memory.
    pub fn len(&self) -> u64 {
        self.memory.len()
    }

    /// Whether it has no memory.
    pub fn is_empty(&self) -> bool {
        self.memory.is_empty()
    }

    /// The interface that it was made on.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }
}
