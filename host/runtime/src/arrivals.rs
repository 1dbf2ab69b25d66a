//! Puts from processes of this node that land like earlier ones: the event is given to the caller
//! that looks for it, or the put is counted, by a call that looks up and checks nothing else.

use crate::core::Core;
use crate::library::Library;
use crate::owner::{LocalProcess, Owner};
use crate::send_starts::PREPARED_EVERY;
use lintel_bridge::Taken;
use lintel_claim::copy;
use lintel_nal_shm::ShmNal;
use lintel_types::{Event, Handle, InterfaceNumber, QueueIndex};
use lintel_wire::Request;
use std::sync::atomic::Ordering;

/// Tries that a put which lands like an earlier one is worth, and the most that are left.
const TRIES: u32 = 4;
const MOST_TRIES: u32 = 16;

impl Library<LocalProcess> {
    /// Polls for a caller that has found these queues empty. Gives `take` the event of a put that
    /// lands like an earlier one, and which queue it is for; otherwise there may be one in the
    /// queues.
    #[inline(never)]
    pub(crate) fn poll_for_event<R>(
        &self,
        handles: &[Handle],
        take: impl FnOnce(Taken, usize) -> R,
    ) -> Option<R> {
        let Some(mut guard) = self.core.try_lock() else {
            self.yield_to_holder();
            return None;
        };
        if let Some(core) = guard.as_mut() {
            if let Some(lane) = self.lookout.take_found() {
                core.turn_to(lane);
            }
            if core.tries_landing() {
                if let Some((event, which)) = core.land_for_queue(handles) {
                    self.note_repeated(core);
                    return Some(take(Taken::from(&event), which));
                }
            }
        }
        self.poll_under(guard);
        None
    }

    /// Polls for a caller that looks at a counter. Whether messages were counted that have landed
    /// like earlier ones; if not, others may have been.
    #[inline(always)]
    pub(crate) fn poll_for_counts(&self) -> bool {
        !self.lookout.is_quiet() && self.land_or_poll()
    }

    #[inline(never)]
    fn land_or_poll(&self) -> bool {
        let Some(mut guard) = self.core.try_lock() else {
            self.yield_to_holder();
            return false;
        };
        if let Some(core) = guard.as_mut() {
            if let Some(lane) = self.lookout.take_found() {
                core.turn_to(lane);
            }
            // Further ones wait for no other call.
            if core.tries_landing() && core.land_counted() {
                while core.land_counted() {}
                self.note_repeated(core);
                return true;
            }
        }
        self.poll_under(guard);
        false
    }

    /// What follows puts that have landed like earlier ones.
    #[inline(always)]
    fn note_repeated(&self, core: &mut Core<LocalProcess>) {
        core.end_repeated();
        self.polled.store(true, Ordering::Relaxed);
        self.count_activity();
        // A poll would look at all of them next.
        if core.transports.nal.near().is_some_and(ShmNal::reads_many) {
            self.watch(core);
        }
    }
}

impl Core<LocalProcess> {
    /// Whether to try to land the next message like an earlier one.
    #[inline(always)]
    fn tries_landing(&mut self) -> bool {
        if self.landing_tries == 0 {
            self.note_unprepared();
        }
        self.landing_tries > 0
    }

    /// Nothing was prepared for the next message, or it isn't known whether there is one: now and
    /// then it is prepared.
    #[inline(always)]
    fn note_unprepared(&mut self) {
        self.unprepared_landings += 1;
        if self.unprepared_landings >= PREPARED_EVERY {
            self.prepare_landing();
        }
    }

    /// Lands the next put, if it is like an earlier one and an event of one of these queues, which
    /// are empty, reports it: the event, and which queue it is for.
    #[inline(always)]
    fn land_for_queue(&mut self, handles: &[Handle]) -> Option<(Event, usize)> {
        let owner = self.owner;
        let tables = owner.tables();
        self.repeat_landing(
            #[inline(always)]
            |interface, queue| {
                let index = queue?.0;
                let is_its = |handle: &Handle| {
                    handle.index() == index && handle.interface().position() == interface.position()
                };
                let which = handles.iter().position(is_its)?;
                // Others may have posted since the caller looked.
                let queue = tables[interface.position()].queue(handles[which]).ok()?;
                queue.ends.is_clear().then_some(which)
            },
        )
    }

    /// Lands the next put, if it is like an earlier one and at most a counter reports it; whether
    /// it was.
    #[inline(always)]
    fn land_counted(&mut self) -> bool {
        let landed = self.repeat_landing(|_, queue| queue.is_none().then_some(()));
        landed.is_some()
    }

    /// Lands the next put, if it is like an earlier one and `wants` gives something for the queue
    /// of its event: the event and what it gave. Nothing, with nothing done, for all else.
    #[inline(always)]
    fn repeat_landing<W>(
        &mut self,
        wants: impl FnOnce(InterfaceNumber, Option<QueueIndex>) -> Option<W>,
    ) -> Option<(Event, W)> {
        let near = self.transports.nal.near_mut()?;
        let (origin, words, body) = near.peek_quickly(Request::is_put)?;
        let put = Request::parse_put(&words)?;
        let opened = self.interfaces[put.interface.position()].as_mut()?;
        let Some(kept) = opened.landings.find(origin.process, &words) else {
            self.note_unprepared();
            return None;
        };
        let wanted = wants(put.interface, kept.landing.queue())?;
        if self.wakeup.callers_sleep() {
            return None;
        }
        let counts = kept.landing.counts();
        if kept.cell.is_some() {
            opened.interface.first_successes(counts)?;
        }
        let landed = opened.interface.repeat_landing(
            &kept.landing,
            &put,
            #[inline(always)]
            |memory| {
                copy(body, memory);
            },
        );
        let Some(event) = landed else {
            self.note_unprepared();
            return None;
        };
        near.done_quickly();
        if let Some(cell) = kept.cell {
            let successes = opened.interface.first_successes(counts)?;
            *successes = successes.wrapping_add(counts.first_by(put.length));
            cell.set_success(*successes);
        }
        self.landing_tries = (self.landing_tries + TRIES).min(MOST_TRIES);
        Some((event, wanted))
    }

    /// What follows puts that have landed like earlier ones, as after other polls.
    #[inline(always)]
    fn end_repeated(&mut self) {
        if let Some(near) = self.transports.nal.near_mut() {
            near.publish_head();
        }
        self.receives_stream = !std::mem::take(&mut self.transports.sent);
        self.wakeup.poll_found();
        if self.end_poll() {
            self.wakeup.disarm_bell();
        }
    }

    /// Finds out what holds for all puts that are like the next one, if that one is a put.
    #[cold]
    #[inline(never)]
    fn prepare_landing(&mut self) -> Option<()> {
        // Sooner again if there is none.
        self.unprepared_landings = PREPARED_EVERY / 2;
        let (origin, words, _) = self.transports.nal.near_mut()?.peek_quickly(|_| true)?;
        self.unprepared_landings = 0;
        let put = Request::parse_put(&words)?;
        let opened = self.interfaces[put.interface.position()].as_mut()?;
        let (process, uid) = (origin.process, origin.uid);
        self.landing_tries = TRIES;
        let kept = opened.landings.find(process, &words);
        if kept.is_some_and(|kept| opened.interface.still_lands(&kept.landing)) {
            return Some(());
        }
        self.landing_tries = 0;
        let landing = opened.interface.prepare_landing(process, uid, &put)?;
        let cell = match landing.counts().counters() {
            [Some(counter), _] => Some(self.owner.lasting_cell(put.interface, counter)?),
            _ => None,
        };
        opened.landings.keep(process, &words, landing, cell);
        self.landing_tries = TRIES;
        Some(())
    }
}
