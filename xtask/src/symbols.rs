//! Each library exports what its headers declare, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::report::Outcome;
use crate::shell::{self, Tree};
use crate::{dist, header_text};

/// A library's SONAME, and how the functions begin that its headers declare.
const LIBRARIES: [(&str, &str); 2] = [("libportals.so.4", "Ptl"), ("libptlcoll.so.1", "ptlcoll_")];

pub fn build_and_check(tree: &Tree) -> Outcome {
    dist::run(tree, &tree.dist())?;
    check(tree)
}

/// Checks the libraries that are installed in `target/dist`.
pub fn check(tree: &Tree) -> Outcome {
    let all = header_text::all_functions(tree)?;
    for (soname, prefix) in LIBRARIES {
        let declared = all.iter().filter(|name| name.starts_with(prefix));
        check_library(tree, soname, &declared.cloned().collect())?;
    }
    Ok(())
}

fn check_library(tree: &Tree, soname: &str, declared: &BTreeSet<String>) -> Outcome {
    let library = tree.dist().join("lib").join(soname);
    let exported = exported(&library)?;
    let missing = names(declared.difference(&exported));
    let extra = names(exported.difference(declared));
    if !missing.is_empty() || !extra.is_empty() {
        return Err(format!(
            "{soname}: declared but not exported: [{missing}]; exported but not declared: [{extra}]"
        ));
    }
    check_dynamic_section(&library, soname)?;
    println!("   {} functions, SONAME {soname}", declared.len());
    Ok(())
}

fn exported(library: &Path) -> Result<BTreeSet<String>, String> {
    let listing = shell::output(
        Command::new("nm")
            .args(["-D", "--defined-only", "--format=posix"])
            .arg(library),
    )?;
    Ok(listing
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(|name| name.split('@').next().unwrap_or(name).to_string())
        .collect())
}

fn check_dynamic_section(library: &Path, soname: &str) -> Outcome {
    let section = shell::output(Command::new("readelf").args(["-d", "-W"]).arg(library))?;
    if !section.contains(&format!("soname: [{soname}]")) {
        return Err(format!("{} has not the SONAME {soname}", library.display()));
    }
    // Thread-local destructors of an unloaded library crash the program.
    if !section.contains("NODELETE") {
        return Err(format!(
            "{} is not linked with -z nodelete",
            library.display()
        ));
    }
    Ok(())
}

fn names<'a>(set: impl Iterator<Item = &'a String>) -> String {
    set.map(String::as_str).collect::<Vec<_>>().join(" ")
}
