//! Credits in a lane's buffer: places that are free, and when others will be.

use std::collections::VecDeque;

use lintel_sim_kernel::SimTime;

use super::lanes::NONE;

/// Times that a lane holds itself. A place whose packet goes on becomes free a
/// packet's length and a credit later, and meanwhile few others do.
const INLINE_TIMES: usize = 4;

/// Places of one buffer.
#[derive(Clone, Copy)]
pub(super) struct Credits {
    /// When places become free again, in the order in which packets left them:
    /// `count` from `head` on, and around.
    times: [SimTime; INLINE_TIMES],
    /// The queue of those after them, which isn't empty; or `NONE`.
    overflow: u32,
    /// Places that are free, as far as has been looked.
    free: u16,
    head: u8,
    count: u8,
}

/// Times for which lanes have no place themselves.
#[derive(Default)]
pub(super) struct Overflow {
    queues: Vec<VecDeque<SimTime>>,
    unused: Vec<u32>,
}

impl Credits {
    /// So many places, all free.
    pub(super) fn new(buffer: u32) -> Self {
        Credits {
            times: [SimTime::START; INLINE_TIMES],
            overflow: NONE,
            // Parameters allow 4096 at most.
            free: buffer as u16,
            head: 0,
            count: 0,
        }
    }

    /// When a place is free, `NEVER` if that isn't known. No later than `now`
    /// if one is free.
    #[inline]
    pub(super) fn next(&mut self, now: SimTime, overflow: &mut Overflow) -> SimTime {
        if self.free == 0 {
            self.look(now, overflow);
        }
        match (self.free, self.count) {
            (0, 0) => SimTime::NEVER,
            (0, _) => self.times[usize::from(self.head)],
            _ => now,
        }
    }

    /// Takes a place, one of which is free.
    #[inline]
    pub(super) fn take(&mut self) {
        self.free -= 1;
    }

    /// Gives a place back, from `when` on.
    #[inline]
    pub(super) fn give(&mut self, when: SimTime, now: SimTime, overflow: &mut Overflow) {
        self.look(now, overflow);
        if usize::from(self.count) == INLINE_TIMES {
            overflow.put(&mut self.overflow, when);
            return;
        }
        self.put(when);
    }

    /// Counts the places that have become free.
    #[inline]
    fn look(&mut self, now: SimTime, overflow: &mut Overflow) {
        while self.count > 0 && self.times[usize::from(self.head)] <= now {
            self.head = (self.head + 1) % INLINE_TIMES as u8;
            self.count -= 1;
            self.free += 1;
            if self.overflow != NONE {
                let when = overflow.take(&mut self.overflow);
                self.put(when);
            }
        }
    }

    #[inline]
    fn put(&mut self, when: SimTime) {
        self.times[usize::from(self.head + self.count) % INLINE_TIMES] = when;
        self.count += 1;
    }
}

impl Overflow {
    /// Puts a time behind those of a queue, which is made if there is none.
    fn put(&mut self, queue: &mut u32, when: SimTime) {
        if *queue == NONE {
            *queue = self.unused.pop().unwrap_or_else(|| {
                self.queues.push(VecDeque::new());
                // There are fewer queues than lanes.
                self.queues.len() as u32 - 1
            });
        }
        self.queues[*queue as usize].push_back(when);
    }

    /// Takes the first time of a queue, which is gone when it was the last one.
    fn take(&mut self, queue: &mut u32) -> SimTime {
        let times = &mut self.queues[*queue as usize];
        let first = times.pop_front().expect("a queue isn't empty");
        if times.is_empty() {
            self.unused.push(*queue);
            *queue = NONE;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: u64) -> SimTime {
        SimTime::from_ps(ns * 1_000)
    }

    #[test]
    fn places_that_come_free_late_do_so_in_their_order_however_many() {
        let mut overflow = Overflow::default();
        let mut credits = Credits::new(10);
        for begin in [0, 100] {
            for _ in 0..10 {
                assert_eq!(credits.next(ns(begin), &mut overflow), ns(begin));
                credits.take();
            }
            assert_eq!(credits.next(ns(begin), &mut overflow), SimTime::NEVER);
            let given = begin + 1..=begin + 10;
            let all = given.clone();
            all.for_each(|i| credits.give(ns(i), ns(begin), &mut overflow));
            for i in given {
                assert_eq!(credits.next(ns(i - 1), &mut overflow), ns(i));
                assert_eq!(credits.next(ns(i), &mut overflow), ns(i));
                credits.take();
            }
            (0..10).for_each(|_| credits.give(ns(begin + 20), ns(begin + 20), &mut overflow));
        }
        assert_eq!((overflow.queues.len(), overflow.unused.len()), (1, 1));
    }
}
