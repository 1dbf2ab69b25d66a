//! Short messages to a peer that something was sent to before, in few instructions.

use crate::ShmNal;
use crate::outbound::Peer;
use lintel_claim::Claim;
use lintel_ring::INLINE;
use lintel_types::{ALWAYS_COPIED, ProcessId};
use lintel_wire::Words;

/// Bytes of the longest body that is sent quickly.
pub const LONGEST_QUICK: u64 = ALWAYS_COPIED;

/// Where a peer is kept that something was sent to.
#[derive(Clone, Copy, Debug)]
pub struct SendPlace {
    /// Both numbers of its identifier.
    process: u64,
    peer: u32,
}

impl Peer {
    /// Writes a record; false if it has to be sent otherwise.
    #[inline(always)]
    fn send_quickly(&mut self, words: &Words, body: Claim) -> bool {
        self.quick.end();
        let pushed = match body.len() <= INLINE as u64 {
            true => self.sender.push_short(words, &[body]),
            // A copy: the common path writes its words where they go, and has none in memory.
            false => self.push_apart(&{ *words }, &[body]),
        };
        pushed.is_ok()
    }
}

impl ShmNal {
    /// Where a process is kept that something was sent to.
    pub fn send_place(&mut self, process: ProcessId) -> Option<SendPlace> {
        let (peer, process) = (self.index_of(process)? as u32, process.word());
        Some(SendPlace { process, peer })
    }

    /// Sends a message of an operation on `length` bytes, with a body of at most
    /// [`LONGEST_QUICK`] bytes, in few instructions; nothing, with nothing sent, if it has to be
    /// sent otherwise: the peer is no longer the same, has ended, has new direct entries or no
    /// room, or something else waits for room or might be done directly.
    ///
    /// # Panics
    /// Where the body is longer.
    #[inline(always)]
    pub fn send_quickly(
        &mut self,
        place: &SendPlace,
        words: &Words,
        body: Claim,
        length: u64,
    ) -> Option<()> {
        if self.waiting > 0 || self.looks_at_direct {
            return None;
        }
        let peer = self.peers.get_mut(place.peer as usize)?;
        let may_send = peer.process().word() == place.process
            && !peer.is_closed()
            && !peer.has_new_direct()
            && peer.takes_message(length);
        if !may_send || !peer.send_quickly(words, body) {
            return None;
        }
        match peer.is_asleep() {
            true => self.wake_quickly(place, words[0]),
            false => Some(()),
        }
    }

    /// Rings a peer for what was sent to it, which begins with this word.
    #[cold]
    #[inline(never)]
    fn wake_quickly(&mut self, place: &SendPlace, first: u64) -> Option<()> {
        let peer = &mut self.peers[place.peer as usize];
        let is_alive = peer.ring_for(first);
        self.away_from = self.away_from.min(peer.away_from());
        is_alive.then_some(())
    }

    /// Reports to the peer whose messages were read last how far that is, as a
    /// [flush](lintel_nal::Wake::flush) does.
    #[inline(always)]
    pub fn publish_head(&mut self) {
        // A peer that asks whether its answer was read shouldn't have to wait for the next poll.
        if let Some(inbound) = self.inbound.get_mut(self.cursor) {
            inbound.publish_head();
        }
    }
}
