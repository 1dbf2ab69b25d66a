//! A TOML file as settings: each with its path, its line and its values.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::config_error::ConfigError;

/// A file's settings, in the order of their lines.
#[derive(Clone, Debug)]
pub(crate) struct Document {
    pub(crate) file: String,
    pub(crate) settings: Vec<Setting>,
}

/// A key with its value, or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// Tables and key, with dots between.
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) values: Vec<Scalar>,
}

/// A value of a setting, or one of its list of values.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Scalar {
    Integer(i64),
    Float(f64),
    Text(String),
    Flag(bool),
}

impl Scalar {
    /// What kind of value it is, for people.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Scalar::Integer(_) => "a whole number",
            Scalar::Float(_) => "a number with a fraction",
            Scalar::Text(_) => "text",
            Scalar::Flag(_) => "true or false",
        }
    }

    /// As it would be written, text without quotes.
    pub(crate) fn show(&self) -> String {
        match self {
            Scalar::Integer(number) => number.to_string(),
            Scalar::Float(number) => number.to_string(),
            Scalar::Text(text) => text.clone(),
            Scalar::Flag(flag) => flag.to_string(),
        }
    }
}

impl Document {
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, ConfigError> {
        let line_of = |at: usize| 1 + text[..at].matches('\n').count();
        let table = DeTable::parse(text).map_err(|error| ConfigError {
            file: file.into(),
            line: error.span().map(|span| line_of(span.start)),
            what: match (error.message(), error.span()) {
                ("duplicate key", Some(span)) => format!("{} stands a second time", &text[span]),
                (other, _) => other.trim_end().replace('\n', ", "),
            },
        })?;
        let mut found = Vec::new();
        flatten(table.get_ref(), "", &mut found).map_err(|(at, what)| ConfigError {
            file: file.into(),
            line: Some(line_of(at)),
            what,
        })?;
        found.sort_by_key(|&(at, _, _)| at);
        let setting = |(at, path, values)| Setting {
            path,
            line: line_of(at),
            values,
        };
        Ok(Document {
            file: file.into(),
            settings: found.into_iter().map(setting).collect(),
        })
    }

    /// Whether none of these tables is a plain value.
    pub(crate) fn check_tables(&self, tables: &[&str]) -> Result<(), ConfigError> {
        for &table in tables {
            if self.settings.iter().any(|setting| setting.path == table) {
                let what = format!("{table} is a value; it takes a table, [{table}]");
                return Err(self.error(table, what));
            }
        }
        Ok(())
    }

    /// Whether there is such a setting, of several values that have places on an axis.
    pub(crate) fn is_list_of_numbers(&self, path: &str) -> bool {
        let is_number = |value: &Scalar| matches!(value, Scalar::Integer(_) | Scalar::Float(_));
        let setting = self.settings.iter().find(|s| s.path == path);
        setting.is_some_and(|s| s.values.len() > 1 && s.values.iter().all(is_number))
    }

    /// A mistake in the line of the setting at `path`, if it is set.
    pub(crate) fn error(&self, path: &str, what: String) -> ConfigError {
        let setting = self.settings.iter().find(|s| s.path == path);
        ConfigError {
            file: self.file.clone(),
            line: setting.map(|s| s.line),
            what,
        }
    }
}

/// Where it stands, its path, its values.
type Found = (usize, String, Vec<Scalar>);

fn flatten(
    table: &DeTable<'_>,
    above: &str,
    found: &mut Vec<Found>,
) -> Result<(), (usize, String)> {
    for (key, value) in table {
        let path = match above {
            "" => key.get_ref().to_string(),
            above => format!("{above}.{}", key.get_ref()),
        };
        let values = match value.get_ref() {
            DeValue::Table(table) => {
                flatten(table, &path, found)?;
                continue;
            }
            DeValue::Array(list) => list.iter().map(|v| scalar(v, &path)).collect(),
            _ => scalar(value, &path).map(|one| vec![one]),
        };
        let values = values?;
        let at = key.span().start;
        if values.is_empty() {
            return Err((
                at,
                format!("{path} is an empty list; it takes a value or more"),
            ));
        }
        found.push((at, path, values));
    }
    Ok(())
}

fn scalar(value: &Spanned<DeValue<'_>>, path: &str) -> Result<Scalar, (usize, String)> {
    let wrong = |what: &str| (value.span().start, format!("{path} is {what}"));
    match value.get_ref() {
        DeValue::String(text) => Ok(Scalar::Text(text.to_string())),
        DeValue::Boolean(flag) => Ok(Scalar::Flag(*flag)),
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
            .map(Scalar::Integer)
            .map_err(|_| wrong("above 2^63, which nothing takes")),
        DeValue::Float(digits) => digits
            .as_str()
            .parse()
            .map(Scalar::Float)
            .map_err(|_| wrong("no number")),
        DeValue::Datetime(_) => Err(wrong("a date, which nothing takes")),
        DeValue::Array(_) | DeValue::Table(_) => {
            Err(wrong("a list of lists or tables; it takes single values"))
        }
    }
}
