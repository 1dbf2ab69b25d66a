//! A look at the book in a browser: mdbook makes its pages, headless Chromium lays each of them out
//! in a window and on a phone's screen, and takes a picture of one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::dist;
use crate::report::{Outcome, Report};
use crate::shell::{self, Tree};

/// Looks at each page in a frame, and writes down what it found.
const LOOK: &str = include_str!("browser.html");
/// The page of which a picture is taken.
const PICTURED: &str = "observing.html";
/// The mdbook that is installed under `target` where `PATH` has none.
const MDBOOK: &str = "mdbook@0.5.4";
/// How long the browser may take.
const LIMIT: Duration = Duration::from_secs(120);
/// Pixels below which a page has no text.
const EMPTY: u64 = 100;

/// Checks every page, unless there is no Chromium.
pub fn run(tree: &Tree, report: &mut Report) {
    match shell::find_program("chromium") {
        Some(_) => {
            report.check("book: in a browser", || look(tree));
        }
        None => report.not_applicable("book: in a browser (needs chromium)"),
    }
}

fn look(tree: &Tree) -> Outcome {
    let folder = tree.fresh_folder("book/browser")?;
    let pages = folder.join("pages");
    super::render(&installed(tree)?, &super::stage(tree, &folder)?, &pages)?;
    let names = super::chapters(tree);
    let names = names
        .iter()
        .map(|path| format!("{}.html", super::stem(path)));
    let names: Vec<String> = names.filter(|name| name != "SUMMARY.html").collect();
    let list = Value::from(names).to_string();
    dist::write(
        &pages.join("look.html"),
        &LOOK.replace("(const page of PAGES)", &format!("(const page of {list})")),
    )?;

    let shown = folder.join("look.out");
    browse(&folder, &["--dump-dom"], &pages.join("look.html"), &shown)?;
    let found = found(&shell::read(&shown)?)?;
    let faults = faults(&found, |name| pages.join(name).is_file());
    let picture = folder.join("page.png");
    let words = [
        "--window-size=1280,1600",
        &format!("--screenshot={}", picture.display()),
    ];
    browse(
        &folder,
        &words,
        &pages.join(PICTURED),
        &folder.join("picture.out"),
    )?;
    println!("   {PICTURED} is in {}", picture.display());
    match faults.is_empty() && picture.is_file() {
        true => Ok(()),
        false => Err(faults.join("\n        ")),
    }
}

/// mdbook, which is compiled if it isn't there yet.
fn installed(tree: &Tree) -> Result<PathBuf, String> {
    if let Some(mdbook) = super::renderer(tree) {
        return Ok(mdbook);
    }
    // Soon built; the book has few pages.
    let words = ["install", "--quiet", "--debug", "--locked", MDBOOK];
    let features = ["--no-default-features", "--features", "search", "--root"];
    let root = tree.path(super::TOOLS);
    shell::run(tree.cargo().args(words).args(features).arg(root))?;
    super::renderer(tree).ok_or_else(|| format!("cargo install {MDBOOK} has left no program"))
}

/// Opens a page in Chromium, whose stdout goes to a file.
fn browse(folder: &Path, words: &[&str], page: &Path, out: &Path) -> Outcome {
    let file = |path: &Path| File::create(path).map_err(|e| format!("{}: {e}", path.display()));
    let messages = folder.join("chromium.err");
    // Its pages are our own, and a container has no sandbox to offer. Frames of other files count
    // as another site's, unless that is turned off.
    let mut chromium = Command::new("chromium");
    chromium
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-web-security",
        ])
        .arg("--virtual-time-budget=60000")
        .arg(format!(
            "--user-data-dir={}",
            folder.join("profile").display()
        ))
        .args(words)
        .arg(format!("file://{}", page.display()))
        .stdin(Stdio::null())
        .stdout(file(out)?)
        .stderr(file(&messages)?);
    shell::run_within(&mut chromium, LIMIT)
        .map_err(|wrong| format!("{wrong}; its messages are in {}", messages.display()))
}

/// What the page has written, out of the document that Chromium prints.
fn found(document: &str) -> Result<Vec<Value>, String> {
    let text = document
        .split_once("<pre id=\"found\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .map(|(text, _)| {
            text.replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&amp;", "&")
        });
    let text = text.ok_or("Chromium has printed no document")?;
    serde_json::from_str(&text).map_err(|e| format!("the look into the pages didn't end: {e}"))
}

/// What is wrong with the pages; `exists` knows files that aren't among them.
fn faults(found: &[Value], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let texts = |value: &Value| -> Vec<String> {
        let all = value.as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(String::from).collect()
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let ids = found
        .iter()
        .map(|page| (text(&page["page"]), texts(&page["ids"])));
    let ids: BTreeMap<String, Vec<String>> = ids.collect();
    let leads_somewhere = |link: &[String]| match link {
        [file, fragment] => match ids.get(file) {
            Some(ids) => fragment.is_empty() || ids.contains(fragment),
            None => exists(file),
        },
        _ => false,
    };
    let mut faults = BTreeSet::new();
    for page in found {
        let mut fault = |what: String| {
            faults.insert(format!(
                "{}, {} px wide: {what}",
                text(&page["page"]),
                page["width"]
            ));
        };
        if page["heading"] == "" || page["height"].as_u64() < Some(EMPTY) {
            fault("it is empty".into());
        }
        if page["chapters_listed"].as_u64() < Some(2) {
            fault("the list of chapters is missing".into());
        }
        if page["blocks"] != page["blocks_highlighted"] {
            fault("blocks of code aren't highlighted".into());
        }
        for picture in texts(&page["pictures_missing"]) {
            fault(format!("the picture {picture} doesn't show"));
        }
        for part in texts(&page["too_wide"]) {
            fault(format!("{part:?} is wider than the page"));
        }
        let links = page["links"].as_array().into_iter().flatten().map(texts);
        for link in links.filter(|link| !leads_somewhere(link)) {
            fault(format!(
                "a link leads to {}, which isn't there",
                link.join("#")
            ));
        }
    }
    faults.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(name: &str) -> Value {
        json!({
            "page": name, "width": 390, "heading": "One", "height": 500, "chapters_listed": 9,
            "ids": ["start"], "links": [["two.html", ""], ["index.html", ""]], "blocks": 1,
            "blocks_highlighted": 1, "pictures_missing": [], "too_wide": [],
        })
    }

    fn of(page_of_one: Value) -> Vec<String> {
        faults(&[page_of_one, page("two.html")], |name| {
            name == "index.html"
        })
    }

    #[test]
    fn a_page_without_fault_passes() {
        assert_eq!(of(page("one.html")), Vec::<String>::new());
    }

    #[test]
    fn each_fault_of_a_page_is_named() {
        let cases = [
            ("heading", json!(""), "empty"),
            ("height", json!(23), "empty"),
            ("chapters_listed", json!(0), "chapters"),
            ("blocks_highlighted", json!(0), "highlighted"),
            ("pictures_missing", json!(["top.png"]), "top.png"),
            ("too_wide", json!(["a table"]), "a table"),
            ("links", json!([["two.html", "end"]]), "two.html#end"),
            ("links", json!([["three.html", ""]]), "three.html"),
        ];
        for (key, value, expected) in cases {
            let mut one = page("one.html");
            one[key] = value;
            let faults = of(one);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(
                faults[0].starts_with("one.html, 390 px") && faults[0].contains(expected),
                "{faults:?}"
            );
        }
    }

    #[test]
    fn what_the_page_has_written_is_read_out_of_the_document() {
        let document = "<p><pre id=\"found\">[{\"page\":\"a &lt;b&gt; &amp;amp;\"}]</pre>";
        assert_eq!(
            found(document).map(|all| all[0]["page"].clone()),
            Ok(json!("a <b> &amp;"))
        );
        assert!(found("<pre id=\"found\"></pre>").is_err(), "it didn't end");
    }
}
