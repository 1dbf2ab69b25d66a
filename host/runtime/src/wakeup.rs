//! Carries out what the state machine of progress (`lintel-progress`) decides.

use lintel_presence::Bell;
use lintel_progress::{
    BellOrder, HelperNext, Limits, Orders, Polling, Progress, Sleeper, WatcherLook, WatcherNext,
};
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a caller is awake at most between two sleeps that counts as one that soon sleeps again: a
/// millisecond of polling, and another one.
const BRIEF: Duration = Duration::from_millis(2);

/// The state of all that poll and sleep, under the core's lock. Each method carries out the
/// orders of the event that it is named for.
pub(crate) struct Wakeup {
    pub(crate) bell: Bell,
    /// Acknowledgements needn't wake the helper: only calls see what they bring about.
    defers_acknowledgements: bool,
    progress: Progress<Instant>,
    polling: Polling,
    /// Peers are shown that a caller polls in vain.
    shows_wait: bool,
    /// Times are counted from then on.
    opened: Instant,
    /// When a caller has last woken, and whether it slept again soon the last time.
    woke: Option<Duration>,
    was_brief: bool,
    /// `None` if the network has no descriptor.
    watcher: Option<Watcher>,
}

impl Wakeup {
    pub(crate) fn new(bell: Bell, defers_acknowledgements: bool) -> Wakeup {
        Wakeup {
            bell,
            defers_acknowledgements,
            progress: Progress::new(Limits::default()),
            polling: Polling::default(),
            shows_wait: false,
            opened: Instant::now(),
            woke: None,
            was_brief: false,
            watcher: None,
        }
    }

    /// A poll has found something.
    #[inline(always)]
    pub(crate) fn poll_found(&mut self) {
        self.polling.on_found();
        if self.shows_wait {
            self.show_wait(false);
        }
    }

    /// Whether callers have polled in vain for a microsecond or more.
    pub(crate) fn waits_long(&self) -> bool {
        self.polling.is_long()
    }

    /// A caller polls for something else from now on: for the answer to what was sent, or what
    /// follows a sleep.
    pub(crate) fn begin_polling(&mut self) {
        self.polling.begin();
    }

    #[cold]
    fn show_wait(&mut self, waits: bool) {
        self.shows_wait = waits;
        self.bell.show_wait(waits);
    }

    /// So many polls have found nothing; whether peers are to be woken now.
    #[inline(always)]
    pub(crate) fn poll_in_vain(&mut self, polls: u32) -> bool {
        let wakes_peers = self.polling.on_nothing(polls, || self.opened.elapsed());
        if self.polling.is_long() && !self.shows_wait {
            self.show_wait(true);
        }
        wakes_peers
    }

    /// The time since the process joined its network.
    pub(crate) fn now(&self) -> Duration {
        self.opened.elapsed()
    }

    /// After so many polls: whether the caller yields its processor now.
    #[inline(always)]
    pub(crate) fn yields(&mut self, polls: u32) -> bool {
        self.polling.yields(polls)
    }

    /// A caller has yielded its processor for so long.
    pub(crate) fn yielded(&mut self, took: Duration) {
        self.polling.on_yielded(took);
    }

    /// A caller has polled; callers have moved so many bytes of bodies since the helper last looked.
    /// Whether the bell can be [disarmed](Self::disarm_bell).
    #[inline(always)]
    pub(crate) fn end_poll(&mut self, moved: impl FnOnce() -> u64) -> bool {
        self.progress.on_poll(self.bell.is_armed(), moved)
    }

    /// A caller polls all the time: senders needn't ring.
    #[cold]
    pub(crate) fn disarm_bell(&mut self) {
        let orders = self.progress.disarm();
        self.carry_out(orders);
    }

    /// No caller looks at the network's descriptor from now on: the watcher does.
    #[inline]
    pub(crate) fn network_is_idle(&mut self) {
        let orders = self.progress.on_network_idle();
        if orders.unpark_watcher {
            self.carry_out(orders);
        }
    }

    /// The thread that polls says that it stops: what arrives from now on rings the helper.
    pub(crate) fn stop_polling(&mut self) {
        let orders = self.progress.stop_polling();
        self.carry_out(orders);
    }

    /// The thread that has stopped polls again.
    pub(crate) fn resume_polling(&mut self) {
        self.progress.resume_polling();
    }

    /// A caller is about to sleep.
    pub(crate) fn begin_sleep(&mut self) {
        let now = self.now();
        self.was_brief = self
            .woke
            .is_some_and(|woke| now.saturating_sub(woke) < BRIEF);
        let orders = self.progress.begin_sleep();
        self.carry_out(orders);
    }

    /// A caller has slept; whether another one still sleeps, for which the bell is now armed. The
    /// helper is woken, but where the caller is likely to sleep again soon, it preempts no thread: neither
    /// the caller, which has a message to answer, nor a peer that waits for that on another processor.
    pub(crate) fn end_sleep(&mut self) -> bool {
        self.woke = Some(self.now());
        let mut orders = self.progress.end_sleep();
        if self.was_brief && std::mem::take(&mut orders.wake_helper) {
            self.bell.wake_helper_as_batch();
        }
        self.carry_out(orders);
        orders.bell.is_some()
    }

    /// A poll since the bell was armed for another caller.
    pub(crate) fn handed_over(&mut self, found: bool) {
        let orders = self.progress.on_handed_over(found);
        self.carry_out(orders);
    }

    #[inline(always)]
    pub(crate) fn callers_sleep(&self) -> bool {
        self.progress.callers_sleep()
    }

    /// The helper has polled; a message that found no room may be queued.
    pub(crate) fn helper_looked(&mut self, queued: bool) -> HelperNext {
        let (orders, next) = self.progress.on_helper_looked(queued);
        self.carry_out(orders);
        if next == HelperNext::Sleep && self.shows_wait {
            // The caller has left, with or without what it had waited for.
            self.show_wait(false);
        }
        next
    }

    /// The helper sleeps, at most until then.
    pub(crate) fn helper_sleeps(&mut self, deadline: Option<Instant>) {
        self.progress.on_helper_sleeps(deadline);
    }

    pub(crate) fn helper_deadline(&self) -> Option<Instant> {
        self.progress.helper_deadline()
    }

    /// Whether the helper sleeps beyond what is due then.
    #[inline]
    pub(crate) fn helper_oversleeps(&self, due: Instant) -> bool {
        self.progress.helper_oversleeps(due)
    }

    /// Has the helper look soon, unless it does.
    pub(crate) fn wake_helper(&mut self) {
        let orders = self.progress.wake_helper();
        self.carry_out(orders);
    }

    /// Whether the helper looks by itself, or has been woken to.
    #[inline]
    pub(crate) fn helper_polls(&self) -> bool {
        self.progress.helper_polls()
    }

    /// Whether it looks seldom, since callers have polled for long.
    #[inline]
    pub(crate) fn helper_looks_seldom(&self) -> bool {
        self.progress.helper_looks_seldom()
    }

    /// A caller may leave a transfer to it.
    #[cold]
    pub(crate) fn hurry_helper(&mut self) {
        let orders = self.progress.hurry_helper();
        self.carry_out(orders);
    }

    /// The helper has looked, and such a transfer is under way.
    pub(crate) fn restart_intervals(&mut self) {
        self.progress.restart_intervals();
    }

    /// Acknowledgements ring the helper from now on: what they count triggers operations. It looks
    /// soon, for those that have come without ringing.
    pub(crate) fn require_acknowledgements(&mut self) {
        if std::mem::take(&mut self.defers_acknowledgements) {
            self.wake_helper();
        }
    }

    pub(crate) fn set_watcher(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
        self.progress.add_watcher();
    }

    /// Each look of the helper takes so long from the thread that uses its processor.
    pub(crate) fn set_look_cost(&mut self, cost: Duration) {
        self.progress.set_look_cost(cost);
    }

    pub(crate) fn take_watcher(&mut self) -> Option<Watcher> {
        self.watcher.take()
    }

    /// The watcher has looked at its descriptor, or was unparked.
    pub(crate) fn watcher_looked(&mut self, look: WatcherLook) -> WatcherNext {
        let (orders, next) = self.progress.on_watcher_looked(look);
        self.carry_out(orders);
        next
    }

    /// Has helper and watcher end at their next look.
    pub(crate) fn close(&mut self) {
        self.progress.close();
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.progress.is_closing()
    }

    fn carry_out(&mut self, orders: Orders) {
        match orders.bell {
            Some(BellOrder::Arm(Sleeper::Helper)) if self.defers_acknowledgements => {
                self.bell.arm_but_for_acknowledgements();
            }
            Some(BellOrder::Arm(sleeper)) => self.bell.arm(sleeper),
            Some(BellOrder::Disarm) => self.bell.disarm(),
            None => {}
        }
        if orders.wake_helper {
            self.bell.wake(Sleeper::Helper);
        }
        if orders.unpark_watcher {
            if let Some(watcher) = &self.watcher {
                watcher.thread.thread().unpark();
            }
        }
    }
}

/// The thread that sleeps on the network's descriptor.
pub(crate) struct Watcher {
    thread: JoinHandle<()>,
    end: Arc<OwnedFd>,
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
        Watcher { thread, end }
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
        Wakeup::new(Bell::new(segment()), true)
    }

    /// Rings of the helper and of callers.
    fn rings(wakeup: &Wakeup) -> [u32; 2] {
        [Sleeper::Helper, Sleeper::Caller].map(|sleeper| wakeup.bell.rings(sleeper))
    }

    #[test]
    fn orders_arm_and_disarm_the_bell_and_ring_the_helper() {
        let mut wakeup = wakeup();
        wakeup.begin_sleep();
        assert!(wakeup.bell.is_armed());
        let [helper, caller] = rings(&wakeup);
        assert!(!wakeup.end_sleep(), "no other sleeps");
        assert_eq!(rings(&wakeup), [helper + 1, caller]);
        wakeup.disarm_bell();
        assert!(!wakeup.bell.is_armed());
    }

    #[test]
    fn a_caller_that_soon_sleeps_again_rings_the_helper_as_any_other() {
        let mut wakeup = wakeup();
        for is_again in [false, true] {
            assert_eq!(wakeup.helper_looked(false), HelperNext::Sleep);
            let [helper, caller] = rings(&wakeup);
            wakeup.begin_sleep();
            assert_eq!(wakeup.was_brief, is_again);
            assert!(!wakeup.end_sleep());
            assert_eq!(rings(&wakeup), [helper + 1, caller]);
        }
    }

    #[test]
    fn a_transfer_that_a_caller_may_leave_rings_a_helper_that_looks_seldom_once() {
        let mut wakeup = wakeup();
        wakeup.wake_helper();
        while !wakeup.helper_looks_seldom() {
            wakeup.end_poll(|| 0);
            assert!(matches!(
                wakeup.helper_looked(false),
                HelperNext::PollAgain(_)
            ));
        }
        let [helper, caller] = rings(&wakeup);
        wakeup.hurry_helper();
        wakeup.hurry_helper();
        assert_eq!(rings(&wakeup), [helper + 1, caller]);
        assert!(wakeup.helper_polls() && !wakeup.helper_looks_seldom());
    }

    #[test]
    fn a_caller_that_polls_for_long_disarms_the_bell() {
        let mut wakeup = wakeup();
        assert_eq!(wakeup.helper_looked(false), HelperNext::Sleep);
        assert!(wakeup.bell.is_armed());
        assert!((0..1000).any(|_| wakeup.end_poll(|| 0)));
        wakeup.disarm_bell();
        assert!(!wakeup.end_poll(|| 0), "nothing is left to disarm");
    }
}
