//! Holds `spec/options.toml` against portals4.h and the programs that try each option.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::report::Outcome;
use crate::shell::{self, Tree};

/// What the names of options begin with.
const PREFIXES: [&str; 5] = ["PTL_NI_", "PTL_MD_", "PTL_ME_", "PTL_LE_", "PTL_PT_"];
/// Names of that form that aren't options: how an operation ended, and an index.
const OTHERS: [&str; 9] = [
    "PTL_NI_OK",
    "PTL_NI_DROPPED",
    "PTL_NI_NO_MATCH",
    "PTL_NI_OP_VIOLATION",
    "PTL_NI_PERM_VIOLATION",
    "PTL_NI_PT_DISABLED",
    "PTL_NI_SEGV",
    "PTL_NI_UNDELIVERABLE",
    "PTL_PT_ANY",
];

/// Every option of the header is listed, every listed name is in the header, and every
/// check that is named is there.
pub fn check(tree: &Tree) -> Outcome {
    let table: Table = shell::read(&tree.path("spec/options.toml"))?
        .parse()
        .map_err(|e| format!("spec/options.toml: {e}"))?;
    let header = shell::read(&tree.path("include/portals4.h"))?;
    let (mut listed, mut wrong) = (BTreeSet::new(), Vec::new());
    for option in table
        .get("option")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let id = option.get("id").and_then(Value::as_str).unwrap_or("");
        listed.insert(id);
        if !header.contains(id) || id.is_empty() {
            wrong.push(format!("'{id}' is not in portals4.h"));
        }
        check_tests(tree, id, option, &mut wrong)?;
    }
    let defined = defined(&header);
    let missing = defined.difference(&listed);
    wrong.extend(missing.map(|name| format!("{name} is not in spec/options.toml")));
    if !wrong.is_empty() {
        return Err(wrong.join("\n        "));
    }
    println!("   {} options", listed.len());
    Ok(())
}

/// An option names programs and what tries it there.
fn check_tests(
    tree: &Tree,
    id: &str,
    option: &Value,
    wrong: &mut Vec<String>,
) -> Result<(), String> {
    let tests: Vec<&str> = option
        .get("test")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if tests.is_empty() {
        wrong.push(format!("{id} names no test"));
    }
    for test in tests {
        let Some((program, part)) = test.split_once(": ") else {
            wrong.push(format!("{id}: '{test}' is not 'program: function'"));
            continue;
        };
        if !shell::read(&tree.path(&format!("tests/c/{program}.c")))?.contains(part) {
            wrong.push(format!("{id}: tests/c/{program}.c has no {part}"));
        }
    }
    Ok(())
}

/// The options that a header defines.
fn defined(header: &str) -> BTreeSet<&str> {
    let defines = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define "));
    defines
        .filter_map(|define| define.split_whitespace().next())
        .filter(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        .filter(|name| !OTHERS.contains(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_found_and_results_are_not() {
        let header = "#define PTL_MD_VOLATILE 0x40\n#define PTL_NI_OK 0\n#define PTL_EQ_NONE 1\n";
        assert_eq!(defined(header), BTreeSet::from(["PTL_MD_VOLATILE"]));
    }
}
