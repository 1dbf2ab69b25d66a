//! How a sweep is drawn.

use crate::config_error::{ConfigError, either};
use crate::document::{Document, Scalar};

/// How an axis is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Equal distances for equal differences.
    Linear,
    /// By powers of ten.
    Log,
    /// By powers of two, as sizes of messages.
    Sizes,
    /// By powers of two, as numbers.
    Powers,
}

/// A plot of a sweep: a figure over a setting, a line for each combination of the
/// other settings that vary.
#[derive(Clone, PartialEq, Debug)]
pub struct Plot {
    /// Printed above the plot.
    pub title: String,
    /// The setting along x, and how its axis is divided.
    pub x: (String, Scale),
    /// What stands below the x axis; the setting's own name otherwise.
    pub x_label: Option<String>,
    /// The figure along y.
    pub y: (String, Scale),
    /// Points that others have published.
    pub published: Vec<(f64, f64)>,
    /// The publication and the place in it.
    pub source: String,
}

impl Plot {
    /// The table `plot` of a scenario, if there is one.
    pub(crate) fn read(document: &Document, about: &str) -> Result<Option<Plot>, ConfigError> {
        let ours = |s: &&crate::document::Setting| s.path.starts_with("plot.");
        if document.settings.iter().find(ours).is_none() {
            return Ok(None);
        }
        for setting in document.settings.iter().filter(ours) {
            if !KEYS.contains(&&setting.path["plot.".len()..]) {
                let what = format!(
                    "{} is no setting here; plot takes {}",
                    setting.path,
                    either(&KEYS)
                );
                return Err(document.error(&setting.path, what));
            }
        }
        let table = Table(document);
        let (xs, ys) = (table.numbers("published_x")?, table.numbers("published_y")?);
        if xs.len() != ys.len() {
            let what = format!(
                "plot.published_y has {} values; it takes as many as plot.published_x, {}",
                ys.len(),
                xs.len()
            );
            return Err(document.error("plot.published_y", what));
        }
        Ok(Some(Plot {
            title: table.text("title")?.unwrap_or(about).to_string(),
            x: (
                table.must("x", "it takes a setting that is a list of numbers")?,
                table.scale("x_scale")?,
            ),
            x_label: table.text("x_label")?.map(String::from),
            y: (
                table.must("y", "it takes a figure of the results, such as \"all, µs\"")?,
                table.scale("y_scale")?,
            ),
            published: xs.into_iter().zip(ys).collect(),
            source: table.text("source")?.unwrap_or("published").to_string(),
        }))
    }
}

struct Table<'a>(&'a Document);

impl<'a> Table<'a> {
    fn values(&self, key: &str) -> &'a [Scalar] {
        let path = format!("plot.{key}");
        let found = self.0.settings.iter().find(|s| s.path == path);
        found.map_or(&[], |setting| &setting.values)
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, ConfigError> {
        match self.values(key) {
            [] => Ok(None),
            [Scalar::Text(text)] => Ok(Some(text)),
            _ => Err(self.wrong(key, "it takes a text")),
        }
    }

    fn must(&self, key: &str, takes: &str) -> Result<String, ConfigError> {
        let path = format!("plot.{key}");
        let missing = || self.0.error(&path, format!("{path} is missing; {takes}"));
        self.text(key)?.map(String::from).ok_or_else(missing)
    }

    fn numbers(&self, key: &str) -> Result<Vec<f64>, ConfigError> {
        let number = |value: &Scalar| match value {
            // Published figures are small: no float loses a digit of them.
            Scalar::Integer(number) => Ok(*number as f64),
            Scalar::Float(number) => Ok(*number),
            _ => Err(self.wrong(key, "it takes numbers")),
        };
        self.values(key).iter().map(number).collect()
    }

    fn scale(&self, key: &str) -> Result<Scale, ConfigError> {
        match self.text(key)? {
            None | Some("linear") => Ok(Scale::Linear),
            Some("log") => Ok(Scale::Log),
            Some("sizes") => Ok(Scale::Sizes),
            Some("powers") => Ok(Scale::Powers),
            Some(_) => Err(self.wrong(key, r#"it takes "linear", "log", "sizes" or "powers""#)),
        }
    }

    fn wrong(&self, key: &str, takes: &str) -> ConfigError {
        let path = format!("plot.{key}");
        self.0
            .error(&path, format!("{path} is something else; {takes}"))
    }
}

const KEYS: [&str; 9] = [
    "title",
    "x",
    "x_label",
    "x_scale",
    "y",
    "y_scale",
    "published_x",
    "published_y",
    "source",
];
