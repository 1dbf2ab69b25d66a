//! Who sends here: lanes are admitted, predecessors go before their successors, and senders
//! that have ended or write nonsense are cut off.

use crate::inbound::Inbound;
use crate::{QUANTUM, ShmNal, layout};
use lintel_nal::Arrival;
use lintel_presence::wake_helper;
use lintel_types::ProcessId;

impl ShmNal {
    /// Takes note of lanes that were opened or closed since the last scan.
    #[cold]
    pub(crate) fn scan_lanes(&mut self, changes: u32) {
        self.scan_once(changes);
        if self.changes != changes {
            // A lane waits for its predecessor, which may have left nothing to be read: then nobody
            // would look again.
            self.scan_once(changes);
        }
    }

    fn scan_once(&mut self, changes: u32) {
        self.changes = changes;
        self.check_senders();
        self.quarantine_changed_lanes();
        let mut begun = Vec::new();
        for lane in 0..layout::LANES {
            if self.inbound.iter().any(|known| known.lane() == lane) {
                continue;
            }
            let former = self.quarantined.iter().find(|known| known.lane() == lane);
            if former.is_some_and(Inbound::is_same) {
                continue;
            }
            let Some(inbound) = Inbound::accept(&self.segment, lane, self.direct, self.costs)
            else {
                continue;
            };
            // A quarantined lane is read again only for a process that is certainly another.
            let other = |o: &Inbound| inbound.is_sender_alive() && inbound.inode() != o.inode();
            if former.is_none_or(other) {
                begun.push(inbound);
            }
        }
        // Those of the dead first: their names may be others' by now.
        begun.sort_by_key(Inbound::is_sender_alive);
        for inbound in begun {
            self.admit(inbound);
        }
    }

    fn admit(&mut self, mut inbound: Inbound) {
        if self.direct && !self.reach_logged && inbound.is_beyond_reach() {
            self.reach_logged = true;
            (self.log)(
                "the system denies cross-memory copies: long messages go through \
                 shared memory, copied twice",
            );
        }
        let (process, inode) = (inbound.origin().process, inbound.inode());
        let lives = inbound.is_sender_alive();
        if self.has_predecessor(process, inode) && lives {
            // Once the predecessor's messages are read. Until then, scan again.
            self.changes = self.changes.wrapping_sub(1);
            return;
        }
        let known = self.by_process.get(&process).copied();
        match known.filter(|known| self.peers[*known].inode() != inode) {
            // The process that had the name has ended. That is reported before the first
            // message of its successor is read, since answers go to the successor.
            Some(predecessor) if lives => self.drop_peer(predecessor),
            // Its sender has ended and a successor has the name: no process to answer.
            Some(_) => return inbound.free(),
            None => {}
        }
        self.inbound.push(inbound);
        self.watched = None;
    }

    /// Whether messages of an earlier process of that name are still to be read.
    fn has_predecessor(&self, process: ProcessId, inode: u64) -> bool {
        let other = |lane: &Inbound| lane.origin().process == process && lane.inode() != inode;
        self.inbound.iter().any(other)
    }

    /// Whether messages of a peer are still to be read: its loss is reported after them.
    pub(crate) fn has_unread(&mut self, peer: usize) -> bool {
        let (process, inode) = (self.peers[peer].process(), self.peers[peer].inode());
        self.inbound.iter_mut().any(|lane| {
            lane.check_sender();
            let is_its_own = lane.origin().process == process && lane.inode() == inode;
            is_its_own && !lane.is_finished()
        })
    }

    /// Gives up lanes whose sender has closed them or died, once they are read.
    pub(crate) fn check_senders(&mut self) {
        let mut over = Vec::new();
        for index in (0..self.inbound.len()).rev() {
            self.inbound[index].check_sender();
            if self.inbound[index].is_finished() {
                over.push(self.inbound.swap_remove(index));
                self.watched = None;
            }
        }
        for mut inbound in over {
            self.cut_off(&mut inbound);
            if inbound.is_sender_alive() {
                // It has closed its lane, so it won't answer either.
                self.quarantined.push(inbound);
            } else {
                inbound.free();
            }
        }
        let inbound = &self.inbound;
        self.quarantined.retain_mut(|lane| {
            lane.check_sender();
            let keep = lane.is_sender_alive();
            if !keep && !inbound.iter().any(|other| other.lane() == lane.lane()) {
                lane.free();
            }
            keep
        });
        self.cursor = 0;
    }

    /// Nothing more is read from this lane, and the peer won't answer.
    fn cut_off(&mut self, inbound: &mut Inbound) {
        if inbound.break_stream() {
            self.served = QUANTUM;
            self.notices.push_back(Arrival::Broken(inbound.origin()));
        }
        let known = self.by_process.get(&inbound.origin().process).copied();
        if let Some(index) = known.filter(|known| self.peers[*known].inode() == inbound.inode()) {
            self.drop_peer(index);
        }
    }

    /// A lane that names another sender than before was overwritten; it
    /// may already be another sender's.
    fn quarantine_changed_lanes(&mut self) {
        while let Some(index) = self.inbound.iter().position(|lane| !lane.is_same()) {
            let lane = self.inbound.swap_remove(index);
            self.watched = None;
            self.quarantine(lane);
        }
    }

    pub(crate) fn drop_peer(&mut self, index: usize) {
        let mut peer = self.peers.swap_remove(index);
        self.last = None;
        self.by_process.remove(&peer.process());
        if let Some(moved) = self.peers.get(index) {
            self.by_process.insert(moved.process(), index);
        }
        self.look_for_private();
        peer.close();
        peer.clear_away();
        self.diagnostics.lost_peers += 1;
        // No message is read before the loss is reported.
        self.served = QUANTUM;
        self.notices.push_back(Arrival::Lost(peer.process()));
        // The helper reports it even if the application polls no more.
        wake_helper(&self.segment);
    }

    /// What is in flight to the sender of such a lane will never be answered.
    pub(crate) fn quarantine(&mut self, mut lane: Inbound) {
        let process = lane.origin().process;
        self.diagnostics.corrupt_lanes += 1;
        (self.log)(&format!(
            "process {process} wrote nonsense into its lane; its messages are dropped"
        ));
        self.cut_off(&mut lane);
        self.cursor = 0;
        self.quarantined.push(lane);
    }
}
