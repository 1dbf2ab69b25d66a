//! Every function that the headers' Rust side declares (`portals3-sys`) is defined with the same
//! parameters, by name and type. Constants and layouts are compared there.

use lintel_header_check::prototypes::{
    assert_same, names_after, of_declarations, of_exports, sources,
};
use std::path::Path;

#[test]
fn functions_have_the_prototypes_that_are_declared() {
    assert_same(&of_exports(&defined()), &of_declarations(&declared()));
}

/// A function is declared safe if it is defined so: it takes plain values only.
#[test]
fn declarations_are_as_safe_as_definitions() {
    let safe = names_after(&defined(), "\npub extern \"C\" fn ");
    assert!(safe.contains("PtlPut"), "the source was read");
    assert_eq!(names_after(&declared(), "pub safe fn "), safe);
}

fn defined() -> String {
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
}

fn declared() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../portals3-sys/src/lib.rs");
    std::fs::read_to_string(file).expect("source is text")
}
