//! What a scenario's simulations found: table, JSON, CSV, plot.

use indexmap::{IndexMap, IndexSet};
use lintel_sim_scenario::{Outcome, Plot, Point, Scale};
use serde::{Serialize, Serializer};
use serde_json::{Number, Value};

use crate::error::{Error, Result};
use crate::plot::chart::{self, Series, Stroke};
use crate::report::aligned;

/// All points of a scenario.
#[derive(Debug, Serialize)]
pub struct Results {
    /// Version of this form.
    schema: u32,
    /// Version of this program.
    lintel: &'static str,
    /// The path of the scenario's file.
    pub scenario: String,
    /// What it is for.
    about: String,
    /// One entry per point, in the scenario's order.
    pub entries: Vec<Entry>,
}

/// The results of one point.
#[derive(Debug, Serialize)]
pub struct Entry {
    /// Settings that vary, with the values that they had.
    #[serde(serialize_with = "typed")]
    settings: IndexMap<String, String>,
    /// What was found, by name with unit; in JSON by [`key`].
    #[serde(serialize_with = "by_key")]
    figures: IndexMap<String, f64>,
    /// In hexadecimal; the same for the same scenario and seed, on any machine.
    trace_hash: String,
    events: u64,
    simulated_us: f64,
    /// How long it took here.
    seconds: f64,
}

impl Entry {
    /// What a point found.
    pub fn new(point: &Point, outcome: &Outcome, seconds: f64) -> Self {
        let figures = outcome.figures.iter();
        Entry {
            settings: point.varied.iter().cloned().collect(),
            figures: figures.map(|f| (f.name.clone(), f.value)).collect(),
            trace_hash: format!("{:016x}", outcome.trace_hash),
            events: outcome.events,
            simulated_us: outcome.simulated.as_ps() as f64 / 1e6,
            seconds,
        }
    }

    /// The settings but for one, in a line.
    fn label(&self, but: &str) -> String {
        let others = self.settings.iter().filter(|(path, _)| *path != but);
        let words: Vec<String> = others
            .map(|(path, value)| match value.parse::<f64>() {
                Ok(_) => format!("{} {value}", short(path)),
                Err(_) => value.clone(),
            })
            .collect();
        words.join(", ")
    }
}

impl Results {
    /// Results of a scenario, without entries so far.
    pub fn new(scenario: &str, about: &str) -> Self {
        Results {
            schema: 2,
            lintel: env!("CARGO_PKG_VERSION"),
            scenario: scenario.into(),
            about: about.into(),
            entries: Vec::new(),
        }
    }

    /// All results as JSON, indented.
    pub fn json(&self) -> String {
        #[derive(Serialize)]
        struct Document<'a> {
            #[serde(flatten)]
            results: &'a Results,
            /// The name with unit of each figure, by its key.
            labels: IndexMap<String, &'a str>,
        }
        let names = self.entries.iter().flat_map(|entry| entry.figures.keys());
        let document = Document {
            results: self,
            labels: names.map(|name| (key(name), name.as_str())).collect(),
        };
        let text = serde_json::to_string_pretty(&document).expect("it is plain data");
        text + "\n"
    }

    /// A header and a line a point.
    pub fn csv(&self) -> Vec<u8> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        for line in self.lines(key, |value| match value {
            value if value.fract() == 0.0 => format!("{value:.0}"),
            value => format!("{value:.6}"),
        }) {
            writer.write_record(line).expect("memory takes it");
        }
        writer.into_inner().expect("memory takes it")
    }

    /// All results as a table for people.
    pub fn table(&self) -> String {
        let lines = self.lines(str::to_owned, |value| match value {
            value if value.fract() == 0.0 => format!("{value:.0}"),
            value => format!("{value:.3}"),
        });
        let left = vec![false; lines[0].len()];
        let about = match self.about.as_str() {
            "" => &self.scenario,
            about => about,
        };
        format!("{about}\n{}", aligned(&lines, &left))
    }

    /// What is drawn if the scenario has no table `plot`: the first figure over the first setting
    /// that varies and is a number.
    ///
    /// # Errors
    /// No setting that is a number varies, or no point has a figure.
    pub fn default_plot(&self) -> Result<Plot> {
        let values = |path: &String| -> Option<IndexSet<String>> {
            let value = |entry: &Entry| entry.settings.get(path).cloned();
            let all: IndexSet<String> = self.entries.iter().filter_map(value).collect();
            let numbers = all.iter().all(|value| value.parse::<f64>().is_ok());
            (numbers && all.len() > 1).then_some(all)
        };
        let first = self.entries.first();
        let settings = first.into_iter().flat_map(|entry| entry.settings.keys());
        let x = settings
            .filter_map(|path| Some((path, values(path)?)))
            .next();
        let y = first.and_then(|entry| entry.figures.keys().next());
        let (Some((x, values)), Some(y)) = (x, y) else {
            return Err(Error::Usage(format!(
                "{}: nothing to draw: give a setting a list of numbers, such as \
                 bytes = [8, 64, 512], or write a table such as\n\n    [plot]\n    \
                 x = \"workload.bytes\"\n    y = \"{}\"",
                self.scenario,
                y.map_or("all, µs", |y| y)
            )));
        };
        Ok(Plot {
            title: match self.about.as_str() {
                "" => self.scenario.clone(),
                about => about.into(),
            },
            x: (x.clone(), default_scale(&values)),
            x_label: None,
            y: (y.clone(), Scale::Linear),
            published: Vec::new(),
            source: String::new(),
        })
    }

    /// Whether there is something to draw.
    ///
    /// # Errors
    /// No point has the figure that is to be drawn.
    pub fn check(&self, plan: &Plot) -> Result<()> {
        let known: IndexSet<&String> = self.entries.iter().flat_map(|e| e.figures.keys()).collect();
        if known.contains(&plan.y.0) {
            return Ok(());
        }
        let known: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
        Err(Error::Usage(format!(
            "{}: plot.y is {:?}; the figures are {}",
            self.scenario,
            plan.y.0,
            known.join(", ")
        )))
    }

    /// One figure over one setting, a line for each combination of the others.
    pub fn figure(&self, plan: &Plot) -> chart::Figure {
        let (x, y) = (&plan.x, &plan.y);
        let x_label = plan.x_label.clone().unwrap_or_else(|| short(&x.0));
        let axes = ((&*x_label, scale(x.1)), (&*y.0, scale(y.1)));
        let mut figure = chart::Figure::new(&plan.title, axes.0, axes.1);
        let labels: IndexSet<String> = self.entries.iter().map(|e| e.label(&x.0)).collect();
        for (colour, label) in labels.iter().enumerate() {
            let entries = self.entries.iter().filter(|e| e.label(&x.0) == *label);
            let points = entries.filter_map(|entry| {
                let place: f64 = entry.settings.get(&x.0)?.parse().ok()?;
                Some((place, *entry.figures.get(&y.0)?))
            });
            let label = if label.is_empty() { "simulated" } else { label };
            // Dashes distinguish lines that coincide.
            let stroke = Stroke::Styled {
                colour,
                dash: colour % 3,
            };
            figure.add(Series::new(label, stroke, points.collect()));
        }
        let published = Series::new(&plan.source, Stroke::Ink, plan.published.clone());
        figure.add(published);
        figure
    }

    /// A header, whose figures and last columns are called as `name` says, and a line a point.
    fn lines(
        &self,
        name: impl Fn(&str) -> String,
        show: impl Fn(f64) -> String,
    ) -> Vec<Vec<String>> {
        let settings: IndexSet<&String> = self
            .entries
            .iter()
            .flat_map(|e| e.settings.keys())
            .collect();
        let figures: IndexSet<&String> =
            self.entries.iter().flat_map(|e| e.figures.keys()).collect();
        let called = figures.iter().map(|figure| name(figure));
        let names = settings.iter().map(|name| name.to_string()).chain(called);
        let last = ["events", "trace hash"].map(&name);
        let mut lines = vec![names.chain(last).collect::<Vec<_>>()];
        for entry in &self.entries {
            let of = |name: &&String| entry.settings.get(*name).cloned().unwrap_or_default();
            let mut line: Vec<String> = settings.iter().map(of).collect();
            let of = |name: &&String| entry.figures.get(*name).map(|&value| show(value));
            line.extend(figures.iter().map(|name| of(name).unwrap_or_default()));
            line.push(entry.events.to_string());
            line.push(entry.trace_hash.clone());
            lines.push(line);
        }
        lines
    }
}

/// A name with unit as a name for programs: `all, µs` is `all_us`, `MB/s` is `mb_per_s`.
fn key(name: &str) -> String {
    let spelled = name
        .replace('µ', "u")
        .replace("/s", " per s")
        .replace('%', " percent")
        .replace('×', " times ")
        .to_ascii_lowercase();
    let words = spelled.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_")
}

/// Settings with numbers as numbers.
fn typed<S: Serializer>(
    settings: &IndexMap<String, String>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let value = |text: &String| match text.parse::<Number>() {
        Ok(number) => Value::Number(number),
        Err(_) => Value::String(text.clone()),
    };
    serializer.collect_map(settings.iter().map(|(path, text)| (path, value(text))))
}

/// Figures by key, whole numbers without a fraction.
fn by_key<S: Serializer>(
    figures: &IndexMap<String, f64>,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    let value = |&value: &f64| match value.fract() == 0.0 && value.abs() < EXACT {
        true => Value::from(value as i64),
        false => Value::from(value),
    };
    serializer.collect_map(
        figures
            .iter()
            .map(|(name, found)| (key(name), value(found))),
    )
}

/// Below this each whole number has a double of its own: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// The name of a setting without its table: `entries ahead` of `workload.entries_ahead`.
fn short(path: &str) -> String {
    let name = path.rsplit('.').next().unwrap_or(path);
    name.replace('_', " ")
}

/// By powers of two if all values but 0 are such.
fn default_scale(values: &IndexSet<String>) -> Scale {
    let power = |value: &String| {
        let whole = value.parse::<u64>();
        whole.is_ok_and(|whole| whole == 0 || whole.is_power_of_two())
    };
    match values.iter().all(power) {
        true => Scale::Powers,
        false => Scale::Linear,
    }
}

fn scale(scale: Scale) -> chart::Scale {
    match scale {
        Scale::Linear => chart::Scale::Linear,
        Scale::Log => chart::Scale::Log,
        Scale::Sizes => chart::Scale::Sizes,
        Scale::Powers => chart::Scale::Powers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lintel_sim_scenario::Scenario;

    #[test]
    fn a_sweep_is_a_line_a_point_and_a_series_for_what_else_varies() {
        let text = "about = \"ring\"\n[machine]\nmodel = [\"packet\", \"free\"]\nsize = \"4x1x1\"\n\
                    [workload]\nkind = \"ping-pong\"\nbytes = [8, 64]\n\
                    [plot]\nx = \"workload.bytes\"\ny = \"one way, µs\"\n";
        let scenario = Scenario::parse("ring.toml", text).expect("sound");
        let mut found = Results::new("ring.toml", &scenario.about);
        for point in &scenario.points {
            let mut run = point.prepare(None, None).expect("sound");
            while !run.advance(100) {}
            let outcome = run.finish().expect("ends");
            found.entries.push(Entry::new(point, &outcome, 0.5));
        }
        let table = found.table();
        assert_eq!(table.lines().count(), 2 + 4, "{table}");
        assert!(
            table
                .lines()
                .nth(1)
                .is_some_and(|l| l.contains("machine.model"))
        );
        let svg =
            chart::draw(&[found.figure(scenario.plot.as_ref().expect("a plot"))]).expect("draws");
        assert!(svg.contains("\npacket\n") && svg.contains("\nfree\n"));
        let csv = String::from_utf8(found.csv()).expect("text");
        assert_eq!(csv.lines().count(), 5, "{csv}");
        let header =
            "machine.model,workload.bytes,one_way_us,mb_per_s,all_us,messages,events,trace_hash";
        assert_eq!(csv.lines().next(), Some(header));
        let json: Value = serde_json::from_str(&found.json()).expect("it is JSON");
        let entry = &json["entries"][0];
        assert_eq!(entry["settings"]["workload.bytes"], 8);
        assert_eq!(entry["settings"]["machine.model"], "packet");
        assert!(entry["figures"]["messages"].is_u64(), "{entry}");
        assert_eq!(json["labels"]["one_way_us"], "one way, µs");
        let mut other = scenario.plot.expect("a plot");
        assert!(found.check(&other).is_ok());
        other.y.0 = "MB/h".into();
        let error = found.check(&other).expect_err("nothing to draw");
        assert_eq!(
            error.to_string(),
            "ring.toml: plot.y is \"MB/h\"; the figures are \"one way, µs\", \"MB/s\", \"all, µs\", \"messages\""
        );
    }
}
