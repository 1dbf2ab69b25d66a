//! The lock by its bias alone.

use crate::Mutex;
use crate::system::thread;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Holds a [`Mutex`] by its bias to this thread, with which it stays.
pub struct BiasedGuard<'a, T> {
    mutex: &'a Mutex<T>,
    not_send: PhantomData<*mut ()>,
}

/// Takes the lock if it is biased to this thread and free. Unlike
/// [`try_lock`](lock_api::Mutex::try_lock) it calls no function, even where it has to give up: a
/// function that takes the lock in no other way keeps its arguments where they are.
///
/// ```
/// let mutex = lintel_lock::Mutex::new(1);
/// assert!(lintel_lock::lock_by_bias(&mutex).is_none(), "nobody has taken it often");
/// ```
#[inline(always)]
pub fn lock_by_bias<T>(mutex: &Mutex<T>) -> Option<BiasedGuard<'_, T>> {
    // SAFETY: what is locked here is unlocked once, by the guard.
    let is_locked = unsafe { mutex.raw() }.enter(thread());
    is_locked.then(|| BiasedGuard {
        mutex,
        not_send: PhantomData,
    })
}

impl<T> Deref for BiasedGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this thread has the lock as long as the guard lives.
        unsafe { &*self.mutex.data_ptr() }
    }
}

impl<T> DerefMut for BiasedGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this thread has the lock as long as the guard lives, and the guard is borrowed
        // exclusively.
        unsafe { &mut *self.mutex.data_ptr() }
    }
}

impl<T> Drop for BiasedGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the guard has locked it by its bias.
        unsafe { self.mutex.raw() }.leave();
    }
}
