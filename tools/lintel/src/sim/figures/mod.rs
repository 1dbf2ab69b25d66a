//! The papers' figures, and one table of published and simulated points.

use std::path::Path;

use crate::error::{Error, Result};
use crate::plot::{self, chart};
use crate::report::{aligned, write_to};

/// A figure that can be drawn.
#[derive(Clone, Copy)]
pub struct Drawing {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Simulates it.
    draw: fn(&str) -> Result<Drawn>,
}

/// A drawn figure, with the points that are published.
pub struct Drawn {
    /// Side by side.
    pub charts: Vec<chart::Figure>,
    /// Its points.
    pub points: Vec<Compared>,
}

/// A published point and its simulated one.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Where it is published.
    pub source: String,
    /// What it is.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// What is published, as it is published.
    pub published: String,
    /// What comes out here.
    pub simulated: f64,
    /// The part by which it is off; none where only a bound is published.
    pub difference: Option<f64>,
    /// Whether a constant was chosen to make it come out.
    pub fitted: bool,
}

/// Every figure.
pub fn all() -> Vec<Drawing> {
    Vec::new()
}

/// A figure by its name.
pub fn named(name: &str) -> Result<Drawing> {
    let all = all();
    let found = all.iter().find(|figure| figure.name == name);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|figure| figure.name).collect();
        Error::Usage(format!(
            "no figure is called {name}; there are {}",
            names.join(", ")
        ))
    })
}

/// Draws figures into `directory`, and prints the table of their points.
pub fn draw(figures: &[Drawing], directory: &Path, csv: Option<&str>) -> Result<()> {
    let mut points = Vec::new();
    let mut files = Vec::new();
    for figure in figures {
        let drawn = (figure.draw)(figure.name)?;
        files.extend(plot::write(figure.name, &drawn.charts, directory)?);
        points.extend(drawn.points);
    }
    let lines = lines(&points);
    if let Some(place) = csv {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for line in &lines {
            writer.write_record(line).expect("memory takes it");
        }
        write_to(place, &writer.into_inner().expect("memory takes it"))?;
        if place == "-" {
            return Ok(());
        }
    }
    let left = [true, true, true, false, false, false, true];
    print!("{}", aligned(&lines, &left));
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}

fn lines(points: &[Compared]) -> Vec<Vec<String>> {
    let header = [
        "source",
        "what",
        "unit",
        "published",
        "simulated",
        "difference",
        "",
    ];
    let mut lines = vec![header.map(String::from).to_vec()];
    lines.extend(points.iter().map(|point| {
        let difference = point
            .difference
            .map(|part| format!("{:+.1} %", 100.0 * part));
        let how = if point.fitted { "fitted" } else { "predicted" };
        vec![
            point.source.clone(),
            point.what.clone(),
            point.unit.into(),
            point.published.clone(),
            format!("{:.3}", point.simulated),
            difference.unwrap_or_default(),
            how.into(),
        ]
    }));
    lines
}
