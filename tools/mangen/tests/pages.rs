//! The manual pages of the real headers are complete, and roff agrees with them.
#![forbid(unsafe_code)]

use lintel_mangen::{Header, Page, pages};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const FILES: [&str; 2] = ["portals4.h", "portals4_ext.h"];

fn text(file: &str) -> String {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include");
    std::fs::read_to_string(include.join(file)).expect("the header is there")
}

fn all_pages() -> Vec<Page> {
    let headers: Vec<Header> = FILES
        .iter()
        .map(|file| Header::parse(file, &text(file)).unwrap_or_else(|e| panic!("{e}")))
        .collect();
    pages(&headers, "0.0.0")
}

/// The functions, found without the parser: whatever begins with Ptl before a parenthesis, on a
/// line that begins with a type.
fn declared() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for file in FILES {
        for line in text(file).lines() {
            let head = line.split('(').next().unwrap_or_default();
            let word = head.rsplit([' ', '*']).next().unwrap_or_default();
            if word.starts_with("Ptl") && line.starts_with(|c: char| c.is_ascii_lowercase()) {
                names.insert(word.to_string());
            }
        }
    }
    names
}

#[test]
fn every_function_has_a_complete_page() {
    let declared = declared();
    assert_eq!(declared.len(), 57, "{declared:?}");
    let pages = all_pages();
    for name in declared {
        let path = format!("man3/{name}.3");
        let page = pages
            .iter()
            .find(|page| page.path == path)
            .unwrap_or_else(|| panic!("{name} has no page"));
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
                .unwrap_or_else(|| panic!("{path} has no {section}"));
            assert!(!after.starts_with(".SH"), "{path} has an empty {section}");
        }
    }
}

#[test]
fn every_reference_leads_to_a_page() {
    let declared = declared();
    for page in all_pages() {
        for (at, _) in page.text.match_indices("Ptl") {
            let rest = &page.text[at..];
            let end = rest
                .find(|c: char| !c.is_ascii_alphanumeric())
                .unwrap_or(rest.len());
            let name = &rest[..end];
            assert!(declared.contains(name), "{} names {name}", page.path);
        }
    }
}

#[test]
fn every_constant_is_on_the_page_of_types() {
    let pages = all_pages();
    let types = &pages
        .iter()
        .find(|page| page.path == "man7/portals4_types.7")
        .expect("the page of types")
        .text;
    for page in &pages {
        for (at, _) in page.text.match_indices("PTL_") {
            let rest = &page.text[at..];
            let end = rest
                .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
                .unwrap_or(rest.len());
            let label = format!("\n\\fB{}\\fR ", &rest[..end]);
            assert!(types.contains(&label), "{} in {}", &rest[..end], page.path);
        }
    }
}

#[test]
fn groff_shows_every_page_without_a_warning() {
    if Command::new("groff").arg("--version").output().is_err() {
        eprintln!("skipped: groff isn't installed (apt-get install groff)");
        return;
    }
    for page in all_pages() {
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
