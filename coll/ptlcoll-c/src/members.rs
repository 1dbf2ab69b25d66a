//! The groups that this process is a member of.

use crate::library::Library;
use crate::pointers::Pointers;
use lintel_group::{Group, Request, Result, Trouble};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// A group, and the buffers of what was begun and not waited for.
pub(crate) struct Member {
    pub(crate) group: Group<Library>,
    /// By the lower half of their names in C, which is never 0.
    pub(crate) begun: BTreeMap<u32, (Request, Pointers)>,
}

impl Member {
    /// Keeps what a request will need; returns the lower half of its name.
    pub(crate) fn keep(&mut self, request: Request, pointers: Pointers) -> u32 {
        let number = (request.0 % u64::from(u32::MAX)) as u32 + 1;
        self.begun.insert(number, (request, pointers));
        number
    }
}

struct Members {
    /// Numbers are not used again, so that an old one names nothing.
    last: u32,
    by_number: BTreeMap<u32, Arc<Mutex<Member>>>,
}

static MEMBERS: RwLock<Members> = RwLock::new(Members {
    last: 0,
    by_number: BTreeMap::new(),
});

/// Gives a group its number, never 0.
pub(crate) fn add(group: Group<Library>) -> Result<u32> {
    let mut members = MEMBERS.write().unwrap_or_else(PoisonError::into_inner);
    let number = members.last.checked_add(1).ok_or_else(|| {
        Trouble::Caller("this process has made 2^32 groups: keep some instead".into())
    })?;
    members.last = number;
    let begun = BTreeMap::new();
    let member = Arc::new(Mutex::new(Member { group, begun }));
    members.by_number.insert(number, member);
    Ok(number)
}

/// Does something with a group; one thread at a time.
pub(crate) fn with<R>(number: u32, f: impl FnOnce(&mut Member) -> Result<R>) -> Result<R> {
    let members = MEMBERS.read().unwrap_or_else(PoisonError::into_inner);
    let member = members.by_number.get(&number).cloned();
    drop(members);
    let member = member.ok_or_else(|| none(number))?;
    let mut member = member.lock().unwrap_or_else(PoisonError::into_inner);
    f(&mut member)
}

/// Takes a group out.
pub(crate) fn remove(number: u32) -> Result<Group<Library>> {
    let mut members = MEMBERS.write().unwrap_or_else(PoisonError::into_inner);
    let member = members.by_number.remove(&number);
    drop(members);
    let member = member.ok_or_else(|| none(number))?;
    match Arc::try_unwrap(member) {
        Ok(member) => {
            let member = member.into_inner().unwrap_or_else(PoisonError::into_inner);
            Ok(member.group)
        }
        Err(_) => Err(Trouble::Caller(
            "another thread uses the group that is freed: it will be gone, and nobody is told"
                .into(),
        )),
    }
}

fn none(number: u32) -> Trouble {
    Trouble::Caller(format!(
        "there is no group {number}: it was freed, or never made"
    ))
}
