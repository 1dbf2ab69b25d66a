//! A rank's side: blocking requests to the launcher that the environment names, over
//! whichever of its protocols it speaks.
//!
//! ```text
//!   Client ─┬─ PMI-1   lines                yod, MPICH's hydra, Slurm
//!           ├─ PMI-2   counted messages     Slurm, hydra
//!           └─ PMIx    libpmix              Open MPI's mpirun, PRRTE, Slurm
//! ```

mod pmi1;
mod pmi2;
mod pmix_store;
mod stream;

use std::fmt;
use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use crate::inherited;
use crate::launcher::{self, Choice, Launcher};
use crate::mapping::nodes_of_ranks;
use crate::pmix;
use crate::wire::ParseError;
use pmi1::Pmi1;
use pmi2::Pmi2;
use pmix_store::PmixStore;
use stream::Stream;

/// The connection of a rank with its launcher.
///
/// ```no_run
/// use lintel_pmi::client::Client;
///
/// # fn main() -> Result<(), lintel_pmi::client::Error> {
/// let Some(mut pmi) = Client::from_env()? else {
///     return Ok(()); // started by hand: a job of one
/// };
/// pmi.put(&format!("address-{}", pmi.rank()), "127.0.0.1:4000")?;
/// pmi.barrier()?;
/// let next = (pmi.rank() + 1) % pmi.size();
/// let address = pmi.get(&format!("address-{next}"))?;
/// pmi.finalize()
/// # }
/// ```
#[derive(Debug)]
pub struct Client {
    rank: usize,
    size: usize,
    protocol: Box<dyn Protocol>,
}

/// The place of a rank among the ranks of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalPlace {
    /// Its number, from 0.
    pub rank: usize,
    /// The number of those ranks.
    pub size: usize,
}

/// What each protocol offers. All of it blocks, and none of it is repeated after an error.
trait Protocol: fmt::Debug + Send {
    fn name(&self) -> &'static str;
    fn kvs_name(&self) -> &str;
    /// The most bytes of a key and of a value.
    fn longest(&self) -> (usize, usize);
    fn put(&mut self, key: &str, value: &str) -> Result<(), Error>;
    fn get(&mut self, key: &str) -> Result<Option<String>, Error>;
    /// `None` if the launcher doesn't provide it.
    fn local_place(&mut self, rank: usize, size: usize) -> Result<Option<LocalPlace>, Error>;
    fn barrier(&mut self) -> Result<(), Error>;
    fn universe_size(&mut self) -> Result<usize, Error>;
    fn abort(&mut self, code: i32) -> Result<(), Error>;
    fn finalize(&mut self) -> Result<(), Error>;
}

impl Client {
    /// Connects with the launcher that the environment names; `None` in a job of one
    /// that no launcher started.
    ///
    /// `PMIX_NAMESPACE` and `PMIX_RANK` select PMIx, `PMI_FD` or `PMI_PORT` PMI-1 or,
    /// if the launcher refuses that, PMI-2. `LINTEL_PMI` (`pmi1`, `pmi2`, `pmix`,
    /// `none`) overrides them.
    ///
    /// # Errors
    /// A launcher started this process and can't be reached: to continue as a job of one
    /// would give as many wrong answers as there are processes.
    pub fn from_env() -> Result<Option<Client>, Error> {
        let environment = launcher::environment;
        match launcher::chosen_in(environment).map_err(|value| Error::Environment {
            name: launcher::CHOICE,
            value,
        })? {
            Some(Choice::None) => Ok(None),
            Some(Choice::Pmix) => Client::over_pmix().map(Some),
            Some(Choice::Pmi1) => Client::over_socket(&[Version::One]).map(Some),
            Some(Choice::Pmi2) => Client::over_socket(&[Version::Two]).map(Some),
            None => Client::by_launcher(launcher::recognise()),
        }
    }

    fn by_launcher(launcher: Launcher) -> Result<Option<Client>, Error> {
        match launcher {
            Launcher::Singleton => Ok(None),
            Launcher::NotUnderstood { .. } => Err(Error::NotUnderstood(launcher)),
            Launcher::Pmi => Client::over_socket(&[Version::One, Version::Two]).map(Some),
            Launcher::Pmix => match Client::over_pmix() {
                Ok(client) => Ok(Some(client)),
                Err(error) => Client::without_pmix(error),
            },
        }
    }

    /// PMIx's variables are set and PMIx can't be used: another launcher's variables may
    /// help, and a job of one needs none.
    fn without_pmix(error: Error) -> Result<Option<Client>, Error> {
        let hidden =
            |name: &str| launcher::environment(name).filter(|_| !name.starts_with("PMIX_"));
        match launcher::recognise_in(hidden) {
            Launcher::Pmi => Client::by_launcher(Launcher::Pmi),
            Launcher::Singleton if launcher::is_alone_in(launcher::environment) => Ok(None),
            _ => Err(error),
        }
    }

    /// Greets the launcher at the other end of `stream`.
    ///
    /// # Errors
    /// As [`Client::from_env`]; also when `rank` is not below `size`.
    pub fn new(stream: UnixStream, rank: usize, size: usize) -> Result<Client, Error> {
        let versions = [Version::One, Version::Two];
        Client::over(stream.into(), rank, size, &versions)
    }

    fn over_pmix() -> Result<Client, Error> {
        let store = PmixStore::open()?;
        let (rank, size) = store.place();
        Client::with_rank(rank, size, Box::new(store))
    }

    fn over_socket(versions: &[Version]) -> Result<Client, Error> {
        if std::env::var_os("PMI_FD").is_none() && std::env::var_os("PMI_PORT").is_some() {
            let (stream, rank, size) = through_port()?;
            return Client::over(stream, rank, size, versions);
        }
        let fd = number_from_env("PMI_FD")?;
        let rank = number_from_env("PMI_RANK")?;
        let size = number_from_env("PMI_SIZE")?;
        let socket = i32::try_from(fd)
            .map_err(|_| Error::Environment {
                name: "PMI_FD",
                value: fd.to_string(),
            })
            .and_then(|fd| inherited::duplicate(fd).map_err(Error::Io))?;
        Client::over(UnixStream::from(socket).into(), rank, size, versions)
    }

    fn over(
        mut stream: Stream,
        rank: usize,
        size: usize,
        versions: &[Version],
    ) -> Result<Client, Error> {
        for version in versions {
            match version {
                Version::One if stream.handshake(1, 1)? => {
                    return Client::with_rank(rank, size, Box::new(Pmi1::open(stream)?));
                }
                Version::Two if stream.handshake(2, 0)? => {
                    let (session, rank, size) = Pmi2::open(stream, rank)?;
                    return Client::with_rank(rank, size, Box::new(session));
                }
                _ => {}
            }
        }
        Err(Error::refused("PMI-1 and PMI-2", None))
    }

    fn with_rank(rank: usize, size: usize, protocol: Box<dyn Protocol>) -> Result<Client, Error> {
        if rank >= size {
            return Err(Error::Environment {
                name: "the rank",
                value: rank.to_string(),
            });
        }
        Ok(Client {
            rank,
            size,
            protocol,
        })
    }

    /// This process's rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks of the job.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The protocol in use: `PMI-1`, `PMI-2` or `PMIx`.
    pub fn protocol(&self) -> &'static str {
        self.protocol.name()
    }

    /// The name of the job's key-value store.
    pub fn kvs_name(&self) -> &str {
        self.protocol.kvs_name()
    }

    /// The most bytes of a key and of a value that the launcher stores.
    pub fn longest(&self) -> (usize, usize) {
        self.protocol.longest()
    }

    /// This rank's place among those of its node; `None` if the launcher doesn't
    /// provide it.
    ///
    /// # Errors
    /// A lost connection.
    pub fn local_place(&mut self) -> Result<Option<LocalPlace>, Error> {
        let place = self.protocol.local_place(self.rank, self.size)?;
        Ok(place.or_else(LocalPlace::by_environment))
    }

    /// Stores `value` under `key`; visible to all after the next barrier.
    ///
    /// # Errors
    /// A key or value that has blanks or exceeds the launcher's limits; a lost connection.
    pub fn put(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let (key_max, value_max) = self.protocol.longest();
        check("key", key, key_max)?;
        check("value", value, value_max)?;
        self.protocol.put(key, value)
    }

    /// The value under `key`, `None` if no rank put one before the last barrier.
    ///
    /// # Errors
    /// A lost connection, or a key that can't be one.
    pub fn get(&mut self, key: &str) -> Result<Option<String>, Error> {
        check("key", key, self.protocol.longest().0)?;
        self.protocol.get(key)
    }

    /// Waits until every rank of the job has entered.
    ///
    /// # Errors
    /// A lost connection: the launcher is ending the job.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.protocol.barrier()
    }

    /// The number of processes that the launcher could run; `usize::MAX` if it has no limit.
    ///
    /// # Errors
    /// A lost connection, or an answer that is no number.
    pub fn universe_size(&mut self) -> Result<usize, Error> {
        self.protocol.universe_size()
    }

    /// Asks the launcher to end the whole job with `code`, and returns at once.
    ///
    /// # Errors
    /// A lost connection.
    pub fn abort(&mut self, code: i32) -> Result<(), Error> {
        self.protocol.abort(code)
    }

    /// Finalizes: the launcher then takes this rank's exit as intended.
    ///
    /// # Errors
    /// A lost connection.
    pub fn finalize(mut self) -> Result<(), Error> {
        self.protocol.finalize()
    }
}

/// Versions of the protocol over a socket.
#[derive(Clone, Copy, Debug)]
enum Version {
    One,
    Two,
}

impl LocalPlace {
    fn by_mapping(text: &str, rank: usize, size: usize) -> Option<LocalPlace> {
        let nodes = nodes_of_ranks(text, size)?;
        let here = nodes[rank];
        let neighbours = |nodes: &[usize]| nodes.iter().filter(|&&node| node == here).count();
        Some(LocalPlace {
            rank: neighbours(&nodes[..rank]),
            size: neighbours(&nodes),
        })
    }

    /// By the variables that yod and hydra set.
    fn by_environment() -> Option<LocalPlace> {
        Some(LocalPlace {
            rank: number_from_env("MPI_LOCALRANKID").ok()?,
            size: number_from_env("MPI_LOCALNRANKS").ok()?,
        })
    }
}

/// Connects by `PMI_PORT` and `PMI_ID`; the launcher then sends rank and size.
fn through_port() -> Result<(Stream, usize, usize), Error> {
    let port = std::env::var("PMI_PORT").unwrap_or_default();
    let id = number_from_env("PMI_ID")?;
    let mut stream = Stream::from(TcpStream::connect(port)?);
    stream.request(&format!("initack pmiid={id}"), "initack")?;
    let mut place = [None; 2];
    while place.contains(&None) {
        let message = stream.read_message()?;
        for (place, key) in place.iter_mut().zip(["rank", "size"]) {
            *place = place.or(message.number(key).and_then(|n| usize::try_from(n).ok()));
        }
        if message.command() != "set" {
            return Err(Error::Unexpected(message.command().into()));
        }
    }
    // A third line follows the two: debug.
    stream.read_message()?;
    let [rank, size] = place.map(Option::unwrap_or_default);
    Ok((stream, rank, size))
}

/// Checks a key or a value, of at most `longest` bytes.
///
/// # Errors
/// `NotStorable`: it is too long, or has characters that the protocols can't carry.
pub fn check(what: &'static str, text: &str, longest: usize) -> Result<(), Error> {
    let whole = text.bytes().all(|b| b.is_ascii_graphic() || !b.is_ascii());
    let named = what == "value" || !text.is_empty() && !text.contains('=');
    if text.len() <= longest && whole && named {
        return Ok(());
    }
    Err(Error::NotStorable {
        what,
        text: text.into(),
    })
}

/// Why a request failed.
#[derive(Debug)]
pub enum Error {
    /// A variable of the environment has an invalid value: the launcher is wrong.
    Environment {
        /// The environment variable's name.
        name: &'static str,
        /// The value that could not be parsed.
        value: String,
    },
    /// Reading from or writing to the launcher's socket failed.
    Io(io::Error),
    /// The launcher closed the connection.
    Closed,
    /// The launcher's answer is no message.
    Parse(ParseError),
    /// The answer belongs to another request.
    Unexpected(String),
    /// The launcher answered a request with an error code.
    Refused {
        /// The PMI command, as the protocol names it.
        request: &'static str,
        /// The launcher's message, or its error code if it sent none.
        reason: String,
    },
    /// PMIx's server or library failed.
    Pmix(pmix::Error),
    /// A launcher started several ranks, and nothing that it offers can be used.
    NotUnderstood(Launcher),
    /// The caller's key or value is empty, too long or holds blanks.
    NotStorable {
        /// What the text was meant to be: `key` or `value`.
        what: &'static str,
        /// The text that the protocol can't carry.
        text: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Environment { name, value } if *name == launcher::CHOICE => {
                write!(
                    f,
                    "{name}={value:?} isn't understood; it takes {}",
                    launcher::CHOICES
                )
            }
            Error::Environment { name, value } => {
                write!(f, "the launcher set {name}={value:?}, which is invalid")
            }
            Error::Pmix(error) => write!(
                f,
                "PMIX_NAMESPACE and PMIX_RANK are set, and PMIx can't be used: {error}"
            ),
            Error::NotUnderstood(launcher) => {
                write!(f, "{}", launcher.warning().unwrap_or_default())
            }
            Error::Io(error) => write!(f, "the connection with the launcher failed: {error}"),
            Error::Closed => write!(f, "the launcher closed the connection"),
            Error::Parse(error) => write!(f, "the launcher does not speak PMI: {error}"),
            Error::Unexpected(command) => {
                write!(f, "the launcher answered {command:?} out of turn")
            }
            Error::Refused { request, reason } => {
                write!(f, "the launcher refused {request}: {reason}")
            }
            Error::NotStorable { what, text } => write!(
                f,
                "the {what} {text:?} is empty, too long or holds characters that PMI can't carry"
            ),
        }
    }
}

impl std::error::Error for Error {}

impl Error {
    fn refused(request: &'static str, reason: Option<&str>) -> Error {
        let reason = reason.unwrap_or("no reason given").to_string();
        Error::Refused { request, reason }
    }
}

impl From<pmix::Error> for Error {
    fn from(error: pmix::Error) -> Error {
        Error::Pmix(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Error {
        Error::Io(error)
    }
}

fn number_from_env(name: &'static str) -> Result<usize, Error> {
    let value = std::env::var_os(name)
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    value
        .parse()
        .map_err(|_| Error::Environment { name, value })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use crate::server::Server;

    /// Serves one job over real sockets until every client is gone.
    fn serve(streams: Vec<UnixStream>) -> std::thread::JoinHandle<()> {
        let server = std::sync::Mutex::new(Server::new(streams.len(), "kvs"));
        std::thread::spawn(move || {
            std::thread::scope(|scope| {
                for (rank, stream) in streams.iter().enumerate() {
                    let (server, streams) = (&server, &streams);
                    scope.spawn(move || {
                        let mut bytes = [0; 256];
                        while let Ok(count @ 1..) = (&*stream).read(&mut bytes) {
                            let mut server = server.lock().unwrap();
                            server.on_bytes(rank, &bytes[..count]);
                            for (peer, mut stream) in streams.iter().enumerate() {
                                let output = server.poll_output(peer).unwrap_or_default();
                                stream.write_all(&output).unwrap();
                            }
                        }
                    });
                }
            });
        })
    }

    #[test]
    fn clients_exchange_values_and_meet_at_barriers() {
        let pairs: Vec<_> = (0..3).map(|_| UnixStream::pair().unwrap()).collect();
        let (servers, clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let server = serve(servers);
        std::thread::scope(|scope| {
            for (rank, stream) in clients.into_iter().enumerate() {
                scope.spawn(move || {
                    let mut pmi = Client::new(stream, rank, 3).unwrap();
                    pmi.put(&format!("key-{rank}"), &format!("v={rank}"))
                        .unwrap();
                    pmi.barrier().unwrap();
                    for peer in 0..3 {
                        let value = pmi.get(&format!("key-{peer}")).unwrap();
                        assert_eq!(value, Some(format!("v={peer}")));
                    }
                    assert_eq!(pmi.get("nothing").unwrap(), None);
                    assert_eq!((pmi.universe_size().unwrap(), pmi.kvs_name()), (3, "kvs"));
                    pmi.finalize().unwrap();
                });
            }
        });
        server.join().unwrap();
    }

    #[test]
    fn a_client_of_pmi_2_finds_what_one_of_pmi_1_put() {
        let pairs: Vec<_> = (0..2).map(|_| UnixStream::pair().unwrap()).collect();
        let (servers, mut clients): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let server = serve(servers);
        let (second, first) = (clients.pop().unwrap(), clients.pop().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut pmi = Client::new(first, 0, 2).unwrap();
                pmi.put("key", "value").unwrap();
                pmi.barrier().unwrap();
                pmi.finalize().unwrap();
            });
            scope.spawn(|| {
                let mut pmi = Client::over(second.into(), 1, 2, &[Version::Two]).unwrap();
                pmi.barrier().unwrap();
                assert_eq!(pmi.get("key").unwrap().as_deref(), Some("value"));
                assert_eq!(pmi.get("nothing").unwrap(), None);
                let place = LocalPlace { rank: 1, size: 2 };
                assert_eq!(pmi.local_place().unwrap(), Some(place));
                assert_eq!((pmi.universe_size().unwrap(), pmi.protocol()), (2, "PMI-2"));
                assert!(pmi.put("a;b", "v").is_err());
                pmi.finalize().unwrap();
            });
        });
        server.join().unwrap();
    }

    #[test]
    fn keys_and_values_that_the_wire_cannot_carry_are_refused() {
        let (server, stream) = UnixStream::pair().unwrap();
        let server = serve(vec![server]);
        let mut pmi = Client::new(stream, 0, 1).unwrap();
        for (key, value) in [
            ("", "v"),
            ("a b", "v"),
            ("a=b", "v"),
            ("k", "two words"),
            ("k", "a\nb"),
        ] {
            assert!(
                matches!(pmi.put(key, value), Err(Error::NotStorable { .. })),
                "{key:?}"
            );
        }
        assert!(pmi.put(&"k".repeat(64), "v").is_err());
        assert!(pmi.put("k", &"v".repeat(1024)).is_err());
        drop(pmi);
        server.join().unwrap();
    }

    #[test]
    fn a_closed_connection_is_an_error_not_a_hang() {
        let (server, stream) = UnixStream::pair().unwrap();
        drop(server);
        assert!(Client::new(stream, 0, 1).is_err());
    }
}
