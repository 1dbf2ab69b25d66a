//! Spans as Chrome's trace events, which Perfetto shows: nodes as processes, their
//! processors as threads, messages on their way beside them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lintel_sim_goal::{Observer, Span, Track};
use lintel_sim_kernel::SimTime;
use serde_json::json;

use crate::error::{During, Result};

/// A trace while it is written.
pub struct Trace {
    path: PathBuf,
    file: Rc<RefCell<Writing>>,
}

struct Writing {
    out: BufWriter<File>,
    /// Ranks that have a name already.
    named: BTreeSet<u32>,
    /// The last message's number.
    messages: u64,
    /// The first thing that went wrong; nothing is written after it.
    outcome: io::Result<()>,
}

impl Trace {
    /// An empty one.
    pub fn create(path: &Path) -> Result<Self> {
        let doing = || format!("writing {}", path.display());
        let mut out = BufWriter::new(File::create(path).during(doing())?);
        // The closing bracket may be left out, and so each line is alike.
        out.write_all(b"[\n").during(doing())?;
        let writing = Writing {
            out,
            named: BTreeSet::new(),
            messages: 0,
            outcome: Ok(()),
        };
        Ok(Trace {
            path: path.into(),
            file: Rc::new(RefCell::new(writing)),
        })
    }

    /// Whom to tell of spans.
    pub fn observer(&self) -> Observer {
        let file = Rc::clone(&self.file);
        Box::new(move |span| file.borrow_mut().add(span))
    }

    /// Whether all was written.
    pub fn finish(self) -> Result<()> {
        let mut writing = self.file.borrow_mut();
        let outcome = std::mem::replace(&mut writing.outcome, Ok(()));
        let written = outcome.and_then(|()| writing.out.write_all(b"{}]\n"));
        let flushed = written.and_then(|()| writing.out.flush());
        flushed.during(format!("writing {}", self.path.display()))
    }
}

impl Writing {
    fn add(&mut self, span: Span) {
        if self.outcome.is_ok() {
            self.outcome = self.write(span);
        }
    }

    fn write(&mut self, span: Span) -> io::Result<()> {
        let Span {
            rank, name, size, ..
        } = span;
        if self.named.insert(rank) {
            let called = json!({"name": format!("rank {rank}")});
            self.line(&json!({"ph": "M", "name": "process_name", "pid": rank, "args": called}))?;
        }
        let (start, end) = (micro(span.start), micro(span.end));
        let about = json!({ "size": size });
        match span.track {
            Track::Cpu(cpu) => self.line(&json!({
                "ph": "X", "name": name, "pid": rank, "tid": cpu,
                "ts": start, "dur": end - start, "args": about,
            })),
            Track::Way => {
                self.messages += 1;
                let id = self.messages;
                self.line(&json!({
                    "ph": "b", "cat": name, "name": name, "pid": rank, "tid": 0,
                    "id": id, "ts": start, "args": about,
                }))?;
                self.line(&json!({
                    "ph": "e", "cat": name, "name": name, "pid": rank, "tid": 0,
                    "id": id, "ts": end,
                }))
            }
        }
    }

    fn line(&mut self, event: &serde_json::Value) -> io::Result<()> {
        writeln!(self.out, "{event},")
    }
}

/// The format's unit.
fn micro(time: SimTime) -> f64 {
    time.as_ps() as f64 / 1e6
}
