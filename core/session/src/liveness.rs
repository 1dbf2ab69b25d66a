//! [`Liveness`]: since when a peer is silent from which something is awaited.

/// What is known of a peer's silence. `T` is a moment of the caller's clock.
///
/// A peer may be silent for ever while nothing is awaited from it. Once something is, silence
/// counts from then on, however long it lasted before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Liveness<T> {
    last_heard: T,
    awaited_since: T,
    last_probe: T,
    probes: u32,
}

impl<T: Copy + Ord> Liveness<T> {
    /// Of a peer that counts as heard at that moment.
    pub fn new(now: T) -> Liveness<T> {
        Liveness {
            last_heard: now,
            awaited_since: now,
            last_probe: now,
            probes: 0,
        }
    }

    /// A packet has arrived from the peer.
    #[inline]
    pub fn on_heard(&mut self, now: T) {
        self.last_heard = now;
        self.probes = 0;
    }

    /// Something is awaited from the peer from now on, and nothing was before.
    #[inline]
    pub fn on_awaited(&mut self, now: T) {
        self.awaited_since = now;
        self.probes = 0;
    }

    /// The peer was asked to answer.
    pub fn on_probe(&mut self, now: T) {
        self.last_probe = now;
        self.probes = self.probes.saturating_add(1);
    }

    /// When a packet last arrived from the peer.
    #[inline]
    pub fn last_heard(&self) -> T {
        self.last_heard
    }

    /// When the peer was last asked to answer.
    pub fn last_probe(&self) -> T {
        self.last_probe
    }

    /// How often the peer was asked in vain. Silence alone doesn't show that a peer is gone: this process
    /// may have been stopped meanwhile, or the machine, and both go on now.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Since when the peer has been silent though something was awaited from it.
    pub fn silent_since(&self) -> T {
        self.last_heard.max(self.awaited_since)
    }

    /// Since when it has been silent, and wasn't asked either: a probe is due some time
    /// after that.
    pub fn quiet_since(&self) -> T {
        self.silent_since().max(self.last_probe)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_since_the_peer_was_heard_or_something_was_awaited_from_it() {
        let mut liveness = Liveness::new(10);
        assert_eq!((liveness.last_heard(), liveness.silent_since()), (10, 10));
        liveness.on_awaited(20);
        assert_eq!(liveness.silent_since(), 20);
        liveness.on_heard(30);
        assert_eq!((liveness.last_heard(), liveness.silent_since()), (30, 30));
        assert_eq!(liveness.quiet_since(), 30);
    }

    #[test]
    fn a_probe_ends_the_quiet_and_not_the_silence() {
        let mut liveness = Liveness::new(10);
        liveness.on_probe(15);
        assert_eq!((liveness.last_probe(), liveness.quiet_since()), (15, 15));
        assert_eq!((liveness.silent_since(), liveness.probes()), (10, 1));
        liveness.on_probe(15);
        liveness.on_heard(16);
        assert_eq!((liveness.quiet_since(), liveness.probes()), (16, 0));
        liveness.on_probe(17);
        liveness.on_awaited(18);
        assert_eq!(liveness.probes(), 0, "nothing was awaited before");
    }
}
