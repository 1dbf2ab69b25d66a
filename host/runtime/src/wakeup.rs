//! Who polls for what arrives, who sleeps, and who is rung.
//!
//! ```text
//!   callers   poll, yield ──▶ asleep ──▶ poll     they sleep on the bell
//!   helper    polls at intervals ──▶ sleeps on the bell, until its deadline
//!   watcher   parked ──▶ sleeps on the network's descriptor
//!   bell      armed: a sender rings the sleeper │ disarmed: a caller polls all the time
//! ```
//!
//! One of them always looks for what arrives, or is rung for it:
//!
//! - While callers poll, the helper looks at each interval whether they still do. After
//!   [`DISARM_AFTER`] polls the bell is disarmed, and senders needn't ring.
//! - When they no longer do, the helper arms the bell for itself and sleeps.
//! - A caller that sleeps arms the bell for itself, and wakes the helper when it returns.
//! - The watcher is parked while a caller polls and the network says that it is looked at.

use crate::spin::SpinLimit;
use lintel_presence::{Bell, Sleeper};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Polls in vain after which peers that haven't looked are woken: soon, and once more for
/// those that may have been copying.
const WAKE_PEERS_AFTER: [u32; 2] = [128, 512];
/// Polls in vain after which peers are woken from then on.
const WAKE_PEERS_EVERY: u32 = 20_000;
/// Polls since the bell was armed after which it is disarmed.
const DISARM_AFTER: u32 = 64;

/// The state of all that poll and sleep, under the core's lock.
pub(crate) struct Wakeup {
    pub(crate) bell: Bell,
    callers: Callers,
    helper: Helper,
    /// `None` if the network has no descriptor.
    watcher: Option<Watcher>,
    /// The process leaves the network: helper and watcher end.
    closing: bool,
}

/// The application's threads.
struct Callers {
    /// Polls so far. Helper and watcher compare it with what they saw last.
    polls: u64,
    polls_since_armed: u32,
    /// Polls since one has found something.
    polls_in_vain: u32,
    /// How long they poll before they yield.
    spin: SpinLimit,
    /// Callers that sleep on the bell, or are about to.
    asleep: u32,
    /// The thread that polled has said that it no longer does.
    stopped: bool,
}

/// The helper thread.
#[derive(Default)]
struct Helper {
    /// It looks at each interval, or has been woken to.
    polls: bool,
    /// When it wakes by itself.
    deadline: Option<Instant>,
}

impl Wakeup {
    pub(crate) fn new(bell: Bell) -> Wakeup {
        Wakeup {
            bell,
            callers: Callers {
                polls: 0,
                polls_since_armed: 0,
                polls_in_vain: 0,
                spin: SpinLimit::new(),
                asleep: 0,
                stopped: false,
            },
            helper: Helper::default(),
            watcher: None,
            closing: false,
        }
    }

    /// A caller polls.
    #[inline(always)]
    pub(crate) fn begin_poll(&mut self) {
        self.callers.polls += 1;
    }

    /// A poll has found something.
    #[inline(always)]
    pub(crate) fn poll_found(&mut self) {
        self.callers.polls_in_vain = 0;
        self.callers.spin.found();
    }

    /// A poll has found nothing; whether peers are to be woken now.
    #[inline(always)]
    pub(crate) fn poll_in_vain(&mut self) -> bool {
        self.callers.polls_in_vain += 1;
        let polls = self.callers.polls_in_vain;
        WAKE_PEERS_AFTER.contains(&polls) || polls >= WAKE_PEERS_EVERY
    }

    /// After a poll: whether the caller yields its processor now.
    #[inline(always)]
    pub(crate) fn yields(&mut self) -> bool {
        self.callers.polls_in_vain > 0 && self.callers.spin.in_vain()
    }

    /// A caller has yielded its processor for so long.
    pub(crate) fn yielded(&mut self, took: Duration) {
        self.callers.spin.yielded(took);
    }

    /// Peers have been woken.
    pub(crate) fn peers_woken(&mut self) {
        self.callers.polls_in_vain %= WAKE_PEERS_EVERY;
    }

    /// Ends a poll; whether the bell can be [disarmed](Self::disarm_bell).
    #[inline(always)]
    pub(crate) fn end_poll(&mut self) -> bool {
        if self.bell.is_armed() {
            self.callers.polls_since_armed += 1;
            return self.callers.polls_since_armed >= DISARM_AFTER && self.callers.asleep == 0;
        }
        false
    }

    /// A caller polls all the time: senders needn't ring. The helper has to notice the end of
    /// that, so it is woken.
    #[cold]
    pub(crate) fn disarm_bell(&mut self) {
        self.callers.polls_since_armed = 0;
        self.bell.disarm();
        self.wake_helper();
    }

    /// The thread that polls says that it stops: what arrives from now on rings the helper.
    pub(crate) fn stop_polling(&mut self) {
        self.callers.stopped = true;
        self.bell.arm(Sleeper::Helper);
        self.watch();
    }

    /// The thread that has stopped polls again.
    pub(crate) fn resume_polling(&mut self) {
        self.callers.stopped = false;
    }

    /// A caller is about to sleep.
    pub(crate) fn begin_sleep(&mut self) {
        self.callers.asleep += 1;
        self.bell.arm(Sleeper::Caller);
        self.watch();
    }

    /// A caller has slept; whether no other sleeps.
    pub(crate) fn end_sleep(&mut self) -> bool {
        self.callers.asleep -= 1;
        self.callers.asleep == 0
    }

    pub(crate) fn callers_sleep(&self) -> bool {
        self.callers.asleep > 0
    }

    /// Whether callers have polled since `seen`, which is brought up to date.
    pub(crate) fn callers_poll(&self, seen: &mut u64) -> bool {
        let polled = self.callers.asleep == 0 && self.callers.polls != *seen;
        *seen = self.callers.polls;
        polled
    }

    /// Decides what the helper does after it has looked: true to look again after an
    /// interval, false to sleep.
    pub(crate) fn helper_keeps_polling(&mut self, seen: &mut u64) -> bool {
        let polled = self.callers.asleep == 0 && self.callers.polls != *seen;
        if polled && !self.callers.stopped {
            *seen = self.callers.polls;
            self.helper.polls = true;
            return true;
        }
        self.helper.polls = false;
        self.callers.polls_since_armed = 0;
        if self.callers.asleep == 0 {
            self.bell.arm(Sleeper::Helper);
            self.watch();
        }
        false
    }

    /// The helper sleeps, at most until then.
    pub(crate) fn helper_sleeps(&mut self, deadline: Option<Instant>) {
        self.helper.deadline = deadline;
    }

    /// Whether the helper sleeps beyond what is due then.
    #[inline]
    pub(crate) fn helper_oversleeps(&self, due: Instant) -> bool {
        !self.helper.polls && self.helper.deadline.is_none_or(|deadline| deadline > due)
    }

    /// Has the helper look soon, unless it does.
    pub(crate) fn wake_helper(&mut self) {
        if !self.helper.polls {
            self.helper.polls = true;
            self.bell.wake(Sleeper::Helper);
        }
    }

    pub(crate) fn set_watcher(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    pub(crate) fn take_watcher(&mut self) -> Option<Watcher> {
        self.watcher.take()
    }

    /// No caller looks at the network's descriptor from now on: the watcher does.
    #[inline]
    pub(crate) fn watch(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            watcher.watch();
        }
    }

    /// The watcher parks: a caller looks at the descriptor, and the helper notices when it
    /// stops.
    pub(crate) fn park_watcher(&mut self) {
        if let Some(watcher) = &mut self.watcher {
            watcher.is_watching = false;
            self.wake_helper();
        }
    }

    pub(crate) fn has_watcher(&self) -> bool {
        self.watcher.is_some()
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.watcher
            .as_ref()
            .is_some_and(|watcher| watcher.is_watching)
    }

    /// Has helper and watcher end at their next look.
    pub(crate) fn close(&mut self) {
        self.closing = true;
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }
}

/// The thread that sleeps on the network's descriptor, as others see it.
pub(crate) struct Watcher {
    thread: JoinHandle<()>,
    end: Arc<OwnedFd>,
    /// It sleeps on the descriptor, or is about to.
    is_watching: bool,
}

impl Watcher {
    /// What a watcher polls beside the network's descriptor; it becomes readable when the
    /// watcher is to end.
    ///
    /// # Errors
    /// The system has no descriptor left.
    pub(crate) fn end_signal() -> io::Result<Arc<OwnedFd>> {
        Ok(Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?))
    }

    /// A thread that is parked, and its end signal.
    pub(crate) fn new(thread: JoinHandle<()>, end: Arc<OwnedFd>) -> Watcher {
        Watcher {
            thread,
            end,
            is_watching: false,
        }
    }

    #[inline]
    fn watch(&mut self) {
        if !self.is_watching {
            self.is_watching = true;
            self.thread.thread().unpark();
        }
    }

    /// Ends the thread. The caller doesn't hold the core's lock, which the thread may want
    /// before it ends.
    pub(crate) fn end(self) {
        let _ = rustix::io::write(&self.end, &1u64.to_ne_bytes());
        self.thread.thread().unpark();
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::segment;

    fn wakeup() -> Wakeup {
        let wakeup = Wakeup::new(Bell::new(segment()));
        wakeup.bell.arm(Sleeper::Helper);
        wakeup
    }

    /// Polls in vain; whether the bell can be disarmed, after each.
    fn poll(wakeup: &mut Wakeup) -> bool {
        wakeup.begin_poll();
        wakeup.poll_in_vain();
        wakeup.end_poll()
    }

    #[test]
    fn a_caller_that_polls_for_long_disarms_the_bell_and_wakes_the_helper() {
        let mut wakeup = wakeup();
        let rings = wakeup.bell.rings(Sleeper::Helper);
        let polls = (1..=DISARM_AFTER).filter(|_| poll(&mut wakeup));
        assert_eq!(polls.collect::<Vec<u32>>(), [DISARM_AFTER]);
        wakeup.disarm_bell();
        assert!(!wakeup.bell.is_armed());
        assert_ne!(wakeup.bell.rings(Sleeper::Helper), rings);
        assert!(!poll(&mut wakeup), "nothing is left to disarm");
    }

    #[test]
    fn the_bell_stays_armed_while_another_caller_sleeps() {
        let mut wakeup = wakeup();
        wakeup.begin_sleep();
        assert!(!(0..10 * DISARM_AFTER).any(|_| poll(&mut wakeup)));
        assert!(wakeup.end_sleep());
        assert!(poll(&mut wakeup));
    }

    #[test]
    fn the_helper_polls_while_callers_do_then_arms_the_bell_and_sleeps() {
        let (mut wakeup, mut seen) = (wakeup(), 0);
        wakeup.disarm_bell();
        poll(&mut wakeup);
        assert!(wakeup.helper_keeps_polling(&mut seen));
        poll(&mut wakeup);
        assert!(wakeup.helper_keeps_polling(&mut seen));
        assert!(!wakeup.bell.is_armed());
        assert!(!wakeup.helper_keeps_polling(&mut seen), "nobody has polled");
        assert!(wakeup.bell.is_armed());
    }

    #[test]
    fn the_helper_sleeps_once_the_thread_that_polls_says_that_it_stops() {
        let (mut wakeup, mut seen) = (wakeup(), 0);
        poll(&mut wakeup);
        wakeup.stop_polling();
        assert!(!wakeup.helper_keeps_polling(&mut seen));
        wakeup.resume_polling();
        poll(&mut wakeup);
        assert!(wakeup.helper_keeps_polling(&mut seen));
    }

    #[test]
    fn the_helper_leaves_the_bell_to_a_caller_that_sleeps() {
        let (mut wakeup, mut seen) = (wakeup(), 0);
        wakeup.bell.disarm();
        poll(&mut wakeup);
        wakeup.begin_sleep();
        wakeup.bell.disarm();
        assert!(!wakeup.helper_keeps_polling(&mut seen));
        assert!(!wakeup.bell.is_armed(), "the caller arms it for itself");
    }

    #[test]
    fn a_helper_that_sleeps_beyond_what_is_due_is_woken_once() {
        let (mut wakeup, now) = (wakeup(), Instant::now());
        wakeup.helper_sleeps(Some(now));
        assert!(!wakeup.helper_oversleeps(now));
        wakeup.helper_sleeps(None);
        assert!(wakeup.helper_oversleeps(now));
        let rings = wakeup.bell.rings(Sleeper::Helper);
        wakeup.wake_helper();
        wakeup.wake_helper();
        assert_eq!(wakeup.bell.rings(Sleeper::Helper), rings + 1);
        assert!(!wakeup.helper_oversleeps(now), "it will look");
    }

    #[test]
    fn peers_are_woken_soon_once_more_and_then_seldom() {
        let mut wakeup = wakeup();
        let mut in_vain = |polls: u32| -> Vec<u32> {
            let wakes = (1..=polls).filter(|_| {
                let wakes = wakeup.poll_in_vain();
                if wakes {
                    wakeup.peers_woken();
                }
                wakes
            });
            wakes.collect()
        };
        assert_eq!(in_vain(WAKE_PEERS_EVERY), [128, 512, WAKE_PEERS_EVERY]);
        wakeup.poll_found();
        assert_eq!(wakeup.callers.polls_in_vain, 0);
    }
}
