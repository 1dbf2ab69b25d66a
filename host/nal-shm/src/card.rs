//! What a process tells of itself to whoever looks: numbers in the header of its
//! segment, read from the file without joining the job.

use crate::layout::{CARD_WORDS, Header, MAGIC, SEGMENT_BYTES};
use crate::segment::{DIRECTORY, Segment, is_locked, is_own, process_of};
use lintel_types::ProcessId;
use std::fs::File;
use std::io;
use std::mem::offset_of;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Numbers whose meaning their writer knows.
pub type Words = [u64; CARD_WORDS];

/// A live process's card.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Card {
    /// Its job.
    pub job: String,
    /// Its name.
    pub process: ProcessId,
    /// Its number to the system.
    pub os_process: i32,
    /// What it tells.
    pub words: Words,
}

/// Writes the card of this process.
#[derive(Clone)]
pub struct CardWriter {
    segment: Arc<Segment>,
}

impl CardWriter {
    pub(crate) fn new(segment: Arc<Segment>) -> Self {
        CardWriter { segment }
    }

    /// Shows new numbers. A reader may see some of the earlier ones among them.
    pub fn write(&self, words: &Words) {
        for (place, word) in self.segment.header().card.iter().zip(words) {
            place.store(*word, Ordering::Relaxed);
        }
    }
}

/// The cards of the live processes of this machine, those of this process left
/// out: to open one's own file and close it again would let go of its lock.
///
/// # Errors
/// The directory of shared memory can't be read.
pub fn cards() -> io::Result<Vec<Card>> {
    let files = std::fs::read_dir(DIRECTORY)?;
    let mut cards: Vec<Card> = files
        .flatten()
        .filter_map(|file| card_of(&file.path()))
        .collect();
    cards.sort_by_key(|card| (card.job.clone(), card.process.nid, card.process.pid));
    Ok(cards)
}

/// Nothing for what is no live process's segment of this version.
fn card_of(path: &Path) -> Option<Card> {
    let (job, process) = process_of(path)?;
    let metadata = std::fs::metadata(path).ok()?;
    if metadata.len() != SEGMENT_BYTES as u64 || is_own(metadata.ino()) {
        return None;
    }
    let file = File::open(path).ok()?;
    let word = |offset: usize| {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, offset as u64).ok()?;
        Some(u64::from_ne_bytes(bytes))
    };
    if word(offset_of!(Header, magic))? != MAGIC || !is_locked(&file) {
        return None;
    }
    let mut words = Words::default();
    for (index, place) in words.iter_mut().enumerate() {
        *place = word(offset_of!(Header, card) + 8 * index)?;
    }
    Some(Card {
        job,
        process,
        os_process: word(offset_of!(Header, os_process))? as u32 as i32,
        words,
    })
}
