//! Portals as a C program sees it, wrapped for benchmarks: every call goes through
//! the symbols of `libportals.so.4`, every handle frees itself, every refusal is an
//! [`Error`] that names call and code.
//!
//! ```text
//!   Interface ── queue() counter() table() bind() append()
//!       │             │      │        │      │       │
//!     Rc<Ni>        Queue  Counter  Table    Md    Entry     (freed on drop)
//! ```
//!
//! To run against another `libportals.so.4`, drop the `extern crate portals` line in `lib.rs`
//! and link with `-lportals`: nothing else knows where the symbols come from.

#![allow(unsafe_code, unused_unsafe)]

use std::fmt;
use std::ptr;
use std::rc::Rc;

pub use lintel_types::{CountingEvent as Count, Limits, ProcessId as Process};
use lintel_types::{Handle, List, NiFail, PT_ANY, UID_ANY, options as bits};
use portals4_sys::{self as sys, RawEvent, codes};

use crate::raw::Region;

/// A call that Portals refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The function's name in the specification.
    pub call: &'static str,
    /// What it returned.
    pub code: i32,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = usize::try_from(self.code)
            .ok()
            .and_then(|code| RETURN_CODES.get(code));
        match name {
            Some(name) => write!(f, "{} returned {name}", self.call),
            None => write!(f, "{} returned {}", self.call, self.code),
        }
    }
}

impl std::error::Error for Error {}

/// The outcome of a Portals call.
pub type Result<T> = std::result::Result<T, Error>;

/// A matching interface with physical addressing; it closes when the last clone and
/// the last object made from it are gone.
#[derive(Clone)]
pub struct Interface(Rc<Ni>);

struct Ni {
    handle: Handle,
    id: Process,
    limits: Limits,
}

impl Interface {
    /// `PtlInit` and `PtlNIInit` with a pid of the library's choice.
    ///
    /// Asks for room for `entries` match entries; the interface may give more or
    /// less, see [`Interface::limits`].
    ///
    /// # Errors
    /// Whatever either call returned.
    pub fn open(entries: i32) -> Result<Self> {
        let wanted = generous_limits(entries);
        Self::init(&wanted)
    }

    /// As [`Interface::open`], with the limits that the library chooses, and every feature
    /// that it has.
    ///
    /// # Errors
    /// Whatever either call returned.
    pub fn open_default() -> Result<Self> {
        Self::init(&Limits {
            features: u32::MAX,
            ..Limits::DEFAULT
        })
    }

    /// This process's physical id.
    pub fn id(&self) -> Process {
        self.0.id
    }

    /// The limits that `PtlNIInit` granted.
    pub fn limits(&self) -> &Limits {
        &self.0.limits
    }

    /// Whether atomic operations of the processor and of Portals may meet on one
    /// word (`PTL_COHERENT_ATOMICS`).
    pub fn has_coherent_atomics(&self) -> bool {
        self.0.limits.features & bits::FEATURE_COHERENT_ATOMICS != 0
    }

    /// The user id that peers see (`PtlGetUid`).
    ///
    /// # Errors
    /// Whatever the call returned.
    pub fn uid(&self) -> Result<u32> {
        let mut uid = 0;
        // SAFETY: `uid` outlives the call.
        check("PtlGetUid", unsafe {
            sys::PtlGetUid(self.0.handle, &mut uid)
        })?;
        Ok(uid)
    }

    /// An event queue for `count` events.
    ///
    /// # Errors
    /// Whatever `PtlEQAlloc` returned.
    pub fn queue(&self, count: u64) -> Result<Queue> {
        let mut handle = Handle::INVALID;
        // SAFETY: `handle` outlives the call.
        check("PtlEQAlloc", unsafe {
            sys::PtlEQAlloc(self.0.handle, count, &mut handle)
        })?;
        Ok(Queue {
            handle,
            _ni: Rc::clone(&self.0),
        })
    }

    /// A counting event that starts at zero.
    ///
    /// # Errors
    /// Whatever `PtlCTAlloc` returned.
    pub fn counter(&self) -> Result<Counter> {
        let mut handle = Handle::INVALID;
        // SAFETY: `handle` outlives the call.
        check("PtlCTAlloc", unsafe {
            sys::PtlCTAlloc(self.0.handle, &mut handle)
        })?;
        Ok(Counter {
            handle,
            _ni: Rc::clone(&self.0),
        })
    }

    /// Any free portal table entry, reporting to `queue`.
    ///
    /// # Errors
    /// Whatever `PtlPTAlloc` returned.
    pub fn table_any(&self, queue: Option<&Queue>) -> Result<Table> {
        let mut got = 0;
        let eq = queue.map_or(Handle::EQ_NONE, |queue| queue.handle);
        // SAFETY: `got` outlives the call.
        check("PtlPTAlloc", unsafe {
            sys::PtlPTAlloc(self.0.handle, 0, eq, PT_ANY, &mut got)
        })?;
        Ok(Table {
            index: got,
            ni: Rc::clone(&self.0),
        })
    }

    /// Binds the whole of `memory`.
    ///
    /// # Errors
    /// Whatever `PtlMDBind` returned.
    pub fn bind(&self, memory: &Rc<Region>, report: Report<'_>) -> Result<Md> {
        let md = sys::Md {
            start: ptr::with_exposed_provenance_mut(memory.address() as usize),
            length: memory.size() as u64,
            options: report.md_options(),
            eq_handle: report.queue.map_or(Handle::EQ_NONE, |q| q.handle).0,
            ct_handle: report.counter.map_or(Handle::CT_NONE, |c| c.handle).0,
        };
        let mut handle = Handle::INVALID;
        // SAFETY: `md` and `handle` outlive the call; `Md` keeps the memory mapped
        // until the descriptor is released, and it is only seen as atomics.
        check("PtlMDBind", unsafe {
            sys::PtlMDBind(self.0.handle, &md, &mut handle)
        })?;
        Ok(Md {
            handle,
            _memory: Rc::clone(memory),
            _ni: Rc::clone(&self.0),
        })
    }

    /// Appends a persistent entry over the whole of `memory` to the priority list;
    /// puts and gets are both allowed.
    ///
    /// # Errors
    /// Whatever `PtlMEAppend` returned.
    pub fn append(&self, table: &Table, memory: &Rc<Region>, entry: Match<'_>) -> Result<Entry> {
        let me = sys::Me {
            start: ptr::with_exposed_provenance_mut(memory.address() as usize),
            length: memory.size() as u64,
            ct_handle: entry.counter.map_or(Handle::CT_NONE, |c| c.handle).0,
            uid: UID_ANY,
            options: entry.options(),
            match_id: Process::new(Process::NID_ANY, Process::PID_ANY),
            match_bits: entry.bits,
            ignore_bits: entry.ignore,
            min_free: 0,
        };
        let mut handle = Handle::INVALID;
        // SAFETY: `me` and `handle` outlive the call; `Entry` keeps the memory
        // mapped until the entry is unlinked, and it is only seen as atomics.
        check("PtlMEAppend", unsafe {
            sys::PtlMEAppend(
                self.0.handle,
                table.index,
                &me,
                List::Priority as u8,
                ptr::null_mut(),
                &mut handle,
            )
        })?;
        Ok(Entry {
            handle,
            _memory: Rc::clone(memory),
            _ni: Rc::clone(&self.0),
        })
    }

    fn init(wanted: &Limits) -> Result<Self> {
        // SAFETY: takes nothing.
        check("PtlInit", unsafe { sys::PtlInit() })?;
        let mut limits = Limits::DEFAULT;
        let mut handle = Handle::INVALID;
        // SAFETY: every pointer is null or outlives the call.
        let opened = check("PtlNIInit", unsafe {
            sys::PtlNIInit(
                IFACE_DEFAULT,
                bits::NI_MATCHING | bits::NI_PHYSICAL,
                Process::PID_ANY,
                wanted,
                &mut limits,
                &mut handle,
            )
        });
        if let Err(error) = opened {
            // SAFETY: undoes the PtlInit above.
            unsafe { sys::PtlFini() };
            return Err(error);
        }
        let mut ni = Ni {
            handle,
            id: Process::default(),
            limits,
        };
        // SAFETY: `id` outlives the call.
        check("PtlGetPhysId", unsafe {
            sys::PtlGetPhysId(handle, &mut ni.id)
        })?;
        Ok(Self(Rc::new(ni)))
    }
}

impl Drop for Ni {
    fn drop(&mut self) {
        // SAFETY: every object of the interface holds this value, so none is left.
        unsafe {
            sys::PtlNIFini(self.handle);
            sys::PtlFini();
        }
    }
}

/// Where a memory descriptor's events go.
#[derive(Clone, Copy, Default)]
pub struct Report<'a> {
    /// Full events.
    pub queue: Option<&'a Queue>,
    /// Counted completions, of the kind in `count`.
    pub counter: Option<&'a Counter>,
    /// What the counter counts.
    pub count: Counted,
    /// Whether the queue stays free of SEND events.
    pub quiet_send: bool,
}

/// What a memory descriptor's counter counts.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Counted {
    /// Acknowledgements.
    #[default]
    Acks,
    /// Replies to gets and fetching atomics.
    Replies,
    /// Sends.
    Sends,
}

impl Report<'_> {
    fn md_options(&self) -> u32 {
        let mut options = 0;
        if self.counter.is_some() {
            options |= match self.count {
                Counted::Acks => bits::MD_EVENT_CT_ACK,
                Counted::Replies => bits::MD_EVENT_CT_REPLY,
                Counted::Sends => bits::MD_EVENT_CT_SEND,
            };
        }
        if self.quiet_send {
            options |= bits::MD_EVENT_SEND_DISABLE;
        }
        options
    }
}

/// What a match entry takes and how it reports.
#[derive(Clone, Copy, Default)]
pub struct Match<'a> {
    /// The bits to match.
    pub bits: u64,
    /// Which of them not to compare.
    pub ignore: u64,
    /// Counts arrivals.
    pub counter: Option<&'a Counter>,
    /// Whether arrivals make no full event.
    pub silent: bool,
}

impl Match<'_> {
    fn options(&self) -> u32 {
        let mut options = bits::ME_OP_PUT
            | bits::ME_OP_GET
            | bits::ME_EVENT_LINK_DISABLE
            | bits::ME_EVENT_UNLINK_DISABLE;
        if self.counter.is_some() {
            options |= bits::ME_EVENT_CT_COMM;
        }
        if self.silent {
            options |= bits::ME_EVENT_COMM_DISABLE;
        }
        options
    }
}

/// An event, reduced to what a benchmark looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// `PTL_EVENT_*`.
    pub kind: u8,
    /// `PTL_NI_*`, zero for success.
    pub failure: u8,
    /// Bytes moved.
    pub length: u64,
    /// The initiator's 64 bits.
    pub header: u64,
}

/// An event queue.
pub struct Queue {
    handle: Handle,
    _ni: Rc<Ni>,
}

impl Queue {
    /// `PtlEQGet`: the next event, if there is one.
    ///
    /// # Errors
    /// `PTL_EQ_DROPPED` when the queue was too small, and failures of operations.
    #[inline]
    pub fn try_next(&self) -> Result<Option<Event>> {
        let mut event = std::mem::MaybeUninit::<RawEvent>::uninit();
        // SAFETY: `event` outlives the call.
        let code = unsafe { sys::PtlEQGet(self.handle, event.as_mut_ptr()) };
        match code {
            codes::EQ_EMPTY => Ok(None),
            // SAFETY: PTL_OK means that the event was written.
            codes::OK => Ok(Some(reduce(unsafe { event.assume_init_ref() })?)),
            code => Err(Error {
                call: "PtlEQGet",
                code,
            }),
        }
    }

    /// `PtlEQGet` until there is an event.
    ///
    /// # Errors
    /// As [`Queue::try_next`].
    #[inline]
    pub fn spin(&self) -> Result<Event> {
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
        }
    }

    /// `PtlEQWait`.
    ///
    /// # Errors
    /// As [`Queue::try_next`].
    pub fn wait(&self) -> Result<Event> {
        let mut event = std::mem::MaybeUninit::<RawEvent>::uninit();
        // SAFETY: `event` outlives the call.
        check("PtlEQWait", unsafe {
            sys::PtlEQWait(self.handle, event.as_mut_ptr())
        })?;
        // SAFETY: PTL_OK means that the event was written.
        reduce(unsafe { event.assume_init_ref() })
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and freed once.
        unsafe { sys::PtlEQFree(self.handle) };
    }
}

/// A counting event.
pub struct Counter {
    handle: Handle,
    _ni: Rc<Ni>,
}

impl Counter {
    /// `PtlCTGet`.
    ///
    /// # Errors
    /// Whatever the call returned.
    #[inline]
    pub fn get(&self) -> Result<Count> {
        let mut count = Count::default();
        // SAFETY: `count` outlives the call.
        check("PtlCTGet", unsafe {
            sys::PtlCTGet(self.handle, &mut count)
        })?;
        Ok(count)
    }

    /// `PtlCTWait` for `successes`.
    ///
    /// # Errors
    /// Whatever the call returned; a counted failure is `PTL_FAIL`.
    #[inline]
    pub fn wait(&self, successes: u64) -> Result<()> {
        let mut count = Count::default();
        // SAFETY: `count` outlives the call.
        check("PtlCTWait", unsafe {
            sys::PtlCTWait(self.handle, successes, &mut count)
        })?;
        if count.failure != 0 {
            return Err(Error {
                call: "counted operation",
                code: codes::FAIL,
            });
        }
        Ok(())
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and freed once.
        unsafe { sys::PtlCTFree(self.handle) };
    }
}

/// A portal table entry.
pub struct Table {
    index: u32,
    ni: Rc<Ni>,
}

impl Table {
    /// Its index, as peers name it.
    pub fn index(&self) -> u32 {
        self.index
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: the index is ours and freed once.
        unsafe { sys::PtlPTFree(self.ni.handle, self.index) };
    }
}

/// A match entry.
pub struct Entry {
    handle: Handle,
    _memory: Rc<Region>,
    _ni: Rc<Ni>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        for _ in 0..UNLINK_ATTEMPTS {
            // SAFETY: the handle is ours; IN_USE leaves it valid.
            if unsafe { sys::PtlMEUnlink(self.handle) } != codes::IN_USE {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// Where an operation goes and what it moves.
#[derive(Clone, Copy, Debug, Default)]
pub struct Transfer {
    /// The process at the other end.
    pub target: Process,
    /// Its portal table index.
    pub table: u32,
    /// Bits that its entries are compared with.
    pub bits: u64,
    /// Bytes.
    pub length: u64,
    /// Offset in the descriptor.
    pub local_offset: u64,
    /// Offset in the entry.
    pub remote_offset: u64,
}

/// Which acknowledgement an operation asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Ack {
    /// `PTL_NO_ACK_REQ`
    None = 0,
    /// `PTL_ACK_REQ`
    Full = 1,
    /// `PTL_CT_ACK_REQ`
    Count = 2,
}

/// Operations on unsigned 64-bit words, by the numbers of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// `PTL_SUM`
    Sum = 2,
    /// `PTL_BXOR`
    Xor = 9,
    /// `PTL_SWAP`
    Swap = 10,
    /// `PTL_CSWAP`
    CompareSwap = 11,
}

/// A memory descriptor.
pub struct Md {
    handle: Handle,
    _memory: Rc<Region>,
    _ni: Rc<Ni>,
}

impl Md {
    /// `PtlPut`.
    ///
    /// # Errors
    /// Whatever the call returned.
    #[inline]
    pub fn put(&self, t: &Transfer, ack: Ack) -> Result<()> {
        // SAFETY: plain values; the descriptor's memory is kept by `self`.
        check("PtlPut", unsafe {
            sys::PtlPut(
                self.handle,
                t.local_offset,
                t.length,
                ack as u8,
                t.target,
                t.table,
                t.bits,
                t.remote_offset,
                ptr::null_mut(),
                0,
            )
        })
    }

    /// `PtlGet`.
    ///
    /// # Errors
    /// Whatever the call returned.
    #[inline]
    pub fn get(&self, t: &Transfer) -> Result<()> {
        // SAFETY: as for `put`.
        check("PtlGet", unsafe {
            sys::PtlGet(
                self.handle,
                t.local_offset,
                t.length,
                t.target,
                t.table,
                t.bits,
                t.remote_offset,
                ptr::null_mut(),
            )
        })
    }

    /// `PtlAtomic` on unsigned 64-bit words.
    ///
    /// # Errors
    /// Whatever the call returned.
    #[inline]
    pub fn atomic(&self, t: &Transfer, op: Op, ack: Ack) -> Result<()> {
        // SAFETY: as for `put`.
        check("PtlAtomic", unsafe {
            sys::PtlAtomic(
                self.handle,
                t.local_offset,
                t.length,
                ack as u8,
                t.target,
                t.table,
                t.bits,
                t.remote_offset,
                ptr::null_mut(),
                0,
                op as u8,
                UINT64,
            )
        })
    }

    /// `PtlFetchAtomic` on unsigned 64-bit words: the old value to `old_offset`.
    ///
    /// # Errors
    /// Whatever the call returned.
    #[inline]
    pub fn fetch_atomic(&self, t: &Transfer, op: Op, old_offset: u64) -> Result<()> {
        // SAFETY: as for `put`; both descriptors are `self`.
        check("PtlFetchAtomic", unsafe {
            sys::PtlFetchAtomic(
                self.handle,
                old_offset,
                self.handle,
                t.local_offset,
                t.length,
                t.target,
                t.table,
                t.bits,
                t.remote_offset,
                ptr::null_mut(),
                0,
                op as u8,
                UINT64,
            )
        })
    }

    /// `PtlSwap` on unsigned 64-bit words: the old value to `old_offset`; `operand`
    /// is what conditional forms compare with.
    ///
    /// # Errors
    /// Whatever the call returned.
    #[inline]
    pub fn swap(&self, t: &Transfer, op: Op, old_offset: u64, operand: u64) -> Result<()> {
        let operand = match op {
            Op::Swap => ptr::null(),
            _ => ptr::from_ref(&operand).cast(),
        };
        // SAFETY: as for `put`; the operand outlives the call, which reads it at
        // once (Portals 4.3, PtlSwap).
        check("PtlSwap", unsafe {
            sys::PtlSwap(
                self.handle,
                old_offset,
                self.handle,
                t.local_offset,
                t.length,
                t.target,
                t.table,
                t.bits,
                t.remote_offset,
                ptr::null_mut(),
                0,
                operand,
                op as u8,
                UINT64,
            )
        })
    }
}

impl Drop for Md {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and released once.
        unsafe { sys::PtlMDRelease(self.handle) };
    }
}

#[inline]
fn check(call: &'static str, code: i32) -> Result<()> {
    match code {
        codes::OK => Ok(()),
        code => Err(Error { call, code }),
    }
}

fn reduce(event: &RawEvent) -> Result<Event> {
    if event.ni_fail != NiFail::Ok as u8 {
        return Err(Error {
            call: "operation that an event reported as failed",
            code: codes::FAIL,
        });
    }
    Ok(Event {
        kind: event.kind,
        failure: event.ni_fail,
        length: event.mlength,
        header: event.hdr_data,
    })
}

/// `PTL_IFACE_DEFAULT`
const IFACE_DEFAULT: u32 = u32::MAX;
/// `PTL_UINT64_T`
const UINT64: u8 = 8;

/// Names of the return codes, by value.
const RETURN_CODES: [&str; 16] = [
    "PTL_OK",
    "PTL_ARG_INVALID",
    "PTL_CT_NONE_REACHED",
    "PTL_EQ_DROPPED",
    "PTL_EQ_EMPTY",
    "PTL_FAIL",
    "PTL_IGNORED",
    "PTL_IN_USE",
    "PTL_LIST_TOO_LONG",
    "PTL_NO_INIT",
    "PTL_NO_SPACE",
    "PTL_PID_IN_USE",
    "PTL_PT_FULL",
    "PTL_PT_EQ_NEEDED",
    "PTL_PT_IN_USE",
    "PTL_ABORTED",
];

/// A message on its way in keeps an entry for microseconds, not longer.
const UNLINK_ATTEMPTS: u32 = 1_000_000;

fn generous_limits(entries: i32) -> Limits {
    Limits {
        max_entries: entries,
        max_unexpected_headers: 1024,
        max_mds: 1024,
        max_cts: 1024,
        max_eqs: 1024,
        max_pt_index: 63,
        max_iovecs: 1024,
        max_list_size: entries,
        max_triggered_ops: 1024,
        max_msg_size: 1 << 32,
        max_atomic_size: 512,
        max_fetch_atomic_size: 512,
        max_waw_ordered_size: 64,
        max_war_ordered_size: 8,
        max_volatile_size: 64,
        features: u32::MAX,
    }
}
