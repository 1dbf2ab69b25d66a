//! How a thread falls asleep on a bell.

use core::time::Duration;

/// The longest sleep on a bell that was armed, before the barrier.
pub const SLEEP_BEFORE_BARRIER: Duration = Duration::from_micros(100);

/// How soon a sleeper retries to send what found no room, at the latest: see [`Retries`](crate::Retries).
pub const RETRY: Duration = Duration::from_micros(100);

/// What a thread does next that has armed the bell for itself, until it is awake again.
///
/// ```text
///   Look ──▶ Nap ──▶ OrderedLook ──▶ Sleep ──▶ Awake
///     └───────┴──────────┴── disturbed ─────────▲
/// ```
///
/// What a sender committed before the bell was armed rings nobody, so the thread looks once
/// more. A sender that runs at that moment may not see yet that the bell is armed. The barrier
/// that excludes this is expensive, so a nap may come first, in which any store has long become
/// visible; only if nothing disturbs the nap is the barrier executed, and the thread looks for
/// the last time. Where messages are rarer, the nap is for nothing, and takes no time.
///
/// ```
/// use lintel_progress::SleepStep;
///
/// let step = SleepStep::Look.next(false);
/// assert_eq!(step, SleepStep::Nap);
/// assert_eq!(step.next(true), SleepStep::Awake, "the bell has rung");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SleepStep {
    /// Poll once more.
    Look,
    /// Sleep on the bell, at most for [`SLEEP_BEFORE_BARRIER`], or not at all.
    Nap,
    /// Execute the barrier, then poll once more.
    OrderedLook,
    /// Sleep on the bell until it rings or something is due.
    Sleep,
    /// Return.
    Awake,
}

impl SleepStep {
    /// The step after this one; `disturbed` if a look has found something or the bell has rung.
    #[must_use]
    pub const fn next(self, disturbed: bool) -> SleepStep {
        match self {
            _ if disturbed => SleepStep::Awake,
            SleepStep::Look => SleepStep::Nap,
            SleepStep::Nap => SleepStep::OrderedLook,
            SleepStep::OrderedLook => SleepStep::Sleep,
            SleepStep::Sleep | SleepStep::Awake => SleepStep::Awake,
        }
    }
}
