//! Whether peers still live, while something depends on them.

use crate::OfiNal;
use crate::peer::Peer;
use std::time::{Duration, Instant};

/// Questions in vain until a peer is lost; they are spread over the time that it may
/// be silent.
const ASKS: u32 = 3;
/// Looks after peers in the time that they may be silent.
const CHECKS: u32 = 16;
const SHORTEST_CHECK: Duration = Duration::from_millis(5);

enum Verdict {
    Well,
    Ask,
    Lost(&'static str),
}

impl OfiNal {
    fn quarter(&self) -> Duration {
        self.timeout / (ASKS + 1)
    }

    /// Somebody waits for something of a peer's, the NAL can't know of which one's.
    pub(crate) fn attend(&mut self) {
        self.now = Instant::now();
        let last = self.attended.replace(self.now);
        let anew = last.is_none_or(|last| self.now - last > self.quarter());
        for peer in self.peers.values_mut().filter(|_| anew) {
            peer.health.since.get_or_insert(self.now);
        }
        let ended = |peer: &&Peer| peer.ended.is_none() && self.directory.has_ended(peer.process);
        let ended: Vec<u32> = self
            .peers
            .values()
            .filter(ended)
            .map(|peer| peer.lane)
            .collect();
        for lane in ended {
            self.end(lane, "has ended");
        }
        if self.now >= self.next_check {
            self.check_health();
        }
    }

    /// Asks those who are silent, and gives up those who stay so.
    pub(crate) fn check_health(&mut self) {
        self.next_check = self.now + (self.timeout / CHECKS).max(SHORTEST_CHECK);
        let attended = self
            .attended
            .filter(|last| self.now - *last <= self.quarter());
        self.attended = attended;
        let (now, quarter, timeout) = (self.now, self.quarter(), self.timeout);
        let mut verdicts = Vec::new();
        for peer in self.peers.values_mut() {
            if peer.ended.is_some_and(|ended| now - ended > timeout) {
                verdicts.push((peer.lane, None));
            } else if peer.ended.is_none() {
                match peer.judge(now, quarter, attended.is_some()) {
                    Verdict::Well => {}
                    verdict => verdicts.push((peer.lane, Some(verdict))),
                }
            }
        }
        for (lane, verdict) in verdicts {
            match verdict {
                Some(Verdict::Lost(why)) => self.end(lane, why),
                Some(_) => self.tell_counts(lane, true),
                None => self.abandon_stream(lane),
            }
        }
    }
}

impl Peer {
    fn judge(&mut self, now: Instant, quarter: Duration, attended: bool) -> Verdict {
        let needed = self.is_needed();
        let health = &mut self.health;
        if !needed && !attended {
            health.since = None;
            health.asks = 0;
            return Verdict::Well;
        }
        // Where messages neither arrive nor fail, though the peer answers.
        let stuck = self.sending.arrived != self.sending.sequence;
        if stuck && now.saturating_duration_since(health.moved) > quarter * 2 * (ASKS + 1) {
            return Verdict::Lost("answers, but messages to it don't arrive");
        }
        let since = *health.since.get_or_insert(now);
        let quiet = match health.asks {
            0 => since.max(health.heard),
            _ => health.asked,
        };
        if now.saturating_duration_since(quiet) < quarter {
            return Verdict::Well;
        }
        if health.asks >= ASKS {
            return Verdict::Lost("doesn't answer any more");
        }
        health.asks += 1;
        health.asked = now;
        Verdict::Ask
    }
}
