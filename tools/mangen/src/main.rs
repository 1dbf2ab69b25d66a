//! Writes the manual pages of C headers:
//! `lintel-mangen --manual portals4 --include include --header portals4.h --out DIR`.
#![forbid(unsafe_code)]

use lintel_mangen::{Header, Manual, pages};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: lintel-mangen --manual NAME --include DIR --header FILE ... --out DIR
Writes DIR/man3 and DIR/man7 from the comments of C headers, which are named as programs include
them. Manuals: portals4, portals3, cci.";

/// What the command line asks for.
struct Options {
    manual: Manual,
    include: PathBuf,
    headers: Vec<String>,
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
    let (mut manual, mut include, mut out) = (None, None, None);
    let mut headers = Vec::new();
    let mut args = args.into_iter();
    while let Some(option) = args.next() {
        let value = args.next()?;
        match option.as_str() {
            "--manual" => manual = Some(Manual::named(&value)?),
            "--include" => include = Some(PathBuf::from(value)),
            "--header" => headers.push(value),
            "--out" => out = Some(PathBuf::from(value)),
            _ => return None,
        }
    }
    Some(Options {
        manual: manual?,
        include: include?,
        headers,
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
    let pages = pages(&options.manual, &headers, env!("CARGO_PKG_VERSION"));
    for page in &pages {
        write_page(&options.out.join(&page.path), &page.text)?;
    }
    Ok(pages.len())
}

fn write_page(path: &Path, text: &str) -> Result<(), String> {
    let folder = path.parent().unwrap_or(path);
    let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(path, text));
    written.map_err(|e| format!("{}: {e}", path.display()))
}
