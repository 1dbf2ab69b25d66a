//! A process's numbers for machines: CSV, and the text format of OpenMetrics.

use std::fmt::Write;

use lintel_inspect::Process;
use lintel_snapshot::{Count, InterfaceState, Path, Snapshot};

/// A number of a process.
struct Metric {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    of: fn(&Snapshot) -> f64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Only grows.
    Counter,
    Gauge,
}

const fn counter(name: &'static str, help: &'static str, of: fn(&Snapshot) -> f64) -> Metric {
    Metric {
        name,
        help,
        kind: Kind::Counter,
        of,
    }
}

const fn gauge(name: &'static str, help: &'static str, of: fn(&Snapshot) -> f64) -> Metric {
    Metric {
        name,
        help,
        kind: Kind::Gauge,
        of,
    }
}

/// In the order of the columns.
const METRICS: &[Metric] = &[
    counter(
        "shm_messages_sent",
        "Messages sent through shared memory",
        |s| by_path(s, Path::Shm).0.messages as f64,
    ),
    counter(
        "shm_messages_received",
        "Messages received through shared memory",
        |s| by_path(s, Path::Shm).1.messages as f64,
    ),
    counter(
        "ring_bytes_sent",
        "Bytes sent through rings in shared memory",
        |s| by_path(s, Path::Shm).0.bytes as f64,
    ),
    counter(
        "ring_bytes_received",
        "Bytes received through rings in shared memory",
        |s| by_path(s, Path::Shm).1.bytes as f64,
    ),
    counter(
        "copied_bytes_sent",
        "Bytes sent by one copy between processes",
        |s| s.totals().0.copied as f64,
    ),
    counter(
        "copied_bytes_received",
        "Bytes received by one copy between processes",
        |s| s.totals().1.copied as f64,
    ),
    counter(
        "network_messages_sent",
        "UDP packets and libfabric messages sent",
        |s| network(s).0.messages as f64,
    ),
    counter(
        "network_messages_received",
        "UDP packets and libfabric messages received",
        |s| network(s).1.messages as f64,
    ),
    counter("requests", "Requests that have arrived", |s| {
        sum(s, |i| i.requests)
    }),
    counter(
        "responses",
        "Acknowledgements and replies that have arrived",
        |s| sum(s, |i| i.responses),
    ),
    counter("events", "Full events posted", |s| sum(s, |i| i.events)),
    counter("drops", "Messages that no entry took", |s| {
        sum(s, |i| i.drops.into())
    }),
    gauge("backlog_bytes", "Bytes queued for peers", |s| {
        s.peers.iter().map(|peer| peer.backlog).sum::<u64>() as f64
    }),
    gauge(
        "pending_operations",
        "Operations that await an answer",
        |s| sum(s, |i| i.pending.into()),
    ),
    gauge(
        "triggered_operations",
        "Triggered operations that wait",
        |s| sum(s, |i| i.triggered.into()),
    ),
    gauge("unexpected_headers", "Unexpected headers", |s| {
        sum(s, unexpected)
    }),
    gauge(
        "event_queue_fill",
        "Events in the fullest event queue, as a part of its size",
        fill,
    ),
    gauge("waiting_threads", "Threads that sleep in a call", |s| {
        s.waits.len() as f64
    }),
    gauge("idle_seconds", "Time since the last message arrived", |s| {
        s.idle_ms.map_or(f64::NAN, |idle| idle as f64 / 1000.0)
    }),
];

/// The first columns, by which a process is known.
const IDENTITY: [&str; 6] = ["job", "rank", "address", "pid", "process", "program"];

fn identity(process: &Process) -> [String; 6] {
    [
        process.job.clone(),
        process.rank.map_or(String::new(), |rank| rank.to_string()),
        process.address.to_string(),
        process.process.pid.to_string(),
        process.os_process.to_string(),
        process.program.clone().unwrap_or_default(),
    ]
}

/// The line that names the columns.
pub fn csv_header() -> String {
    let names = METRICS.iter().map(|metric| metric.name);
    let columns = std::iter::once("time").chain(IDENTITY).chain(names);
    line(columns.map(String::from))
}

/// A line for each process; numbers are missing if it didn't answer. `time` is in seconds
/// since 1970.
pub fn csv_lines(time: f64, processes: &[Process]) -> String {
    let lines = processes.iter().map(|process| {
        let value = |metric: &Metric| match &process.snapshot {
            Some(snapshot) => number((metric.of)(snapshot)),
            None => String::new(),
        };
        let identity = identity(process).into_iter();
        let time = std::iter::once(format!("{time:.3}"));
        line(time.chain(identity).chain(METRICS.iter().map(value)))
    });
    lines.collect()
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(cells.map(String::into_bytes))
        .expect("memory takes it");
    let bytes = writer.into_inner().expect("memory takes it");
    String::from_utf8(bytes).expect("made of text")
}

/// Nothing for a number that isn't known.
fn number(value: f64) -> String {
    if value.is_nan() {
        String::new()
    } else {
        value.to_string()
    }
}

/// The processes that have answered, as OpenMetrics' text.
pub fn open_metrics(processes: &[Process]) -> String {
    let mut out = String::new();
    for metric in METRICS {
        let (name, help) = (metric.name, metric.help);
        let (kind, suffix) = match metric.kind {
            Kind::Counter => ("counter", "_total"),
            Kind::Gauge => ("gauge", ""),
        };
        let _ = writeln!(
            out,
            "# TYPE lintel_{name} {kind}\n# HELP lintel_{name} {help}."
        );
        for process in processes {
            let value = process.snapshot.as_ref().map(metric.of);
            if let Some(value) = value.filter(|value| !value.is_nan()) {
                let labels = labels(process);
                let _ = writeln!(out, "lintel_{name}{suffix}{{{labels}}} {value}");
            }
        }
    }
    out + "# EOF\n"
}

fn labels(process: &Process) -> String {
    let pairs = IDENTITY.iter().zip(identity(process));
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name}=\"{}\"", escaped(&value)))
        .collect();
    pairs.join(",")
}

fn escaped(value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('"', "\\\"");
    value.replace('\n', r"\n")
}

/// What was sent and received by a path.
pub fn by_path(snapshot: &Snapshot, path: Path) -> (Count, Count) {
    let peers = snapshot.peers.iter().filter(|peer| peer.path == path);
    let both = |(sent, received): (Count, Count), peer: &lintel_snapshot::Traffic| {
        (sent.and(peer.sent), received.and(peer.received))
    };
    peers.fold((Count::default(), Count::default()), both)
}

/// What was sent and received between nodes.
pub fn network(snapshot: &Snapshot) -> (Count, Count) {
    let (udp, ofi) = (by_path(snapshot, Path::Udp), by_path(snapshot, Path::Ofi));
    (udp.0.and(ofi.0), udp.1.and(ofi.1))
}

fn sum(snapshot: &Snapshot, of: fn(&InterfaceState) -> u64) -> f64 {
    snapshot.interfaces.iter().map(of).sum::<u64>() as f64
}

/// Unexpected headers of an interface.
pub fn unexpected(interface: &InterfaceState) -> u64 {
    let portals = interface.portals.iter();
    portals.map(|portal| u64::from(portal.unexpected)).sum()
}

/// How full the fullest event queue is.
pub fn fill(snapshot: &Snapshot) -> f64 {
    let queues = snapshot.interfaces.iter().flat_map(|i| &i.queues);
    let fills = queues.map(|queue| queue.fill as f64 / queue.size.max(1) as f64);
    fills.fold(0.0, f64::max)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use lintel_snapshot::{QueueState, Traffic};
    use lintel_types::ProcessId;
    use std::net::Ipv4Addr;

    /// A process that has sent so many messages to another, some by UDP.
    pub fn process(sent: u64) -> Process {
        let id = ProcessId::new(0x7f00_0001, 5);
        let peer = |path, messages| Traffic {
            process: id,
            path,
            sent: Count {
                messages,
                bytes: 64 * messages,
                copied: 4096,
            },
            received: Count::default(),
            backlog: 7,
        };
        let queue = QueueState {
            handle: 1,
            size: 8,
            fill: 2,
        };
        Process {
            job: "j".into(),
            address: Ipv4Addr::LOCALHOST,
            process: id,
            os_process: 41,
            program: Some("a \"b\"".into()),
            rank: Some(3),
            stopped: false,
            snapshot: Some(Snapshot {
                peers: vec![peer(Path::Shm, sent), peer(Path::Udp, 2)],
                interfaces: vec![InterfaceState {
                    queues: vec![queue],
                    ..InterfaceState::default()
                }],
                ..Snapshot::default()
            }),
        }
    }

    #[test]
    fn a_line_of_csv_has_every_column_and_no_number_of_a_silent_process() {
        let silent = Process {
            snapshot: None,
            ..process(0)
        };
        let text = csv_header() + &csv_lines(1.5, &[process(10), silent]);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let names = reader.headers().expect("a header").clone();
        let of = |record: &csv::StringRecord, name: &str| {
            let at = names.iter().position(|other| other == name);
            record[at.expect("it is a column")].to_owned()
        };
        let lines: Vec<_> = reader.records().map(|line| line.expect("a line")).collect();
        assert_eq!(of(&lines[0], "time"), "1.500");
        assert_eq!(of(&lines[0], "shm_messages_sent"), "10");
        assert_eq!(of(&lines[0], "network_messages_sent"), "2");
        assert_eq!(of(&lines[0], "event_queue_fill"), "0.25");
        assert_eq!(of(&lines[0], "idle_seconds"), "");
        assert_eq!(of(&lines[1], "rank"), "3");
        assert_eq!(of(&lines[1], "shm_messages_sent"), "");
    }

    #[test]
    fn open_metrics_names_types_escapes_labels_and_ends() {
        let text = open_metrics(&[process(10)]);
        assert!(
            text.contains("# TYPE lintel_ring_bytes_sent counter\n"),
            "{text}"
        );
        let sample = "lintel_ring_bytes_sent_total{job=\"j\",rank=\"3\",address=\"127.0.0.1\",\
                      pid=\"5\",process=\"41\",program=\"a \\\"b\\\"\"} 640\n";
        assert!(text.contains(sample), "{text}");
        assert!(!text.contains("lintel_idle_seconds{"), "{text}");
        assert!(text.ends_with("# EOF\n"));
    }
}
