//! Waiting for a completion: first by polling, then asleep.

use crate::core::Core;
use crate::library::Library;
use crate::owner::Owner;
use lintel_presence::{LastLook, Sleeper};
use lintel_progress::{RETRY, Wait, WaitNext};
use lintel_snapshot::Awaited;
use lintel_types::{Error, Result};
use std::time::{Duration, Instant};

/// How long a caller polls rather than sleeps that awaits the answer to an operation, if nothing
/// arrives: as long as a copy of some megabytes takes. To wake a sleeper costs the peer more than a
/// small message.
const ANSWER_EXPECTED: Duration = Duration::from_millis(1);

impl<O: Owner> Library<O> {
    /// Waits until `ready` gives something; nothing once the deadline has passed. Tools see
    /// what it `awaits` if that takes so long that the thread sleeps.
    ///
    /// # Errors
    /// `Aborted` after [`Library::abort`], `NoInit` after the last `fini`.
    #[inline]
    pub(crate) fn wait<T>(
        &self,
        deadline: Option<Instant>,
        awaits: impl Fn() -> Awaited,
        ready: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        self.wait_polling(deadline, awaits, ready, || {
            self.poll();
            None
        })
    }

    /// As [`wait`](Self::wait), of a caller that polls by itself, and may find by that what it
    /// waits for.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    #[inline]
    pub(crate) fn wait_polling<T>(
        &self,
        deadline: Option<Instant>,
        awaits: impl Fn() -> Awaited,
        ready: impl FnMut() -> Result<Option<T>>,
        poll: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>> {
        let mut has_slept = false;
        let before_sleep = || {
            if !std::mem::replace(&mut has_slept, true) {
                self.with_core(|core| core.begin_wait(awaits()));
            }
        };
        let found = self.wait_asleep(deadline, before_sleep, ready, poll);
        if has_slept {
            self.with_core(Core::end_wait);
        }
        found
    }

    fn wait_asleep<T>(
        &self,
        deadline: Option<Instant>,
        mut before_sleep: impl FnMut(),
        mut ready: impl FnMut() -> Result<Option<T>>,
        mut poll: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>> {
        let mut wait = Wait::default();
        let mut polls_until = None;
        loop {
            if self.is_aborted() {
                return Err(Error::Aborted);
            }
            self.check_alive()?;
            // Read before `ready`, so that later activity isn't missed.
            let activity = self.activity();
            if let Some(found) = ready()? {
                return Ok(Some(found));
            }
            if let Some(found) = poll() {
                return Ok(Some(found));
            }
            let is_active = self.activity() != activity;
            if is_active {
                polls_until = None;
            }
            match wait.on_polled(is_active) {
                WaitNext::Poll => continue,
                WaitNext::CheckDeadline => {}
                WaitNext::Sleep if self.polls_on(&mut polls_until) => {}
                WaitNext::Sleep => {
                    before_sleep();
                    if self.sleep(deadline, activity) {
                        wait = Wait::default();
                    }
                }
            }
            if passed(deadline) {
                return ready();
            }
        }
    }

    /// Whether a caller that has polled for long in vain polls on: for a while, if this process
    /// awaits an answer. The first call begins that while; `until` is nothing before.
    fn polls_on(&self, until: &mut Option<Instant>) -> bool {
        let now = Instant::now();
        let until = until.get_or_insert_with(|| {
            let awaits = self.with_core(|core| core.awaits_answers()) == Some(true);
            if awaits { now + ANSWER_EXPECTED } else { now }
        });
        now < *until
    }

    /// Sleeps until there is activity or a message arrives, at most until the deadline. Returns
    /// at once if there was activity since `activity` was read, or no interface is open any more.
    /// Whether there may be something to find.
    fn sleep(&self, deadline: Option<Instant>, activity: u64) -> bool {
        let Some(bell) = self.bell() else {
            return true;
        };
        let rings = bell.rings(Sleeper::Caller);
        self.with_core(|core| core.wakeup.begin_sleep());
        let found = bell.fall_asleep(Sleeper::Caller, rings, || {
            let look = self.with_core(Core::before_sleep);
            if self.activity() != activity || self.is_aborted() {
                return LastLook::Found;
            }
            let left = deadline.map(time_until);
            match look {
                Some(LastLook::Nothing(most)) => {
                    LastLook::Nothing(most.into_iter().chain(left).min())
                }
                Some(found) => found,
                None => LastLook::Found,
            }
        });
        self.with_core(Core::after_sleep);
        found
    }
}

impl<O: Owner> Core<O> {
    /// A last poll before a caller sleeps. Not at all if something arrived: there may be more,
    /// for which no sender rings.
    fn before_sleep(&mut self) -> LastLook {
        if self.progress() > 0 {
            return LastLook::Found;
        }
        if self.transports.flush() {
            return LastLook::Nothing(Some(RETRY));
        }
        let awaits_peers = self.awaits_peers();
        LastLook::Nothing(self.next_due(awaits_peers).map(time_until))
    }

    /// After a caller's sleep, with or without one that takes its place.
    fn after_sleep(&mut self) {
        self.progress();
        self.wakeup.begin_polling();
        self.note_arrivals();
        self.check_peers();
        if self.wakeup.end_sleep() {
            self.wakeup.bell.barrier();
            let found = self.progress() > 0;
            self.wakeup.handed_over(found);
        }
    }
}

/// How long it is until then.
pub(crate) fn time_until(then: Instant) -> Duration {
    then.saturating_duration_since(Instant::now())
}

fn passed(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Network, PATIENCE, Peer, wait_until};
    use lintel_types::EventKind;
    use std::sync::atomic::Ordering;

    fn callers_sleep(peer: &Peer) -> bool {
        peer.library.with_core(|core| core.wakeup.callers_sleep()) == Some(true)
    }

    #[test]
    fn a_caller_polls_on_while_an_operation_of_its_process_is_under_way() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        assert!(!one.library.polls_on(&mut None), "nothing is under way");
        network.is_held.store(true, Ordering::SeqCst);
        one.put(&two, 8);
        let mut until = None;
        assert!(one.library.polls_on(&mut until));
        wait_until("it has waited for long", || {
            !one.library.polls_on(&mut until)
        });
        network.is_held.store(false, Ordering::SeqCst);
        wait_until("the answer comes", || one.event().kind == EventKind::Ack);
        assert!(!one.library.polls_on(&mut None));
    }

    #[test]
    fn a_message_wakes_a_caller_that_sleeps() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| two.event());
            wait_until("the caller sleeps", || callers_sleep(&two));
            one.memory.write(0, b"wake up!");
            one.put(&two, 8);
            let event = waits.join().expect("nothing has failed");
            assert_eq!((event.kind, event.mlength), (EventKind::Put, 8));
        });
        let mut landed = [0; 8];
        two.memory.read(0, &mut landed);
        assert_eq!(&landed, b"wake up!");
        assert_eq!(one.event().kind, EventKind::Send);
        assert_eq!(one.event().kind, EventKind::Ack);
    }

    #[test]
    fn every_caller_that_sleeps_is_woken_by_what_one_of_them_may_want() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        std::thread::scope(|scope| {
            let waits: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| two.event().mlength))
                .collect();
            wait_until("callers sleep", || callers_sleep(&two));
            (1..=3).for_each(|length| one.put(&two, length));
            let mut lengths: Vec<u64> = waits
                .into_iter()
                .map(|wait| wait.join().expect("nothing has failed"))
                .collect();
            lengths.sort_unstable();
            assert_eq!(lengths, [1, 2, 3]);
        });
    }

    #[test]
    fn the_helper_lands_messages_while_no_caller_polls() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        let before = two.library.activity();
        one.put(&two, 100);
        wait_until("the message lands", || two.library.activity() != before);
        assert_eq!(two.event().mlength, 100);
    }

    #[test]
    fn the_helper_sends_what_found_no_room_once_there_is_some() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        network.is_held.store(true, Ordering::SeqCst);
        one.put(&two, 8);
        let queued = one.library.with_core(|core| core.transports.flush());
        assert_eq!(queued, Some(true));
        network.is_held.store(false, Ordering::SeqCst);
        assert_eq!(two.event().mlength, 8);
    }

    #[test]
    fn a_caller_that_is_refused_goes_on_once_its_peer_has_taken_the_backlog() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        network.is_held.store(true, Ordering::SeqCst);
        std::thread::scope(|scope| {
            let puts = scope.spawn(|| (0..5).for_each(|_| one.put(&two, 8)));
            wait_until("the caller sleeps", || callers_sleep(&one));
            network.is_held.store(false, Ordering::SeqCst);
            puts.join().expect("nothing has failed");
        });
        (0..5).for_each(|_| assert_eq!(two.event().mlength, 8));
    }

    #[test]
    fn lent_memory_is_fetched_and_its_operation_answered() {
        let network = Network::default();
        let (one, two) = (network.peer(1), network.peer(2));
        let sent: Vec<u8> = (0..50_000u32).map(|at| at as u8).collect();
        one.memory.write(0, &sent);
        one.put(&two, sent.len() as u64);
        assert_eq!(two.event().mlength, 50_000);
        let mut landed = vec![0; sent.len()];
        two.memory.read(0, &mut landed);
        assert!(landed == sent);
        let kinds = [one.event().kind, one.event().kind];
        assert!(kinds.contains(&EventKind::Ack), "{kinds:?}");
    }

    #[test]
    fn a_process_reaches_itself() {
        let network = Network::default();
        let one = network.peer(1);
        one.put(&one, 8);
        let kinds = [one.event().kind, one.event().kind, one.event().kind];
        for kind in [EventKind::Put, EventKind::Send, EventKind::Ack] {
            assert!(kinds.contains(&kind), "{kinds:?}");
        }
    }

    #[test]
    fn a_wait_ends_at_its_deadline_and_not_before() {
        let network = Network::default();
        let one = network.peer(1);
        let begun = Instant::now();
        let polled = one.library.queue_poll(&[one.queue], 30, |_, _| ());
        assert_eq!(polled, Err(Error::EqEmpty));
        assert!(begun.elapsed() >= Duration::from_millis(30));
    }

    #[test]
    fn an_abort_wakes_a_caller_that_sleeps() {
        let network = Network::default();
        let one = network.peer(1);
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let timeout = PATIENCE.as_millis() as u32;
                one.library.queue_poll(&[one.queue], timeout, |_, _| ())
            });
            wait_until("the caller sleeps", || callers_sleep(&one));
            one.library.abort();
            let ended = waits.join().expect("nothing has failed");
            assert_eq!(ended, Err(Error::Aborted));
        });
    }

    #[test]
    fn a_queue_that_is_freed_ends_the_wait_for_it() {
        let network = Network::default();
        let one = network.peer(1);
        let queue = one
            .library
            .queue_alloc(one.interface, 4)
            .expect("it is free");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let timeout = PATIENCE.as_millis() as u32;
                one.library.queue_poll(&[queue], timeout, |_, _| ())
            });
            wait_until("the caller sleeps", || callers_sleep(&one));
            one.library.queue_free(queue).expect("nothing uses it");
            let ended = waits.join().expect("nothing has failed");
            assert_eq!(ended, Err(Error::ArgInvalid));
        });
    }

    #[test]
    fn a_wait_ends_with_its_queue_where_the_interface_closes_just_before_the_sleep() {
        let network = Network::default();
        let one = network.peer(1);
        let close = || {
            let _ = one.library.close_interface(one.interface);
        };
        let take = || match one.library.queue_take(one.queue, |_| ()) {
            Err(Error::EqEmpty) => Ok(None),
            taken => taken.map(Some),
        };
        let ended = one.library.wait_asleep(None, close, take, || None);
        assert_eq!(ended, Err(Error::ArgInvalid));
    }
}
