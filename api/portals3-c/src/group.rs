//! The ranks of the process's job, as PtlSetRank and the maps set them.

use lintel_types::ProcessId;
use lintel_types::portals3::{Error, JID_ANY, Result};
use std::net::Ipv4Addr;
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

/// The pid that the map gives this process.
pub(crate) fn own_pid() -> Option<u32> {
    let group = group();
    let (rank, _) = group.rank?;
    group.pids.as_ref()?.get(rank as usize).copied()
}

/// The job: that of PtlSetJID, the launcher's, or 0.
pub(crate) fn jid() -> u32 {
    let launchers = || {
        std::env::var("PTL_MY_JID")
            .ok()
            .and_then(|jid| number(&jid))
    };
    let jid = group().jid.or_else(launchers);
    jid.filter(|jid| *jid != JID_ANY).unwrap_or(0)
}

impl Group {
    /// The group that a launcher has put into the environment.
    ///
    /// # Errors
    /// `NoInit` if a variable is missing, isn't understood, or contradicts another.
    pub(crate) fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Group> {
        let given = |name: &str| lookup(name).ok_or(Error::NoInit);
        let map = |name: &str| -> Result<Vec<u32>> {
            let parts: Option<Vec<u32>> = given(name)?.split(':').map(number).collect();
            parts.ok_or(Error::NoInit)
        };
        let (nids, pids) = (map("PTL_NIDMAP")?, map("PTL_PIDMAP")?);
        let rank = number(&given("PTL_MY_RID")?).ok_or(Error::NoInit)?;
        let jid = number(&given("PTL_MY_JID")?).ok_or(Error::NoInit)?;
        if nids.len() != pids.len() || rank as usize >= nids.len() {
            return Err(Error::NoInit);
        }
        Ok(Group {
            rank: Some((rank, nids.len() as u32)),
            nids: Some(nids),
            pids: Some(pids),
            jid: Some(jid),
        })
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

/// A number, decimal or after `0x` hexadecimal, or an IPv4 address.
fn number(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix("0x") {
        return u32::from_str_radix(digits, 16).ok();
    }
    let address = || text.parse::<Ipv4Addr>().ok().map(u32::from);
    text.parse().ok().or_else(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Group> {
        Group::from_lookup(|name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    const COMPLETE: [(&str, &str); 4] = [
        ("PTL_MY_RID", "1"),
        ("PTL_NIDMAP", "127.0.0.1:0x7f000002:3"),
        ("PTL_PIDMAP", "0:98:3334"),
        ("PTL_MY_JID", "7"),
    ];

    #[test]
    fn a_launchers_variables_name_each_rank() {
        let group = of(&COMPLETE).expect("it is complete");
        assert_eq!(group.rank, Some((1, 3)));
        let names = [(0x7f00_0001, 0), (0x7f00_0002, 98), (3, 3334)];
        for (rank, (nid, pid)) in (0..).zip(names) {
            assert_eq!(group.process(rank), Ok(ProcessId::new(nid, pid)));
        }
        assert_eq!(group.process(3), Err(Error::ProcessInvalid));
    }

    #[test]
    fn a_variable_that_is_missing_or_wrong_leaves_nothing() {
        for (index, (name, _)) in COMPLETE.iter().enumerate() {
            let mut variables = COMPLETE.to_vec();
            variables.remove(index);
            assert_eq!(of(&variables), Err(Error::NoInit), "{name}");
            variables.push((name, "1:x"));
            assert_eq!(of(&variables), Err(Error::NoInit), "{name}");
        }
    }

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
