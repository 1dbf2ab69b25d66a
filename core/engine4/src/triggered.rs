//! Triggered operations (Portals 4.3, section `Triggered operations`, and the match entry
//! extensions of the public implementation).
//!
//! What a counter releases goes into one queue that [`Interface::settle`]
//! empties in a loop; a chain of any length needs no stack.

use crate::{EntrySpec, Host, Interface, Transfer};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use lintel_memory::Span;
use lintel_types::{CountingEvent, EntryIndex, Error, Handle, List, Result};

/// An operation that waits for a counter.
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(bound(
        serialize = "S: Span + serde::Serialize",
        deserialize = "S: Span + serde::Deserialize<'de>"
    ))
)]
pub enum Deferred<S> {
    /// A put, get, atomic, fetch or swap.
    Transfer(Box<Transfer>),
    /// PtlTriggeredCTInc: adds to that counter.
    Increment(Handle, CountingEvent),
    /// PtlTriggeredCTSet: sets that counter.
    Set(Handle, CountingEvent),
    /// PtlTriggeredMEAppend, by [`Interface::trigger_append`] alone; the entry holds
    /// its slot already.
    Append(Handle, Box<EntrySpec<S>>, List),
    /// PtlTriggeredMEUnlink: unlinks that entry.
    Unlink(Handle),
}

/// What waits on one counter.
pub(crate) struct Waiting<S> {
    /// By threshold, then in posting order.
    operations: BTreeMap<(u64, u64), Deferred<S>>,
    /// A value below which nothing is released; `u64::MAX` only if nothing waits.
    lowest: u64,
}

impl<S> Default for Waiting<S> {
    fn default() -> Self {
        Waiting {
            operations: BTreeMap::new(),
            lowest: u64::MAX,
        }
    }
}

impl<S> Waiting<S> {
    /// Whether nothing waits.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.lowest == u64::MAX
    }

    /// Whether anything waits for a threshold of at most `sum`.
    #[inline]
    pub(crate) fn reached(&self, sum: u64) -> bool {
        sum >= self.lowest && !self.is_empty()
    }

    /// How many operations wait, and the lowest of their thresholds.
    pub(crate) fn state(&self) -> (usize, Option<u64>) {
        let first = self.operations.first_key_value();
        (
            self.operations.len(),
            first.map(|((threshold, _), _)| *threshold),
        )
    }

    /// Moves what waits for a threshold of at most `sum` to `ready`, lowest threshold first,
    /// in posting order among equals (Portals 4.3, section `Triggered operations`).
    #[cold]
    pub(crate) fn release(&mut self, sum: u64, ready: &mut VecDeque<Deferred<S>>) {
        while let Some(first) = self.operations.first_entry() {
            if first.key().0 > sum {
                break;
            }
            ready.push_back(first.remove());
        }
        let first = self.operations.first_key_value();
        self.lowest = first.map_or(u64::MAX, |((threshold, _), _)| lowest(*threshold));
    }
}

/// The lowest value that may release something that waits for that threshold.
fn lowest(threshold: u64) -> u64 {
    threshold.min(u64::MAX - 1)
}

impl<S: Span> Interface<S> {
    /// Defers an operation until `trigger` has reached `threshold`; carries it out at
    /// once if it has.
    ///
    /// # Errors
    /// `ArgInvalid` if the operation itself would be refused now, or the
    /// counter isn't live; `NoSpace` beyond `max_triggered_ops`.
    pub fn trigger<H: Host<S>>(
        &mut self,
        operation: Deferred<S>,
        trigger: Handle,
        threshold: u64,
        host: &mut H,
    ) -> Result<()> {
        self.counter(trigger)?;
        self.check_deferred(&operation)?;
        self.wait_for(operation, trigger, threshold, host)
    }

    fn wait_for<H: Host<S>>(
        &mut self,
        operation: Deferred<S>,
        trigger: Handle,
        threshold: u64,
        host: &mut H,
    ) -> Result<()> {
        let index = self.counter(trigger)?;
        if self.triggered >= self.config.limits.max_triggered_ops as usize {
            return Err(Error::NoSpace);
        }
        self.posted += 1;
        let posted = self.posted;
        let Some(counter) = self.counters.at_mut(index) else {
            return Err(Error::ArgInvalid);
        };
        self.triggered += 1;
        counter
            .waiting
            .operations
            .insert((threshold, posted), operation);
        counter.waiting.lowest = counter.waiting.lowest.min(lowest(threshold));
        let sum = counter.value.sum();
        if counter.waiting.reached(sum) {
            counter.waiting.release(sum, &mut self.ready);
            self.settle(host);
        }
        Ok(())
    }

    /// PtlTriggeredMEAppend: the handle is valid at once, the entry is linked
    /// when the counter reaches the threshold.
    ///
    /// # Errors
    /// As [`append`](Self::append) and [`trigger`](Self::trigger).
    pub fn trigger_append<H: Host<S>>(
        &mut self,
        spec: EntrySpec<S>,
        list: List,
        trigger: Handle,
        threshold: u64,
        host: &mut H,
    ) -> Result<Handle> {
        self.counter(trigger)?;
        let entry = self.reserve_entry(&spec, list)?;
        let deferred = Deferred::Append(entry, Box::new(spec), list);
        match self.wait_for(deferred, trigger, threshold, host) {
            Ok(()) => Ok(entry),
            Err(error) => {
                self.entries.discard(EntryIndex(entry.index()));
                Err(error)
            }
        }
    }

    /// PtlCTCancelTriggered.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live counter.
    pub fn cancel_triggered(&mut self, counter: Handle) -> Result<()> {
        let index = self.counter(counter)?;
        let Some(counter) = self.counters.at_mut(index) else {
            return Ok(());
        };
        let cancelled = core::mem::take(&mut counter.waiting);
        self.triggered -= cancelled.operations.len();
        for operation in cancelled.operations.into_values() {
            if let Deferred::Append(entry, ..) = operation {
                // It may be unlinked already, and its slot be another entry's.
                if let Ok(index) = self.entry(entry) {
                    self.entries.discard(index);
                }
            }
        }
        Ok(())
    }

    fn check_deferred(&self, operation: &Deferred<S>) -> Result<()> {
        match operation {
            Deferred::Transfer(transfer) => self.check(transfer).map(drop),
            Deferred::Increment(counter, _) | Deferred::Set(counter, _) => {
                self.counter(*counter).map(drop)
            }
            // Only `trigger_append` knows that the entry isn't linked yet.
            Deferred::Append(..) => Err(Error::ArgInvalid),
            Deferred::Unlink(entry) => self.entry(*entry).map(drop),
        }
    }

    /// Does what counters have released, until nothing is released any more.
    #[inline(always)]
    pub(crate) fn settle<H: Host<S>>(&mut self, host: &mut H) {
        if !self.ready.is_empty() {
            self.fire_ready(host);
        }
    }

    #[cold]
    #[inline(never)]
    fn fire_ready<H: Host<S>>(&mut self, host: &mut H) {
        while let Some(operation) = self.ready.pop_front() {
            // As many are under way as tokens can name: it waits, and what is released behind it, until
            // one of them has ended.
            if matches!(operation, Deferred::Transfer(_)) && self.operations.is_full() {
                return self.ready.push_front(operation);
            }
            self.triggered -= 1;
            self.work.fired += 1;
            self.fire(operation, host);
        }
    }

    /// An operation whose descriptor, counter or entry has been released meanwhile is
    /// dropped: no queue or counter is left that could report it.
    fn fire<H: Host<S>>(&mut self, operation: Deferred<S>, host: &mut H) {
        match operation {
            Deferred::Transfer(transfer) => {
                if let Ok(plan) = self.check(&transfer) {
                    let _ = self.launch_triggered(&transfer, plan, host);
                }
            }
            Deferred::Increment(counter, by) => {
                if let Ok(index) = self.counter(counter) {
                    self.increment(index, by, host);
                }
            }
            Deferred::Set(counter, value) => {
                if let Ok(index) = self.counter(counter) {
                    self.set(index, value, host);
                }
            }
            Deferred::Append(entry, spec, list) => {
                if let Ok(index) = self.entry(entry) {
                    self.link_reserved(index, &spec, list, host);
                }
            }
            Deferred::Unlink(entry) => {
                let _ = self.unlink(entry);
            }
        }
    }
}
