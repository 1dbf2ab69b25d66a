//! What comes in: whether it is for this life of this process, and what it changes.

use crate::endpoint::{Endpoint, PairId, fresh};
use crate::packet::{Class, Fragment, Header, Kind};
use crate::pair::{NONE, REORDER_WINDOW};
use crate::time::{Nanos, Time};

/// An acknowledgement waits so long for something to go with.
const ACK_DELAY: Nanos = Nanos::from_micros(250);
/// Packets after which it waits no longer.
const MAX_ACK_PENDING: u32 = 32;
/// Resets that wait at most; who sends more of what deserves them isn't answered.
const MAX_RESETS: usize = 256;
/// The part of an incarnation by which lives differ that go on behind the same earlier one.
const OWN: u64 = (1 << 20) - 1;

/// What to do with a packet's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing.
    Drop,
    /// Deliver it; then those that were kept and are [`Endpoint::expected`] now.
    Deliver(PairId),
    /// Keep it, under its sequence number, until it is asked for.
    Keep(PairId),
}

impl<B> Endpoint<B> {
    /// A packet whose authenticator is right, and whose payload has the checksum that the
    /// header says. `may_keep`: whether there is room to keep it, should it be early.
    #[inline]
    pub fn on_packet(&mut self, now: Time, header: &Header, may_keep: bool) -> Verdict {
        if header.destination != self.config.me || header.source == self.config.me {
            self.counts.misdirected += 1;
            return Verdict::Drop;
        }
        let Some(index) = self.identify(now, header) else {
            return Verdict::Drop;
        };
        self.schedule_release(now);
        let pair = &mut self.pairs[index as usize];
        pair.last_heard = now;
        pair.is_suspect = false;
        if pair.context != NONE {
            self.contexts.get(pair.context).last_heard = now;
        }
        if !self.on_ack(now, index, header) {
            self.counts.contradictory += 1;
            return Verdict::Drop;
        }
        match &header.kind {
            Kind::Data(fragment) => return self.on_data(now, index, header, fragment, may_keep),
            Kind::Probe => self.queue_ack(index),
            Kind::Close => self.abort(index),
            Kind::Ack | Kind::Reset { .. } => {}
        }
        Verdict::Drop
    }

    /// The number of the packet that is next: the one that was kept under it, if any, is
    /// to be given to [`on_early`](Self::on_early).
    #[inline]
    pub fn expected(&self, pair: PairId) -> u32 {
        self.pairs[pair.0 as usize].expected
    }

    /// A packet that was kept is next: it is to be delivered, unless it contradicts
    /// those before it.
    pub fn on_early(&mut self, pair: PairId, fragment: &Fragment) -> Verdict {
        self.deliver(pair.0, fragment)
    }

    /// The pair that a packet belongs to, if it is of the present lives of both. Who
    /// knows this life has heard from it; nobody else has a pair, or changes one.
    #[inline]
    fn identify(&mut self, now: Time, header: &Header) -> Option<u32> {
        let known = self.find(header.source);
        let (local, remote) = match known {
            Some(index) => {
                let pair = &self.pairs[index as usize];
                (pair.local, pair.remote)
            }
            None => (self.config.incarnation, 0),
        };
        if header.peer_incarnation != local {
            return self.reject(known, header);
        }
        if let Kind::Reset { latest } = header.kind {
            self.on_reset(now, known, header, latest);
            return None;
        }
        if known.is_some() && header.incarnation == remote && remote != 0 {
            return known;
        }
        self.on_new_incarnation(now, known, header)
    }

    /// Somebody who knows this process, and whom this pair doesn't know yet.
    #[cold]
    fn on_new_incarnation(
        &mut self,
        now: Time,
        known: Option<u32>,
        header: &Header,
    ) -> Option<u32> {
        let opens = matches!(header.kind, Kind::Data(_) | Kind::Probe);
        let latest = known.map_or(0, |index| self.pairs[index as usize].latest());
        if !opens || header.incarnation <= latest {
            return self.reject(known, header);
        }
        let index = self.pair_of(header.source);
        let pair = &self.pairs[index as usize];
        if pair.remote != 0 {
            // The packet names this incarnation: it stays.
            self.abort_as(index, pair.local);
        }
        self.establish(now, index, header);
        Some(index)
    }

    /// Takes note of the peer's incarnation: what waited for it may go.
    fn establish(&mut self, now: Time, index: u32, header: &Header) {
        let pair = &mut self.pairs[index as usize];
        pair.remote = header.incarnation;
        pair.last_heard = now;
        pair.is_suspect = false;
        if let Some(sending) = &mut pair.sending {
            if sending.timeout_count == 1 && pair.context != NONE {
                let context = self.contexts.get(pair.context);
                context.round_trip.sample(now.since(pair.last_probe));
            }
            sending.recv_window = header.recv_window.into();
            sending.deadline = Time::NEVER;
            sending.timeout_count = 0;
            self.awaiting_handshake -= core::mem::take(&mut sending.awaiting_handshake);
            self.make_ready(index);
        }
    }

    /// Tells the sender of a packet that isn't for this life, or isn't of a present one,
    /// who is here. Nothing is kept of it.
    #[cold]
    fn reject(&mut self, known: Option<u32>, header: &Header) -> Option<u32> {
        let is_first = header.kind == Kind::Probe && header.peer_incarnation == 0;
        let is_late_reset = matches!(header.kind, Kind::Reset { .. });
        self.counts.stale += u64::from(!is_first && !is_late_reset);
        if matches!(header.kind, Kind::Data(_) | Kind::Probe) {
            self.send_reset(known, header);
        }
        None
    }

    fn send_reset(&mut self, known: Option<u32>, header: &Header) {
        if self.control.len() >= MAX_RESETS {
            return;
        }
        let (local, latest) = match known.map(|index| &self.pairs[index as usize]) {
            // It was overtaken by others of the same life.
            Some(pair) if pair.remote == header.incarnation => (pair.local, pair.dead),
            Some(pair) => (pair.local, pair.latest()),
            None => (self.config.incarnation, 0),
        };
        self.control.push_back(Header {
            kind: Kind::Reset { latest },
            ack_requested: false,
            uid: self.config.uid,
            source: self.config.me,
            destination: header.source,
            recv_window: self.config.recv_window,
            incarnation: local,
            peer_incarnation: header.incarnation,
            sequence: 0,
            acknowledged: 0,
            selective: 0,
        });
    }

    /// The peer tells who it is, and which life of this process it knew last.
    #[cold]
    fn on_reset(&mut self, now: Time, known: Option<u32>, header: &Header, latest: u64) {
        let index = match known {
            Some(index) => index,
            // It has something to send to this process, but knew a later one.
            None if latest >= self.config.incarnation => self.pair_of(header.source),
            None => return,
        };
        let pair = &self.pairs[index as usize];
        let (remote, is_late) = (pair.remote, latest >= pair.local);
        if remote != 0 && header.incarnation == remote && !is_late {
            return; // It has been said before.
        }
        if remote != 0 && header.incarnation >= remote {
            // What it knew is over: it began again, or has given this side up.
            self.abort(index);
            self.advance_past(index, latest);
            return;
        }
        if remote == 0 && !self.advance_past(index, latest) {
            return;
        }
        if header.incarnation <= self.pairs[index as usize].latest() {
            return self.send_reset(Some(index), header); // Its clock was set back.
        }
        self.establish(now, index, header);
        let sending = &self.pairs[index as usize].sending;
        if sending.as_ref().is_none_or(|sending| sending.is_empty()) {
            self.probe(now, index);
        }
    }

    /// Goes on in an incarnation behind one of this name that the peer knew; false where
    /// there is none.
    fn advance_past(&mut self, index: u32, latest: u64) -> bool {
        let own = self.config.incarnation & OWN;
        let pair = &mut self.pairs[index as usize];
        if latest < pair.local {
            return true;
        }
        let next = latest.checked_add(1 + own);
        pair.local = next.unwrap_or(pair.local);
        next.is_some()
    }

    /// Takes note of what the peer has got; false where it can't have.
    #[inline]
    fn on_ack(&mut self, now: Time, index: u32, header: &Header) -> bool {
        let most = self.max_timeout();
        let pair = &mut self.pairs[index as usize];
        let count = header.acknowledged.wrapping_sub(pair.acknowledged);
        if (count as i32) < 0 {
            return true; // An old one, overtaken by others.
        }
        let Some(sending) = &mut pair.sending else {
            return count == 0;
        };
        sending.recv_window = header.recv_window.into();
        if !sending.awaits_answer() {
            return count == 0;
        }
        if pair.context == NONE {
            return count == 0;
        }
        let context = self.contexts.get_synced(pair.context, now);
        let (in_flight, own) = (context.in_flight, sending.in_flight);
        let Some(progress) = sending.on_ack(count, header.selective) else {
            return false;
        };
        pair.acknowledged = header.acknowledged;
        context.in_flight -= if sending.is_parked { 0 } else { own };
        context.in_flight += sending.in_flight;
        sending.is_parked = false;
        if let Some(sampled) = progress.rtt_sent_at {
            context.round_trip.sample(now.since(sampled));
        }
        context.window.on_arrived(progress.acked_bytes, in_flight);
        if let Some(sent) = progress.lost_sent_at {
            context.window.on_lost(now, sent);
        }
        if sending.timeout_count > 0 && progress.has_first_transmission() {
            context.window.on_spurious_timeout();
        }
        if progress.is_new {
            sending.timeout_count = 0;
            sending.deadline = match sending.awaits_answer() {
                true => now.after(context.round_trip.timeout(most)),
                false => Time::NEVER,
            };
        }
        let context = pair.context;
        self.collect_finished(index);
        self.make_ready(index);
        self.unblock(context);
        true
    }

    #[inline]
    fn on_data(
        &mut self,
        now: Time,
        index: u32,
        header: &Header,
        fragment: &Fragment,
        may_keep: bool,
    ) -> Verdict {
        if fragment.class == Class::Unreliable {
            return Verdict::Deliver(PairId(index));
        }
        let pair = &mut self.pairs[index as usize];
        let ahead = header.sequence.wrapping_sub(pair.expected);
        let receiving = pair.receiving.get_or_insert_with(fresh);
        if ahead == 0 {
            receiving.ack_pending += 1;
            if header.ack_requested
                || receiving.ack_pending >= MAX_ACK_PENDING
                || receiving.early != 0
            {
                self.queue_ack(index);
            } else if receiving.ack_at == Time::NEVER && !receiving.is_ack_queued {
                receiving.ack_at = now.after(ACK_DELAY);
                self.arm(index, now.after(ACK_DELAY));
            }
            return self.deliver(index, fragment);
        }
        // Something is missing, or came twice: the sender is told at once.
        let verdict = if ahead as i32 <= 0 || ahead <= REORDER_WINDOW && receiving.has(ahead) {
            self.counts.duplicates += 1;
            Verdict::Drop
        } else if ahead > REORDER_WINDOW || fragment.class == Class::Ordered && !may_keep {
            self.counts.beyond += 1;
            Verdict::Drop
        } else if fragment.class == Class::Ordered {
            receiving.mark(ahead, false);
            Verdict::Keep(PairId(index))
        } else {
            receiving.mark(ahead, true);
            Verdict::Deliver(PairId(index))
        };
        self.queue_ack(index);
        verdict
    }

    /// The awaited packet is here.
    #[inline]
    fn deliver(&mut self, index: u32, fragment: &Fragment) -> Verdict {
        let pair = &mut self.pairs[index as usize];
        let receiving = pair.receiving.get_or_insert_with(fresh);
        let was_incomplete = receiving.is_incomplete();
        if !receiving.assemble(fragment) {
            self.counts.contradictory += 1;
            self.abort(index);
            return Verdict::Drop;
        }
        pair.expected = receiving.advance(pair.expected);
        match (was_incomplete, receiving.is_incomplete()) {
            (true, false) => self.release(index),
            (false, true) => {
                let probe = self.probe_time(index);
                self.arm(index, probe);
            }
            _ => {}
        }
        Verdict::Deliver(PairId(index))
    }

    /// The message that came in parts is whole: what was held back for it may go.
    fn release(&mut self, index: u32) {
        if let Some(sending) = &mut self.pairs[index as usize].sending {
            sending.release();
            self.make_ready(index);
        }
    }
}
