//! What a measurement found: rows, with all that is needed to repeat it.

pub mod connections;
mod csv;
pub mod names;
mod table;
pub mod targets;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::error::{During, Error, Result};
use crate::harness::{Outcome, Shortened};
use crate::machine::Machine;
use crate::output;
use crate::stats::Times;

pub(crate) use table::aligned;
pub use table::{line, network, size as table_size};

/// The file that `lintel perf --json` writes and `lintel plot` reads.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// Version of the measuring program.
    pub lintel: String,
    /// Seconds since 1970 at the start.
    pub started: u64,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// Every option with the value used, given or default.
    pub options: serde_json::Value,
    /// The machine that was measured.
    pub machine: Machine,
    /// `PTL_*` and `LINTEL_*` variables that were set.
    pub environment: BTreeMap<String, String>,
    /// The project's targets beside it, when asked for.
    #[serde(default)]
    pub targets: Vec<targets::Verdict>,
    /// Whether the run was interrupted: rows are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Every measured point, in order.
    pub rows: Vec<Row>,
}

/// What disturbed a point, in shares of the time that it took.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// The machine below this virtual one had the measuring core.
    pub stolen: f64,
    /// The measuring thread was ready to run and others ran.
    pub waited: f64,
    /// Any thread of the system was.
    pub pressure: f64,
}

/// One measured point of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The benchmark's name, by which tables are grouped.
    pub benchmark: String,
    /// Which form of it.
    pub variant: String,
    /// Bytes of one message.
    pub bytes: u64,
    /// Time of one operation, in microseconds; what an operation is stands in the
    /// benchmark's description.
    pub times: Option<Times>,
    /// The number of operations timed.
    pub iterations: u64,
    /// Payload, in 10^9 bytes a second, all directions together.
    pub gb_per_s: Option<f64>,
    /// Messages, in 10^6 a second.
    pub million_per_s: Option<f64>,
    /// What the machine itself does in the same rounds.
    pub limit: Option<Limit>,
    /// How much was measured, if the wall-clock budget ended the point early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortened: Option<Shortened>,
    /// What disturbed it, if that was enough to matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// Figures that only this benchmark has, by name with unit.
    pub figures: IndexMap<String, f64>,
}

/// A limit that was measured in turns with a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The limit's name, as tables show it.
    pub name: String,
    /// Its median time, in microseconds.
    pub median_us: f64,
    /// The median over rounds of the row's time to it; 1 is the machine's own pace.
    pub ratio: f64,
}

impl Row {
    /// A point without values.
    pub fn new(benchmark: &str, variant: impl Into<String>, bytes: u64) -> Self {
        Self {
            benchmark: benchmark.into(),
            variant: variant.into(),
            bytes,
            ..Self::default()
        }
    }

    /// The times of a repetition divided by `parts`.
    pub fn timed(mut self, outcome: &Outcome, parts: f64) -> Self {
        self.times = Some(outcome.times(parts));
        self.iterations = outcome.repetitions;
        self.shortened = outcome.shortened();
        self
    }

    /// Bandwidth, when `bytes` move in one operation's median time.
    pub fn with_bandwidth(mut self, bytes: u64) -> Self {
        self.gb_per_s = self
            .median_us()
            .filter(|_| bytes > 0)
            .map(|us| bytes as f64 / us / 1e3);
        self
    }

    /// Message rate, when `messages` move in one operation's median time.
    pub fn with_rate(mut self, messages: f64) -> Self {
        self.million_per_s = self.median_us().map(|us| messages / us);
        self
    }

    /// The limit measured in the same rounds; `parts` as for [`Row::timed`], each.
    pub fn against(mut self, name: &str, own: (&Outcome, f64), limit: (&Outcome, f64)) -> Self {
        self.limit = Some(Limit {
            name: name.into(),
            median_us: limit.0.times(limit.1).median_us,
            ratio: own.0.ratio_to(limit.0) / own.1 * limit.1,
        });
        self
    }

    /// A figure of this benchmark's own.
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.figures.insert(name.into(), value);
        self
    }

    /// The median time, if there is one.
    pub fn median_us(&self) -> Option<f64> {
        self.times.map(|times| times.median_us)
    }
}

impl Report {
    /// Reads what [`Report::write_json`] wrote.
    ///
    /// # Errors
    /// A file that can't be read, or that holds something else.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).during(format!("reading {}", path.display()))?;
        serde_json::from_str(&text).map_err(|error| {
            Error::Usage(format!(
                "{} is no report of `lintel perf --json`: {error}",
                path.display()
            ))
        })
    }

    /// Writes to `place`, a path, or `-` for standard output.
    ///
    /// # Errors
    /// What the system said.
    pub fn write_json(&self, place: &str) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).expect("a report is plain data");
        text.push('\n');
        write_to(place, text.as_bytes())
    }

    /// An option with the value used, as text; empty if it had none.
    pub fn option(&self, name: &str) -> String {
        match self.options.get(name) {
            None | Some(serde_json::Value::Null) => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    /// Writes one line a row, with what carried the messages; the machine and the
    /// other options are in the JSON form.
    ///
    /// # Errors
    /// What the system said.
    pub fn write_csv(&self, place: &str) -> Result<()> {
        write_to(place, &csv::lines(self))
    }

    /// The tables for people; `title` is the title of the table of a benchmark's rows.
    pub fn tables(&self, title: fn(&str) -> &str) -> String {
        let mut text = table::tables(self, title);
        if !self.targets.is_empty() {
            text.push('\n');
            text.push_str(&targets::table(&self.targets));
        }
        text
    }
}

/// Writes to `place`, a path, or `-` for standard output.
pub(crate) fn write_to(place: &str, bytes: &[u8]) -> Result<()> {
    if place == "-" {
        return output::write(bytes);
    }
    fs::write(place, bytes).during(format!("writing {place}"))
}

#[cfg(test)]
impl Report {
    /// Of a machine that is no real one.
    pub(crate) fn of(rows: Vec<Row>) -> Self {
        let machine = Machine {
            host: "host".into(),
            cpu: "a processor".into(),
            kernel: "6.1".into(),
            processors: 2,
            cores: vec![0, 1],
            huge_pages: "madvise".into(),
        };
        Self {
            schema: 1,
            lintel: "0.0.0".into(),
            started: 0,
            command: Vec::new(),
            options: serde_json::Value::Null,
            machine,
            environment: BTreeMap::new(),
            targets: Vec::new(),
            interrupted: false,
            rows,
        }
    }
}
