//! The timeline of a process (`PTL_TRACE`): calls, messages, events and waits, kept in memory and
//! written to a file when the process leaves the network. Without it, an event costs one branch
//! and a message nothing: [`Recorded`] wraps the networks only if a timeline is asked for. A call
//! looks whether it is recorded where it looks whether the engine lives in the agent.
//!
//! `PtlEQGet`, `PtlCTGet` and other calls that only look are not recorded: programs make them
//! in loops, and would find nothing else in the records.
//!
//! Reading the clock is most of what a record costs, so it is read seldom, and by
//! [ticks](crate::stamps): a message that is sent in a call begins with the call, and what a message
//! of few bytes takes isn't measured. The core's lock protects the records; they take none of their own.

use crate::log::{Level, log};
use crate::stamps::{Clock, Stamp};
use lintel_claim::{Claim, Lent, prefetch_to_write};
use lintel_nal::{Arrival, Nal, Origin, Outgoing, Payload, Unreachable, Wake, forward};
use lintel_snapshot::Awaited;
use lintel_snapshot::timeline::{FORM, Message, Record, Timeline, What};
use lintel_types::{EventKind, ProcessId};
use lintel_wire::Words;
use rustix::thread::gettid;
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Records that a process keeps; later ones replace older ones.
const MOST_RECORDS: usize = 1 << 17;

/// The records of a process, which the core's lock protects. It writes them when it is dropped.
pub(crate) struct Recorder {
    file: PathBuf,
    process: ProcessId,
    clock: Clock,
    /// Nanoseconds since 1970 at the clock's 0.
    clock_zero_ns: u64,
    records: Records,
    sent: Numbers,
    received: Numbers,
    handled: Option<Handled>,
}

/// The message that is being handled, or was handled last. That one becomes a record with the next
/// record, so that it isn't on the way of what awaits the message.
struct Handled {
    header: Header,
    since: Stamp,
    is_short: bool,
    /// The first event that it has caused, if that took no time.
    event: Option<EventKind>,
    /// When it was done.
    end: Option<Stamp>,
}

/// Bytes of the longest body whose sending and handling take no time that is worth a look at the
/// clock.
const SHORT: u64 = 4096;

impl Recorder {
    /// As [`new`](Self::new); none, with a warning, if there can be no file.
    pub(crate) fn begin(directory: &Path, process: ProcessId) -> Option<Recorder> {
        let file = file_of(directory, process);
        match check_writable(&file) {
            Ok(()) => Some(Recorder::new(directory, process)),
            Err(error) => {
                warn_unwritten(&file, &error);
                None
            }
        }
    }

    /// The recorder of a process that writes to a file of its own in `directory`.
    pub(crate) fn new(directory: &Path, process: ProcessId) -> Recorder {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let since = since.map_or(0, |since| since.as_nanos() as u64);
        let clock = Clock::new();
        Recorder {
            file: file_of(directory, process),
            process,
            clock_zero_ns: since.saturating_sub(clock.began_ns()),
            clock,
            records: Records::new(),
            sent: Numbers::default(),
            received: Numbers::default(),
            handled: None,
        }
    }

    /// An event was posted.
    pub(crate) fn on_event(&mut self, kind: EventKind) {
        let handled = self.handled.as_mut();
        let mut handled = handled.filter(|handled| handled.end.is_none());
        match &mut handled {
            Some(handled) if handled.is_short && handled.event.is_none() => {
                handled.event = Some(kind);
                return;
            }
            _ => {}
        }
        let at = match &handled {
            Some(handled) if handled.is_short => handled.since,
            _ => Stamp::now(),
        };
        let cause = handled.map(|handled| (handled.header.peer, handled.header.number));
        self.push(at, at, Noted::Event { kind, cause });
    }

    /// A call has returned.
    pub(crate) fn on_called(&mut self, call: Call) {
        let Call { name, began, ended } = call;
        let thread = THREAD.with(|thread| *thread);
        self.push(began, ended, Noted::Called { name, thread });
    }

    /// A thread has slept in a call for so long.
    pub(crate) fn on_waited(&mut self, length_ns: u64, awaited: Awaited) {
        let now = Stamp::now();
        let awaited = Box::new(awaited);
        self.push(now, now, Noted::Waited { awaited, length_ns });
    }

    fn on_sent(&mut self, to: ProcessId, words: &Words, at: Stamp, end: Stamp) {
        let header = Header::new(to, self.sent.next(to), words);
        self.push(at, end, Noted::Sent(header));
    }

    /// A message is next; it stays that until it is done.
    #[inline(always)]
    fn on_next(&mut self, from: ProcessId, words: &Words, is_short: bool) {
        let is_open = |handled: &Handled| handled.end.is_none();
        if self.handled.as_ref().is_some_and(is_open) {
            return;
        }
        let since = Stamp::now();
        self.settle();
        self.handled = Some(Handled {
            header: Header::new(from, self.received.next(from), words),
            since,
            is_short,
            event: None,
            end: None,
        });
    }

    fn on_done(&mut self) {
        if let Some(handled) = &mut self.handled {
            handled.end = match handled.is_short {
                true => Some(handled.since),
                false => Some(Stamp::now()),
            };
        }
    }

    /// The message that was handled last becomes a record.
    #[inline(always)]
    fn settle(&mut self) {
        if let Some(handled) = self.handled.take_if(|handled| handled.end.is_some()) {
            let (at, end) = (handled.since, handled.end.unwrap_or(handled.since));
            let noted = Noted::Handled(handled.header, handled.event);
            self.records.push(Entry { at, end, noted });
        }
    }

    #[inline(always)]
    fn push(&mut self, at: Stamp, end: Stamp, noted: Noted) {
        self.settle();
        self.clock.keep_true(end);
        self.records.push(Entry { at, end, noted });
    }

    /// What is written of the records, the oldest first.
    fn records(&self) -> Vec<Record> {
        let entries = self.records.oldest_first();
        entries
            .flat_map(|entry| entry.to_records(&self.clock))
            .collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
        self.settle();
        self.clock.compare();
        let timeline = Timeline {
            form: FORM,
            boot: boot.unwrap_or_default().trim().into(),
            clock_zero_ns: self.clock_zero_ns,
            process: self.process,
            os_process: std::process::id(),
            rank: rank(),
            lost: self.records.lost(),
            records: self.records(),
        };
        if let Err(error) = write(&self.file, &timeline.to_bytes()) {
            warn_unwritten(&self.file, &error);
        }
    }
}

/// What is kept of a record: one line of the cache.
#[derive(Clone)]
#[repr(align(64))]
struct Entry {
    at: Stamp,
    end: Stamp,
    noted: Noted,
}

const _: () = assert!(size_of::<Entry>() == 64);

/// As [`What`], in less room.
#[derive(Clone)]
enum Noted {
    Sent(Header),
    /// With the event that it has caused in no time.
    Handled(Header, Option<EventKind>),
    Event {
        kind: EventKind,
        cause: Option<(ProcessId, u64)>,
    },
    /// Until the record's time, in nanoseconds.
    Waited {
        awaited: Box<Awaited>,
        length_ns: u64,
    },
    Called {
        name: &'static str,
        thread: i32,
    },
}

/// A message, and what timelines show of its header.
#[derive(Clone)]
struct Header {
    peer: ProcessId,
    number: u64,
    /// Words 0, 2 and 3: verb and portal, length, match bits.
    words: [u64; 3],
}

impl Header {
    fn new(peer: ProcessId, number: u64, words: &Words) -> Header {
        let words = [words[0], words[2], words[3]];
        Header {
            peer,
            number,
            words,
        }
    }

    fn to_message(&self) -> Message {
        let [kind, length, match_bits] = self.words;
        Message {
            peer: self.peer,
            number: self.number,
            words: [kind, 0, length, match_bits, 0, 0],
        }
    }
}

impl Entry {
    /// The record, and one of the event that it includes; events come before what caused them.
    fn to_records(&self, clock: &Clock) -> impl Iterator<Item = Record> + use<> {
        let record = self.to_record(clock);
        let event = match &self.noted {
            Noted::Handled(header, Some(kind)) => Some(Record {
                at_ns: record.at_ns,
                length_ns: 0,
                what: What::Event {
                    kind: *kind as u8,
                    cause: Some((header.peer, header.number)),
                },
            }),
            _ => None,
        };
        event.into_iter().chain([record])
    }

    fn to_record(&self, clock: &Clock) -> Record {
        let (at_ns, end_ns) = (clock.ns(self.at), clock.ns(self.end));
        let (waited_ns, what) = match &self.noted {
            Noted::Sent(header) => (0, What::Sent(header.to_message())),
            Noted::Handled(header, _) => (0, What::Handled(header.to_message())),
            &Noted::Event { kind, cause } => {
                let kind = kind as u8;
                (0, What::Event { kind, cause })
            }
            Noted::Waited { awaited, length_ns } => {
                (*length_ns, What::Waited(Awaited::clone(awaited)))
            }
            &Noted::Called { name, thread } => {
                let name = Cow::Borrowed(name);
                (0, What::Called { name, thread })
            }
        };
        let at_ns = at_ns.saturating_sub(waited_ns);
        Record {
            at_ns,
            length_ns: end_ns.saturating_sub(at_ns),
            what,
        }
    }
}

/// The last [`MOST_RECORDS`] records. Their room is touched once, and a line is fetched before it is
/// needed: neither page faults nor misses are on the way of messages.
struct Records {
    room: Box<[Entry]>,
    /// Records so far.
    count: usize,
}

impl Records {
    fn new() -> Records {
        let nothing = Entry {
            at: Stamp::default(),
            end: Stamp::default(),
            noted: Noted::Event {
                kind: EventKind::Put,
                cause: None,
            },
        };
        Records {
            room: vec![nothing; MOST_RECORDS].into(),
            count: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, entry: Entry) {
        self.room[self.count % MOST_RECORDS] = entry;
        self.count += 1;
        let soon = (self.count + LINES_AHEAD) % MOST_RECORDS;
        prefetch_to_write((&raw const self.room[soon]).cast());
    }

    fn lost(&self) -> u64 {
        self.count.saturating_sub(MOST_RECORDS) as u64
    }

    fn oldest_first(&self) -> impl Iterator<Item = &Entry> {
        let kept = self.count.saturating_sub(MOST_RECORDS)..self.count;
        kept.map(|record| &self.room[record % MOST_RECORDS])
    }
}

/// How far ahead lines are fetched: as many as a message takes records, about.
const LINES_AHEAD: usize = 4;

/// A name that no other process of the machine has at the same time.
fn file_of(directory: &Path, process: ProcessId) -> PathBuf {
    let (nid, pid, os_process) = (process.nid, process.pid, std::process::id());
    directory.join(format!("{nid:x}-{pid}-{os_process}.ptl"))
}

fn warn_unwritten(file: &Path, error: &io::Error) {
    let file = file.display();
    let words = format!("PTL_TRACE: {file} isn't written: {error}");
    log(Level::Warn, &words);
}

/// Whether the file can be written in the end. A process that is killed leaves none, so an empty one is removed.
fn check_writable(path: &Path) -> io::Result<()> {
    let file = lintel_private_file::open_or_create(path)?;
    match file.metadata()?.len() {
        0 => std::fs::remove_file(path),
        _ => Ok(()),
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

/// When a call that is recorded began.
#[derive(Clone, Copy)]
pub(crate) struct CallBegun(Stamp);

/// A call that is recorded and has returned.
pub(crate) struct Call {
    name: &'static str,
    began: Stamp,
    ended: Stamp,
}

impl CallBegun {
    #[cold]
    pub(crate) fn now() -> CallBegun {
        CallBegun(Stamp::now())
    }

    /// Of a call that sends a message at once.
    #[cold]
    pub(crate) fn by_sending() -> CallBegun {
        let began = CallBegun::now();
        BEGAN.set(Some(began.0));
        began
    }

    /// The call returns: what is sent from now on is none of its messages.
    pub(crate) fn end(self, name: &'static str) -> Call {
        BEGAN.set(None);
        Call {
            name,
            began: self.0,
            ended: Stamp::now(),
        }
    }
}

thread_local! {
    /// The system's number of this thread.
    static THREAD: i32 = gettid().as_raw_nonzero().get();
    /// When the call began by which this thread sends a message, until it has sent one.
    static BEGAN: Cell<Option<Stamp>> = const { Cell::new(None) };
}

fn rank() -> Option<u32> {
    let names = ["PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];
    let given = names.iter().filter_map(|name| std::env::var(name).ok());
    given.filter_map(|rank| rank.parse().ok()).next()
}

/// A NAL whose messages are recorded.
pub(crate) struct Recorded<N> {
    pub(crate) inner: N,
    pub(crate) recorder: Recorder,
}

impl<N> Recorded<N> {
    pub(crate) fn new(inner: N, recorder: Recorder) -> Self {
        Recorded { inner, recorder }
    }
}

impl<N: Nal> Nal for Recorded<N> {
    forward!(self { Recorded { inner, .. } => inner }: capabilities, leave_to, begin_parts,
        take_part, revoke_grant, note_moved, receive_into, fetch, fill,
        recall, backlog, lends, resources, traffic, arrivals);

    fn send(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Outgoing<'_>,
    ) -> Result<(), Unreachable> {
        let since = BEGAN.take().unwrap_or_else(Stamp::now);
        self.inner.send(to, words, body)?;
        let end = match is_short(&body) {
            true => since,
            false => Stamp::now(),
        };
        self.recorder.on_sent(to, words, since, end);
        Ok(())
    }

    fn send_lent(
        &mut self,
        to: ProcessId,
        words: &Words,
        body: Lent<'_>,
        number: u64,
    ) -> Result<bool, Unreachable> {
        let since = BEGAN.take().unwrap_or_else(Stamp::now);
        let is_sent = self.inner.send_lent(to, words, body, number)?;
        if is_sent {
            self.recorder.on_sent(to, words, since, since);
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
        let mut recorder = Recorder::new(folder.path(), one);
        let now = Stamp::now();
        recorder.on_sent(two, &[1; 6], now, now);
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
        let message = |word| Message {
            peer: two,
            number: 1,
            words: [word, 0, word, word, 0, 0],
        };
        let event = What::Event {
            kind: EventKind::Ack as u8,
            cause: Some((two, 1)),
        };
        let handled = What::Handled(message(2));
        assert_eq!(whats, [What::Sent(message(1)), event, handled]);
    }

    #[test]
    fn each_event_of_a_message_has_its_cause_and_later_ones_have_none() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (one, two) = (ProcessId::new(1, 1), ProcessId::new(1, 2));
        let mut recorder = Recorder::new(folder.path(), one);
        recorder.on_next(two, &[0; 6], true);
        recorder.on_event(EventKind::Put);
        recorder.on_event(EventKind::AutoUnlink);
        recorder.on_done();
        recorder.on_event(EventKind::Link);
        let events = recorder.records().into_iter();
        let mut events: Vec<_> = events
            .filter_map(|record| match record.what {
                What::Event { kind, cause } => Some((kind, cause)),
                _ => None,
            })
            .collect();
        events.sort_unstable();
        let caused = Some((two, 1));
        let kinds = [
            (EventKind::Put as u8, caused),
            (EventKind::Link as u8, None),
            (EventKind::AutoUnlink as u8, caused),
        ];
        assert_eq!(events, kinds);
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
        let mut recorder = Recorder::new(folder.path(), ProcessId::new(1, 1));
        let began = CallBegun::now();
        recorder.on_called(began.end("PtlPut"));
        let entry = recorder.records.oldest_first().next();
        let record = entry.expect("one record").to_record(&recorder.clock);
        assert_eq!(record.at_ns, recorder.clock.ns(began.0));
        let thread = gettid().as_raw_nonzero().get();
        let name = Cow::Borrowed("PtlPut");
        assert_eq!(record.what, What::Called { name, thread });
    }

    #[test]
    fn a_wait_ends_when_it_is_recorded() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mut recorder = Recorder::new(folder.path(), ProcessId::new(1, 1));
        recorder.on_waited(700, Awaited::Other);
        let entry = recorder.records.oldest_first().next();
        let entry = entry.expect("one record");
        let record = entry.to_record(&recorder.clock);
        assert_eq!(record.length_ns, 700);
        assert_eq!(record.at_ns + 700, recorder.clock.ns(entry.end));
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
    fn a_directory_that_is_not_there_is_found_at_the_beginning_and_one_that_is_stays_empty() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let one = ProcessId::new(1, 1);
        assert!(Recorder::begin(&folder.path().join("absent"), one).is_none());
        let recorder = Recorder::begin(folder.path(), one);
        let files = || {
            std::fs::read_dir(folder.path())
                .expect("it is there")
                .count()
        };
        assert!(recorder.is_some());
        assert_eq!(files(), 0);
        drop(recorder);
        assert_eq!(files(), 1);
        assert!(Recorder::begin(folder.path(), one).is_some());
        assert_eq!(files(), 1, "the same file");
    }

    #[test]
    fn later_records_replace_the_oldest() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mut recorder = Recorder::new(folder.path(), ProcessId::new(1, 1));
        for _ in 0..MOST_RECORDS + 3 {
            recorder.on_event(EventKind::Put);
        }
        let records = &recorder.records;
        let kept = records.oldest_first().count();
        assert_eq!((kept, records.lost()), (MOST_RECORDS, 3));
    }
}
