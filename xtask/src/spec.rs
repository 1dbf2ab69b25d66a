//! Holds `spec/portals4.toml` against the headers.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use crate::header_text;
use crate::options;
use crate::report::Outcome;
use crate::shell::{self, Tree};

const STATES: [&str; 4] = ["full", "partial", "hint", "open"];

pub fn check(tree: &Tree) -> Outcome {
    let path = tree.path("spec/portals4.toml");
    let table: Table = shell::read(&path)?
        .parse()
        .map_err(|e| format!("{}: {e}", path.display()))?;
    let mut wrong = Vec::new();
    let listed = check_functions(&table, &mut wrong);
    check_exceptions(&table, &mut wrong);
    compare(
        &listed,
        &header_text::functions_of(tree, "portals4.h")?,
        &mut wrong,
    );
    if !wrong.is_empty() {
        return Err(wrong.join("\n        "));
    }
    println!("   {}", count(&table));
    options::check(tree)
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

fn compare(listed: &BTreeSet<String>, declared: &BTreeSet<String>, wrong: &mut Vec<String>) {
    for name in declared.difference(listed) {
        wrong.push(format!("{name} is in portals4.h and not in spec/"));
    }
    for name in listed.difference(declared) {
        wrong.push(format!("{name} is in spec/ and not in portals4.h"));
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
