//! The thread that makes progress while the application computes.

use crate::core::Core;
use crate::library::{Library, LibraryRef};
use crate::owner::Owner;
use crate::thread::spawn;
use crate::waiting::time_until;
use lintel_nal::{Nal, Wake};
use lintel_presence::{
    Bell, LastLook, Sleeper, favour_latency, pinned_processor, timed_sleep_cost, with_timer_slack,
};
use lintel_progress::{HelperNext, Interval, Retries};
use std::io;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// Starts the helper of an open process.
pub(crate) fn start<O: Owner>(library: LibraryRef<O>) -> io::Result<JoinHandle<()>> {
    let busy = pinned_processor();
    spawn("lintel", move || {
        favour_latency(busy);
        run(&library);
    })
}

fn run<O: Owner>(library: &Library<O>) {
    let Some(bell) = library.bell() else { return };
    bell.set_helper_thread();
    let mut knows_cost = false;
    let mut retries = Retries::default();
    loop {
        let rings = bell.rings(Sleeper::Helper);
        bell.end_batch();
        let serve = |core: &mut Core<O>| {
            library.count_looks(core);
            service(core)
        };
        let Some((next, queued)) = library.with_core(serve).flatten() else {
            break;
        };
        match next {
            HelperNext::Retry => {
                bell.sleep(Sleeper::Helper, rings, Some(retries.next(queued)));
                continue;
            }
            HelperNext::PollAgain(_) if !knows_cost => {
                let cost = timed_sleep_cost();
                library.with_core(|core| core.wakeup.set_look_cost(cost));
                knows_cost = true;
            }
            HelperNext::PollAgain(interval) => {
                let sleep = || sleep_while_callers_poll(library, &bell, rings, interval);
                with_timer_slack(interval.slack, sleep);
            }
            HelperNext::Sleep => {
                bell.fall_asleep(Sleeper::Helper, rings, || {
                    library.with_core(before_sleep).unwrap_or(LastLook::Found)
                });
            }
        }
        retries = Retries::default();
    }
}

/// Sleeps some times, as long as callers poll in each and nobody rings. It doesn't take
/// the core's lock for that, which is biased to who polls.
fn sleep_while_callers_poll<O: Owner>(
    library: &Library<O>,
    bell: &Bell,
    rings: u32,
    interval: Interval,
) {
    for _ in 0..interval.naps {
        library.polled.store(false, Ordering::Relaxed);
        bell.sleep(Sleeper::Helper, rings, Some(interval.least));
        // One that moves long bodies is inside for longer.
        let polls = || library.polled.load(Ordering::Relaxed) || library.core.is_locked();
        if !polls() || bell.rings(Sleeper::Helper) != rings {
            break;
        }
    }
}

/// Makes progress, then decides by what has happened since it last looked, and says how many
/// bytes wait for room; nothing if it is to end.
fn service<O: Owner>(core: &mut Core<O>) -> Option<(HelperNext, u64)> {
    core.transports.nal.ring_held();
    if core.wakeup.is_closing() {
        return None;
    }
    core.progress_for_peers();
    let resources = core.transports.nal.resources();
    core.stats.publish(&resources);
    core.note_arrivals();
    core.answer_snapshot();
    let awaits_peers = core.awaits_peers();
    if awaits_peers {
        core.check_peers();
    }
    let queued = core.transports.flush();
    if core.transports.nal.needs_progress() {
        core.wakeup.restart_intervals();
    }
    core.transports.moved_by_callers = 0;
    let next = core.wakeup.helper_looked(queued);
    if next == HelperNext::Sleep {
        let deadline = core.next_due(awaits_peers);
        core.wakeup.helper_sleeps(deadline);
    } else {
        core.transports.nal.ring_held();
    }
    Some((next, resources.bytes))
}

/// What came before the bell was armed rings nobody: look once more.
fn before_sleep<O: Owner>(core: &mut Core<O>) -> LastLook {
    if core.progress() > 0 {
        return LastLook::Found;
    }
    let limit = core.wakeup.helper_deadline().map(time_until);
    match core.transports.nal.ring_due() {
        Some(due) => LastLook::Soon(limit.into_iter().fold(due, Duration::min)),
        None => LastLook::Nothing(limit),
    }
}

impl<O: Owner> Core<O> {
    /// Progress by the helper: what it answers to those who poll rings nobody at once.
    pub(crate) fn progress_for_peers(&mut self) {
        self.transports.holds_answers = true;
        self.progress();
        self.transports.holds_answers = false;
    }
}
