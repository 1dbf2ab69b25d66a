//! Measures of the sources: `cargo xtask measures [--root DIR]`.
//!
//! Lines are lines of code: neither empty nor a comment. Product code is what isn't under
//! `tests`, `examples`, `benches` or `fuzz` and isn't `cfg(test)`; the crates of tests
//! (`tests/fault`, `host/nal-conformance`) count as tests whole. A short comment is a
//! one-line doc comment of at most three words. Documented items are public functions,
//! types, traits, fields, variants and constants with a doc comment.

mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use file::FileMeasures;

use crate::report::Outcome;
use crate::shell;

/// Folders whose sources are tests or serve them.
const TEST_FOLDERS: [&str; 4] = ["tests", "examples", "benches", "fuzz"];
/// Crates that are tests from end to end.
const TEST_CRATES: [&str; 2] = ["host/nal-conformance", "tests/fault"];
/// Type names in at least so many crates are printed.
const COMMON_NAME: usize = 4;

/// One row of the table: a crate, or all of them.
#[derive(Default)]
struct Row {
    product: usize,
    tests: usize,
    functions: Vec<usize>,
    files: Vec<usize>,
    many_arguments: usize,
    unsafe_blocks: usize,
    public: usize,
    documented: usize,
    comments: usize,
    short: usize,
}

/// Prints the table of the sources under `root`.
pub fn print(root: &Path) -> Outcome {
    let mut all = Row::default();
    let mut names: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    println!(
        "{:24} {:>7} {:>6} {:>12} {:>9} {:>5} {:>6} {:>6} {:>10} {:>9}",
        "crate",
        "product",
        "tests",
        "fn 50/95/max",
        "file max",
        "t:p",
        ">5 arg",
        "unsafe",
        "documented",
        "short"
    );
    for folder in crates(root)? {
        let name = folder
            .strip_prefix(root)
            .unwrap_or(&folder)
            .display()
            .to_string();
        let mut row = Row::default();
        for path in shell::files_below(&folder, "rs") {
            let inside = path.strip_prefix(&folder).unwrap_or(&path);
            if in_another_crate(&folder, &path) {
                continue;
            }
            let measured = FileMeasures::read(&path)?;
            row.add(&measured, is_test(&name, inside));
            for defined in measured.types {
                names.entry(defined).or_default().insert(name.clone());
            }
        }
        row.print(&name);
        all.join(row);
    }
    all.print("all");
    print_common(&names);
    Ok(())
}

impl Row {
    fn add(&mut self, file: &FileMeasures, test: bool) {
        self.comments += file.comments;
        self.short += file.short;
        self.unsafe_blocks += file.unsafe_blocks;
        if test {
            self.tests += file.product + file.tests;
            return;
        }
        self.product += file.product;
        self.tests += file.tests;
        self.files.push(file.product);
        self.functions.extend(&file.functions);
        self.many_arguments += file.many_arguments;
        self.public += file.public;
        self.documented += file.documented;
    }

    fn join(&mut self, mut other: Row) {
        self.product += other.product;
        self.tests += other.tests;
        self.functions.append(&mut other.functions);
        self.files.append(&mut other.files);
        self.many_arguments += other.many_arguments;
        self.unsafe_blocks += other.unsafe_blocks;
        self.public += other.public;
        self.documented += other.documented;
        self.comments += other.comments;
        self.short += other.short;
    }

    fn print(&mut self, name: &str) {
        self.functions.sort_unstable();
        let longest = self.files.iter().max().copied().unwrap_or(0);
        let functions = format!(
            "{}/{}/{}",
            percentile(&self.functions, 50),
            percentile(&self.functions, 95),
            percentile(&self.functions, 100)
        );
        let ratio = self.tests as f64 / self.product.max(1) as f64;
        println!(
            "{name:24} {:>7} {:>6} {functions:>12} {longest:>9} {ratio:>5.2} {:>6} {:>6} {:>10} {:>9}",
            self.product,
            self.tests,
            self.many_arguments,
            self.unsafe_blocks,
            format!("{}/{}", self.documented, self.public),
            format!("{}/{}", self.short, self.comments),
        );
    }
}

/// The value that `percent` of the sorted values don't exceed.
fn percentile(sorted: &[usize], percent: usize) -> usize {
    let last = sorted.len().saturating_sub(1);
    sorted.get(last * percent / 100).copied().unwrap_or(0)
}

/// Folders with a manifest of a package.
fn crates(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for folder in shell::source_folders(root) {
        let manifest = folder.join("Cargo.toml");
        if manifest.is_file() && shell::read(&manifest)?.contains("[package]") {
            found.push(folder);
        }
    }
    match found.is_empty() {
        true => Err(format!("{} holds no crates", root.display())),
        false => Ok(found),
    }
}

/// Whether a crate inside this one owns the file.
fn in_another_crate(folder: &Path, file: &Path) -> bool {
    let between = file
        .ancestors()
        .skip(1)
        .take_while(|above| *above != folder);
    between
        .into_iter()
        .any(|above| above.join("Cargo.toml").is_file())
}

fn is_test(name: &str, inside: &Path) -> bool {
    let folder = inside.components().next();
    let folder = folder.map(|c| c.as_os_str().to_string_lossy().into_owned());
    TEST_CRATES.contains(&name)
        || name.starts_with("fuzz")
        || folder.is_some_and(|folder| TEST_FOLDERS.contains(&folder.as_str()))
}

fn print_common(names: &BTreeMap<String, BTreeSet<String>>) {
    let mut common: Vec<_> = names
        .iter()
        .filter(|(_, crates)| crates.len() >= COMMON_NAME)
        .collect();
    common.sort_by_key(|(name, crates)| (std::cmp::Reverse(crates.len()), name.as_str()));
    let common = common
        .iter()
        .map(|(name, crates)| format!("{name} {}", crates.len()));
    println!(
        "type names in {COMMON_NAME} crates or more: {}",
        common.collect::<Vec<_>>().join(", ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occur() {
        let sorted: Vec<usize> = (1..=100).collect();
        assert_eq!(percentile(&sorted, 50), 50);
        assert_eq!(percentile(&sorted, 100), 100);
        assert_eq!(percentile(&[], 95), 0);
    }

    #[test]
    fn the_folder_says_what_is_a_test() {
        assert!(is_test("core/engine4", Path::new("tests/oracle.rs")));
        assert!(is_test("tests/fault", Path::new("src/job.rs")));
        assert!(!is_test("core/engine4", Path::new("src/tests_of_lists.rs")));
    }
}
