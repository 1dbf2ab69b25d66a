//! The calls: an engine command each, with what it causes at once; and taking events.

use crate::core::Core;
use crate::library::Library;
use crate::portals3::effects::Effects;
use crate::portals3::handlers::Handler;
use crate::portals3::lifecycle::interface_handle;
use crate::portals3::process::Portals3Process;
use crate::portals3::queues::MAX_EVENTS;
use crate::queue_calls::deadline;
use lintel_claim::Claim;
use lintel_engine3::{Interface, Transfer};
use lintel_types::portals3::{Error, Event, Result};
use lintel_types::{Handle, Kind, QueueIndex};
use std::sync::atomic::Ordering;

/// An event, and whether others before it were lost.
pub type Taken = (Event, bool);

impl Library<Portals3Process> {
    /// Carries out an engine command on the interface, and what it causes at once.
    ///
    /// # Errors
    /// `NoInit`, `absent` if no interface is open, and the command's own.
    #[inline(always)]
    pub fn with3<R>(
        &self,
        absent: Error,
        command: impl FnOnce(&mut Interface<Claim>, &mut Effects<'_>) -> Result<R>,
    ) -> Result<R> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let mut guard = self.core.lock();
        let core = guard.as_mut().ok_or(absent)?;
        let Some((interface, mut effects)) = core.protocol.interface(&mut core.transports) else {
            return Err(absent);
        };
        let result = command(interface, &mut effects);
        let after = self.after_call(core);
        drop(guard);
        self.follow_up(after);
        result
    }

    /// As [`with3`](Self::with3), for a call that names the interface.
    ///
    /// # Errors
    /// `NoInit`, `NiInvalid`, and the command's own.
    pub fn on_interface<R>(
        &self,
        handle: Handle,
        command: impl FnOnce(&mut Interface<Claim>, &mut Effects<'_>) -> Result<R>,
    ) -> Result<R> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let open = self.with_core(|core| core.protocol.open.as_ref().map(interface_handle));
        if open.flatten() != Some(handle) {
            return Err(Error::NiInvalid);
        }
        self.with3(Error::NiInvalid, command)
    }

    /// As [`with3`](Self::with3), for a command that ends something: where that is in use,
    /// what has arrived is looked at, and then it is tried once more.
    ///
    /// # Errors
    /// As [`with3`](Self::with3).
    pub fn end_with3(
        &self,
        absent: Error,
        mut command: impl FnMut(&mut Interface<Claim>, &mut Effects<'_>) -> Result<()>,
    ) -> Result<()> {
        match self.with3(absent, &mut command) {
            Err(Error::MdInUse | Error::MeInUse) => {
                self.with_core(Core::progress);
                self.with3(absent, command)
            }
            done => done,
        }
    }

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

    /// PtlEQAlloc. With a handler, it is called with each event, and none is queued.
    ///
    /// # Errors
    /// `NiInvalid`, `NoSpace` beyond `max_eqs` or [`MAX_EVENTS`].
    pub fn queue_alloc3(
        &self,
        interface: Handle,
        count: u64,
        handler: Option<Handler>,
    ) -> Result<Handle> {
        if count > MAX_EVENTS {
            return Err(Error::NoSpace);
        }
        self.on_interface(interface, |interface, effects| {
            let queue = interface.queue_alloc()?;
            let index = QueueIndex(queue.index());
            effects.queues.begin(index, count, handler);
            Ok(queue)
        })
    }

    /// PtlEQFree.
    ///
    /// # Errors
    /// `EqInvalid`
    pub fn queue_free3(&self, queue: Handle) -> Result<()> {
        self.with3(Error::EqInvalid, |interface, effects| {
            interface.queue_free(queue)?;
            effects.queues.end(QueueIndex(queue.index()));
            // For those who wait for it.
            effects.transports.activity = true;
            Ok(())
        })
    }

    /// PtlEQGet. Makes progress if there is no event.
    ///
    /// # Errors
    /// `EqInvalid`, `EqEmpty`
    #[inline]
    pub fn queue_get3(&self, queue: Handle) -> Result<Taken> {
        self.look(queue, |effects, index| effects.queues.pop(index))
    }

    /// PtlEQPeek: as [`queue_get3`](Self::queue_get3), but the event stays.
    ///
    /// # Errors
    /// `EqInvalid`, `EqEmpty`
    pub fn queue_peek(&self, queue: Handle) -> Result<Taken> {
        self.look(queue, |effects, index| effects.queues.peek(index))
    }

    /// One look at a queue, and after progress another one, under one lock.
    #[inline]
    fn look(
        &self,
        queue: Handle,
        look: impl Fn(&mut Effects<'_>, QueueIndex) -> Option<Taken>,
    ) -> Result<Taken> {
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
    pub fn queue_poll3(&self, queues: &[Handle], timeout: u32) -> Result<(Taken, usize)> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        if queues.is_empty() {
            return Err(Error::EqInvalid);
        }
        let pop = |effects: &mut Effects<'_>, index| effects.queues.pop(index);
        let served = &self.owner().shared.served;
        let last = served.load(Ordering::Relaxed);
        let last = queues.iter().position(|queue| queue.0 == last);
        let first = last.map_or(0, |last| last + 1);
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

    /// PtlNIHandle.
    ///
    /// # Errors
    /// `HandleInvalid`
    pub fn interface_of3(&self, handle: Handle) -> Result<Handle> {
        self.check_alive().map_err(|_| Error::NoInit)?;
        let found = self.with_core(|core| {
            let opened = core.protocol.open.as_ref().ok_or(Error::HandleInvalid)?;
            let own = interface_handle(opened);
            if handle != own {
                opened.interface.check_live(handle)?;
            }
            Ok(own)
        });
        found.unwrap_or(Err(Error::HandleInvalid))
    }

    /// PtlProgress.
    pub fn progress3(&self) {
        self.poll();
    }

    /// Events in each queue of the interface, and room: index, events, capacity.
    ///
    /// # Errors
    /// `NiInvalid`
    pub fn queue_lengths(&self, interface: Handle) -> Result<Vec<(usize, usize, usize)>> {
        self.on_interface(interface, |_, effects| {
            Ok(effects.queues.lengths().collect())
        })
    }
}

/// A look at a queue of the open interface.
#[inline]
fn look_at(
    core: &mut Core<Portals3Process>,
    queue: Handle,
    look: &impl Fn(&mut Effects<'_>, QueueIndex) -> Option<Taken>,
) -> Result<Option<Taken>> {
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
