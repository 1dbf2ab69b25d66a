//! Portals calls as the workers need them: the functions of libportals.so.4,
//! linked as Rust, with results for return codes.

use crate::memory::Memory;
use crate::places::Places;
use lintel_types::{CountingEvent, Event, Handle, Limits, ProcessId, options};
use portals::{Le, Md, Me};
use std::ffi::c_int;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::OnceLock;

/// A return code other than `PTL_OK`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Code(pub c_int);

/// `PTL_EQ_EMPTY`
pub const EMPTY: Code = Code(4);
/// `PTL_NO_INIT`
pub const NO_INIT: Code = Code(9);
/// `PTL_ABORTED`
pub const ABORTED: Code = Code(15);
/// `PTL_ACK_REQ`
pub const ACK: u8 = 1;
/// `PTL_CT_ACK_REQ`
pub const CT_ACK: u8 = 2;
/// Milliseconds that a call waits at most.
pub const PATIENCE: u32 = 20_000;
/// The portal table index that the workers use.
pub const PORTAL: u32 = 3;

fn code(code: c_int) -> Result<(), Code> {
    if code == 0 { Ok(()) } else { Err(Code(code)) }
}

/// The process of that number in this worker's job.
pub fn process(number: u32) -> ProcessId {
    places().process(number)
}

/// The places of this worker's job.
pub fn places() -> Places {
    static PLACES: OnceLock<Places> = OnceLock::new();
    *PLACES.get_or_init(Places::from_env)
}

/// Portals, and a physical interface.
pub struct Interface {
    /// Its handle.
    pub handle: Handle,
    matching: bool,
}

/// What is offered to others.
#[derive(Clone)]
pub struct Entry {
    /// The memory.
    pub memory: Memory,
    /// What of it, bytes.
    pub range: Range<usize>,
    /// Portal table index.
    pub portal: u32,
    /// Match bits, where the interface matches.
    pub bits: u64,
    /// Those that don't matter.
    pub ignore: u64,
    /// Beside puts and gets.
    pub options: u32,
    /// Counts where the options say so.
    pub counter: Handle,
}

/// Where an operation goes.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The process.
    pub process: ProcessId,
    /// The entry there.
    pub bits: u64,
    /// Offset there.
    pub offset: u64,
}

impl Interface {
    /// `PtlInit` and `PtlNIInit`, as the process of that number.
    pub fn open(number: u32) -> Result<Interface, Code> {
        init()?;
        Self::again(process(number).pid)
    }

    /// `PtlInit` and `PtlNIInit` with any pid.
    pub fn open_any() -> Result<Interface, Code> {
        init()?;
        Self::again(ProcessId::PID_ANY)
    }

    /// `PtlNIInit` alone, of a matching interface.
    pub fn again(pid: u32) -> Result<Interface, Code> {
        Self::of_kind(options::NI_MATCHING, pid)
    }

    /// `PtlNIInit` alone, of an interface without matching.
    pub fn plain(pid: u32) -> Result<Interface, Code> {
        Self::of_kind(options::NI_NO_MATCHING, pid)
    }

    fn of_kind(matching: u32, pid: u32) -> Result<Interface, Code> {
        let mut handle = Handle::INVALID;
        let kind = matching | options::NI_PHYSICAL;
        let none = std::ptr::null::<Limits>();
        // SAFETY: null limits are allowed; the handle is ours.
        code(unsafe {
            portals::PtlNIInit(u32::MAX, kind, pid, none, null_mut(), &raw mut handle)
        })?;
        Ok(Interface {
            handle,
            matching: matching == options::NI_MATCHING,
        })
    }

    /// `PtlNIFini` and `PtlFini`.
    pub fn close(self) -> Result<(), Code> {
        let closed = code(portals::PtlNIFini(self.handle));
        portals::PtlFini();
        closed
    }

    /// `PtlNIFini` alone.
    pub fn close_alone(self) -> Result<(), Code> {
        code(portals::PtlNIFini(self.handle))
    }

    /// `PtlGetPhysId`
    pub fn id(&self) -> Result<ProcessId, Code> {
        let mut id = ProcessId::default();
        // SAFETY: the place is ours.
        code(unsafe { portals::PtlGetPhysId(self.handle, &raw mut id) })?;
        Ok(id)
    }

    /// `PtlEQAlloc`
    pub fn queue(&self, count: u64) -> Result<Handle, Code> {
        let mut queue = Handle::INVALID;
        // SAFETY: the place is ours.
        code(unsafe { portals::PtlEQAlloc(self.handle, count, &raw mut queue) })?;
        Ok(queue)
    }

    /// `PtlCTAlloc`
    pub fn counter(&self) -> Result<Handle, Code> {
        let mut counter = Handle::INVALID;
        // SAFETY: the place is ours.
        code(unsafe { portals::PtlCTAlloc(self.handle, &raw mut counter) })?;
        Ok(counter)
    }

    /// `PtlPTAlloc` of [`PORTAL`].
    pub fn portal(&self, queue: Handle) -> Result<(), Code> {
        self.portal_at(PORTAL, queue)
    }

    /// `PtlPTAlloc` of an index.
    pub fn portal_at(&self, portal: u32, queue: Handle) -> Result<(), Code> {
        let mut index = 0;
        // SAFETY: the place is ours.
        code(unsafe { portals::PtlPTAlloc(self.handle, 0, queue, portal, &raw mut index) })
    }

    /// `PtlMEAppend`: all of the memory, to put to and get from.
    pub fn expose(&self, memory: Memory, bits: u64, more: u32) -> Result<(), Code> {
        self.expose_counted(memory, bits, more, Handle::CT_NONE)
    }

    /// As [`expose`](Self::expose), counting.
    pub fn expose_counted(
        &self,
        memory: Memory,
        bits: u64,
        more: u32,
        counter: Handle,
    ) -> Result<(), Code> {
        self.append(&Entry {
            memory,
            range: 0..memory.bytes(),
            portal: PORTAL,
            bits,
            ignore: 0,
            options: more,
            counter,
        })
    }

    /// `PtlMEAppend`, or `PtlLEAppend` on an interface without matching.
    pub fn append(&self, entry: &Entry) -> Result<(), Code> {
        let more = options::ME_OP_PUT | options::ME_OP_GET | options::ME_EVENT_LINK_DISABLE;
        let me = Me {
            start: entry
                .memory
                .address()
                .wrapping_add(entry.range.start)
                .cast(),
            length: entry.range.len() as u64,
            ct_handle: entry.counter.0,
            uid: u32::MAX,
            options: entry.options | more,
            match_id: ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
            match_bits: entry.bits,
            ignore_bits: entry.ignore,
            min_free: 0,
        };
        match self.matching {
            true => self.append_me(entry.portal, &me),
            false => self.append_le(entry.portal, &me),
        }
    }

    fn append_me(&self, portal: u32, me: &Me) -> Result<(), Code> {
        let (list, mut handle) = (0, Handle::INVALID);
        let (entry, place) = (std::ptr::from_ref(me), &raw mut handle);
        // SAFETY: the entry is valid and its memory lives for ever.
        code(unsafe { portals::PtlMEAppend(self.handle, portal, entry, list, null_mut(), place) })
    }

    fn append_le(&self, portal: u32, me: &Me) -> Result<(), Code> {
        let (list, mut handle) = (0, Handle::INVALID);
        let le = Le {
            start: me.start,
            length: me.length,
            ct_handle: me.ct_handle,
            uid: me.uid,
            options: me.options,
        };
        let (entry, place) = (&raw const le, &raw mut handle);
        // SAFETY: the entry is valid and its memory lives for ever.
        code(unsafe { portals::PtlLEAppend(self.handle, portal, entry, list, null_mut(), place) })
    }

    /// `PtlMDBind`: all of the memory.
    pub fn bind(&self, memory: Memory, queue: Handle) -> Result<Handle, Code> {
        self.bind_counted(memory, queue, Handle::CT_NONE, 0)
    }

    /// As [`bind`](Self::bind), counting.
    pub fn bind_counted(
        &self,
        memory: Memory,
        queue: Handle,
        counter: Handle,
        more: u32,
    ) -> Result<Handle, Code> {
        let md = Md {
            start: memory.address().cast(),
            length: memory.bytes() as u64,
            options: more,
            eq_handle: queue.0,
            ct_handle: counter.0,
        };
        let mut handle = Handle::INVALID;
        // SAFETY: the descriptor is valid and its memory lives for ever.
        code(unsafe { portals::PtlMDBind(self.handle, &raw const md, &raw mut handle) })?;
        Ok(handle)
    }
}

/// `PtlPut` from the same offset as it goes to.
pub fn put(from: Handle, length: u64, ack: u8, to: Target, user: usize) -> Result<(), Code> {
    let user = std::ptr::without_provenance_mut(user);
    code(portals::PtlPut(
        from, to.offset, length, ack, to.process, PORTAL, to.bits, to.offset, user, 0,
    ))
}

/// `PtlGet` to the same offset as it comes from.
pub fn get(into: Handle, length: u64, from: Target, user: usize) -> Result<(), Code> {
    let user = std::ptr::without_provenance_mut(user);
    code(portals::PtlGet(
        into,
        from.offset,
        length,
        from.process,
        PORTAL,
        from.bits,
        from.offset,
        user,
    ))
}

const SUM: u8 = 2;
const UINT64: u8 = 8;

/// `PtlAtomic`: adds 64-bit numbers.
pub fn add(from: Handle, length: u64, to: Target, user: usize) -> Result<(), Code> {
    let user = std::ptr::without_provenance_mut(user);
    code(portals::PtlAtomic(
        from, 0, length, ACK, to.process, PORTAL, to.bits, to.offset, user, 0, SUM, UINT64,
    ))
}

/// `PtlFetchAtomic`: adds 64-bit numbers, and brings what was there.
pub fn fetch_add(
    into: Handle,
    from: Handle,
    length: u64,
    to: Target,
    user: usize,
) -> Result<(), Code> {
    let user = std::ptr::without_provenance_mut(user);
    code(portals::PtlFetchAtomic(
        into, 0, from, 0, length, to.process, PORTAL, to.bits, to.offset, user, 0, SUM, UINT64,
    ))
}

/// `PtlEQGet`
pub fn event(queue: Handle) -> Result<Event, Code> {
    let mut event = Event::new(lintel_types::EventKind::Search);
    // SAFETY: the place is ours.
    code(unsafe { portals::PtlEQGet(queue, &raw mut event) })?;
    Ok(event)
}

/// `PtlEQPoll` of one queue; waits at most so many milliseconds.
pub fn event_within(queue: Handle, milliseconds: u32) -> Result<Event, Code> {
    let mut event = Event::new(lintel_types::EventKind::Search);
    let mut which = 0;
    // SAFETY: the places are ours.
    code(unsafe {
        portals::PtlEQPoll(
            &raw const queue,
            1,
            milliseconds,
            &raw mut event,
            &raw mut which,
        )
    })?;
    Ok(event)
}

/// `PtlEQWait`
pub fn wait_event(queue: Handle) -> Result<Event, Code> {
    let mut event = Event::new(lintel_types::EventKind::Search);
    // SAFETY: the place is ours.
    code(unsafe { portals::PtlEQWait(queue, &raw mut event) })?;
    Ok(event)
}

/// `PtlCTWait`
pub fn wait_count(counter: Handle, test: u64) -> Result<CountingEvent, Code> {
    let mut value = CountingEvent::default();
    // SAFETY: the place is ours.
    code(unsafe { portals::PtlCTWait(counter, test, &raw mut value) })?;
    Ok(value)
}

/// `PtlCTPoll` of one counter; waits at most so many milliseconds.
pub fn count_within(counter: Handle, test: u64, ms: u32) -> Result<CountingEvent, Code> {
    let mut value = CountingEvent::default();
    let mut which = 0;
    // SAFETY: the places are ours.
    code(unsafe {
        portals::PtlCTPoll(
            &raw const counter,
            &raw const test,
            1,
            ms,
            &raw mut value,
            &raw mut which,
        )
    })?;
    Ok(value)
}

/// `PtlCTGet`
pub fn count(counter: Handle) -> Result<CountingEvent, Code> {
    let mut value = CountingEvent::default();
    // SAFETY: the place is ours.
    code(unsafe { portals::PtlCTGet(counter, &raw mut value) })?;
    Ok(value)
}

/// `PtlAbort`
pub fn abort() {
    portals::PtlAbort();
}

/// `PtlInit`
pub fn init() -> Result<(), Code> {
    code(portals::PtlInit())
}

/// `PtlFini`
pub fn fini() {
    portals::PtlFini();
}
