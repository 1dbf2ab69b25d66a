//! `lintel plot`: figures of what `lintel perf --json` wrote.
//!
//! [`figures`] decides what is shown, [`chart`] draws it as SVG, [`png`] turns that
//! into pixels with a font that is carried along: no font or library of the system is
//! needed.

mod axis;
pub(crate) mod chart;
mod figures;
mod png;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{During, Error, Result};
use crate::output;
use crate::report::Report;

/// Draws every figure for which `file` has rows into `directory`, as SVG and PNG, and
/// returns the files written.
///
/// # Errors
/// A file that isn't a report, a report without anything to draw, a directory that
/// can't be written.
pub fn run(file: &Path, directory: &Path) -> Result<Vec<PathBuf>> {
    let report = Report::read(file)?;
    let written = draw(&report, directory)?;
    match written.is_empty() {
        false => Ok(written),
        true => Err(Error::Usage(format!(
            "{} has no rows that make a figure",
            file.display()
        ))),
    }
}

/// Draws every figure for which `report` has rows, possibly none, into `directory`.
///
/// # Errors
/// A directory that can't be written.
pub fn draw(report: &Report, directory: &Path) -> Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (name, figures) in figures::of(report) {
        written.extend(write(name, &figures, directory)?);
    }
    Ok(written)
}

/// Prints the files written, one a line.
///
/// # Errors
/// Standard output can't be written.
pub fn list(written: &[PathBuf]) -> Result<()> {
    let lines = written.iter().map(|path| format!("{}\n", path.display()));
    output::print(&lines.collect::<String>())
}

/// Draws a sheet of figures into `directory`, as SVG and PNG.
///
/// # Errors
/// A directory that can't be written.
pub(crate) fn write(
    name: &str,
    figures: &[chart::Figure],
    directory: &Path,
) -> Result<Vec<PathBuf>> {
    fs::create_dir_all(directory).during(format!("making {}", directory.display()))?;
    let svg = chart::draw(figures)?;
    let pixels = png::render(&svg)?;
    let mut written = Vec::new();
    for (ending, bytes) in [("svg", svg.as_bytes()), ("png", &pixels)] {
        let path = directory.join(format!("{name}.{ending}"));
        fs::write(&path, bytes).during(format!("writing {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}
