//! A scenario, and the points that it has.

use crate::config_error::ConfigError;
use crate::document::Document;
use crate::machine::Setup;
use crate::plot::Plot;
use crate::reader::Reader;
use crate::run::Run;
use crate::span::Observer;

/// A file's machine and workload, with all that varies.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it is for, in a line.
    pub about: String,
    /// Each combination of the values of lists, those of the last one changing first.
    pub points: Vec<Point>,
    /// How it is drawn.
    pub plot: Option<Plot>,
}

/// One combination of a scenario's values: one simulation.
#[derive(Clone, Debug)]
pub struct Point {
    /// Settings that vary, with the values that they have here.
    pub varied: Vec<(String, String)>,
    setup: Setup,
}

impl Scenario {
    /// Reads a scenario; `file` is its name in mistakes.
    ///
    /// # Errors
    ///
    /// What is no setting, or has a value that it doesn't take.
    pub fn parse(file: &str, text: &str) -> Result<Scenario, ConfigError> {
        let document = Document::parse(file, text)?;
        document.check_tables(&["machine", "workload", "plot"])?;
        let choices = choices(&document)?;
        let mut about = String::new();
        let mut points = Vec::new();
        for choice in &choices {
            let reader = Reader::new(&document, choice);
            about = reader.text("about")?.unwrap_or_default().to_string();
            let setup = Setup::read(&reader)?;
            reader.check_all_asked()?;
            points.push(Point {
                varied: varied(&document, choice),
                setup,
            });
        }
        let plot = Plot::read(&document, &about)?;
        if let Some(Plot { x: (x, _), .. }) = &plot {
            if !document.is_list_of_numbers(x) {
                let what = format!("plot.x is {x:?}; it takes a setting that is a list of numbers");
                return Err(document.error("plot.x", what));
            }
        }
        Ok(Scenario {
            about,
            points,
            plot,
        })
    }
}

impl Point {
    /// A file that the point needs the text of.
    pub fn file(&self) -> Option<&str> {
        self.setup.file()
    }

    /// The value of a setting that varies.
    pub fn value(&self, path: &str) -> Option<&str> {
        let found = self.varied.iter().find(|(name, _)| name == path);
        found.map(|(_, value)| value.as_str())
    }

    /// A simulation at its start. `text` is that of [`Point::file`]; the observer receives
    /// of spans.
    ///
    /// # Errors
    ///
    /// What can't be simulated, in a sentence.
    pub fn prepare(
        &self,
        text: Option<&str>,
        observer: Option<Observer>,
    ) -> Result<Box<dyn Run>, String> {
        self.setup.prepare(text, observer)
    }
}

/// For each point, which value of each setting.
fn choices(document: &Document) -> Result<Vec<Vec<usize>>, ConfigError> {
    let mut all = vec![Vec::new()];
    for setting in &document.settings {
        let count = match setting.path.starts_with("plot.") {
            true => 1,
            false => setting.values.len(),
        };
        if all.len() * count > MOST_POINTS {
            let what = format!(
                "{} makes more than {MOST_POINTS} combinations; take fewer values",
                setting.path
            );
            return Err(document.error(&setting.path, what));
        }
        all = all
            .into_iter()
            .flat_map(|before| {
                (0..count).map(move |at| {
                    let mut choice = before.clone();
                    choice.push(at);
                    choice
                })
            })
            .collect();
    }
    Ok(all)
}

fn varied(document: &Document, choice: &[usize]) -> Vec<(String, String)> {
    let settings = document.settings.iter().zip(choice);
    settings
        .filter(|(s, _)| s.values.len() > 1 && !s.path.starts_with("plot."))
        .map(|(s, &at)| (s.path.clone(), s.values[at].show()))
        .collect()
}

/// More simulations than a sweep can sensibly have.
const MOST_POINTS: usize = 10_000;
