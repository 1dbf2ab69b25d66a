//! The timeline of a process (`PTL_TRACE`): messages, events and waits, kept in memory and
//! written to a file when the process leaves the network. Without it, an event costs one branch
//! and a message nothing: [`Recorded`] wraps the networks only if a timeline is asked for.

use crate::log::{Level, log};
use lintel_nal::{Arrival, Nal, Origin, Outgoing, Unreachable, Wake, forward};
use lintel_snapshot::Awaited;
use lintel_snapshot::timeline::{FORM, Message, Record, Timeline, What};
use lintel_types::{EventKind, ProcessId};
use lintel_wire::Words;
use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Records that a process keeps; later ones replace older ones.
const MOST_RECORDS: usize = 1 << 17;

/// The records of a process. It writes them when the last one who has it drops it.
#[derive(Clone)]
pub(crate) struct Recorder(Arc<Mutex<Recording>>);

struct Recording {
    file: PathBuf,
    process: ProcessId,
    clock_zero_ns: u64,
    records: VecDeque<Record>,
    lost: u64,
    sent: HashMap<ProcessId, u64>,
    received: HashMap<ProcessId, u64>,
    /// The message that is being handled, and since when.
    handled: Option<(Message, u64)>,
}

impl Recorder {
    /// The recorder of a process that writes to a file of its own in `directory`.
    pub(crate) fn new(directory: &Path, process: ProcessId) -> Recorder {
        let name = format!(
            "{:x}-{}-{}.ptl",
            process.nid,
            process.pid,
            std::process::id()
        );
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_nanos() as u64);
        Recorder(Arc::new(Mutex::new(Recording {
            file: directory.join(name),
            process,
            clock_zero_ns: since.saturating_sub(now()),
            records: VecDeque::new(),
            lost: 0,
            sent: HashMap::new(),
            received: HashMap::new(),
            handled: None,
        })))
    }

    /// An event was posted.
    #[cold]
    pub(crate) fn on_event(&self, kind: EventKind) {
        let mut recording = self.0.lock();
        let cause = recording.handled;
        let what = What::Event {
            kind: kind as u8,
            cause: cause.map(|(message, _)| (message.peer, message.number)),
        };
        recording.push(now(), what);
    }

    /// A thread has slept in a call for so long.
    pub(crate) fn on_waited(&self, length_ns: u64, awaited: Awaited) {
        let since = now().saturating_sub(length_ns);
        self.0.lock().push(since, What::Waited(awaited));
    }

    fn on_sent(&self, to: ProcessId, words: &Words, since: u64) {
        let mut recording = self.0.lock();
        let number = next(&mut recording.sent, to);
        let message = Message {
            peer: to,
            number,
            words: *words,
        };
        recording.push(since, What::Sent(message));
    }

    /// A message is next; it stays that until it is done.
    fn on_next(&self, from: ProcessId, words: &Words) {
        let mut recording = self.0.lock();
        if recording.handled.is_none() {
            let number = next(&mut recording.received, from);
            let message = Message {
                peer: from,
                number,
                words: *words,
            };
            recording.handled = Some((message, now()));
        }
    }

    fn on_done(&self) {
        let mut recording = self.0.lock();
        if let Some((message, since)) = recording.handled.take() {
            recording.push(since, What::Handled(message));
        }
    }
}

impl Recording {
    /// Something that began then and ends now.
    fn push(&mut self, at_ns: u64, what: What) {
        if self.records.len() == MOST_RECORDS {
            self.records.pop_front();
            self.lost += 1;
        }
        self.records.push_back(Record {
            at_ns,
            length_ns: now().saturating_sub(at_ns),
            what,
        });
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        let timeline = Timeline {
            form: FORM,
            boot: boot.unwrap_or_default().trim().into(),
            clock_zero_ns: self.clock_zero_ns,
            process: self.process,
            os_process: std::process::id(),
            rank: rank(),
            lost: self.lost,
            records: std::mem::take(&mut self.records).into(),
        };
        if let Err(error) = write(&self.file, &timeline.to_bytes()) {
            let file = self.file.display();
            log(
                Level::Warn,
                &format!("PTL_TRACE: {file} isn't written: {error}"),
            );
        }
    }
}

/// Writes a file that only this user may read. The folder may be shared, and the name can be
/// foreseen: no link is followed, and nobody else's file touched.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = lintel_private_file::open_or_create(path)?;
    lintel_private_file::allow_size(bytes.len() as u64)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

/// The number of the next message to or from a process.
fn next(counts: &mut HashMap<ProcessId, u64>, process: ProcessId) -> u64 {
    let count = counts.entry(process).or_default();
    *count += 1;
    *count
}

/// Nanoseconds of the clock that all processes of the machine share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn rank() -> Option<u32> {
    let names = ["PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
    let given = names.iter().filter_map(|name| std::env::var(name).ok());
    given.filter_map(|rank| rank.parse().ok()).next()
}

/// A NAL whose messages are recorded.
pub(crate) struct Recorded<N> {
    inner: N,
    recorder: Recorder,
}

impl<N> Recorded<N> {
    pub(crate) fn new(inner: N, recorder: Recorder) -> Self {
        Recorded { inner, recorder }
    }
}

impl<N: Nal> Nal for Recorded<N> {
    // Not `next_inline`: each message goes through `next`.
    forward!(self { Recorded { inner, .. } => inner }: capabilities, receive_into, fetch, fill,
        recall, backlog, lends, resources, traffic, arrivals);

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        let since = now();
        self.inner.send(to, words, body)?;
        self.recorder.on_sent(to, words, since);
        Ok(())
    }

    fn next(&mut self) -> Option<Arrival> {
        let arrival = self.inner.next();
        if let Some(Arrival::Message(origin, words, _)) = &arrival {
            self.recorder.on_next(origin.process, words);
        }
        arrival
    }

    fn done(&mut self, origin: Origin) {
        self.inner.done(origin);
        self.recorder.on_done();
    }
}

impl<N: Nal> Wake for Recorded<N> {
    forward!(self { Recorded { inner, .. } => inner }: ..Wake);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_writes_what_it_has_when_it_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (one, two) = (ProcessId::new(1, 1), ProcessId::new(1, 2));
        let recorder = Recorder::new(folder.path(), one);
        recorder.on_sent(two, &[1; 6], now());
        recorder.on_next(two, &[2; 6]);
        recorder.on_next(two, &[2; 6]);
        recorder.on_event(EventKind::Ack);
        recorder.on_done();
        drop(recorder);
        let file = std::fs::read_dir(folder.path())
            .expect("it is there")
            .next();
        let file = file.expect("one file").expect("it can be read");
        let bytes = std::fs::read(file.path()).expect("it can be read");
        let timeline = Timeline::from_bytes(&bytes).expect("a timeline");
        let whats: Vec<What> = timeline.records.into_iter().map(|r| r.what).collect();
        let message = |words| Message {
            peer: two,
            number: 1,
            words,
        };
        let event = What::Event {
            kind: EventKind::Ack as u8,
            cause: Some((two, 1)),
        };
        let handled = What::Handled(message([2; 6]));
        assert_eq!(whats, [What::Sent(message([1; 6])), event, handled]);
    }

    #[test]
    fn a_link_of_the_name_is_not_followed_and_an_own_file_is_written_anew() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (own, link) = (folder.path().join("own"), folder.path().join("link"));
        let other = folder.path().join("other");
        std::fs::write(&other, "stays").expect("it can be written");
        std::os::unix::fs::symlink(&other, &link).expect("it can be made");
        assert!(write(&link, b"timeline").is_err());
        for bytes in ["longer", "short"] {
            write(&own, bytes.as_bytes()).expect("it can be written");
        }
        let read = |path| std::fs::read_to_string(path).expect("it can be read");
        assert_eq!((read(&other), read(&own)), ("stays".into(), "short".into()));
    }

    #[test]
    fn later_records_replace_the_oldest() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let recorder = Recorder::new(folder.path(), ProcessId::new(1, 1));
        for _ in 0..MOST_RECORDS + 3 {
            recorder.on_event(EventKind::Put);
        }
        let recording = recorder.0.lock();
        assert_eq!((recording.records.len(), recording.lost), (MOST_RECORDS, 3));
    }
}
