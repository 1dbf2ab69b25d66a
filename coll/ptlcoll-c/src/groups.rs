//! The groups of this process.

use crate::library::Library;
use crate::pointers::Pointers;
use lintel_group::{Error, Group, Request, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

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

struct Groups {
    /// Numbers are not used again, so that an old one names nothing.
    last: u32,
    by_number: BTreeMap<u32, Arc<Mutex<GroupEntry>>>,
}

static GROUPS: RwLock<Groups> = RwLock::new(Groups {
    last: 0,
    by_number: BTreeMap::new(),
});

/// Gives a group its number, never 0.
pub(crate) fn add(group: Group<Library>) -> Result<u32> {
    let mut groups = GROUPS.write().unwrap_or_else(PoisonError::into_inner);
    let number = groups.last.checked_add(1).ok_or_else(|| {
        Error::InvalidArgument("this process has made 2^32 groups: keep some instead".into())
    })?;
    groups.last = number;
    let begun = BTreeMap::new();
    let entry = Arc::new(Mutex::new(GroupEntry { group, begun }));
    groups.by_number.insert(number, entry);
    Ok(number)
}

/// Does something with a group; one thread at a time.
pub(crate) fn with<R>(number: u32, f: impl FnOnce(&mut GroupEntry) -> Result<R>) -> Result<R> {
    let groups = GROUPS.read().unwrap_or_else(PoisonError::into_inner);
    let entry = groups.by_number.get(&number).cloned();
    drop(groups);
    let entry = entry.ok_or_else(|| none(number))?;
    let mut entry = entry.lock().unwrap_or_else(PoisonError::into_inner);
    f(&mut entry)
}

/// Takes a group out.
pub(crate) fn remove(number: u32) -> Result<Group<Library>> {
    let mut groups = GROUPS.write().unwrap_or_else(PoisonError::into_inner);
    let entry = groups.by_number.remove(&number);
    drop(groups);
    let entry = entry.ok_or_else(|| none(number))?;
    match Arc::try_unwrap(entry) {
        Ok(entry) => {
            let entry = entry.into_inner().unwrap_or_else(PoisonError::into_inner);
            Ok(entry.group)
        }
        Err(_) => Err(Error::InvalidArgument(
            "another thread uses the group that is freed: it goes without a barrier".into(),
        )),
    }
}

fn none(number: u32) -> Error {
    Error::InvalidArgument(format!(
        "there is no group {number}: it was freed, or never made"
    ))
}
