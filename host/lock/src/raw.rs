//! The algorithm. Loom explores this file in `tests/loom.rs`.

use crate::system::{
    AtomicBool, AtomicU32, AtomicUsize, Ordering, RawMutex, is_registered, order_for_others,
    order_others, pause, thread,
};

/// The lock is biased to no thread. No thread has this number.
pub(crate) const NOBODY: usize = 1;
/// How often in a row a thread takes the lock before it is biased to it for the first time, and
/// at most.
#[cfg(not(loom))]
pub(crate) const STREAK: (u32, u32) = (1 << 8, 1 << 10);
#[cfg(loom)]
pub(crate) const STREAK: (u32, u32) = (1, 2);

/// How often in a row a thread has taken the lock that hands it over to another one that waits.
/// Otherwise it would mostly have taken it again before the other one has woken up.
const HAND_OVER_AFTER: u32 = 32;

/// The state of a [`Mutex`](crate::Mutex), without what it guards.
///
/// It is only ever biased to one thread, the first that qualifies: then the flag `entered` has
/// one writer.
pub struct RawBiased {
    /// The thread that it is biased to, or [`NOBODY`].
    pub(crate) bias: AtomicUsize,
    /// That thread has the lock by its bias, or finds out now whether it may.
    pub(crate) entered: AtomicBool,
    /// A thread has the lock by the mutex.
    pub(crate) is_held: AtomicBool,
    pub(crate) mutex: RawMutex,
    /// A thread waits for the mutex that another one takes all the time.
    pub(crate) other_waits: AtomicBool,
    /// The only thread that it can be biased to, or [`NOBODY`]. From here on under the mutex.
    pub(crate) candidate: AtomicUsize,
    /// The thread that took the mutex last, and how often in a row.
    pub(crate) last: AtomicUsize,
    pub(crate) streak: AtomicU32,
    /// How often in a row the candidate takes the mutex before the lock is biased to it.
    pub(crate) needed: AtomicU32,
}

impl RawBiased {
    /// Takes the lock, once no other thread has it.
    #[inline(always)]
    pub(crate) fn lock(&self) {
        let me = thread();
        if !self.enter(me) {
            self.lock_mutex(me);
        }
    }

    /// Takes the lock if no thread has it, this one included.
    #[inline(always)]
    pub(crate) fn try_lock(&self) -> bool {
        let me = thread();
        self.enter(me) || self.try_lock_mutex(me)
    }

    /// Gives the lock back, which this thread has.
    #[inline(always)]
    pub(crate) fn unlock(&self) {
        if self.is_held.load(Ordering::Relaxed) {
            self.unlock_mutex();
        } else {
            self.leave();
        }
    }

    /// Gives the lock back, which this thread has by its bias.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        debug_assert!(self.entered.load(Ordering::Relaxed), "given back, not had");
        self.entered.store(false, Ordering::Release);
    }

    pub(crate) fn is_locked(&self) -> bool {
        self.is_held.load(Ordering::Relaxed) || self.entered.load(Ordering::Relaxed)
    }

    /// Takes the lock by its bias to this thread; false if it isn't biased to it, or the thread
    /// has the lock already.
    #[inline(always)]
    pub(crate) fn enter(&self, me: usize) -> bool {
        if self.bias.load(Ordering::Relaxed) != me || self.entered.load(Ordering::Relaxed) {
            return false;
        }
        self.entered.store(true, Ordering::Relaxed);
        // Either who revokes the bias sees that this thread has entered, or this thread sees
        // that the bias is revoked.
        order_for_others();
        if self.bias.load(Ordering::Acquire) == me {
            return true;
        }
        self.entered.store(false, Ordering::Release);
        false
    }

    #[cold]
    #[inline(never)]
    fn lock_mutex(&self, me: usize) {
        if !self.mutex.try_lock() {
            if self.streak.load(Ordering::Relaxed) >= HAND_OVER_AFTER {
                self.other_waits.store(true, Ordering::Relaxed);
            }
            self.mutex.lock();
            self.other_waits.store(false, Ordering::Relaxed);
        }
        self.revoke();
        let mut times = 0;
        // Pairs with the Release stores of `enter` and `unlock`.
        while self.entered.load(Ordering::Acquire) {
            pause(times);
            times = times.saturating_add(1);
        }
        self.hold(me);
    }

    #[cold]
    #[inline(never)]
    fn try_lock_mutex(&self, me: usize) -> bool {
        // Who has it by its bias keeps it for now.
        if self.entered.load(Ordering::Relaxed) || !self.mutex.try_lock() {
            return false;
        }
        self.revoke();
        if self.entered.load(Ordering::Acquire) {
            self.mutex.unlock();
            return false;
        }
        self.hold(me);
        true
    }

    /// Has no thread enter by its bias from now on. One that has entered may still be there.
    fn revoke(&self) {
        if self.bias.load(Ordering::Relaxed) == NOBODY {
            return;
        }
        self.bias.store(NOBODY, Ordering::SeqCst);
        order_others();
        let needed = self.needed.load(Ordering::Relaxed);
        self.needed
            .store((needed * 2).min(STREAK.1), Ordering::Relaxed);
        self.streak.store(0, Ordering::Relaxed);
    }

    /// This thread has the lock by the mutex.
    fn hold(&self, me: usize) {
        self.is_held.store(true, Ordering::Relaxed);
        let is_same = self.last.load(Ordering::Relaxed) == me;
        let before = self.streak.load(Ordering::Relaxed);
        let streak = if is_same { before.saturating_add(1) } else { 1 };
        self.last.store(me, Ordering::Relaxed);
        self.streak.store(streak, Ordering::Relaxed);
    }

    #[inline(never)]
    fn unlock_mutex(&self) {
        self.is_held.store(false, Ordering::Relaxed);
        if self.streak.load(Ordering::Relaxed) >= self.needed.load(Ordering::Relaxed) {
            self.bias_to_last();
        }
        match self.other_waits.load(Ordering::Relaxed) {
            true => self.mutex.unlock_to_waiter(),
            false => self.mutex.unlock(),
        }
    }

    /// Biases the lock to the thread that has taken the mutex so often, if it can be.
    #[cold]
    fn bias_to_last(&self) {
        let me = self.last.load(Ordering::Relaxed);
        let candidate = self.candidate.load(Ordering::Relaxed);
        let may = candidate == me || candidate == NOBODY && me != 0 && is_registered();
        if may {
            self.candidate.store(me, Ordering::Relaxed);
            self.bias.store(me, Ordering::Relaxed);
        }
        self.streak.store(0, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Mutex, lock_by_bias, register};
    use std::sync::atomic::AtomicU64;
    use std::time::{Duration, Instant};

    const PATIENCE: Duration = Duration::from_secs(20);

    fn bias(mutex: &Mutex<u64>) -> usize {
        // SAFETY: the raw mutex is only looked at.
        unsafe { mutex.raw() }.bias.load(Ordering::Relaxed)
    }

    /// Takes the lock so often that it is biased to this thread, if it can be.
    fn take_often(mutex: &Mutex<u64>) {
        register();
        (0..=STREAK.1).for_each(|_| *mutex.lock() += 1);
    }

    #[test]
    fn a_thread_that_takes_it_all_the_time_has_it_by_bias() {
        let mutex = Mutex::new(0);
        take_often(&mutex);
        if thread() == 0 || !register() {
            return assert_eq!(bias(&mutex), NOBODY);
        }
        assert_eq!(bias(&mutex), thread());
        assert!(mutex.try_lock().is_some());
        assert_eq!(*mutex.lock(), u64::from(STREAK.1) + 1);
    }

    #[test]
    fn a_lock_that_is_held_by_bias_is_refused_to_others_and_to_its_holder() {
        let mutex = Mutex::new(0);
        take_often(&mutex);
        let guard = mutex.lock();
        assert!(mutex.is_locked());
        assert!(mutex.try_lock().is_none());
        let refused = std::thread::scope(|scope| {
            let other = scope.spawn(|| mutex.try_lock().is_none());
            other.join().expect("it doesn't panic")
        });
        assert!(refused);
        drop(guard);
        assert!(mutex.try_lock().is_some());
    }

    #[test]
    fn a_lock_is_had_by_bias_alone_by_one_thread_at_a_time() {
        let mutex = Mutex::new(0);
        assert!(lock_by_bias(&mutex).is_none());
        take_often(&mutex);
        let Some(mut guard) = lock_by_bias(&mutex) else {
            return assert_eq!(bias(&mutex), NOBODY);
        };
        *guard += 1;
        assert!(mutex.is_locked() && mutex.try_lock().is_none());
        assert!(lock_by_bias(&mutex).is_none(), "this thread has it");
        assert!(mutex.is_locked(), "by a thread that was refused");
        let refused = std::thread::scope(|scope| {
            let other = scope.spawn(|| lock_by_bias(&mutex).is_none());
            other.join().expect("it doesn't panic")
        });
        assert!(refused);
        assert!(mutex.is_locked(), "by another thread, which was refused");
        drop(guard);
        assert_eq!(*mutex.lock(), u64::from(STREAK.1) + 2);
    }

    #[test]
    fn another_thread_waits_until_the_one_with_the_bias_has_left() {
        let mutex = Mutex::new(0);
        take_often(&mutex);
        let before = *mutex.lock();
        std::thread::scope(|scope| {
            let guard = mutex.lock();
            let other = scope.spawn(|| *mutex.lock() += 1);
            let begun = Instant::now();
            while bias(&mutex) != NOBODY && begun.elapsed() < PATIENCE {
                std::thread::yield_now();
            }
            assert_eq!(*guard, before, "the other one is in as well");
            drop(guard);
            other.join().expect("it doesn't panic");
        });
        assert_eq!(*mutex.lock(), before + 1);
    }

    #[test]
    fn no_increment_is_lost_with_or_without_bias() {
        const ROUNDS: u64 = 30_000;
        let mutex = Mutex::new(0);
        let tried = AtomicU64::new(0);
        let note =
            |had: Option<()>| _ = tried.fetch_add(u64::from(had.is_some()), Ordering::Relaxed);
        take_often(&mutex);
        let before = *mutex.lock();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for round in 0..ROUNDS / 100 {
                        note(lock_by_bias(&mutex).map(|mut value| *value += 1));
                        *mutex.lock() += 1;
                        if round % 7 == 0 {
                            note(mutex.try_lock().map(|mut value| *value += 1));
                        }
                        std::thread::yield_now();
                    }
                });
            }
            for _ in 0..ROUNDS * 20 {
                *mutex.lock() += 1;
                note(lock_by_bias(&mutex).map(|mut value| *value += 1));
            }
        });
        let expected = ROUNDS * 20 + 2 * (ROUNDS / 100) + tried.load(Ordering::Relaxed);
        assert_eq!(*mutex.lock() - before, expected);
    }
}
