//! The groups of this process.

use crate::library::Library;
use crate::pointers::Pointers;
use lintel_group::{Error, Group, Request, Result};
use lintel_lock::Mutex;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// A group, and the buffers of what was begun and not waited for.
pub(crate) struct GroupEntry {
    pub(crate) group: Group<Library>,
    /// By the lower half of their names in C, which is never 0.
    pub(crate) begun: BTreeMap<u32, (Request, Pointers)>,
}

impl GroupEntry {
    /// Keeps what a request will need; returns the lower half of its name.
    pub(crate) fn keep(&mut self, request: Request, pointers: Pointers) -> u32 {
        let number = (request.0 % u64::from(u32::MAX)) as u32 + 1;
        self.begun.insert(number, (request, pointers));
        number
    }
}

/// A group, until it is freed.
struct Slot {
    entry: Mutex<Option<GroupEntry>>,
    /// Its number names nothing any more.
    is_freed: AtomicBool,
}

struct Groups {
    /// Numbers are not used again, so that an old one names nothing.
    last: u32,
    by_number: BTreeMap<u32, Arc<Slot>>,
}

static GROUPS: RwLock<Groups> = RwLock::new(Groups {
    last: 0,
    by_number: BTreeMap::new(),
});

thread_local! {
    /// The group that this thread has used last, which most threads use again: found so, it costs
    /// no locked instruction, which would wait until what the operation has stored has left the processor.
    static LATEST: Cell<Option<(u32, Arc<Slot>)>> = const { Cell::new(None) };
}

/// Gives a group its number, never 0.
pub(crate) fn add(group: Group<Library>) -> Result<u32> {
    let mut groups = GROUPS.write().unwrap_or_else(PoisonError::into_inner);
    let number = groups.last.checked_add(1).ok_or_else(|| {
        Error::InvalidArgument("this process has made 2^32 groups: keep some instead".into())
    })?;
    groups.last = number;
    let begun = BTreeMap::new();
    let slot = Slot {
        entry: Mutex::new(Some(GroupEntry { group, begun })),
        is_freed: AtomicBool::new(false),
    };
    groups.by_number.insert(number, Arc::new(slot));
    Ok(number)
}

/// Does something with a group; one thread at a time.
#[inline(always)]
pub(crate) fn with<R>(number: u32, f: impl FnOnce(&mut GroupEntry) -> Result<R>) -> Result<R> {
    let latest = LATEST.try_with(Cell::take).unwrap_or_default();
    let slot = match latest {
        Some((latest, slot)) if latest == number => slot,
        _ => find(number)?,
    };
    let result = slot.with(f);
    // A thread that ends has no place for it any more.
    let _ = LATEST.try_with(|latest| latest.set(Some((number, slot))));
    result.unwrap_or_else(|| Err(none(number)))
}

#[cold]
fn find(number: u32) -> Result<Arc<Slot>> {
    let groups = GROUPS.read().unwrap_or_else(PoisonError::into_inner);
    let slot = groups.by_number.get(&number).cloned();
    slot.ok_or_else(|| none(number))
}

/// Takes a group out.
pub(crate) fn remove(number: u32) -> Result<Group<Library>> {
    let mut groups = GROUPS.write().unwrap_or_else(PoisonError::into_inner);
    let slot = groups.by_number.remove(&number);
    drop(groups);
    let slot = slot.ok_or_else(|| none(number))?;
    slot.is_freed.store(true, Ordering::Relaxed);
    let entry = slot.entry.try_lock().and_then(|mut entry| entry.take());
    match entry {
        Some(entry) => Ok(entry.group),
        None => Err(Error::InvalidArgument(
            "another thread uses the group that is freed: it goes without a barrier".into(),
        )),
    }
}

impl Slot {
    /// `None` if the group has been freed.
    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut GroupEntry) -> R) -> Option<R> {
        let mut entry = self.entry.lock();
        if self.is_freed.load(Ordering::Relaxed) {
            entry.take();
        }
        let result = f(entry.as_mut()?);
        if self.is_freed.load(Ordering::Relaxed) {
            entry.take(); // Meanwhile, by another thread.
        }
        Some(result)
    }
}

#[cold]
fn none(number: u32) -> Error {
    Error::InvalidArgument(format!(
        "there is no group {number}: it was freed, or never made"
    ))
}
