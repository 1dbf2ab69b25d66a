//! The pages: one of each function, one of all types and constants, and the overview.

use crate::doc::{Block, Doc};
use crate::example::{Program, call_of};
use crate::header::{Composite, Function, Header, Item, Section};
use crate::manual::Manual;
use crate::roff::{Roff, bold, escape, italic};

/// A finished page and where it is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Where it belongs below a man directory: `man3/PtlPut.3`.
    pub path: String,
    /// The page in roff's man macros.
    pub text: String,
}

/// The line of the overview that the list of functions replaces.
const FUNCTIONS: &str = ".\\\" @FUNCTIONS@\n";
/// The word of the overview that the package's version replaces.
const VERSION: &str = "@VERSION@";

/// Makes all pages of a manual from its headers, for version `version` of the package. A
/// function's page shows how the first of `programs` that calls it does so.
///
/// # Panics
/// If the overview has no place for the list of functions, which is a fault of this crate's
/// build.
#[must_use]
pub fn pages(
    manual: &Manual,
    headers: &[Header],
    programs: &[Program],
    version: &str,
) -> Vec<Page> {
    let mut pages = vec![
        overview_page(manual, headers, version),
        types_page(manual, headers, version),
    ];
    for header in headers {
        for function in header.functions() {
            let mut roff = Roff::page(manual, &function.name, manual.functions, version);
            function_page(manual, header, function, programs, &mut roff);
            pages.push(Page {
                path: manual.path_of(&function.name),
                text: roff.finish(),
            });
        }
    }
    pages
}

fn overview_page(manual: &Manual, headers: &[Header], version: &str) -> Page {
    let overview = manual.overview;
    assert!(overview.contains(FUNCTIONS), "the overview lists functions");
    let mut list = Roff::part(manual);
    for section in headers.iter().flat_map(|h| &h.sections) {
        if section.functions().next().is_none() {
            continue;
        }
        list.raw(&format!(".SS {}", section.title));
        for function in section.functions() {
            list.labelled(
                &format!("{}({})", bold(&function.name), manual.functions),
                &function.doc.brief,
                &[],
            );
        }
    }
    let text = overview
        .replace(FUNCTIONS, &list.finish())
        .replace(VERSION, version);
    Page {
        path: format!("man7/{}.7", manual.name),
        text,
    }
}

fn types_page(manual: &Manual, headers: &[Header], version: &str) -> Page {
    let (name, family) = (manual.types(), manual.family);
    let mut roff = Roff::page(manual, &name, "7", version);
    roff.section("Name");
    roff.raw(&format!(
        "{name} \\- types and constants of the {family} interface"
    ));
    roff.section("Synopsis");
    roff.raw(".nf");
    for header in headers {
        roff.raw(&format!(".B #include <{}>", header.file));
    }
    roff.raw(".fi");
    roff.section("Description");
    roff.raw("In the order of the headers. Functions have their own pages, which");
    roff.raw(&format!(".BR {} (7)", manual.name));
    roff.raw("lists.");
    for section in headers.iter().flat_map(|h| &h.sections) {
        types_section(section, &mut roff);
    }
    roff.section("See also");
    roff.raw(&format!(".BR {} (7)", manual.name));
    Page {
        path: format!("man7/{name}.7"),
        text: roff.finish(),
    }
}

fn types_section(section: &Section, roff: &mut Roff) {
    let mut begun = false;
    for item in &section.items {
        if matches!(item, Item::Function(_)) {
            continue;
        }
        if !begun {
            roff.section(&section.title);
            begun = true;
        }
        match item {
            Item::Function(_) => {}
            Item::Constant(entry) => {
                let label = format!("{} {}", bold(&entry.name), escape(&entry.value));
                roff.labelled(&label, &entry.text, &[]);
            }
            Item::Typedef(entry) => {
                let label = format!("{} ({})", bold(&entry.name), escape(&entry.value));
                roff.labelled(&label, &entry.text, &[]);
            }
            Item::Composite(composite) => composite_part(composite, roff),
        }
    }
}

fn composite_part(composite: &Composite, roff: &mut Roff) {
    roff.raw(&format!(".SS {}", composite.name));
    roff.text(&format!("{}.", composite.doc.brief), &[]);
    body(&composite.doc, &[], roff);
    if !composite.code[0].contains("enum") {
        roff.code(composite.code.iter().map(String::as_str));
    }
    for member in &composite.members {
        let label = if composite.code[0].contains("enum") {
            format!("{} {}", bold(&member.name), escape(&member.value))
        } else {
            italic(&member.name)
        };
        roff.labelled(&label, &member.text, &[]);
    }
}

fn function_page(
    manual: &Manual,
    header: &Header,
    function: &Function,
    programs: &[Program],
    roff: &mut Roff,
) {
    let args: Vec<&str> = function
        .args
        .iter()
        .map(|(_, name)| name.as_str())
        .collect();
    let doc = &function.doc;
    roff.section("Name");
    roff.raw(&format!(
        "{} \\- {}",
        function.name,
        escape(&lower_first(&doc.brief))
    ));
    roff.section("Synopsis");
    synopsis(header, function, roff);
    roff.section("Description");
    roff.text(&format!("{}.", doc.brief), &args);
    body(doc, &args, roff);
    if !doc.params.is_empty() {
        roff.section("Parameters");
        parameters(doc, &args, roff);
    }
    roff.section("Return value");
    results(doc, &args, roff);
    roff.section("Blocking");
    roff.text(&blocking(doc.blocks.as_deref().unwrap_or_default()), &args);
    roff.section("Threads");
    roff.text(&threads(doc.threads.as_deref().unwrap_or_default()), &args);
    notes(doc, &args, roff);
    if let Some((program, lines)) = call_of(&function.name, programs) {
        roff.section("Examples");
        roff.raw(&format!(
            "From {program}, which is installed in share/doc/lintel/examples:"
        ));
        roff.code(lines);
    }
    see_also(manual, doc, roff);
}

fn notes(doc: &Doc, args: &[&str], roff: &mut Roff) {
    if doc.notes.is_empty() {
        return;
    }
    roff.section("Notes");
    for note in &doc.notes {
        roff.raw(".PP");
        roff.text(note, args);
    }
}

fn see_also(manual: &Manual, doc: &Doc, roff: &mut Roff) {
    roff.section("See also");
    for name in &doc.see {
        roff.raw(&format!(".BR {name} ({}),", manual.functions));
    }
    roff.raw(&format!(".BR {} (7),", manual.name));
    roff.raw(&format!(".BR {} (7)", manual.types()));
}

fn synopsis(header: &Header, function: &Function, roff: &mut Roff) {
    roff.raw(".nf");
    roff.raw(&format!(".B #include <{}>", header.file));
    roff.raw(".PP");
    let head = format!("{}{}(", spaced(&function.result), function.name);
    let Some(last) = function.args.len().checked_sub(1) else {
        roff.raw(&bold(&format!("{head}void);")));
        roff.raw(".fi");
        return;
    };
    for (i, (ctype, name)) in function.args.iter().enumerate() {
        let lead = if i == 0 { head.clone() } else { " ".repeat(8) };
        let end = if i == last { ");" } else { "," };
        let before = format!("{lead}{}", spaced(ctype));
        roff.raw(&format!("{}{}{}", bold(&before), italic(name), bold(end)));
    }
    roff.raw(".fi");
}

/// A type, ready for a name to follow.
fn spaced(ctype: &str) -> String {
    if ctype.ends_with('*') {
        ctype.into()
    } else {
        format!("{ctype} ")
    }
}

fn body(doc: &Doc, args: &[&str], roff: &mut Roff) {
    for block in &doc.body {
        match block {
            Block::Paragraph(text) => {
                roff.raw(".PP");
                roff.text(text, args);
            }
            Block::Item(text) => {
                roff.raw(".IP \\(bu 2");
                roff.text(text, args);
            }
        }
    }
}

fn parameters(doc: &Doc, args: &[&str], roff: &mut Roff) {
    for param in &doc.params {
        let names: Vec<String> = param.names.iter().map(|name| italic(name)).collect();
        let mark = if param.output { " (output)" } else { "" };
        let label = format!("{}{mark}", names.join(", "));
        roff.labelled(&label, &sentence(&param.text), args);
    }
}

fn results(doc: &Doc, args: &[&str], roff: &mut Roff) {
    if doc.returns.is_empty() {
        roff.raw("None.");
    }
    for result in &doc.returns {
        match &result.code {
            Some(code) => roff.labelled(&bold(code), &sentence(&result.text), args),
            None => roff.text(&sentence(&result.text), args),
        }
    }
}

fn blocking(text: &str) -> String {
    match text.strip_prefix("never") {
        Some("") => "It never blocks.".into(),
        Some(rest) => sentence(&format!("It never blocks{rest}")),
        None => sentence(&format!("It blocks {text}")),
    }
}

fn threads(text: &str) -> String {
    match text.strip_prefix("safe") {
        Some("") => "Any thread may call it at any time.".into(),
        Some(rest) => sentence(&format!("Any thread may call it at any time{rest}")),
        None => sentence(text),
    }
}

/// Text as a sentence: a capital first, unless a name begins it, and a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let name = text.starts_with("ptl") || text.starts_with("cci_");
    let mut out: String = match chars.next() {
        Some(first) if !name => first.to_uppercase().chain(chars).collect(),
        _ => text.into(),
    };
    if !out.ends_with(['.', '!', '?']) {
        out.push('.');
    }
    out
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_begins_a_sentence_stays_as_it_is() {
        assert_eq!(
            sentence("ptljob_init is missing"),
            "ptljob_init is missing."
        );
    }

    #[test]
    fn short_tags_become_sentences() {
        assert_eq!(blocking("never"), "It never blocks.");
        assert_eq!(blocking("until x"), "It blocks until x.");
        assert_eq!(
            threads("safe; once"),
            "Any thread may call it at any time; once."
        );
    }
}
