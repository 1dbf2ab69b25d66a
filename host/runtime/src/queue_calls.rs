//! Looking at queues and counters, and waiting for them: for callers in the process
//! that the engine lives in.

use crate::core::Core;
use crate::library::Library;
use crate::owner::{LocalProcess, Owner};
use crate::queue::EventQueue;
use crate::snapshot::{counters_at, events_in};
use crate::tables::LocalTables;
use lintel_bridge::Taken;
use lintel_types::{CountingEvent, Error, Event, Handle, Result};
use std::time::{Duration, Instant};

/// `PTL_TIME_FOREVER`: a timeout in milliseconds that never ends.
pub(crate) const FOREVER: u32 = u32::MAX;

impl Library<LocalProcess> {
    #[inline(always)]
    fn tables_of(&self, handle: Handle) -> &LocalTables {
        &self.owner().tables()[handle.interface().position()]
    }

    /// PtlEQGet: the next event, and whether others before it were lost.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `EqEmpty`.
    #[inline]
    pub fn queue_get(&self, handle: Handle) -> Result<(Event, bool)> {
        self.queue_take(handle, |taken| (taken.event(), taken.dropped))
    }

    /// As [`queue_get`](Self::queue_get), the event still as words, and given to a function.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `EqEmpty`.
    #[inline(always)]
    pub fn queue_take<R>(&self, handle: Handle, take: impl Fn(Taken) -> R + Copy) -> Result<R> {
        let Ok(queue) = self.tables_of(handle).queue(handle) else {
            return Err(self.why_not_live());
        };
        if queue.ends.is_empty() {
            if self.lookout.is_quiet() {
                return Err(Error::EqEmpty);
            }
            if let Some(taken) = self.poll_for_event(&[handle], move |taken, _| take(taken)) {
                return Ok(taken);
            }
        }
        queue.pop().map(take).ok_or(Error::EqEmpty)
    }

    /// Why a handle names nothing. Queues and counters end with the library, so that who
    /// has a live one needn't ask.
    #[cold]
    fn why_not_live(&self) -> Error {
        self.check_alive().err().unwrap_or(Error::ArgInvalid)
    }

    /// PtlEQWait and PtlEQPoll: gives `take` the next event of any of the queues, and which
    /// queue had it. Each queue is looked at first in its turn.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `Aborted`; `EqEmpty` once `timeout` (ms) is over.
    #[inline(always)]
    pub fn queue_poll<R>(
        &self,
        handles: &[Handle],
        timeout: u32,
        take: impl Fn(Taken, usize) -> R,
    ) -> Result<R> {
        if timeout != 0 {
            return self.queue_poll_for(handles, timeout, take);
        }
        if self.is_aborted() {
            return Err(Error::Aborted);
        }
        let mut has_polled = false;
        let activity = self.activity();
        let first = turn(activity, handles.len());
        loop {
            if let Some(taken) = self.first_event_of(handles, first, &take)? {
                return Ok(taken);
            }
            if has_polled || self.lookout.is_quiet() {
                return Err(Error::EqEmpty);
            }
            if let Some(taken) = self.poll_for_event(handles, &take) {
                return Ok(taken);
            }
            if self.activity() == activity {
                return Err(Error::EqEmpty);
            }
            has_polled = true;
        }
    }

    /// As [`queue_poll`](Self::queue_poll), with a timeout.
    #[inline(never)]
    fn queue_poll_for<R>(
        &self,
        handles: &[Handle],
        timeout: u32,
        take: impl Fn(Taken, usize) -> R,
    ) -> Result<R> {
        self.check_alive()?;
        let any = || {
            let first = turn(self.activity(), handles.len());
            self.first_event_of(handles, first, &take)
        };
        let awaits = || events_in(handles);
        let poll = || match self.lookout.is_quiet() {
            true => None,
            false => self.poll_for_event(handles, &take),
        };
        self.wait_polling(deadline(timeout), awaits, any, poll)?
            .ok_or(Error::EqEmpty)
    }

    /// Gives `take` the next event of any of the queues, tried from `first` on.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live queue, `NoInit`.
    #[inline(always)]
    fn first_event_of<R>(
        &self,
        handles: &[Handle],
        first: usize,
        take: impl Fn(Taken, usize) -> R,
    ) -> Result<Option<R>> {
        while let Some((queue, which)) = self.first_filled(handles, first)? {
            // If another thread has taken it, another queue may have one.
            if let Some(taken) = queue.pop() {
                return Ok(Some(take(taken, which)));
            }
        }
        Ok(None)
    }

    /// The first of the queues, tried from `first` on, that has an event, and which it is.
    ///
    /// # Errors
    /// `ArgInvalid` for a handle that isn't a live queue, `NoInit`.
    #[inline(always)]
    fn first_filled(
        &self,
        handles: &[Handle],
        first: usize,
    ) -> Result<Option<(&EventQueue, usize)>> {
        let mut which = first;
        for _ in handles {
            let handle = handles[which];
            match self.tables_of(handle).queue(handle) {
                Ok(queue) if !queue.ends.is_empty() => return Ok(Some((queue, which))),
                Ok(_) => {}
                Err(_) => return Err(self.why_not_live()),
            }
            which += 1;
            if which == handles.len() {
                which = 0;
            }
        }
        Ok(None)
    }

    /// One look, progress, and another look.
    #[inline]
    fn poll_once<T>(&self, ready: impl Fn() -> Result<Option<T>>) -> Result<Option<T>> {
        if self.is_aborted() {
            return Err(Error::Aborted);
        }
        match ready()? {
            None => {
                self.poll_for_counts();
                ready()
            }
            found => Ok(found),
        }
    }

    /// PtlCTGet. A caller that loops on it makes progress.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`.
    #[inline]
    pub fn counter_get(&self, handle: Handle) -> Result<CountingEvent> {
        let Ok(cell) = self.tables_of(handle).counter(handle) else {
            return Err(self.why_not_live());
        };
        self.poll_for_counts();
        if self.lookout.is_count_due() {
            // Another thread has the lock, or a message was counted and nothing else looked at.
            self.with_core(Core::count_any_direct);
        }
        Ok(cell.value())
    }

    /// The value of a counter that has reached the test, or has counted a failure.
    #[inline(always)]
    pub(crate) fn counter_reached(&self, handle: Handle, test: u64) -> Option<CountingEvent> {
        let value = self.tables_of(handle).counter(handle).ok()?.value();
        (is_reached(value, test) && !self.is_aborted()).then_some(value)
    }

    /// PtlCTWait and PtlCTPoll: the first counter whose successes have reached its
    /// test, or that has counted a failure.
    ///
    /// # Errors
    /// `ArgInvalid`, `NoInit`, `Aborted`; `CtNoneReached` once `timeout` (ms) is over.
    pub fn counter_poll(
        &self,
        handles: &[Handle],
        tests: &[u64],
        timeout: u32,
    ) -> Result<(CountingEvent, usize)> {
        self.check_alive()?;
        let value = |handle: Handle| Ok(self.tables_of(handle).counter(handle)?.value());
        let any = || first_reached(handles, tests, value);
        if timeout == 0 {
            return self.poll_once(any)?.ok_or(Error::CtNoneReached);
        }
        let awaits = || counters_at(handles, tests);
        let poll = || match self.poll_for_counts() {
            // Who has lost the counter meanwhile hears of it by the next look.
            true => any().unwrap_or(None),
            false => None,
        };
        self.wait_polling(deadline(timeout), awaits, any, poll)?
            .ok_or(Error::CtNoneReached)
    }
}

/// Which of so many it is the turn of, after so much has happened: without a division, which takes
/// longer than all else here.
#[inline(always)]
fn turn(activity: u64, among: usize) -> usize {
    // Multiples of the golden ratio, in units of a whole turn of 2^32.
    let angle = activity.wrapping_mul(0x9E37_79B9) & 0xffff_ffff;
    ((angle * among as u64) >> 32) as usize
}

/// When a timeout (ms) is over; nothing where it never is.
pub(crate) fn deadline(timeout: u32) -> Option<Instant> {
    (timeout != FOREVER).then(|| Instant::now() + Duration::from_millis(timeout.into()))
}

/// Gives `take` the first event of any of the queues, tried from `first` on, and which had it.
#[inline(always)]
pub(crate) fn first_event<R>(
    handles: &[Handle],
    first: usize,
    pop: impl Fn(Handle) -> Result<Option<Taken>>,
    take: impl Fn(Taken, usize) -> R,
) -> Result<Option<R>> {
    let mut which = first;
    for _ in handles {
        if let Some(taken) = pop(handles[which])? {
            return Ok(Some(take(taken, which)));
        }
        which += 1;
        if which == handles.len() {
            which = 0;
        }
    }
    Ok(None)
}

/// The first counter that has reached its test, or has counted a failure.
#[inline]
pub(crate) fn first_reached(
    handles: &[Handle],
    tests: &[u64],
    value: impl Fn(Handle) -> Result<CountingEvent>,
) -> Result<Option<(CountingEvent, usize)>> {
    for (which, (handle, test)) in handles.iter().zip(tests).enumerate() {
        let value = value(*handle)?;
        if is_reached(value, *test) {
            return Ok(Some((value, which)));
        }
    }
    Ok(None)
}

/// Whether a counter with that value has reached its test, or has counted a failure.
#[inline(always)]
fn is_reached(value: CountingEvent, test: u64) -> bool {
    value.success >= test || value.failure != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Network;
    use lintel_types::EventKind;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn each_of_several_queues_has_its_turn() {
        for among in 1..=64 {
            let mut turns = vec![0; among];
            for activity in 0..100 * among as u64 {
                turns[turn(activity, among)] += 1;
            }
            assert!(
                turns.iter().all(|turns| (90..110).contains(turns)),
                "{turns:?}"
            );
            assert!(turn(u64::MAX, among) < among);
        }
    }

    /// Who is about to sleep looks once more, and mustn't miss the event of the other queue.
    #[test]
    fn a_look_at_two_queues_finds_the_event_of_one_while_another_thread_empties_the_other()
    -> Result<()> {
        let peer = Network::default().peer(1);
        let (library, shared) = (peer.library, peer.queue);
        let own = library.queue_alloc(peer.interface, 16)?;
        let handles = [shared, own];
        let shared = library.tables_of(shared).queue(shared)?;
        let own = library.tables_of(own).queue(own)?;
        let event = Event::new(EventKind::Put);
        let is_over = AtomicBool::new(false);
        own.push(&event);
        let is_found = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    shared.pop();
                }
            });
            let finds = |_| {
                shared.push(&event);
                let found = library.first_event_of(&handles, 0, |_, which| which);
                if found == Ok(Some(1)) {
                    own.push(&event);
                }
                matches!(found, Ok(Some(_)))
            };
            let is_found = (0..200_000).all(finds);
            is_over.store(true, Ordering::Relaxed);
            is_found
        });
        assert!(is_found, "a look found neither event");
        Ok(())
    }
}
