//! The book in `doc/book`: its commands and programs are run, the messages of its chapter
//! *Trouble* are compared with the sources, and it is installed.
//!
//! A block of a chapter says by its first line what becomes of it:
//!
//! | line | meaning |
//! |---|---|
//! | `sh` | commands that must succeed; all of a chapter share a temporary folder |
//! | `sh,fails` | commands of which the last must fail |
//! | `sh,needs=PROGRAM` | left out where the program isn't installed |
//! | `sh,elsewhere` | for another machine or for root: only parsed |
//! | `c,file=NAME` and any other language with a file | written into the folder |
//! | `text,output` | what the block before prints; `…` stands for anything |

mod blocks;
mod browser;
mod commands;
mod trouble;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dist;
use crate::report::{Outcome, Report};
use crate::shell::{self, Tree};

/// Where the sources are, below the root.
const SOURCES: &str = "doc/book/src";
/// Where the book is installed, below the prefix.
const INSTALLED: &str = "share/doc/lintel";
/// Where programs are installed that only some checks need, below the root.
const TOOLS: &str = "target/tools";

pub use browser::run as look_at_pages;
pub use trouble::check as check_messages;

/// `cargo xtask book [CHAPTER | pages]`: everything, against what `dist` has installed.
pub fn run(tree: &Tree, only: Option<&str>, report: &mut Report) {
    if only == Some("pages") {
        return look_at_pages(tree, report);
    }
    report.check("book: messages", || check_messages(tree));
    run_chapters(tree, only, report);
    if only.is_none() {
        look_at_pages(tree, report);
    }
}

/// The commands and programs of each chapter, or of the one that is named.
pub fn run_chapters(tree: &Tree, only: Option<&str>, report: &mut Report) {
    for path in chapters(tree) {
        let name = stem(&path);
        if only.is_none_or(|only| only == name) {
            report.check(&format!("book: {name}"), || commands::run(tree, &path));
        }
    }
}

/// Installs the chapters, and the book as HTML if mdbook is there.
pub fn install(tree: &Tree, prefix: &Path) -> Outcome {
    let staged = stage(tree, &tree.fresh_folder("book/install")?)?;
    for path in [shell::files(&staged.join("src"), "md"), pictures(tree)].concat() {
        let name = path.file_name().unwrap_or_default();
        let installed = prefix.join(INSTALLED).join("book").join(name);
        dist::install(&path, &installed, 0o644)?;
    }
    match renderer(tree) {
        Some(mdbook) => render(&mdbook, &staged, &prefix.join(INSTALLED).join("html")),
        None => {
            println!("   no HTML of the book: mdbook isn't in PATH");
            Ok(())
        }
    }
}

/// The book as mdbook reads it, with what its chapters include, in a folder of `parent`.
fn stage(tree: &Tree, parent: &Path) -> Result<PathBuf, String> {
    let staged = parent.join("staged");
    for name in ["book.toml", "book.css"] {
        let from = tree.path("doc/book").join(name);
        dist::install(&from, &staged.join(name), 0o644)?;
    }
    for path in chapters(tree) {
        let to = staged
            .join("src")
            .join(path.file_name().unwrap_or_default());
        dist::write(&to, &blocks::expanded(&path)?)?;
    }
    for path in pictures(tree) {
        let to = staged
            .join("src")
            .join(path.file_name().unwrap_or_default());
        dist::install(&path, &to, 0o644)?;
    }
    Ok(staged)
}

/// mdbook: of `PATH`, or the one that the look at the pages has installed.
fn renderer(tree: &Tree) -> Option<PathBuf> {
    let own = tree.path(TOOLS).join("bin/mdbook");
    shell::find_program("mdbook").or_else(|| own.is_file().then_some(own))
}

/// Makes HTML pages.
fn render(mdbook: &Path, staged: &Path, html: &Path) -> Outcome {
    let mut build = Command::new(mdbook);
    build.args(["build", "--dest-dir"]).args([html, staged]);
    shell::output(&mut build).map(drop)
}

/// All files of the book, in the order of their names.
fn chapters(tree: &Tree) -> Vec<PathBuf> {
    shell::files(&tree.path(SOURCES), "md")
}

fn pictures(tree: &Tree) -> Vec<PathBuf> {
    shell::files(&tree.path(SOURCES), "png")
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_chapter_is_in_the_summary_and_the_other_way_round() {
        let tree = Tree::find().expect("cargo describes the tree");
        let summary = shell::read(&tree.path(SOURCES).join("SUMMARY.md")).expect("a summary");
        for path in chapters(&tree) {
            let name = format!("{}.md", stem(&path));
            let named = summary.contains(&format!("({name})"));
            assert!(named || name == "SUMMARY.md", "{name} is in no summary");
        }
        let links = summary.split("](").skip(1);
        for link in links.filter_map(|rest| Some(rest.split_once(')')?.0)) {
            assert!(tree.path(SOURCES).join(link).is_file(), "{link}");
        }
    }

    #[test]
    fn pictures_are_installed_beside_the_chapters() {
        let tree = Tree::find().expect("cargo describes the tree");
        let prefix = tree.fresh_folder("book/pictures").expect("a folder");
        install(&tree, &prefix).expect("all of it is there");
        let installed = prefix.join(INSTALLED).join("book");
        for path in chapters(&tree) {
            let chapter = shell::read(&path).expect("a chapter");
            let links = chapter.split("](").skip(1);
            let links = links.filter_map(|rest| Some(rest.split_once(')')?.0));
            for picture in links.filter(|link| link.ends_with(".png")) {
                assert!(installed.join(picture).is_file(), "{picture}");
            }
        }
    }

    #[test]
    fn the_first_program_is_that_of_the_readme() {
        let tree = Tree::find().expect("cargo describes the tree");
        let program = |file: &str| {
            let text = shell::read(&tree.path(file)).expect("it is there");
            let all = blocks::blocks(&text).expect("its blocks end");
            all.into_iter()
                .find(|block| block.language == "c")
                .map(|block| block.text)
        };
        assert_eq!(
            program("README.md"),
            program("doc/book/src/first-program.md")
        );
    }

    #[test]
    fn the_messages_of_the_book_are_those_of_the_sources() {
        let tree = Tree::find().expect("cargo describes the tree");
        assert_eq!(check_messages(&tree), Ok(()));
    }
}
