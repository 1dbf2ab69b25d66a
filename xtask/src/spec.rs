//! Holds `spec/portals4.toml`, `spec/portals3.toml` and `spec/cci.toml` against the headers.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::header_text;
use crate::options;
use crate::report::Outcome;
use crate::shell::{self, Tree};

const STATES: [&str; 4] = ["full", "partial", "hint", "open"];

/// Each file names the headers whose functions it lists.
const FILES: [&str; 3] = ["portals4.toml", "portals3.toml", "cci.toml"];

pub fn check(tree: &Tree) -> Outcome {
    for file in FILES {
        check_file(tree, file)?;
    }
    options::check(tree)
}

fn check_file(tree: &Tree, file: &str) -> Outcome {
    let path = tree.path("spec").join(file);
    let table: Table = shell::read(&path)?
        .parse()
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let mut wrong = Vec::new();
    let listed = check_functions(&table, &mut wrong);
    check_exceptions(&table, &mut wrong);
    let headers = headers(&table);
    if headers.is_empty() {
        wrong.push(format!("{file} names no header"));
    }
    let declared = header_text::functions_of_all(tree, &headers)?;
    compare(&listed, &declared, &headers.join(", "), &mut wrong);
    if !wrong.is_empty() {
        return Err(wrong.join("\n        "));
    }
    println!("   {file}: {}", count(&table));
    Ok(())
}

/// The headers in `[specification]`.
fn headers(table: &Table) -> Vec<&str> {
    let specification = table.get("specification");
    let headers = specification.and_then(|table| table.get("headers"));
    let headers = headers.and_then(Value::as_array).into_iter().flatten();
    headers.filter_map(Value::as_str).collect()
}

/// Every function has a known section and state; what is not full says why.
fn check_functions(table: &Table, wrong: &mut Vec<String>) -> BTreeSet<String> {
    let sections: BTreeSet<&str> = entries(table, "section").filter_map(id).collect();
    let mut listed = BTreeSet::new();
    for function in entries(table, "function") {
        let Some(name) = id(function) else {
            wrong.push(format!("a function without id: {function:?}"));
            continue;
        };
        if !listed.insert(name.to_string()) {
            wrong.push(format!("{name} is listed twice"));
        }
        if !sections.contains(word(function, "section")) {
            wrong.push(format!("{name} names no section of the table"));
        }
        let state = word(function, "state");
        if !STATES.contains(&state) {
            wrong.push(format!("{name} has the state '{state}', not {STATES:?}"));
        }
        if state != "full" && word(function, "reason").is_empty() {
            wrong.push(format!("{name} is not full and gives no reason"));
        }
    }
    listed
}

fn check_exceptions(table: &Table, wrong: &mut Vec<String>) {
    let sections: BTreeSet<&str> = entries(table, "section").filter_map(id).collect();
    for exception in entries(table, "exception") {
        let what = word(exception, "what");
        if what.is_empty() || word(exception, "reason").is_empty() {
            wrong.push(format!("an exception needs what and reason: {exception:?}"));
        }
        if !sections.contains(word(exception, "section")) {
            wrong.push(format!("the exception '{what}' names no section"));
        }
    }
}

fn compare(
    listed: &BTreeSet<String>,
    declared: &BTreeSet<String>,
    headers: &str,
    wrong: &mut Vec<String>,
) {
    for name in declared.difference(listed) {
        wrong.push(format!("{name} is in {headers} and not in spec/"));
    }
    for name in listed.difference(declared) {
        wrong.push(format!("{name} is in spec/ and not in {headers}"));
    }
}

fn count(table: &Table) -> String {
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for function in entries(table, "function") {
        *states.entry(word(function, "state")).or_default() += 1;
    }
    let states: Vec<String> = states.iter().map(|(s, n)| format!("{n} {s}")).collect();
    format!("functions: {}", states.join(", "))
}

fn entries<'a>(table: &'a Table, kind: &str) -> impl Iterator<Item = &'a Value> {
    table
        .get(kind)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn id(entry: &Value) -> Option<&str> {
    entry.get("id").and_then(Value::as_str)
}

fn word<'a>(entry: &'a Value, key: &str) -> &'a str {
    entry.get(key).and_then(Value::as_str).unwrap_or("")
}
