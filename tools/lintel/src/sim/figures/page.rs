//! What lies beside the plots: their points, the table that compares them, and a page
//! that shows all of it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use lintel_sim_seastar::figures::REFUSED;
use lintel_sim_seastar::profile::{Origin, PROFILES};
use serde_json::{Map, Value};

use super::{Drawing, csv_of};
use crate::error::{During, Result};

/// Writes the table of points as CSV and as JSON.
pub fn write_table(lines: &[Vec<String>], directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).during(format!("making {}", directory.display()))?;
    write(directory, "points.csv", &csv_of(lines))?;
    write(directory, "points.json", json(lines).as_bytes())
}

/// Writes the page of all figures, with the table below.
pub fn write_index(
    drawings: &[Drawing],
    lines: &[Vec<String>],
    counted: &str,
    directory: &Path,
) -> Result<()> {
    let page = markdown(drawings, lines, counted);
    write(directory, "figures.md", page.as_bytes())
}

/// Writes a file of this name.
pub fn write(directory: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    let path = directory.join(name);
    fs::write(&path, bytes).during(format!("writing {}", path.display()))
}

/// An object for each line below the header, numbers as numbers.
fn json(lines: &[Vec<String>]) -> String {
    let Some((header, rows)) = lines.split_first() else {
        return "[]\n".into();
    };
    let value = |cell: &String| match cell.parse::<f64>() {
        Ok(number) if number.is_finite() => number.into(),
        _ => Value::from(cell.as_str()),
    };
    let row = |row: &Vec<String>| {
        let cells = header.iter().zip(row);
        let cells = cells.map(|(name, cell)| (name.clone(), value(cell)));
        Value::Object(cells.collect::<Map<String, Value>>())
    };
    let rows: Vec<Value> = rows.iter().map(row).collect();
    let text = serde_json::to_string_pretty(&rows).expect("it is plain data");
    text + "\n"
}

/// What the page says before it shows anything.
const HEAD: &str = "# Published figures, simulated

Lines are simulated, but for S0's two gains in RandomAccess, whose number of nodes it doesn't \
state: they are drawn across. Rings are points to compare with: numbers that the papers' texts state, or, \
where the legend says so, runs of a public simulator's code. No ring is read off a paper's plot. \
Each plot's points are in the CSV file of its name, the table below in points.csv and points.json.
";

/// What the words of the table mean.
const WORDS: &str = "The column *how* says how a simulated value comes about:

- *fitted*: a constant was chosen so that it comes out; it confirms nothing.
- *calibrated*: the same, in a model all of whose points were used up so (MVAPICH with XRC: five \
constants for seven numbers, of which two equal others by construction). It predicts nothing.
- *set*: a constant says it, or it equals a fitted point by construction.
- *predicted*: by the model, with constants that weren't chosen for it.
- *depends*: on a count, a program or a criterion that no document states; chosen here.
- *regenerated*: the reference is a run of the public simulator `portals4_sm`, and no publication. \
That both agree says that two programs follow the same rules.

Generic and accelerated firmware run the library's engine of Portals 3.3: a START event comes with a \
message's header and an END event once its bytes are in place, as on the papers' machine. CCI runs the \
rules of libcci: connections are made by its handshake before the clock starts, a message without a place is \
refused, and an acknowledgement follows the DMA. No row moved when these rules took the place of the \
model's own. NetPIPE's rows and figures come from its own loops; *put*, *get* and *bidirectional put* are \
PortalPerf's.

Where the host matches, latency grows slowly from the first byte that doesn't fit into the header up \
to some kilobytes: a shorter transfer goes on during the end of the first of two interrupts, where \
the model has nearly all of an interrupt's cost, and shows as what the kernel waits for memory \
meanwhile. Published get, put and message rates ask for that; how steep the papers' own curves are \
there isn't known here. S4's curve of Portals copies each message into a bound buffer first, as its \
authors did.

The sender of a stream polls, and finds an event up to one look later, at random (on the XT5 up to \
300 ns, our estimate of a look that enters the kernel). Otherwise nothing disturbs two nodes that wait for \
one another: between 448 and 896 bytes they fell into a step in which three messages shared \
interrupts, a tenth faster than shorter and longer ones. In bidirectional puts of 0 bytes one of the nodes \
begins up to 1 µs later, at random; that makes them no slower than in step.
";

fn markdown(drawings: &[Drawing], lines: &[Vec<String>], counted: &str) -> String {
    let mut page = String::from(HEAD);
    for Drawing { name, title, .. } in drawings {
        page += &format!("\n## {title}\n\n![{title}]({name}.svg)\n\n[{name}.csv]({name}.csv)\n");
    }
    page += &format!("\n## Points\n\n{WORDS}\n");
    for (number, line) in lines.iter().enumerate() {
        page += &format!("| {} |\n", line.join(" | "));
        if number == 0 {
            page += &format!("|{}\n", "---|".repeat(line.len()));
        }
    }
    page += &format!("\n{counted}\n{}", fitted());
    page += "\n## Not simulated\n\n| source | what | why |\n|---|---|---|\n";
    for (source, what, why) in REFUSED {
        page += &format!("| {source} | {what} | {why} |\n");
    }
    page
}

/// The constants of the SeaStar machines that a point decided.
fn fitted() -> String {
    let mut page = String::from(
        "## Fitted constants\n\n| machine | constant | value | by the point |\n|---|---|---|---|\n",
    );
    let mut seen = BTreeSet::new();
    for profile in PROFILES {
        for (name, constant) in profile.constants() {
            let (value, source) = (constant.value, constant.source);
            // A machine may have the constants of another one.
            let is_fitted = constant.origin == Origin::Fitted;
            if is_fitted && seen.insert((name, value)) {
                let unit = format!("{:?}", constant.unit).to_lowercase();
                let machine = profile.name;
                page += &format!("| {machine} | {name} | {value} {unit} | {source} |\n");
            }
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<Vec<String>> {
        let line = |cells: [&str; 3]| cells.map(String::from).to_vec();
        vec![
            line(["what", "published", "simulated"]),
            line(["put, 0 B", "4.89", "4.890"]),
            line(["put, 2 MB", "≥ 2200", "2207.125"]),
        ]
    }

    #[test]
    fn numbers_of_the_table_are_numbers_in_json() {
        let rows: Value = serde_json::from_str(&json(&lines())).expect("JSON");
        assert_eq!(rows[0]["published"], 4.89);
        assert_eq!(rows[1]["published"], "≥ 2200");
    }

    #[test]
    fn the_page_lists_as_many_fitted_constants_as_points() {
        let lines = fitted().lines().filter(|line| line.contains(" | ")).count();
        assert_eq!(lines, 1 + 4, "{}", fitted());
        assert!(fitted().contains("| xt5-2009 | interrupt_exit | 3970 nanoseconds | S4 V-A"));
    }

    #[test]
    fn the_page_shows_each_plot_and_each_point() {
        let drawings = super::super::list();
        let page = markdown(&drawings, &lines(), "3 points\n");
        for Drawing { name, .. } in &drawings {
            assert!(page.contains(&format!("({name}.svg)")), "{name}");
        }
        assert!(page.contains("| put, 2 MB | ≥ 2200 | 2207.125 |"), "{page}");
        assert!(page.contains("\n3 points\n"), "{page}");
    }
}
