//! Event queues.

use crate::convert::{array, code, give, not_null};
use lintel_runtime::{Handler, Taken3, process3};
use lintel_types::Handle;
use lintel_types::portals3::{Error, Event, Result};
use portals3_sys::EventHandler;
use std::ffi::c_int;
use std::sync::Arc;

/// `PtlEQAlloc`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQAlloc(
    ni: Handle,
    count: u64,
    handler: EventHandler,
    eq: *mut Handle,
) -> c_int {
    let alloc = || {
        not_null(eq)?;
        let handler = handler.map(|function| {
            let call = move |mut event: Event| {
                // SAFETY: the header asks for a function that may be called from any thread,
                // and the event lives for the call.
                unsafe { function(&mut event) }
            };
            Arc::new(call) as Handler
        });
        process3().queue_alloc(ni, count, handler)
    };
    code(alloc().map(|queue| give(eq, queue)))
}

/// `PtlEQFree`
#[unsafe(no_mangle)]
pub extern "C" fn PtlEQFree(eq: Handle) -> c_int {
    code(process3().queue_free3(eq))
}

/// `PtlEQGet`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQGet(eq: Handle, event: *mut Event) -> c_int {
    let get = || {
        not_null(event)?;
        process3().queue_get(eq, |taken| deliver(event, &taken))
    };
    returned(get())
}

/// `PtlEQPeek`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQPeek(eq: Handle, event: *mut Event) -> c_int {
    let peek = || {
        not_null(event)?;
        let taken = process3().queue_peek(eq)?;
        Ok(deliver(event, &taken))
    };
    returned(peek())
}

/// `PtlEQWait`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQWait(eq: Handle, event: *mut Event) -> c_int {
    let wait = || {
        not_null(event)?;
        process3().queue_wait(eq, |taken| deliver(event, &taken))
    };
    returned(wait())
}

/// `PtlEQPoll`
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlEQPoll(
    eqs: *mut Handle,
    size: c_int,
    timeout: u32,
    event: *mut Event,
    which: *mut c_int,
) -> c_int {
    let poll = || {
        not_null(event)?;
        not_null(which)?;
        let size = usize::try_from(size).ok().filter(|size| *size > 0);
        let queues = array(eqs, size.ok_or(Error::EqInvalid)?)?;
        let (taken, index) = process3().queue_poll(queues, timeout)?;
        give(which, index as c_int);
        Ok(deliver(event, &taken))
    };
    returned(poll())
}

/// Writes an event to the caller's memory; returns the call's code.
#[inline(always)]
fn deliver(event: *mut Event, taken: &Taken3) -> c_int {
    // Word for word: an Event in memory is its words (lintel-types).
    give(event.cast(), *taken.words());
    match taken.dropped {
        false => 0,
        true => Error::EqDropped as c_int,
    }
}

#[inline(always)]
fn returned(result: Result<c_int>) -> c_int {
    match result {
        Ok(answer) => answer,
        Err(error) => code(Err(error)),
    }
}
