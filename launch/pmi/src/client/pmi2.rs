//! PMI-2: requests and answers in messages with a length.

use super::stream::Stream;
use super::{Error, LocalPlace, Protocol};
use crate::mapping::MAPPING_KEY;
use crate::wire::{KEY_MAX, VALUE_MAX};
use crate::wire2::{LENGTH_DIGITS, Message};

/// A connection on which the launcher has answered `fullinit`.
#[derive(Debug)]
pub(super) struct Pmi2 {
    stream: Stream,
    job: String,
}

impl Pmi2 {
    /// Introduces rank `rank` to a launcher that has accepted the greeting; returns
    /// rank and size as the launcher sees them.
    pub(super) fn open(stream: Stream, rank: usize) -> Result<(Pmi2, usize, usize), Error> {
        let job = String::new();
        let mut session = Pmi2 { stream, job };
        let mut introduction = Message::new("fullinit");
        if let Ok(id) = std::env::var("PMI_JOBID") {
            introduction = introduction.with("pmijobid", &id);
        }
        let introduction = introduction
            .with("pmirank", &rank.to_string())
            .with("threaded", "FALSE");
        let answer = session.request(&introduction, "fullinit-response")?;
        let number = |key| {
            let number = answer.number(key).and_then(|n| usize::try_from(n).ok());
            number.ok_or_else(|| Error::Unexpected(answer.command().into()))
        };
        let (rank, size) = (number("rank")?, number("size")?);
        let answer = session.request(&Message::new("job-getid"), "job-getid-response")?;
        session.job = answer.get("jobid").unwrap_or_default().into();
        Ok((session, rank, size))
    }

    fn request(&mut self, message: &Message, expected: &str) -> Result<Message, Error> {
        self.stream.write(&message.encode())?;
        let mut digits = [0; LENGTH_DIGITS];
        self.stream.read(&mut digits)?;
        let mut bytes = vec![0; Message::length(&digits).map_err(Error::Parse)?];
        self.stream.read(&mut bytes)?;
        let answer = Message::parse(&bytes).map_err(Error::Parse)?;
        if answer.command() != expected {
            return Err(Error::Unexpected(answer.command().into()));
        }
        match answer.number("rc").unwrap_or(0) {
            0 => Ok(answer),
            _ => Err(Error::refused("a request", answer.get("errmsg"))),
        }
    }

    fn job_attribute(&mut self, key: &str) -> Result<Option<String>, Error> {
        let get = Message::new("info-getjobattr")
            .with("thrid", "0")
            .with("key", key);
        let answer = self.request(&get, "info-getjobattr-response")?;
        Ok(Pmi2::found(&answer))
    }

    /// The value that an answer carries, if the launcher found one.
    fn found(answer: &Message) -> Option<String> {
        let found = answer.get("flag").or_else(|| answer.get("found"));
        let found = found.is_some_and(|word| word.eq_ignore_ascii_case("true"));
        answer.get("value").filter(|_| found).map(str::to_string)
    }
}

impl Protocol for Pmi2 {
    fn name(&self) -> &'static str {
        "PMI-2"
    }

    fn kvs_name(&self) -> &str {
        &self.job
    }

    fn longest(&self) -> (usize, usize) {
        (KEY_MAX - 1, VALUE_MAX - 1)
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), Error> {
        // It could be written twice, but hydra would cut the value there.
        for (what, text) in [("key", key), ("value", value)] {
            if text.contains(';') {
                let text = text.into();
                return Err(Error::NotStorable { what, text });
            }
        }
        let put = Message::new("kvs-put")
            .with("key", key)
            .with("value", value);
        self.request(&put, "kvs-put-response").map(drop)
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, Error> {
        // No rank is known to have put it; hydra asks for a thread's number.
        let get = Message::new("kvs-get")
            .with("thrid", "0")
            .with("jobid", &self.job)
            .with("srcid", "-1")
            .with("key", key);
        let answer = self.request(&get, "kvs-get-response")?;
        Ok(Pmi2::found(&answer))
    }

    fn local_place(&mut self, rank: usize, size: usize) -> Result<Option<LocalPlace>, Error> {
        let text = self.job_attribute(MAPPING_KEY)?;
        Ok(text.and_then(|text| LocalPlace::by_mapping(&text, rank, size)))
    }

    fn barrier(&mut self) -> Result<(), Error> {
        let fence = Message::new("kvs-fence").with("thrid", "0");
        self.request(&fence, "kvs-fence-response").map(drop)
    }

    fn universe_size(&mut self) -> Result<usize, Error> {
        let text = self.job_attribute("universeSize")?.unwrap_or_default();
        text.parse().map_err(|_| Error::Unexpected(text))
    }

    fn abort(&mut self, code: i32) -> Result<(), Error> {
        let abort = Message::new("abort")
            .with("isworld", "TRUE")
            .with("exitcode", &code.to_string())
            .with("msg", &format!("code {code}"));
        self.stream.write(&abort.encode())
    }

    fn finalize(&mut self) -> Result<(), Error> {
        let finalize = Message::new("finalize");
        self.request(&finalize, "finalize-response").map(drop)
    }
}
