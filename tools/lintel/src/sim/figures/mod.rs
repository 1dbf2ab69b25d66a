//! The papers' figures, and one table of published and simulated points.

mod page;
mod seastar;
mod triggered;
mod verbs;

use std::path::Path;

use lintel_sim_seastar::figures::{How, number};

use super::progress;
use crate::error::{Error, Result};
use crate::output;
use crate::plot;
use crate::plot::chart::{self, Scale, Series, Stroke};
use crate::report::{aligned, write_to};

/// A figure that can be drawn.
pub struct Drawing {
    /// What it is called on the command line, and its file.
    pub name: &'static str,
    /// The title above the figure.
    pub title: &'static str,
    /// Simulates the figure's points.
    draw: Box<dyn Fn() -> Result<Sheet>>,
}

/// What a figure shows, before it is drawn.
pub struct Sheet {
    x: (&'static str, Scale),
    y: (String, Scale),
    curves: Vec<Curve>,
    /// What goes with them into tables only.
    undrawn: Vec<Curve>,
    published: Vec<Mark>,
    /// What the legend calls those points: "published", or where they come from.
    reference: &'static str,
}

/// A point that is published, of a curve.
pub struct Mark {
    /// The curve's place among the others.
    curve: usize,
    x: f64,
    y: f64,
}

/// A line of it.
pub struct Curve {
    label: String,
    points: Vec<(f64, f64)>,
}

/// A published point and its simulated one.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// Where it is published.
    pub source: String,
    /// The quantity that is compared.
    pub what: String,
    /// The unit of both values.
    pub unit: String,
    /// The value that it is compared with, as it is published.
    pub published: String,
    /// What comes out here.
    pub simulated: f64,
    /// How far it is off, or that it is within what is published.
    pub difference: String,
    /// How it comes about.
    pub how: How,
    /// Whether it is as published to a tenth, or within what is published.
    pub is_close: bool,
    /// Why it isn't, or what it depends on.
    pub cause: String,
}

/// Every figure of every publication.
pub fn list() -> Vec<Drawing> {
    let mut all = seastar::figures();
    all.extend(verbs::figures());
    all.extend(triggered::figures());
    all
}

/// Draws one figure, and prints its points.
pub fn one(name: &str, directory: &Path, csv: Option<&str>) -> Result<()> {
    let all = list();
    let Some(drawing) = all.iter().find(|drawing| drawing.name == name) else {
        let names: Vec<&str> = all.iter().map(|drawing| drawing.name).collect();
        let names = names.join(", ");
        return Err(Error::Usage(format!(
            "no figure is called {name}; there are {names}"
        )));
    };
    let sheet = (drawing.draw)()?;
    let lines = sheet.lines();
    if deliver(&lines, csv)? {
        let left = vec![false; lines[0].len()];
        output::print(&format!("{}\n{}", drawing.title, aligned(&lines, &left)))?;
    }
    sheet.write(drawing, directory)
}

/// Draws all figures, and prints every published point beside the simulated one.
pub fn all(directory: &Path, csv: Option<&str>) -> Result<()> {
    let drawings = list();
    let steps = progress::StepProgress::new(drawings.len() + TABLES.len());
    let mut points = Vec::new();
    for (what, table) in TABLES {
        steps.announce(what);
        points.extend(table()?);
    }
    // The table comes first: it is there even if the drawing is interrupted.
    let lines = compared(&points);
    page::write_table(&lines, directory)?;
    steps.pause(|| {
        let left = [true, true, true, false, false, false, true, true];
        if deliver(&lines, csv)? {
            output::print(&(aligned(&lines, &left) + &counted(&points)))?;
        }
        Ok::<(), Error>(())
    })?;
    for drawing in &drawings {
        steps.announce(drawing.title);
        let sheet = (drawing.draw)()?;
        plot::write(drawing.name, &[sheet.chart(drawing.title)], directory)?;
        let name = format!("{}.csv", drawing.name);
        page::write(directory, &name, &csv_of(&sheet.lines()))?;
    }
    page::write_index(&drawings, &lines, &counted(&points), directory)?;
    steps.finish();
    if csv != Some("-") {
        let page = directory.join("figures.md");
        let (count, page) = (drawings.len(), page.display());
        output::print(&format!("{count} figures, shown by {page}\n"))?;
    }
    Ok(())
}

/// Simulates the points that a seed published.
type Points = fn() -> Result<Vec<Compared>>;

/// Points by what they are of.
const TABLES: [(&str, Points); 3] = [
    ("SeaStar's points", seastar::points),
    ("the adapters' points", verbs::points),
    ("triggered operations' points", triggered::points),
];

impl Sheet {
    fn write(&self, drawing: &Drawing, directory: &Path) -> Result<()> {
        let chart = self.chart(drawing.title);
        plot::list(&plot::write(drawing.name, &[chart], directory)?)
    }

    fn chart(&self, title: &str) -> chart::Figure {
        let (x, y) = (self.x, &self.y);
        let mut figure = chart::Figure::new(title, x, (&y.0, y.1));
        for (colour, curve) in self.curves.iter().enumerate() {
            // Dashes distinguish lines that coincide.
            let dash = colour % 3;
            let stroke = Stroke::Styled { colour, dash };
            figure.add(Series::new(&curve.label, stroke, curve.points.clone()));
        }
        for (colour, curve) in self.curves.iter().enumerate() {
            let of_curve = self.published.iter().filter(|mark| mark.curve == colour);
            let points = of_curve.map(|mark| (mark.x, mark.y)).collect();
            let label = format!("{}, {}", curve.label, self.reference);
            figure.add(Series::new(&label, Stroke::Points(colour), points));
        }
        figure
    }

    /// A header, and a line for each x.
    fn lines(&self) -> Vec<Vec<String>> {
        let curves = || self.curves.iter().chain(&self.undrawn);
        let labels = curves().map(|curve| curve.label.clone());
        let mut lines = vec![
            [self.x.0.to_string()]
                .into_iter()
                .chain(labels)
                .collect::<Vec<_>>(),
        ];
        let mut places: Vec<f64> = curves()
            .flat_map(|curve| curve.points.iter().map(|point| point.0))
            .collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        for place in places {
            let mut line = vec![format!("{place}")];
            line.extend(curves().map(|curve| {
                let found = curve.points.iter().find(|point| point.0 == place);
                found
                    .map(|point| format!("{:.3}", point.1))
                    .unwrap_or_default()
            }));
            lines.push(line);
        }
        lines
    }
}

/// Writes lines as CSV if that is wanted; returns whether standard output is free for people.
fn deliver(lines: &[Vec<String>], place: Option<&str>) -> Result<bool> {
    let Some(place) = place else {
        return Ok(true);
    };
    write_to(place, &csv_of(lines))?;
    Ok(place != "-")
}

fn csv_of(lines: &[Vec<String>]) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer.write_record(line).expect("memory takes it");
    }
    writer.into_inner().expect("memory takes it")
}

fn compared(points: &[Compared]) -> Vec<Vec<String>> {
    let header = [
        "source",
        "what",
        "unit",
        "reference",
        "simulated",
        "difference",
        "how",
        "why",
    ];
    let mut lines = vec![header.map(String::from).to_vec()];
    lines.extend(points.iter().map(|point| {
        vec![
            point.source.clone(),
            point.what.clone(),
            point.unit.clone(),
            point.published.clone(),
            number(point.simulated),
            point.difference.clone(),
            point.how.to_string(),
            point.cause.clone(),
        ]
    }));
    lines
}

/// How many points come out, by how they come about.
fn counted(points: &[Compared]) -> String {
    let of = |how| points.iter().filter(move |point| point.how == how);
    let predicted = of(How::Predicted).count();
    let close = of(How::Predicted).filter(|point| point.is_close).count();
    let (depend, fitted) = (of(How::Depends).count(), of(How::Fitted).count());
    let calibrated = of(How::Calibrated).count();
    let (set, again) = (of(How::Set).count(), of(How::Regenerated).count());
    format!(
        "{} points: of {predicted} predicted, {close} are within 10 %; {fitted} are fitted, \
         {calibrated} calibrated, {set} set, {depend} depend on choices made here, {again} compare \
         with a run of a public simulator.\n",
        points.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_a_name_of_its_own() {
        let mut names: Vec<&str> = list().iter().map(|drawing| drawing.name).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_figure_that_nobody_knows_is_reported_with_those_that_there_are() {
        let error = one("seed-9", Path::new("."), None)
            .expect_err("unknown")
            .to_string();
        assert!(
            error.starts_with("no figure is called seed-9; there are seed-001-3, "),
            "{error}"
        );
    }

    #[test]
    fn the_adapters_figure_is_drawn_with_its_published_point() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (plots, rows) = (folder.path().join("plots"), folder.path().join("rows.csv"));
        one("seed-003-latency", &plots, Some(&rows.to_string_lossy())).expect("drawn");
        let svg = std::fs::read_to_string(plots.join("seed-003-latency.svg")).expect("there");
        assert!(svg.contains("\nRC, published\n") && svg.contains("\nXRC\n"));
        assert!(rows.is_file());
    }
}
