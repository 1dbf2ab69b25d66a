//! The parameters of a group, from its caller and from the environment.

use crate::error::{Error, Result};
use lintel_types::ProcessId;
use std::ffi::OsStr;
use std::time::Duration;

/// What performs the steps of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Progress {
    /// The Portals library: all steps are posted at the call, and then no caller is needed.
    #[default]
    Offloaded,
    /// The thread that calls: the same steps, as far as they can be taken while it is
    /// in a call.
    Host,
}

/// The parameters of a group.
#[derive(Clone, Debug)]
pub struct Spec {
    /// All processes by rank: the same list at all ranks.
    pub processes: Vec<ProcessId>,
    /// The rank of this process.
    pub rank: u32,
    /// What performs the steps.
    pub progress: Progress,
    /// How long creation waits for a process that exists, but hasn't begun to create the
    /// group; [`CREATE_TIMEOUT`] unless the caller knows better.
    pub create_timeout: Duration,
}

/// How long creation waits for a process that exists. Long, since ranks may read their input
/// before they create a group, and only a bound for what can't be noticed otherwise.
pub const CREATE_TIMEOUT: Duration = Duration::from_secs(600);

impl Progress {
    /// What an environment variable asks for.
    ///
    /// # Errors
    /// `Environment` if the value isn't understood.
    pub fn from_env() -> Result<Option<Progress>> {
        let Some(value) = std::env::var_os("PTLCOLL_PROGRESS") else {
            return Ok(None);
        };
        match value.to_str() {
            Some("") => Ok(None),
            Some("offloaded") => Ok(Some(Progress::Offloaded)),
            Some("host") => Ok(Some(Progress::Host)),
            _ => Err(Error::Environment(format!(
                "PTLCOLL_PROGRESS is {value:?}: it takes offloaded or host"
            ))),
        }
    }
}

impl Spec {
    /// The creation's timeout of the environment, `PTLCOLL_CREATE_TIMEOUT` in milliseconds;
    /// else [`CREATE_TIMEOUT`].
    ///
    /// # Errors
    /// `Environment` unless the value is a number from 1 to 4294967295.
    pub fn create_timeout_from_env() -> Result<Duration> {
        match std::env::var_os("PTLCOLL_CREATE_TIMEOUT") {
            Some(value) if !value.is_empty() => parse_timeout(&value),
            _ => Ok(CREATE_TIMEOUT),
        }
    }

    /// The bytes of `PTLCOLL_EAGER`, up to which those of a rank are copied through shared memory.
    ///
    /// # Errors
    /// `Environment` unless the value is a number.
    pub fn eager_from_env() -> Result<Option<u64>> {
        match std::env::var_os("PTLCOLL_EAGER") {
            Some(value) if !value.is_empty() => parse_eager(&value).map(Some),
            _ => Ok(None),
        }
    }

    /// Checks the list of processes; `own` is this process.
    ///
    /// # Errors
    /// `InvalidArgument` if the list lacks this process at its rank, or has one twice.
    pub(crate) fn check(&self, own: ProcessId) -> Result<()> {
        let wrong = |what: String| Err(Error::InvalidArgument(what));
        let rank = self.rank;
        let Some(listed) = self.processes.get(rank as usize) else {
            return wrong(format!(
                "this process's rank is {rank}, but the group has ranks 0 to {}",
                self.processes.len().saturating_sub(1)
            ));
        };
        if *listed != own {
            return wrong(format!(
                "rank {rank} in the list of processes is another process, not this one"
            ));
        }
        let mut sorted = self.processes.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => wrong(format!(
                "{:?} is in the list of processes more than once",
                pair[0]
            )),
            None => Ok(()),
        }
    }
}

fn parse_timeout(value: &OsStr) -> Result<Duration> {
    let milliseconds = value.to_str().and_then(|text| text.parse::<u32>().ok());
    match milliseconds {
        Some(milliseconds @ 1..) => Ok(Duration::from_millis(milliseconds.into())),
        _ => Err(Error::Environment(format!(
            "PTLCOLL_CREATE_TIMEOUT is {value:?}: it takes milliseconds, 1 to {}",
            u32::MAX
        ))),
    }
}

fn parse_eager(value: &OsStr) -> Result<u64> {
    let bytes = value.to_str().and_then(|text| text.parse().ok());
    bytes.ok_or_else(|| {
        Error::Environment(format!(
            "PTLCOLL_EAGER is {value:?}: it takes bytes, 0 to {}",
            u64::MAX
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eager_bytes_are_a_number() {
        let parse = |value: &str| parse_eager(OsStr::new(value));
        assert_eq!(parse("0"), Ok(0));
        assert_eq!(parse("65536"), Ok(65536));
        for wrong in ["-1", "64k", "18446744073709551616"] {
            let refused = parse(wrong).unwrap_err().to_string();
            assert!(
                refused.contains("PTLCOLL_EAGER") && refused.contains(wrong),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_timeout_is_a_number_of_milliseconds_and_not_zero() {
        let parse = |value: &str| parse_timeout(OsStr::new(value));
        assert_eq!(parse("1500"), Ok(Duration::from_millis(1500)));
        for wrong in ["0", "-1", "1.5", "4294967296", "never"] {
            let refused = parse(wrong).unwrap_err().to_string();
            assert!(
                refused.contains(wrong) && refused.contains("4294967295"),
                "{refused}"
            );
        }
    }
}
