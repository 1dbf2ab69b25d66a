//! Man pages: sections 3 and 7 from the headers, section 1 from the programs.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crate::report::Outcome;
use crate::shell::{self, Tree};
use crate::{dist, header_text};

pub fn build_and_check(tree: &Tree) -> Outcome {
    dist::run(tree, &tree.dist())?;
    check(tree)
}

/// Writes every page below `share/man`.
pub fn install(tree: &Tree, man: &Path) -> Outcome {
    from_headers(tree, man)?;
    from_programs(tree, man)
}

/// Sections 3 and 7, out of the headers' comments and doc/man.
fn from_headers(tree: &Tree, man: &Path) -> Outcome {
    let mut mangen = tree.cargo();
    mangen
        .args(["run", "--quiet", "--release", "--package", "lintel-mangen"])
        .arg("--");
    for header in header_text::WITH_PAGES {
        mangen
            .arg("--header")
            .arg(tree.path("include").join(header));
    }
    shell::run(mangen.arg("--out").arg(man))
}

/// Section 1, out of the command lines.
fn from_programs(tree: &Tree, man: &Path) -> Outcome {
    let man1 = man.join("man1");
    std::fs::create_dir_all(&man1).map_err(|e| format!("{}: {e}", man1.display()))?;
    let words = ["run", "--quiet", "--release", "--package", "xtask"];
    let which = ["--features", "man1", "--bin", "man1", "--"];
    shell::run(tree.cargo().args(words).args(which).arg(man1))
}

/// Each function of each header with pages has its page, and so has each program.
pub fn check(tree: &Tree) -> Outcome {
    let man = tree.dist().join("share/man");
    let mut missing: BTreeSet<String> =
        header_text::functions_of_all(tree, &header_text::WITH_PAGES)?
            .into_iter()
            .map(|function| format!("man3/{function}.3"))
            .collect();
    let programs = ["yod", "lintel", "lintel-agent"];
    missing.extend(programs.map(|program| format!("man1/{program}.1")));
    missing.insert("man7/portals4.7".into());
    let wanted = missing.len();
    missing.retain(|page| !man.join(page).is_file());
    if !missing.is_empty() {
        let missing: Vec<String> = missing.into_iter().collect();
        return Err(format!("no page {}", missing.join(", ")));
    }
    if shell::find_program("man").is_some() {
        typeset(&man)?;
    }
    println!("   {wanted} pages");
    Ok(())
}

/// Each page goes through the typesetter without a warning.
fn typeset(man: &Path) -> Outcome {
    for page in ["1", "3", "7"]
        .iter()
        .flat_map(|section| shell::files(&man.join(format!("man{section}")), section))
    {
        let mut man = Command::new("man");
        man.env("LC_ALL", "C.UTF-8").args(["--warnings", "-l"]);
        let said = man.arg(&page).output().map_err(|e| e.to_string())?.stderr;
        if !said.is_empty() {
            let said = String::from_utf8_lossy(&said);
            return Err(format!("{}: {}", page.display(), said.trim_end()));
        }
    }
    Ok(())
}
