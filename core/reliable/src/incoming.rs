//! What arrives: whether it is for this incarnation of this process, and what it changes.

use crate::config::PairId;
use crate::endpoint::Endpoint;
use crate::packet::{Class, Fragment, Header, Kind};
use crate::receiving::REORDER_WINDOW;
use crate::time::{Nanos, Time};
use lintel_session::{History, Incarnation, Sender};

/// An acknowledgement waits so long for something to go with.
const ACK_DELAY: Nanos = Nanos::from_micros(250);
/// Resets that wait to be sent at most; a peer that causes more isn't answered.
const MAX_RESETS: usize = 256;

/// What to do with a packet's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing: there is none, or it isn't wanted.
    Drop,
    /// Deliver it; then those that were kept and are [`Endpoint::expected`] now.
    Deliver(PairId),
    /// Keep it, under its sequence number, until it is asked for.
    Keep(PairId),
}

impl<B> Endpoint<B> {
    /// A packet has arrived whose authenticator is right, and whose payload has the checksum
    /// that the header says. `may_keep`: whether there is room to keep it, if it is early.
    #[inline]
    pub fn on_packet(&mut self, now: Time, header: &Header, may_keep: bool) -> Verdict {
        if header.destination != self.config.me || header.source == self.config.me {
            self.counts.misdirected += 1;
            return Verdict::Drop;
        }
        let Some(id) = self.identify(now, header) else {
            return Verdict::Drop;
        };
        self.schedule_release(now);
        let pair = &mut self.pairs[id];
        pair.on_heard(now);
        if let Some(context) = pair.context() {
            self.contexts.get(context).last_heard = now;
        }
        if !self.on_ack(now, id, header) {
            self.counts.contradictory += 1;
            return Verdict::Drop;
        }
        match &header.kind {
            Kind::Data(fragment) => return self.on_data(now, id, header, fragment, may_keep),
            Kind::Probe => self.queue_ack(id),
            Kind::Close => self.abort(id),
            Kind::Ack | Kind::Reset { .. } => {}
        }
        Verdict::Drop
    }

    /// The number of the packet that is expected next: the one that was kept under it, if
    /// any, is to be passed to [`on_early`](Self::on_early).
    #[inline]
    pub fn expected(&self, pair: PairId) -> u32 {
        self.pairs[pair].expected()
    }

    /// It is the turn of a packet that was kept: it is to be delivered, unless it
    /// contradicts those before it.
    pub fn on_early(&mut self, pair: PairId, fragment: &Fragment) -> Verdict {
        self.deliver(pair, fragment)
    }

    /// The pair that a packet belongs to, if it is from and to the present incarnations. A
    /// sender that names this one has heard from it; no other has a pair, or changes one.
    #[inline]
    fn identify(&mut self, now: Time, header: &Header) -> Option<PairId> {
        let known = self.find(header.source);
        let local = known.map_or(self.config.incarnation, |id| self.pairs[id].local());
        if header.peer_incarnation != local.get() {
            return self.reject(known, header);
        }
        if let Kind::Reset { latest } = header.kind {
            self.on_reset(now, known, header, latest);
            return None;
        }
        let is_current = |id: &PairId| self.pairs[*id].history().is_current(header.incarnation);
        match known.filter(is_current) {
            Some(id) => Some(id),
            None => self.on_new_incarnation(now, known, header),
        }
    }

    /// A sender that names this process's incarnation, and whose own isn't the known one.
    #[cold]
    fn on_new_incarnation(
        &mut self,
        now: Time,
        known: Option<PairId>,
        header: &Header,
    ) -> Option<PairId> {
        let opens = matches!(header.kind, Kind::Data(_) | Kind::Probe);
        let history = self.history(known);
        let (Sender::First(sender) | Sender::Successor(sender), true) =
            (history.classify(header.incarnation), opens)
        else {
            return self.reject(known, header);
        };
        let id = self.pair_of(header.source);
        if history.current().is_some() {
            // The packet names this side's incarnation, which stays.
            self.abort_as(id, self.pairs[id].local());
        }
        self.establish(now, id, header, sender);
        Some(id)
    }

    /// What is known of a peer's incarnations.
    fn history(&self, known: Option<PairId>) -> History {
        known.map_or_else(History::default, |id| *self.pairs[id].history())
    }

    /// The peer has named its incarnation: what waited for that may be sent.
    fn establish(&mut self, now: Time, id: PairId, header: &Header, peer: Incarnation) {
        let pair = &mut self.pairs[id];
        let (context, probed_at) = (pair.context(), pair.liveness().last_probe());
        pair.establish(now, peer);
        if let Some(sending) = pair.sending_mut() {
            if let (1, Some(context)) = (sending.timeout_count(), context) {
                let context = self.contexts.get(context);
                context.round_trip.sample(now.since(probed_at));
            }
            self.awaiting_handshake -= sending.on_handshake(header.recv_window.into());
            self.make_ready(id);
        }
    }

    /// Answers a packet that isn't to this incarnation, or isn't from a present one, by a
    /// reset. Nothing is kept of it.
    #[cold]
    fn reject(&mut self, known: Option<PairId>, header: &Header) -> Option<PairId> {
        let is_first = header.kind == Kind::Probe && header.peer_incarnation == 0;
        let is_late_reset = matches!(header.kind, Kind::Reset { .. });
        self.counts.stale += u64::from(!is_first && !is_late_reset);
        if matches!(header.kind, Kind::Data(_) | Kind::Probe) {
            self.send_reset(known, header);
        }
        None
    }

    fn send_reset(&mut self, known: Option<PairId>, header: &Header) {
        if self.control.len() >= MAX_RESETS {
            return;
        }
        let history = self.history(known);
        let latest = match history.is_current(header.incarnation) {
            // Packets of its present incarnation have overtaken it.
            true => history.dead(),
            false => history.latest(),
        };
        let local = known.map_or(self.config.incarnation, |id| self.pairs[id].local());
        self.control.push_back(Header {
            kind: Kind::Reset {
                latest: latest.map_or(0, Incarnation::get),
            },
            ack_requested: false,
            uid: self.config.uid,
            source: self.config.me,
            destination: header.source,
            recv_window: self.config.recv_window,
            incarnation: local.get(),
            peer_incarnation: header.incarnation,
            sequence: 0,
            acknowledged: 0,
            selective: 0,
        });
    }

    /// The peer names its incarnation, and the latest of this process's that it has known.
    #[cold]
    fn on_reset(&mut self, now: Time, known: Option<PairId>, header: &Header, latest: u64) {
        let own = self.config.incarnation;
        let id = match known {
            Some(id) => id,
            // It has something to send to this process, but has known a later one.
            None if latest >= own.get() => self.pair_of(header.source),
            None => return,
        };
        let pair = &mut self.pairs[id];
        let sender = pair.history().classify(header.incarnation);
        match sender {
            Sender::Current if latest < pair.local().get() => return, // It has said so before.
            Sender::Current | Sender::Successor(_) => {
                // It has started again, or has given this side up.
                self.abort(id);
                self.pairs[id].follow(latest, own);
                return;
            }
            Sender::First(_) | Sender::Stale => {}
        }
        if !pair.is_established() && !pair.follow(latest, own) {
            return;
        }
        let Sender::First(peer) = sender else {
            return self.send_reset(Some(id), header); // Its clock was set back.
        };
        self.establish(now, id, header, peer);
        let sending = self.pairs[id].sending();
        if sending.is_none_or(|sending| sending.is_empty()) {
            self.probe(now, id);
        }
    }

    /// Takes note of what the peer has received; false if it can't have.
    #[inline]
    fn on_ack(&mut self, now: Time, id: PairId, header: &Header) -> bool {
        let most = self.max_timeout;
        let pair = &mut self.pairs[id];
        let count = header.acknowledged.wrapping_sub(pair.acknowledged());
        if (count as i32) < 0 {
            return true; // Later ones have overtaken it.
        }
        let context = pair.context();
        let Some(sending) = pair.sending_mut() else {
            return count == 0;
        };
        sending.set_recv_window(header.recv_window.into());
        if !sending.awaits_ack() {
            return count == 0;
        }
        let Some(index) = context else {
            return self.on_late_ack(now, id, header);
        };
        let context = self.contexts.get_synced(index, now);
        let (in_flight, counted) = (context.in_flight, sending.counted_in_flight());
        let Some(progress) = sending.on_ack(count, header.selective) else {
            return false;
        };
        context.in_flight -= counted;
        context.in_flight += sending.unpark();
        if let Some(sent) = progress.rtt_sent_at {
            context.round_trip.sample(now.since(sent));
        }
        context.window.on_arrived(progress.acked_bytes, in_flight);
        if let Some(sent) = progress.lost_sent_at {
            context.window.on_lost(now, sent);
        }
        if sending.timeout_count() > 0 && progress.has_first_transmission() {
            context.window.on_spurious_timeout();
        }
        if progress.is_new {
            sending.restart_timer(match sending.awaits_ack() {
                true => now.after(context.round_trip.timeout(most)),
                false => Time::NEVER,
            });
        }
        pair.on_acknowledged(header.acknowledged);
        self.collect_finished(id);
        self.make_ready(id);
        self.unblock(index);
        true
    }

    /// As [`on_ack`](Self::on_ack), from a peer that was silent for so long that its context
    /// was closed.
    #[cold]
    fn on_late_ack(&mut self, now: Time, id: PairId, header: &Header) -> bool {
        self.pairs[id].open_context(&mut self.contexts, now);
        self.on_ack(now, id, header)
    }

    #[inline]
    fn on_data(
        &mut self,
        now: Time,
        id: PairId,
        header: &Header,
        fragment: &Fragment,
        may_keep: bool,
    ) -> Verdict {
        if fragment.class == Class::Unreliable {
            return Verdict::Deliver(id);
        }
        let pair = &mut self.pairs[id];
        let ahead = header.sequence.wrapping_sub(pair.expected());
        let receiving = pair.begin_receiving();
        if ahead == 0 {
            if receiving.on_expected() || header.ack_requested {
                self.queue_ack(id);
            } else if receiving.delay_ack(now.after(ACK_DELAY)) {
                self.arm(id, now.after(ACK_DELAY));
            }
            return self.deliver(id, fragment);
        }
        // Something is missing, or has arrived twice: the sender is informed at once.
        let verdict = if ahead as i32 <= 0 || ahead <= REORDER_WINDOW && receiving.has(ahead) {
            self.counts.duplicates += 1;
            Verdict::Drop
        } else if ahead > REORDER_WINDOW || fragment.class == Class::Ordered && !may_keep {
            self.counts.beyond += 1;
            Verdict::Drop
        } else if fragment.class == Class::Ordered {
            receiving.mark(ahead, false);
            Verdict::Keep(id)
        } else {
            receiving.mark(ahead, true);
            Verdict::Deliver(id)
        };
        self.queue_ack(id);
        verdict
    }

    /// The expected packet has arrived.
    #[inline]
    fn deliver(&mut self, id: PairId, fragment: &Fragment) -> Verdict {
        let pair = &mut self.pairs[id];
        let receiving = pair.begin_receiving();
        let was_incomplete = receiving.is_incomplete();
        if !receiving.assemble(fragment) {
            self.counts.contradictory += 1;
            self.abort(id);
            return Verdict::Drop;
        }
        let is_incomplete = receiving.is_incomplete();
        pair.advance();
        match (was_incomplete, is_incomplete) {
            (true, false) => self.release(id),
            (false, true) => {
                let probe = self.probe_time(id);
                self.arm(id, probe);
            }
            _ => {}
        }
        Verdict::Deliver(id)
    }

    /// The message that arrived in parts is whole: what was held for it may be sent.
    fn release(&mut self, id: PairId) {
        if let Some(sending) = self.pairs[id].sending_mut() {
            sending.release();
            self.make_ready(id);
        }
    }
}
