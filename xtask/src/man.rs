//! Man pages: section 3 from the headers, section 1 from the programs.

use std::collections::BTreeSet;
use std::path::Path;

use crate::report::Outcome;
use crate::shell::{self, Tree};
use crate::{dist, header_text};

pub fn build_and_check(tree: &Tree) -> Outcome {
    dist::run(tree, &tree.dist())?;
    check(tree)
}

/// Writes every page below `share/man`.
pub fn install(tree: &Tree, man: &Path) -> Outcome {
    let mut mangen = tree.cargo();
    mangen
        .args(["run", "--quiet", "--release", "--package", "lintel-mangen"])
        .arg("--")
        .arg("--include")
        .arg(tree.path("include"))
        .arg("--out")
        .arg(man);
    shell::run(&mut mangen)
}

/// Each function of each header has its page, and so has each program.
pub fn check(tree: &Tree) -> Outcome {
    let man = tree.dist().join("share/man");
    let mut missing: BTreeSet<String> = header_text::all_functions(tree)?
        .into_iter()
        .map(|function| format!("man3/{function}.3"))
        .collect();
    missing.extend(["man1/yod.1", "man1/lintel.1", "man7/portals4.7"].map(String::from));
    let wanted = missing.len();
    missing.retain(|page| !man.join(page).is_file());
    if !missing.is_empty() {
        let missing: Vec<String> = missing.into_iter().collect();
        return Err(format!("no page {}", missing.join(", ")));
    }
    println!("   {wanted} pages");
    Ok(())
}
