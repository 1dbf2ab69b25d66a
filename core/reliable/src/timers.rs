//! What is due by the clock: retransmission, delayed acknowledgements, probes of silent
//! peers, and memory that isn't needed any more.

use crate::config::PairId;
use crate::context::CONTEXT_IDLE;
use crate::endpoint::Endpoint;
use crate::packet::Kind;
use crate::receiving::Receiving;
use crate::sending::Sending;
use crate::time::{Nanos, Time};
use lintel_types::ProcessId;

/// For so long after a caller asked for it, peers are probed if they are silent.
const CHECK_DURATION: Nanos = Nanos::from_millis(500);
/// The queues of a pair that heard nothing for so long, or twice that, are freed.
const QUEUE_IDLE: Nanos = Nanos::from_millis(1000);
/// A timeout is doubled at most so many times.
const MAX_BACKOFF: u32 = 7;
/// Probes in equal intervals that a peer doesn't answer until it is given up: as many as the timeout of a
/// peer has room for.
const PROBES: u32 = 3;

impl<B> Endpoint<B> {
    /// A caller waits for something that any peer might do: those that were sent to are
    /// probed for a while, if they are silent.
    pub fn check_peers(&mut self, now: Time) {
        for id in self.pairs.ids() {
            let pair = &mut self.pairs[id];
            if !pair.is_addressed() {
                continue;
            }
            pair.check(now, CHECK_DURATION);
            let probe = self.probe_time(id);
            self.arm(id, probe);
        }
    }

    /// The system reports a process's address unreachable. A process that never answered is
    /// given up; one that has is probed first.
    pub fn on_refused(&mut self, now: Time, process: ProcessId) {
        let Some(id) = self.find(process) else {
            return;
        };
        let pair = &mut self.pairs[id];
        let is_established = pair.is_established();
        if !pair.is_addressed() && !is_established {
            return;
        }
        if !is_established || pair.suspect() {
            return self.abort(id);
        }
        self.probe(now, id);
    }

    /// Does what is due: retransmits, acknowledges, probes silent peers, gives up dead ones.
    pub fn on_timeout(&mut self, now: Time) {
        if now >= self.paced_until {
            self.paced_until = Time::NEVER;
            for context in self.contexts.indices() {
                self.unblock(context);
            }
        }
        if now >= self.release_at {
            self.release_idle_queues(now);
        }
        if now < self.next_timer {
            return;
        }
        self.next_timer = Time::NEVER;
        let mut at = 0;
        while let Some(&id) = self.armed.get(at) {
            match self.service(now, id) {
                Time::NEVER => {
                    self.armed.swap_remove(at);
                    self.pairs[id].disarm();
                }
                next => {
                    self.next_timer = self.next_timer.min(next);
                    at += 1;
                }
            }
        }
        self.close_idle_contexts(now);
    }

    /// Does what is due for a pair; returns when something is next.
    fn service(&mut self, now: Time, id: PairId) -> Time {
        if self.is_silent(now, id) {
            self.abort(id);
            return Time::NEVER;
        }
        if self.ack_time(id) <= now {
            self.queue_ack(id);
        }
        let is_awaited = self.pairs[id].is_awaited(now);
        if is_awaited && self.probe_time(id) <= now {
            self.probe(now, id);
        }
        self.retransmit_if_due(now, id);
        let deadline = self.pairs[id]
            .sending()
            .map_or(Time::NEVER, Sending::deadline);
        let probe = match is_awaited {
            true => self.probe_time(id),
            false => Time::NEVER,
        };
        self.ack_time(id).min(deadline).min(probe)
    }

    /// When a delayed acknowledgement of a pair is due.
    fn ack_time(&self, id: PairId) -> Time {
        self.pairs[id]
            .receiving()
            .map_or(Time::NEVER, Receiving::ack_at)
    }

    /// Whether a peer that something is awaited from has been silent for too long. One that has ever
    /// answered must have had the time to answer as many probes: this process may have been stopped.
    fn is_silent(&self, now: Time, id: PairId) -> bool {
        let pair = &self.pairs[id];
        let liveness = pair.liveness();
        let silence = now.since(liveness.silent_since());
        let had_time = liveness.probes() >= PROBES && self.probe_time(id) <= now;
        pair.is_awaited(now)
            && silence >= Nanos::from(self.config.peer_timeout)
            && (had_time || !pair.is_established())
    }

    /// Asks a process for its incarnation, without which nothing is sent to it.
    #[cold]
    pub(crate) fn start_handshake(&mut self, now: Time, id: PairId) {
        let most = self.max_timeout;
        let pair = &mut self.pairs[id];
        let Some(sending) = pair.sending_mut() else {
            return;
        };
        if sending.is_empty() {
            sending.set_deadline(Time::NEVER);
            return;
        }
        let timeouts = sending.timeout_count();
        let context = pair.open_context(&mut self.contexts, now);
        let context = self.contexts.get(context);
        context.last_used = now;
        let timeout = context.round_trip.timeout_of_first(most);
        // Nothing else is sent there, so two timeouts of the same length delay no other packet.
        let deadline = now.after(back_off(timeout, timeouts / 2, most));
        let sending = pair.sending_mut().expect("something is to be sent");
        sending.on_timeout(deadline);
        self.arm(id, deadline);
        self.probe(now, id);
    }

    /// When a peer is probed, if nothing arrives before.
    pub(crate) fn probe_time(&self, id: PairId) -> Time {
        let timeout = Nanos::from(self.config.peer_timeout);
        let interval = Nanos(timeout.0 / u64::from(PROBES + 1));
        self.pairs[id].liveness().quiet_since().after(interval)
    }

    /// Requests an answer from a peer.
    pub(crate) fn probe(&mut self, now: Time, id: PairId) {
        self.pairs[id].on_probe(now);
        let header = self.header(id, Kind::Probe);
        self.control.push_back(header);
    }

    /// After a timeout, retransmits the oldest packet; new ones wait until the peer answers.
    /// The window shrinks only if the whole path is silent.
    fn retransmit_if_due(&mut self, now: Time, id: PairId) {
        let most = self.max_timeout;
        let pair = &mut self.pairs[id];
        let deadline = pair.sending().map_or(Time::NEVER, Sending::deadline);
        if deadline > now {
            return;
        }
        if !pair.is_established() {
            return self.start_handshake(now, id);
        }
        // A parked pair's context may have been idle for so long that it was closed.
        let index = pair.open_context(&mut self.contexts, now);
        let Some(sending) = pair.sending_mut() else {
            return;
        };
        let context = self.contexts.get(index);
        context.in_flight -= sending.park();
        let timeout = context.round_trip.timeout(most);
        let timeouts = sending.timeout_count() + 1;
        if timeouts == 2 && now.since(context.last_heard) > timeout {
            context.window.on_timeout(now);
        }
        sending.on_timeout(now.after(back_off(timeout, timeouts, most)));
        sending.retransmit_first();
        self.make_ready(id);
        self.unblock(index);
    }

    /// Something happens to a pair: its queues are freed some time afterwards.
    #[inline]
    pub(crate) fn schedule_release(&mut self, now: Time) {
        if self.release_at == Time::NEVER {
            self.release_at = now.after(QUEUE_IDLE);
        }
    }

    /// Frees empty queues of quiet pairs: a context that they share may stay busy.
    fn release_idle_queues(&mut self, now: Time) {
        let mut is_any_left = false;
        for pair in self.pairs.iter_mut() {
            if now.since(pair.liveness().last_heard()) >= QUEUE_IDLE {
                pair.release_queues();
            }
            is_any_left |= pair.has_queues();
        }
        self.release_at = match is_any_left {
            true => now.after(QUEUE_IDLE),
            false => Time::NEVER,
        };
    }

    fn close_idle_contexts(&mut self, now: Time) {
        for context in self.contexts.idle(now) {
            for pair in self.pairs.iter_mut() {
                pair.forget_context(context);
            }
            self.contexts.close(context);
        }
        if !self.contexts.is_empty() {
            self.next_timer = self.next_timer.min(now.after(CONTEXT_IDLE));
        }
    }

    /// Sets the timer of a pair, unless it is due before.
    #[inline]
    pub(crate) fn arm(&mut self, id: PairId, at: Time) {
        if self.pairs[id].arm() {
            self.armed.push(id);
        }
        self.next_timer = self.next_timer.min(at);
    }
}

/// A timeout that was missed so many times: doubled each time, `most` at the longest.
fn back_off(timeout: Nanos, times: u32, most: Nanos) -> Nanos {
    Nanos(timeout.0 << times.min(MAX_BACKOFF)).min(most)
}
