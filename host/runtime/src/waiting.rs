//! Waiting for something that progress brings: first by polling, then asleep.

use crate::core::Core;
use crate::library::Library;
use crate::owner::Owner;
use lintel_presence::{SETTLE, Sleeper};
use lintel_types::{Error, Result};
use std::time::{Duration, Instant};

/// Polls before a waiter lets other threads have the core in between; well
/// above what an answer from a running peer takes.
const SPINS: u32 = 2000;
/// Polls in all before a waiter sleeps.
const PATIENCE: u32 = SPINS + 200;
/// How soon a sleeper tries again to send what found no room.
const RETRY: Duration = Duration::from_micros(100);

impl<O: Owner> Library<O> {
    /// Waits until `ready` gives something; nothing once the deadline has passed.
    ///
    /// # Errors
    /// `Aborted` after [`Library::abort`], `NoInit` after the last `fini`.
    pub(crate) fn wait<T>(
        &self,
        deadline: Option<Instant>,
        mut ready: impl FnMut() -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let mut polls = 0;
        loop {
            if self.is_aborted() {
                return Err(Error::Aborted);
            }
            self.check_alive()?;
            // Before the look: what is posted after it counts as noise.
            let activity = self.activity();
            if let Some(found) = ready()? {
                return Ok(Some(found));
            }
            self.poll();
            // Where anything happens there is reason to stay awake.
            polls = if self.activity() == activity {
                polls + 1
            } else {
                1
            };
            if polls < SPINS {
                // A look at the clock costs as much as several polls.
                if polls % 64 != 1 || !passed(deadline) {
                    continue;
                }
            } else if polls < PATIENCE {
                std::thread::yield_now();
            } else {
                self.sleep(deadline, activity)?;
            }
            if passed(deadline) {
                return ready();
            }
        }
    }

    /// Sleeps until something happens in this process or arrives, at most until
    /// the deadline; not at all where something has since `activity`.
    fn sleep(&self, deadline: Option<Instant>, activity: u64) -> Result<()> {
        let Some(bell) = self.bell() else {
            return Err(Error::NoInit);
        };
        let rings = bell.rings(Sleeper::Caller);
        let quiet = || self.activity() == activity && !self.is_aborted();
        let sleep_briefly = |most: Option<Duration>| {
            let left = deadline.map(time_until);
            let may = self.with_core(Core::before_sleep).flatten();
            if quiet() {
                let timeout = [most, may, left].into_iter().flatten().min();
                bell.sleep(Sleeper::Caller, rings, timeout);
            }
        };
        self.with_core(|core| {
            core.wakeup.begin_sleep();
        });
        sleep_briefly(Some(SETTLE));
        if quiet() && bell.rings(Sleeper::Caller) == rings && !passed(deadline) {
            bell.settle();
            sleep_briefly(None);
        }
        self.with_core(Core::after_sleep);
        Ok(())
    }
}

impl<O: Owner> Core<O> {
    /// A last look before a caller sleeps, and how long he may: not at all where
    /// something came, for there may be more, for which nobody rings.
    fn before_sleep(&mut self) -> Option<Duration> {
        if self.progress() > 0 {
            return Some(Duration::ZERO);
        }
        if self.transports.nal_has_queued() {
            return Some(RETRY);
        }
        let depends = self.depends_on_peers();
        self.next_due(depends).map(time_until)
    }

    /// A caller has slept: somebody must be rung from now on, another caller that
    /// still sleeps, or the helper, who sees to that himself.
    fn after_sleep(&mut self) {
        let last = self.wakeup.end_sleep();
        self.progress();
        self.check_peers();
        if last {
            return self.wakeup.wake_helper();
        }
        let bell = &self.wakeup.bell;
        bell.arm(Sleeper::Caller);
        bell.settle();
        if self.progress() > 0 {
            // As above: the helper polls until nothing arrives.
            self.wakeup.bell.wake(Sleeper::Helper);
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
