//! The ranks of a job, as a launcher passes them in the environment.

use lintel_types::ProcessId;
use lintel_types::portals3::{Error, Result};
use std::net::Ipv4Addr;

/// The job of a process, from `PTL_MY_RID`, `PTL_NIDMAP`, `PTL_PIDMAP` and `PTL_MY_JID`, which
/// `yod` sets.
///
/// ```
/// use portals33::Ranks;
/// let variables = [
///     ("PTL_MY_RID", "1"),
///     ("PTL_NIDMAP", "127.0.0.1:127.0.0.2"),
///     ("PTL_PIDMAP", "98:98"),
///     ("PTL_MY_JID", "7"),
/// ];
/// let ranks = Ranks::from_lookup(|name| {
///     let found = variables.iter().find(|(variable, _)| *variable == name);
///     found.map(|(_, value)| value.to_string())
/// })?;
/// assert_eq!((ranks.rank(), ranks.processes().len()), (1, 2));
/// assert_eq!(ranks.process().nid, 0x7f00_0002);
/// # Ok::<(), portals33::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranks {
    rank: usize,
    processes: Vec<ProcessId>,
    jid: u32,
}

impl Ranks {
    /// What the launcher has put into the environment.
    ///
    /// # Errors
    /// `NoInit` if a variable is missing, isn't understood, or contradicts another.
    pub fn from_env() -> Result<Ranks> {
        Ranks::from_lookup(|name| std::env::var(name).ok())
    }

    /// As [`from_env`](Self::from_env), of other variables.
    ///
    /// # Errors
    /// As there.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Ranks> {
        let given = |name: &str| lookup(name).ok_or(Error::NoInit);
        let map = |name: &str| -> Result<Vec<u32>> {
            let parts: Option<Vec<u32>> = given(name)?.split(':').map(number).collect();
            parts.ok_or(Error::NoInit)
        };
        let one = |name: &str| number(&given(name)?).ok_or(Error::NoInit);
        let (nids, pids) = (map("PTL_NIDMAP")?, map("PTL_PIDMAP")?);
        let (rank, jid) = (one("PTL_MY_RID")? as usize, one("PTL_MY_JID")?);
        if nids.len() != pids.len() || rank >= nids.len() {
            return Err(Error::NoInit);
        }
        let names = nids.into_iter().zip(pids);
        Ok(Ranks {
            rank,
            processes: names.map(|(nid, pid)| ProcessId::new(nid, pid)).collect(),
            jid,
        })
    }

    /// The job that the launcher has put into the environment, with or without ranks.
    pub fn jid_from_env() -> Option<u32> {
        number(&std::env::var("PTL_MY_JID").ok()?)
    }

    /// The rank of this process.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// This process's nid and pid.
    pub fn process(&self) -> ProcessId {
        self.processes[self.rank]
    }

    /// The nid and pid of each rank.
    pub fn processes(&self) -> &[ProcessId] {
        &self.processes
    }

    /// The job.
    pub fn jid(&self) -> u32 {
        self.jid
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

    fn of(variables: &[(&str, &str)]) -> Result<Ranks> {
        Ranks::from_lookup(|name| {
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
        let ranks = of(&COMPLETE).expect("it is complete");
        assert_eq!((ranks.rank(), ranks.jid()), (1, 7));
        let names = [(0x7f00_0001, 0), (0x7f00_0002, 98), (3, 3334)];
        let names = names.map(|(nid, pid)| ProcessId::new(nid, pid));
        assert_eq!(ranks.processes(), names);
        assert_eq!(ranks.process(), names[1]);
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
}
