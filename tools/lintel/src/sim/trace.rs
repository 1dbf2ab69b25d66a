//! Spans as Chrome's trace events, which Perfetto shows: nodes as processes; hosts,
//! firmware and engines as threads, messages on their way beside them. They go to the
//! file as they come, so that a long run takes no memory.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lintel_sim_kernel::{Bytes, Duration, SimTime};
use lintel_sim_scenario::{Observer, Place, Span, Track};
use serde_json::json;

use crate::error::{During, Result};
use crate::trace_events::TraceEvents;

/// A trace while it is written.
pub struct Trace {
    path: PathBuf,
    file: Rc<RefCell<Writing>>,
}

struct Writing {
    events: TraceEvents,
    /// Places, and tracks of places, that have a name already.
    named: BTreeSet<(Place, Option<Track>)>,
    spans: u64,
    /// The first thing that went wrong; nothing is written after it.
    outcome: io::Result<()>,
}

impl Trace {
    /// Creates the file and its header.
    pub fn create(path: &Path) -> Result<Self> {
        let events = TraceEvents::create(path);
        let writing = Writing {
            events: events.during(format!("writing {}", path.display()))?,
            named: BTreeSet::new(),
            spans: 0,
            outcome: Ok(()),
        };
        Ok(Trace {
            path: path.into(),
            file: Rc::new(RefCell::new(writing)),
        })
    }

    /// The receiver of spans.
    pub fn observer(&self) -> Observer {
        let file = Rc::clone(&self.file);
        Box::new(move |span| file.borrow_mut().add(span))
    }

    /// How many spans were written, if all were.
    pub fn finish(self) -> Result<u64> {
        let mut writing = self.file.borrow_mut();
        let outcome = std::mem::replace(&mut writing.outcome, Ok(()));
        let written = outcome.and_then(|()| writing.events.finish());
        written.during(format!("writing {}", self.path.display()))?;
        Ok(writing.spans)
    }
}

impl Writing {
    fn add(&mut self, span: Span) {
        if self.outcome.is_ok() {
            self.outcome = self.write(span);
        }
    }

    fn write(&mut self, span: Span) -> io::Result<()> {
        let Span { place, track, .. } = span;
        let (Place::Node(number) | Place::Rank(number)) = place;
        // Perfetto takes process 0 and thread 0 for the idle ones, or a thread 0 for the process's first.
        let (pid, tid) = (number + 1, track.order + 1);
        if self.named.insert((place, None)) {
            self.events
                .name("process_name", pid, tid, &place_name(place))?;
        }
        let about = match span.bytes {
            Some(Bytes(bytes)) => json!({ "bytes": bytes }),
            None => json!({}),
        };
        let (start, end) = (
            micro(span.start.since(SimTime::START)),
            micro(span.end.since(SimTime::START)),
        );
        let length = micro(span.end.since(span.start));
        self.spans += 1;
        if !track.overlaps {
            if self.named.insert((place, Some(track))) {
                self.events
                    .name("thread_name", pid, tid, &track_name(track))?;
            }
            return self.events.add(&json!({
                "ph": "X", "name": span.name, "pid": pid, "tid": tid,
                "ts": start, "dur": length, "args": about,
            }));
        }
        // Spans that overlap have no thread: the name puts them on a track.
        let name = format!("{}: {}", track_name(track), span.name);
        self.events.add(&json!({
            "ph": "b", "cat": track.what, "name": name, "pid": pid, "tid": tid,
            "id": self.spans, "ts": start, "args": about,
        }))?;
        self.events.add(&json!({
            "ph": "e", "cat": track.what, "name": name, "pid": pid, "tid": tid,
            "id": self.spans, "ts": end,
        }))
    }
}

fn place_name(place: Place) -> String {
    match place {
        Place::Node(node) => format!("node {node}"),
        Place::Rank(rank) => format!("rank {rank}"),
    }
}

fn track_name(track: Track) -> String {
    match track.number {
        Some(number) => format!("{} {number}", track.what),
        None => track.what.into(),
    }
}

/// Microseconds, the trace format's unit.
fn micro(time: Duration) -> f64 {
    time.as_ps() as f64 / 1e6
}
