//! What a process with its own engine waits for: events, and room for an operation.

use crate::core::Core;
use crate::library::Library;
use crate::portals3::effects::Effects;
use crate::portals3::owner::{Owner3, Portals3Process};
use crate::queue_calls::deadline;
use lintel_bridge::Taken3;
use lintel_engine3::Transfer;
use lintel_types::portals3::{Error, Result};
use lintel_types::{Handle, Kind, QueueIndex};
use std::sync::atomic::{AtomicU32, Ordering};

impl Library<Portals3Process> {
    /// Starts a data movement. While too many operations await their answers, or too much
    /// waits for the target, waits.
    ///
    /// # Errors
    /// As `Interface::start`.
    #[inline]
    pub fn start3(&self, transfer: &Transfer) -> Result<()> {
        loop {
            let started = self.with3(Error::MdInvalid, |interface, effects| {
                interface.start(transfer, effects)
            });
            match started {
                Err(Error::NoSpace) => self.wait_for_room()?,
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
        let blocked = self.with_core(|core| core.transports.is_blocked()) == Some(true);
        self.until3(None, || {
            let has_room = match blocked {
                true => self.with_core(|core| !core.transports.is_blocked()) != Some(false),
                false => under_way()? < full,
            };
            Ok(has_room.then_some(()))
        })
        .map(drop)
    }

    /// Makes progress until a command gives something; nothing once the timeout (ms) is
    /// over.
    fn until3<R>(
        &self,
        timeout: Option<u32>,
        mut command: impl FnMut() -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let until = timeout.and_then(deadline);
        let ended = self.wait(until, || match command() {
            Ok(found) => Ok(found.map(Ok)),
            Err(error) => Ok(Some(Err(error))),
        });
        ended.map_err(|_| Error::NoInit)?.transpose()
    }

    /// PtlEQGet. Makes progress if there is no event.
    ///
    /// # Errors
    /// `EqInvalid`, `EqEmpty`
    #[inline]
    pub fn queue_get3(&self, queue: Handle) -> Result<Taken3> {
        self.look(queue, |effects, index| effects.queues.pop(index))
    }

    /// PtlEQPeek: as [`queue_get3`](Self::queue_get3), but the event stays.
    ///
    /// # Errors
    /// `EqInvalid`, `EqEmpty`
    pub fn queue_peek(&self, queue: Handle) -> Result<Taken3> {
        self.look(queue, |effects, index| effects.queues.peek(index))
    }

    /// One look at a queue, and after progress another one, under one lock.
    #[inline]
    fn look(
        &self,
        queue: Handle,
        look: impl Fn(&mut Effects<'_, Portals3Process>, QueueIndex) -> Option<Taken3>,
    ) -> Result<Taken3> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let mut guard = self.core.lock();
        let core = guard.as_mut().ok_or(Error::EqInvalid)?;
        if let Some(taken) = look_at(core, queue, &look)? {
            return Ok(taken);
        }
        if core.poll() {
            core.wakeup.disarm_bell();
        }
        let taken = look_at(core, queue, &look);
        let after = self.note_activity(core);
        let yields = core.wakeup.yields();
        drop(guard);
        self.follow_up(after);
        if yields {
            self.yield_processor();
        }
        taken?.ok_or(Error::EqEmpty)
    }

    /// PtlEQWait and PtlEQPoll: the next event of any of the queues, and which had it. The
    /// search begins behind the queue that was served last.
    ///
    /// # Errors
    /// `EqInvalid`; `EqEmpty` once the timeout (ms) is over.
    pub fn queue_poll3(&self, queues: &[Handle], timeout: u32) -> Result<(Taken3, usize)> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        if queues.is_empty() {
            return Err(Error::EqInvalid);
        }
        let pop = |effects: &mut Effects<'_, Portals3Process>, index| effects.queues.pop(index);
        let served = &self.owner().shared().served;
        let first = after_last(served, queues);
        let any = || {
            let mut guard = self.core.lock();
            let core = guard.as_mut().ok_or(Error::EqInvalid)?;
            let mut found = None;
            // Each is looked at, since a call with one invalid queue fails.
            for step in 0..queues.len() {
                let which = (first + step) % queues.len();
                match found {
                    None => found = look_at(core, queues[which], &pop)?.map(|it| (it, which)),
                    Some(_) => check_queue(core, queues[which])?,
                }
            }
            Ok(found)
        };
        let found = match timeout {
            0 => self.poll_once3(any)?,
            _ => self.until3(Some(timeout), any)?,
        };
        let (taken, which) = found.ok_or(Error::EqEmpty)?;
        served.store(queues[which].0, Ordering::Relaxed);
        Ok((taken, which))
    }

    fn poll_once3<T>(&self, any: impl Fn() -> Result<Option<T>>) -> Result<Option<T>> {
        match any()? {
            None => {
                self.poll();
                any()
            }
            found => Ok(found),
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

/// A look at a queue of the open interface.
#[inline]
fn look_at(
    core: &mut Core<Portals3Process>,
    queue: Handle,
    look: &impl Fn(&mut Effects<'_, Portals3Process>, QueueIndex) -> Option<Taken3>,
) -> Result<Option<Taken3>> {
    check_queue(core, queue)?;
    let parts = core.protocol.interface(&mut core.transports);
    let Some((_, mut effects)) = parts else {
        return Err(Error::EqInvalid);
    };
    Ok(look(&mut effects, QueueIndex(queue.index())))
}

#[inline]
fn check_queue(core: &Core<Portals3Process>, queue: Handle) -> Result<()> {
    let opened = core.protocol.open.as_ref().ok_or(Error::EqInvalid)?;
    match queue.is(Kind::EventQueue) {
        true => opened.interface.check_live(queue),
        false => Err(Error::EqInvalid),
    }
    .map_err(|_| Error::EqInvalid)
}
