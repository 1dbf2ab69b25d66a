//! Messages that found no room: how long a caller waits for it, and how soon a sleeper retries.

use crate::sleep::RETRY;
use core::time::Duration;

/// How long a caller waits for a peer that takes nothing. The peer reports room in batches, and
/// handles each message of a batch before that.
const WAIT_FOR_MOVEMENT: Duration = Duration::from_micros(20);
/// The longest wait of one call.
const WAIT_AT_MOST: Duration = Duration::from_micros(500);
/// Looks between two looks at the clock, and looks before the first one.
const LOOKS_PER_LOOK_AT_CLOCK: u32 = 16;
/// Yields after the wait in vain, for a peer that waits for this processor.
const YIELDS: u32 = 8;

/// A caller's wait for a peer that is behind, rather than that ever more is queued for it.
/// Bounded, for the peer may have stopped: see [`RoomNext`].
#[derive(Debug)]
pub struct RoomWait {
    /// The fewest bytes queued so far.
    queued: u64,
    looks: u32,
    yields: u32,
    /// When the first look at the clock was, and the last one that saw fewer bytes.
    begun: Option<Duration>,
    moved: Duration,
}

/// What a caller does that has looked and still finds something queued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoomNext {
    /// Look again.
    Look,
    /// Yield the processor, then look again.
    Yield,
    /// Leave the rest to the helper.
    GiveUp,
}

impl RoomWait {
    /// A wait that begins with so many bytes queued. If the one before it ended in vain
    /// (`congested`), it lasts only if the peer takes something at once.
    pub fn new(queued: u64, congested: bool) -> RoomWait {
        RoomWait {
            queued,
            looks: 0,
            yields: if congested { YIELDS } else { 0 },
            begun: None,
            moved: Duration::ZERO,
        }
    }

    /// A look has left so many bytes queued. `now` is the time since some moment, the same in
    /// each call.
    pub fn on_looked(&mut self, queued: u64, now: impl FnOnce() -> Duration) -> RoomNext {
        let has_moved = queued < self.queued;
        if has_moved {
            (self.queued, self.yields) = (queued, 0);
        }
        self.looks += 1;
        if self.looks % LOOKS_PER_LOOK_AT_CLOCK != 0 && !has_moved {
            return RoomNext::Look;
        }
        let now = now();
        let begun = *self.begun.get_or_insert(now);
        if has_moved || begun == now {
            self.moved = now;
        }
        if now - begun >= WAIT_AT_MOST {
            return RoomNext::GiveUp;
        }
        match now.saturating_sub(self.moved) >= WAIT_FOR_MOVEMENT {
            _ if self.yields == YIELDS => RoomNext::GiveUp,
            false => RoomNext::Look,
            true => {
                self.yields += 1;
                RoomNext::Yield
            }
        }
    }
}

/// How soon a sleeper retries to send what found no room: soon while the peer takes some of it,
/// later and later while it doesn't.
#[derive(Debug)]
pub struct Retries {
    queued: u64,
    interval: Duration,
}

impl Retries {
    const FIRST: Duration = Duration::from_micros(5);
    const LAST: Duration = RETRY;

    /// When to retry with so many bytes queued.
    pub fn next(&mut self, queued: u64) -> Duration {
        self.interval = match queued < self.queued {
            true => Self::FIRST,
            false => (self.interval * 2).min(Self::LAST),
        };
        self.queued = queued;
        self.interval
    }
}

impl Default for Retries {
    fn default() -> Retries {
        Retries {
            queued: u64::MAX,
            interval: Self::FIRST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec::Vec;

    const LOOK: Duration = Duration::from_nanos(100);

    /// What follows looks that leave so much queued, and how long the wait took.
    fn wait(congested: bool, queued: impl Fn(u32) -> u64) -> (Vec<RoomNext>, Duration) {
        let mut wait = RoomWait::new(queued(0), congested);
        let mut all = Vec::new();
        for look in 1.. {
            let next = wait.on_looked(queued(look), || LOOK * look);
            all.push(next);
            if next == RoomNext::GiveUp {
                return (all, LOOK * look);
            }
        }
        unreachable!("each wait ends")
    }

    #[test]
    fn a_caller_gives_a_peer_that_takes_nothing_some_microseconds_then_yields_then_gives_up() {
        let (nexts, took) = wait(false, |_| 1000);
        let yields = nexts.iter().filter(|next| **next == RoomNext::Yield);
        assert_eq!(yields.count(), YIELDS as usize);
        assert!(
            took >= WAIT_FOR_MOVEMENT && took < WAIT_FOR_MOVEMENT * 3,
            "{took:?}"
        );
    }

    #[test]
    fn a_caller_waits_on_while_the_peer_takes_something_in_time() {
        // 1 B each 10 µs.
        let (_, took) = wait(false, |look| 1000 - u64::from(look) / 100);
        let looks_between = LOOK * LOOKS_PER_LOOK_AT_CLOCK;
        let most = WAIT_AT_MOST + looks_between * 2;
        assert!(took >= WAIT_AT_MOST && took <= most, "{took:?}");
    }

    #[test]
    fn after_a_wait_in_vain_the_next_one_is_short_unless_the_peer_takes_something() {
        let (_, took) = wait(true, |_| 1000);
        assert_eq!(took, LOOK * LOOKS_PER_LOOK_AT_CLOCK);
        let (_, took) = wait(true, |look| 1000 - u64::from(look) / 10);
        assert!(took > WAIT_FOR_MOVEMENT, "{took:?}");
    }

    #[test]
    fn retries_are_soon_while_something_moves_and_seldom_while_nothing_does() {
        let mut retries = Retries::default();
        assert_eq!(retries.next(1000), Retries::FIRST);
        let later: Vec<_> = (0..6).map(|_| retries.next(1000).as_micros()).collect();
        assert_eq!(later, [10, 20, 40, 80, 100, 100]);
        assert_eq!(retries.next(999), Retries::FIRST);
        assert_eq!(retries.next(2000), Retries::FIRST * 2);
    }
}
