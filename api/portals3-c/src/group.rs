//! The ranks of the process's job, as PtlSetRank and the maps set them.

use lintel_types::ProcessId;
use lintel_types::portals3::{Error, JID_ANY, Result};
use portals33::Ranks;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a process knows of its job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Group {
    /// Its rank, and the number of ranks.
    pub(crate) rank: Option<(u32, u32)>,
    /// The node of each rank.
    pub(crate) nids: Option<Vec<u32>>,
    /// The pid of each rank.
    pub(crate) pids: Option<Vec<u32>>,
    jid: Option<u32>,
}

static GROUP: Mutex<Group> = Mutex::new(Group {
    rank: None,
    nids: None,
    pids: None,
    jid: None,
});

/// The process's group.
pub(crate) fn group() -> MutexGuard<'static, Group> {
    // Each change is one assignment, so that there is nothing half done.
    GROUP.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forgets everything.
pub(crate) fn clear() {
    *group() = Group::default();
}

/// The group as calls read it: the launcher's, if the program has set nothing.
pub(crate) fn current() -> Group {
    let set = group().clone();
    if set.is_set() {
        return set;
    }
    Ranks::from_env().map_or(set, Group::from)
}

/// The job: that of PtlSetJID, the launcher's, or 0.
pub(crate) fn jid() -> u32 {
    let jid = group().jid.or_else(Ranks::jid_from_env);
    jid.filter(|jid| *jid != JID_ANY).unwrap_or(0)
}

impl Group {
    /// Whether the program has set any of it.
    pub(crate) fn is_set(&self) -> bool {
        *self != Group::default()
    }

    /// The pid that the map gives this process.
    pub(crate) fn own_pid(&self) -> Option<u32> {
        let (rank, _) = self.rank?;
        self.pids.as_ref()?.get(rank as usize).copied()
    }

    /// # Errors
    /// `Fail` for a rank beyond the size, or a size that isn't that of the maps.
    pub(crate) fn set_rank(&mut self, rank: u32, size: u32) -> Result<()> {
        let fits = |map: &Option<Vec<u32>>| map.as_ref().is_none_or(|m| m.len() == size as usize);
        if rank >= size || !fits(&self.nids) || !fits(&self.pids) {
            return Err(Error::Fail);
        }
        self.rank = Some((rank, size));
        Ok(())
    }

    /// # Errors
    /// `Fail` for no ranks, or a number that isn't that of PtlSetRank.
    pub(crate) fn check_size(&self, size: usize) -> Result<()> {
        let fits = self.rank.is_none_or(|(_, ranks)| ranks as usize == size);
        if size == 0 || !fits {
            return Err(Error::Fail);
        }
        Ok(())
    }

    /// # Errors
    /// `Fail` for PTL_JID_ANY.
    pub(crate) fn set_jid(&mut self, jid: u32) -> Result<()> {
        if jid == JID_ANY {
            return Err(Error::Fail);
        }
        self.jid = Some(jid);
        Ok(())
    }

    /// # Errors
    /// `NoInit` without maps, `ProcessInvalid` for a rank that isn't one.
    pub(crate) fn process(&self, rank: u32) -> Result<ProcessId> {
        let (Some(nids), Some(pids)) = (&self.nids, &self.pids) else {
            return Err(Error::NoInit);
        };
        match (nids.get(rank as usize), pids.get(rank as usize)) {
            (Some(nid), Some(pid)) => Ok(ProcessId::new(*nid, *pid)),
            _ => Err(Error::ProcessInvalid),
        }
    }
}

impl From<Ranks> for Group {
    fn from(ranks: Ranks) -> Self {
        let processes = ranks.processes();
        Group {
            rank: Some((ranks.rank() as u32, processes.len() as u32)),
            nids: Some(processes.iter().map(|process| process.nid).collect()),
            pids: Some(processes.iter().map(|process| process.pid).collect()),
            jid: Some(ranks.jid()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_ranks_of_other_sizes_are_refused() {
        let mut group = Group::default();
        assert_eq!(group.set_rank(2, 2), Err(Error::Fail));
        assert_eq!(group.set_rank(1, 2), Ok(()));
        assert_eq!(group.check_size(3), Err(Error::Fail));
        assert_eq!(group.check_size(2), Ok(()));
        group.nids = Some(vec![1, 2]);
        assert_eq!(group.set_rank(1, 3), Err(Error::Fail));
        assert_eq!(group.process(0), Err(Error::NoInit));
        assert_eq!(group.set_jid(JID_ANY), Err(Error::Fail));
    }
}
