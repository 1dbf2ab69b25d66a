//! Portals as the benchmarks use it: the owned handles of `portals4-abi`, with generous
//! limits, and with waits that take a failed operation for an error.
//!
//! To measure another `libportals.so.4`, drop the `extern crate portals` line in `lib.rs`
//! and link with `-lportals`: nothing else knows where the symbols come from.

use std::rc::Rc;

use portals4_abi::{CallError, InterfaceSpec, NiFail, RawEvent};

use crate::raw::Region;

pub use portals4_abi::{
    AckRequest, Counter, Datatype, DescriptorSpec, EntrySpec, Error, Interface, Limits, Operation,
    PT_ANY, Portal, ProcessId, Queue, Result, Sink, Transfer, options,
};

/// A memory descriptor over a whole region.
pub type Descriptor = portals4_abi::Descriptor<Rc<Region>>;
/// A match entry over a whole region.
pub type Entry = portals4_abi::Entry<Rc<Region>>;

/// A matching interface with physical addressing and a pid of the library's choice; it is
/// asked for room for so many match entries, and may have more or less.
///
/// # Errors
/// What `PtlInit` or `PtlNIInit` returned.
pub fn open(entries: i32) -> Result<Interface> {
    open_with(generous_limits(entries))
}

/// As [`open`], with the limits that the library chooses, and every feature that it has.
///
/// # Errors
/// What `PtlInit` or `PtlNIInit` returned.
pub fn open_default() -> Result<Interface> {
    open_with(Limits {
        features: u32::MAX,
        ..Limits::DEFAULT
    })
}

fn open_with(limits: Limits) -> Result<Interface> {
    Interface::open(&InterfaceSpec {
        limits: Some(limits),
        ..InterfaceSpec::default()
    })
}

/// What completes an operation for its initiator.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Counted {
    /// The target's acknowledgements of puts.
    #[default]
    Acks,
    /// Replies to gets and fetching atomics.
    Replies,
    /// Ends of sends, when the buffer may be used again.
    Sends,
}

impl Counted {
    /// A descriptor that posts its completions to a queue, or counts them; SEND events are
    /// posted only if they are the completions.
    pub fn spec<'a>(
        self,
        queue: Option<&'a Queue>,
        counter: Option<&'a Counter>,
    ) -> DescriptorSpec<'a> {
        let counting = match (counter, self) {
            (None, _) => 0,
            (_, Counted::Acks) => options::MD_EVENT_CT_ACK,
            (_, Counted::Replies) => options::MD_EVENT_CT_REPLY,
            (_, Counted::Sends) => options::MD_EVENT_CT_SEND,
        };
        let quiet = match self {
            Counted::Sends => 0,
            _ => options::MD_EVENT_SEND_DISABLE,
        };
        DescriptorSpec {
            queue,
            counter,
            options: counting | quiet,
        }
    }
}

/// Takes the next event if there is one (`PtlEQGet`).
///
/// # Errors
/// What the call returned, and the failure of an operation.
#[inline]
pub fn try_event(queue: &Queue) -> Result<bool> {
    match queue.get()? {
        Some(event) => succeeded(&event).map(|()| true),
        None => Ok(false),
    }
}

/// Takes the next event, polling with `PtlEQGet` until there is one.
///
/// # Errors
/// As for [`try_event`].
#[inline]
pub fn poll_event(queue: &Queue) -> Result<()> {
    while !try_event(queue)? {}
    Ok(())
}

/// Takes the next event, waiting in `PtlEQWait`.
///
/// # Errors
/// As for [`try_event`].
#[inline]
pub fn wait_event(queue: &Queue) -> Result<()> {
    succeeded(&queue.wait()?)
}

/// Waits in `PtlCTWait` for so many successes.
///
/// # Errors
/// What the call returned; `PTL_FAIL` for a counted failure.
#[inline]
pub fn wait_count(counter: &Counter, successes: u64) -> Result<()> {
    match counter.wait(successes)?.failure {
        0 => Ok(()),
        _ => Err(CallError::new("counted operation", Error::Fail)),
    }
}

#[inline]
fn succeeded(event: &RawEvent) -> Result<()> {
    if event.ni_fail == NiFail::Ok as u8 {
        return Ok(());
    }
    let what = "operation that an event reported as failed";
    Err(CallError::new(what, Error::Fail))
}

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
