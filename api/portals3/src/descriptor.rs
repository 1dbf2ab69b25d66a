//! Memory descriptors.

use crate::deferred_release::{self, Dropped};
use crate::entry::Entry;
use crate::interface::Interface;
use crate::queue::EventQueue;
use lintel_claim::{Claim, Memory};
use lintel_engine3 as engine;
use lintel_memory::{Buffer, Span};
use lintel_runtime::process3;
use lintel_types::Handle;
use lintel_types::portals3::{self, EQ_NONE, Error, MdOptions, Result, THRESHOLD_INFINITE, Unlink};

/// Memory, what it takes, and the queue of its events.
///
/// The default has no memory, takes nothing, never becomes inactive and posts no events.
#[derive(Clone, Debug)]
pub struct DescriptorSpec {
    /// The memory that operations read and fill. `MdOptions::IOVEC` follows from it.
    pub memory: Memory,
    /// Operations until it is inactive, or [`THRESHOLD_INFINITE`].
    pub threshold: i32,
    /// Bytes below which it is inactive, if it manages its offset itself.
    pub max_size: Option<u64>,
    /// What it takes, and which events it posts.
    pub options: MdOptions,
    /// Comes back in its events.
    pub user_ptr: u64,
    /// The queue of its events.
    pub queue: Option<EventQueue>,
    /// Whether it is unlinked once it is inactive and nothing is pending.
    pub unlink: Unlink,
}

impl Default for DescriptorSpec {
    fn default() -> Self {
        DescriptorSpec {
            memory: Memory::default(),
            threshold: THRESHOLD_INFINITE,
            max_size: None,
            options: MdOptions::empty(),
            user_ptr: 0,
            queue: None,
            unlink: Unlink::Retain,
        }
    }
}

impl DescriptorSpec {
    fn for_engine(&self) -> engine::DescriptorSpec<Claim> {
        let buffer = self.memory.buffer().clone();
        let (start, length, implied) = match &buffer {
            Buffer::Contiguous(span) => (Span::address(*span), span.length(), MdOptions::empty()),
            // There is no array; its place stands for one that isn't NULL.
            Buffer::Vector(pieces, _) => {
                let first = pieces.first().map_or(0, |piece| Span::address(*piece));
                (first, pieces.len() as u64, MdOptions::IOVEC)
            }
        };
        let bounded = self
            .max_size
            .map_or(MdOptions::empty(), |_| MdOptions::MAX_SIZE);
        let chosen = self.options - MdOptions::IOVEC - MdOptions::MAX_SIZE;
        engine::DescriptorSpec {
            md: portals3::MemoryDescriptor {
                start,
                length,
                threshold: self.threshold,
                max_size: self.max_size.unwrap_or(0),
                options: chosen | implied | bounded,
                user_ptr: self.user_ptr,
                queue: EventQueue::handle_of(self.queue.as_ref()),
            },
            buffer,
            unlink: self.unlink,
        }
    }
}

/// Memory of the target, attached to an entry (PtlMDAttach), or of the initiator (PtlMDBind).
/// Dropping it unlinks it, and an entry with `Unlink::Unlink` too; its memory is kept until no
/// message uses it.
///
/// ```
/// use portals33::*;
/// # let portals = Portals::init()?;
/// # let interface = Interface::open(&portals, Options::default())?;
/// let entry = Entry::attach(&interface, 4, Position::After, EntrySpec::default())?;
/// let spec = DescriptorSpec {
///     memory: Memory::from(&Region::new(64)),
///     options: MdOptions::OP_PUT,
///     threshold: 0, // inactive until it is armed
///     ..DescriptorSpec::default()
/// };
/// let mut target = MemoryDescriptor::attach(&entry, spec.clone())?;
/// target.update(DescriptorSpec { threshold: 1, ..spec }, None)?;
/// assert_eq!(target.threshold()?, 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping a descriptor unlinks it"]
pub struct MemoryDescriptor {
    handle: Handle,
    memory: Memory,
    queue: Option<EventQueue>,
    interface: Interface,
}

impl Drop for MemoryDescriptor {
    fn drop(&mut self) {
        Dropped::Descriptor(self.handle).release(std::mem::take(&mut self.memory));
    }
}

impl MemoryDescriptor {
    /// Attaches memory to an entry.
    ///
    /// # Errors
    /// `MeInUse` if the entry has a descriptor, `MeInvalid` if it went with one; `MdIllegal` for a
    /// threshold below [`THRESHOLD_INFINITE`], unknown options, another interface's queue or
    /// memory of more than `max_md_iovecs` pieces; `NoSpace` beyond `max_mds`.
    pub fn attach(entry: &Entry, spec: DescriptorSpec) -> Result<MemoryDescriptor> {
        deferred_release::retry_all();
        let handle = process3().descriptor_attach3(entry.handle(), spec.for_engine())?;
        Ok(MemoryDescriptor::new(handle, spec, entry.interface()))
    }

    /// Binds memory to the interface, for operations of this process.
    ///
    /// # Errors
    /// As [`attach`](Self::attach), the entry apart.
    pub fn bind(interface: &Interface, spec: DescriptorSpec) -> Result<MemoryDescriptor> {
        deferred_release::retry_all();
        let handle = process3().descriptor_bind3(interface.handle(), spec.for_engine())?;
        Ok(MemoryDescriptor::new(handle, spec, interface))
    }

    fn new(handle: Handle, spec: DescriptorSpec, interface: &Interface) -> MemoryDescriptor {
        MemoryDescriptor {
            handle,
            memory: spec.memory,
            queue: spec.queue,
            interface: interface.clone(),
        }
    }

    /// Replaces it in one step, if `test` has no event and no operation has begun that will post
    /// to it (PtlMDUpdate). Its local offset is 0 then; it keeps its unlink operation.
    ///
    /// # Errors
    /// `MdNoUpdate` if it isn't so, or operations use the descriptor; `MdInvalid` if it is
    /// unlinked; as [`attach`](Self::attach). Then nothing has changed.
    pub fn update(&mut self, spec: DescriptorSpec, test: Option<&EventQueue>) -> Result<()> {
        let test = EventQueue::handle_of(test);
        process3().descriptor_update3(self.handle, Some(spec.for_engine()), test)?;
        self.memory = spec.memory;
        self.queue = spec.queue;
        Ok(())
    }

    /// Operations until it is inactive, or [`THRESHOLD_INFINITE`].
    ///
    /// # Errors
    /// `MdInvalid` if it is unlinked.
    pub fn threshold(&self) -> Result<i32> {
        let state = process3().descriptor_update3(self.handle, None, EQ_NONE);
        state.map(|md| md.threshold)
    }

    /// Unlinks it now, unless operations use it.
    ///
    /// # Errors
    /// The descriptor, with `MdInUse`, or `MdInvalid` if it is unlinked already.
    pub fn try_unlink(self) -> std::result::Result<(), (MemoryDescriptor, Error)> {
        match Dropped::Descriptor(self.handle).unlink() {
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

    /// The queue of its events.
    pub fn queue(&self) -> Option<&EventQueue> {
        self.queue.as_ref()
    }

    /// The interface that it was made on.
    pub fn interface(&self) -> &Interface {
        &self.interface
    }

    pub(crate) fn handle(&self) -> Handle {
        self.handle
    }
}
