//! Writes the manual pages of C headers: `lintel-mangen --header include/portals4.h --out DIR`.
#![forbid(unsafe_code)]

use lintel_mangen::{Header, pages};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage: lintel-mangen --header FILE | --include DIR ... --out DIR
Writes DIR/man3/*.3 and DIR/man7/*.7 from the comments of C headers: of those named, and of all in
the folders named.";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.iter().any(|arg| arg == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let Some((headers, out)) = parse(args) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match write(&headers, &out) {
        Ok(count) => {
            println!("{count} pages in {}", out.display());
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("lintel-mangen: {message}");
            ExitCode::FAILURE
        }
    }
}

fn parse(args: Vec<String>) -> Option<(Vec<PathBuf>, PathBuf)> {
    let mut headers = Vec::new();
    let mut out = None;
    let mut args = args.into_iter();
    while let Some(option) = args.next() {
        let value = PathBuf::from(args.next()?);
        match option.as_str() {
            "--header" => headers.push(value),
            "--include" => headers.extend(headers_in(&value)),
            "--out" => out = Some(value),
            _ => return None,
        }
    }
    out.filter(|_| !headers.is_empty())
        .map(|out| (headers, out))
}

/// The headers of a folder, in the order of their names.
fn headers_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut headers: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "h"))
        .collect();
    headers.sort();
    headers
}

fn write(paths: &[PathBuf], out: &Path) -> Result<usize, String> {
    let mut headers = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let header = Header::parse(&file, &text).map_err(|e| e.to_string())?;
        // One that only includes another declares nothing itself.
        if !header.sections.is_empty() {
            headers.push(header);
        }
    }
    let pages = pages(&headers, env!("CARGO_PKG_VERSION"));
    for page in &pages {
        let path = out.join(&page.path);
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, &page.text));
        written.map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(pages.len())
}
