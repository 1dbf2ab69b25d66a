//! `lintel trace`: the timelines that processes have written (`PTL_TRACE`) as one file for
//! Perfetto, in the simulator's format.
//!
//! A process has a track for the calls of each thread, one for the messages that it sends, one for
//! those that it handles, one for the events that it posts, and one for waits. An arrow leads from a message's
//! sender to the process that handles it, and on to the events that this posts.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lintel_inspect::awaited;
use lintel_snapshot::timeline::{Message, Record, Timeline, What, event_name};
use lintel_types::ProcessId;
use lintel_wire::portals3;
use serde_json::{Value, json};

use crate::error::{During, Error, Result};
use crate::output;
use crate::trace_events::TraceEvents;

/// What is done with timelines.
#[derive(Debug, clap::Subcommand)]
pub enum Word {
    /// Join the timelines of a directory into one file, which ui.perfetto.dev shows
    Merge(MergeOptions),
}

/// Options of `lintel trace merge`.
#[derive(Debug, clap::Args)]
pub struct MergeOptions {
    /// The directory that PTL_TRACE named
    directory: PathBuf,

    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "trace.json")]
    out: PathBuf,
}

/// Does what the word asks.
///
/// # Errors
/// No timelines, or what the system refused.
pub fn run(word: &Word) -> Result<()> {
    let Word::Merge(options) = word;
    let timelines = read_all(&options.directory)?;
    let doing = || format!("writing {}", options.out.display());
    let mut file = TraceEvents::create(&options.out).during(doing())?;
    let merged = merge(&timelines, &mut |event| file.add(event));
    merged.and_then(|()| file.finish()).during(doing())?;
    let records: usize = timelines
        .iter()
        .map(|timeline| timeline.records.len())
        .sum();
    let lost: u64 = timelines.iter().map(|timeline| timeline.lost).sum();
    let (out, count) = (options.out.display(), timelines.len());
    let mut words = format!("{out}: {records} records of {count} processes\n");
    if lost > 0 {
        words += &format!("{lost} older records were replaced by later ones\n");
    }
    output::print(&words)
}

fn read_all(directory: &Path) -> Result<Vec<Timeline>> {
    let doing = || format!("reading {}", directory.display());
    let mut timelines = Vec::new();
    for file in fs::read_dir(directory).during(doing())? {
        let path = file.during(doing())?.path();
        if path.extension().is_none_or(|extension| extension != "ptl") {
            continue;
        }
        let bytes = fs::read(&path).during(format!("reading {}", path.display()))?;
        let timeline = Timeline::from_bytes(&bytes).ok_or_else(|| {
            Error::Usage(format!("{} is no timeline of this version", path.display()))
        });
        timelines.push(timeline?);
    }
    if timelines.is_empty() {
        return Err(Error::Usage(format!(
            "{} has no timeline: run the program with PTL_TRACE={0}, to its end",
            directory.display()
        )));
    }
    timelines.sort_by_key(|timeline| (timeline.rank, timeline.process, timeline.os_process));
    Ok(timelines)
}

/// The first process of the file. Perfetto takes process 0 and thread 0 for the idle ones.
const FIRST_PROCESS: u32 = 1;
/// Tracks of a process.
const SENDS: u32 = 1;
const HANDLES: u32 = 2;
const EVENTS: u32 = 3;
const WAITS: u32 = 4;
const TRACKS: [&str; 4] = ["sends", "handles", "events", "waits"];
/// The shortest span that is drawn, in nanoseconds.
const SHORTEST: u64 = 20;

/// Gives all events of the file to `add`.
fn merge(timelines: &[Timeline], add: &mut dyn FnMut(&Value) -> io::Result<()>) -> io::Result<()> {
    let zeros = clock_zeros(timelines);
    let begins = timelines.iter().flat_map(|timeline| {
        let zero = zeros[timeline.boot.as_str()];
        timeline
            .records
            .iter()
            .map(move |record| zero + record.at_ns)
    });
    let begin = begins.min().unwrap_or(0);
    let mut flows = Flows::default();
    for (pid, timeline) in (FIRST_PROCESS..).zip(timelines) {
        name(add, "process_name", pid, SENDS, &name_of(timeline))?;
        for (track, called) in (SENDS..).zip(TRACKS) {
            name(add, "thread_name", pid, track, called)?;
        }
        for thread in threads(timeline) {
            name(
                add,
                "thread_name",
                pid,
                thread,
                &format!("calls of thread {thread}"),
            )?;
        }
        let process = Process {
            pid,
            id: timeline.process,
            zero: zeros[timeline.boot.as_str()].wrapping_sub(begin),
        };
        for record in &timeline.records {
            let events = process.events(record, &mut flows);
            events.iter().try_for_each(&mut *add)?;
        }
    }
    Ok(())
}

/// The threads whose calls are recorded: their numbers are those of their tracks. The system
/// gives none below [`TRACKS`]' to a user's program.
fn threads(timeline: &Timeline) -> BTreeSet<u32> {
    let called = timeline
        .records
        .iter()
        .filter_map(|record| match record.what {
            What::Called { thread, .. } => Some(thread.unsigned_abs()),
            _ => None,
        });
    called.collect()
}

/// What the clock's 0 was on each machine: all processes of one have the same clock, and read
/// the time of day at different moments.
fn clock_zeros(timelines: &[Timeline]) -> BTreeMap<&str, u64> {
    let mut zeros = BTreeMap::new();
    for timeline in timelines {
        zeros
            .entry(timeline.boot.as_str())
            .or_insert(timeline.clock_zero_ns);
    }
    zeros
}

fn name_of(timeline: &Timeline) -> String {
    match timeline.rank {
        Some(rank) => format!("rank {rank} ({})", timeline.process),
        None => format!("process {}", timeline.process),
    }
}

fn name(
    add: &mut dyn FnMut(&Value) -> io::Result<()>,
    what: &str,
    pid: u32,
    tid: u32,
    name: &str,
) -> io::Result<()> {
    let called = json!({ "name": name });
    add(&json!({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": called}))
}

/// A process of the file.
struct Process {
    pid: u32,
    id: ProcessId,
    /// Nanoseconds from the file's beginning to the clock's 0.
    zero: u64,
}

impl Process {
    fn events(&self, record: &Record, flows: &mut Flows) -> Vec<Value> {
        match &record.what {
            What::Sent(message) => {
                let flow = flows.id(self.id, message.peer, message.number);
                let span = self.span(record, SENDS, &title(message), about(message));
                vec![span, self.flow(record, SENDS, "s", flow)]
            }
            What::Handled(message) => {
                let flow = flows.id(message.peer, self.id, message.number);
                let span = self.span(record, HANDLES, &title(message), about(message));
                vec![span, self.flow(record, HANDLES, "t", flow)]
            }
            What::Event { kind, cause } => {
                let span = self.span(record, EVENTS, event_name(*kind), json!({}));
                let flow = cause.map(|(peer, number)| {
                    let flow = flows.id(peer, self.id, number);
                    self.flow(record, EVENTS, "t", flow)
                });
                std::iter::once(span).chain(flow).collect()
            }
            What::Called { name, thread } => {
                vec![self.span(record, thread.unsigned_abs(), name, json!({}))]
            }
            What::Waited(awaits) => {
                let words = format!("waits for {}", awaited(awaits));
                let (at, end) = (self.micro(record.at_ns), record.at_ns + record.length_ns);
                let id = format!("{}-{}", self.pid, record.at_ns);
                let event = |ph: &str, ts: f64| {
                    json!({"ph": ph, "cat": "waits", "name": words, "pid": self.pid, "tid": WAITS,
                           "id": id, "ts": ts, "args": {}})
                };
                vec![event("b", at), event("e", self.micro(end))]
            }
        }
    }

    fn span(&self, record: &Record, tid: u32, name: &str, args: Value) -> Value {
        let length = record.length_ns.max(SHORTEST) as f64 / 1000.0;
        json!({"ph": "X", "name": name, "pid": self.pid, "tid": tid,
               "ts": self.micro(record.at_ns), "dur": length, "args": args})
    }

    /// A point of an arrow, in the span that begins with the record.
    fn flow(&self, record: &Record, tid: u32, ph: &str, id: u64) -> Value {
        json!({"ph": ph, "cat": "message", "name": "message", "pid": self.pid, "tid": tid,
               "id": id, "ts": self.micro(record.at_ns)})
    }

    /// Microseconds since the file's beginning.
    fn micro(&self, at_ns: u64) -> f64 {
        self.zero.wrapping_add(at_ns) as f64 / 1000.0
    }
}

/// The numbers of messages among all: Perfetto joins the points of an arrow by a number.
#[derive(Default)]
struct Flows(BTreeMap<(ProcessId, ProcessId, u64), u64>);

impl Flows {
    fn id(&mut self, from: ProcessId, to: ProcessId, number: u64) -> u64 {
        let next = self.0.len() as u64 + 1;
        *self.0.entry((from, to, number)).or_insert(next)
    }
}

fn title(message: &Message) -> String {
    match lintel_wire::Message::parse(&message.words) {
        Ok(lintel_wire::Message::Request(request)) => format!("{:?}", request.verb).to_uppercase(),
        Ok(lintel_wire::Message::Response(response)) if response.reply => "REPLY".into(),
        Ok(lintel_wire::Message::Response(_)) => "ACK".into(),
        Ok(lintel_wire::Message::Acknowledgements(_)) => "ACKS".into(),
        Err(_) if portals3::Message::parse(&message.words).is_ok() => "Portals 3.3".into(),
        Err(_) => "?".into(),
    }
}

fn about(message: &Message) -> Value {
    let peer = message.peer.to_string();
    match lintel_wire::Message::parse(&message.words) {
        Ok(lintel_wire::Message::Request(request)) => json!({
            "peer": peer, "bytes": request.length, "pt": u32::from(request.portal),
            "match bits": format!("{:#x}", request.match_bits),
        }),
        Ok(lintel_wire::Message::Response(response)) => {
            json!({ "peer": peer, "bytes": response.mlength })
        }
        Ok(lintel_wire::Message::Acknowledgements(all)) => {
            json!({ "peer": peer, "operations": all.tokens().count() })
        }
        Err(_) => json!({ "peer": peer }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ProcessId = ProcessId::new(0x7f00_0001, 1);
    const TWO: ProcessId = ProcessId::new(0x7f00_0001, 2);

    fn timeline(process: ProcessId, clock_zero_ns: u64, whats: Vec<What>) -> Timeline {
        let records = (0..).zip(whats).map(|(at, what)| Record {
            at_ns: 1000 + at,
            length_ns: 500,
            what,
        });
        Timeline {
            form: lintel_snapshot::timeline::FORM,
            boot: "b".into(),
            clock_zero_ns,
            process,
            os_process: 1,
            rank: None,
            lost: 0,
            records: records.collect(),
        }
    }

    fn merged(timelines: &[Timeline]) -> Vec<Value> {
        let mut events = Vec::new();
        let mut add = |event: &Value| {
            events.push(event.clone());
            Ok(())
        };
        merge(timelines, &mut add).expect("memory takes it");
        events
    }

    #[test]
    fn an_arrow_leads_from_a_put_to_the_event_that_it_causes() {
        let message = |peer| Message {
            peer,
            number: 7,
            words: [0; 6],
        };
        let event = What::Event {
            kind: 2,
            cause: Some((ONE, 7)),
        };
        let all = merged(&[
            timeline(ONE, 50, vec![What::Sent(message(TWO))]),
            timeline(TWO, 60, vec![What::Handled(message(ONE)), event]),
        ]);
        let flows = all.iter().filter(|event| event["cat"] == "message");
        let ids: Vec<&Value> = flows.map(|event| &event["id"]).collect();
        assert_eq!(
            ids,
            [&json!(1); 3],
            "Perfetto refuses other names than numbers"
        );
        let put = all.iter().find(|event| event["name"] == "PUT");
        let put = put.expect("an event of that name");
        assert_eq!((&put["tid"], &put["ts"]), (&json!(EVENTS), &json!(0.001)));
    }

    #[test]
    fn processes_of_a_machine_have_one_clock() {
        let sent = |peer| {
            What::Sent(Message {
                peer,
                number: 1,
                words: [0; 6],
            })
        };
        let all = merged(&[
            timeline(ONE, 50, vec![sent(TWO)]),
            timeline(TWO, 90, vec![sent(ONE)]),
        ]);
        let spans = all.iter().filter(|event| event["ph"] == "X");
        let times: Vec<&Value> = spans.map(|event| &event["ts"]).collect();
        assert_eq!(times, [&json!(0.0), &json!(0.0)]);
    }
}
