//! Statistics of a process, for any process of its user: numbers in the header of its
//! segment, read without joining the job.

use crate::attached::Attached;
use crate::header::STATS_WORDS;
use crate::registration::{DIRECTORY, Registration, is_locked, is_own, process_of};
use crate::segment::Segment;
use crate::shared_memory::Mode;
use lintel_types::ProcessId;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Numbers whose meaning the writer defines.
pub type Words = [u64; STATS_WORDS];

/// The statistics of a live process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProcessStats {
    /// The job that it takes part in, as in its registration's name.
    pub job: String,
    /// The node and process identifiers that peers address.
    pub process: ProcessId,
    /// The system's process identifier, as the owner sees it.
    pub os_process: i32,
    /// The numbers, perhaps in the middle of an update.
    pub words: Words,
}

/// Writes the statistics of this process.
#[derive(Clone)]
pub struct StatsWriter {
    pub(crate) segment: Arc<Segment>,
}

impl StatsWriter {
    /// Writes into this process's own segment.
    pub fn new(segment: Arc<Segment>) -> Self {
        StatsWriter { segment }
    }

    /// Shows new numbers. A reader may see some of the earlier ones among them.
    pub fn write(&self, words: &Words) {
        for (place, word) in self.segment.header().stats.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
    }
}

/// The statistics of the live processes of this user on this machine, those of this process
/// left out: to open one's own file and close it again would release its lock.
///
/// # Errors
/// The directory of shared memory can't be read.
pub fn process_stats() -> io::Result<Vec<ProcessStats>> {
    let files = std::fs::read_dir(DIRECTORY)?;
    let mut found: Vec<ProcessStats> = files
        .flatten()
        .filter_map(|file| stats_of(&file.path()))
        .collect();
    found.sort_by(|one, other| one.key().cmp(&other.key()));
    Ok(found)
}

/// `None` unless it is a live process's registration of this version and user.
fn stats_of(path: &Path) -> Option<ProcessStats> {
    attach(path, Mode::ReadOnly).map(|(stats, _)| stats)
}

/// As [`process_stats`], with the memory of each process, which may be written to.
pub(crate) fn attached() -> io::Result<Vec<(ProcessStats, Attached)>> {
    let files = std::fs::read_dir(DIRECTORY)?.flatten();
    let found = files.filter_map(|file| attach(&file.path(), Mode::ReadWrite));
    let mut found: Vec<_> = found.collect();
    found.sort_by(|(one, _), (other, _)| one.key().cmp(&other.key()));
    Ok(found)
}

impl ProcessStats {
    fn key(&self) -> (&str, u32, u32) {
        (&self.job, self.process.nid, self.process.pid)
    }
}

fn attach(path: &Path, mode: Mode) -> Option<(ProcessStats, Attached)> {
    let (job, process) = process_of(path)?;
    if is_own(std::fs::symlink_metadata(path).ok()?.ino()) {
        return None;
    }
    let file = lintel_private_file::open(path).ok()?;
    if !is_locked(&file) {
        return None;
    }
    let registration = Registration::read(&file)?;
    let attached = registration.attach(mode).ok()?;
    let mut words = Words::default();
    for (word, place) in words.iter_mut().zip(&attached.header().stats) {
        *word = place.load(Ordering::Relaxed);
    }
    let stats = ProcessStats {
        job,
        process,
        os_process: registration.os_process,
        words,
    };
    Some((stats, attached))
}
