//! `portals4_job.h` and `portals4/pmi.h` declare what this crate exports, with the same
//! parameters and codes.

use lintel_header_check::prototypes::{Prototypes, assert_same, of_exports, of_header, sources};
use lintel_header_check::{Printed, Row, rows};
use std::path::Path;

/// Compiled into programs, not exported.
const INLINE: &str = "ptljob_map";
/// Refused whatever its arguments, whose types have no Rust side.
const REFUSED: &str = "PMI_Spawn_multiple";

#[test]
fn functions_have_the_same_prototypes() {
    let rust = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    let mut rust = of_exports(&rust);
    rust.remove(REFUSED).expect("it is exported");
    assert_same(&rust, &declared());
}

fn declared() -> Prototypes {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    let mut all = Prototypes::new();
    for header in ["portals4_job.h", "portals4/pmi.h"] {
        let text = std::fs::read_to_string(include.join(header)).expect("the header is text");
        all.extend(of_header(&text, plain));
    }
    all.retain(|name, _| name.starts_with("ptljob_") || name.starts_with("PMI_"));
    all.retain(|name, _| name != INLINE && name != REFUSED);
    all
}

fn plain(c: &str) -> &str {
    match c {
        "int" => "c_int",
        "char" => "c_char",
        "size_t" => "usize",
        "void" => "c_void",
        other => other,
    }
}

#[test]
fn codes_have_the_values_that_the_library_returns() {
    let rows: &[Row] = rows![
        PTLJOB_OK = 0;
        PTLJOB_ARG_INVALID = 1;
        PTLJOB_NO_INIT = 2;
        PTLJOB_LAUNCHER = 3;
        PTLJOB_NOT_FOUND = 4;
        PTLJOB_NO_SPACE = 5;
        PTLJOB_PORTALS = 6;
        PMI_SUCCESS = 0;
        PMI_FAIL = -1_i64;
        PMI_ERR_INIT = 1;
        PMI_ERR_NOMEM = 2;
        PMI_ERR_INVALID_ARG = 3;
        PMI_ERR_INVALID_KEY = 4;
        PMI_ERR_INVALID_VAL = 6;
        PMI_ERR_INVALID_LENGTH = 8;
    ];
    let printed = Printed {
        include: Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../include")),
        headers: &["portals4_job.h", "portals4/pmi.h"],
        scratch: Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    printed.assert_same("job_codes", rows);
}
