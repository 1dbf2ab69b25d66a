//! A file of Chrome's trace events, which Perfetto shows: an array of objects, written as they
//! come.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::{Value, json};

/// The file while it is written.
pub struct TraceEvents {
    out: BufWriter<File>,
    lines: u64,
}

impl TraceEvents {
    /// Creates the file and its beginning.
    pub fn create(path: &Path) -> io::Result<Self> {
        let mut out = BufWriter::new(File::create(path)?);
        out.write_all(b"[")?;
        Ok(TraceEvents { out, lines: 0 })
    }

    /// Writes an event.
    pub fn add(&mut self, event: &Value) -> io::Result<()> {
        let separator = if self.lines == 0 { "\n" } else { ",\n" };
        self.lines += 1;
        write!(self.out, "{separator}{event}")
    }

    /// Names a process (`process_name`) or a thread (`thread_name`).
    pub fn name(&mut self, what: &str, pid: u32, tid: u32, name: &str) -> io::Result<()> {
        let called = json!({ "name": name });
        self.add(&json!({"ph": "M", "name": what, "pid": pid, "tid": tid, "args": called}))
    }

    /// Writes the end of the file.
    pub fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()
    }
}
