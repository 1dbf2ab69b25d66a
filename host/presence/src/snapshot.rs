//! Snapshots of a process, for any process of its user: the reader counts up a request and
//! wakes the owner's helper, which writes its answer behind the rings. A hung application
//! answers too, since its helper doesn't wait for it; a stopped process doesn't.

use crate::attached::Attached;
use crate::bell::wake_helper_of;
use crate::stats::{ProcessStats, StatsWriter, attached};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// How often a reader looks for answers.
const LOOK_AGAIN: Duration = Duration::from_micros(500);

/// A live process, and what it has answered.
pub struct Answer {
    /// Which process it is.
    pub process: ProcessStats,
    /// The bytes that it has written, if it answered in time.
    pub snapshot: Option<Vec<u8>>,
}

/// Asks every process of `job`, or of all jobs, for a snapshot, and waits for the answers no
/// longer than `within` altogether. This process itself isn't asked.
///
/// # Errors
/// The directory of shared memory can't be read.
pub fn snapshots(job: Option<&str>, within: Duration) -> io::Result<Vec<Answer>> {
    let until = Instant::now() + within;
    let mut asked = Vec::new();
    for (process, memory) in attached()? {
        if job.is_none_or(|job| process.job == job) {
            let request = ask(&memory);
            asked.push((process, memory, request));
        }
    }
    let answer = |(process, memory, request)| {
        let snapshot = read(&memory, request, until);
        Answer { process, snapshot }
    };
    Ok(asked.into_iter().map(answer).collect())
}

impl StatsWriter {
    /// The last request for a snapshot, if it isn't answered yet.
    pub fn snapshot_asked(&self) -> Option<u32> {
        let words = &self.segment.header().snapshot;
        let asked = words.asked.load(Ordering::Acquire);
        (asked != words.answered.load(Ordering::Relaxed)).then_some(asked)
    }

    /// Answers a request; of `snapshot` no more than [`SNAPSHOT_BYTES`](crate::SNAPSHOT_BYTES)
    /// count.
    pub fn answer_snapshot(&self, asked: u32, snapshot: &[u8]) {
        write(self.segment.memory(), asked, snapshot);
    }
}

/// Writes an answer. If another process reads an earlier one meanwhile, it notices.
fn write(memory: &Attached, asked: u32, snapshot: &[u8]) {
    let words = &memory.header().snapshot;
    words.begun.store(asked, Ordering::Relaxed);
    // Before the bytes: a reader that sees one of them sees that they change.
    fence(Ordering::Release);
    for (place, bytes) in memory.snapshot().iter().zip(snapshot.chunks(8)) {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        place.store(u64::from_ne_bytes(word), Ordering::Relaxed);
    }
    words.length.store(snapshot.len() as u32, Ordering::Relaxed);
    // Pairs with the Acquire load in `read` ("snapshot written").
    words.answered.store(asked, Ordering::Release);
}

fn ask(memory: &Attached) -> u32 {
    let header = memory.header();
    let asked = header.snapshot.asked.fetch_add(1, Ordering::AcqRel);
    wake_helper_of(header);
    asked.wrapping_add(1)
}

/// The answer to that request, or to a later one.
fn read(memory: &Attached, request: u32, until: Instant) -> Option<Vec<u8>> {
    let words = &memory.header().snapshot;
    loop {
        let answered = words.answered.load(Ordering::Acquire);
        if answered.wrapping_sub(request) as i32 >= 0 {
            let length = words.length.load(Ordering::Relaxed) as usize;
            let bytes = copy(memory.snapshot(), length);
            // After the bytes: if one of them is of a later answer, that has begun.
            fence(Ordering::Acquire);
            if words.begun.load(Ordering::Relaxed) == answered {
                return Some(bytes);
            }
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn copy(words: &[AtomicU64], length: usize) -> Vec<u8> {
    let length = length.min(size_of_val(words));
    let words = words[..length.div_ceil(8)].iter();
    let mut bytes: Vec<u8> = words
        .flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes())
        .collect();
    bytes.truncate(length);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment::Segment;
    use std::sync::Arc;

    fn segment(name: &str) -> Arc<Segment> {
        let job = format!("{name}{}", std::process::id());
        Arc::new(Segment::create(&job, 1, 77).expect("the name is free"))
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    #[test]
    fn an_answer_is_read_as_it_was_written_and_asked_for_once() {
        let segment = segment("answer");
        let writer = StatsWriter::new(segment.clone());
        assert_eq!(writer.snapshot_asked(), None);
        let request = ask(segment.memory());
        assert_eq!(writer.snapshot_asked(), Some(request));
        writer.answer_snapshot(request, b"thirteen byte");
        assert_eq!(writer.snapshot_asked(), None);
        let answer = read(segment.memory(), request, soon());
        assert_eq!(answer.as_deref(), Some(&b"thirteen byte"[..]));
    }

    #[test]
    fn one_answer_serves_all_that_asked_before_it() {
        let segment = segment("both");
        let writer = StatsWriter::new(segment.clone());
        let (first, second) = (ask(segment.memory()), ask(segment.memory()));
        writer.answer_snapshot(writer.snapshot_asked().expect("two have asked"), b"both");
        for request in [first, second] {
            let answer = read(segment.memory(), request, soon());
            assert_eq!(answer.as_deref(), Some(&b"both"[..]));
        }
    }

    #[test]
    fn nothing_is_read_of_a_process_that_does_not_answer_or_is_writing() {
        let segment = segment("silent");
        let request = ask(segment.memory());
        assert_eq!(read(segment.memory(), request, Instant::now()), None);
        write(segment.memory(), request, b"whole");
        let begun = &segment.header().snapshot.begun;
        begun.store(request.wrapping_add(1), Ordering::Relaxed);
        assert_eq!(read(segment.memory(), request, Instant::now()), None);
    }

    #[test]
    fn lengths_beyond_the_memory_are_cut() {
        let words = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
        assert_eq!(copy(&words, 9), [[0xff; 8].as_slice(), &[0]].concat());
        assert_eq!(copy(&words, usize::MAX).len(), 16);
    }
}
