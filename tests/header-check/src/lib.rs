//! Compares C headers with their Rust side: constants, layouts, prototypes. For tests.
//!
//! Constants and layouts are printed by a small C program that `cc` compiles, so that they are
//! what a user's compiler makes of them ([`Printed`]). Prototypes are read as text
//! ([`prototypes`]); both sides keep to plain ones, and what is misread doesn't compare equal.
//!
//! ```text
//!   include/*.h ──cc──▶ a program ──prints──▶ values ◀── compared ──▶ rows! members!
//!        └──────text──▶ prototypes ◀───────── compared ──────────▶ #[no_mangle], extern "C"
//! ```
#![forbid(unsafe_code)]

pub mod prototypes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// A C expression, and its value on the Rust side.
pub type Row = (&'static str, u64);

/// Rows of a table, each `NAME = value;`.
#[macro_export]
macro_rules! rows {
    ($($name:ident = $rust:expr;)*) => {
        &[$((stringify!($name), $rust as u64)),*]
    };
}

/// Adds the size of a structure, and offset and size of each member in one number.
#[macro_export]
macro_rules! members {
    ($rows:ident, $c:literal, $rust:ty, [$($member:ident $(= $c_member:literal)?),* $(,)?]) => {
        $rows.push((concat!("sizeof(", $c, ")"), size_of::<$rust>() as u64));
        $($rows.push((
            $crate::members!(@name $c, $member $(, $c_member)?),
            (std::mem::offset_of!($rust, $member) as u64) << 16
                | $crate::size_of_member(|it: &$rust| &raw const it.$member),
        ));)*
    };
    (@name $c:literal, $member:ident) => { concat!($c, ".", stringify!($member)) };
    (@name $c:literal, $member:ident, $c_member:literal) => { concat!($c, ".", $c_member) };
}

/// The size of the member that a function gives the place of, bytes.
pub fn size_of_member<S, M>(_: fn(&S) -> *const M) -> u64 {
    size_of::<M>() as u64
}

/// The headers of an interface, as a C program sees them.
pub struct Printed<'a> {
    /// The folder of the headers.
    pub include: &'a Path,
    /// What the program includes.
    pub headers: &'a [&'a str],
    /// A folder for the program.
    pub scratch: &'a Path,
}

impl Printed<'_> {
    /// The text of a header.
    ///
    /// # Panics
    /// There is no such header.
    pub fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.include.join(name)).expect("the header is there")
    }

    /// Compares each row with what C says. `name` is the program's.
    ///
    /// # Panics
    /// A row differs, or the program doesn't compile.
    pub fn assert_same(&self, name: &str, rows: &[Row]) {
        let printed = self.run(name, rows);
        for (expression, rust) in rows {
            let c = printed.get(*expression).copied();
            assert_eq!(c, Some(*rust), "{expression} in C, and in Rust");
        }
    }

    /// Checks that the rows name each constant of a header.
    ///
    /// # Panics
    /// One is missing.
    pub fn assert_complete(&self, header: &str, rows: &[Row]) {
        let compared: BTreeSet<&str> = rows.iter().map(|(name, _)| *name).collect();
        let text = self.text(header);
        let declared = text.lines().filter_map(constant);
        let missing: Vec<&str> = declared.filter(|name| !compared.contains(name)).collect();
        assert_eq!(missing, [""; 0], "{header}");
    }

    /// What C says of each expression.
    fn run(&self, name: &str, rows: &[Row]) -> BTreeMap<String, u64> {
        let source = self.scratch.join(format!("{name}.c"));
        let program = self.scratch.join(name);
        std::fs::write(&source, self.source(rows)).expect("the build folder can be written");
        let compiled = Command::new("cc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
            .arg(self.include)
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

    fn source(&self, rows: &[Row]) -> String {
        let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
        for header in self.headers {
            let _ = writeln!(text, "#include \"{header}\"");
        }
        text.push_str(
            "#define PRINT(e, name) printf(\"%llu \" name \"\\n\", (unsigned long long)(e))\n\
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
        text
    }
}

/// The constant that a line of a header defines. A macro with parameters is none.
fn constant(line: &str) -> Option<&str> {
    let name = match line.strip_prefix("#define ") {
        Some(rest) => rest.split_whitespace().next(),
        None => line.split_once(" = ").map(|(name, _)| name.trim()),
    };
    name.filter(|name| name.starts_with("PTL_") && !name.contains('('))
}
