//! Each library exports what its headers declare, and nothing else.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::report::Outcome;
use crate::shell::{self, Tree};
use crate::{dist, header_text};

/// A library's SONAME, and the headers that declare what it exports.
const LIBRARIES: [(&str, &[&str]); 6] = [
    ("libportals.so.4", &["portals4.h", "portals4_ext.h"]),
    (
        "libportals3.so.0",
        &["portals3.h", "p3rt/p3rt.h", "p3api/debug.h"],
    ),
    ("libportals_job.so.1", &["portals4_job.h", "portals4/pmi.h"]),
    ("libcnos.so.0", &["catamount/cnos_mpi_os.h"]),
    ("libptlcoll.so.1", &["ptlcoll.h"]),
    ("libcci.so.2", &["cci.h"]),
];

/// What programs declare themselves, with one type or another: the library that exports it.
const UNDECLARED: [(&str, &str); 1] = [("libportals3.so.0", "ptl_event_str")];

pub fn build_and_check(tree: &Tree) -> Outcome {
    dist::run(tree, &tree.dist())?;
    check(tree)
}

/// Checks the libraries that are installed in `target/dist`.
pub fn check(tree: &Tree) -> Outcome {
    for (soname, headers) in LIBRARIES {
        let mut declared = header_text::functions_of_all(tree, headers)?;
        declared.append(&mut header_text::arrays_of_all(tree, headers)?);
        let undeclared = UNDECLARED.iter().filter(|(library, _)| *library == soname);
        declared.extend(undeclared.map(|(_, name)| (*name).to_string()));
        check_library(tree, soname, &declared)?;
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
    println!("   {} symbols, SONAME {soname}", declared.len());
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
