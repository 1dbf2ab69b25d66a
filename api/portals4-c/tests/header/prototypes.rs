//! Every function has the same parameters, by name and type, on both sides: in the
//! headers, where it is defined, and where it is declared (`portals4-sys`).
//!
//! No parser of either language: both sides keep to plain prototypes, and what is
//! misread here doesn't compare equal.

use crate::header;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Parameters and result, in the words of Rust.
type Prototype = (Vec<(String, String)>, String);
type Prototypes = BTreeMap<String, Prototype>;

#[test]
fn functions_have_the_same_prototypes() {
    assert_same(&of_crate());
}

#[test]
fn declarations_have_the_same_prototypes() {
    assert_same(&of_declarations());
}

/// A function is declared safe if it is defined so: it takes plain values only.
#[test]
fn declarations_are_as_safe_as_definitions() {
    let defined = names_after(&sources(), "\npub extern \"C\" fn ");
    assert!(defined.contains("PtlPut"), "the source was read");
    assert_eq!(names_after(&declarations(), "pub safe fn "), defined);
}

fn assert_same(rust: &Prototypes) {
    let mut c = of_header(&header("portals4.h"));
    c.append(&mut of_header(&header("portals4_ext.h")));
    assert!(c.len() > 50, "the headers were read");
    let names = |side: &Prototypes| side.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(rust), names(&c));
    for (name, prototype) in &c {
        assert_eq!(&rust[name], prototype, "{name} in Rust, and in C");
    }
}

fn of_header(text: &str) -> Prototypes {
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
    statements.filter_map(prototype_of_c).collect()
}

fn prototype_of_c(statement: &str) -> Option<(String, Prototype)> {
    let (before, parameters) = statement.split_once('(')?;
    let at = before.find("Ptl")?;
    let name = before[at..].trim().to_owned();
    let result = rust_type(before[..at].trim());
    let parameters = parameters.trim().strip_suffix(')')?;
    let each = parameters.split(',').filter(|one| one.trim() != "void");
    let each = each.map(|one| {
        let one = one.trim();
        let at = one.rfind([' ', '*'])? + 1;
        Some((one[at..].to_owned(), rust_type(one[..at].trim())))
    });
    Some((name, (each.collect::<Option<Vec<_>>>()?, result)))
}

/// What a C type is on the Rust side.
fn rust_type(c: &str) -> String {
    if let Some(pointee) = c.strip_suffix('*') {
        let pointee = pointee.trim();
        return match pointee.strip_prefix("const ") {
            Some(pointee) => format!("*const {}", rust_type(pointee)),
            None => format!("*mut {}", rust_type(pointee)),
        };
    }
    let plain = match c {
        "void" => "c_void",
        "int" => "c_int",
        "char" => "c_char",
        "ptl_sr_value_t" => "i32",
        "unsigned int" | "ptl_interface_t" | "ptl_pt_index_t" | "ptl_pid_t" | "ptl_uid_t"
        | "ptl_time_t" | "ptl_sr_index_t" | "ptl_str_type_t" => "u32",
        "ptl_size_t" | "ptl_match_bits_t" | "ptl_hdr_data_t" => "u64",
        "ptl_list_t" | "ptl_search_op_t" | "ptl_ack_req_t" | "ptl_op_t" | "ptl_datatype_t" => "u8",
        "ptl_process_t" => "ProcessId",
        "ptl_ni_limits_t" => "Limits",
        "ptl_ct_event_t" => "CountingEvent",
        "ptl_event_t" => "Event",
        "ptl_md_t" => "Md",
        "ptl_le_t" => "Le",
        "ptl_me_t" => "Me",
        handle if handle.starts_with("ptl_handle_") => "Handle",
        other => other,
    };
    plain.to_owned()
}

fn of_crate() -> Prototypes {
    let text = sources();
    let exported = text.split("#[unsafe(no_mangle)]").skip(1);
    exported.filter_map(prototype_of_rust).collect()
}

/// All files of the crate.
fn sources() -> String {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = std::fs::read_dir(source).expect("the crate has its source");
    let read = |file: std::io::Result<std::fs::DirEntry>| {
        let path = file.expect("the folder can be read").path();
        std::fs::read_to_string(path).expect("source is text")
    };
    files.map(read).collect()
}

fn prototype_of_rust(item: &str) -> Option<(String, Prototype)> {
    let (_, item) = item.split_once("extern \"C\" fn ")?;
    prototype(item, '{')
}

fn of_declarations() -> Prototypes {
    let text = declarations();
    let (_, declared) = text
        .split_once("extern \"C\" {")
        .expect("a block of declarations");
    let each = declared.split("fn ").skip(1);
    each.filter_map(|item| prototype(item, ';')).collect()
}

fn declarations() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../portals4-sys/src/lib.rs");
    std::fs::read_to_string(file).expect("source is text")
}

/// Names behind these words.
fn names_after(text: &str, words: &str) -> BTreeSet<String> {
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
