//! Words that a setting takes: one table holds each word, its description and its meaning.

/// A word that a setting takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice<T> {
    /// The word, as a file has it.
    pub(crate) name: &'static str,
    /// What it selects; for a workload, then a colon and the settings that it takes.
    pub(crate) about: &'static str,
    /// What the code makes of it.
    pub(crate) value: T,
}

impl<T> Choice<T> {
    pub(crate) const fn new(name: &'static str, about: &'static str, value: T) -> Self {
        Choice { name, about, value }
    }
}

/// Names and descriptions, in the order of the table.
pub(crate) fn descriptions<T>(choices: &[Choice<T>]) -> Vec<(&'static str, &'static str)> {
    choices.iter().map(|c| (c.name, c.about)).collect()
}
