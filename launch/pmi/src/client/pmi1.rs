//! PMI-1: requests and answers in lines.

use super::stream::Stream;
use super::{Error, LocalPlace, Protocol};
use crate::mapping::MAPPING_KEY;
use crate::wire::Message;

/// A connection on which the launcher has answered `init`.
#[derive(Debug)]
pub(super) struct Pmi1 {
    stream: Stream,
    kvs_name: String,
    key_max: usize,
    value_max: usize,
}

impl Pmi1 {
    /// Asks a launcher that has accepted the greeting for what is needed later.
    pub(super) fn open(mut stream: Stream) -> Result<Pmi1, Error> {
        let maxes = stream.request("get_maxes", "maxes")?;
        let name = stream.request("get_my_kvsname", "my_kvsname")?;
        let kvs_name = name.get("kvsname").ok_or_else(|| unexpected(&name))?;
        Ok(Pmi1 {
            kvs_name: kvs_name.to_string(),
            key_max: number(&maxes, "keylen_max")?,
            value_max: number(&maxes, "vallen_max")?,
            stream,
        })
    }
}

impl Protocol for Pmi1 {
    fn name(&self) -> &'static str {
        "PMI-1"
    }

    fn kvs_name(&self) -> &str {
        &self.kvs_name
    }

    // The launcher's limits count a terminating NUL.
    fn longest(&self) -> (usize, usize) {
        (
            self.key_max.saturating_sub(1),
            self.value_max.saturating_sub(1),
        )
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), Error> {
        let text = format!("put kvsname={} key={key} value={value}", self.kvs_name);
        let reply = self.stream.request(&text, "put_result")?;
        match reply.number("rc").unwrap_or(0) {
            0 => Ok(()),
            _ => Err(Error::refused("put", reply.get("msg"))),
        }
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, Error> {
        let text = format!("get kvsname={} key={key}", self.kvs_name);
        let reply = self.stream.request(&text, "get_result")?;
        if reply.number("rc") != Some(0) {
            return Ok(None);
        }
        let value = reply.get("value").ok_or_else(|| unexpected(&reply))?;
        Ok(Some(value.to_string()))
    }

    fn local_place(&mut self, rank: usize, size: usize) -> Result<Option<LocalPlace>, Error> {
        let text = self.get(MAPPING_KEY)?;
        Ok(text.and_then(|text| LocalPlace::by_mapping(&text, rank, size)))
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.stream.request("barrier_in", "barrier_out").map(drop)
    }

    fn universe_size(&mut self) -> Result<usize, Error> {
        let reply = self.stream.request("get_universe_size", "universe_size")?;
        universe_of(&reply)
    }

    fn abort(&mut self, code: i32) -> Result<(), Error> {
        let line = format!("cmd=abort exitcode={code}\n");
        self.stream.write(line.as_bytes())
    }

    fn finalize(&mut self) -> Result<(), Error> {
        self.stream.request("finalize", "finalize_ack").map(drop)
    }
}

/// hydra says -1 if it isn't limited.
fn universe_of(reply: &Message) -> Result<usize, Error> {
    match reply.get("size") {
        Some("-1") => Ok(usize::MAX),
        _ => number(reply, "size"),
    }
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

    #[test]
    fn a_launcher_may_have_no_limit_to_its_universe() {
        let universe = |line: &str| universe_of(&Message::parse(line).unwrap());
        assert_eq!(universe("cmd=universe_size size=-1").unwrap(), usize::MAX);
        assert_eq!(universe("cmd=universe_size size=4").unwrap(), 4);
        assert!(universe("cmd=universe_size size=many").is_err());
    }
}
