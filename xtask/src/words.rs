//! Holds code and prose against the list of retired words, `spec/words.toml`.
//!
//! A text is read as a row of plain words: `PendingClient`, `pending_client` and "pending
//! client" are the same two. A retired word is one or several of them, so that it is found
//! in names as in sentences.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::Table;

use crate::report::Outcome;
use crate::shell::{self, Tree};

const LIST: &str = "spec/words.toml";
/// Files that people write; lock files and pictures aren't.
const EXTENSIONS: [&str; 8] = ["rs", "md", "toml", "h", "c", "sh", "in", "yml"];

/// Retired words by the first of them.
type Retired = BTreeMap<String, Vec<Entry>>;

struct Entry {
    /// The words, in lower case.
    words: Vec<String>,
    /// What to write instead.
    instead: String,
    /// Beginnings of paths where the word has its ordinary meaning.
    allowed: Vec<String>,
}

pub fn check(tree: &Tree) -> Outcome {
    let retired = read_list(&shell::read(&tree.path(LIST))?)?;
    let mut wrong = Vec::new();
    for path in files(&tree.root) {
        let name = path.strip_prefix(&tree.root).unwrap_or(&path);
        let name = name.display().to_string();
        if name == LIST || name == "xtask/src/words.rs" {
            continue;
        }
        for (number, line) in shell::read(&path)?.lines().enumerate() {
            for entry in found(line, &retired) {
                if !entry.allowed.iter().any(|start| name.starts_with(start)) {
                    let word = entry.words.join(" ");
                    let instead = &entry.instead;
                    let place = format!("{name}:{}", number + 1);
                    wrong.push(format!("{place}: \"{word}\" is retired: {instead}"));
                }
            }
        }
    }
    match wrong.is_empty() {
        true => {
            println!(
                "   {} retired words",
                retired.values().map(Vec::len).sum::<usize>()
            );
            Ok(())
        }
        false => Err(wrong.join("\n        ")),
    }
}

/// Files that people write, by path.
fn files(root: &Path) -> Vec<PathBuf> {
    let folders = shell::source_folders(root);
    let of_folder = |folder: &PathBuf| EXTENSIONS.map(|extension| shell::files(folder, extension));
    folders.iter().flat_map(of_folder).flatten().collect()
}

/// The list: `"retired words" = "instead"`, or a table with `instead`, `allowed` (paths)
/// and `because`.
fn read_list(text: &str) -> Result<Retired, String> {
    let table: Table = text.parse().map_err(|e| format!("{LIST}: {e}"))?;
    let mut retired = Retired::new();
    for (key, value) in &table {
        let words = words_of(key);
        let instead = value.as_str().or_else(|| value.get("instead")?.as_str());
        let (Some(first), Some(instead)) = (words.first().cloned(), instead) else {
            return Err(format!(
                "{LIST}: \"{key}\" doesn't name what to write instead"
            ));
        };
        let allowed = value.get("allowed").and_then(|paths| paths.as_array());
        if allowed.is_some() && value.get("because").is_none() {
            return Err(format!(
                "{LIST}: \"{key}\" is allowed somewhere without a reason"
            ));
        }
        let allowed = allowed
            .into_iter()
            .flatten()
            .filter_map(|path| path.as_str());
        retired.entry(first).or_default().push(Entry {
            words,
            instead: instead.into(),
            allowed: allowed.map(String::from).collect(),
        });
    }
    Ok(retired)
}

fn found<'a>(line: &str, retired: &'a Retired) -> Vec<&'a Entry> {
    let words = words_of(line);
    let begins = |at: usize| retired.get(&words[at]).into_iter().flatten();
    let entries = (0..words.len()).flat_map(|at| begins(at).map(move |entry| (at, entry)));
    entries
        .filter(|(at, entry)| words[*at..].starts_with(&entry.words))
        .map(|(_, entry)| entry)
        .collect()
}

/// The words of a line in lower case: parted at what isn't a letter or a digit, and where
/// a capital follows a small letter.
fn words_of(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for letter in line.chars() {
        let is_part = letter.is_alphanumeric() || (letter == '\'' && !word.is_empty());
        if !is_part || (letter.is_uppercase() && was_lower) {
            words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
        }
        if is_part {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase() || letter.is_numeric();
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_sentences_are_the_same_words() {
        for text in [
            "PendingClient",
            "pending_client",
            "a pending client.",
            "PENDING_CLIENT",
        ] {
            let words = words_of(text);
            assert!(
                words.ends_with(&["pending".into(), "client".into()]),
                "{text}: {words:?}"
            );
        }
    }

    #[test]
    fn a_retired_word_is_found_in_code_and_prose_but_not_inside_another() {
        let retired = read_list("\"by lot\" = \"at random\"\nguest = \"client\"").expect("a list");
        assert_eq!(found("chosen by lot", &retired).len(), 1);
        assert_eq!(
            found("let guest_name = NewGuest::by_lot();", &retired).len(),
            3
        );
        assert_eq!(found("a guesthouse by the lot", &retired).len(), 0);
    }

    #[test]
    fn an_exception_wants_a_reason() {
        let list = "noise = { instead = \"activity\", allowed = [\"sim/\"] }";
        assert!(read_list(list).is_err_and(|wrong| wrong.contains("without a reason")));
    }
}
