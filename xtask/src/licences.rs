//! Licence texts of what is linked into what `dist` installs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::dependencies::{self, Dependencies, Dependency};
use crate::dist;
use crate::report::Outcome;
use crate::shell::{self, Tree};

/// Where they are installed, below the prefix.
pub const FOLDER: &str = "share/doc/lintel/licenses";
const THIRD_PARTY: &str = "THIRD-PARTY.txt";
/// In every toolchain: the notices of what the standard library is made of.
const STANDARD_LIBRARY: &str = "share/doc/rust/COPYRIGHT-library.html";
/// What files with a licence text are called, in small letters.
const NAMES: [&str; 6] = [
    "licen",
    "copying",
    "copyright",
    "notice",
    "unlicense",
    "authors",
];

/// Says what would be installed.
pub fn print(tree: &Tree) -> Outcome {
    print!("{}", third_party(tree)?);
    Ok(())
}

/// Installs ours, those of others, and the standard library's.
pub fn install(tree: &Tree, prefix: &Path) -> Outcome {
    let folder = prefix.join(FOLDER);
    for ours in ["LICENSE-MIT", "LICENSE-APACHE"] {
        dist::install(&tree.path(ours), &folder.join(ours), 0o644)?;
    }
    let text = third_party(tree)?;
    let path = folder.join(THIRD_PARTY);
    std::fs::write(&path, text).map_err(|why| format!("{}: {why}", path.display()))?;
    let rust = sysroot()?.join(STANDARD_LIBRARY);
    match rust.is_file() {
        true => dist::install(&rust, &folder.join("RUST-STANDARD-LIBRARY.html"), 0o644),
        false => {
            println!(
                "   no notices of the standard library: there is no {}",
                rust.display()
            );
            Ok(())
        }
    }
}

fn sysroot() -> Result<PathBuf, String> {
    let said = shell::output(Command::new(dependencies::rustc()).args(["--print", "sysroot"]))?;
    Ok(PathBuf::from(said.trim()))
}

fn third_party(tree: &Tree) -> Result<String, String> {
    let platform = dependencies::platform()?;
    let all = Dependencies::read(tree, &tree.path("Cargo.toml"), Some(&platform))?;
    let linked = all.linked_into(&dist::PACKAGES);
    if linked.is_empty() {
        return Err("cargo metadata names nothing that is linked".into());
    }
    write_all(&linked)
}

/// A list of crates, then each text once with the crates that have it.
fn write_all(linked: &[&Dependency]) -> Result<String, String> {
    let mut by_text: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut listing = String::new();
    for of in linked {
        let name = format!("{} {}", of.name, of.version);
        let texts = texts_of(&of.folder)?;
        if texts.is_empty() {
            return Err(format!("{name} ({}) has no licence text", of.licence));
        }
        let licence = &of.licence;
        let _ = writeln!(listing, "  {name}: {licence}  {}", of.repository);
        for text in texts {
            by_text.entry(text).or_default().push(name.clone());
        }
    }
    let mut out = String::from(
        "Lintel is made with the crates below, which are linked into its libraries and\n\
         programs. Where a crate offers a choice of licences, any of them may be taken.\n\
         Their licence texts and notices follow.\n\n",
    );
    out.push_str(&listing);
    for (text, crates) in &by_text {
        let line = "=".repeat(78);
        let _ = write!(out, "\n{line}\n{}\n{line}\n\n{text}\n", wrap(crates));
    }
    Ok(out)
}

/// Names in lines of a readable length.
fn wrap(names: &[String]) -> String {
    let mut out = String::new();
    let mut width = 0;
    for (at, name) in names.iter().enumerate() {
        let comma = if at + 1 < names.len() { "," } else { "" };
        if width > 0 && width + name.len() + 2 > 78 {
            out.push('\n');
            width = 0;
        } else if width > 0 {
            out.push(' ');
            width += 1;
        }
        out.push_str(name);
        out.push_str(comma);
        width += name.len() + comma.len();
    }
    out
}

/// Of a crate's folder, and of a folder `LICENSES` in it.
fn texts_of(folder: &Path) -> Result<Vec<String>, String> {
    let failed = |why| format!("{}: {why}", folder.display());
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let mut texts = Vec::new();
    for path in paths.into_iter().filter(|path| is_licence(path)) {
        if path.is_dir() {
            let inside = std::fs::read_dir(&path).map_err(failed)?;
            let mut inside: Vec<PathBuf> = inside.flatten().map(|entry| entry.path()).collect();
            inside.sort();
            for path in inside.iter().filter(|path| path.is_file()) {
                texts.push(tidy(&shell::read(path)?));
            }
        } else {
            texts.push(tidy(&shell::read(&path)?));
        }
    }
    texts.retain(|text| !text.is_empty());
    Ok(texts)
}

/// The same text in the same way, whatever ends its lines.
fn tidy(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn is_licence(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    let is_source = path.extension().is_some_and(|e| e == "rs" || e == "sh");
    !is_source && NAMES.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_a_licence_are_known_by_their_names() {
        for name in [
            "LICENSE-MIT",
            "license.md",
            "COPYING",
            "Notice.txt",
            "UNLICENSE",
            "LICENCE",
        ] {
            assert!(is_licence(Path::new(name)), "{name}");
        }
        for name in ["README.md", "licenses.rs", "src", "Cargo.toml"] {
            assert!(!is_licence(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn ours_and_those_of_others_are_installed() {
        let tree = Tree::find().expect("cargo describes the tree");
        let prefix = tempfile::tempdir().expect("a folder can be made");
        install(&tree, prefix.path()).expect("they are installed");
        let folder = prefix.path().join(FOLDER);
        let text = std::fs::read_to_string(folder.join(THIRD_PARTY)).expect("it is there");
        let ours = folder.join("LICENSE-MIT").is_file();
        // A library of all programs, and one that only tests need.
        assert!(ours && text.contains("\n  libc 0.2."), "{text}");
        assert!(!text.contains("\n  proptest "), "{text}");
    }

    #[test]
    fn a_text_that_crates_share_is_written_once() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let folder = folder.path();
        let mut crates = Vec::new();
        for (name, text) in [
            ("one", "the same\r\n"),
            ("two", "the same  \n"),
            ("three", "other"),
        ] {
            let mut of = Dependency::for_test(name, "1.0.0", "", "MIT");
            of.folder = folder.join(name);
            std::fs::create_dir_all(&of.folder).expect("a folder can be made");
            std::fs::write(of.folder.join("LICENSE"), text).expect("it can be written");
            crates.push(of);
        }
        let text = write_all(&crates.iter().collect::<Vec<_>>());
        std::fs::write(folder.join("three/LICENSE"), "").expect("it can be written");
        let without = write_all(&crates.iter().collect::<Vec<_>>());
        let text = text.expect("each has a text");
        assert_eq!(text.matches("the same").count(), 1);
        assert!(text.contains("one 1.0.0, two 1.0.0\n="), "{text}");
        assert!(without.is_err_and(|why| why.contains("three 1.0.0")));
    }
}
