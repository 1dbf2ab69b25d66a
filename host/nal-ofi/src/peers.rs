//! [`Peers`]: the processes that this one exchanges messages with, by lane and by name.

use crate::peer::Peer;
use lintel_session::{History, Incarnation, Sender as Named};
use lintel_types::ProcessId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::time::Instant;

/// Who has sent a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// The peer on that lane, which is alive.
    Known(u32),
    /// The peer on that lane, which names its incarnation for the first time.
    First(u32, Incarnation),
    /// A process without a lane.
    New(Incarnation),
    /// The successor of the peer on that lane, which has ended unnoticed.
    Successor(u32),
    /// A process whose name is still another's: the peer on its lane was given up before it
    /// was ever heard.
    Deferred,
    /// An incarnation that has ended or was lost.
    Stale,
}

/// All peers, and what is remembered of those that are gone.
#[derive(Default)]
pub(crate) struct Peers {
    by_lane: FxHashMap<u32, Peer>,
    by_process: FxHashMap<ProcessId, u32>,
    /// The last incarnation of each process that is gone: no more is heard of it.
    tombstones: FxHashMap<ProcessId, Incarnation>,
    last_lane: u32,
    /// Lanes with something to read, in turn.
    readable: VecDeque<u32>,
    /// Lanes with something to do, each once.
    listed: Vec<u32>,
    /// Empty; kept for its memory.
    spare: Vec<u32>,
    /// Lanes of peers that may be [needed](Peer::is_needed), each once.
    unsettled: Vec<u32>,
}

impl Peers {
    #[inline]
    pub(crate) fn get(&self, lane: u32) -> Option<&Peer> {
        self.by_lane.get(&lane)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, lane: u32) -> Option<&mut Peer> {
        self.by_lane.get_mut(&lane)
    }

    /// The lane of a process, if it has one.
    #[inline]
    pub(crate) fn lane_of(&self, process: ProcessId) -> Option<u32> {
        self.by_process.get(&process).copied()
    }

    /// The peer of that name.
    pub(crate) fn named(&self, process: ProcessId) -> Option<&Peer> {
        self.lane_of(process).and_then(|lane| self.get(lane))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.by_lane.values()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.by_lane.values_mut()
    }

    /// The lanes of the peers that are meant.
    pub(crate) fn lanes(&self, is_meant: impl Fn(&Peer) -> bool) -> Vec<u32> {
        let meant = self.iter().filter(|peer| is_meant(peer));
        meant.map(|peer| peer.lane).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_lane.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_lane.is_empty()
    }

    /// A lane for a process that has none.
    pub(crate) fn add(&mut self, process: ProcessId, now: Instant) -> &mut Peer {
        // Half of the numbers are the runtime's.
        self.last_lane = (self.last_lane + 1) & (u32::MAX >> 1);
        let lane = self.last_lane;
        let history = History::after(self.tombstones.get(&process).copied());
        self.by_process.insert(process, lane);
        let peer = self.by_lane.entry(lane);
        peer.insert_entry(Peer::new(process, lane, history, now))
            .into_mut()
    }

    /// Removes a peer; its incarnation never comes back.
    pub(crate) fn remove(&mut self, lane: u32) -> Option<Peer> {
        let peer = self.by_lane.remove(&lane)?;
        self.by_process.remove(&peer.process);
        if let Some(latest) = peer.history.latest() {
            self.tombstones.insert(peer.process, latest);
        }
        Some(peer)
    }

    /// Who has sent a frame that names its sender's process and incarnation.
    pub(crate) fn sender(&self, process: ProcessId, incarnation: u64) -> Sender {
        let Some(peer) = self.named(process) else {
            let history = History::after(self.tombstones.get(&process).copied());
            return match history.classify(incarnation) {
                Named::First(incarnation) => Sender::New(incarnation),
                _ => Sender::Stale,
            };
        };
        match (peer.history.classify(incarnation), peer.closed_at) {
            (Named::Current, None) => Sender::Known(peer.lane),
            (Named::First(incarnation), None) => Sender::First(peer.lane, incarnation),
            (Named::First(_), Some(_)) => Sender::Deferred,
            (Named::Successor(_), _) => Sender::Successor(peer.lane),
            (Named::Current, Some(_)) | (Named::Stale, _) => Sender::Stale,
        }
    }

    /// Notes that a peer has something to do.
    pub(crate) fn list(&mut self, lane: u32) {
        if let Some(peer) = self.by_lane.get_mut(&lane) {
            if !std::mem::replace(&mut peer.is_listed, true) {
                self.listed.push(lane);
            }
        }
    }

    /// The lanes with something to do, which are to be served.
    pub(crate) fn take_listed(&mut self) -> Vec<u32> {
        std::mem::replace(&mut self.listed, std::mem::take(&mut self.spare))
    }

    /// Takes the list back for the next ones, once it is empty.
    pub(crate) fn keep_for_listed(&mut self, lanes: Vec<u32>) {
        debug_assert!(lanes.is_empty());
        self.spare = lanes;
    }

    /// Something was begun with a peer, which is [needed](Peer::is_needed) until that is over.
    #[inline]
    pub(crate) fn note_needed(&mut self, lane: u32) {
        if let Some(peer) = self.by_lane.get_mut(&lane) {
            if !std::mem::replace(&mut peer.is_unsettled, true) {
                self.unsettled.push(lane);
            }
        }
    }

    /// The peers that are [needed](Peer::is_needed).
    pub(crate) fn needed(&self) -> impl Iterator<Item = &Peer> {
        let unsettled = self.unsettled.iter().filter_map(|lane| self.get(*lane));
        unsettled.filter(|peer| peer.is_needed())
    }

    /// Forgets the peers that are no longer needed.
    pub(crate) fn forget_settled(&mut self) {
        let by_lane = &mut self.by_lane;
        self.unsettled.retain(|lane| {
            let Some(peer) = by_lane.get_mut(lane) else {
                return false;
            };
            peer.is_unsettled = peer.is_needed();
            peer.is_unsettled
        });
    }

    /// A peer is being served: it is listed no more. False if it is gone.
    pub(crate) fn begin_service(&mut self, lane: u32) -> bool {
        let peer = self.by_lane.get_mut(&lane);
        peer.map(|peer| peer.is_listed = false).is_some()
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Peer> {
        self.by_lane.values()
    }

    /// The peers with something to do.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Peer> {
        self.listed.iter().filter_map(|lane| self.get(*lane))
    }

    /// Queues a peer if there is something to read from it.
    pub(crate) fn make_readable(&mut self, lane: u32) {
        if let Some(peer) = self.by_lane.get_mut(&lane) {
            if peer.is_readable() && !std::mem::replace(&mut peer.is_queued, true) {
                self.readable.push_back(lane);
            }
        }
    }

    /// The peer whose turn it is to be read.
    #[inline]
    pub(crate) fn next_readable(&self) -> Option<u32> {
        self.readable.front().copied()
    }

    /// The peer has had its turn.
    pub(crate) fn take_turn(&mut self, lane: u32) {
        if self.readable.front() == Some(&lane) {
            self.readable.pop_front();
        }
        if let Some(peer) = self.by_lane.get_mut(&lane) {
            peer.is_queued = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peer::Item;

    const PROCESS: ProcessId = ProcessId::new(0x7f00_0001, 9);

    fn of(number: u64) -> Incarnation {
        Incarnation::new(number).expect("it isn't 0")
    }

    /// A process that has named that incarnation.
    fn met(incarnation: u64) -> (Peers, u32) {
        let mut peers = Peers::default();
        let peer = peers.add(PROCESS, Instant::now());
        peer.history.establish(of(incarnation));
        let lane = peer.lane;
        (peers, lane)
    }

    #[test]
    fn a_process_is_new_then_known() {
        let mut peers = Peers::default();
        assert_eq!(peers.sender(PROCESS, 5), Sender::New(of(5)));
        assert_eq!(peers.sender(PROCESS, 0), Sender::Stale, "no incarnation");
        let lane = peers.add(PROCESS, Instant::now()).lane;
        assert_eq!(peers.sender(PROCESS, 5), Sender::First(lane, of(5)));
        let (peers, lane) = met(5);
        assert_eq!(peers.sender(PROCESS, 5), Sender::Known(lane));
        assert_eq!(peers.lane_of(PROCESS), Some(lane));
        assert_eq!((peers.len(), peers.is_empty()), (1, false));
        assert_eq!(peers.lanes(|peer| peer.process == PROCESS), [lane]);
    }

    #[test]
    fn a_frame_of_an_earlier_incarnation_is_stale_and_of_a_later_one_its_successors() {
        let (peers, lane) = met(5);
        assert_eq!(peers.sender(PROCESS, 4), Sender::Stale);
        assert_eq!(peers.sender(PROCESS, 6), Sender::Successor(lane));
    }

    #[test]
    fn a_closed_peer_isnt_heard_and_its_successor_is_distinguished() {
        let (mut peers, lane) = met(5);
        peers.get_mut(lane).expect("it was met").closed_at = Some(Instant::now());
        assert_eq!(peers.sender(PROCESS, 5), Sender::Stale);
        assert_eq!(peers.sender(PROCESS, 6), Sender::Successor(lane));
    }

    #[test]
    fn a_process_with_the_name_of_one_given_up_unheard_is_deferred() {
        let mut peers = Peers::default();
        peers.add(PROCESS, Instant::now()).closed_at = Some(Instant::now());
        assert_eq!(peers.sender(PROCESS, 5), Sender::Deferred);
    }

    #[test]
    fn a_tombstone_outlives_its_peer_and_the_next_one_of_its_name() {
        let (mut peers, lane) = met(5);
        assert!(peers.remove(lane).is_some() && peers.remove(lane).is_none());
        assert_eq!(peers.sender(PROCESS, 5), Sender::Stale);
        assert_eq!(peers.sender(PROCESS, 6), Sender::New(of(6)));
        // One that was never heard leaves the tombstone of the one before it.
        let next = peers.add(PROCESS, Instant::now()).lane;
        assert_ne!(next, lane, "a lane is used once");
        assert_eq!(peers.sender(PROCESS, 5), Sender::Stale);
        peers.remove(next);
        assert_eq!(peers.sender(PROCESS, 5), Sender::Stale);
        assert_eq!(peers.lane_of(PROCESS), None);
    }

    #[test]
    fn a_peer_is_listed_once_until_it_is_served() {
        let (mut peers, lane) = met(5);
        peers.list(lane);
        peers.list(lane);
        peers.list(lane + 1);
        assert_eq!(peers.listed().count(), 1);
        assert_eq!(peers.take_listed(), [lane]);
        peers.list(lane);
        assert_eq!(peers.take_listed(), [], "it isn't served yet");
        assert!(peers.begin_service(lane) && !peers.begin_service(lane + 1));
        peers.list(lane);
        assert_eq!(peers.take_listed(), [lane]);
    }

    #[test]
    fn a_peer_is_needed_until_nothing_is_awaited_from_it() {
        let (mut peers, lane) = met(5);
        let needed = |peers: &Peers| peers.needed().map(|peer| peer.lane).collect::<Vec<_>>();
        peers.note_needed(lane);
        peers.note_needed(lane + 1);
        assert_eq!(needed(&peers), [], "nothing was sent");
        peers.get_mut(lane).expect("it was met").sending.sequence = 1;
        peers.note_needed(lane);
        peers.forget_settled();
        assert_eq!(needed(&peers), [lane], "what was sent hasn't arrived");
        peers.get_mut(lane).expect("it was met").sending.arrived = 1;
        assert_eq!(needed(&peers), []);
        peers.forget_settled();
        peers.get_mut(lane).expect("it was met").sending.sequence = 2;
        peers.note_needed(lane);
        assert_eq!(needed(&peers), [lane]);
        peers.remove(lane);
        peers.forget_settled();
        assert_eq!(needed(&peers), []);
    }

    #[test]
    fn peers_with_something_to_read_take_turns() {
        let mut peers = Peers::default();
        let other = ProcessId::new(PROCESS.nid, PROCESS.pid + 1);
        let lanes = [PROCESS, other].map(|process| peers.add(process, Instant::now()).lane);
        peers.make_readable(lanes[0]);
        assert_eq!(peers.next_readable(), None, "it has sent nothing");
        for lane in lanes {
            let peer = peers.get_mut(lane).expect("it was added");
            peer.receiving.inbox.extend([Item::Lost, Item::Lost]);
            peers.make_readable(lane);
            peers.make_readable(lane);
        }
        assert_eq!(peers.next_readable(), Some(lanes[0]));
        peers.take_turn(lanes[0]);
        peers.make_readable(lanes[0]);
        assert_eq!(peers.next_readable(), Some(lanes[1]));
        peers.take_turn(lanes[1]);
        assert_eq!(peers.next_readable(), Some(lanes[0]));
    }
}
