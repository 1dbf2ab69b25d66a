//! The state of all that poll and sleep.

use crate::watcher::{Watcher, WatcherLook, WatcherNext};
use core::time::Duration;

/// A thread that may sleep on a bell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u32)]
pub enum Sleeper {
    /// The thread that makes progress while the application computes.
    Helper = 1,
    /// A thread inside a call that waits.
    Caller = 2,
}

/// What becomes of the bell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BellOrder {
    /// The next sender rings this one.
    Arm(Sleeper),
    /// A thread polls: senders needn't ring.
    Disarm,
}

/// What an event makes necessary; carried out in the order of the fields, before the lock is
/// released.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[must_use = "nobody else carries it out"]
pub struct Orders {
    /// Arm or disarm the bell.
    pub bell: Option<BellOrder>,
    /// Ring the helper.
    pub wake_helper: bool,
    /// Unpark the watcher.
    pub unpark_watcher: bool,
}

/// When things happen. A count is in events, not in time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Limits {
    /// Polls since the bell was armed after which it is disarmed.
    pub disarm_after: u32,
    /// Or bytes that callers have moved since the helper last looked: a poll that moves long bodies takes
    /// as long as many.
    pub disarm_after_bytes: u64,
    /// How soon the helper looks whether callers still poll.
    pub interval: Duration,
    /// The look that comes last if each comes twice as late as the one before.
    pub longest_interval: Duration,
    /// How often the helper sleeps for that long, or where only its looks find what the network brings
    /// for any interval, until it makes progress although callers poll.
    pub naps: u32,
    /// How much later still that look may come where peers can ring: until the system's clock
    /// ticks, at 250 Hz or more.
    pub slack: Duration,
    /// If it is known what a look costs, the first one comes after so many times that at the
    /// earliest, within the limits above.
    pub first_per_cost: u32,
    /// And with a network the last one after so many times that at the latest.
    pub last_per_cost: u32,
    /// Yields of the watcher in a row, before it sleeps although something is queued.
    pub watcher_yields: u32,
}

/// What the helper does next.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum HelperNext {
    /// Look again when [`Retries`](crate::Retries) says: a message is queued.
    Retry,
    /// Look again after this interval: a caller polls.
    PollAgain(Interval),
    /// Sleep until the bell rings, or until something is due.
    Sleep,
}

/// When the helper looks next, by itself.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Interval {
    /// It sleeps so often until then, as long as callers poll.
    pub naps: u32,
    /// At least for so long each time.
    pub least: Duration,
    /// So much longer if that saves the system a timer (`PR_SET_TIMERSLACK` of prctl(2)).
    pub slack: Duration,
}

/// Who polls, who sleeps, and who is rung. `T` is a point in time of the owner's clock.
///
/// ```
/// use lintel_progress::{BellOrder, HelperNext, Limits, Progress, Sleeper};
///
/// let mut progress = Progress::<u64>::new(Limits::default());
/// // Nobody polls: the helper sleeps, and a sender rings it.
/// let (orders, next) = progress.on_helper_looked(false);
/// assert_eq!(orders.bell, Some(BellOrder::Arm(Sleeper::Helper)));
/// assert_eq!(next, HelperNext::Sleep);
/// // A caller is about to sleep: from now on a sender rings the caller.
/// let orders = progress.begin_sleep();
/// assert_eq!(orders.bell, Some(BellOrder::Arm(Sleeper::Caller)));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Progress<T> {
    callers: Callers,
    helper: Helper<T>,
    /// `None` if the network has no descriptor.
    watcher: Option<Watcher>,
    /// The process leaves the network: helper and watcher end.
    closing: bool,
    limits: Limits,
}

/// The application's threads.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Callers {
    /// They have polled since the helper looked.
    polled_for_helper: bool,
    /// They have polled since the watcher looked.
    polled_for_watcher: bool,
    polls_since_armed: u32,
    /// Callers that sleep on the bell, or are about to.
    asleep: u32,
    /// The thread that polled has said that it no longer does.
    stopped: bool,
}

/// The helper thread.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Helper<T> {
    /// It looks at each interval, or has been woken to.
    polls: bool,
    /// When it wakes by itself.
    deadline: Option<T>,
    /// How soon it looks again.
    interval: Duration,
    /// It looks later than at the first interval.
    looks_seldom: bool,
    /// How soon it looks first, and at last.
    first_interval: Duration,
    last_interval: Duration,
}

impl<T: Copy + Ord> Progress<T> {
    /// Nobody polls or sleeps yet.
    pub fn new(limits: Limits) -> Progress<T> {
        Progress {
            callers: Callers::default(),
            helper: Helper {
                polls: false,
                deadline: None,
                interval: limits.interval,
                looks_seldom: false,
                first_interval: limits.interval,
                last_interval: limits.longest_interval,
            },
            watcher: None,
            closing: false,
            limits,
        }
    }

    /// A caller polls. `armed` says whether a sender would ring, `moved` how many bytes of bodies
    /// callers have moved since the helper last looked; returns whether to
    /// [`disarm`](Self::disarm) the bell.
    #[inline(always)]
    pub fn on_poll(&mut self, armed: bool, moved: impl FnOnce() -> u64) -> bool {
        let callers = &mut self.callers;
        callers.polled_for_helper = true;
        callers.polled_for_watcher = true;
        if !armed {
            return false;
        }
        if moved() >= self.limits.disarm_after_bytes {
            callers.polls_since_armed = self.limits.disarm_after;
        } else if callers.polls_since_armed < self.limits.disarm_after {
            callers.polls_since_armed += 1;
        }
        callers.polls_since_armed == self.limits.disarm_after && callers.asleep == 0
    }

    /// A caller polls all the time: senders needn't ring. The helper has to notice the end of
    /// that, so it is woken.
    #[cold]
    pub fn disarm(&mut self) -> Orders {
        self.callers.polls_since_armed = 0;
        Orders {
            bell: Some(BellOrder::Disarm),
            ..self.wake_helper()
        }
    }

    /// A caller has found nothing, and the network has been silent for a while: from now on the
    /// watcher looks at its descriptor.
    #[inline]
    pub fn on_network_idle(&mut self) -> Orders {
        Orders {
            unpark_watcher: self.begin_watch(),
            ..Orders::default()
        }
    }

    /// The thread that polls says that it stops: what arrives from now on rings the helper.
    pub fn stop_polling(&mut self) -> Orders {
        self.callers.stopped = true;
        self.arm(Sleeper::Helper)
    }

    /// The thread that has stopped polls again.
    pub fn resume_polling(&mut self) {
        self.callers.stopped = false;
    }

    /// A caller is about to sleep: it follows [`SleepStep`](crate::SleepStep).
    pub fn begin_sleep(&mut self) -> Orders {
        self.callers.asleep += 1;
        self.arm(Sleeper::Caller)
    }

    /// A caller has slept, and has polled once more. The bell goes to another caller that still
    /// sleeps, or to the helper, which arms it itself. If it is armed, execute the barrier, poll,
    /// and tell [`on_handed_over`](Self::on_handed_over).
    pub fn end_sleep(&mut self) -> Orders {
        self.callers.asleep -= 1;
        if self.callers.asleep == 0 {
            return self.wake_helper();
        }
        Orders {
            bell: Some(BellOrder::Arm(Sleeper::Caller)),
            ..Orders::default()
        }
    }

    /// The bell was armed for another caller, and a poll after that has found something: the
    /// helper polls until nothing arrives, for there may be more, for which no sender rings.
    pub fn on_handed_over(&mut self, found: bool) -> Orders {
        Orders {
            wake_helper: found,
            ..Orders::default()
        }
    }

    /// Whether callers sleep, which wait for what others may find.
    #[inline(always)]
    pub fn callers_sleep(&self) -> bool {
        self.callers.asleep > 0
    }

    /// The helper has polled. A message that found no room may be queued. If it is to sleep, it
    /// says [until when](Self::on_helper_sleeps), and follows [`SleepStep`](crate::SleepStep).
    pub fn on_helper_looked(&mut self, queued: bool) -> (Orders, HelperNext) {
        if queued {
            return (Orders::default(), HelperNext::Retry);
        }
        let is_awake = self.callers.asleep == 0;
        if is_awake && self.callers.polled_for_helper && !self.callers.stopped {
            self.callers.polled_for_helper = false;
            self.helper.polls = true;
            return (
                Orders::default(),
                HelperNext::PollAgain(self.next_interval()),
            );
        }
        self.helper.polls = false;
        self.restart_intervals();
        self.callers.polls_since_armed = 0;
        let orders = match is_awake {
            true => self.arm(Sleeper::Helper),
            false => Orders::default(),
        };
        (orders, HelperNext::Sleep)
    }

    /// The helper sleeps, at most until then.
    pub fn on_helper_sleeps(&mut self, deadline: Option<T>) {
        self.helper.deadline = deadline;
    }

    /// When the helper wakes by itself, if it sleeps.
    pub fn helper_deadline(&self) -> Option<T> {
        self.helper.deadline
    }

    /// Whether the helper sleeps beyond what is due then.
    #[inline]
    pub fn helper_oversleeps(&self, due: T) -> bool {
        !self.helper.polls && self.helper.deadline.is_none_or(|deadline| deadline > due)
    }

    /// Has the helper look soon, unless it does.
    pub fn wake_helper(&mut self) -> Orders {
        let polls = core::mem::replace(&mut self.helper.polls, true);
        Orders {
            wake_helper: !polls,
            ..Orders::default()
        }
    }

    /// Whether the helper looks seldom, since callers have polled for long.
    #[inline]
    pub fn helper_looks_seldom(&self) -> bool {
        self.helper.polls && self.helper.looks_seldom
    }

    /// A caller has begun a transfer that moves on only while this process makes progress, and
    /// may stop polling: the helper looks as often as when callers began.
    pub fn hurry_helper(&mut self) -> Orders {
        let wake_helper = self.helper_looks_seldom();
        self.restart_intervals();
        Orders {
            wake_helper,
            ..Orders::default()
        }
    }

    /// The helper has looked, and such a transfer is under way: its intervals begin anew.
    pub fn restart_intervals(&mut self) {
        self.helper.interval = self.helper.first_interval;
        self.helper.looks_seldom = false;
    }

    /// There is a watcher, and it is parked. While callers poll, nobody watches the network's
    /// descriptor, so intervals stay short, until the helper says
    /// [what a look costs](Self::set_look_cost).
    pub fn add_watcher(&mut self) {
        self.watcher = Some(Watcher::PARKED);
        self.helper.last_interval = self.helper.first_interval;
    }

    /// Each look of the helper interrupts the thread that uses its processor for so long. The
    /// longer, the later it looks; with a network it doesn't look later than that is worth, for
    /// what arrives once callers have stopped waits for a look.
    pub fn set_look_cost(&mut self, cost: Duration) {
        let (shortest, longest) = (self.limits.interval, self.limits.longest_interval);
        let after = |times| cost.saturating_mul(times).clamp(shortest, longest);
        self.helper.first_interval = after(self.limits.first_per_cost);
        if self.watcher.is_some() {
            self.helper.last_interval = after(self.limits.last_per_cost);
        }
    }

    /// The watcher has looked: at what has come, or whether to watch.
    pub fn on_watcher_looked(&mut self, look: WatcherLook) -> (Orders, WatcherNext) {
        let Some(watcher) = &mut self.watcher else {
            return (Orders::default(), WatcherNext::Park);
        };
        let (looks, queued) = match look {
            WatcherLook::More => {
                watcher.yields = 0;
                return (Orders::default(), WatcherNext::Continue);
            }
            WatcherLook::Unparked { queued } => (false, queued),
            WatcherLook::Polled { idle, queued } => (!idle, queued),
        };
        let polled = core::mem::take(&mut self.callers.polled_for_watcher);
        if polled && self.callers.asleep == 0 && looks {
            // Callers look at the descriptor, and the helper notices when they stop.
            *watcher = Watcher::PARKED;
            return (self.wake_helper(), WatcherNext::Park);
        }
        let next = if !watcher.is_watching {
            WatcherNext::Park
        } else if watcher.yields(queued, self.limits.watcher_yields) {
            WatcherNext::Yield
        } else {
            WatcherNext::Watch
        };
        (Orders::default(), next)
    }

    /// Whether callers have polled since the helper looked and polls again.
    pub fn have_polled(&self) -> bool {
        self.callers.polled_for_helper
    }

    /// Whether the helper looks at each interval, or has been woken to.
    pub fn helper_polls(&self) -> bool {
        self.helper.polls
    }

    /// Whether the watcher sleeps on the network's descriptor, or is about to.
    pub fn is_watching(&self) -> bool {
        self.watcher
            .as_ref()
            .is_some_and(|watcher| watcher.is_watching)
    }

    /// The process leaves the network: helper and watcher end when they look next.
    pub fn close(&mut self) {
        self.closing = true;
    }

    /// Whether helper and watcher are to end.
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// No caller looks at the network's descriptor from now on, and senders ring `sleeper`.
    fn arm(&mut self, sleeper: Sleeper) -> Orders {
        Orders {
            bell: Some(BellOrder::Arm(sleeper)),
            unpark_watcher: self.begin_watch(),
            ..Orders::default()
        }
    }

    /// Whether the watcher has to be unparked for that.
    #[inline]
    fn begin_watch(&mut self) -> bool {
        let Some(watcher) = &mut self.watcher else {
            return false;
        };
        !core::mem::replace(&mut watcher.is_watching, true)
    }

    /// A helper that looks interrupts the thread that uses its processor, so each look comes
    /// twice as late as the one before.
    fn next_interval(&mut self) -> Interval {
        let least = self.helper.interval;
        self.helper.looks_seldom = least > self.helper.first_interval;
        self.helper.interval = (least * 2).min(self.helper.last_interval);
        let Limits {
            naps,
            longest_interval,
            ..
        } = self.limits;
        let (naps, slack) = match &self.watcher {
            None if least < longest_interval => (1, Duration::ZERO),
            None => (naps, self.limits.slack),
            Some(_) => (naps, Duration::ZERO),
        };
        Interval { naps, least, slack }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            disarm_after: 64,
            disarm_after_bytes: 128 << 10,
            interval: Duration::from_micros(200),
            longest_interval: Duration::from_micros(1600),
            naps: 8,
            slack: Duration::from_millis(4),
            first_per_cost: 16,
            last_per_cost: 64,
            watcher_yields: 256,
        }
    }
}
