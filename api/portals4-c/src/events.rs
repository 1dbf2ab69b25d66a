//! Counting events, event queues.

use crate::convert::{array, code, give, not_null};
use crate::entries::named;
use lintel_runtime::{Taken, process};
use lintel_types::{CountingEvent, Error, Event, Handle};
use std::ffi::c_int;

const FOREVER: u32 = u32::MAX;

/// `PtlCTAlloc`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlCTAlloc(ni_handle: Handle, ct_handle: *mut Handle) -> c_int {
    let alloc = || {
        process().check_alive()?;
        not_null(ct_handle)?;
        named(ni_handle)?;
        process().counter_alloc(ni_handle)
    };
    code(alloc().map(|handle| give(ct_handle, handle)))
}

/// `PtlCTFree`
#[unsafe(no_mangle)]
pub extern "C" fn PtlCTFree(ct_handle: Handle) -> c_int {
    code(process().counter_free(ct_handle))
}

/// `PtlCTCancelTriggered`
#[unsafe(no_mangle)]
pub extern "C" fn PtlCTCancelTriggered(ct_handle: Handle) -> c_int {
    code(process().cancel_triggered(ct_handle))
}

/// `PtlCTGet`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlCTGet(ct_handle: Handle, event: *mut CountingEvent) -> c_int {
    let get = || {
        let value = process().counter_get(ct_handle)?;
        not_null(event)?;
        Ok(value)
    };
    code(get().map(|value| give(event, value)))
}

/// `PtlCTWait`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlCTWait(
    ct_handle: Handle,
    test: u64,
    event: *mut CountingEvent,
) -> c_int {
    let is_valid = process().check_alive().is_ok() && !event.is_null();
    let reached = is_valid.then(|| process().counter_reached(ct_handle, test));
    match reached.flatten() {
        Some(value) => {
            give(event, value);
            code(Ok(()))
        }
        None => wait_for_counter(ct_handle, test, event),
    }
}

/// Apart: who needn't wait, saves no registers.
#[inline(never)]
fn wait_for_counter(counter: Handle, test: u64, event: *mut CountingEvent) -> c_int {
    let wait = || {
        process().check_alive()?;
        not_null(event)?;
        process().counter_poll(&[counter], &[test], FOREVER)
    };
    code(wait().map(|(value, _)| give(event, value)))
}

/// `PtlCTPoll`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlCTPoll(
    ct_handles: *const Handle,
    tests: *const u64,
    size: u32,
    timeout: u32,
    event: *mut CountingEvent,
    which: *mut u32,
) -> c_int {
    let poll = || {
        process().check_alive()?;
        if size == 0 {
            return Err(Error::ArgInvalid);
        }
        let (handles, tests) = (array(ct_handles, size.into())?, array(tests, size.into())?);
        not_null(event)?;
        not_null(which)?;
        process().counter_poll(handles, tests, timeout)
    };
    code(poll().map(|(value, index)| {
        give(event, value);
        give(which, index as u32);
    }))
}

/// `PtlCTSet`
#[unsafe(no_mangle)]
pub extern "C" fn PtlCTSet(ct_handle: Handle, new_ct: CountingEvent) -> c_int {
    code(process().counter_set(ct_handle, new_ct))
}

/// `PtlCTInc`
#[unsafe(no_mangle)]
pub extern "C" fn PtlCTInc(ct_handle: Handle, increment: CountingEvent) -> c_int {
    code(one_sided(increment).and_then(|()| process().counter_inc(ct_handle, increment)))
}

/// An increment counts successes or failures, not both.
pub(crate) fn one_sided(increment: CountingEvent) -> lintel_types::Result<()> {
    if increment.success != 0 && increment.failure != 0 {
        return Err(Error::ArgInvalid);
    }
    Ok(())
}

/// `PtlEQAlloc`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQAlloc(
    ni_handle: Handle,
    count: u64,
    eq_handle: *mut Handle,
) -> c_int {
    let alloc = || {
        process().check_alive()?;
        not_null(eq_handle)?;
        named(ni_handle)?;
        process().queue_alloc(ni_handle, count)
    };
    code(alloc().map(|handle| give(eq_handle, handle)))
}

/// `PtlEQFree`
#[unsafe(no_mangle)]
pub extern "C" fn PtlEQFree(eq_handle: Handle) -> c_int {
    code(process().queue_free(eq_handle))
}

/// `PtlEQGet`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQGet(eq_handle: Handle, event: *mut Event) -> c_int {
    if event.is_null() {
        return code(process().check_alive().and(Err(Error::ArgInvalid)));
    }
    returned(process().queue_take(eq_handle, move |taken| deliver(event, &taken)))
}

/// `PtlEQWait`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQWait(eq_handle: Handle, event: *mut Event) -> c_int {
    let wait = || {
        process().check_alive()?;
        not_null(event)?;
        process().queue_poll(&[eq_handle], FOREVER, |taken, _| deliver(event, &taken))
    };
    returned(wait())
}

/// `PtlEQPoll`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQPoll(
    eq_handles: *const Handle,
    size: u32,
    timeout: u32,
    event: *mut Event,
    which: *mut u32,
) -> c_int {
    let poll = || {
        process().check_alive()?;
        if size == 0 {
            return Err(Error::ArgInvalid);
        }
        let handles = array(eq_handles, size.into())?;
        not_null(event)?;
        not_null(which)?;
        process().queue_poll(handles, timeout, |taken, index| {
            give(which, index as u32);
            deliver(event, &taken)
        })
    };
    returned(poll())
}

/// Writes an event to the caller's memory, and gives the code that goes with it.
#[inline(always)]
fn deliver(place: *mut Event, taken: &Taken) -> c_int {
    // Word for word: an Event in memory is its words (lintel-types).
    give(place.cast(), *taken.words());
    match taken.dropped {
        false => 0,
        true => Error::EqDropped as c_int,
    }
}

#[inline(always)]
fn returned(code: lintel_types::Result<c_int>) -> c_int {
    code.unwrap_or_else(|error| error as c_int)
}
