//! Whether peers are still alive, while something is awaited from them.

use crate::OfiNal;
use crate::peer::Peer;
use std::time::{Duration, Instant};

/// Probes without an answer until a peer is lost; they are spread over the peer timeout.
const MAX_PROBES: u32 = 3;
/// Checks of all peers within the peer timeout.
const CHECKS_PER_TIMEOUT: u32 = 16;
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(5);

enum Verdict {
    Alive,
    Probe,
    Lost(&'static str),
}

impl OfiNal {
    fn probe_interval(&self) -> Duration {
        self.timeout / (MAX_PROBES + 1)
    }

    /// A caller waits for something from a peer; the NAL can't know from which one.
    pub(crate) fn check_all_peers(&mut self) {
        self.clock.now = Instant::now();
        let last = self.clock.last_peer_check.replace(self.clock.now);
        let anew = last.is_none_or(|last| self.clock.now - last > self.probe_interval());
        for peer in self.peers.iter_mut().filter(|_| anew) {
            peer.health.begin_awaiting(self.clock.now);
        }
        let ended = self.peers.lanes(|peer| {
            peer.closed_at.is_none() && self.addresses.directory.has_ended(peer.process)
        });
        for lane in ended {
            self.close_peer(lane);
        }
        if self.clock.now >= self.clock.next_health_check {
            self.check_health();
        }
    }

    /// Probes the silent peers, and gives up those that stay silent.
    pub(crate) fn check_health(&mut self) {
        self.clock.next_health_check =
            self.clock.now + (self.timeout / CHECKS_PER_TIMEOUT).max(MIN_CHECK_INTERVAL);
        let last_peer_check = self
            .clock
            .last_peer_check
            .filter(|last| self.clock.now - *last <= self.probe_interval());
        self.clock.last_peer_check = last_peer_check;
        let (now, probe_interval, timeout) = (self.clock.now, self.probe_interval(), self.timeout);
        let mut verdicts = Vec::new();
        for peer in self.peers.iter_mut() {
            if peer.closed_at.is_some_and(|ended| now - ended > timeout) {
                verdicts.push((peer.lane, None));
            } else if peer.closed_at.is_none() {
                match peer.check(now, probe_interval, last_peer_check.is_some()) {
                    Verdict::Alive => {}
                    verdict => verdicts.push((peer.lane, Some(verdict))),
                }
            }
        }
        for (lane, verdict) in verdicts {
            match verdict {
                Some(Verdict::Lost(why)) => self.lose_peer(lane, why),
                Some(_) => self.send_status(lane, true),
                None => self.abandon_stream(lane),
            }
        }
    }
}

impl Peer {
    fn check(&mut self, now: Instant, probe_interval: Duration, last_peer_check: bool) -> Verdict {
        let needed = self.is_needed();
        let health = &mut self.health;
        if !needed && !last_peer_check {
            health.end_awaiting();
            return Verdict::Alive;
        }
        // Messages neither arrive nor fail, though the peer answers.
        let stuck = self.sending.arrived != self.sending.sequence;
        if stuck
            && now.saturating_duration_since(health.last_progress)
                > probe_interval * 2 * (MAX_PROBES + 1)
        {
            return Verdict::Lost("answers, but messages to it don't arrive");
        }
        health.begin_awaiting(now);
        let quiet_since = health.liveness.quiet_since();
        if now.saturating_duration_since(quiet_since) < probe_interval {
            return Verdict::Alive;
        }
        if health.liveness.probes() >= MAX_PROBES {
            return Verdict::Lost("doesn't answer any more");
        }
        health.on_probe(now);
        Verdict::Probe
    }
}
