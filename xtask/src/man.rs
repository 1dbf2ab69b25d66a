//! Man pages: sections 3 and 7 from the headers, section 1 from the programs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::report::Outcome;
use crate::shell::{self, Tree};
use crate::{dist, header_text};

/// Pages that belong together, as `lintel-mangen` knows them by name.
struct Manual {
    name: &'static str,
    /// The section of its functions, which is the extension of their files.
    section: &'static str,
    headers: &'static [&'static str],
}

const MANUALS: [Manual; 3] = [
    Manual {
        name: "portals4",
        section: "3",
        headers: &[
            "portals4.h",
            "portals4_ext.h",
            "portals4_job.h",
            "ptlcoll.h",
        ],
    },
    Manual {
        name: "portals3",
        section: "3portals3",
        headers: &[
            "portals3.h",
            "p3rt/p3rt.h",
            "p3api/debug.h",
            "catamount/cnos_mpi_os.h",
        ],
    },
    Manual {
        name: "cci",
        section: "3cci",
        headers: &["cci.h"],
    },
];

pub fn build_and_check(tree: &Tree) -> Outcome {
    dist::run(tree, &tree.dist())?;
    check(tree)
}

/// Writes every page below the prefix's `share/man`, and the programs' completions.
pub fn install(tree: &Tree, prefix: &Path) -> Outcome {
    from_headers(tree, &prefix.join("share/man"))?;
    from_programs(tree, prefix)
}

/// Sections 3 and 7, out of the headers' comments and doc/man.
fn from_headers(tree: &Tree, man: &Path) -> Outcome {
    for manual in MANUALS {
        let mut mangen = tree.cargo();
        mangen
            .args(["run", "--quiet", "--release", "--package", "lintel-mangen"])
            .args(["--", "--manual", manual.name, "--include"])
            .arg(tree.path("include"));
        for header in manual.headers {
            mangen.args(["--header", header]);
        }
        if manual.name == "portals4" {
            mangen.arg("--examples").arg(tree.path("examples/c"));
        }
        shell::run(mangen.arg("--out").arg(man))?;
    }
    Ok(())
}

/// Section 1, and completions, out of the command lines. Not optimized: to link all programs
/// once more would take minutes.
fn from_programs(tree: &Tree, prefix: &Path) -> Outcome {
    let words = ["run", "--quiet", "--package", "xtask"];
    let which = ["--features", "cli-files", "--bin", "cli-files", "--"];
    shell::run(tree.cargo().args(words).args(which).arg(prefix))
}

/// Each function of each header with pages has its page, and so has each program.
pub fn check(tree: &Tree) -> Outcome {
    let man = tree.dist().join("share/man");
    let mut missing = BTreeSet::new();
    for Manual {
        name,
        section,
        headers,
    } in MANUALS
    {
        let functions = header_text::functions_of_all(tree, headers)?;
        missing.extend(functions.iter().map(|one| format!("man3/{one}.{section}")));
        missing.insert(format!("man7/{name}.7"));
    }
    let programs = ["yod", "lintel", "lintel-agent"];
    missing.extend(programs.map(|program| format!("man1/{program}.1")));
    let wanted = missing.len();
    missing.retain(|page| !man.join(page).is_file());
    if !missing.is_empty() {
        let missing: Vec<String> = missing.into_iter().collect();
        return Err(format!("no page {}", missing.join(", ")));
    }
    check_ascii(&man)?;
    if shell::find_program("man").is_some() {
        typeset(&man)?;
    }
    println!("   {wanted} pages");
    Ok(())
}

/// Every page, of all sections.
fn pages(man: &Path) -> impl Iterator<Item = PathBuf> {
    let sections = ["1", "3", "3portals3", "3cci", "7"].into_iter();
    sections.flat_map(|section| shell::files(&man.join(format!("man{}", &section[..1])), section))
}

/// No page has a character that roff would read byte by byte, where no program converts it before.
fn check_ascii(man: &Path) -> Outcome {
    for page in pages(man) {
        let text = shell::read(&page)?;
        if let Some(letter) = text.chars().find(|letter| !letter.is_ascii()) {
            return Err(format!("{}: {letter:?} isn't ASCII", page.display()));
        }
    }
    Ok(())
}

/// Each page goes through the typesetter without a warning.
fn typeset(man: &Path) -> Outcome {
    for page in pages(man) {
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
