//! Settings of one point, read by those who know what they take.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use crate::choice::Choice;
use crate::config_error::{ConfigError, either};
use crate::document::{Document, Scalar};

/// One combination of a document's values. It remembers which keys were asked for:
/// those are the ones that there are.
pub(crate) struct Reader<'a> {
    document: &'a Document,
    /// Which value of each setting.
    choice: &'a [usize],
    asked: RefCell<BTreeSet<String>>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(document: &'a Document, choice: &'a [usize]) -> Self {
        Reader {
            document,
            choice,
            asked: RefCell::default(),
        }
    }

    /// A whole number within `range`, if it is set.
    pub(crate) fn number(
        &self,
        path: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ConfigError> {
        let takes = format!(
            "it takes a whole number, {} to {}",
            range.start(),
            range.end()
        );
        match self.get(path) {
            None => Ok(None),
            Some(Scalar::Integer(number)) => match u64::try_from(*number) {
                Ok(number) if range.contains(&number) => Ok(Some(number)),
                _ => Err(self.wrong(path, format!("{path} is {number}; {takes}"))),
            },
            Some(other) => Err(self.wrong(path, format!("{path} is {}; {takes}", other.kind()))),
        }
    }

    /// As [`Reader::number`], for numbers below 2^32.
    pub(crate) fn count(
        &self,
        path: &str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, ConfigError> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        let number = self.number(path, range)?;
        Ok(number.map(|number| u32::try_from(number).expect("it is within the range")))
    }

    /// A text, if it is set.
    pub(crate) fn text(&self, path: &str) -> Result<Option<&'a str>, ConfigError> {
        match self.get(path) {
            None => Ok(None),
            Some(Scalar::Text(text)) => Ok(Some(text)),
            Some(other) => {
                let what = format!("{path} is {}; it takes a text", other.kind());
                Err(self.wrong(path, what))
            }
        }
    }

    /// One of some words, if it is set.
    pub(crate) fn choose<T: Copy>(
        &self,
        path: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, ConfigError> {
        let Some(word) = self.text(path)? else {
            return Ok(None);
        };
        match words.iter().find(|(name, _)| *name == word) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let names: Vec<String> = words.iter().map(|(n, _)| format!("{n:?}")).collect();
                let what = format!("{path} is {word:?}; it takes {}", either(&names));
                Err(self.wrong(path, what))
            }
        }
    }

    /// One of some words that must be there.
    pub(crate) fn must_choose<T: Copy>(
        &self,
        path: &str,
        words: &[(&str, T)],
    ) -> Result<T, ConfigError> {
        let names: Vec<String> = words.iter().map(|(n, _)| format!("{n:?}")).collect();
        let missing = || {
            self.wrong(
                path,
                format!("{path} is missing; it takes {}", either(&names)),
            )
        };
        self.choose(path, words)?.ok_or_else(missing)
    }

    /// One of a table's words, which must be there.
    pub(crate) fn must_choose_from<T: Copy>(
        &self,
        path: &str,
        choices: &[Choice<T>],
    ) -> Result<T, ConfigError> {
        let words: Vec<(&str, T)> = choices.iter().map(|c| (c.name, c.value)).collect();
        self.must_choose(path, &words)
    }

    /// Sizes with an `x` between them, such as `8x8x4`, each of 1 and more.
    pub(crate) fn sizes(&self, path: &str, example: &str) -> Result<Option<Vec<u32>>, ConfigError> {
        let Some(text) = self.text(path)? else {
            return Ok(None);
        };
        let sizes: Option<Vec<u32>> = text
            .split('x')
            .map(|size| size.parse().ok().filter(|&size| size > 0))
            .collect();
        let count = example.split('x').count();
        match sizes.filter(|sizes| sizes.len() == count) {
            Some(sizes) => Ok(Some(sizes)),
            None => {
                let what =
                    format!("{path} is {text:?}; it takes {count} sizes, such as {example:?}");
                Err(self.wrong(path, what))
            }
        }
    }

    /// A mistake in the line of this setting.
    pub(crate) fn wrong(&self, path: &str, what: String) -> ConfigError {
        self.document.error(path, what)
    }

    /// Refuses settings that were never read; the table `plot` has a reader of its own.
    pub(crate) fn check_all_asked(&self) -> Result<(), ConfigError> {
        let asked = self.asked.borrow();
        for setting in &self.document.settings {
            let path = setting.path.as_str();
            let table = table_of(path);
            if asked.contains(path) || table == "plot" {
                continue;
            }
            let known = asked.iter().filter(|known| table_of(known) == table);
            let mut known: Vec<&str> = known.map(|known| key_of(known)).collect();
            if table.is_empty() {
                known.extend(TABLES);
            }
            let what = match (known.is_empty(), table) {
                (true, _) => format!("{path} is no setting here: there is no table {table}"),
                (false, "") => format!("{path} is no setting; there are {}", either(&known)),
                _ => format!(
                    "{path} is no setting here; {table} takes {}",
                    either(&known)
                ),
            };
            return Err(self.wrong(path, what));
        }
        Ok(())
    }

    fn get(&self, path: &str) -> Option<&'a Scalar> {
        self.asked.borrow_mut().insert(path.into());
        let settings = self.document.settings.iter().zip(self.choice);
        let mut found = settings.filter(|(setting, _)| setting.path == path);
        found.next().map(|(setting, &at)| &setting.values[at])
    }
}

fn table_of(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(table, _)| table)
}

fn key_of(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

const TABLES: [&str; 3] = ["machine", "workload", "plot"];
