//! The table of `lintel top`.

use std::fmt::Write;
use std::time::Duration;

use lintel_inspect::Process;
use lintel_snapshot::{Path, Snapshot};

use super::metrics::{by_path, fill, network, unexpected};

/// Columns, and how wide each is.
const COLUMNS: [(&str, usize); 12] = [
    ("process", 18),
    ("program", 15),
    ("sent/s", 9),
    ("recv/s", 9),
    ("ring B/s", 9),
    ("copy B/s", 9),
    ("net/s", 8),
    ("queued", 8),
    ("pend", 5),
    ("unexp", 5),
    ("EQ", 4),
    ("idle", 7),
];

/// Rates since `before`, and the state now.
pub fn of(before: &[Process], now: &[Process], time: Duration) -> String {
    let mut out = format!("{} processes\n", now.len());
    row(&mut out, COLUMNS.map(|(name, _)| name.to_owned()));
    for process in now {
        let earlier = before.iter().find(|other| is_same(process, other));
        let earlier = earlier.and_then(|process| process.snapshot.as_ref());
        let cells = match &process.snapshot {
            Some(snapshot) => cells(earlier.unwrap_or(snapshot), snapshot, time),
            None => {
                let state = if process.stopped { "stopped" } else { "silent" };
                let mut cells: [String; 10] = Default::default();
                cells[0] = state.into();
                cells
            }
        };
        let program = process.program.clone().unwrap_or_default();
        let name = [process.name(), program];
        let [a, b] = name;
        let [c, d, e, f, g, h, i, j, k, l] = cells;
        row(&mut out, [a, b, c, d, e, f, g, h, i, j, k, l]);
    }
    out
}

fn is_same(one: &Process, other: &Process) -> bool {
    (one.process, one.os_process, &one.job) == (other.process, other.os_process, &other.job)
}

fn cells(before: &Snapshot, now: &Snapshot, time: Duration) -> [String; 10] {
    let rate = |of: &dyn Fn(&Snapshot) -> u64| {
        let grown = of(now).saturating_sub(of(before));
        quantity(grown as f64 / time.as_secs_f64())
    };
    let ring = |s: &Snapshot| {
        let (sent, received) = by_path(s, Path::Shm);
        sent.bytes + received.bytes
    };
    let copied = |s: &Snapshot| s.totals().0.copied + s.totals().1.copied;
    let net = |s: &Snapshot| network(s).0.messages + network(s).1.messages;
    let backlog: u64 = now.peers.iter().map(|peer| peer.backlog).sum();
    let pending: u64 = now.interfaces.iter().map(|i| u64::from(i.pending)).sum();
    let headers: u64 = now.interfaces.iter().map(unexpected).sum();
    [
        rate(&|s| s.totals().0.messages),
        rate(&|s| s.totals().1.messages),
        rate(&ring),
        rate(&copied),
        rate(&net),
        quantity(backlog as f64),
        pending.to_string(),
        headers.to_string(),
        format!("{:.0}%", 100.0 * fill(now)),
        now.idle_ms.map_or("–".into(), idle),
    ]
}

/// A number of at most five characters, with a prefix of SI.
fn quantity(value: f64) -> String {
    let (mut value, mut prefix) = (value, "");
    for next in ["k", "M", "G", "T"] {
        if value < 1000.0 {
            break;
        }
        (value, prefix) = (value / 1000.0, next);
    }
    match value < 10.0 && !prefix.is_empty() {
        true => format!("{value:.1}{prefix}"),
        false => format!("{value:.0}{prefix}"),
    }
}

fn idle(milliseconds: u64) -> String {
    match milliseconds {
        0..10_000 => format!("{:.1} s", milliseconds as f64 / 1000.0),
        _ => format!("{} s", milliseconds / 1000),
    }
}

/// A line of cells, the first two to the left.
fn row(out: &mut String, cells: [String; 12]) {
    for (column, (cell, (_, width))) in cells.iter().zip(COLUMNS).enumerate() {
        let _ = match column {
            0 | 1 => write!(out, "{cell:<width$} "),
            _ => write!(out, "{cell:>width$} "),
        };
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::metrics::tests::process;

    #[test]
    fn rates_are_per_second_and_a_silent_process_has_none() {
        let silent = Process {
            snapshot: None,
            rank: Some(4),
            stopped: true,
            ..process(0)
        };
        let text = of(
            &[process(1000)],
            &[process(5000), silent],
            Duration::from_secs(2),
        );
        let lines: Vec<&str> = text.lines().collect();
        let words: Vec<&str> = lines[2].split_whitespace().collect();
        assert_eq!(words[..2], ["rank", "3"]);
        assert!(words.contains(&"2.0k"), "{text}");
        assert!(words.contains(&"128k"), "{text}");
        assert!(words.contains(&"25%"), "{text}");
        assert!(lines[3].contains("stopped"), "{text}");
    }

    #[test]
    fn quantities_stay_short() {
        for (value, text) in [
            (0.0, "0"),
            (999.0, "999"),
            (1000.0, "1.0k"),
            (2.5e9, "2.5G"),
        ] {
            assert_eq!(quantity(value), text);
        }
    }
}
