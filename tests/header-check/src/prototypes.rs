//! Functions with their parameters, by name and type: in headers, where they are defined, and
//! where they are declared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Parameters and result, in the words of Rust.
pub type Prototype = (Vec<(String, String)>, String);
/// By the function's name.
pub type Prototypes = BTreeMap<String, Prototype>;

/// Compares both sides.
///
/// # Panics
/// They differ.
pub fn assert_same(rust: &Prototypes, c: &Prototypes) {
    let names = |side: &Prototypes| side.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(rust), names(c));
    for (name, prototype) in c {
        assert_eq!(&rust[name], prototype, "{name} in Rust, and in C");
    }
}

/// The functions of a header. `plain` gives the Rust name of a C type that is no pointer.
pub fn of_header(text: &str, plain: fn(&str) -> &str) -> Prototypes {
    let mut code = String::new();
    for (index, part) in text.split("/*").enumerate() {
        let behind = if index == 0 {
            part
        } else {
            part.split_once("*/").map_or("", |p| p.1)
        };
        code.push_str(behind);
    }
    let code: String = code.lines().filter(|line| !line.starts_with('#')).collect();
    let statements = code.split([';', '{', '}']);
    statements
        .filter(|statement| !statement.contains("typedef"))
        .filter_map(|statement| prototype_of_c(statement, plain))
        .collect()
}

fn prototype_of_c(statement: &str, plain: fn(&str) -> &str) -> Option<(String, Prototype)> {
    let (before, parameters) = statement.split_once('(')?;
    let at = before.rfind([' ', '*'])? + 1;
    let name = before[at..].trim().to_owned();
    let result = rust_type(before[..at].trim(), plain);
    let parameters = parameters.trim().strip_suffix(')')?;
    let each = parameters.split(',').filter(|one| one.trim() != "void");
    let each = each.map(|one| {
        let one = one.trim();
        let at = one.rfind([' ', '*'])? + 1;
        Some((one[at..].to_owned(), rust_type(one[..at].trim(), plain)))
    });
    Some((name, (each.collect::<Option<Vec<_>>>()?, result)))
}

/// What a C type is on the Rust side.
fn rust_type(c: &str, plain: fn(&str) -> &str) -> String {
    let Some(pointee) = c.strip_suffix('*') else {
        return plain(c).to_owned();
    };
    let pointee = pointee.trim();
    match pointee.strip_prefix("const ") {
        Some(pointee) => format!("*const {}", rust_type(pointee, plain)),
        None => format!("*mut {}", rust_type(pointee, plain)),
    }
}

/// The functions that Rust source exports.
pub fn of_exports(text: &str) -> Prototypes {
    let exported = text.split("#[unsafe(no_mangle)]").skip(1);
    let function = |item: &str| {
        let (_, item) = item.split_once("extern \"C\" fn ")?;
        prototype(item, '{')
    };
    exported.filter_map(function).collect()
}

/// The functions that Rust source declares in its block `extern "C"`.
///
/// # Panics
/// There is no such block.
pub fn of_declarations(text: &str) -> Prototypes {
    let (_, declared) = text
        .split_once("extern \"C\" {")
        .expect("a block of declarations");
    let each = declared.split("fn ").skip(1);
    each.filter_map(|item| prototype(item, ';')).collect()
}

/// All files of a source folder, as one text.
///
/// # Panics
/// It can't be read.
pub fn sources(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).expect("the crate has its source");
    let read = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.expect("the folder can be read").path();
        std::fs::read_to_string(path).expect("source is text")
    };
    files.map(read).collect()
}

/// Names behind these words.
pub fn names_after(text: &str, words: &str) -> BTreeSet<String> {
    let each = text.split(words).skip(1);
    each.filter_map(|item| Some(item.split_once('(')?.0.to_owned()))
        .collect()
}

/// What stands between a function's name and its end.
fn prototype(item: &str, end: char) -> Option<(String, Prototype)> {
    let (name, rest) = item.split_once('(')?;
    let (parameters, rest) = rest.split_once(')')?;
    let (result, _) = rest.split_once(end)?;
    let result = result.trim().strip_prefix("->").unwrap_or("c_void").trim();
    let each = parameters
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty());
    let each = each.map(|one| {
        let (name, r#type) = one.split_once(':')?;
        let name = name.trim().trim_start_matches("r#");
        // An event whose kinds aren't checked yet.
        let r#type = r#type.trim().replace("RawEvent", "Event");
        Some((name.to_owned(), r#type))
    });
    let prototype = (each.collect::<Option<Vec<_>>>()?, result.to_owned());
    Some((name.to_owned(), prototype))
}
