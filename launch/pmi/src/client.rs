//! A rank's side: blocking requests over the socket that the launcher left in
//! the environment.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use crate::inherited;
use crate::wire::{MAX_LINE, Message, ParseError};

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
    stream: BufReader<UnixStream>,
    rank: usize,
    size: usize,
    kvs_name: String,
    key_max: usize,
    value_max: usize,
}

impl Client {
    /// Connects by `PMI_FD`, `PMI_RANK` and `PMI_SIZE`; `None` without `PMI_FD`.
    ///
    /// `None` need not mean a job of one: see [`crate::launcher::recognise`].
    ///
    /// # Errors
    /// A variable without a sensible value, a closed descriptor, a launcher that
    /// speaks something else.
    pub fn from_env() -> Result<Option<Client>, Error> {
        if std::env::var_os("PMI_FD").is_none() {
            return Ok(None);
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
        Client::new(UnixStream::from(socket), rank, size).map(Some)
    }

    /// Greets the launcher at the other end of `stream`.
    ///
    /// # Errors
    /// As [`Client::from_env`]; also when `rank` is not below `size`.
    pub fn new(stream: UnixStream, rank: usize, size: usize) -> Result<Client, Error> {
        if rank >= size {
            return Err(Error::Environment {
                name: "PMI_RANK",
                value: rank.to_string(),
            });
        }
        let mut client = Client {
            stream: BufReader::new(stream),
            rank,
            size,
            kvs_name: String::new(),
            key_max: 0,
            value_max: 0,
        };
        let init = client.request("init pmi_version=1 pmi_subversion=1", "response_to_init")?;
        client.accepted("init", &init)?;
        let maxes = client.request("get_maxes", "maxes")?;
        client.key_max = number(&maxes, "keylen_max")?;
        client.value_max = number(&maxes, "vallen_max")?;
        let name = client.request("get_my_kvsname", "my_kvsname")?;
        client.kvs_name = name
            .get("kvsname")
            .ok_or_else(|| unexpected(&name))?
            .to_string();
        Ok(client)
    }

    /// This process's rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The number of ranks of the job.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The name of the job's key-value store.
    pub fn kvs_name(&self) -> &str {
        &self.kvs_name
    }

    /// Stores `value` under `key`; visible to all after the next barrier.
    ///
    /// # Errors
    /// Keys and values without blanks and within the launcher's limits are taken.
    pub fn put(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.check("key", key, self.key_max)?;
        self.check("value", value, self.value_max)?;
        let text = format!("put kvsname={} key={key} value={value}", self.kvs_name);
        let reply = self.request(&text, "put_result")?;
        self.accepted("put", &reply)
    }

    /// The value under `key`, `None` when nobody put one.
    ///
    /// # Errors
    /// A lost connection, or a key that can't be one.
    pub fn get(&mut self, key: &str) -> Result<Option<String>, Error> {
        self.check("key", key, self.key_max)?;
        let text = format!("get kvsname={} key={key}", self.kvs_name);
        let reply = self.request(&text, "get_result")?;
        if reply.number("rc") != Some(0) {
            return Ok(None);
        }
        let value = reply.get("value").ok_or_else(|| unexpected(&reply))?;
        Ok(Some(value.to_string()))
    }

    /// Waits until every rank of the job has entered.
    ///
    /// # Errors
    /// A lost connection: the launcher is ending the job.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.request("barrier_in", "barrier_out").map(drop)
    }

    /// The number of processes that the launcher could run.
    ///
    /// # Errors
    /// A lost connection or a senseless answer.
    pub fn universe_size(&mut self) -> Result<usize, Error> {
        let reply = self.request("get_universe_size", "universe_size")?;
        number(&reply, "size")
    }

    /// Asks the launcher to end the whole job with `code`, and returns at once.
    ///
    /// # Errors
    /// A lost connection.
    pub fn abort(&mut self, code: i32) -> Result<(), Error> {
        let line = format!("cmd=abort exitcode={code}\n");
        Ok(self.stream.get_mut().write_all(line.as_bytes())?)
    }

    /// Says farewell: the launcher takes this rank's leaving for intended.
    ///
    /// # Errors
    /// A lost connection.
    pub fn finalize(mut self) -> Result<(), Error> {
        self.request("finalize", "finalize_ack").map(drop)
    }

    fn request(&mut self, text: &str, expected: &str) -> Result<Message, Error> {
        self.stream
            .get_mut()
            .write_all(format!("cmd={text}\n").as_bytes())?;
        let mut line = Vec::new();
        (&mut self.stream)
            .take(MAX_LINE as u64)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(Error::Closed);
        }
        if !line.ends_with(b"\n") {
            return Err(Error::Parse(ParseError::TooLong));
        }
        let line = std::str::from_utf8(&line).map_err(|_| Error::Parse(ParseError::NotText))?;
        let reply = Message::parse(line).map_err(Error::Parse)?;
        if reply.command() != expected {
            return Err(unexpected(&reply));
        }
        Ok(reply)
    }

    fn accepted(&self, request: &'static str, reply: &Message) -> Result<(), Error> {
        // Some launchers leave `rc` out where all is well.
        match reply.number("rc").unwrap_or(0) {
            0 => Ok(()),
            _ => {
                let reason = reply.get("msg").unwrap_or("no reason given").to_string();
                Err(Error::Refused { request, reason })
            }
        }
    }

    fn check(&self, what: &'static str, text: &str, max: usize) -> Result<(), Error> {
        let whole = text.bytes().all(|b| b.is_ascii_graphic() || !b.is_ascii());
        // The limits count a terminating NUL.
        if text.len() < max && whole && (what == "value" || !text.is_empty() && !text.contains('='))
        {
            return Ok(());
        }
        Err(Error::NotStorable {
            what,
            text: text.into(),
        })
    }
}

/// Why a request failed.
#[derive(Debug)]
pub enum Error {
    /// A variable of the environment has no sensible value: the launcher is wrong.
    Environment {
        /// Its name.
        name: &'static str,
        /// What it held.
        value: String,
    },
    /// The system refused.
    Io(io::Error),
    /// The launcher closed the connection.
    Closed,
    /// The launcher's line is no message.
    Parse(ParseError),
    /// The launcher answered something else than was asked.
    Unexpected(String),
    /// The launcher refused.
    Refused {
        /// What was asked.
        request: &'static str,
        /// Its reason.
        reason: String,
    },
    /// The caller's key or value is empty, too long or holds blanks.
    NotStorable {
        /// `key` or `value`.
        what: &'static str,
        /// The text.
        text: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Environment { name, value } => {
                write!(f, "the launcher set {name}={value:?}, which makes no sense")
            }
            Error::Io(error) => write!(f, "the connection with the launcher failed: {error}"),
            Error::Closed => write!(f, "the launcher closed the connection"),
            Error::Parse(error) => write!(f, "the launcher does not speak PMI-1: {error}"),
            Error::Unexpected(command) => {
                write!(f, "the launcher answered {command:?} out of turn")
            }
            Error::Refused { request, reason } => {
                write!(f, "the launcher refused {request}: {reason}")
            }
            Error::NotStorable { what, text } => write!(
                f,
                "the {what} {text:?} is empty, too long or holds characters that PMI-1 can't carry"
            ),
        }
    }
}

impl std::error::Error for Error {}

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

fn number(reply: &Message, key: &str) -> Result<usize, Error> {
    let value = reply
        .number(key)
        .and_then(|value| usize::try_from(value).ok());
    value.ok_or_else(|| unexpected(reply))
}

fn unexpected(reply: &Message) -> Error {
    Error::Unexpected(reply.command().to_string())
}

#[cfg(test)]
mod tests {
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
