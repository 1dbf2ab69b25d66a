//! The chapter *Trouble*: each message that it explains is in the sources, and each message of
//! the types of errors that users meet is in the chapter.
//!
//! A message is a heading `` ### `rank … ended …` ``, where `…` stands for what varies.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};

use crate::report::Outcome;
use crate::shell::{self, Tree};

const CHAPTER: &str = "doc/book/src/trouble.md";
/// Where messages to users are written.
const FOLDERS: [&str; 7] = ["api", "coll", "core", "host", "launch", "sim", "tools"];
/// Files whose errors users meet: each message of their `Display` is in the chapter.
const COMPLETE: [&str; 14] = [
    "api/job-c/src/job.rs",
    "coll/group/src/error.rs",
    "host/agent/src/agent.rs",
    "host/bridge/src/channel.rs",
    "host/nal-ofi/src/error.rs",
    "host/nal-shm/src/outbound.rs",
    "host/nal-udp/src/config.rs",
    "host/nal-udp/src/faults.rs",
    "host/presence/src/segment.rs",
    "host/private-file/src/lib.rs",
    "host/runtime/src/key.rs",
    "launch/pmi/src/client/mod.rs",
    "launch/yod/src/error.rs",
    "launch/yod/src/outcome.rs",
];
/// Stands for what a format string fills in.
const FILLED: char = '\u{0}';

/// Compares both ways.
pub fn check(tree: &Tree) -> Outcome {
    let chapter = shell::read(&tree.path(CHAPTER))?;
    let explained = messages(&chapter);
    let mut written = Vec::new();
    for folder in FOLDERS {
        for file in shell::files_below(&tree.path(folder), "rs") {
            written.extend(literals_of(&file)?);
        }
    }
    let mut wrong: Vec<String> = Vec::new();
    for message in &explained {
        if !written.iter().any(|text| is_of(message, text)) {
            wrong.push(format!("{CHAPTER}: no source writes {message:?}"));
        }
    }
    for file in COMPLETE {
        let shown =
            shown_of(&shell::read(&tree.path(file))?).map_err(|e| format!("{file}: {e}"))?;
        for text in shown.iter().filter(|text| says_something(text)) {
            if !explained.iter().any(|message| is_of(message, text)) {
                let text = text.replace(FILLED, "…");
                wrong.push(format!("{CHAPTER} doesn't explain {text:?} of {file}"));
            }
        }
    }
    match wrong.is_empty() {
        true => {
            println!("   {} messages", explained.len());
            Ok(())
        }
        false => Err(wrong.join("\n        ")),
    }
}

/// The messages that a chapter explains: headings that are code, in as many backticks as it
/// needs.
fn messages(chapter: &str) -> Vec<&str> {
    let headings = chapter
        .lines()
        .filter_map(|line| line.strip_prefix("### `"));
    headings
        .filter_map(|rest| {
            let more = rest.len() - rest.trim_start_matches('`').len();
            let end = rest.len().checked_sub(more + 1)?;
            Some(rest.get(more..end)?.trim())
        })
        .collect()
}

/// Whether the parts of `message` are in `text`, in order.
fn is_of(message: &str, text: &str) -> bool {
    let mut rest = text;
    message.split('…').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// A text of two words or more, besides what is filled in.
fn says_something(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphabetic());
    words.filter(|word| word.len() > 1).count() >= 2
}

fn literals_of(file: &Path) -> Result<Vec<String>, String> {
    let tokens: TokenStream = shell::read(file)?
        .parse()
        .map_err(|e| format!("{}: {e}", file.display()))?;
    let mut found = Vec::new();
    literals(tokens, &mut found);
    Ok(found)
}

/// The texts that the `Display`s of a file write.
fn shown_of(source: &str) -> syn::Result<Vec<String>> {
    struct Displays(Vec<String>);
    impl<'ast> Visit<'ast> for Displays {
        fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
            let of = node
                .trait_
                .as_ref()
                .and_then(|(path, _)| path.segments.last());
            if of.is_some_and(|name| name.ident == "Display") {
                literals(node.to_token_stream(), &mut self.0);
            }
            visit::visit_item_impl(self, node);
        }
    }
    let mut displays = Displays(Vec::new());
    displays.visit_file(&syn::parse_file(source)?);
    Ok(displays.0)
}

fn literals(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => literals(group.stream(), found),
            TokenTree::Literal(literal) => {
                if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    found.push(filled(&text.value()));
                }
            }
            _ => {}
        }
    }
}

/// A format string with its fields replaced.
fn filled(format: &str) -> String {
    let mut out = String::with_capacity(format.len());
    let mut letters = format.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '{' && letters.peek() != Some(&'{') {
            letters.by_ref().take_while(|&c| c != '}').for_each(drop);
            out.push(FILLED);
        } else {
            if "{}".contains(letter) {
                letters.next_if_eq(&letter);
            }
            out.push(letter);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_found_with_what_varies_left_open() {
        let text = filled("rank {rank:>3} ended {{by}} {end}");
        assert_eq!(text, "rank \u{0} ended {by} \u{0}");
        assert!(is_of("rank … ended {by} …", &text));
        assert!(!is_of("rank … was ended", &text));
    }

    #[test]
    fn a_heading_may_need_more_than_one_backtick() {
        let chapter = "## Part\n### `a …`\n### `` raise `ulimit` ``\n### Text\n";
        assert_eq!(messages(chapter), ["a …", "raise `ulimit`"]);
    }

    #[test]
    fn only_what_a_display_writes_has_to_be_explained() {
        let source = "
            fn f() { panic!(\"not to users\"); }
            impl fmt::Display for E {
                fn fmt(&self, f: &mut F) -> R { write!(f, \"{} is \\
                    missing here\", 1) }
            }";
        let shown = shown_of(source).expect("it is Rust");
        assert_eq!(shown, ["\u{0} is missing here"]);
        assert!(says_something(&shown[0]) && !says_something("\u{0}: \u{0}"));
    }
}
