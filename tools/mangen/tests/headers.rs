//! The C headers compile alone, in every language they promise, and keep their binary interface.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HEADERS: [&str; 3] = ["portals4.h", "portals4_ext.h", "portals4_bxiext.h"];
const STRICT: [&str; 5] = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles `source`, or panics with what the compiler said.
fn compile(compiler: &str, language: &str, standard: &str, source: &str) {
    let mut child = Command::new(compiler)
        .args(STRICT)
        .arg(format!("-std={standard}"))
        .arg("-I")
        .arg(root().join("include"))
        .args(["-x", language, "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{compiler} is needed: {e}"));
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(source.as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{compiler} -std={standard}:\n{said}\nin:\n{source}"
    );
}

/// The compilers of this machine: the C one, the C++ one; clang only where it is installed.
fn compilers() -> Vec<(&'static str, &'static str)> {
    let mut found = vec![("cc", "c++")];
    let clang = Command::new("clang++").arg("--version").output();
    if clang.is_ok_and(|output| output.status.success()) {
        found.push(("clang", "clang++"));
    }
    found
}

#[test]
fn each_header_compiles_alone_as_c99_c11_and_cpp17() {
    for header in HEADERS {
        let twice = format!("#include <{header}>\n#include <{header}>\nint only;\n");
        for (c, cpp) in compilers() {
            compile(c, "c", "c99", &twice);
            compile(c, "c", "c11", &twice);
            compile(cpp, "c++", "c++17", &twice);
        }
    }
}

#[test]
fn values_sizes_and_offsets_are_those_of_the_reference() {
    let abi = include_str!("abi.c");
    for (c, _) in compilers() {
        compile(c, "c", "c11", abi);
    }
}

#[test]
fn programs_written_for_other_headers_compile() {
    let source = "#include <portals4.h>\n#include <portals4_bxiext.h>\n#include <stdio.h>\n\
        int show(int rc, ptl_event_t *ev);\n\
        int show(int rc, ptl_event_t *ev) {\n\
        char msg[PTL_EV_STR_SIZE]; ptl_index_t pt = 0; enum ptl_str_type type = PTL_STR_ERROR;\n\
        ptl_md_t md = { .start = 0, .length = PTL_SIZE_MAX, .options = PTL_MD_VOLATILE };\n\
        ptl_me_t me = { .options = PTL_ME_OP_PUT | PTL_ME_ACK_DISABLE, .uid = PTL_UID_ANY };\n\
        if (PtlPTAlloc(0, 0, PTL_EQ_NONE, PTL_PT_ANY, &pt) == PTL_INTERRUPTED) return 1;\n\
        if (PtlEvToStr(PTL_NI_PHYSICAL, ev, msg) < 0) return 1;\n\
        return printf(\"%s %s\", PtlToStr(rc, type), msg) + (int)md.options + (int)me.options; }\n";
    // Designated initializers leave the other members zero, as programs like it.
    let pragma = "#pragma GCC diagnostic ignored \"-Wmissing-field-initializers\"\n";
    compile("cc", "c", "c11", &format!("{pragma}{source}"));
}

#[test]
fn the_example_of_each_overview_compiles() {
    for page in [
        include_str!("../../../doc/man/portals4.7"),
        include_str!("../../../doc/man/portals3.7"),
        include_str!("../../../doc/man/cci.7"),
    ] {
        let example = page.split(".SH EXAMPLE").nth(1).expect("it has an example");
        let start = example.find("#include").expect("the example is C");
        let end = example.find("\n.fi").expect("the example ends");
        compile("cc", "c", "c11", &example[start..end].replace("\\-", "-"));
    }
}
