//! Counting events (Portals 4.3, section `Counting events`).

use crate::triggered::Waiting;
use crate::{Host, Interface};
use lintel_memory::Span;
use lintel_types::{CounterIndex, CountingEvent, Error, Handle, Kind, NiFail, Result};

pub(crate) struct Counter<S> {
    pub(crate) value: CountingEvent,
    pub(crate) waiting: Waiting<S>,
}

impl<S: Span> Interface<S> {
    /// PtlCTAlloc: a counter of zero.
    ///
    /// # Errors
    /// `NoSpace` beyond `max_cts`.
    pub fn counter_alloc<H: Host<S>>(&mut self, host: &mut H) -> Result<Handle> {
        if self.counters.len() >= self.config.limits.max_cts as usize {
            return Err(Error::NoSpace);
        }
        let counter = Counter {
            value: CountingEvent::default(),
            waiting: Waiting::default(),
        };
        let (index, generation) = self.counters.insert(counter).map_err(|_| Error::NoSpace)?;
        host.publish(index, CountingEvent::default());
        Ok(self.handle(Kind::Counter, generation, index.into()))
    }

    /// PtlCTFree: triggered operations that wait on the counter are cancelled;
    /// descriptors and entries that name it work on without counting.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live counter.
    pub fn counter_free(&mut self, counter: Handle) -> Result<()> {
        self.cancel_triggered(counter)?;
        let index = CounterIndex(counter.index());
        let named = |counter: &mut Option<CounterIndex>| {
            counter.take_if(|counter| *counter == index);
        };
        self.descriptors_changed += 1;
        let descriptors = self.descriptors.values_mut();
        descriptors.for_each(|descriptor| named(&mut descriptor.counter));
        let entries = self.entries.values_mut();
        entries.for_each(|entry| named(&mut entry.counter));
        let receivers = self
            .unexpected
            .values_mut()
            .filter_map(|header| header.receiver.as_mut());
        receivers.for_each(|receiver| named(&mut receiver.counter));
        self.forget_landings();
        self.counters.remove(index);
        Ok(())
    }

    /// PtlCTGet.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live counter.
    #[inline(always)]
    pub fn counter_value(&self, counter: Handle) -> Result<CountingEvent> {
        let index = self.counter(counter)?;
        Ok(self
            .counters
            .at(index)
            .map_or(CountingEvent::default(), |counter| counter.value))
    }

    /// PtlCTSet (Portals 4.3, section `Counting events`); may fire triggered operations.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live counter.
    pub fn counter_set<H: Host<S>>(
        &mut self,
        counter: Handle,
        value: CountingEvent,
        host: &mut H,
    ) -> Result<()> {
        let index = self.counter(counter)?;
        self.set(index, value, host);
        self.settle(host);
        Ok(())
    }

    /// PtlCTInc (Portals 4.3, section `Counting events`); may fire triggered operations.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live counter.
    pub fn counter_inc<H: Host<S>>(
        &mut self,
        counter: Handle,
        by: CountingEvent,
        host: &mut H,
    ) -> Result<()> {
        let index = self.counter(counter)?;
        self.increment(index, by, host);
        self.settle(host);
        Ok(())
    }

    #[inline]
    pub(crate) fn counter(&self, handle: Handle) -> Result<CounterIndex> {
        self.live(&self.counters, handle, Kind::Counter)
    }

    /// Counts an operation that ended: `bytes` if bytes are counted, else
    /// one; a failure always counts one (Portals 4.3, section `Counting events`,
    /// `ptl_ct_event_t`).
    #[inline(always)]
    pub(crate) fn count<H: Host<S>>(
        &mut self,
        index: CounterIndex,
        fail: NiFail,
        bytes: Option<u64>,
        host: &mut H,
    ) {
        let by = match fail {
            NiFail::Ok => CountingEvent {
                success: bytes.unwrap_or(1),
                failure: 0,
            },
            _ => CountingEvent {
                success: 0,
                failure: 1,
            },
        };
        self.increment(index, by, host);
    }

    #[inline(always)]
    pub(crate) fn increment<H: Host<S>>(
        &mut self,
        index: CounterIndex,
        by: CountingEvent,
        host: &mut H,
    ) {
        let Some(counter) = self.counters.at(index) else {
            return;
        };
        let value = CountingEvent {
            success: counter.value.success.wrapping_add(by.success),
            failure: counter.value.failure.wrapping_add(by.failure),
        };
        self.set(index, value, host);
    }

    #[inline(always)]
    pub(crate) fn set<H: Host<S>>(
        &mut self,
        index: CounterIndex,
        value: CountingEvent,
        host: &mut H,
    ) {
        let Some(counter) = self.counters.at_mut(index) else {
            return;
        };
        counter.value = value;
        self.work.counts += 1;
        host.publish(index, value);
        if counter.waiting.reached(value.sum()) {
            counter.waiting.release(value.sum(), &mut self.ready);
        }
    }
}
