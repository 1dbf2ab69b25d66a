//! What is wrong with a scenario.

use std::fmt;

/// Where it is, and what is allowed there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigError {
    /// The file's name, as it was given.
    pub file: String,
    /// The line, from 1; none if something is missing.
    pub line: Option<usize>,
    /// What is wrong, with the key's name, and what is allowed.
    pub what: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ConfigError { file, line, what } = self;
        match line {
            Some(line) => write!(f, "{file}:{line}: {what}"),
            None => write!(f, "{file}: {what}"),
        }
    }
}

impl std::error::Error for ConfigError {}

/// `a, b or c`.
pub(crate) fn either<T: AsRef<str>>(words: &[T]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match words.split_last() {
        Some((last, [])) => (*last).to_string(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing".into(),
    }
}
