//! Releases that wait until no message uses the object any more.

use crate::Memory;
use std::sync::{Mutex, PoisonError};

/// Objects whose owners have dropped them while messages used them, each with the memory that
/// messages may still reach.
///
/// A drop doesn't wait. What the engine refuses to release is kept here, and the release is
/// retried whenever something is made, dropped or closed. `is_in_use` tries a release, and
/// returns whether it was refused for that reason; an object that is gone already isn't in use.
///
/// ```
/// use lintel_claim::{Deferred, Memory, Region};
/// use std::cell::Cell;
///
/// static DROPPED: Deferred<u32> = Deferred::new();
/// let busy = Cell::new(true);
/// DROPPED.release(7, Memory::from(&Region::new(64)), |_| busy.get());
/// busy.set(false);
/// DROPPED.retry_all(|object| object != 7 || busy.get());
/// ```
pub struct Deferred<T>(Mutex<Vec<(T, Memory)>>);

impl<T: Copy> Deferred<T> {
    /// Without objects.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        Deferred(Mutex::new(Vec::new()))
    }

    /// Releases an object now, or as soon as nothing uses it.
    pub fn release(&self, object: T, memory: Memory, is_in_use: impl Fn(T) -> bool) {
        self.retry_all(&is_in_use);
        if is_in_use(object) {
            self.with(|deferred| deferred.push((object, memory)));
        }
    }

    /// Retries every deferred release.
    pub fn retry_all(&self, is_in_use: impl Fn(T) -> bool) {
        let mut tried = self.with(std::mem::take);
        tried.retain(|(object, _)| is_in_use(*object));
        if !tried.is_empty() {
            self.with(|deferred| deferred.append(&mut tried));
        }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Vec<(T, Memory)>) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
