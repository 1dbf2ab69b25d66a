//! Holds the table of crates in ARCHITECTURE.md against the crates.

use std::collections::BTreeMap;
use std::path::Path;

use crate::report::Outcome;
use crate::rings;
use crate::shell::{self, Package, Tree};

/// A row of the table.
struct Crate {
    layer: u32,
    privilege: Privilege,
}

/// Where a crate may use `unsafe`.
#[derive(Debug, PartialEq)]
enum Privilege {
    Nowhere,
    Anywhere,
    /// In these modules; the rest denies it.
    In(Vec<String>),
}

type Crates = BTreeMap<String, Crate>;

/// Folders whose crates see neither a clock nor the operating system.
const PURE: [&str; 2] = ["core/", "sim/"];

/// Arrows that the layers alone would allow: from, to, why not.
const NEVER: [(&str, &str, &str); 4] = [
    ("sim/", "host/", "a simulation sees no real machine"),
    ("host/nal", "core/engine", "a NAL knows no portal table"),
    ("host/ring", "core/engine", "a ring knows no portal table"),
    ("launch/pmi", "", "PMI is nothing of Portals"),
];

pub fn check(tree: &Tree) -> Outcome {
    let crates = read_table(&shell::read(&tree.path("ARCHITECTURE.md"))?)?;
    let mut wrong = Vec::new();
    check_listed(tree, &crates, &mut wrong);
    for package in &tree.packages {
        if let Some(row) = crates.get(&package.folder) {
            check_arrows(tree, package, row, &crates, &mut wrong);
            check_attributes(tree, package, row, &mut wrong)?;
        }
    }
    if let Err(rings) = rings::check(tree) {
        wrong.push(rings);
    }
    if wrong.is_empty() {
        println!("   {} crates", crates.len());
        Ok(())
    } else {
        Err(wrong.join("\n        "))
    }
}

fn check_listed(tree: &Tree, crates: &Crates, wrong: &mut Vec<String>) {
    for package in &tree.packages {
        if !crates.contains_key(&package.folder) {
            wrong.push(format!("{} is not in the table", package.folder));
        }
    }
    for folder in crates.keys() {
        if !tree.packages.iter().any(|p| p.folder == *folder) {
            wrong.push(format!("the table lists {folder}, which is not a crate"));
        }
    }
}

fn check_arrows(
    tree: &Tree,
    from: &Package,
    row: &Crate,
    crates: &Crates,
    wrong: &mut Vec<String>,
) {
    let folder_of = |name: &String| {
        let found = tree.packages.iter().find(|p| p.name == *name);
        found.map(|p| p.folder.as_str())
    };
    for to in from.needs.iter().filter_map(folder_of) {
        let below = crates.get(to).is_none_or(|other| other.layer < row.layer);
        if !below {
            wrong.push(format!("{} → {to} does not go down a layer", from.folder));
        }
    }
    // Tests may reach up or across, but a forbidden arrow stays forbidden.
    let all = from.needs.iter().chain(&from.tests_need);
    for to in all.filter_map(folder_of) {
        for (start, end, why) in NEVER {
            if from.folder.starts_with(start) && to.starts_with(end) {
                wrong.push(format!("{} → {to}: {why}", from.folder));
            }
        }
    }
}

fn check_attributes(
    tree: &Tree,
    package: &Package,
    row: &Crate,
    wrong: &mut Vec<String>,
) -> Outcome {
    let folder = &package.folder;
    let pure = PURE.iter().any(|p| folder.starts_with(p));
    if pure && row.privilege != Privilege::Nowhere {
        wrong.push(format!("{folder} is pure, and the table allows it unsafe"));
    }
    for root in &package.roots {
        let source = shell::read(root)?;
        let name = root.strip_prefix(&tree.root).unwrap_or(root).display();
        if !keeps_promise(&source, &row.privilege) {
            let promise = promise(&row.privilege);
            wrong.push(format!("{name} lacks #![{promise}(unsafe_code)]"));
        }
        if folder.starts_with("core/") && !has_no_std(&source) {
            wrong.push(format!("{name} lacks #![no_std]"));
        }
    }
    if let Privilege::In(modules) = &row.privilege {
        check_modules(&tree.path(folder).join("src"), folder, modules, wrong)?;
    }
    let manifest = shell::read(&tree.path(folder).join("Cargo.toml"))?;
    if !manifest.contains("[lints]\nworkspace = true") {
        wrong.push(format!(
            "{folder}/Cargo.toml lacks [lints] workspace = true"
        ));
    }
    Ok(())
}

/// A stronger promise than the table asks for is welcome.
fn keeps_promise(source: &str, privilege: &Privilege) -> bool {
    let forbids = has_attribute(source, "forbid(unsafe_code)");
    match privilege {
        Privilege::Nowhere => forbids,
        Privilege::Anywhere => true,
        Privilege::In(_) => forbids || has_attribute(source, "deny(unsafe_code)"),
    }
}

fn promise(privilege: &Privilege) -> &'static str {
    match privilege {
        Privilege::In(_) => "deny",
        _ => "forbid",
    }
}

/// Only the named modules lift the denial.
fn check_modules(src: &Path, folder: &str, modules: &[String], wrong: &mut Vec<String>) -> Outcome {
    for file in shell::files_below(src, "rs") {
        let source = shell::read(&file)?;
        let inside = file.strip_prefix(src).unwrap_or(&file).with_extension("");
        let inside = inside.display().to_string();
        let module = inside.strip_suffix("/mod").unwrap_or(&inside);
        if source.contains("allow(unsafe_code)") && !modules.iter().any(|m| m == module) {
            wrong.push(format!(
                "{folder} allows unsafe in {module}, the table does not"
            ));
        }
    }
    Ok(())
}

fn has_attribute(source: &str, attribute: &str) -> bool {
    let whole = format!("#![{attribute}]");
    source.lines().any(|line| line.trim() == whole)
}

fn has_no_std(source: &str) -> bool {
    has_attribute(source, "no_std") || has_attribute(source, "cfg_attr(not(test), no_std)")
}

/// Rows look like ``| 0 | `core/types` | no | what it is |``; the third cell is
/// `no`, `yes`, or the modules that may: `` `raw`, `portals` ``.
fn read_table(text: &str) -> Result<Crates, String> {
    let crates: Crates = text.lines().filter_map(read_row).collect();
    if crates.is_empty() {
        return Err("ARCHITECTURE.md has no table of crates".into());
    }
    Ok(crates)
}

fn read_row(line: &str) -> Option<(String, Crate)> {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let [_, layer, folder, privilege, ..] = cells.as_slice() else {
        return None;
    };
    let folder = folder.strip_prefix('`')?.strip_suffix('`')?;
    if Path::new(folder).is_absolute() {
        return None;
    }
    let row = Crate {
        layer: layer.parse().ok()?,
        privilege: read_privilege(privilege)?,
    };
    Some((folder.to_string(), row))
}

fn read_privilege(cell: &str) -> Option<Privilege> {
    match cell {
        "no" => Some(Privilege::Nowhere),
        "yes" => Some(Privilege::Anywhere),
        modules => modules
            .split(", ")
            .map(|module| Some(module.strip_prefix('`')?.strip_suffix('`')?.to_string()))
            .collect::<Option<Vec<_>>>()
            .map(Privilege::In),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_and_other_tables_are_left() {
        let text = "
| layer | crate | unsafe | what |
|---|---|---|---|
| 0 | `core/types` | no | nouns |
| 3 | `host/ring` | yes | rings |
| 8 | `tools/lintel` | `raw`, `portals` | a tool |
| name | `value` | x |
";
        let crates = read_table(text).expect("the table has three rows");
        assert_eq!(crates.len(), 3);
        assert_eq!(crates["core/types"].layer, 0);
        assert_eq!(crates["host/ring"].privilege, Privilege::Anywhere);
        let modules = ["raw", "portals"].map(String::from).to_vec();
        assert_eq!(crates["tools/lintel"].privilege, Privilege::In(modules));
    }
}
