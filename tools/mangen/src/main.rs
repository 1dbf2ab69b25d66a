//! Writes the manual pages of C headers:
//! `lintel-mangen --manual portals4 --include include --header portals4.h --out DIR`.
#![forbid(unsafe_code)]

use lintel_mangen::{Header, Manual, Program, pages};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: lintel-mangen --manual NAME --include DIR --header FILE ...
           [--examples DIR] --out DIR
Writes DIR/man3 and DIR/man7 from the comments of C headers, which are named as programs include
them. Pages show the calls of the C programs in DIR. Manuals: portals4, portals3, cci.";

/// What the command line asks for.
struct Options {
    manual: Manual,
    include: PathBuf,
    headers: Vec<String>,
    examples: Option<PathBuf>,
    out: PathBuf,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some(options) = parse(args) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match write(&options) {
        Ok(count) => {
            println!("{count} pages in {}", options.out.display());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("lintel-mangen: {message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: Vec<String>) -> Option<Options> {
    let (mut manual, mut include, mut examples, mut out) = (None, None, None, None);
    let mut headers = Vec::new();
    let mut args = args.into_iter();
    while let Some(option) = args.next() {
        let value = args.next()?;
        match option.as_str() {
            "--manual" => manual = Some(Manual::named(&value)?),
            "--include" => include = Some(PathBuf::from(value)),
            "--header" => headers.push(value),
            "--examples" => examples = Some(PathBuf::from(value)),
            "--out" => out = Some(PathBuf::from(value)),
            _ => return None,
        }
    }
    Some(Options {
        manual: manual?,
        include: include?,
        headers,
        examples,
        out: out?,
    })
}

fn write(options: &Options) -> Result<usize, String> {
    let mut headers = Vec::new();
    for file in &options.headers {
        let path = options.include.join(file);
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        headers.push(Header::parse(file, &text).map_err(|e| e.to_string())?);
    }
    let programs = match &options.examples {
        Some(folder) => programs(folder).map_err(|e| format!("{}: {e}", folder.display()))?,
        None => Vec::new(),
    };
    let pages = pages(
        &options.manual,
        &headers,
        &programs,
        env!("CARGO_PKG_VERSION"),
    );
    for page in &pages {
        write_page(&options.out.join(&page.path), &page.text)?;
    }
    Ok(pages.len())
}

/// The C programs of a folder, by name.
fn programs(folder: &Path) -> std::io::Result<Vec<Program>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|ending| ending == "c" || ending == "h")
        {
            let name = path.file_name().unwrap_or_default();
            found.push(Program {
                name: name.to_string_lossy().into_owned(),
                text: std::fs::read_to_string(&path)?,
            });
        }
    }
    // Programs before the header that they share.
    found.sort_by_key(|program| (program.name.ends_with(".h"), program.name.clone()));
    Ok(found)
}

fn write_page(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(|e| format!("{}: {e}", path.display()))
}
