//! The connection with a launcher, whatever carries it.

use std::fmt::Debug;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use super::Error;
use crate::wire::{MAX_LINE, Message, ParseError};

/// A blocking connection that is read by lines or by counts.
#[derive(Debug)]
pub(super) struct Stream(BufReader<Box<dyn Carrier>>);

trait Carrier: Read + Write + Debug + Send {}

impl Carrier for UnixStream {}
impl Carrier for TcpStream {}

impl From<UnixStream> for Stream {
    fn from(socket: UnixStream) -> Stream {
        Stream(BufReader::new(Box::new(socket)))
    }
}

impl From<TcpStream> for Stream {
    fn from(socket: TcpStream) -> Stream {
        Stream(BufReader::new(Box::new(socket)))
    }
}

impl Stream {
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.0.get_mut().write_all(bytes)?)
    }

    /// Reads exactly as many bytes as `bytes` holds, and blocks until they have arrived.
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        match self.0.read_exact(bytes) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Err(Error::Closed),
            outcome => Ok(outcome?),
        }
    }

    /// Reads one line of PMI-1.
    pub(super) fn read_message(&mut self) -> Result<Message, Error> {
        let mut line = Vec::new();
        (&mut self.0)
            .take(MAX_LINE as u64)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Err(Error::Closed);
        }
        if !line.ends_with(b"\n") {
            return Err(Error::Parse(ParseError::TooLong));
        }
        let line = std::str::from_utf8(&line).map_err(|_| Error::Parse(ParseError::NotText))?;
        Message::parse(line).map_err(Error::Parse)
    }

    /// Sends `text` as a line of PMI-1 and reads the answer, which must be `expected`.
    pub(super) fn request(&mut self, text: &str, expected: &str) -> Result<Message, Error> {
        self.write(format!("cmd={text}\n").as_bytes())?;
        let reply = self.read_message()?;
        if reply.command() != expected {
            return Err(Error::Unexpected(reply.command().to_string()));
        }
        Ok(reply)
    }

    /// The greeting of both protocols: whether the launcher speaks `version`.
    pub(super) fn handshake(&mut self, version: u8, subversion: u8) -> Result<bool, Error> {
        let text = format!("init pmi_version={version} pmi_subversion={subversion}");
        let reply = self.request(&text, "response_to_init")?;
        let same = reply
            .number("pmi_version")
            .is_none_or(|v| v == i64::from(version));
        // Some launchers leave `rc` out if all is well.
        Ok(reply.number("rc").unwrap_or(0) == 0 && same)
    }
}
