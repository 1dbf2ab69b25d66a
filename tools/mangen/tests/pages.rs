//! The manual pages of the real headers are complete, and roff agrees with them.
#![forbid(unsafe_code)]

use lintel_mangen::{CCI, Header, Manual, PORTALS3, PORTALS4, Page, pages};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Each manual with its headers, and how many functions they declare.
const MANUALS: [(Manual, &[&str], usize); 3] = [
    (PORTALS4, &["portals4.h", "portals4_ext.h"], 59),
    (
        PORTALS3,
        &[
            "portals3.h",
            "p3rt/p3rt.h",
            "p3api/debug.h",
            "catamount/cnos_mpi_os.h",
        ],
        59,
    ),
    (CCI, &["cci.h"], 22),
];

/// How the names of functions begin.
const FUNCTIONS: [&str; 3] = ["Ptl", "cnos_", "cci_"];
/// How the names of constants begin.
const CONSTANTS: [&str; 2] = ["PTL_", "CCI_"];

fn text(file: &str) -> String {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    std::fs::read_to_string(include.join(file)).expect("the header is there")
}

fn all_pages(manual: &Manual, files: &[&str]) -> Vec<Page> {
    let headers: Vec<Header> = files
        .iter()
        .map(|file| Header::parse(file, &text(file)).unwrap_or_else(|e| panic!("{e}")))
        .collect();
    pages(manual, &headers, &[], "0.0.0")
}

/// The functions, found without the parser: one of our prefixes before a parenthesis, on a line
/// that begins with a type.
fn declared(files: &[&str]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in files {
        for line in text(file).lines() {
            let head = line.split('(').next().unwrap_or_default();
            let word = head.rsplit([' ', '*']).next().unwrap_or_default();
            let ours = FUNCTIONS.iter().any(|prefix| word.starts_with(prefix));
            let is_prototype = line.contains('(') && !line.starts_with("typedef");
            if ours && is_prototype && line.starts_with(|c: char| c.is_ascii_lowercase()) {
                names.insert(word.to_string());
            }
        }
    }
    names
}

/// The names that stand before `(section)`, in bold or as a macro's argument.
fn referred<'a>(text: &'a str, section: &str) -> Vec<&'a str> {
    let is_outside = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let section = format!("({section})");
    let found = text.match_indices(&section);
    let names = found.map(|(at, _)| {
        let before = text[..at].trim_end();
        let before = before.strip_suffix("\\fR").unwrap_or(before);
        let name = before.rsplit(is_outside).next().unwrap_or_default();
        match before[..before.len() - name.len()].ends_with('\\') {
            true => name.strip_prefix("fB").unwrap_or(name),
            false => name,
        }
    });
    names.collect()
}

/// The names in a text that begin with `prefix`.
fn names_in<'a>(text: &'a str, prefix: &str) -> Vec<&'a str> {
    let is_outside = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let found = text.match_indices(prefix).map(|(at, _)| &text[at..]);
    found
        .map(|rest| &rest[..rest.find(is_outside).unwrap_or(rest.len())])
        .collect()
}

#[test]
fn every_function_has_a_complete_page() {
    for (manual, files, count) in MANUALS {
        let declared = declared(files);
        assert_eq!(declared.len(), count, "{declared:?}");
        let pages = all_pages(&manual, files);
        for name in declared {
            let path = manual.path_of(&name);
            let page = pages.iter().find(|page| page.path == path);
            assert_complete(page.unwrap_or_else(|| panic!("no page {path}")));
        }
    }
}

fn assert_complete(page: &Page) {
    for section in [
        "NAME",
        "SYNOPSIS",
        "DESCRIPTION",
        "RETURN VALUE",
        "SEE ALSO",
    ] {
        let heading = format!("\n.SH {section}\n");
        let (_, after) = page
            .text
            .split_once(&heading)
            .unwrap_or_else(|| panic!("{} has no {section}", page.path));
        assert!(
            !after.starts_with(".SH"),
            "{} has an empty {section}",
            page.path
        );
    }
}

#[test]
fn every_reference_leads_to_a_page_of_the_manual() {
    for (manual, files, _) in MANUALS {
        let declared = declared(files);
        for page in all_pages(&manual, files) {
            for name in names_in(&page.text, "Ptl") {
                assert!(declared.contains(name), "{} names {name}", page.path);
            }
            for name in referred(&page.text, manual.functions) {
                assert!(declared.contains(name), "{} refers to {name}", page.path);
            }
        }
    }
}

#[test]
fn every_constant_is_on_the_page_of_types() {
    for (manual, files, _) in MANUALS {
        let pages = all_pages(&manual, files);
        let path = format!("man7/{}_types.7", manual.name);
        let types = pages.iter().find(|page| page.path == path);
        let types = &types.expect("the page of types").text;
        let overview = format!("man7/{}.7", manual.name);
        let overview = pages.iter().find(|page| page.path == overview);
        let variables = variables_of(&overview.expect("the overview").text);
        for page in &pages {
            for name in CONSTANTS.iter().flat_map(|it| names_in(&page.text, it)) {
                assert!(
                    is_explained(types, &variables, name),
                    "{name} in {}",
                    page.path
                );
            }
        }
    }
}

/// What the labels of the section ENVIRONMENT name.
fn variables_of(page: &str) -> Vec<&str> {
    let section = page.split(".SH ENVIRONMENT\n").nth(1).unwrap_or_default();
    let section = section.split(".SH ").next().unwrap_or_default();
    let labels = section.lines().filter(|line| line.starts_with(".B"));
    let words = labels.flat_map(|line| line.split([' ', '"', ',']));
    words.filter(|word| word.contains('_')).collect()
}

/// Whether a constant has a label; what only the environment has is in the overview's section.
fn is_explained(types: &str, variables: &[&str], name: &str) -> bool {
    let labels = [" ", "("].map(|end| format!("\n\\fB{name}\\fR{end}"));
    let macros = format!("\n\\fB{name}(");
    variables.contains(&name)
        || types.contains(&macros)
        || labels.iter().any(|label| types.contains(label))
}

#[test]
fn groff_shows_every_page_without_a_warning() {
    if Command::new("groff").arg("--version").output().is_err() {
        eprintln!("skipped: groff isn't installed (apt-get install groff)");
        return;
    }
    let all = MANUALS.map(|(manual, files, _)| all_pages(&manual, files));
    for page in all.concat() {
        let mut child = Command::new("groff")
            .args(["-man", "-Tutf8", "-ww"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("groff starts");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        stdin.write_all(page.text.as_bytes()).expect("groff reads");
        drop(stdin);
        let output = child.wait_with_output().expect("groff ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            said.is_empty() && output.status.success(),
            "{}: {said}",
            page.path
        );
    }
}
