//! What a process with its own engine waits for: events, and room for an operation.

use crate::library::Library;
use crate::portals3::owner::{Owner3, Portals3Process};
use crate::queue::EventQueue;
use crate::queue_calls::deadline;
use crate::snapshot::events_in;
use lintel_bridge::Taken3;
use lintel_engine3::Transfer;
use lintel_snapshot::Awaited;
use lintel_types::Handle;
use lintel_types::portals3::{Error, Event, Result};
use std::sync::atomic::{AtomicU32, Ordering};

impl Library<Portals3Process> {
    /// Starts a data movement. While too many operations await their answers, or too much
    /// waits for the target, waits. The caller gives the transfer as often as it is needed, with
    /// a closure of its own, for which the compiler specializes the path.
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline(always)]
    pub fn start3(&self, transfer: impl Fn() -> Transfer) -> Result<()> {
        match self.with3(Error::MdInvalid, |interface, effects| {
            interface.start(&transfer(), effects)
        }) {
            Err(Error::NoSpace) => self.start_later3(&transfer()),
            done => done,
        }
    }

    #[cold]
    #[inline(never)]
    fn start_later3(&self, transfer: &Transfer) -> Result<()> {
        loop {
            self.wait_for_room()?;
            match self.with3(Error::MdInvalid, |interface, effects| {
                interface.start(transfer, effects)
            }) {
                Err(Error::NoSpace) => {}
                done => return done,
            }
        }
    }

    /// Waits until an operation has ended, or the target has taken what it was sent.
    #[cold]
    fn wait_for_room(&self) -> Result<()> {
        let under_way = || {
            self.with3(Error::MdInvalid, |interface, _| {
                Ok(interface.operations_under_way())
            })
        };
        let full = under_way()?;
        let blocked = self.with_core(|core| core.transports.take_blocked());
        self.until3(
            None,
            || Awaited::Other,
            || {
                let has_room = match blocked.flatten() {
                    Some(by) => self.with_core(|core| core.transports.has_room(by)) != Some(false),
                    // If none is under way any more, they have ended since.
                    None => full == 0 || under_way()? < full,
                };
                Ok(has_room.then_some(()))
            },
        )
        .map(drop)
    }

    /// Makes progress until a command gives something; nothing once the timeout (ms) is
    /// over.
    fn until3<R>(
        &self,
        timeout: Option<u32>,
        awaits: impl Fn() -> Awaited,
        mut command: impl FnMut() -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let until = timeout.and_then(deadline);
        let ended = self.wait(until, awaits, || match command() {
            Ok(found) => Ok(found.map(Ok)),
            Err(error) => Ok(Some(Err(error))),
        });
        ended.map_err(|_| Error::NoInit)?.transpose()
    }

    /// PtlEQGet: gives `take` the next event. Makes progress if there is none.
    ///
    /// # Errors
    /// `EqInvalid`, `EqEmpty`
    #[inline(always)]
    pub fn queue_get3<R>(&self, queue: Handle, take: impl FnOnce(Taken3) -> R) -> Result<R> {
        let Some(events) = self.look(queue)? else {
            return Err(Error::EqEmpty);
        };
        match events.pop3() {
            Some(taken) => Ok(take(taken)),
            None => Err(Error::EqEmpty),
        }
    }

    /// PtlEQPeek: as [`queue_get3`](Self::queue_get3), but the event stays.
    ///
    /// # Errors
    /// `EqInvalid`, `EqEmpty`
    pub fn queue_peek(&self, queue: Handle) -> Result<Taken3> {
        let events = self.look(queue)?.ok_or(Error::EqEmpty)?;
        events.peek3().ok_or(Error::EqEmpty)
    }

    /// An open queue, unless it was empty and there was nothing to make progress with.
    #[inline(always)]
    fn look(&self, queue: Handle) -> Result<Option<&EventQueue<{ Event::WORDS }>>> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let events = self.owner().events().queue(queue)?;
        let may_have_event = !events.ends.is_empty() || self.poll();
        Ok(may_have_event.then_some(events))
    }

    /// PtlEQWait: gives `take` the next event.
    ///
    /// # Errors
    /// `EqInvalid`
    #[inline(always)]
    pub fn queue_wait3<R>(&self, queue: Handle, take: impl FnOnce(Taken3) -> R) -> Result<R> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        match self.owner().events().queue(queue)?.pop3() {
            Some(taken) => Ok(take(taken)),
            None => self.wait_for_event(queue).map(take),
        }
    }

    #[inline(never)]
    fn wait_for_event(&self, queue: Handle) -> Result<Taken3> {
        let pop = || Ok(self.owner().events().queue(queue)?.pop3());
        self.until3(None, || events_in(&[queue]), pop)?
            .ok_or(Error::EqEmpty)
    }

    /// PtlEQPoll: the next event of any of the queues, and which had it. The search begins
    /// behind the queue that was served last.
    ///
    /// # Errors
    /// `EqInvalid`; `EqEmpty` once the timeout (ms) is over.
    #[inline(always)]
    pub fn queue_poll3(&self, queues: &[Handle], timeout: u32) -> Result<(Taken3, usize)> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        if timeout == 0 && self.are_empty(queues)? && !self.poll() {
            return Err(Error::EqEmpty);
        }
        self.queue_poll_for(queues, timeout)
    }

    /// As [`queue_poll3`](Self::queue_poll3); without a timeout it has polled.
    #[inline(never)]
    fn queue_poll_for(&self, queues: &[Handle], timeout: u32) -> Result<(Taken3, usize)> {
        let (events, served) = (self.owner().events(), &self.owner().shared().served);
        let first = after_last(served, queues);
        let any = || {
            self.are_empty(queues)?;
            first_event3(queues, first, |queue| Ok(events.queue(queue)?.pop3()))
        };
        let found = match timeout {
            0 => any()?,
            _ => self.until3(Some(timeout), || events_in(queues), any)?,
        };
        let (taken, which) = found.ok_or(Error::EqEmpty)?;
        served.store(queues[which].0, Ordering::Relaxed);
        Ok((taken, which))
    }

    /// Whether none of the queues has an event. A call with one invalid queue fails, and so
    /// does one with none.
    #[inline(always)]
    fn are_empty(&self, queues: &[Handle]) -> Result<bool> {
        let mut empty = true;
        for queue in queues {
            empty &= self.owner().events().queue(*queue)?.ends.is_empty();
        }
        match queues {
            [] => Err(Error::EqInvalid),
            _ => Ok(empty),
        }
    }

    /// PtlProgress.
    pub fn progress3(&self) {
        self.poll();
    }
}

/// Where the search for an event begins: behind the queue that was served last.
pub(crate) fn after_last(served: &AtomicU32, queues: &[Handle]) -> usize {
    let last = served.load(Ordering::Relaxed);
    let last = queues.iter().position(|queue| queue.0 == last);
    last.map_or(0, |last| last + 1)
}

/// The first event of any of the queues, tried from `first` on, and which had it.
#[inline]
pub(crate) fn first_event3(
    queues: &[Handle],
    first: usize,
    take: impl Fn(Handle) -> Result<Option<Taken3>>,
) -> Result<Option<(Taken3, usize)>> {
    for step in 0..queues.len() {
        let which = (first + step) % queues.len();
        if let Some(taken) = take(queues[which])? {
            return Ok(Some((taken, which)));
        }
    }
    Ok(None)
}
