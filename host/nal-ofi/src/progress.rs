//! What a NAL does between calls: polls the fabric, serves peers, keeps time.

use crate::fabric::Completion;
use crate::peer::{Peer, Stream};
use crate::{
    ADDRESS_POLL_INTERVAL, MAX_POLLS, OfiNal, Operation, POLL_INTERVALS, POLLS_PER_CLOCK_READ,
};
use std::time::Instant;

impl OfiNal {
    /// Polls the fabric, and does what has become possible or due.
    pub(crate) fn progress(&mut self) {
        self.clock.has_polled = true;
        self.is_coalescing = false;
        self.arrivals.since_poll = 0;
        self.read_clock_sometimes();
        let mut completions = std::mem::take(&mut self.link.completions);
        // What has arrived is read at once: a further poll is a system call.
        for _ in 0..MAX_POLLS {
            if !self.link.fabric.poll(&mut completions) {
                break;
            }
            for completion in completions.drain(..) {
                self.on_completion(completion);
            }
            if self.peers.next_readable().is_some() {
                break;
            }
        }
        self.link.completions = completions;
        self.offer_buffers();
        self.serve_all();
    }

    /// Reads the clock now and then, and after sleep: timers are milliseconds long, and a
    /// read costs as much as a poll of shared memory. Queries are answered more rarely still: to
    /// read their socket is a system call.
    #[inline]
    fn read_clock_sometimes(&mut self) {
        self.clock.polls = self.clock.polls.wrapping_add(1);
        if self.clock.polls % POLLS_PER_CLOCK_READ == 0 || self.clock.may_have_slept.replace(false)
        {
            self.clock.now = Instant::now();
            self.peers.forget_settled();
            if self.clock.now >= self.clock.next_address_poll {
                self.clock.next_address_poll = self.clock.now + ADDRESS_POLL_INTERVAL;
                self.poll_addresses();
            }
        }
    }

    fn on_completion(&mut self, completion: Completion<Operation>) {
        match (completion.operation, completion.outcome) {
            (Some(Operation::Receive(buffer)), Ok(length)) => self.on_frame(buffer, length),
            (Some(Operation::Receive(buffer)), Err(_)) => {
                self.counts.malformed += 1;
                self.arrivals.unposted.push(buffer);
            }
            (Some(Operation::Send(buffer, _)), Ok(_)) => self.link.frames.give_back(buffer),
            (Some(Operation::Send(buffer, lane)), Err(code)) => {
                self.link.frames.give_back(buffer);
                self.on_error(lane, code);
            }
            (Some(Operation::Read(lane)), outcome) => self.on_read(lane, outcome.err()),
            // Of a frame that was injected: a peer that doesn't get it falls silent.
            (None, _) => {}
        }
    }

    /// Whether anything of ours is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        self.link.frames.in_flight() > 0 || self.peers.needed().next().is_some()
    }

    /// Serves the listed peers.
    fn serve_all(&mut self) {
        let mut lanes = self.peers.take_listed();
        for lane in lanes.drain(..) {
            if self.peers.begin_service(lane) {
                self.serve(lane);
            }
        }
        self.peers.keep_for_listed(lanes);
        if !self.peers.is_empty() && self.clock.now >= self.clock.next_health_check {
            self.check_health();
        }
    }

    fn serve(&mut self, lane: u32) {
        self.query_address(lane);
        self.send_queued(lane);
        self.send_recalls(lane);
        self.advance_stream(lane);
        let now = self.clock.now;
        let Some(peer) = self
            .peers
            .get_mut(lane)
            .filter(|peer| peer.closed_at.is_none())
        else {
            return;
        };
        if peer.receiving.is_ack_due(now) {
            self.send_status(lane, false);
        }
        let Some(peer) = self.peers.get(lane) else {
            return;
        };
        let reads = |stream: &Stream| stream.missing > 0;
        let left = !peer.sending.queue.is_empty()
            || peer.has_recalls()
            || peer.next_query.is_some()
            || peer.receiving.due.is_some()
            || peer.receiving.is_ack_pending()
            || peer.receiving.stream.as_ref().is_some_and(reads);
        if left && peer.closed_at.is_none() {
            self.peers.list(lane);
        }
    }

    /// When a listed peer must be served again.
    pub(crate) fn due_of(&self, peer: &Peer) -> Option<Instant> {
        if peer.next_query.is_some() {
            return peer.next_query;
        }
        let sending = &peer.sending;
        let waits = !sending.queue.is_empty() && sending.has_credit();
        let reads = peer
            .receiving
            .stream
            .as_ref()
            .is_some_and(|stream| stream.missing > 0);
        let soon = (peer.receiving.is_ack_pending() || reads || waits)
            .then(|| self.clock.now + POLL_INTERVALS[0]);
        let retry = peer.sending.retry.filter(|_| waits).map(|(at, _)| at);
        [retry.or(soon), peer.receiving.due]
            .into_iter()
            .flatten()
            .min()
    }
}
