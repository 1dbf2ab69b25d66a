//! Portals as the workers use it, through the symbols of libportals.so.4: interfaces that
//! nothing closes unless a test asks for it, and short forms of what most workers do.

// Defines the functions that the binding calls.
extern crate portals;

use crate::memory::Memory;
use crate::places::Places;
use lintel_types::{Error, Event, EventKind, Handle, NiFail, UID_ANY};
use portals4_abi::{
    Counter, Datatype, DescriptorSpec, EntrySpec, Interface, InterfaceSpec, Operation, Portal,
    ProcessId, Queue, Result, Transfer, options,
};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A descriptor over memory of this process.
pub type Descriptor = portals4_abi::Descriptor<Memory>;

/// Milliseconds after which a worker that waits for an event gives up.
pub const PATIENCE: u32 = 20_000;
/// The portal table index that the workers use.
pub const PORTAL: u32 = 3;
/// The atomic of most tests: adds 64-bit words.
pub const SUM: (Operation, Datatype) = (Operation::Sum, Datatype::Uint64);

/// The process of that number in this worker's job.
pub fn process(number: u32) -> ProcessId {
    places().process(number)
}

/// The places of this worker's job.
pub fn places() -> Places {
    static PLACES: OnceLock<Places> = OnceLock::new();
    *PLACES.get_or_init(Places::from_env)
}

/// `PtlInit` and `PtlNIInit` of a matching interface, as the process of that number.
///
/// What is made on it stays until it is closed, or until the process ends: how a process
/// ends is what the tests are about, so dropping a value calls nothing.
///
/// # Errors
/// The code of either call.
pub fn open(number: u32) -> Result<Interface> {
    open_as(process(number).pid)
}

/// As [`open`], with any pid, or one that the library chooses.
///
/// # Errors
/// The code of either call.
pub fn open_as(pid: u32) -> Result<Interface> {
    let spec = spec(options::NI_MATCHING, pid);
    Interface::open(&spec).inspect(Interface::abandon)
}

/// `PtlNIInit` alone, of an interface without matching, beside one that is open.
///
/// # Errors
/// The code of the call.
pub fn open_without_matching(number: u32) -> Result<Interface> {
    let spec = spec(options::NI_NO_MATCHING, process(number).pid);
    Interface::open_only(&spec).inspect(Interface::abandon)
}

/// A physical interface with the default limits.
pub fn spec(matching: u32, pid: u32) -> InterfaceSpec {
    InterfaceSpec {
        options: matching | options::NI_PHYSICAL,
        pid,
        limits: None,
    }
}

/// The portal table entry at [`PORTAL`].
///
/// # Errors
/// The code of `PtlPTAlloc`.
pub fn portal(interface: &Interface, queue: Option<&Queue>) -> Result<Portal> {
    interface.portal(PORTAL, queue)
}

/// An entry for puts and gets with these match bits, with more options.
pub fn entry(match_bits: u64, more: u32) -> EntrySpec<'static> {
    let any = EntrySpec::default();
    EntrySpec {
        match_bits,
        options: any.options | more,
        ..any
    }
}

/// Appends an entry for puts and gets that reports nothing, over so many bytes at an address, to be
/// [unlinked](unlink).
///
/// # Errors
/// The code of `PtlMEAppend`, in words.
pub fn append_quietly(
    interface: &Interface,
    match_bits: u64,
    (start, bytes): (*mut u8, usize),
) -> std::result::Result<Handle, String> {
    let quiet = entry(match_bits, options::ME_EVENT_COMM_DISABLE);
    let me = portals::Me {
        start: start.cast(),
        length: bytes as u64,
        ct_handle: Handle::CT_NONE.0,
        uid: UID_ANY,
        options: quiet.options,
        match_id: quiet.source,
        match_bits,
        ignore_bits: quiet.ignore_bits,
        min_free: 0,
    };
    let mut entry = Handle::INVALID;
    let user = std::ptr::null_mut();
    // SAFETY: the structure and the output outlive the call, and the memory the entry.
    let code =
        unsafe { portals::PtlMEAppend(interface.handle(), PORTAL, &me, 0, user, &mut entry) };
    match code {
        0 => Ok(entry),
        code => Err(format!("PtlMEAppend returned {code}")),
    }
}

/// Unlinks an entry, once no message lands in it.
///
/// # Errors
/// The code of `PtlMEUnlink`, in words, also if messages land for [`PATIENCE`].
pub fn unlink(entry: Handle) -> std::result::Result<(), String> {
    let until = Instant::now() + Duration::from_millis(PATIENCE.into());
    loop {
        match portals::PtlMEUnlink(entry) {
            0 => return Ok(()),
            code if code != Error::InUse as i32 || Instant::now() > until => {
                return Err(format!("PtlMEUnlink returned {code}"));
            }
            _ => std::thread::yield_now(),
        }
    }
}

/// A descriptor over all of the memory that reports to a queue.
///
/// # Errors
/// The code of `PtlMDBind`.
pub fn bind(interface: &Interface, memory: Memory, queue: &Queue) -> Result<Descriptor> {
    let spec = DescriptorSpec {
        queue: Some(queue),
        ..DescriptorSpec::default()
    };
    interface.bind(memory, &spec)
}

/// As [`bind`], counting acknowledgements too, with more options.
///
/// # Errors
/// The code of `PtlMDBind`.
pub fn bind_counted(
    interface: &Interface,
    memory: Memory,
    (queue, counter): (Option<&Queue>, &Counter),
    more: u32,
) -> Result<Descriptor> {
    let spec = DescriptorSpec {
        queue,
        counter: Some(counter),
        options: options::MD_EVENT_CT_ACK | more,
    };
    interface.bind(memory, &spec)
}

/// From the start of a descriptor to the start of a process's entry with these match bits.
pub fn transfer(to: u32, match_bits: u64, length: u64) -> Transfer {
    transfer_at(to, match_bits, length, 0)
}

/// As [`transfer`], at the same offset of both.
pub fn transfer_at(to: u32, match_bits: u64, length: u64, offset: u64) -> Transfer {
    Transfer {
        local_offset: offset,
        length,
        target: process(to),
        portal: PORTAL,
        match_bits,
        remote_offset: offset,
        user_ptr: 1,
        hdr_data: 0,
    }
}

/// The next event of a queue, if there is one within so many milliseconds; 0 asks
/// `PtlEQGet`, which never sleeps.
///
/// # Errors
/// The code of the call.
pub fn next_event(queue: &Queue, milliseconds: u32) -> Result<Option<Event>> {
    let event = match milliseconds {
        0 => queue.get()?,
        _ => queue.poll(milliseconds)?,
    };
    Ok(event.map(Event::from))
}

/// How an operation ended, by its event of that kind; earlier events of it are skipped.
///
/// # Errors
/// The call's refusal in words, or that no event came within [`PATIENCE`].
pub fn await_end(queue: &Queue, last: EventKind) -> std::result::Result<NiFail, String> {
    loop {
        match next_event(queue, PATIENCE) {
            Ok(Some(event)) if event.kind == last => return Ok(event.ni_fail),
            Ok(Some(_)) => {}
            Ok(None) => return Err(format!("no {last:?} within {PATIENCE} ms")),
            Err(why) => return Err(why.to_string()),
        }
    }
}
