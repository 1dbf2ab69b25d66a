//! When a lock may be biased. The test is alone in its process: registration is for all of one.

use lintel_lock::{Mutex, is_registered, lock_by_bias, register};

/// More often than a thread must take the lock in a row before it is biased to it.
const OFTEN: u32 = 4096;

#[test]
fn no_lock_is_biased_before_the_process_is_registered_and_taking_it_registers_nothing() {
    let mutex = Mutex::new(0);
    (0..OFTEN).for_each(|_| *mutex.lock() += 1);
    assert!(!is_registered());
    assert!(lock_by_bias(&mutex).is_none());
    if !register() {
        return; // The system has no such barriers.
    }
    assert!(is_registered());
    (0..OFTEN).for_each(|_| *mutex.lock() += 1);
    assert!(lock_by_bias(&mutex).is_some());
    assert_eq!(*mutex.lock(), 2 * OFTEN);
}
