//! How a process that sleeps is woken.
//!
//! A thread that is about to sleep writes which one it is, orders that before its last poll
//! of the rings, and sleeps. A sender writes its record and then reads which thread sleeps.
//! One of the two sees the other. The sleeper pays for the order that this needs:
//! `membarrier` makes every running sender's memory accesses fall before or after it, so a
//! sender needs no fence.
//!
//! Who rings wakes the sleeper first and clears that it sleeps afterwards: a sender that is killed in
//! between leaves a bell that the next one rings again.
//!
//! That call interrupts every other processor, which is expensive in a virtual machine. So
//! a sleeper first naps without it, as [`SleepStep`] describes; but only if it was woken that soon
//! the last time, since a timer is as expensive there.

use crate::barrier::barrier;
use crate::header::{HELPER_BUT_FOR_ACKNOWLEDGEMENTS, Header, OWNER_ENDED, SLEEPER_BITS};
use crate::sched::BatchThread;
use crate::segment::Segment;
use lintel_progress::{SLEEP_BEFORE_BARRIER, SleepStep, Sleeper};
use rustix::thread::futex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence, fence};
use std::time::{Duration, Instant};

/// What a thread has found that is about to sleep.
pub enum LastLook {
    /// Something has arrived: it doesn't sleep.
    Found,
    /// It may sleep for so long.
    Nothing(Option<Duration>),
    /// It is to look again after so long, or once it is rung, and sleeps without the barrier: what
    /// a sender committed at the very moment that the bell was armed may wait for that.
    Soon(Duration),
}

/// The bell of this process.
#[derive(Clone)]
pub struct Bell {
    segment: Arc<Segment>,
    /// Whether the last sleep of the helper, and of a caller, was so short that a nap is enough.
    was_short: Arc<[AtomicBool; 2]>,
    /// The thread that sleeps as the helper.
    helper: Arc<BatchThread>,
    /// How often it was armed, above the bits that say for whom.
    armings: Arc<AtomicU32>,
}

impl Bell {
    /// The bell in this process's own segment.
    pub fn new(segment: Arc<Segment>) -> Self {
        Bell {
            segment,
            was_short: Arc::default(),
            helper: Arc::default(),
            armings: Arc::default(),
        }
    }

    /// Announces that `sleeper` sleeps, or is about to, by
    /// [`fall_asleep`](Self::fall_asleep).
    pub fn arm(&self, sleeper: Sleeper) {
        self.announce(sleeper as u32);
    }

    /// As [`arm`](Self::arm), for the helper of a process that sees only by calls what
    /// acknowledgements bring about: they needn't ring.
    pub fn arm_but_for_acknowledgements(&self) {
        self.announce(HELPER_BUT_FOR_ACKNOWLEDGEMENTS);
    }

    fn announce(&self, sleeper: u32) {
        let arming = self.armings.fetch_add(SLEEPER_BITS + 1, Ordering::Relaxed);
        let word = &self.segment.header().bell.asleep;
        word.store(arming | sleeper, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Orders what was armed before what comes next. After this, poll the rings
    /// once more: what isn't seen then will ring.
    pub fn barrier(&self) {
        barrier();
    }

    /// Announces that a thread polls: senders needn't ring.
    #[inline]
    pub fn disarm(&self) {
        self.segment
            .header()
            .bell
            .asleep
            .store(0, Ordering::Relaxed);
    }

    /// Announces whether a caller polls in vain: it has time to copy what is sent to it.
    pub fn show_wait(&self, waits: bool) {
        let word = &self.segment.header().bell.waits.0;
        word.store(waits.into(), Ordering::Relaxed);
    }

    /// Whether the next sender would ring.
    #[inline]
    pub fn is_armed(&self) -> bool {
        asleep(&self.segment) != 0
    }

    /// A number that changes with every ring; read it before the last poll.
    pub fn rings(&self, sleeper: Sleeper) -> u32 {
        self.word(sleeper).load(Ordering::Acquire)
    }

    /// Sleeps on the bell, which is armed, until it rings for `sleeper`, unless it has since
    /// `rings`, or until the time that `look` has set is over. `look` polls the rings before
    /// each sleep. Returns whether it has found something.
    pub fn fall_asleep(
        &self,
        sleeper: Sleeper,
        rings: u32,
        mut look: impl FnMut() -> LastLook,
    ) -> bool {
        let begun = Instant::now();
        let (mut step, mut limit) = (SleepStep::Look, None);
        loop {
            if step == SleepStep::OrderedLook {
                self.barrier();
            }
            let disturbed = match step {
                SleepStep::Look | SleepStep::OrderedLook => {
                    let looks_soon;
                    (limit, looks_soon) = match look() {
                        LastLook::Found => return true,
                        LastLook::Soon(most) => (Some(most), true),
                        LastLook::Nothing(most) => (most, most.is_some_and(is_short)),
                    };
                    if looks_soon {
                        self.sleep(sleeper, rings, limit);
                    }
                    looks_soon
                }
                SleepStep::Nap => self.nap(sleeper, rings),
                SleepStep::Sleep => {
                    self.sleep(sleeper, rings, limit);
                    let was_short = is_short(begun.elapsed());
                    self.was_short(sleeper).store(was_short, Ordering::Relaxed);
                    true
                }
                SleepStep::Awake => return false,
            };
            step = step.next(disturbed);
        }
    }

    /// Sleeps for a moment, if it was woken that soon the last time; whether it was again.
    fn nap(&self, sleeper: Sleeper, rings: u32) -> bool {
        let was_short = self.was_short(sleeper);
        if was_short.load(Ordering::Relaxed) {
            self.sleep(sleeper, rings, Some(SLEEP_BEFORE_BARRIER));
        }
        self.rings(sleeper) != rings
    }

    fn was_short(&self, sleeper: Sleeper) -> &AtomicBool {
        let [helper, caller] = &*self.was_short;
        match sleeper {
            Sleeper::Helper => helper,
            Sleeper::Caller => caller,
        }
    }

    /// Sleeps until the bell rings for `sleeper`, unless it has since `rings`.
    pub fn sleep(&self, sleeper: Sleeper, rings: u32, timeout: Option<Duration>) {
        let timeout = timeout.map(|timeout| futex::Timespec {
            tv_sec: timeout.as_secs() as futex::Secs,
            tv_nsec: timeout.subsec_nanos().into(),
        });
        // However it ends, the caller looks at the rings again.
        let _ = futex::wait(
            self.word(sleeper),
            futex::Flags::empty(),
            rings,
            timeout.as_ref(),
        );
    }

    /// Wakes a sleeper of this process.
    pub fn wake(&self, sleeper: Sleeper) {
        futex_wake(self.word(sleeper));
    }

    /// The calling thread is the helper.
    pub fn set_helper_thread(&self) {
        self.helper.is_this();
    }

    /// Wakes the helper, which preempts no thread for once: where all processors are in use it runs at
    /// the end of a turn. Awake, it calls [`end_batch`](Self::end_batch).
    pub fn wake_helper_as_batch(&self) {
        self.helper.set_batch();
        self.wake(Sleeper::Helper);
    }

    /// The helper, which calls this, is awake: it preempts others again when it is woken.
    pub fn end_batch(&self) {
        self.helper.end_batch();
    }

    fn word(&self, sleeper: Sleeper) -> &AtomicU32 {
        futex_word(&self.segment, sleeper as u32)
    }
}

/// Whether a sleep is so short that no barrier pays.
fn is_short(sleep: Duration) -> bool {
    sleep <= SLEEP_BEFORE_BARRIER
}

/// What `sleeper` sleeps on: it changes with each ring.
fn futex_word(segment: &Segment, sleeper: u32) -> &AtomicU32 {
    let bell = &segment.header().bell;
    if sleeper == Sleeper::Caller as u32 {
        &bell.caller
    } else {
        &bell.helper
    }
}

fn futex_wake(word: &AtomicU32) {
    word.fetch_add(1, Ordering::Release);
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// After a record was committed to `segment`: rings if its owner sleeps; false if the
/// owner is known to have ended.
#[inline]
pub fn ring(segment: &Segment, needs_fence: bool) -> bool {
    !is_armed(segment, needs_fence) || ring_armed(segment)
}

/// After a record was committed to `segment`: whether its owner sleeps, and has to be
/// [rung](ring_armed), or has ended.
#[inline]
pub fn is_armed(segment: &Segment, needs_fence: bool) -> bool {
    if needs_fence {
        fence(Ordering::SeqCst);
    } else {
        compiler_fence(Ordering::SeqCst);
    }
    asleep(segment) != 0
}

/// Who sleeps, or what stands there instead.
#[inline]
fn asleep(segment: &Segment) -> u32 {
    segment.header().asleep()
}

/// Whether a ring would wake the helper: no caller sleeps, but one may poll.
pub fn helper_sleeps(segment: &Segment) -> bool {
    let asleep = asleep(segment);
    asleep == Sleeper::Helper as u32 || asleep == HELPER_BUT_FOR_ACKNOWLEDGEMENTS
}

/// Whether the helper sleeps, and needn't be rung for acknowledgements: see
/// [`Bell::arm_but_for_acknowledgements`].
pub fn helper_defers_acknowledgements(segment: &Segment) -> bool {
    asleep(segment) == HELPER_BUT_FOR_ACKNOWLEDGEMENTS
}

/// Whether a caller of the owner polls in vain, as far as it has announced that.
pub fn caller_waits(segment: &Segment) -> bool {
    segment.header().bell.waits.0.load(Ordering::Relaxed) != 0
}

/// Rings the owner, who sleeps; false if it is known to have ended.
#[cold]
pub fn ring_armed(segment: &Segment) -> bool {
    let word = &segment.header().bell.asleep;
    let armed = word.load(Ordering::Acquire);
    match armed & SLEEPER_BITS {
        0 => {}
        OWNER_ENDED => return false,
        sleeper => {
            futex_wake(futex_word(segment, sleeper));
            let awake = armed & !SLEEPER_BITS;
            // Fails if the owner has disarmed or armed it since.
            let _ = word.compare_exchange(armed, awake, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
    true
}

/// Wakes the owner's helper although a thread seemed to poll.
pub fn wake_helper(segment: &Segment) {
    wake_helper_of(segment.header());
}

/// As [`wake_helper`], for who has only the header.
pub(crate) fn wake_helper_of(header: &Header) {
    futex_wake(&header.bell.helper);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use lintel_types::ProcessId;

    fn bell() -> Bell {
        let job = format!("bell-{}", std::process::id());
        let segment = Segment::create(&job, 0x7f00_0001, ProcessId::PID_ANY);
        Bell::new(Arc::new(segment.expect("shared memory can be had")))
    }

    /// Falls asleep for so long at most; how often it looked before.
    fn looks(bell: &Bell, rings: u32, most: Duration) -> u32 {
        let mut looks = 0;
        bell.fall_asleep(Sleeper::Helper, rings, || {
            looks += 1;
            LastLook::Nothing(Some(most))
        });
        looks
    }

    #[test]
    fn a_sleeper_that_was_woken_soon_naps_the_next_time() {
        let bell = bell();
        let long = 3 * SLEEP_BEFORE_BARRIER;
        let naps = || bell.was_short(Sleeper::Helper).load(Ordering::Relaxed);
        assert_eq!(looks(&bell, bell.rings(Sleeper::Helper), long), 2);
        assert!(!naps(), "it has slept for long");
        bell.was_short(Sleeper::Helper)
            .store(true, Ordering::Relaxed);
        let rings = bell.rings(Sleeper::Helper);
        bell.wake(Sleeper::Helper);
        assert_eq!(looks(&bell, rings, long), 1, "the nap was disturbed");
        assert!(naps());
        assert_eq!(looks(&bell, bell.rings(Sleeper::Helper), long), 2);
        assert!(!naps(), "the nap was for nothing");
    }

    #[test]
    fn a_short_sleep_takes_one_look() {
        let bell = bell();
        let rings = bell.rings(Sleeper::Helper);
        assert_eq!(looks(&bell, rings, SLEEP_BEFORE_BARRIER), 1);
        let begun = Instant::now();
        let soon = 5 * SLEEP_BEFORE_BARRIER;
        bell.fall_asleep(Sleeper::Helper, rings, || LastLook::Soon(soon));
        assert!(begun.elapsed() >= soon);
    }
}
