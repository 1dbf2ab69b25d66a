//! PMI's key-value store over PMIx.
//!
//! PMIx keeps values by rank and key; PMI asks by key alone. So what a rank puts between
//! two barriers travels as one value under the round's number, and a rank that looks for a key
//! first reads the rounds of all ranks that it hasn't read yet.

use std::collections::BTreeMap;

use super::{Error, LocalPlace, Protocol};
use crate::pmix::Session;

/// A rank of a job that PMIx started.
#[derive(Debug)]
pub(super) struct PmixStore {
    session: Session,
    job: String,
    size: u32,
    /// Put since the last barrier.
    pending: Vec<(String, String)>,
    /// Barriers so far, and how many of their rounds were read.
    rounds: u32,
    rounds_read: u32,
    known: BTreeMap<String, String>,
}

impl PmixStore {
    pub(super) fn open() -> Result<PmixStore, Error> {
        let session = Session::open()?;
        Ok(PmixStore {
            job: session.job(),
            size: session.number_of_job("pmix.job.size")?,
            session,
            pending: Vec::new(),
            rounds: 0,
            rounds_read: 0,
            known: BTreeMap::new(),
        })
    }

    /// This process's rank, and the number of ranks in the job.
    pub(super) fn place(&self) -> (usize, usize) {
        (self.session.rank() as usize, self.size as usize)
    }

    fn read_rounds(&mut self) -> Result<(), Error> {
        while self.rounds_read < self.rounds {
            let key = round_key(self.rounds_read);
            for rank in 0..self.size {
                let text = self.session.text_of(rank, &key)?;
                self.known.extend(words(&text));
            }
            self.rounds_read += 1;
        }
        Ok(())
    }
}

impl Protocol for PmixStore {
    fn name(&self) -> &'static str {
        "PMIx"
    }

    fn kvs_name(&self) -> &str {
        &self.job
    }

    fn longest(&self) -> (usize, usize) {
        (LONGEST, LONGEST)
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.pending.push((key.into(), value.into()));
        Ok(())
    }

    fn get(&mut self, key: &str) -> Result<Option<String>, Error> {
        self.read_rounds()?;
        Ok(self.known.get(key).cloned())
    }

    fn local_place(&mut self, _: usize, _: usize) -> Result<Option<LocalPlace>, Error> {
        let rank = self.session.own_number("pmix.lrank")? as usize;
        let size = self.session.number_of_job("pmix.local.size")? as usize;
        Ok(Some(LocalPlace { rank, size }))
    }

    fn barrier(&mut self) -> Result<(), Error> {
        let text = text_of(&self.pending);
        self.session.put(&round_key(self.rounds), &text)?;
        self.session.fence()?;
        self.pending.clear();
        self.rounds += 1;
        Ok(())
    }

    fn universe_size(&mut self) -> Result<usize, Error> {
        Ok(self.session.number_of_job("pmix.univ.size")? as usize)
    }

    fn abort(&mut self, code: i32) -> Result<(), Error> {
        Ok(self.session.abort(code)?)
    }

    fn finalize(&mut self) -> Result<(), Error> {
        // The session finalizes when dropped.
        Ok(())
    }
}

fn round_key(round: u32) -> String {
    format!("pmi.kvs.{round}")
}

/// Words separated by blanks, which neither keys nor values hold; never empty.
fn text_of(pairs: &[(String, String)]) -> String {
    let words = pairs.iter().map(|(key, value)| format!(" {key}={value}"));
    format!("pmi{}", words.collect::<String>())
}

fn words(text: &str) -> impl Iterator<Item = (String, String)> + '_ {
    let pairs = text.split(' ').filter_map(|word| word.split_once('='));
    pairs.map(|(key, value)| (key.into(), value.into()))
}

/// Bytes of a key or a value: generous, since PMIx itself sets no limit on values.
const LONGEST: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_survive_as_one_text() {
        let pairs = [("a", "1"), ("b", "x=y"), ("c", "")];
        let pairs = pairs.map(|(key, value)| (key.to_string(), value.to_string()));
        let read: Vec<_> = words(&text_of(&pairs)).collect();
        assert_eq!(read, pairs);
        assert_eq!(words(&text_of(&[])).count(), 0);
    }
}
