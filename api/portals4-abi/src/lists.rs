//! Objects over user memory: descriptors, and entries in the portal table.

use crate::error::{CallError, Result, check};
use crate::events::{Counter, Queue};
use crate::interface::Ni;
use crate::memory::UserMemory;
use lintel_types::{Error, Handle, List, ProcessId, UID_ANY, options};
use portals4_sys as sys;
use std::ffi::c_int;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// A memory descriptor: operations move bytes out of its memory, or into it.
#[derive(Debug)]
pub struct Descriptor<M: UserMemory> {
    handle: Handle,
    memory: ManuallyDrop<M>,
    ni: Arc<Ni>,
}

/// How a descriptor reports.
#[derive(Clone, Copy, Default, Debug)]
pub struct DescriptorSpec<'a> {
    /// The queue of full events; none are posted without it.
    pub queue: Option<&'a Queue>,
    /// Counts what the options name.
    pub counter: Option<&'a Counter>,
    /// Bits of `PTL_MD_*`; they select what is counted and reported.
    pub options: u32,
}

impl<M: UserMemory> Descriptor<M> {
    pub(crate) fn new(ni: &Arc<Ni>, memory: M, spec: &DescriptorSpec<'_>) -> Result<Self> {
        if spec.options & options::IOVEC != 0 {
            return Err(CallError::new("PtlMDBind", Error::ArgInvalid));
        }
        let md = sys::Md {
            start: memory.address(),
            length: memory.size() as u64,
            options: spec.options,
            eq_handle: spec.queue.map_or(Handle::EQ_NONE, Queue::handle).0,
            ct_handle: spec.counter.map_or(Handle::CT_NONE, Counter::handle).0,
        };
        let mut handle = Handle::INVALID;
        // SAFETY: the structure and the output outlive the call, and the descriptor keeps
        // the memory until it is released.
        let code = unsafe { sys::PtlMDBind(ni.handle, &md, &mut handle) };
        check("PtlMDBind", code)?;
        Ok(Descriptor {
            handle,
            memory: ManuallyDrop::new(memory),
            ni: Arc::clone(ni),
        })
    }

    /// The handle, for calls that this crate doesn't wrap.
    #[inline]
    pub fn handle(&self) -> Handle {
        self.handle
    }
}

impl<M: UserMemory> Drop for Descriptor<M> {
    fn drop(&mut self) {
        if self.ni.release(|| sys::PtlMDRelease(self.handle)) {
            // SAFETY: this runs once, and the library has let go of the memory.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

/// A portal table entry. It goes when it and all entries of its lists are dropped.
#[derive(Clone, Debug)]
pub struct Portal(Arc<Pt>);

#[derive(Debug)]
struct Pt {
    index: u32,
    ni: Arc<Ni>,
}

impl Portal {
    pub(crate) fn new(ni: &Arc<Ni>, wanted: u32, queue: Option<&Queue>) -> Result<Self> {
        let queue = queue.map_or(Handle::EQ_NONE, Queue::handle);
        let mut index = 0;
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlPTAlloc(ni.handle, 0, queue, wanted, &mut index) };
        check("PtlPTAlloc", code)?;
        let ni = Arc::clone(ni);
        Ok(Portal(Arc::new(Pt { index, ni })))
    }

    /// Its index, as peers name it.
    pub fn index(&self) -> u32 {
        self.0.index
    }

    /// Appends an entry to the priority list (`PtlMEAppend`, or `PtlLEAppend` on an
    /// interface without matching).
    ///
    /// # Errors
    /// The code of the call; `PTL_ARG_INVALID` for a range outside the memory, and for an
    /// entry that would unlink itself or take I/O vectors.
    pub fn append<M: UserMemory>(&self, memory: M, spec: &EntrySpec<'_>) -> Result<Entry<M>> {
        let me = spec.over(&memory)?;
        let handle = match self.0.ni.matches {
            true => self.append_me(&me)?,
            false => self.append_le(&me)?,
        };
        Ok(Entry {
            handle,
            memory: ManuallyDrop::new(memory),
            portal: self.clone(),
        })
    }

    fn append_me(&self, me: &sys::Me) -> Result<Handle> {
        let (ni, list, none) = (self.0.ni.handle, List::Priority as u8, ptr::null_mut());
        let mut handle = Handle::INVALID;
        // SAFETY: the structure and the output outlive the call, and the entry keeps the
        // memory until it is unlinked.
        let code = unsafe { sys::PtlMEAppend(ni, self.0.index, me, list, none, &mut handle) };
        check("PtlMEAppend", code).map(|()| handle)
    }

    fn append_le(&self, me: &sys::Me) -> Result<Handle> {
        let (ni, list, none) = (self.0.ni.handle, List::Priority as u8, ptr::null_mut());
        let le = sys::Le {
            start: me.start,
            length: me.length,
            ct_handle: me.ct_handle,
            uid: me.uid,
            options: me.options,
        };
        let mut handle = Handle::INVALID;
        // SAFETY: as in `append_me`.
        let code = unsafe { sys::PtlLEAppend(ni, self.0.index, &le, list, none, &mut handle) };
        check("PtlLEAppend", code).map(|()| handle)
    }
}

impl Drop for Pt {
    fn drop(&mut self) {
        let (ni, index) = (self.ni.handle, self.index);
        self.ni.release(|| sys::PtlPTFree(ni, index));
    }
}

/// A persistent entry of a portal table entry's priority list.
#[derive(Debug)]
pub struct Entry<M: UserMemory> {
    handle: Handle,
    memory: ManuallyDrop<M>,
    portal: Portal,
}

/// What an entry takes, and how it reports.
#[derive(Clone, Debug)]
pub struct EntrySpec<'a> {
    /// Which bytes of the memory it spans; all if this is `None`.
    pub range: Option<Range<usize>>,
    /// Bits that a message must have.
    pub match_bits: u64,
    /// Which of them not to compare.
    pub ignore_bits: u64,
    /// Whose messages it takes.
    pub source: ProcessId,
    /// Counts what the options name.
    pub counter: Option<&'a Counter>,
    /// Bits of `PTL_ME_*`; without any the entry accepts nothing.
    pub options: u32,
}

/// Takes puts and gets of any process whose match bits are 0, and posts all events but
/// those of linking and unlinking.
impl Default for EntrySpec<'_> {
    fn default() -> Self {
        EntrySpec {
            range: None,
            match_bits: 0,
            ignore_bits: 0,
            source: ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
            counter: None,
            options: options::ME_OP_PUT
                | options::ME_OP_GET
                | options::ME_EVENT_LINK_DISABLE
                | options::ME_EVENT_UNLINK_DISABLE,
        }
    }
}

/// An entry that unlinks itself says so by an event while its last message may still be
/// arriving, and an I/O vector would name memory that nobody keeps.
const REFUSED: u32 = options::ME_USE_ONCE | options::ME_MANAGE_LOCAL | options::IOVEC;

impl<'a> EntrySpec<'a> {
    /// As the default, for messages with these match bits, counted and without full events.
    pub fn counted(match_bits: u64, counter: &'a Counter) -> Self {
        let spec = Self::default();
        EntrySpec {
            match_bits,
            counter: Some(counter),
            options: spec.options | options::ME_EVENT_COMM_DISABLE | options::ME_EVENT_CT_COMM,
            ..spec
        }
    }

    /// The C structure, for this memory.
    fn over(&self, memory: &impl UserMemory) -> Result<sys::Me> {
        let range = self.range.clone().unwrap_or(0..memory.size());
        let is_inside = range.start <= range.end && range.end <= memory.size();
        if self.options & REFUSED != 0 || !is_inside {
            return Err(CallError::new("PtlMEAppend", Error::ArgInvalid));
        }
        Ok(sys::Me {
            start: memory.address().wrapping_byte_add(range.start),
            length: range.len() as u64,
            ct_handle: self.counter.map_or(Handle::CT_NONE, Counter::handle).0,
            uid: UID_ANY,
            options: self.options,
            match_id: self.source,
            match_bits: self.match_bits,
            ignore_bits: self.ignore_bits,
            min_free: 0,
        })
    }
}

impl<M: UserMemory> Entry<M> {
    fn unlink(&self) -> c_int {
        match self.portal.0.ni.matches {
            true => sys::PtlMEUnlink(self.handle),
            false => sys::PtlLEUnlink(self.handle),
        }
    }
}

impl<M: UserMemory> Drop for Entry<M> {
    fn drop(&mut self) {
        if self.portal.0.ni.release(|| self.unlink()) {
            // SAFETY: this runs once, and the library has let go of the memory.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}
