//! The Portals library that the program has loaded, as a group wants it.
#![allow(unused_unsafe)]

use arrayvec::ArrayVec;
use lintel_group::{
    Combine, CountingEvent, MAX_AWAITED, Message, NiFail, Portals, PortalsError, ProcessId, Region,
};
use lintel_types::{AckRequest, Handle, Result, UID_ANY, options};
use portals4_sys::{self as sys, RawEvent, codes};
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

/// An interface, one index of its portal table, and a region bound to it.
pub(crate) struct Library {
    ni: Handle,
    id: ProcessId,
    index: u32,
    region: Region,
    largest_atomic: u64,
    // In the order in which they are to go.
    memory: Descriptor,
    probe_md: Descriptor,
    probe_queue: Queue,
    _table_entry: Arc<TableEntry>,
}

pub(crate) struct Counter(Handle);

pub(crate) struct Entry {
    handle: Handle,
    // It can only go after the entry, and the memory must stay while the entry does.
    _table_entry: Arc<TableEntry>,
    _region: Region,
}

struct Descriptor {
    handle: Handle,
    _region: Region,
}

struct Queue(Handle);

struct TableEntry {
    ni: Handle,
    index: u32,
}

const ONE: CountingEvent = CountingEvent {
    success: 1,
    failure: 0,
};
/// Larger wishes are tried first.
const LARGEST_ATOMIC: u64 = 64 << 10;
/// An element of each type fits.
const SMALLEST_ATOMIC: u64 = 32;
/// How often, and how long, something is tried again that messages still use.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

impl Library {
    /// Takes the index, which messages find from here on.
    pub(crate) fn open(ni: Handle, index: u32, region: &Region, members: usize) -> Result<Self> {
        let mut id = ProcessId::default();
        // SAFETY: `id` can be written.
        checked(unsafe { sys::PtlGetId(ni, &mut id) })?;
        let id = named(id, is_logical(ni));
        let table_entry = Arc::new(TableEntry::take(ni, index)?);
        let probe_queue = Queue::new(ni, members as u64 + 16)?;
        let mut library = Library {
            ni,
            id,
            index,
            largest_atomic: 0,
            memory: Descriptor::new(ni, region, Handle::EQ_NONE)?,
            probe_md: Descriptor::new(ni, &Region::new(0), probe_queue.0)?,
            region: region.clone(),
            probe_queue,
            _table_entry: table_entry,
        };
        library.largest_atomic = library.probe_atomics()?;
        Ok(library)
    }

    /// What the interface takes: a triggered atomic is checked when it is posted, and
    /// these are cancelled at once.
    fn probe_atomics(&self) -> Result<u64> {
        let never = self.counter()?;
        let mut bytes = LARGEST_ATOMIC;
        let probe = |bytes| Message {
            from: 0,
            bytes,
            target: self.id,
            match_bits: u64::MAX,
            at: 0,
            combine: Some(Combine {
                operation: lintel_group::Operation::Bor,
                datatype: lintel_group::Datatype::Uint8,
            }),
        };
        while let Err(error) = self.send_at((&never, u64::MAX), &probe(bytes)) {
            if error != PortalsError::ArgInvalid || bytes <= SMALLEST_ATOMIC {
                return Err(error);
            }
            bytes /= 2;
        }
        // SAFETY: a handle, valid or not.
        checked(unsafe { sys::PtlCTCancelTriggered(never.0) })?;
        Ok(bytes)
    }

    /// Now, or when a counter has counted so much.
    fn transmit(&self, trigger: Option<(Handle, u64)>, message: &Message) -> Result<()> {
        let (md, none, no_ack) = (self.memory.handle, ptr::null_mut(), AckRequest::None as u8);
        let (index, header) = (self.index, 0);
        let &Message {
            from,
            bytes,
            target,
            match_bits: bits,
            at,
            combine,
        } = message;
        let words = combine.map(|how| (how.operation as u8, how.datatype as u8));
        let code = match (words, trigger) {
            // SAFETY: plain values; the memory is the descriptor's region.
            (None, None) => unsafe {
                sys::PtlPut(
                    md, from, bytes, no_ack, target, index, bits, at, none, header,
                )
            },
            // SAFETY: as above.
            (None, Some((counter, count))) => unsafe {
                sys::PtlTriggeredPut(
                    md, from, bytes, no_ack, target, index, bits, at, none, header, counter, count,
                )
            },
            // SAFETY: as above.
            (Some((operation, datatype)), None) => unsafe {
                sys::PtlAtomic(
                    md, from, bytes, no_ack, target, index, bits, at, none, header, operation,
                    datatype,
                )
            },
            // SAFETY: as above.
            (Some((operation, datatype)), Some((counter, count))) => unsafe {
                sys::PtlTriggeredAtomic(
                    md, from, bytes, no_ack, target, index, bits, at, none, header, operation,
                    datatype, counter, count,
                )
            },
        };
        checked(code)
    }
}

impl Portals for Library {
    type Counter = Counter;
    type Entry = Entry;

    fn id(&self) -> Result<ProcessId> {
        Ok(self.id)
    }

    fn largest_atomic(&self) -> u64 {
        self.largest_atomic
    }

    fn counter(&self) -> Result<Counter> {
        let mut handle = Handle::CT_NONE;
        // SAFETY: `handle` can be written.
        checked(unsafe { sys::PtlCTAlloc(self.ni, &mut handle) })?;
        Ok(Counter(handle))
    }

    fn entry(
        &self,
        match_bits: u64,
        place: (u64, u64),
        counter: Option<&Counter>,
    ) -> Result<Entry> {
        let (at, bytes) = place;
        let counts = counter.map_or(0, |_| options::ME_EVENT_CT_COMM);
        let me = sys::Me {
            start: address(&self.region).wrapping_byte_add(at as usize),
            length: bytes,
            ct_handle: counter.map_or(Handle::CT_NONE, |counter| counter.0).0,
            uid: UID_ANY,
            options: options::ME_OP_PUT | options::ME_EVENT_LINK_DISABLE | counts,
            match_id: anyone(is_logical(self.ni)),
            match_bits,
            ignore_bits: 0,
            min_free: 0,
        };
        let mut handle = Handle::INVALID;
        // SAFETY: a filled structure, whose memory the entry's region keeps, and a
        // place for the handle.
        let code =
            unsafe { sys::PtlMEAppend(self.ni, self.index, &me, 0, ptr::null_mut(), &mut handle) };
        checked(code)?;
        Ok(Entry {
            handle,
            _table_entry: self._table_entry.clone(),
            _region: self.region.clone(),
        })
    }

    fn send(&self, message: &Message) -> Result<()> {
        self.transmit(None, message)
    }

    fn send_at(&self, trigger: (&Counter, u64), message: &Message) -> Result<()> {
        let (Counter(counter), threshold) = trigger;
        self.transmit(Some((*counter, threshold)), message)
    }

    fn count(&self, counter: &Counter) -> Result<()> {
        // SAFETY: plain values.
        checked(unsafe { sys::PtlCTInc(counter.0, ONE) })
    }

    fn count_at(&self, trigger: (&Counter, u64), counter: &Counter) -> Result<()> {
        let (Counter(trigger), threshold) = trigger;
        // SAFETY: plain values.
        checked(unsafe { sys::PtlTriggeredCTInc(counter.0, ONE, *trigger, threshold) })
    }

    fn value(&self, counter: &Counter) -> Result<CountingEvent> {
        let mut value = CountingEvent::default();
        // SAFETY: `value` can be written.
        checked(unsafe { sys::PtlCTGet(counter.0, &mut value) })?;
        Ok(value)
    }

    fn wait(&self, counters: &[(&Counter, u64)], time: Duration) -> Result<bool> {
        let handles = counters.iter().map(|(counter, _)| counter.0);
        let handles: ArrayVec<Handle, MAX_AWAITED> = handles.collect();
        let tests: ArrayVec<u64, MAX_AWAITED> = counters.iter().map(|(_, test)| *test).collect();
        let (mut value, mut which) = (CountingEvent::default(), 0);
        // SAFETY: two arrays of that length, and two places that can be written.
        let code = unsafe {
            sys::PtlCTPoll(
                handles.as_ptr(),
                tests.as_ptr(),
                handles.len() as c_uint,
                milliseconds(time),
                &mut value,
                &mut which,
            )
        };
        match code {
            codes::CT_NONE_REACHED => Ok(false),
            code => checked(code).map(|()| true),
        }
    }

    fn probe(&self, target: ProcessId, match_bits: u64, id: u64) -> Result<()> {
        let (md, ack) = (self.probe_md.handle, AckRequest::Full as u8);
        let comes_back = ptr::without_provenance_mut(id as usize);
        // SAFETY: plain values; no memory is sent.
        checked(unsafe {
            sys::PtlPut(
                md, 0, 0, ack, target, self.index, match_bits, 0, comes_back, 0,
            )
        })
    }

    fn poll_probe(&self, time: Duration) -> Result<Option<(u64, NiFail)>> {
        let (mut event, mut which) = (RawEvent::default(), 0);
        // SAFETY: one queue, and two places that can be written.
        let code = unsafe {
            sys::PtlEQPoll(
                &self.probe_queue.0,
                1,
                milliseconds(time),
                &mut event,
                &mut which,
            )
        };
        match code {
            codes::EQ_EMPTY => Ok(None),
            0 | codes::EQ_DROPPED => {
                let how = NiFail::from_bits(event.ni_fail);
                Ok(Some((event.user_ptr, how)))
            }
            code => Err(error(code)),
        }
    }
}

impl Descriptor {
    fn new(ni: Handle, region: &Region, queue: Handle) -> Result<Self> {
        let md = sys::Md {
            start: address(region),
            length: region.len(),
            options: options::MD_EVENT_SEND_DISABLE,
            eq_handle: queue.0,
            ct_handle: Handle::CT_NONE.0,
        };
        let mut handle = Handle::INVALID;
        // SAFETY: a filled structure, whose memory the descriptor's region keeps, and a
        // place for the handle.
        checked(unsafe { sys::PtlMDBind(ni, &md, &mut handle) })?;
        Ok(Descriptor {
            handle,
            _region: region.clone(),
        })
    }
}

impl Queue {
    fn new(ni: Handle, events: u64) -> Result<Self> {
        let mut handle = Handle::EQ_NONE;
        // SAFETY: `handle` can be written.
        checked(unsafe { sys::PtlEQAlloc(ni, events, &mut handle) })?;
        Ok(Queue(handle))
    }
}

impl TableEntry {
    fn take(ni: Handle, wanted: u32) -> Result<Self> {
        let mut index = 0;
        // SAFETY: `index` can be written.
        checked(unsafe { sys::PtlPTAlloc(ni, 0, Handle::EQ_NONE, wanted, &mut index) })?;
        Ok(TableEntry { ni, index })
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // SAFETY: a handle, valid or not; what waits for it is cancelled.
        unsafe { sys::PtlCTFree(self.0) };
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // SAFETY: a handle, valid or not.
        until_unused(|| unsafe { sys::PtlMEUnlink(self.handle) });
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: a handle, valid or not.
        until_unused(|| unsafe { sys::PtlMDRelease(self.handle) });
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: a handle, valid or not.
        unsafe { sys::PtlEQFree(self.0) };
    }
}

impl Drop for TableEntry {
    fn drop(&mut self) {
        // SAFETY: plain values.
        until_unused(|| unsafe { sys::PtlPTFree(self.ni, self.index) });
    }
}

/// What a peer that has died left half sent may use things for a while; a region's
/// pages stay in any case.
fn until_unused(release: impl Fn() -> c_int) {
    for _ in 0..ATTEMPTS {
        if !matches!(release(), codes::IN_USE | codes::PT_IN_USE) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// The names of other processes, as a caller may have filled them: of a rank, only the
/// rank counts.
pub(crate) fn named(process: ProcessId, logical: bool) -> ProcessId {
    match logical {
        true => ProcessId::from_rank(process.rank()),
        false => process,
    }
}

/// Only such an interface has a map, or could.
pub(crate) fn is_logical(ni: Handle) -> bool {
    let mut size = 0;
    // SAFETY: `size` can be written, and a map of no elements nowhere.
    let code = unsafe { sys::PtlGetMap(ni, 0, ptr::null_mut(), &mut size) };
    code == 0
}

fn anyone(logical: bool) -> ProcessId {
    match logical {
        true => ProcessId::from_rank(ProcessId::RANK_ANY),
        false => ProcessId::new(ProcessId::NID_ANY, ProcessId::PID_ANY),
    }
}

fn address(region: &Region) -> *mut c_void {
    ptr::with_exposed_provenance_mut(region.claim().address() as usize)
}

fn milliseconds(time: Duration) -> c_uint {
    time.as_millis() as c_uint
}

fn checked(code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        code => Err(error(code)),
    }
}

/// A code that no library should return is that of a failure.
fn error(code: c_int) -> PortalsError {
    use PortalsError::*;
    let known = [
        ArgInvalid,
        CtNoneReached,
        EqDropped,
        EqEmpty,
        Fail,
        Ignored,
        InUse,
        ListTooLong,
        NoInit,
        NoSpace,
        PidInUse,
        PtFull,
        PtEqNeeded,
        PtInUse,
        Aborted,
    ];
    let found = known.into_iter().find(|error| *error as c_int == code);
    found.unwrap_or(Fail)
}
