//! What is done under the core's lock, and what follows once it is released.

use crate::core::Core;
use crate::effects::Effects;
use crate::library::Library;
use crate::owner::Owner;
use crate::protocol::Protocol;
use lintel_engine4::Interface;
use lintel_lock::MutexGuard;
use lintel_presence::Sleeper;
use lintel_progress::RoomNext;
use lintel_types::{Error, Handle, Kind, ProcessId, Result};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Looks without the lock for each poll under it, which costs about as much.
const LOOKS: u32 = 16;
/// Polls that found the lock taken, until one yields.
const REFUSED_BEFORE_YIELD: u32 = 256;

impl<O: Owner> Library<O> {
    /// Carries out an engine command on an interface, and what it causes at once.
    ///
    /// # Errors
    /// `ArgInvalid` where the handle's interface isn't open, `NoInit`, and the
    /// command's own.
    #[inline(always)]
    pub fn with<R>(
        &self,
        handle: Handle,
        command: impl FnOnce(&mut Interface<O::Span>, &mut Effects<'_, O>) -> Result<R>,
    ) -> Result<R> {
        self.check_alive()?;
        self.with_guard(self.core.lock(), handle, command)
    }

    /// As [`with`](Self::with), of a library that is alive, whose lock the caller has taken.
    ///
    /// # Errors
    /// As [`with`](Self::with).
    #[inline(always)]
    pub(crate) fn with_guard<R>(
        &self,
        mut guard: MutexGuard<'_, Option<Core<O>>>,
        handle: Handle,
        command: impl FnOnce(&mut Interface<O::Span>, &mut Effects<'_, O>) -> Result<R>,
    ) -> Result<R> {
        let Some(core) = guard.as_mut() else {
            return Err(Error::ArgInvalid);
        };
        if handle.is(Kind::Interface) {
            check_interface(core, handle)?;
        }
        let Some((interface, mut effects)) = core.interface(handle.interface()) else {
            return Err(Error::ArgInvalid);
        };
        let result = command(interface, &mut effects);
        let after = self.after_call(core);
        drop(guard);
        self.follow_up(after);
        result
    }

    /// What follows a call under the core's lock.
    #[inline(always)]
    pub(crate) fn after_call(&self, core: &mut Core<O>) -> After {
        if !core.transports.loopback.is_empty() {
            core.drain_loopback();
        }
        let behind = core.transports.behind();
        core.hasten_helper();
        After {
            behind,
            ..self.note_activity(core)
        }
    }

    /// Something under the core's lock, with what it causes.
    pub(crate) fn with_core<R>(&self, f: impl FnOnce(&mut Core<O>) -> R) -> Option<R> {
        let mut guard = self.core.lock();
        let core = guard.as_mut()?;
        let result = f(core);
        let after = self.note_activity(core);
        drop(guard);
        self.follow_up(after);
        Some(result)
    }

    /// Makes progress if something has arrived, and now and then anyway; false if it was only
    /// looked at.
    #[inline(always)]
    pub(crate) fn poll(&self) -> bool {
        let looks_only = self.lookout.is_quiet();
        if !looks_only {
            self.poll_locked();
        }
        !looks_only
    }

    /// Makes progress, unless another thread does.
    #[inline(never)]
    fn poll_locked(&self) {
        match self.core.try_lock() {
            Some(mut guard) => {
                if let Some(lane) = self.lookout.take_found() {
                    if let Some(core) = guard.as_mut() {
                        core.turn_to(lane);
                    }
                }
                self.poll_under(guard);
            }
            None => self.yield_to_holder(),
        }
    }

    /// As [`poll_locked`](Self::poll_locked), of a caller that has the lock.
    #[inline(always)]
    pub(crate) fn poll_under(&self, mut guard: MutexGuard<'_, Option<Core<O>>>) {
        let Some(core) = guard.as_mut() else { return };
        self.polled.store(true, Ordering::Relaxed);
        let polls = 1 + self.lookout.take_looks();
        if core.poll(polls) {
            core.wakeup.disarm_bell();
        }
        let after = self.note_activity(core);
        let weight = core.transports.nal.poll_weight();
        let yields = core.wakeup.yields(polls * weight);
        self.watch(core);
        let reader = match core.transports.queued {
            true => core.slow_reader(),
            false => None,
        };
        drop(guard);
        self.follow_up(after);
        if let Some(reader) = reader {
            self.wait_for_reader(reader);
        }
        if yields {
            self.yield_processor();
        }
    }

    /// Has callers look by themselves, once they need no longer be counted one by one. Not between
    /// the messages of a stream: the next one is nearly there.
    #[inline(always)]
    pub(crate) fn watch(&self, core: &mut Core<O>) {
        match core.transports.direct.counts() {
            true => core.transports.watch_counts(&self.lookout),
            false => self.lookout.watch_no_counts(),
        }
        match core.wakeup.bell.is_armed() || core.receives_stream {
            true => self.lookout.close(),
            false => core.transports.nal.watch(&self.lookout, LOOKS),
        }
        if core.acknowledged {
            core.acknowledged = false;
            self.lookout.leave_one_out();
        }
    }

    /// Counts looks of callers since the last poll as a poll.
    pub(crate) fn count_looks(&self, core: &mut Core<O>) {
        if self.lookout.take_looks() > 0 {
            // They look only while the bell is disarmed, so there is nothing to disarm.
            core.end_poll();
        }
    }

    /// Lets others run that wait for this processor, perhaps the peer whose answer the caller
    /// awaits; how long that takes shows whether there are such.
    #[cold]
    pub(crate) fn yield_processor(&self) {
        let begun = Instant::now();
        std::thread::yield_now();
        let took = begun.elapsed();
        if let Some(core) = self.core.lock().as_mut() {
            core.wakeup.yielded(took);
        }
    }

    /// Another thread holds the lock. It may have been interrupted, and wait for this
    /// processor.
    #[cold]
    pub(crate) fn yield_to_holder(&self) {
        if self.refused.fetch_add(1, Ordering::Relaxed) % REFUSED_BEFORE_YIELD == 0 {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }

    /// As [`poll`](Self::poll), by a thread that polls on behalf of callers.
    pub(crate) fn poll_for_client(&self) {
        self.with_core(|core| core.wakeup.resume_polling());
        self.poll();
    }

    /// Takes note of events, and of what they ask for once the lock is released.
    #[inline(always)]
    pub(crate) fn note_activity(&self, core: &mut Core<O>) -> After {
        if !core.transports.activity {
            return After::default();
        }
        core.transports.activity = false;
        if core.transports.direct.take_news() {
            self.lookout.forget_counts();
        }
        self.count_activity();
        self.owner.note_activity();
        After {
            wake: core.wakeup.callers_sleep(),
            run: core.protocol.has_deferred(),
            behind: None,
        }
    }

    /// Something was posted or counted, under the core's lock.
    #[inline(always)]
    pub(crate) fn count_activity(&self) {
        // So a load and a store are enough.
        self.activity
            .store(self.activity.load(Ordering::Relaxed) + 1, Ordering::Release);
    }

    #[inline(always)]
    pub(crate) fn follow_up(&self, after: After) {
        if after.wake {
            self.wake_callers();
        }
        if after.run {
            self.run_deferred();
        }
        if let Some(peer) = after.behind {
            self.wait_for_peer(peer);
        }
    }

    /// Gives a peer that is behind some time, rather than let ever more be queued for it. Other
    /// threads get the lock between two looks.
    #[cold]
    fn wait_for_peer(&self, peer: ProcessId) {
        let mut wait = None;
        self.look_until_room(|core| core.look_at_peer(peer, &mut wait));
    }

    /// Sends a peer that reads what a poll has left queued for it. Once the caller has what it polls
    /// for and leaves, only the helper would, for which it has to be woken.
    #[cold]
    fn wait_for_reader(&self, peer: ProcessId) {
        let mut wait = None;
        self.look_until_room(|core| core.look_at_reader(peer, &mut wait));
    }

    fn look_until_room(&self, mut look: impl FnMut(&mut Core<O>) -> Option<RoomNext>) {
        while let Some(Some(next)) = self.with_core(&mut look) {
            match next {
                RoomNext::Look => std::hint::spin_loop(),
                RoomNext::Yield => std::thread::yield_now(),
                RoomNext::GiveUp => return,
            }
        }
    }

    #[cold]
    fn wake_callers(&self) {
        if let Some(bell) = self.bell() {
            bell.wake(Sleeper::Caller);
        }
    }

    /// Runs callbacks of the application, unless another thread does, which then runs these
    /// too.
    #[cold]
    fn run_deferred(&self) {
        let next = || self.core.lock().as_mut()?.protocol.next_deferred();
        while let Some(run) = next() {
            run();
            if let Some(core) = self.core.lock().as_mut() {
                core.protocol.end_deferred();
            }
        }
    }
}

/// What follows once the lock is released.
#[derive(Clone, Copy, Default)]
pub(crate) struct After {
    /// Callers sleep who may wait for what has happened.
    wake: bool,
    /// Callbacks are due.
    run: bool,
    /// What was sent last is queued for that process.
    behind: Option<ProcessId>,
}

pub(crate) fn check_interface<O: Owner>(core: &Core<O>, handle: Handle) -> Result<()> {
    let number = handle.interface();
    match &core.interfaces[number.position()] {
        Some(opened) if handle == Handle::new(Kind::Interface, number, opened.generation, 0) => {
            Ok(())
        }
        _ => Err(Error::ArgInvalid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Network, put_of};
    use lintel_types::AckRequest;

    #[test]
    fn a_caller_that_waits_for_a_slow_peer_holds_the_lock_for_single_looks() -> Result<()> {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        network.is_held.store(true, Ordering::SeqCst);
        let mut transfer = put_of(one.descriptor, two.me, 0);
        transfer.ack = AckRequest::None;
        one.library.with(one.descriptor, |interface, effects| {
            interface.start(&transfer, effects)
        })?;
        let mut wait = None;
        let mut look = || {
            let look = |core: &mut Core<_>| core.look_at_peer(two.me, &mut wait);
            one.library.with_core(look).flatten()
        };
        assert_eq!(look(), Some(RoomNext::Look), "it doesn't wait by itself");
        network.is_held.store(false, Ordering::SeqCst);
        assert_eq!(look(), None, "the peer has taken it");
        Ok(())
    }
}
