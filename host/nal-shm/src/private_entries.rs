//! Direct entries of peers that the system copies from and to: their memory can't be mapped, or
//! they post events. A copy costs a system call, so a peer that polls is sent messages; one that
//! computes, or sleeps, isn't disturbed and needn't be woken. For the events the initiator leaves
//! announcements in the ring, without ringing: the peer reads them in its next call.

use crate::ShmNal;
use crate::direct::{Wanted, fence_by};
use crate::layout::Lanes;
use crate::outbound::Peer;
use crate::record::{FORM_SHIFT, Form};
use lintel_claim::{Claim, CrossMemoryError, Key, RemoteMemory, RemoteSpan};
use lintel_direct::{CopyKey, Counts, Entry};
use lintel_memory::length;
use lintel_nal::{Finder, Moved, Parts};
use lintel_presence::{Watch, caller_waits};
use lintel_types::{ALWAYS_COPIED, ProcessId};
use lintel_wire::Words;
use std::sync::atomic::Ordering;
use std::time::Instant;

const PROBE_WORDS: Words = [(Form::Probe as u64) << FORM_SHIFT, 0, 0, 0, 0, 0];
/// Announcements that a peer may leave unread. The next message is sent, and wakes it.
const MOST_SILENT: u32 = 64;

/// How often a peer that was asleep is found awake in a row until it is asked no more.
const MOST_IN_VAIN: u8 = 16;

/// Whether to ask if a peer is away: messages cost a third less to start if nobody asks.
#[derive(Clone, Copy)]
pub(crate) struct Away {
    /// Bytes from which on.
    from: u64,
    /// How often in vain before short ones are no longer asked for.
    left: u8,
}

impl Default for Away {
    fn default() -> Away {
        Away {
            from: u64::MAX,
            left: 0,
        }
    }
}

/// The records sent last, as far as the peer needn't read them soon: probes, announcements, and
/// acknowledgements that don't ring. By the ring's position ahead of them and behind them, in slots.
#[derive(Clone, Copy, Default)]
pub(crate) struct Silent {
    pub(crate) begin: u32,
    pub(crate) end: u32,
}

/// The entries of a peer that the system can copy from and to.
#[derive(Default)]
pub(crate) struct PrivateEntries {
    entries: Vec<Private>,
    /// The peer's number to the system, once it was asked for: 0 if its memory can't be reached.
    process: Option<i32>,
}

struct Private {
    slot: usize,
    entry: Entry,
    key: Key,
}

/// Where the system copies from or to.
struct Target {
    slot: usize,
    counts: Counts,
    is_announced: bool,
    memory: RemoteMemory,
    span: RemoteSpan,
}

impl PrivateEntries {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }

    pub(crate) fn add(&mut self, slot: usize, entry: Entry, key: CopyKey) {
        let CopyKey { address, nonce } = key;
        let key = Key { address, nonce };
        self.entries.push(Private { slot, entry, key });
    }

    /// The entry that takes a message, if it allows what the message does.
    fn find(&self, wanted: &Wanted) -> Option<&Private> {
        let takes = |private: &&Private| {
            let entry = &private.entry;
            entry.takes(wanted.interface, wanted.portal, wanted.match_bits)
        };
        let found = self.entries.iter().find(takes)?;
        let allows = found.entry.grants(wanted.puts, wanted.gets)
            && found.entry.contains(wanted.offset, wanted.length);
        allows.then_some(found)
    }
}

impl Peer {
    /// Whether the peer has entries that the system copies from and to, and so many bytes are
    /// better copied here: it makes no call that would take a message, nor does it wait for one.
    #[inline]
    fn is_away(&mut self, length: u64) -> bool {
        if self.view.private.is_empty() {
            self.away = Away::default();
            return false;
        }
        let is_asleep = self.is_asleep();
        match is_asleep {
            true => self.note_asleep(),
            false => self.note_awake(),
        }
        // Most often neither: then nothing is looked at that the peer writes to.
        (is_asleep || self.choice.copies_at_once(length))
            && self.has_read_all()
            && (is_asleep || !self.polls(length))
    }

    /// Whether so many bytes are sent to the peer in any case; else it is to be asked for whether
    /// it [is away](Self::is_away).
    #[inline(always)]
    pub(crate) fn takes_message(&mut self, length: u64) -> bool {
        length < self.away.from || self.is_found_awake(length)
    }

    /// Whether the peer, which was asleep, is awake, and this doesn't end that it is asked for.
    #[inline]
    fn is_found_awake(&mut self, length: u64) -> bool {
        if self.is_asleep() || self.choice.copies_at_once(length) || self.away.left <= 1 {
            return false;
        }
        self.away.left -= 1;
        true
    }

    /// Bytes from which on it is worth asking whether the peer is away.
    #[inline(always)]
    pub(crate) fn away_from(&self) -> u64 {
        self.away.from
    }

    /// The peer sleeps, and may again.
    pub(crate) fn note_asleep(&mut self) {
        if !self.view.private.is_empty() {
            self.away = Away {
                from: 0,
                left: MOST_IN_VAIN,
            };
        }
    }

    fn note_awake(&mut self) {
        self.away.left = self.away.left.saturating_sub(1);
        if self.away.left == 0 {
            self.away.from = ALWAYS_COPIED + 1;
        }
    }

    /// Whether the peer has read all that was sent to it but what it needn't read soon.
    pub(crate) fn has_read_all(&mut self) -> bool {
        let Silent { begin, end } = self.silent;
        match self.sender.position().0 == end {
            true => self.sender.is_drained_up_to(begin),
            false => self.sender.is_drained(),
        }
    }

    /// Where the records begin that the peer, which has read all others, needn't read soon;
    /// nothing if it has left too many of them unread.
    fn silent_begin(&mut self) -> Option<u32> {
        let position = self.sender.position().0;
        let begin = match self.sender.is_drained() {
            true => position,
            false => self.silent.begin,
        };
        (position.wrapping_sub(begin) < MOST_SILENT).then_some(begin)
    }

    /// What became of the body that the peer has granted last. The peer needn't read on soon, if all
    /// was moved and that was the last record; only a caller that sleeps is rung.
    pub(crate) fn note_moved(&mut self, moved: Moved) {
        self.granted = self.granted.wrapping_add(1);
        let word = self.granted << 1 | u32::from(moved != Moved::Nothing);
        let shared = &self.segment.lane(self.lane).moved;
        shared.store(word, Ordering::Release);
        let is_last = self.sender.position().0 == self.lent.end;
        if moved == Moved::Whole && is_last {
            self.silent = self.lent;
            self.ring_waiting_caller();
        } else if self.is_asleep() {
            self.ring_sleeper();
        }
    }

    /// In which parts a body of that length is moved, if a caller of the peer is granted to move it:
    /// see [`Wake::would_move`](lintel_nal::Wake::would_move).
    /// `follows` finds out whether another one could be moved along with it.
    pub(crate) fn would_move(
        &mut self,
        length: u64,
        follows: impl Fn() -> bool,
        found: Finder,
    ) -> Option<Parts> {
        let choice = &self.choice;
        let is_long = match found {
            Finder::Helper => choice.copies_at_once(length),
            // It may be about to wait, too.
            Finder::Caller => choice.copies_for_long(length),
            Finder::WaitingCaller => false,
        };
        let is_joint = found != Finder::Helper && choice.is_shared(length, follows);
        let bytes = choice.part_of(length);
        let is_reached = self.cross_memory() && !self.waits() && !self.closed;
        let would_move = is_reached
            && match is_joint {
                // If it doesn't take any part, nobody waits for it.
                true => !self.is_asleep() && self.joining.grants(),
                false => is_long && self.has_read_all() && self.polls(length),
            };
        would_move.then_some(Parts { bytes, is_joint })
    }

    /// Sends words that the peer, which has read all others, needn't read soon; false if it has
    /// left too many of them unread.
    fn push_silently(&mut self, words: &Words) -> bool {
        let Some(begin) = self.silent_begin() else {
            return false;
        };
        if self.sender.push_short(words, &[]).is_err() {
            return false;
        }
        let end = self.sender.position().0;
        self.silent = Silent { begin, end };
        true
    }

    /// Leaves the record that was sent last, an acknowledgement, which takes one slot, until the peer
    /// reads the next one or makes a call; false if it has left too many of them unread.
    pub(crate) fn leave_unread(&mut self) -> bool {
        let end = self.sender.position().0;
        let last = end.wrapping_sub(1);
        let follows = self.silent.end == last && !self.sender.is_drained_up_to(last);
        let begin = if follows { self.silent.begin } else { last };
        if end.wrapping_sub(begin) > MOST_SILENT {
            return false;
        }
        self.silent = Silent { begin, end };
        true
    }

    /// Whether a caller of the peer polls, who has read all so far but a probe: it has long done
    /// so, or reads a probe at once. One that isn't read rings nobody, and stands for later ones.
    fn polls(&mut self, length: u64) -> bool {
        if caller_waits(&self.segment) {
            return true;
        }
        if !self.sender.is_drained() {
            return false;
        }
        if !self.push_silently(&PROBE_WORDS) {
            return true;
        }
        self.note_probe();
        let asked = Instant::now();
        let patience = self.choice.patience(length);
        loop {
            let is_drained = self.sender.is_drained();
            let took = asked.elapsed();
            if is_drained {
                self.choice.answered(took);
                return true;
            }
            if took >= patience {
                return false;
            }
            std::hint::spin_loop();
        }
    }

    /// Finds out whether the system lets this process copy memory of the peer, which was probably
    /// away when it published an entry for that.
    #[cold]
    pub(crate) fn look_into_private(&mut self, job: &str) {
        let watch = || Watch::open(job, self.process(), self.inode());
        let process = match self.view.private.process {
            Some(known) => known,
            None => watch()
                .filter(Watch::can_reach)
                .and_then(|watch| watch.owner())
                .unwrap_or(0),
        };
        self.view.private.process = Some(process);
        match process {
            0 => self.view.private.clear(),
            _ => self.note_asleep(),
        }
    }

    /// What a put or a get wants, if the system can copy from there or to there.
    fn find_private(&self, wanted: &Wanted) -> Option<Target> {
        let Private { slot, entry, key } = self.view.private.find(wanted)?;
        Some(Target {
            slot: *slot,
            counts: entry.counts,
            is_announced: entry.is_announced,
            memory: RemoteMemory {
                process: self.view.private.process?,
                key: *key,
            },
            span: RemoteSpan {
                address: entry.offset.wrapping_add(wanted.offset),
                length: wanted.length,
            },
        })
    }

    /// Has the system copy what a put or a get wants; nothing, with nothing counted, if the
    /// message has to be sent. Nothing that was sent before is overtaken.
    fn copy_private(&mut self, wanted: &Wanted, local: &[Claim], words: &Words) -> Option<()> {
        if self.waits() || self.closed || !self.has_read_all() {
            return None;
        }
        let target = self.find_private(wanted)?;
        // Before anything is copied: what isn't announced has no event.
        if target.is_announced && self.silent_begin().is_none() {
            return None;
        }
        let fence = fence_by(self.needs_fence);
        let word = &self.segment.lane(self.lane).accessing;
        if !word.begin(self.segment.direct(), self.view.version(), fence) {
            return None;
        }
        let copied = match wanted.puts {
            true => target.memory.push(local, &[target.span]),
            false => target.memory.pull(&[target.span], local),
        };
        // Before the access ends: who has withdrawn the entry counts and reads what was done.
        let is_done = copied == Ok(wanted.length) && self.report(&target, wanted.length, words);
        self.segment.lane(self.lane).accessing.end();
        match copied {
            // The message finds out what isn't there.
            Ok(_) | Err(CrossMemoryError::Fault { .. }) => {}
            Err(_) => self.view.private.clear(),
        }
        if is_done && (target.is_announced || target.counts != Counts::Nothing) {
            self.ring_waiting_caller();
        }
        is_done.then_some(())
    }

    /// Announces and counts a copy of so many bytes, as the entry wants; false if it can't be.
    fn report(&mut self, target: &Target, length: u64, words: &Words) -> bool {
        if target.is_announced {
            self.quick.end();
            if !self.push_silently(&Form::Placed.on(words)) {
                return false;
            }
        }
        if let Some(by) = target.counts.of(length) {
            self.segment.direct().add(target.slot, by);
        }
        true
    }
}

impl ShmNal {
    /// Whether a peer has entries that the system copies from and to.
    #[inline(always)]
    pub fn knows_private(&self) -> bool {
        self.away_from != u64::MAX
    }

    /// Whether so many bytes may be for a process that [is away](Self::is_away).
    #[inline(always)]
    pub fn may_be_away(&self, length: u64) -> bool {
        length >= self.away_from
    }

    /// Whether that process has such entries, and won't copy so many bytes itself.
    #[inline(never)]
    pub fn is_away(&mut self, process: ProcessId, length: u64) -> bool {
        let Some(index) = self.index_of(process) else {
            return false;
        };
        let peer = &mut self.peers[index];
        let before = peer.away_from();
        let is_away = peer.is_away(length);
        if peer.away_from() != before {
            self.look_for_private();
        }
        is_away
    }

    /// Copies between memory of this process and an entry of one that is [away](Self::is_away);
    /// nothing, with nothing done but to the bytes, if the message has to be sent. Where it is
    /// announced, that is by the words of the message.
    #[cold]
    pub fn copy_private(
        &mut self,
        process: ProcessId,
        wanted: &Wanted,
        local: &[Claim],
        words: &Words,
    ) -> Option<()> {
        let bytes = wanted.length;
        if bytes == 0 || length(local) != bytes || !self.is_away(process, bytes) {
            return None;
        }
        let index = self.index_of(process)?;
        if self.peers[index].has_new_direct() {
            self.renew_view(index);
        }
        self.peers[index].copy_private(wanted, local, words)
    }
}
