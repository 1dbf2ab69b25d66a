//! Event queues and counters, and the ways to wait for them.

use crate::error::{CallError, Result, check};
use crate::interface::Ni;
use crate::transfer::Trigger;
use lintel_types::{CountingEvent, Handle};
use portals4_sys::{self as sys, RawEvent, codes};
use std::ffi::c_int;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// An event queue that this value owns (PtlEQAlloc).
#[derive(Debug)]
pub struct Queue {
    handle: Handle,
    ni: Arc<Ni>,
}

impl Queue {
    pub(crate) fn new(ni: &Arc<Ni>, count: u64) -> Result<Self> {
        let mut handle = Handle::INVALID;
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlEQAlloc(ni.handle, count, &mut handle) };
        check("PtlEQAlloc", code)?;
        let ni = Arc::clone(ni);
        Ok(Queue { handle, ni })
    }

    /// The handle, for calls that this crate doesn't wrap.
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// The next event, if there is one (`PtlEQGet`).
    ///
    /// # Errors
    /// The code of the call; `PTL_EQ_DROPPED` if the queue was too small.
    #[inline]
    pub fn get(&self) -> Result<Option<RawEvent>> {
        let mut event = MaybeUninit::uninit();
        // SAFETY: the output outlives the call.
        match unsafe { sys::PtlEQGet(self.handle, event.as_mut_ptr()) } {
            codes::EQ_EMPTY => Ok(None),
            // SAFETY: PTL_OK says that the event was written.
            codes::OK => Ok(Some(unsafe { event.assume_init() })),
            code => Err(refused("PtlEQGet", code)),
        }
    }

    /// The next event, as soon as there is one (`PtlEQWait`).
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn wait(&self) -> Result<RawEvent> {
        let mut event = RawEvent::default();
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlEQWait(self.handle, &mut event) };
        check("PtlEQWait", code).map(|()| event)
    }

    /// The next event, if there is one within so many milliseconds (`PtlEQPoll`).
    ///
    /// # Errors
    /// As for [`get`](Self::get).
    pub fn poll(&self, milliseconds: u32) -> Result<Option<RawEvent>> {
        match self.poll_once(milliseconds) {
            (codes::OK, event) => Ok(Some(event)),
            (codes::EQ_EMPTY, _) => Ok(None),
            (code, _) => Err(refused("PtlEQPoll", code)),
        }
    }

    /// As [`poll`](Self::poll), for a caller whom lost events don't harm: the next one that
    /// was kept.
    ///
    /// # Errors
    /// The code of the call, never `PTL_EQ_DROPPED`.
    pub fn poll_lossy(&self, milliseconds: u32) -> Result<Option<RawEvent>> {
        match self.poll_once(milliseconds) {
            (codes::OK | codes::EQ_DROPPED, event) => Ok(Some(event)),
            (codes::EQ_EMPTY, _) => Ok(None),
            (code, _) => Err(refused("PtlEQPoll", code)),
        }
    }

    fn poll_once(&self, milliseconds: u32) -> (c_int, RawEvent) {
        let (mut event, mut which) = (RawEvent::default(), 0);
        // SAFETY: one queue, and outputs that outlive the call.
        let code = unsafe { sys::PtlEQPoll(&self.handle, 1, milliseconds, &mut event, &mut which) };
        (code, event)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.ni.release(|| sys::PtlEQFree(self.handle));
    }
}

/// A counting event that this value owns (PtlCTAlloc).
#[derive(Debug)]
pub struct Counter {
    handle: Handle,
    ni: Arc<Ni>,
}

impl Counter {
    pub(crate) fn new(ni: &Arc<Ni>) -> Result<Self> {
        let mut handle = Handle::INVALID;
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlCTAlloc(ni.handle, &mut handle) };
        check("PtlCTAlloc", code)?;
        let ni = Arc::clone(ni);
        Ok(Counter { handle, ni })
    }

    /// The handle, for [`poll_counters`] and calls that this crate doesn't wrap.
    #[inline]
    pub fn handle(&self) -> Handle {
        self.handle
    }

    /// What has been counted (`PtlCTGet`).
    ///
    /// # Errors
    /// The code of the call.
    #[inline]
    pub fn get(&self) -> Result<CountingEvent> {
        let mut value = CountingEvent::default();
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlCTGet(self.handle, &mut value) };
        check("PtlCTGet", code).map(|()| value)
    }

    /// What has been counted once that is `test` successes or any failure (`PtlCTWait`).
    ///
    /// # Errors
    /// The code of the call.
    #[inline]
    pub fn wait(&self, test: u64) -> Result<CountingEvent> {
        let mut value = CountingEvent::default();
        // SAFETY: the output outlives the call.
        let code = unsafe { sys::PtlCTWait(self.handle, test, &mut value) };
        check("PtlCTWait", code).map(|()| value)
    }

    /// As [`wait`](Self::wait), at most so many milliseconds (`PtlCTPoll`).
    ///
    /// # Errors
    /// The code of the call.
    pub fn poll(&self, test: u64, milliseconds: u32) -> Result<Option<CountingEvent>> {
        let reached = poll_counters(&[self.handle], &[test], milliseconds)?;
        Ok(reached.map(|(_, value)| value))
    }

    /// Counts one success (`PtlCTInc`).
    ///
    /// # Errors
    /// The code of the call.
    #[inline]
    pub fn increment(&self) -> Result<()> {
        check("PtlCTInc", sys::PtlCTInc(self.handle, ONE))
    }

    /// Counts one success when the trigger fires (`PtlTriggeredCTInc`).
    ///
    /// # Errors
    /// The code of the call.
    #[inline]
    pub fn triggered_increment(&self, trigger: Trigger<'_>) -> Result<()> {
        let (by, threshold) = trigger.parts();
        let code = sys::PtlTriggeredCTInc(self.handle, ONE, by, threshold);
        check("PtlTriggeredCTInc", code)
    }

    /// Cancels every operation that waits for this counter (`PtlCTCancelTriggered`).
    ///
    /// # Errors
    /// The code of the call.
    pub fn cancel_triggered(&self) -> Result<()> {
        check(
            "PtlCTCancelTriggered",
            sys::PtlCTCancelTriggered(self.handle),
        )
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        // Operations that wait for it are cancelled.
        self.ni.release(|| sys::PtlCTFree(self.handle));
    }
}

/// The first of several counters that has reached its test or counted a failure, within so
/// many milliseconds: its index and its value (`PtlCTPoll`).
///
/// # Errors
/// The code of the call.
///
/// # Panics
/// If there isn't one test for each counter.
pub fn poll_counters(
    counters: &[Handle],
    tests: &[u64],
    milliseconds: u32,
) -> Result<Option<(usize, CountingEvent)>> {
    assert_eq!(counters.len(), tests.len(), "one test for each counter");
    let (mut value, mut which) = (CountingEvent::default(), 0);
    // SAFETY: two arrays of that length (asserted), and outputs that outlive the call.
    let code = unsafe {
        sys::PtlCTPoll(
            counters.as_ptr(),
            tests.as_ptr(),
            counters.len() as u32,
            milliseconds,
            &mut value,
            &mut which,
        )
    };
    match code {
        codes::OK => Ok(Some((which as usize, value))),
        codes::CT_NONE_REACHED => Ok(None),
        code => Err(refused("PtlCTPoll", code)),
    }
}

#[cold]
fn refused(call: &'static str, code: c_int) -> CallError {
    CallError { call, code }
}

const ONE: CountingEvent = CountingEvent {
    success: 1,
    failure: 0,
};
