//! Counting events.

use crate::interface::Interface;
use crate::queue::{FOREVER, milliseconds};
use crate::triggered::Trigger;
use lintel_runtime::process;
use lintel_types::{CountingEvent, Error, Handle, Result};
use std::sync::Arc;
use std::time::Duration;

/// A counting event (PtlCTAlloc): counts successes and failures. Clones are the same
/// counter.
///
/// ```
/// use portals4::*;
/// use std::time::Duration;
/// # let portals = Portals::init()?;
/// # let interface = Interface::open(&portals, Options::default())?;
/// let counter = Counter::alloc(&interface)?;
/// counter.increment(2)?;
/// assert_eq!(counter.wait(2)?.success, 2);
/// assert_eq!(counter.poll(3, Duration::from_millis(1))?, None);
/// counter.increment_failure(1)?;
/// // A failure ends every wait.
/// assert_eq!(counter.wait(3)?, CountingEvent { success: 2, failure: 1 });
/// counter.set(CountingEvent::default())?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Counter {
    counter: Arc<Cell>,
}

#[derive(Debug)]
struct Cell {
    handle: Handle,
    interface: Interface,
}

impl Drop for Cell {
    fn drop(&mut self) {
        // Fails only if the library has been finalized before.
        let _ = process().counter_free(self.handle);
    }
}

impl Counter {
    /// A counter of zero.
    ///
    /// # Errors
    /// `NoSpace` beyond `max_cts`.
    pub fn alloc(interface: &Interface) -> Result<Counter> {
        let handle = process().counter_alloc(interface.handle())?;
        let interface = interface.clone();
        Ok(Counter {
            counter: Arc::new(Cell { handle, interface }),
        })
    }

    /// The value (PtlCTGet).
    ///
    /// # Errors
    /// `NoInit` in a fork's child.
    pub fn get(&self) -> Result<CountingEvent> {
        process().counter_get(self.handle())
    }

    /// Waits until `successes` are counted, or a failure is (PtlCTWait).
    ///
    /// # Errors
    /// `Aborted` after [`Portals::abort`](crate::Portals::abort).
    pub fn wait(&self, successes: u64) -> Result<CountingEvent> {
        let (value, _) = process().counter_poll(&[self.handle()], &[successes], FOREVER)?;
        Ok(value)
    }

    /// As [`wait`](Self::wait), at most so long (PtlCTPoll).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn poll(&self, successes: u64, timeout: Duration) -> Result<Option<CountingEvent>> {
        let found = Counter::poll_any(&[(self, successes)], timeout)?;
        Ok(found.map(|(_, value)| value))
    }

    /// Waits until any of several counters has its successes, or a failure, at most
    /// so long; returns which one it was (PtlCTPoll).
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn poll_any(
        counters: &[(&Counter, u64)],
        timeout: Duration,
    ) -> Result<Option<(usize, CountingEvent)>> {
        let handles: Vec<Handle> = counters
            .iter()
            .map(|(counter, _)| counter.handle())
            .collect();
        let tests: Vec<u64> = counters.iter().map(|(_, successes)| *successes).collect();
        match process().counter_poll(&handles, &tests, milliseconds(timeout)) {
            Ok((value, which)) => Ok(Some((which, value))),
            Err(Error::CtNoneReached) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gives it a value (PtlCTSet).
    ///
    /// # Errors
    /// `NoInit` in a fork's child.
    pub fn set(&self, value: CountingEvent) -> Result<()> {
        process().counter_set(self.handle(), value)
    }

    /// Counts successes (PtlCTInc).
    ///
    /// # Errors
    /// `NoInit` in a fork's child.
    pub fn increment(&self, successes: u64) -> Result<()> {
        self.add(CountingEvent {
            success: successes,
            failure: 0,
        })
    }

    /// Counts failures (PtlCTInc).
    ///
    /// # Errors
    /// `NoInit` in a fork's child.
    pub fn increment_failure(&self, failures: u64) -> Result<()> {
        self.add(CountingEvent {
            success: 0,
            failure: failures,
        })
    }

    fn add(&self, by: CountingEvent) -> Result<()> {
        process().counter_inc(self.handle(), by)
    }

    /// What is to happen when successes and failures together reach `threshold`.
    pub fn at(&self, threshold: u64) -> Trigger<'_> {
        Trigger::new(self, threshold)
    }

    /// Cancels what waits for this counter (PtlCTCancelTriggered).
    ///
    /// # Errors
    /// `NoInit` in a fork's child.
    pub fn cancel_triggered(&self) -> Result<()> {
        process().cancel_triggered(self.handle())
    }

    /// The interface that it was made on.
    pub fn interface(&self) -> &Interface {
        &self.counter.interface
    }

    pub(crate) fn handle(&self) -> Handle {
        self.counter.handle
    }

    /// The counter's handle, or that of none.
    pub(crate) fn handle_of(counter: Option<&Counter>) -> Handle {
        counter.map_or(Handle::CT_NONE, Counter::handle)
    }
}
