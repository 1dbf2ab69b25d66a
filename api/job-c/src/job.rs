//! The job of this process: what the launcher says of it, or a job of one rank.

use lintel_pmi::client::{Client, Error as LauncherError, LocalPlace};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

/// The job between the first `init` and the last `fini`.
static JOB: Mutex<Option<Job>> = Mutex::new(None);

pub(crate) struct Job {
    /// How often `init` has been called, and `fini` hasn't.
    uses: u32,
    peers: Peers,
    /// Gathers so far: each has keys of its own.
    gathers: u64,
}

enum Peers {
    /// Known by a launcher.
    Launched(Client),
    /// None: no launcher has started the process.
    Alone { stored: BTreeMap<String, String> },
}

/// The most bytes of a key and of a value in a job of one: those of MPICH's launchers.
const ALONE_LONGEST: (usize, usize) = (63, 1023);

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Error {
    NullPointer,
    NotText,
    NoInit,
    Launcher(LauncherError),
    /// The launcher doesn't report which ranks share a node.
    NodeUnknown,
    NotFound(String),
    NoSpace {
        needed: usize,
        given: usize,
    },
    OtherSize {
        rank: usize,
        ours: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NullPointer => write!(f, "a pointer is null; pass one to memory of the program"),
            Error::NotText => write!(f, "a key or value isn't UTF-8; pass printable characters"),
            Error::NoInit => write!(f, "the job isn't open; call ptljob_init first"),
            Error::Launcher(error) => error.fmt(f),
            Error::NodeUnknown => write!(f, "the launcher doesn't report which ranks share a node"),
            Error::NotFound(key) => write!(
                f,
                "no rank had stored {key:?} before the last barrier; call ptljob_barrier \
                 between ptljob_put and ptljob_get"
            ),
            Error::NoSpace { needed, given } => {
                write!(f, "the buffer has {given} bytes; {needed} are needed")
            }
            Error::OtherSize { rank, ours } => write!(
                f,
                "this rank passed {ours} bytes, and rank {rank} another number; pass the same at \
                 all ranks"
            ),
        }
    }
}

impl From<LauncherError> for Error {
    fn from(error: LauncherError) -> Error {
        Error::Launcher(error)
    }
}

/// Opens the job, or notes one more user of it.
///
/// # Errors
/// `Launcher`.
pub(crate) fn open() -> Result<(), Error> {
    let mut job = JOB.lock();
    if let Some(job) = job.as_mut() {
        job.uses += 1;
        return Ok(());
    }
    let peers = match Client::from_env()? {
        Some(client) => Peers::Launched(client),
        None => Peers::Alone {
            stored: BTreeMap::new(),
        },
    };
    *job = Some(Job {
        uses: 1,
        peers,
        gathers: 0,
    });
    Ok(())
}

/// Ends a use of the job; the last one leaves it.
///
/// # Errors
/// `NoInit`, `Launcher`.
pub(crate) fn close() -> Result<(), Error> {
    let mut job = JOB.lock();
    let open = job.as_mut().ok_or(Error::NoInit)?;
    open.uses -= 1;
    if open.uses > 0 {
        return Ok(());
    }
    match job.take().map(|job| job.peers) {
        Some(Peers::Launched(client)) => Ok(client.finalize()?),
        _ => Ok(()),
    }
}

/// Asks the launcher to end the job. A call of another thread that waits for the launcher keeps
/// it from being asked; it then learns from the end of this process.
pub(crate) fn abort(code: i32) {
    let asked = JOB.try_lock().map(|mut job| match job.as_mut() {
        Some(Job {
            peers: Peers::Launched(client),
            ..
        }) => client.abort(code),
        _ => Ok(()),
    });
    if let Some(Err(error)) = asked {
        let _ = writeln!(std::io::stderr(), "lintel: {error}");
    }
}

/// A call on the open job.
///
/// # Errors
/// `NoInit`, and the call's.
pub(crate) fn with<R>(call: impl FnOnce(&mut Job) -> Result<R, Error>) -> Result<R, Error> {
    JOB.lock().as_mut().ok_or(Error::NoInit).and_then(call)
}

pub(crate) fn is_open() -> bool {
    JOB.lock().is_some()
}

impl Job {
    pub(crate) fn rank(&self) -> usize {
        match &self.peers {
            Peers::Launched(client) => client.rank(),
            Peers::Alone { .. } => 0,
        }
    }

    pub(crate) fn size(&self) -> usize {
        match &self.peers {
            Peers::Launched(client) => client.size(),
            Peers::Alone { .. } => 1,
        }
    }

    pub(crate) fn universe_size(&mut self) -> Result<usize, Error> {
        match &mut self.peers {
            Peers::Launched(client) => Ok(client.universe_size()?),
            Peers::Alone { .. } => Ok(1),
        }
    }

    /// The place among the ranks of the node.
    ///
    /// # Errors
    /// `NodeUnknown`, `Launcher`.
    pub(crate) fn place_on_node(&mut self) -> Result<LocalPlace, Error> {
        match &mut self.peers {
            Peers::Launched(client) => client.local_place()?.ok_or(Error::NodeUnknown),
            Peers::Alone { .. } => Ok(LocalPlace { rank: 0, size: 1 }),
        }
    }

    pub(crate) fn store_name(&self) -> &str {
        match &self.peers {
            Peers::Launched(client) => client.kvs_name(),
            Peers::Alone { .. } => "singleton",
        }
    }

    /// The most bytes of a key and of a value.
    pub(crate) fn longest(&self) -> (usize, usize) {
        match &self.peers {
            Peers::Launched(client) => client.longest(),
            Peers::Alone { .. } => ALONE_LONGEST,
        }
    }

    pub(crate) fn barrier(&mut self) -> Result<(), Error> {
        match &mut self.peers {
            Peers::Launched(client) => Ok(client.barrier()?),
            Peers::Alone { .. } => Ok(()),
        }
    }

    pub(crate) fn put(&mut self, key: &str, value: &str) -> Result<(), Error> {
        match &mut self.peers {
            Peers::Launched(client) => client.put(key, value)?,
            Peers::Alone { stored } => {
                lintel_pmi::client::check("key", key, ALONE_LONGEST.0)?;
                lintel_pmi::client::check("value", value, ALONE_LONGEST.1)?;
                stored.insert(key.into(), value.into());
            }
        }
        Ok(())
    }

    pub(crate) fn get(&mut self, key: &str) -> Result<String, Error> {
        let found = match &mut self.peers {
            Peers::Launched(client) => client.get(key)?,
            Peers::Alone { stored } => {
                lintel_pmi::client::check("key", key, ALONE_LONGEST.0)?;
                stored.get(key).cloned()
            }
        };
        found.ok_or_else(|| Error::NotFound(key.into()))
    }

    /// Gathers `mine` of each rank, by rank.
    ///
    /// # Errors
    /// `Launcher`, `OtherSize`.
    pub(crate) fn gather(&mut self, mine: &[u8]) -> Result<Vec<u8>, Error> {
        let gather = self.gathers;
        self.gathers += 1;
        // Two digits a byte.
        let part = (self.longest().1 / 2).max(1);
        let key = |rank: usize, part: usize| format!("ptljob-{gather}-{rank}-{part}");
        let rank = self.rank();
        let text = format!("{}:", mine.len());
        self.put(&key(rank, 0), &text)?;
        for (number, bytes) in mine.chunks(part).enumerate() {
            self.put(&key(rank, number + 1), &digits(bytes))?;
        }
        self.barrier()?;
        let mut all = Vec::with_capacity(mine.len() * self.size());
        for rank in 0..self.size() {
            if self.get(&key(rank, 0))? != text {
                return Err(Error::OtherSize {
                    rank,
                    ours: mine.len(),
                });
            }
            for number in 0..mine.len().div_ceil(part) {
                all.extend(bytes(&self.get(&key(rank, number + 1))?));
            }
        }
        Ok(all)
    }
}

/// Two hexadecimal digits for each byte.
fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What [`digits`] was made of.
fn bytes(digits: &str) -> Vec<u8> {
    let number = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    digits.as_bytes().chunks(2).filter_map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_give_the_bytes_back() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(&digits(&all)), all);
    }

    #[test]
    fn a_job_of_one_gathers_its_own_bytes_in_parts() {
        let mut job = Job {
            uses: 1,
            peers: Peers::Alone {
                stored: BTreeMap::new(),
            },
            gathers: 0,
        };
        let mine: Vec<u8> = (0..2000_u32).map(|n| n as u8).collect();
        assert_eq!(job.gather(&mine).unwrap(), mine);
        assert_eq!(job.gather(&[]).unwrap(), Vec::<u8>::new());
        assert!(matches!(job.get("absent"), Err(Error::NotFound(_))));
        assert!(matches!(job.put("a b", "c"), Err(Error::Launcher(_))));
    }
}
