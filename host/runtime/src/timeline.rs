//! The timeline of a process (`PTL_TRACE`): calls, messages, events and waits, kept in memory and
//! written to a file when the process leaves the network. Without it, an event costs one branch
//! and a message nothing: [`Recorded`] wraps the networks only if a timeline is asked for. A call
//! looks whether it is recorded where it looks whether the engine lives in the agent.
//!
//! `PtlEQGet`, `PtlCTGet` and other calls that only look are not recorded: programs make them
//! in loops, and would find nothing else in the records.
//!
//! Reading the clock is most of what a record costs, so it is read seldom: a message that is sent
//! in a call begins with the call, and what a message of few bytes takes isn't measured.

use crate::log::{Level, log};
use lintel_claim::{Claim, Lent};
use lintel_lock::Mutex;
use lintel_nal::{Arrival, Nal, Origin, Outgoing, Payload, Unreachable, Wake, forward};
use lintel_snapshot::Awaited;
use lintel_snapshot::timeline::{FORM, Message, Record, Timeline, What};
use lintel_types::{EventKind, ProcessId};
use lintel_wire::Words;
use nix::time::{ClockId, clock_gettime};
use rustix::thread::gettid;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::io::{self, Write};
use std::num::NonZeroU64;
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
    sent: Numbers,
    received: Numbers,
    handled: Option<Handled>,
}

/// The message that is being handled.
struct Handled {
    message: Message,
    since: u64,
    is_short: bool,
}

/// Bytes of the longest body whose sending and handling take no time that is worth a look at the
/// clock.
const SHORT: u64 = 4096;

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
            records: room(),
            lost: 0,
            sent: Numbers::default(),
            received: Numbers::default(),
            handled: None,
        })))
    }

    /// An event was posted.
    #[cold]
    pub(crate) fn on_event(&self, kind: EventKind) {
        let mut recording = self.0.lock();
        let cause = recording.handled.as_ref();
        let at_ns = match cause {
            Some(handled) if handled.is_short => handled.since,
            _ => now(),
        };
        let cause = cause.map(|handled| (handled.message.peer, handled.message.number));
        let kind = kind as u8;
        recording.push(at_ns, 0, What::Event { kind, cause });
    }

    /// A call has returned.
    pub(crate) fn on_called(&self, name: &'static str, began: CallBegun) {
        let what = What::Called {
            name: Cow::Borrowed(name),
            thread: THREAD.with(|thread| *thread),
        };
        let began = began.0.get();
        let length_ns = now().saturating_sub(began);
        self.0.lock().push(began, length_ns, what);
    }

    /// A thread has slept in a call for so long.
    pub(crate) fn on_waited(&self, length_ns: u64, awaited: Awaited) {
        let since = now().saturating_sub(length_ns);
        self.0.lock().push(since, length_ns, What::Waited(awaited));
    }

    fn on_sent(&self, to: ProcessId, words: &Words, at_ns: u64, length_ns: u64) {
        let mut recording = self.0.lock();
        let number = recording.sent.next(to);
        let message = Message {
            peer: to,
            number,
            words: *words,
        };
        recording.push(at_ns, length_ns, What::Sent(message));
    }

    /// A message is next; it stays that until it is done.
    fn on_next(&self, from: ProcessId, words: &Words, is_short: bool) {
        let mut recording = self.0.lock();
        if recording.handled.is_none() {
            let number = recording.received.next(from);
            let message = Message {
                peer: from,
                number,
                words: *words,
            };
            recording.handled = Some(Handled {
                message,
                since: now(),
                is_short,
            });
        }
    }

    fn on_done(&self) {
        let mut recording = self.0.lock();
        if let Some(handled) = recording.handled.take() {
            let length_ns = match handled.is_short {
                true => 0,
                false => now().saturating_sub(handled.since),
            };
            recording.push(handled.since, length_ns, What::Handled(handled.message));
        }
    }
}

impl Recording {
    fn push(&mut self, at_ns: u64, length_ns: u64, what: What) {
        if self.records.len() == MOST_RECORDS {
            self.records.pop_front();
            self.lost += 1;
        }
        self.records.push_back(Record {
            at_ns,
            length_ns,
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

/// Room for all records, touched once: the page faults aren't on the way of messages then.
fn room() -> VecDeque<Record> {
    let nothing = Record {
        at_ns: 0,
        length_ns: 0,
        what: What::Waited(Awaited::Other),
    };
    let mut records = VecDeque::new();
    records.resize(MOST_RECORDS, nothing);
    records.clear();
    records
}

/// How many messages went to, or came from, each process.
#[derive(Default)]
struct Numbers {
    counts: HashMap<ProcessId, u64>,
    /// The process that was asked for last, whose count is the true one here.
    last: Option<(ProcessId, u64)>,
}

impl Numbers {
    /// The number of the next message to or from a process.
    fn next(&mut self, process: ProcessId) -> u64 {
        if let Some((last, count)) = &mut self.last {
            if *last == process {
                *count += 1;
                return *count;
            }
            self.counts.insert(*last, *count);
        }
        let count = self.counts.get(&process).map_or(1, |count| count + 1);
        self.last = Some((process, count));
        count
    }
}

/// When a call that is recorded began, in nanoseconds; one that isn't has none, and no room for it.
#[derive(Clone, Copy)]
pub(crate) struct CallBegun(NonZeroU64);

impl CallBegun {
    #[cold]
    pub(crate) fn now() -> CallBegun {
        CallBegun(NonZeroU64::new(now()).unwrap_or(NonZeroU64::MIN))
    }

    /// Of a call that sends a message at once.
    #[cold]
    pub(crate) fn by_sending() -> CallBegun {
        let began = CallBegun::now();
        BEGAN.set(Some(began.0.get()));
        began
    }

    /// The call returns: what is sent from now on is none of its messages.
    pub(crate) fn end() {
        BEGAN.set(None);
    }
}

thread_local! {
    /// The system's number of this thread.
    static THREAD: i32 = gettid().as_raw_nonzero().get();
    /// When the call began by which this thread sends a message, until it has sent one.
    static BEGAN: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Nanoseconds of the clock that all processes of the machine share.
fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has it");
    time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
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
    forward!(self { Recorded { inner, .. } => inner }: capabilities, receive_into, fetch, fill,
        recall, backlog, lends, resources, traffic, arrivals);

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        let since = BEGAN.take().unwrap_or_else(now);
        self.inner.send(to, words, body)?;
        let length_ns = match is_short(&body) {
            true => 0,
            false => now().saturating_sub(since),
        };
        self.recorder.on_sent(to, words, since, length_ns);
        Ok(())
    }

    fn send_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        let since = BEGAN.take().unwrap_or_else(now);
        let is_sent = self.inner.send_lent(to, words, body, number)?;
        if is_sent {
            self.recorder.on_sent(to, words, since, 0);
        }
        Ok(is_sent)
    }

    fn next(&mut self) -> Option<Arrival> {
        let arrival = self.inner.next();
        if let Some(Arrival::Message(origin, words, payload)) = &arrival {
            let is_short = matches!(payload, Payload::Inline(body) if body.len() <= SHORT);
            self.recorder.on_next(origin.process, words, is_short);
        }
        arrival
    }

    fn next_inline(&mut self) -> Option<(Origin, Words, Claim)> {
        let next = self.inner.next_inline();
        if let Some((origin, words, body)) = &next {
            let is_short = body.len() <= SHORT;
            self.recorder.on_next(origin.process, words, is_short);
        }
        next
    }

    fn done(&mut self, origin: Origin) {
        self.inner.done(origin);
        self.recorder.on_done();
    }
}

/// Whether little is copied.
fn is_short(body: &Outgoing<'_>) -> bool {
    match body {
        Outgoing::Copied { pieces, .. } => lintel_memory::length(pieces) <= SHORT,
        Outgoing::LentToRead(_) | Outgoing::LentToFill(_) => true,
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
        recorder.on_sent(two, &[1; 6], now(), 0);
        recorder.on_next(two, &[2; 6], true);
        recorder.on_next(two, &[2; 6], true);
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
    fn messages_are_numbered_by_process_whatever_their_order() {
        let mut numbers = Numbers::default();
        let (one, two) = (ProcessId::new(1, 1), ProcessId::new(1, 2));
        let given = [one, one, two, one, two, two].map(|process| numbers.next(process));
        assert_eq!(given, [1, 2, 1, 3, 2, 3]);
    }

    #[test]
    fn a_call_is_recorded_with_its_name_and_its_thread() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let recorder = Recorder::new(folder.path(), ProcessId::new(1, 1));
        let began = CallBegun::now();
        recorder.on_called("PtlPut", began);
        let recording = recorder.0.lock();
        let record = &recording.records[0];
        assert_eq!(record.at_ns, began.0.get());
        let thread = gettid().as_raw_nonzero().get();
        let name = Cow::Borrowed("PtlPut");
        assert_eq!(record.what, What::Called { name, thread });
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
