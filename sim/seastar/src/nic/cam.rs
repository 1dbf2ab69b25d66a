//! The content-addressable memory: which sources' packets the RX engine knows
//! what to do with, and a short queue of commands for each.

use std::collections::{BTreeMap, BTreeSet};

/// Sources with an entry.
#[derive(Debug)]
pub(crate) struct Cam {
    capacity: usize,
    rx_queue: u64,
    entries: BTreeMap<u32, Entry>,
    /// Entries by their last use, idle ones only.
    idle: BTreeSet<(u64, u32)>,
    /// Sources with messages under way whose entry was swapped out.
    swapped: BTreeMap<u32, Entry>,
    uses: u64,
    most: usize,
    most_commands: u64,
}

#[derive(Clone, Copy, Default, Debug)]
struct Entry {
    /// Messages of the source that haven't ended.
    messages: u64,
    /// Commands in its queue.
    commands: u64,
    used: u64,
}

/// Whether a message may come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Admission {
    /// Its source has an entry.
    Admitted,
    /// All entries are those of sources with messages under way.
    Full,
}

impl Cam {
    pub(crate) fn new(capacity: u64, rx_queue: u64) -> Self {
        Cam {
            capacity: usize::try_from(capacity).unwrap_or(usize::MAX),
            rx_queue,
            entries: BTreeMap::new(),
            idle: BTreeSet::new(),
            swapped: BTreeMap::new(),
            uses: 0,
            most: 0,
            most_commands: 0,
        }
    }

    /// A message of `source` begins. An idle source's entry is free for the taking.
    pub(crate) fn admit(&mut self, source: u32) -> Admission {
        if self.swapped.contains_key(&source) {
            return Admission::Full;
        }
        let is_new = !self.entries.contains_key(&source);
        if is_new && self.entries.len() >= self.capacity {
            match self.idle.pop_first() {
                Some((_, oldest)) => self.entries.remove(&oldest),
                None => return Admission::Full,
            };
        }
        self.uses += 1;
        let entry = self.entries.entry(source).or_default();
        self.idle.remove(&(entry.used, source));
        entry.used = self.uses;
        entry.messages += 1;
        self.most = self.most.max(self.entries.len());
        Admission::Admitted
    }

    /// Swaps the entry that was used longest ago out, and that of `source` in,
    /// which may be one that was swapped out before.
    pub(crate) fn swap_in(&mut self, source: u32) {
        let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
        if let (Some((&oldest, _)), true) = (oldest, self.entries.len() >= self.capacity) {
            let out = self.entries.remove(&oldest).expect("it was just found");
            self.idle.remove(&(out.used, oldest));
            if out.messages > 0 {
                self.swapped.insert(oldest, out);
            }
        }
        self.uses += 1;
        let mut entry = self.swapped.remove(&source).unwrap_or_default();
        entry.used = self.uses;
        self.entries.insert(source, entry);
        self.most = self.most.max(self.entries.len());
    }

    /// Whether a source's entry is somewhere else.
    pub(crate) fn is_swapped_out(&self, source: u32) -> bool {
        self.swapped.contains_key(&source)
    }

    /// Puts a message's commands into its source's queue. Gives those that had no
    /// room and are fed when others have been used up.
    pub(crate) fn feed(&mut self, source: u32, commands: u64) -> u64 {
        let rx_queue = self.rx_queue;
        let entry = self.entry(source);
        let fed = commands.min(rx_queue - entry.commands);
        entry.commands += fed;
        let now = entry.commands;
        self.most_commands = self.most_commands.max(now);
        commands - fed
    }

    /// A command of `source` is used up.
    pub(crate) fn retire(&mut self, source: u32) {
        self.entry(source).commands -= 1;
    }

    /// Wherever it is.
    fn entry(&mut self, source: u32) -> &mut Entry {
        let entry = self.entries.get_mut(&source);
        let entry = entry.or_else(|| self.swapped.get_mut(&source));
        entry.expect("a message was admitted")
    }

    /// A message of `source` is in, or given up; its last `fed` commands are used up.
    pub(crate) fn finish(&mut self, source: u32, fed: u64) {
        let entry = self.entry(source);
        entry.messages -= 1;
        entry.commands -= fed;
        let Entry { messages, used, .. } = *entry;
        if messages > 0 {
            return;
        }
        if self.swapped.remove(&source).is_none() {
            self.idle.insert((used, source));
        }
    }

    /// The most sources that it ever held.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// The most commands that a source's queue ever held.
    pub(crate) fn most_commands(&self) -> u64 {
        self.most_commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_source_makes_room_and_a_busy_one_does_not() {
        let mut cam = Cam::new(2, 7);
        assert_eq!(
            [1, 2, 3].map(|s| cam.admit(s)),
            [Admission::Admitted, Admission::Admitted, Admission::Full]
        );
        cam.finish(1, 0);
        assert_eq!(cam.admit(3), Admission::Admitted);
        assert_eq!(cam.admit(1), Admission::Full);
        assert_eq!(cam.most(), 2);
    }

    #[test]
    fn a_source_that_was_swapped_out_finds_its_messages_again() {
        let mut cam = Cam::new(1, 7);
        assert_eq!(cam.admit(1), Admission::Admitted);
        cam.swap_in(2);
        assert!(cam.is_swapped_out(1));
        assert_eq!(cam.admit(2), Admission::Admitted);
        cam.swap_in(1);
        cam.finish(1, 0);
        cam.finish(2, 0);
        assert_eq!(cam.admit(3), Admission::Admitted);
    }

    #[test]
    fn a_source_never_has_more_than_seven_commands() {
        let mut cam = Cam::new(256, 7);
        assert_eq!(cam.admit(5), Admission::Admitted);
        assert_eq!((cam.feed(5, 3), cam.feed(5, 9)), (0, 5));
        assert_eq!(cam.most_commands(), 7);
    }
}
