//! What the programs' pages have beyond what follows from their command lines: EXAMPLES,
//! ENVIRONMENT and FILES.

use std::fmt::Write;

use clap::Command;

/// Command lines of a page, each with what it does.
type Examples = &'static [(&'static str, &'static str)];

/// By page.
const EXAMPLES: [(&str, Examples); 10] = [
    (
        "yod",
        &[
            ("yod -n 2 ./program", "Two ranks on this machine."),
            (
                "yod -n 4 --nodes 2 ./program",
                "Two virtual nodes, between which messages travel over UDP.",
            ),
            (
                "yod -n 4 --hosts alpha,beta=10.0.0.2 ./program -v",
                "Four ranks on two machines, which yod reaches by ssh.",
            ),
            (
                "yod -n 2 --bind --label --timing ./program",
                "Rank i on core i, each line of output with its rank, times at the end.",
            ),
            (
                "yod -n 2 --mode generic --timeout 60 ./program",
                "Engines in an agent; the job ends after a minute at the latest.",
            ),
        ],
    ),
    (
        "lintel-agent",
        &[(
            "lintel-agent --iface 127.0.0.1",
            "An agent for processes that no launcher starts; they set PTL_MODE=generic.",
        )],
    ),
    (
        "lintel-info",
        &[
            ("lintel info", "Machine, interface, networks and variables."),
            (
                "lintel info --resources --json",
                "What running processes hold, for programs.",
            ),
        ],
    ),
    (
        "lintel-doctor",
        &[(
            "lintel doctor ./program",
            "Checks the machine, and which Portals libraries the program loads.",
        )],
    ),
    (
        "lintel-perf",
        &[
            ("lintel perf", "A first look."),
            (
                "lintel perf put --sizes 8,4K,1M --json put.json --plots plots",
                "Latency of three sizes, kept and drawn.",
            ),
            (
                "lintel perf put bandwidth --nodes 2",
                "The same between two virtual nodes, over UDP.",
            ),
        ],
    ),
    (
        "lintel-plot",
        &[("lintel plot put.json --out plots", "Draws a report again.")],
    ),
    (
        "lintel-compare",
        &[(
            "lintel compare before.json after.json",
            "The ratio of each median time.",
        )],
    ),
    (
        "lintel-sim-run",
        &[
            (
                "lintel sim run scenario.toml --plots plots",
                "All points of a scenario, as a table and as a plot.",
            ),
            (
                "lintel sim run scenario.toml --point 1 --trace trace.json",
                "One point, with a trace for ui.perfetto.dev.",
            ),
        ],
    ),
    (
        "lintel-sim-figure",
        &[(
            "lintel sim figure entries --out figures",
            "Simulates one published figure and draws it.",
        )],
    ),
    (
        "lintel-sim-figures",
        &[(
            "lintel sim figures --out figures",
            "All of them, which takes some minutes; figures/figures.md shows the result.",
        )],
    ),
];

/// Pages that list variables and files.
const WITH_ENVIRONMENT: [&str; 4] = ["yod", "lintel", "lintel-agent", "lintel-perf"];

const FILES: [(&str, &str); 2] = [
    (
        "/dev/shm/lintel-*",
        "Registrations of processes and sockets of agents, one small file each. They vanish with \
         their owner; what a killed process leaves, the next one of the job removes.",
    ),
    (
        "~/.config/lintel/secret",
        "The secret of jobs that yod doesn't start, made when it is first needed; the same on \
         all nodes. PTL_SECRET_FILE names another file.",
    ),
];

/// The further sections of a page, in roff.
///
/// # Errors
/// An example that the command line doesn't take.
pub fn of(page: &str, program: &Command) -> Result<String, String> {
    let mut text = String::new();
    if let Some((_, examples)) = EXAMPLES.iter().find(|(name, _)| *name == page) {
        text.push_str(".SH EXAMPLES\n");
        for (line, meaning) in *examples {
            let parsed = program.clone().try_get_matches_from(line.split(' '));
            parsed.map_err(|why| format!("{page}: {line}: {why}"))?;
            let _ = write!(text, ".TP\n\\fB{}\\fR\n{}\n", escape(line), escape(meaning));
        }
    }
    if WITH_ENVIRONMENT.contains(&page) {
        text.push_str(".SH ENVIRONMENT\n");
        for variable in lintel::info::variables() {
            let _ = write!(
                text,
                ".TP\n\\fB{}\\fR (default: {})\n{}. It takes {}.\n",
                variable.name,
                escape(variable.default),
                escape(&sentence(variable.meaning)),
                escape(variable.values)
            );
        }
        text.push_str(".SH FILES\n");
        for (path, meaning) in FILES {
            let _ = write!(text, ".TP\n\\fI{}\\fR\n{}\n", escape(path), escape(meaning));
        }
        text.push_str(".SH SEE ALSO\n.BR portals4 (7)\n");
    }
    Ok(text)
}

/// The text with a capital.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters
        .next()
        .map(|letter| letter.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// A line that roff takes literally.
fn escape(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    match text.starts_with(['.', '\'']) {
        true => format!("\\&{text}"),
        false => text.replace('~', "\\(ti").replace('\'', "\\(aq"),
    }
}
