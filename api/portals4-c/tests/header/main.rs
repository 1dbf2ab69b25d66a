//! The headers and the Rust side say the same: constants, layouts, prototypes.
//!
//! Constants and layouts are printed by a small C program that `cc` compiles, so that
//! they are what a user's compiler makes of them; prototypes are read as text.

mod constants;
mod layouts;
mod prototypes;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A C expression, and what the Rust side says.
type Row = (&'static str, u64);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include")
}

fn header(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect("the header is there")
}

/// What C says of each expression.
fn printed_by_c(name: &str, rows: &[Row]) -> BTreeMap<String, u64> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (place.join(format!("{name}.c")), place.join(name));
    let mut text = String::from(
        "#include <stddef.h>\n#include <stdio.h>\n#include \"portals4_ext.h\"\n\
         #define PRINT(e, name) printf(\"%llu \" name \"\\n\", (unsigned long long)(e))\n\
         #define MEMBER(t, m) printf(\"%zu \" #t \".\" #m \"\\n\", \
         offsetof(t, m) << 16 | sizeof(((t *)0)->m))\nint main(void) {\n",
    );
    for (expression, _) in rows {
        let _ = match expression.split_once('.') {
            Some((of, member)) => writeln!(text, "MEMBER({of}, {member});"),
            None => writeln!(text, "PRINT({expression}, \"{expression}\");"),
        };
    }
    text.push_str("return 0; }\n");
    std::fs::write(&source, text).expect("the build folder can be written");
    let compiled = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(folder())
        .arg("-o")
        .args([&program, &source])
        .status()
        .expect("a C compiler is there");
    assert!(
        compiled.success(),
        "the header has all that the table names"
    );
    let output = Command::new(&program).output().expect("the program starts");
    let lines = String::from_utf8(output.stdout).expect("it prints ASCII");
    let pairs = lines.lines().filter_map(|line| line.split_once(' '));
    pairs
        .map(|(value, name)| (name.to_owned(), value.parse().expect("it prints numbers")))
        .collect()
}

fn assert_same(name: &str, rows: &[Row]) {
    let printed = printed_by_c(name, rows);
    for (expression, rust) in rows {
        let c = printed.get(*expression).copied();
        assert_eq!(c, Some(*rust), "{expression} in C, and in Rust");
    }
}
