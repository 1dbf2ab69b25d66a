//! The blocks of a chapter.

use std::path::Path;

use crate::shell;

/// Code of a chapter.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The line at which it begins, from 1.
    pub line: usize,
    /// What it is written in.
    pub language: String,
    /// What becomes of it.
    pub notes: Vec<String>,
    pub text: String,
}

impl Block {
    pub fn has(&self, note: &str) -> bool {
        self.notes.iter().any(|one| one == note)
    }

    /// The value of a note `key=value`.
    pub fn value(&self, key: &str) -> Option<&str> {
        let mut notes = self.notes.iter().filter_map(|note| note.split_once('='));
        notes.find(|(name, _)| *name == key).map(|(_, value)| value)
    }
}

/// A chapter with the files that it includes.
///
/// # Errors
/// One of them can't be read.
pub fn expanded(path: &Path) -> Result<String, String> {
    let text = shell::read(path)?;
    let folder = path.parent().unwrap_or(path);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        match include_of(line) {
            Some(file) => out.push_str(&shell::read(&folder.join(file))?),
            None => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
    Ok(out)
}

fn include_of(line: &str) -> Option<&str> {
    let file = line.trim().strip_prefix("{{#include ")?;
    Some(file.strip_suffix("}}")?.trim())
}

/// The fenced blocks of a text, in order.
///
/// # Errors
/// A block that doesn't end.
pub fn blocks(text: &str) -> Result<Vec<Block>, String> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let mut body = String::new();
        loop {
            match lines.next() {
                Some((_, "```")) => break,
                Some((_, line)) => {
                    body.push_str(line);
                    body.push('\n');
                }
                None => return Err(format!("line {}: the block doesn't end", number + 1)),
            }
        }
        let mut words = info.split(',').map(String::from);
        found.push(Block {
            line: number + 1,
            language: words.next().unwrap_or_default(),
            notes: words.collect(),
            text: body,
        });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_its_language_its_notes_and_its_line() {
        let text = "a\n\n```c,file=x.c,shown\nint x;\n```\n```\nplain\n```\n";
        let found = blocks(text).expect("both end");
        assert_eq!((found[0].line, found[0].language.as_str()), (3, "c"));
        assert_eq!(found[0].value("file"), Some("x.c"));
        assert!(found[0].has("shown") && !found[1].has("shown"));
        assert_eq!(found[1].text, "plain\n");
        assert!(blocks("```sh\nls\n").is_err());
    }

    #[test]
    fn an_included_file_takes_the_place_of_its_line() {
        assert_eq!(
            include_of("{{#include ../../x/ring.c}}"),
            Some("../../x/ring.c")
        );
        assert_eq!(include_of("text {{#include x}}"), None);
    }
}
