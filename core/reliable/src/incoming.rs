//! What comes in: whether it is for this life of this process, and what it changes.

use crate::endpoint::{Endpoint, PairId, fresh};
use crate::packet::{Class, Fragment, Header, Kind};
use crate::pair::{AHEAD, NONE};
use crate::time::{Nanos, Time};

/// An acknowledgement waits so long for something to go with.
const DELAY: Nanos = Nanos::from_micros(250);
/// Packets after which it waits no longer.
const MOST_OWED: u32 = 32;
/// Resets that wait at most; who sends more of what deserves them isn't answered.
const MOST_CONTROL: usize = 64;

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
        let Some(index) = self.identify(header) else {
            return Verdict::Drop;
        };
        self.look_for_rest(now);
        let pair = &mut self.pairs[index as usize];
        pair.heard = now;
        pair.is_doubted = false;
        if pair.context != NONE {
            self.contexts.get(pair.context).heard = now;
        }
        if header.believed == pair.local && !self.on_ack(now, index, header) {
            self.counts.contradictory += 1;
            return Verdict::Drop;
        }
        match &header.kind {
            Kind::Data(fragment) => return self.on_data(now, index, header, fragment, may_keep),
            Kind::Probe => self.owe(index),
            Kind::Farewell => self.lose(index),
            Kind::Ack | Kind::Reset => {}
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

    /// The pair that a packet belongs to, if it is of the present lives of both.
    #[inline]
    fn identify(&mut self, header: &Header) -> Option<u32> {
        let opens = matches!(header.kind, Kind::Data(_) | Kind::Probe);
        let index = match self.known(header.source) {
            Some(index) => index,
            None if opens && header.believed == 0 => self.pair_named(header.source),
            None if opens => {
                let index = self.pair_named(header.source);
                return self.refuse(index, header);
            }
            None => {
                self.counts.stale += 1;
                return None;
            }
        };
        let pair = &self.pairs[index as usize];
        if header.kind == Kind::Reset {
            if header.believed == pair.local && header.incarnation >= pair.remote {
                self.lose(index);
            }
            return None;
        }
        if header.believed != 0 && header.believed != pair.local {
            return self.refuse(index, header);
        }
        if header.incarnation == pair.remote && header.incarnation != 0 {
            return Some(index);
        }
        self.meet(index, header)
    }

    /// Somebody whom this pair doesn't know yet.
    #[cold]
    fn meet(&mut self, index: u32, header: &Header) -> Option<u32> {
        let pair = &self.pairs[index as usize];
        if header.incarnation <= pair.dead.max(pair.remote) {
            return self.refuse(index, header);
        }
        if pair.remote != 0 {
            self.lose(index);
        }
        if header.kind == Kind::Farewell && !self.pairs[index as usize].is_addressed {
            return None;
        }
        self.pairs[index as usize].remote = header.incarnation;
        Some(index)
    }

    /// Tells the sender of a packet for an earlier life that it is over.
    #[cold]
    fn refuse(&mut self, index: u32, header: &Header) -> Option<u32> {
        self.counts.stale += 1;
        let answers = matches!(header.kind, Kind::Data(_) | Kind::Probe);
        if answers && self.control.len() < MOST_CONTROL {
            let pair = &self.pairs[index as usize];
            self.control.push_back(Header {
                kind: Kind::Reset,
                asks: false,
                uid: self.config.uid,
                source: self.config.me,
                destination: header.source,
                room: self.config.room,
                incarnation: pair.local,
                believed: header.incarnation,
                sequence: 0,
                acknowledged: 0,
                selective: 0,
            });
        }
        None
    }

    /// Takes note of what the peer has got; false where it can't have.
    #[inline]
    fn on_ack(&mut self, now: Time, index: u32, header: &Header) -> bool {
        let most = self.patience();
        let pair = &mut self.pairs[index as usize];
        let count = header.acknowledged.wrapping_sub(pair.acknowledged);
        if (count as i32) < 0 {
            return true; // An old one, overtaken by others.
        }
        let Some(sending) = &mut pair.sending else {
            return count == 0;
        };
        sending.room = header.room.into();
        if !sending.awaits_answer() {
            return count == 0;
        }
        if pair.context == NONE {
            return count == 0;
        }
        let context = self.contexts.get_synced(pair.context, now);
        let (flying, own) = (context.flying, sending.flying);
        let Some(progress) = sending.on_ack(count, header.selective) else {
            return false;
        };
        pair.acknowledged = header.acknowledged;
        context.flying -= if sending.is_parked { 0 } else { own };
        context.flying += sending.flying;
        sending.is_parked = false;
        if let Some(sampled) = progress.sampled {
            context.round_trip.sample(now.since(sampled));
        }
        context.window.on_arrived(progress.bytes, flying);
        if let Some(sent) = progress.lost {
            context.window.on_lost(now, sent);
        }
        if sending.tries > 0 && progress.has_first() {
            context.window.on_false_alarm();
        }
        if progress.is_news {
            sending.tries = 0;
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
            receiving.owed += 1;
            if header.asks || receiving.owed >= MOST_OWED || receiving.early != 0 {
                self.owe(index);
            } else if receiving.ack_at == Time::NEVER && !receiving.is_owing {
                receiving.ack_at = now.after(DELAY);
                self.arm(index, now.after(DELAY));
            }
            return self.deliver(index, fragment);
        }
        // Something is missing, or came twice: the sender is told at once.
        let verdict = if ahead as i32 <= 0 || ahead <= AHEAD && receiving.has(ahead) {
            self.counts.duplicates += 1;
            Verdict::Drop
        } else if ahead > AHEAD || fragment.class == Class::Ordered && !may_keep {
            self.counts.beyond += 1;
            Verdict::Drop
        } else if fragment.class == Class::Ordered {
            receiving.mark(ahead, false);
            Verdict::Keep(PairId(index))
        } else {
            receiving.mark(ahead, true);
            Verdict::Deliver(PairId(index))
        };
        self.owe(index);
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
            self.lose(index);
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
